"""Models of open_clip open for training: the library's own modules behind the one shape of answer.

Captions are cut to the longest of their batch where that is exact: under a causal mask nothing up to the end
mark depends on what follows it. Elsewhere the tower reads texts at full length.
"""

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from counterfoil.errors import ModelError
from counterfoil.scorers import clip_fast
from counterfoil.scorers.networks import Backbone, Encoded, LibraryNetwork, Local
from counterfoil.scorers.open_clip import TOLERANCE, built, library_of, quiet, tokenizer_of
from counterfoil.scorers.open_clip_towers import Pixels, RememberedTokens, Towers, trusted
from counterfoil.store import canonical_json

#: What open_clip reads an architecture and a preprocessing from, in a folder.
CONFIG = "open_clip_config.json"


class OpenClipNetwork(LibraryNetwork):
    """The two towers of an open_clip model."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__(model)
        #: Where texts may be cut, and how; None where they may not.
        self.causal = clip_fast.causal_text(model)

    def encode_images(self, pixels: Tensor) -> Encoded:
        """(batch, 3, height, width) to (batch, width), by the library."""
        return Encoded(self.model.encode_image(pixels))

    def encode_texts(self, tokens: Tensor) -> Encoded:
        """(batch, length) to (batch, width); any length up to the tower's own where texts may be cut."""
        if self.causal is None:
            return Encoded(self.model.encode_text(tokens))
        return Encoded(self._pooled(self._words(tokens), tokens))

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
        words = self._words(tokens)
        places = torch.arange(tokens.shape[1], device=tokens.device)
        return Local(self._pooled(words, tokens), words, places > self._ends(tokens)[:, None])

    def projections(self) -> Sequence[nn.Parameter]:
        """`visual.proj` and `text_projection`, as PAC-S trains them."""
        text = self.model if self.causal is None else self.causal.text
        found = (getattr(getattr(self.model, "visual", None), "proj", None), _projection(text))
        return tuple(each for each in found if isinstance(each, nn.Parameter))

    def _words(self, tokens: Tensor) -> Tensor:
        """(batch, length, width) states after the last norm, of a causal tower."""
        assert self.causal is not None
        text, length = self.causal.text, tokens.shape[1]
        dtype = text.transformer.get_cast_dtype()
        x = text.token_embedding(tokens).to(dtype) + text.positional_embedding[:length].to(dtype)
        x = text.transformer(x, attn_mask=text.attn_mask[:length, :length])
        states: Tensor = text.ln_final(x)
        return states

    def _ends(self, tokens: Tensor) -> Tensor:
        """(batch,) places of the end marks; the first place where there is none, as the library has it."""
        assert self.causal is not None
        end = self.causal.end
        return tokens.argmax(dim=-1) if end is None else (tokens == end).int().argmax(dim=-1)

    def _pooled(self, states: Tensor, tokens: Tensor) -> Tensor:
        """(batch, width): the state at the end mark, projected."""
        assert self.causal is not None
        x = states[torch.arange(len(states), device=states.device), self._ends(tokens)]
        projection = self.causal.text.text_projection
        if projection is None:
            return x
        projected: Tensor = projection(x) if isinstance(projection, nn.Module) else x @ projection
        return projected


@dataclass(frozen=True, eq=False)
class OpenClipTokens:
    """Texts to token ids, cut behind the last end mark of the batch where `cut` says where that is."""

    tokenizer: Any
    cut: Callable[[Sequence[int]], Sequence[int]] | None
    #: The model's configuration, which the files of a tokenizer are kept with.
    config: Mapping[str, Any]
    _read: RememberedTokens = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_read", RememberedTokens(self.tokenizer))

    def __call__(self, texts: Sequence[str]) -> Tensor:
        """(batch, length) ids."""
        rows = self._read(texts)
        if self.cut is not None:
            longest = max((len(self.cut(row)) for row in rows), default=0)
            rows = [row[:longest] for row in rows]
        return torch.tensor(rows, dtype=torch.long)

    def files(self) -> Mapping[str, bytes]:
        """What a checkpoint keeps so that it needs no hub: the files of the tokenizer, if it has any."""
        if not hasattr(self.tokenizer, "save_pretrained"):
            return {}
        with tempfile.TemporaryDirectory() as folder:
            self.tokenizer.save_pretrained(folder)
            files = {file.name: file.read_bytes() for file in sorted(Path(folder).iterdir())}
        return {**files, CONFIG: json.dumps({"model_cfg": self.config}, indent=2).encode()}


def backbone(argument: str) -> Backbone:
    """`ARCH` (random weights), `ARCH/TAG`, `ARCH/FILE` or `local-dir:FOLDER`, in fp32 on the CPU.

    Raises `ModelError` as `counterfoil.scorers.open_clip.load` does, activations that do not fit included.
    """
    where = f"open-clip:{argument}"
    library = library_of()
    with quiet():
        model, architecture, activation = built(library, argument, where, random=True)
        tokenizer = tokenizer_of(library, architecture, where)
        config = library.get_model_config(architecture)
    card = {
        "kind": "open-clip",
        "architecture": architecture,
        "model": config,
        "preprocess": _plain(dict(library.get_model_preprocess_cfg(model))),
        "from": argument,
        **({"trained_with": activation.trained_with} if activation.trained_with else {}),
    }
    return _around(where, model, tokenizer, card)


def from_card(card: Mapping[str, Any], folder: Path | None = None) -> Backbone:
    """The architecture that a card describes, with random weights.

    A tokenizer made of files is read from `folder`, or fetched as the library does where that is None. Raises
    `ModelError` where open_clip cannot build it.
    """
    where = f"open-clip:{card['from']}"
    library = library_of()
    config = {"model_cfg": card["model"], "preprocess_cfg": card["preprocess"]}
    with quiet(), tempfile.TemporaryDirectory() as made:
        (Path(made) / CONFIG).write_text(json.dumps(config))
        try:
            model = library.create_model(
                f"local-dir:{made}", load_weights=False, pretrained_hf=False, device="cpu"
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
            name = f"local-dir:{made}"
        tokenizer = tokenizer_of(library, name, where)
    return _around(where, model, tokenizer, card)


def towers(network: OpenClipNetwork, pixels: Pixels, tokenizer: Any, precision: str) -> Towers:
    """The network as it is asked for scores only, without the work that no score depends on."""
    device = network.logit_scale.device
    return trusted(Towers(network.model, pixels, RememberedTokens(tokenizer), device), TOLERANCE[precision])


def _around(where: str, model: Any, tokenizer: Any, card: Mapping[str, Any]) -> Backbone:
    network = OpenClipNetwork(model.float().requires_grad_(True))
    pixels = Pixels.of(card["preprocess"], torch.device("cpu"), torch.float32)
    return Backbone(
        name=where,
        network=network,
        preparation=pixels.preparation,
        pixels=pixels,
        tokens=OpenClipTokens(tokenizer, network.causal.cut if network.causal else None, card["model"]),
        card=card,
    )


def _projection(text: Any) -> Any:
    """A tower's last linear map: a parameter, the weight of a layer, or None."""
    found = getattr(getattr(text, "text", text), "text_projection", None)
    return found.weight if isinstance(found, nn.Linear) else found


def _plain(settings: Mapping[str, Any]) -> Any:
    """Settings as JSON keeps them, so that a card is the same before it is saved and after."""
    return json.loads(canonical_json(settings))
