"""Models of the package open_clip, for scoring (`open-clip:ARCH/PRETRAINED`) and for training.

GELU and QuickGELU have no tensors that tell them apart. OpenAI's weights, and all that was fine-tuned from
them, were trained with QuickGELU, and open_clip builds GELU for the plain names; under the wrong one every
score is off. So evidence decides: open_clip's tags, a checkpoint's record, the configuration beside it;
without any, the name must say `ARCH-quickgelu/FILE` or `ARCH-gelu/FILE`.
"""

import json
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from numpy import ndarray
from torch import Tensor, nn

from counterfoil.errors import DataError, ModelError
from counterfoil.inputs.files import canonical_json, read_json
from counterfoil.models import clip_fast, networks, runtime
from counterfoil.models.base import DEFAULT, Options, digest_tensors
from counterfoil.models.checkpoint_files import fit, metadata_of, nearest, read_checkpoint
from counterfoil.models.dual import DualEncoder, PatchEncoder, TokenTower, Towers, input_of
from counterfoil.models.images import ImageRoute, Resized, Untouched
from counterfoil.models.networks import TOLERANCE, Backbone, Encoded, LibraryNetwork, Local
from counterfoil.models.runtime import LoadContext, loading_errors, model_errors, quiet, to_device
from counterfoil.models.settings import settings_of

#: Suffixes that name each activation; open_clip has architectures with the first and none with the second.
_QUICK, _PLAIN = "-quickgelu", "-gelu"
#: The configuration that open_clip saves beside its own checkpoint files, and the prefix of their names.
CONFIG, _SAVED = "open_clip_config.json", "open_clip_"
_WHOLE: Mapping[str, Any] = {"weights_only": True, "require_pretrained": True}
_RANDOM: Mapping[str, Any] = {"pretrained_hf": False}
SAMPLE = ("a photo of a cat", "two dogs chase one red ball across the wet grass behind a house")


class Activation(NamedTuple):
    name: str
    evidence: str
    trained_with: str = ""


def without_suffix(architecture: str, architectures: Collection[str]) -> tuple[str, bool]:
    """The architecture as open_clip calls it, and whether its name asks for GELU.

    >>> without_suffix("ViT-B-32-gelu", ["ViT-B-32", "ViT-B-32-quickgelu"])
    ('ViT-B-32', True)
    >>> without_suffix("ViT-B-32-quickgelu", ["ViT-B-32", "ViT-B-32-quickgelu"])
    ('ViT-B-32-quickgelu', False)
    """
    plain = architecture.removesuffix(_PLAIN)
    asks = plain != architecture and architecture not in architectures and f"{plain}{_QUICK}" in architectures
    return (plain, True) if asks else (architecture, False)


def recorded_in(path: Path, notes: Mapping[str, Any]) -> tuple[bool | None, str]:
    """Whether a checkpoint needs QuickGELU by its own record, and where that stands; None without one."""
    quick_gelu = metadata_of(notes).get("quick_gelu")
    if isinstance(quick_gelu, bool):
        return quick_gelu, "the checkpoint says so"
    config_file = path.parent / CONFIG
    if path.name.startswith(_SAVED) and config_file.is_file():
        try:
            config = read_json(config_file)["model_cfg"]
            return bool(config.get("quick_gelu", False)), f"{CONFIG} beside it says so"
        except (DataError, KeyError, TypeError, AttributeError):
            hint = "mend it, or remove it"
            raise ModelError("is no configuration of open_clip", where=config_file, hint=hint) from None
    return None, ""


def decide_activation(
    where: str,
    architecture: str,
    weights: str,
    recorded: tuple[bool | None, str],
    architectures: Collection[str],
    *,
    quick: bool,
    asks_gelu: bool,
) -> Activation:
    """The activation to build `architecture` with; `quick` says that open_clip builds QuickGELU for it."""
    needs_quick, evidence = recorded
    name, other = ("quickgelu", "gelu") if quick else ("gelu", "quickgelu")
    twin = architecture.removesuffix(_QUICK) if quick else architecture + _QUICK
    plain = f"open-clip:{architecture}{_PLAIN}/{weights}"
    if asks_gelu:
        return Activation(name, "asked for by name", other if needs_quick else "")
    if needs_quick is None:
        if quick or twin not in architectures:
            return Activation(name, "asked for by name" if quick else "open_clip has no other")
        problem = "nothing in this file says whether its weights were trained with QuickGELU or GELU"
        hint = f"use open-clip:{twin}/{weights} for OpenAI's weights and what was fine-tuned from them "
        hint += f"(CLIP_COCO, NegCLIP, PAC-S), {plain} for LAION's and others; else scores are off"
        raise ModelError(problem, where=where, hint=hint)
    if needs_quick == quick:
        return Activation(name, evidence)
    spelled = {"gelu": "GELU", "quickgelu": "QuickGELU"}
    usable = f"use open-clip:{twin}/{weights}" if twin in architectures else ""
    anyway = f", or {plain} to score with GELU all the same"
    problem = f"these weights were trained with {spelled[other]} ({evidence}), {architecture} builds "
    hint = (usable + ("" if quick else anyway)) or "name another architecture"
    raise ModelError(f"{problem}{spelled[name]}: scores would be off", where=where, hint=hint)


def built(library: Any, argument: str, where: str, *, random: bool = False) -> tuple[Any, str, Activation]:
    if argument.startswith(("local-dir:", "hf-hub:")):
        model = _created(library, argument, where, **_WHOLE)
        return model, argument, Activation(_builds(library, argument), "its configuration says so")
    named, _, pretrained = argument.partition("/")
    architectures = library.list_models()
    architecture, asks_gelu = without_suffix(named, architectures)
    if architecture not in architectures:
        problem = "open_clip knows no such architecture"
        allowed = "open-clip:ARCH/TAG or open-clip:ARCH/FILE"
        hint = nearest(architecture, architectures) or "open_clip.list_models() names all"
        raise ModelError(problem, where=where, given=architecture or "(empty)", allowed=allowed, hint=hint)
    if random and not pretrained:
        model = _created(library, architecture, where, "architecture", **_RANDOM)
        return model, architecture, Activation(_builds(library, architecture), "asked for by name")
    tags, path = library.list_pretrained_tags_by_model(architecture), Path(pretrained)
    tag = library.get_pretrained_cfg(architecture, pretrained) if pretrained else {}
    if not tag and not (pretrained and path.exists()):
        if "/" in pretrained or "\\" in pretrained or "." in pretrained:
            raise ModelError("no such checkpoint file", where=where, given=pretrained, hint="check the path")
        problem, here = "no such weights of this architecture", [*tags, "a checkpoint file"]
        given, near = pretrained or "(nothing after the architecture)", nearest(pretrained, tags) or None
        raise ModelError(problem, where=where, given=given, allowed=here, hint=near)
    checkpoint = None if tag else read_checkpoint(path)
    recorded: tuple[bool | None, str] = bool(tag.get("quick_gelu")), "open_clip knows this tag"
    if checkpoint is not None:
        recorded = recorded_in(path, checkpoint.notes)
    quick = _builds(library, architecture) == "quickgelu"
    activation = decide_activation(
        where, architecture, pretrained, recorded, architectures, quick=quick, asks_gelu=asks_gelu
    )
    if checkpoint is None:
        model = _created(library, architecture, where, pretrained=pretrained, **_WHOLE)
        return model, architecture, activation
    model = _created(library, architecture, where, "architecture", **_RANDOM)
    tensors = checkpoint.tensors
    if "positional_embedding" in tensors and not hasattr(model, "positional_embedding"):
        tensors = library.model.convert_to_custom_text_state_dict(tensors)
    model.load_state_dict(fit(tensors, model.state_dict(), where=path, architecture=architecture))
    return model, architecture, activation


def _created(library: Any, name: str, where: str, what: str = "checkpoint", **options: Any) -> Any:
    with loading_errors(what, where, kind="checkpoint"):
        return library.create_model(name, device="cpu", **options)


def _builds(library: Any, architecture: str) -> str:
    config = library.get_model_config(architecture) or {}
    return "quickgelu" if config.get("quick_gelu") else "gelu"


def library_of() -> Any:
    return runtime.library("open_clip", "open_clip_torch")


def load(argument: str, options: Options = DEFAULT) -> DualEncoder:
    """The model `ARCH/TAG`, `ARCH/path/to/checkpoint` (`ARCH//absolute/path`) or `local-dir:FOLDER`."""
    where = f"open-clip:{argument}"
    context, library = LoadContext.of(where, options, "prompt", "settings"), library_of()
    route, device = settings_of(ImageRoute, options.settings, where=where), context.device
    model, tokenizer, activation, card = loaded(library, argument, where)
    weights = digest_tensors(model.state_dict())
    backbone = _around(where, model, tokenizer, card)
    preparation = route.preparation(backbone.preparation, where=where)
    backbone = replace(backbone, route=route, preparation=preparation)
    network, computed = to_device(backbone.network, device, context.dtype)
    towers = network.towers(backbone, device, computed, options.precision)
    facts = {"activation": activation.name, **_trained(activation), **route.facts()}
    facts |= {} if computed is context.dtype else {"activations": "fp32"}
    preprocessing = canonical_json(card["preprocess"])
    identity = context.identity(weights=weights, preprocessing=preprocessing, **facts)
    decisions = f"{activation.name}: {activation.evidence}"
    provenance = context.provenance(library, activation=decisions, **towers.notes)
    return DualEncoder(identity, backbone.preparation, towers, provenance)


def backbone(argument: str) -> Backbone:
    where = f"open-clip:{argument}"
    model, tokenizer, _, card = loaded(library_of(), argument, where, random=True)
    return _around(where, model, tokenizer, card)


def from_card(card: Mapping[str, Any], folder: Path | None = None) -> Backbone:
    """The architecture that a card describes, with random weights; its tokenizer is read from `folder`."""
    where = f"open-clip:{card['from']}"
    library = library_of()
    config = {"model_cfg": card["model"], "preprocess_cfg": card["preprocess"]}
    with quiet(), tempfile.TemporaryDirectory() as config_folder:
        (Path(config_folder) / CONFIG).write_text(json.dumps(config))
        with model_errors("open_clip cannot build the model of this card", where=where):
            how = {"load_weights": False, "pretrained_hf": False, "device": "cpu"}
            model = library.create_model(f"local-dir:{config_folder}", **how)
        if folder is not None and (folder / CONFIG).is_file():
            name = f"local-dir:{folder}"
        elif card["architecture"] in library.list_models():
            name = str(card["architecture"])
        else:
            name = f"local-dir:{config_folder}"
        with loading_errors("tokenizer", where, kind="checkpoint"):
            tokenizer = library.get_tokenizer(name)
    return _around(where, model, tokenizer, card)


def loaded(
    library: Any, argument: str, where: str, *, random: bool = False
) -> tuple[Any, Any, Activation, dict[str, Any]]:
    with quiet():
        model, architecture, activation = built(library, argument, where, random=random)
        with loading_errors("tokenizer", where, kind="checkpoint"):
            tokenizer = library.get_tokenizer(architecture)
        config = library.get_model_config(architecture)
    settings = dict(library.get_model_preprocess_cfg(model))
    # Plain JSON values, so that a card is equal before saving and after.
    preprocess = json.loads(canonical_json(settings))
    card = {"kind": "open-clip", "architecture": architecture, "model": config, "preprocess": preprocess}
    return model, tokenizer, activation, {**card, "from": argument, **_trained(activation)}


def _trained(activation: Activation) -> dict[str, str]:
    return {"trained_with": activation.trained_with} if activation.trained_with else {}


def _around(where: str, model: Any, tokenizer: Any, card: Mapping[str, Any]) -> Backbone:
    network = OpenClipNetwork(model.float().requires_grad_(True))
    pixels = pixels_of(card["preprocess"])
    tokens = OpenClipTokens(tokenizer, network.causal)
    files: Callable[[], Mapping[str, bytes]] = dict
    if hasattr(tokenizer, "save_pretrained"):
        # Those of a tokenizer made of files, with the configuration that open_clip reads them with.
        files = partial(networks.processor_files, (tokenizer,), CONFIG, {"model_cfg": card["model"]})
    return Backbone(where, network, pixels.preparation, pixels, tokens, card, files)


def pixels_of(settings: Mapping[str, Any]) -> networks.PicturePixels:
    from open_clip.transform import PreprocessCfg, image_transform_v2

    both = settings["mean"], settings["std"]
    mean, std = (levels if isinstance(levels, Sequence) else [levels] * 3 for levels in both)
    size, mode, interpolation = settings["size"], settings["resize_mode"], settings["interpolation"]
    height, width = (size, size) if isinstance(size, int) else size
    preparation: Resized | Untouched = Untouched()
    if height == width and mode in ("shortest", "squash") and interpolation in ("bicubic", "bilinear"):
        preparation = Resized(int(height), mode, interpolation)
    transform = image_transform_v2(PreprocessCfg(**settings), is_train=False)
    return networks.PicturePixels(
        preparation, mean, std, lambda pictures: torch.stack(list(map(transform, pictures)))
    )


class OpenClipTokens:
    """Texts to token ids, remembered, and cut behind the last end mark of a batch under a causal tower."""

    def __init__(self, tokenizer: Any, causal: clip_fast.CausalText | None = None) -> None:
        self.tokenizer, self.causal = tokenizer, causal
        self._row = lru_cache(maxsize=1 << 16)(lambda text: tuple(tokenizer([text])[0].tolist()))

    def __call__(self, texts: Sequence[str]) -> Tensor:
        rows = self.rows(texts)
        if self.causal is not None:
            longest = max((len(self.causal.cut(row)) for row in rows), default=0)
            rows = [row[:longest] for row in rows]
        return torch.tensor(rows, dtype=torch.long)

    def rows(self, texts: Sequence[str]) -> list[tuple[int, ...]]:
        return [self._row(text) for text in texts]

    def left_out(self, texts: Sequence[str]) -> list[int]:
        # Tokenizers of transformers lie within open_clip's, which cleans the text first.
        inner, clean = getattr(self.tokenizer, "tokenizer", None), getattr(self.tokenizer, "clean_fn", None)
        if hasattr(self.tokenizer, "encode") and hasattr(self.tokenizer, "eot_token_id"):
            lengths = [len(self.tokenizer.encode(text)) + 2 for text in texts]
        elif inner is not None and clean is not None:
            cleaned = [clean(text) for text in texts]
            lengths = [len(inner(text, truncation=False, verbose=False)["input_ids"]) for text in cleaned]
        else:
            return [0] * len(texts)
        return [max(0, length - len(row)) for length, row in zip(lengths, self.rows(texts), strict=True)]


def patch_features(model: Any) -> Callable[[Any], Any] | None:
    """Pixels to (batch, patches, width) of open_clip's vision transformer with a class token, else None."""
    if clip_fast.image_tower(model) is None:
        return None
    visual = model.visual
    block = visual.transformer.resblocks[-1]

    def patches(pixels: Any) -> Any:
        states = input_of(block, lambda: model.encode_image(pixels))
        if not visual.transformer.batch_first:
            states = states.transpose(0, 1)
        attention, width = block.attn, states.shape[-1]
        normed = block.ln_1(states[:, 1:])
        weight, bias = attention.in_proj_weight[2 * width :], attention.in_proj_bias[2 * width :]
        values = visual.ln_post(attention.out_proj(torch.nn.functional.linear(normed, weight, bias)))
        return values if visual.proj is None else values @ visual.proj

    return patches


class OpenClipNetwork(LibraryNetwork):
    def __init__(self, model: nn.Module) -> None:
        super().__init__(model)
        self.causal = clip_fast.causal_text(model)

    def encode_images(self, pixels: Tensor) -> Encoded:
        return Encoded(self.model.encode_image(pixels))

    def encode_texts(self, tokens: Tensor) -> Encoded:
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
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        return Local(self._pooled(words, tokens), words, positions > self.causal.ends(tokens)[:, None])

    def projections(self) -> Sequence[nn.Parameter]:
        text = self.model if self.causal is None else self.causal.text
        last = getattr(getattr(text, "text", text), "text_projection", None)
        last = last.weight if isinstance(last, nn.Linear) else last
        both = (getattr(getattr(self.model, "visual", None), "proj", None), last)
        return tuple(projection for projection in both if isinstance(projection, nn.Parameter))

    def towers(self, backbone: Backbone, device: torch.device, dtype: torch.dtype, precision: str) -> Towers:
        tokens, pixels = backbone.tokens, backbone.pixels
        assert isinstance(tokens, OpenClipTokens)
        assert isinstance(pixels, networks.PicturePixels)
        prepare = replace(pixels, device=device, dtype=dtype, resizes=backbone.route.resize == "device")
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

        causal, patches, of_tokens = fast_texts or self.causal, None, None
        if causal is not None:

            def ids(texts: Sequence[str]) -> list[Sequence[int]]:
                return [causal.cut(row) for row in tokens.rows(texts)]

            length = len(tokens.rows([""])[0])
            of_tokens = TokenTower(ids, lambda texts: causal.states(tokens.rows(texts)), length)
        if (of_patches := patch_features(self.model)) is not None:
            seen, grid = pixels.preparation, tuple(self.model.visual.grid_size)
            patches = PatchEncoder(lambda pictures: of_patches(prepare(pictures)), seen, grid)
        encode_images = backbone.compiled(fast_images or self.model.encode_image, precision)

        def images(pictures: Sequence[ndarray]) -> Tensor:
            return encode_images(prepare(pictures))

        text_tower = "fast, cut to the longest caption" if fast_texts else "library"
        notes = {"image tower": "fast" if fast_images else "library", "text tower": text_tower}
        return Towers(images, texts, count, tokens.left_out, of_tokens, patches, notes)

    def _pooled(self, states: Tensor, tokens: Tensor) -> Tensor:
        assert self.causal is not None
        pooled = states[torch.arange(len(states), device=states.device), self.causal.ends(tokens)]
        return self.causal.projected(pooled)
