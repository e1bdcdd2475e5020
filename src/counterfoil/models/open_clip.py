"""Models of the package open_clip, for scoring (`open-clip:ARCH/PRETRAINED`) and for training.

PRETRAINED is a tag that open_clip knows, or a checkpoint file. Scoring uses the functions of
`counterfoil.models.clip_fast` in place of the library's where both agree on a sample. Captions are cut to
the longest of their batch where that is exact: under a causal mask nothing up to the end mark depends on what
follows.
"""

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import torch
from numpy import ndarray
from torch import Tensor, nn

from counterfoil.errors import ModelError
from counterfoil.models import clip_fast
from counterfoil.models.base import DEFAULT, Options, digest_tensors
from counterfoil.models.device_pixels import TOLERANCE, CompiledTower, DevicePixels
from counterfoil.models.dual import DualEncoder, TokenIds, Towers
from counterfoil.models.images import ImageRoute, Resized, Untouched
from counterfoil.models.networks import Backbone, Encoded, LibraryNetwork, Local, processor_files
from counterfoil.models.open_clip_loading import (
    CONFIG,
    Activation,
    built,
    by_library,
    library_of,
    quiet,
)
from counterfoil.models.patches import PatchTower, of_open_clip
from counterfoil.models.runtime import LoadContext, to_device
from counterfoil.store import canonical_json

#: Texts of different lengths, for comparing the two.
SAMPLE = ("a photo of a cat", "two dogs chase one red ball across the wet grass behind a house")


def load(argument: str, options: Options = DEFAULT) -> DualEncoder:
    """The scorer `ARCH/TAG`, `ARCH/path/to/checkpoint` (`ARCH//absolute/path`) or `local-dir:FOLDER`.

    Raises what `open_clip_loading.built` raises, and `InputError` or `ModelError` for a precision or device
    that is not available. `ARCH-gelu/...` loads weights trained with QuickGELU with GELU all the same, and
    the identity records it.
    """
    where = f"open-clip:{argument}"
    context, library = LoadContext.of(where, options, "prompt", "settings"), library_of()
    route, device = ImageRoute.of(context.settings), context.device
    model, tokenizer, activation, card = _loaded(library, argument, where)
    weights = digest_tensors(model.state_dict())
    backbone = _around(where, model, tokenizer, card)
    backbone = replace(
        backbone, route=route, preparation=route.preparation(backbone.preparation, where=where)
    )
    network, computed = to_device(backbone.network, device, context.dtype)
    towers = network.towers(backbone, device, computed, options.precision)
    return DualEncoder(
        identity=context.identity(
            weights=weights,
            preprocessing=canonical_json(card["preprocess"]),
            **activation.options(),
            **({} if computed is context.dtype else {"activations": "fp32"}),
            **route.facts(),
        ),
        preparation=backbone.preparation,
        towers=towers,
        provenance=context.provenance(
            library, activation=f"{activation.name}: {activation.evidence}", **towers.notes
        ),
    )


def backbone(argument: str) -> Backbone:
    """The same model for training, in fp32 on the CPU; `ARCH` alone has random weights.

    Raises `ModelError` as `load` does.
    """
    where = f"open-clip:{argument}"
    model, tokenizer, _, card = _loaded(library_of(), argument, where, random=True)
    return _around(where, model, tokenizer, card)


def from_card(card: Mapping[str, Any], folder: Path | None = None) -> Backbone:
    """The architecture that a card describes, with random weights.

    A tokenizer made of files is read from `folder`, or fetched as the library does where that is None. Raises
    `ModelError` where open_clip cannot build it.
    """
    where = f"open-clip:{card['from']}"
    library = library_of()
    config = {"model_cfg": card["model"], "preprocess_cfg": card["preprocess"]}
    with quiet(), tempfile.TemporaryDirectory() as config_folder:
        (Path(config_folder) / CONFIG).write_text(json.dumps(config))
        try:
            model = library.create_model(
                f"local-dir:{config_folder}", load_weights=False, pretrained_hf=False, device="cpu"
            )
        except Exception as error:
            raise ModelError(
                f"open_clip cannot build the model of this card: {str(error)[:240]}", where=where
            ) from None
        if folder is not None and (folder / CONFIG).is_file():
            name = f"local-dir:{folder}"
        elif card["architecture"] in library.list_models():
            name = str(card["architecture"])
        else:
            name = f"local-dir:{config_folder}"
        tokenizer = by_library(lambda: library.get_tokenizer(name), where, "tokenizer")
    return _around(where, model, tokenizer, card)


def _loaded(
    library: Any, argument: str, where: str, *, random: bool = False
) -> tuple[Any, Any, Activation, dict[str, Any]]:
    """Model, tokenizer, activation and card."""
    with quiet():
        model, architecture, activation = built(library, argument, where, random=random)
        tokenizer = by_library(lambda: library.get_tokenizer(architecture), where, "tokenizer")
        config = library.get_model_config(architecture)
    settings = dict(library.get_model_preprocess_cfg(model))
    card = {
        "kind": "open-clip",
        "architecture": architecture,
        "model": config,
        # Plain JSON values, so that a card is equal before saving and after.
        "preprocess": json.loads(canonical_json(settings)),
        "from": argument,
        **({"trained_with": activation.trained_with} if activation.trained_with else {}),
    }
    return model, tokenizer, activation, card


def _around(where: str, model: Any, tokenizer: Any, card: Mapping[str, Any]) -> Backbone:
    network = OpenClipNetwork(model.float().requires_grad_(True))
    pixels = OpenClipPixels.of(card["preprocess"], torch.device("cpu"), torch.float32)
    return Backbone(
        name=where,
        network=network,
        preparation=pixels.preparation,
        pixels=pixels,
        tokens=OpenClipTokens(tokenizer, network.causal),
        card=card,
        # Those of a tokenizer made of files, with the configuration that open_clip reads them with.
        files=partial(processor_files, (tokenizer,), CONFIG, {"model_cfg": card["model"]})
        if hasattr(tokenizer, "save_pretrained")
        else dict,
    )


# -- inputs -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class OpenClipPixels:
    """Prepared pictures to the pixels that a model takes."""

    preparation: Resized | Untouched
    #: Mean and standard deviation of the three colours, (3, 1, 1) each.
    mean: Any
    std: Any
    device: Any
    dtype: Any
    #: open_clip's own transform, where workers leave pictures untouched.
    transform: Any = None

    @classmethod
    def of(cls, settings: Mapping[str, Any], device: Any, dtype: Any) -> "OpenClipPixels":
        """The pixels by a model's preprocessing settings (open_clip's `preprocess_cfg`)."""
        from open_clip.transform import PreprocessCfg, image_transform_v2

        triples = {
            name: settings[name] if isinstance(settings[name], Sequence) else [settings[name]] * 3
            for name in ("mean", "std")
        }
        mean, std = (
            torch.tensor(list(triple), dtype=torch.float32, device=device).view(3, 1, 1)
            for triple in triples.values()
        )
        size, mode, interpolation = settings["size"], settings["resize_mode"], settings["interpolation"]
        height, width = (size, size) if isinstance(size, int) else size
        if height == width and mode in ("shortest", "squash") and interpolation in ("bicubic", "bilinear"):
            return cls(Resized(int(height), mode, interpolation), mean, std, device, dtype)
        transform = image_transform_v2(PreprocessCfg(**settings), is_train=False)
        return cls(Untouched(), mean, std, device, dtype, transform)

    def __call__(self, pictures: Sequence[ndarray]) -> Tensor:
        """(batch, 3, height, width) normalised floats, on the device."""
        if self.transform is None:
            pixels = torch.from_numpy(np.stack(pictures)).to(self.device).permute(0, 3, 1, 2).contiguous()
            # The same operations in the same order as torchvision's ToTensor and Normalize.
            pixels = pixels.float().div_(255).sub_(self.mean).div_(self.std)
        else:
            whole = [self.transform(PIL.Image.fromarray(picture)) for picture in pictures]
            pixels = torch.stack(whole).to(self.device)
        return pixels.to(self.dtype)


class OpenClipTokens:
    """Texts to token ids, cut behind the last end mark of the batch where the text tower is `causal`.

    Ids are remembered, since captions are counted first and embedded later.
    """

    def __init__(self, tokenizer: Any, causal: clip_fast.CausalText | None = None) -> None:
        self.tokenizer, self.causal = tokenizer, causal
        self._row = lru_cache(maxsize=1 << 16)(lambda text: tuple(tokenizer([text])[0].tolist()))

    def __call__(self, texts: Sequence[str]) -> Tensor:
        """(batch, length) ids."""
        rows = self.rows(texts)
        if self.causal is not None:
            longest = max((len(self.causal.cut(row)) for row in rows), default=0)
            rows = [row[:longest] for row in rows]
        return torch.tensor(rows, dtype=torch.long)

    def rows(self, texts: Sequence[str]) -> list[tuple[int, ...]]:
        """The ids of each text, padded to the length the model reads."""
        return [self._row(text) for text in texts]

    def left_out(self, texts: Sequence[str]) -> list[int]:
        """How many tokens of each text the model does not read; 0 where the tokenizer cannot tell."""
        return [
            max(0, self._length(text) - len(row)) for text, row in zip(texts, self.rows(texts), strict=True)
        ]

    def _length(self, text: str) -> int:
        """Tokens of the whole text, start and end marks included; 0 where the tokenizer cannot tell."""
        if hasattr(self.tokenizer, "encode") and hasattr(self.tokenizer, "eot_token_id"):
            return len(self.tokenizer.encode(text)) + 2
        # Tokenizers of transformers within open_clip's, which cleans the text first.
        inner, clean = getattr(self.tokenizer, "tokenizer", None), getattr(self.tokenizer, "clean_fn", None)
        if inner is None or clean is None:
            return 0
        return len(inner(clean(text), truncation=False, verbose=False)["input_ids"])


@dataclass(frozen=True, eq=False)
class CausalTokens:
    """A `TokenTower` around a causal text tower: no token depends on what follows it."""

    tokens: OpenClipTokens
    tower: clip_fast.CausalText

    def read(self, texts: Sequence[str]) -> list[TokenIds]:
        """The ids of each text, up to the end mark and all of them."""
        return [TokenIds.of(self.tower.cut(row), len(row)) for row in self.tokens.rows(texts)]

    def states(self, texts: Sequence[str]) -> Any:
        """(texts, longest, width) features of all tokens."""
        return self.tower.states(self.tokens.rows(texts))


# -- the network ------------------------------------------------------------------------------------------


class OpenClipNetwork(LibraryNetwork):
    """The two towers of an open_clip model."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__(model)
        #: The text tower, where texts may be cut; None where they may not.
        self.causal = clip_fast.causal_text(model)

    def encode_images(self, pixels: Tensor) -> Encoded:
        """(batch, 3, height, width) to (batch, width), by the library."""
        return Encoded(self.model.encode_image(pixels))

    def encode_texts(self, tokens: Tensor) -> Encoded:
        """(batch, length) to (batch, width); any length up to the tower's own where texts may be cut."""
        if self.causal is None:
            return Encoded(self.model.encode_text(tokens))
        return Encoded(self._pooled(self.causal.hidden(tokens), tokens))

    def local_images(self, pixels: Tensor) -> Local:
        """The whole and every patch, where the tower is open_clip's vision transformer with a class token."""
        if clip_fast.image_tower(self.model) is None:
            return super().local_images(pixels)
        visual: Any = self.model.visual
        pooled, patches = visual._pool(visual.transformer(visual._embeds(pixels)))
        return Local(pooled if visual.proj is None else pooled @ visual.proj, patches)

    def local_texts(self, tokens: Tensor) -> Local:
        """The whole and every word up to the end mark, where texts may be cut."""
        if self.causal is None:
            return super().local_texts(tokens)
        words = self.causal.hidden(tokens)
        places = torch.arange(tokens.shape[1], device=tokens.device)
        return Local(self._pooled(words, tokens), words, places > self.causal.ends(tokens)[:, None])

    def projections(self) -> Sequence[nn.Parameter]:
        """`visual.proj` and `text_projection`, as PAC-S trains them."""
        text = self.model if self.causal is None else self.causal.text
        last = getattr(getattr(text, "text", text), "text_projection", None)
        # A parameter, or the weight of a layer.
        last = last.weight if isinstance(last, nn.Linear) else last
        both = (getattr(getattr(self.model, "visual", None), "proj", None), last)
        return tuple(projection for projection in both if isinstance(projection, nn.Parameter))

    def towers(self, backbone: Backbone, device: torch.device, dtype: torch.dtype, precision: str) -> Towers:
        """The towers for scoring: `clip_fast`'s where they agree with the library's on a sample."""
        tokens = backbone.tokens
        assert isinstance(tokens, OpenClipTokens)
        pixels = OpenClipPixels.of(backbone.card["preprocess"], device, dtype)
        prepare: Callable[[Sequence[ndarray]], Tensor] = pixels
        if backbone.route.resize == "device":
            assert isinstance(pixels.preparation, Resized)
            mean, std = (colours.flatten().tolist() for colours in (pixels.mean, pixels.std))
            prepare = DevicePixels(pixels.preparation, mean, std, device, dtype)
        fast_images, fast_texts = clip_fast.agreeing(
            self.model, tokens.rows(SAMPLE), dtype=dtype, tolerance=TOLERANCE[precision]
        )

        def texts(texts: Sequence[str]) -> Tensor:
            rows = tokens.rows(texts)
            encode: Any = fast_texts or self.model.encode_text
            return encode(rows if fast_texts else torch.tensor(rows, device=device))

        def count(texts: Sequence[str]) -> list[int]:
            # The library's own tower computes all texts at full length.
            return [len(fast_texts.cut(row) if fast_texts else row) for row in tokens.rows(texts)]

        causal = fast_texts or self.causal
        of_patches = of_open_clip(self.model)

        def patches(pictures: Sequence[ndarray]) -> Tensor:
            assert of_patches is not None
            return of_patches(prepare(pictures))

        encode_images: Any = fast_images or self.model.encode_image
        if backbone.route.compile != "no":
            encode_images = CompiledTower(encode_images, tolerance=TOLERANCE[precision], where=backbone.name)
        return Towers(
            images=lambda pictures: encode_images(prepare(pictures)),
            texts=texts,
            count=count,
            left_out=tokens.left_out,
            tokens=None if causal is None else CausalTokens(tokens, causal),
            patches=None
            if of_patches is None
            else PatchTower(patches, pixels.preparation, tuple(self.model.visual.grid_size)),
            notes={
                "image tower": "fast" if fast_images else "library",
                "text tower": "fast, cut to the longest caption" if fast_texts else "library",
            },
        )

    def _pooled(self, states: Tensor, tokens: Tensor) -> Tensor:
        """(batch, width): the state at the end mark, projected."""
        assert self.causal is not None
        pooled = states[torch.arange(len(states), device=states.device), self.causal.ends(tokens)]
        return self.causal.projected(pooled)
