"""Dual encoders of the package transformers, for scoring (`hf:NAME_OR_FOLDER`) and for training.

Scoring uses the model's own image processor; training resizes in workers where that gives the same. Captions
are padded to the longest of their batch where that is exact (CLIP), else to the length of the training.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import torch
from numpy import ndarray
from torch import Tensor, nn

from counterfoil.errors import InputError, ModelError
from counterfoil.models import hf_loading as loading, networks
from counterfoil.models.base import DEFAULT, Options, digest_tensors
from counterfoil.models.dual import DualEncoder, PatchEncoder, TokenTower, Towers, input_of
from counterfoil.models.hf_loading import HfTokens
from counterfoil.models.images import ImageRoute, Resized, Untouched
from counterfoil.models.networks import Backbone, Encoded, LibraryNetwork, Local
from counterfoil.models.runtime import LoadContext, model_errors, to_device
from counterfoil.models.settings import settings_of

#: Levels of 255 by which Pillow's picture may differ from the processor's on a sample, on average.
_LEVELS = 1.0


def load(argument: str, options: Options = DEFAULT) -> DualEncoder:
    where = f"hf:{argument}"
    context, library = LoadContext.of(where, options, "prompt", "settings"), loading.library_of()
    route, device = settings_of(ImageRoute, options.settings, where=where), context.device
    model, revision, processor, tokenizer = _loaded(library, argument, where)
    # Half-precision checkpoints become float32 first, which is exact; the digest is of the stored values.
    weights, given = digest_tensors(model.state_dict()), type(model).__name__
    backbone = _around(where, model, processor, tokenizer, {})
    resized: Any = backbone.preparation
    tokens = HfTokens.of(model, tokenizer, whole=True)
    network, computed = to_device(backbone.network, device, context.dtype)
    # The processor may resize a little differently from Pillow, so the reference is the processor itself.
    preparation: Any = Untouched() if route.resize == "host" else route.preparation(resized, where=where)
    if route.compile == "yes" and not isinstance(resized, Resized):
        problem = "the model's pictures are prepared by its library alone, and its tower is not compiled"
        raise InputError(problem, where=where, given="compile=yes", hint="leave out --set compile")
    pixels = _pixels_of(processor, preparation, whole=route.compile == "no")
    if route.resize == "device":
        pixels = replace(pixels, preparation=resized, device=device, dtype=computed, resizes=True)
    backbone = replace(backbone, pixels=pixels, tokens=tokens, route=route)
    towers = network.towers(backbone, device, computed, options.precision)
    grey = np.full((48, 64, 3), 128, dtype=np.uint8)
    _check(where, tokenizer, lambda: (towers.images([grey]), towers.texts([loading.SAMPLE])), given=given)
    facts = {"tokenizer": loading.tokenizer_digest(tokenizer), "length": tokens.length, **route.facts()}
    preprocessing = loading.processing_of(processor)
    identity = context.identity(revision=revision, weights=weights, preprocessing=preprocessing, **facts)
    text_tower = "cut to the longest caption" if tokens.cut else f"padded to {tokens.length} tokens"
    provenance = {**context.provenance(library), "text tower": text_tower}
    return DualEncoder(identity, preparation, towers, provenance)


def backbone(argument: str) -> Backbone:
    where = f"hf:{argument}"
    model, revision, processor, tokenizer = _loaded(loading.library_of(), argument, where)
    card = {"kind": "hf", "config": json.loads(model.config.to_json_string()), "from": argument}
    card |= {"revision": revision} if revision else {}
    return _checked(_around(where, model.float(), processor, tokenizer, card), tokenizer)


def from_card(card: Mapping[str, Any], folder: Path | None = None) -> Backbone:
    """The architecture that a card describes, with random weights; its processor is read from `folder`."""
    where = f"hf:{card['from']}"
    library = loading.library_of()
    with loading.quiet(library):
        with model_errors("transformers cannot build the model of this card", where=where):
            config = library.AutoConfig.for_model(**card["config"])
            model = library.AutoModel.from_config(config)
        processing = _processing(library, str(card["from"] if folder is None else folder), where)
    return _checked(_around(where, model.float(), *processing, card), processing[1])


def _loaded(library: Any, argument: str, where: str) -> tuple[Any, str, Any, Any]:
    loading.check_place(argument, where)
    with loading.quiet(library):
        model, revision = loading.weights_of(library, argument, where)
        if not (hasattr(model, "get_image_features") and hasattr(model, "get_text_features")):
            problem = "the model has no image and text features"
            given = f"{type(model).__name__} (model type {model.config.model_type})"
            allowed = "dual encoders: CLIP, SigLIP, SigLIP2, ALIGN, AltCLIP, ..."
            hint = "an encoder of texts is hf-text:..., for metric:token-match"
            raise ModelError(problem, where=where, given=given, allowed=allowed, hint=hint)
        return model, revision, *_processing(library, argument, where)


def _processing(library: Any, place: str, where: str) -> tuple[Any, Any]:
    processor = loading.fetched(library.AutoImageProcessor, place, where, "image processor")
    return processor, loading.fetched(library.AutoTokenizer, place, where, "tokenizer")


def _around(where: str, model: Any, processor: Any, tokenizer: Any, card: Mapping[str, Any]) -> Backbone:
    tokens = HfTokens.of(model, tokenizer)
    masked = not tokens.cut and "attention_mask" in tokenizer.model_input_names
    pad = tokenizer.pad_token_id if masked else None
    network = HfNetwork(model.requires_grad_(True), pad=pad, where=where).eval()
    preparation = preparation_for(processor, where=where)
    pixels, parts = _pixels_of(processor, preparation), (tokenizer, processor)
    # The library finds the kind of tokenizer by the kind of model.
    files = partial(networks.processor_files, parts, "config.json", card.get("config", {}))
    return Backbone(where, network, preparation, pixels, tokens, card, files)


def _checked(backbone: Backbone, tokenizer: Any) -> Backbone:
    network = backbone.network

    def sample() -> tuple[Tensor, Tensor]:
        text = network.encode_texts(backbone.tokens([loading.SAMPLE])).points
        return network.encode_images(backbone.sample()).points, text

    hint = "images that are more than one tensor of pixels cannot be trained on"
    _check(backbone.name, tokenizer, sample, hint=hint)
    return backbone


def _check(
    where: str, tokenizer: Any, sample: Callable[[], tuple[Tensor, Tensor]], **advice: str | None
) -> None:
    """Raise `ModelError` where a picture and a caption do not give one vector each, of one width."""
    loading.check_words(tokenizer, where)
    what = "the model cannot embed a picture and a caption"
    with model_errors(what, where=where, **advice), torch.inference_mode():
        image, text = sample()
    if image.shape != text.shape:
        problem = "image and text features cannot be compared"
        given = f"{tuple(image.shape)} and {tuple(text.shape)}"
        raise ModelError(problem, where=where, given=given, allowed="one vector each, of one width")


def _pixels_of(
    processor: Any, preparation: Resized | Untouched, *, whole: bool = False
) -> networks.PicturePixels:
    """The pixels of pictures; with `whole` all that the processor gives, such as masks, where it is asked."""
    mean, std = (getattr(processor, name, None) for name in ("image_mean", "image_std"))

    def library(pictures: list[PIL.Image.Image]) -> Any:
        inputs = processor(images=pictures, return_tensors="pt")
        return inputs if whole else inputs["pixel_values"]

    return networks.PicturePixels(preparation, mean, std, library)


def preparation_for(processor: Any, *, where: str) -> Resized | Untouched:
    """Resizing by Pillow where that equals the processor to a level or two of 255; else `Untouched`."""
    what = "its image processor cannot prepare a picture"
    hint = "is preprocessor_config.json as it was published?"
    # Over sizes that are none, transformers raises anything from AttributeError to OverflowError.
    with model_errors(what, where=where, hint=hint):
        kind = {2: "bilinear", 3: "bicubic"}.get(int(getattr(processor, "resample", None) or -1))
        sides, named = ("shortest_edge", "longest_edge", "height", "width", "max_height", "max_width"), []
        for given in (getattr(processor, name, None) for name in ("size", "crop_size")):
            values = (
                given if isinstance(given, Mapping) else {side: getattr(given, side, None) for side in sides}
            )
            named.append({side: int(value) for side, value in values.items() if value is not None})
        size, crop = named
        done = (processor.do_resize, processor.do_rescale, processor.do_normalize)
        if kind is None or not all(done) or getattr(processor, "do_pad", False):
            return Untouched()
        if not abs(processor.rescale_factor * 255 - 1) < 1e-6:
            return Untouched()
        crops = bool(getattr(processor, "do_center_crop", False))
        side = size.get("height", 0)
        if crops and set(size) == {"shortest_edge"} and len({size["shortest_edge"], *crop.values()}) == 1:
            resized = Resized(size["shortest_edge"], "shortest", kind, corner="floor")  # type: ignore[arg-type]
        elif not crops and size == {"height": side, "width": side}:
            resized = Resized(side, "squash", kind)  # type: ignore[arg-type]
        else:
            return Untouched()
        return resized if _agrees(processor, resized) else Untouched()


def _agrees(processor: Any, resized: Resized) -> bool:
    """Whether Pillow and the processor agree on a smooth picture whose margins are not even."""
    ramp = np.linspace(0, 12, 3 * 331 * 478).reshape(331, 478, 3)
    picture = PIL.Image.fromarray((np.sin(ramp * ramp) * 120 + 128).astype(np.uint8))
    one = _pixels_of(processor, resized)([resized(picture)])
    other = _pixels_of(processor, Untouched())([np.asarray(picture)])
    if one.shape != other.shape:
        return False
    levels = (one - other).abs() * torch.tensor(list(processor.image_std)).view(3, 1, 1) * 255
    return float(levels.mean()) <= _LEVELS


def patches_of(model: Any, run: Callable[[Sequence[ndarray]], Any], seen: Any) -> PatchEncoder | None:
    """The patches of CLIP and SigLIP while `run` runs the image tower; None for others."""
    kind = model.config.model_type
    tower: Any = getattr(model, "vision_model", None)
    if kind == "clip" and hasattr(tower, "post_layernorm"):
        layer = tower.encoder.layers[-1]

        def values(pictures: Sequence[ndarray]) -> Any:
            states = input_of(layer, lambda: run(pictures))
            attention = layer.self_attn
            states_out = attention.out_proj(attention.v_proj(layer.layer_norm1(states[:, 1:])))
            return model.visual_projection(tower.post_layernorm(states_out))

        return PatchEncoder(values, seen)
    if kind == "siglip" and getattr(tower, "use_head", False):

        def alone(pictures: Sequence[ndarray]) -> Any:
            states = input_of(tower.head, lambda: run(pictures))
            batch, positions, width = states.shape
            return tower.head(states.reshape(batch * positions, 1, width)).reshape(batch, positions, -1)

        return PatchEncoder(alone, seen)
    return None


class HfNetwork(LibraryNetwork):
    """The two towers of a dual encoder; `pad` is the padding id where the text tower needs a mask (BERT)."""

    def __init__(self, model: nn.Module, *, pad: int | None, where: str) -> None:
        if not hasattr(model, "logit_scale"):
            # ALIGN keeps the temperature itself.
            start = getattr(model, "temperature", torch.tensor(0.07)).detach()
            model.logit_scale = nn.Parameter(start.reciprocal().log())
        super().__init__(model, unused=("temperature",))
        self.pad, self._where = pad, where

    def encode_images(self, pixels: Any) -> Encoded:
        return Encoded(features_of(self._images(pixels), self._where))

    def encode_texts(self, tokens: Any) -> Encoded:
        return Encoded(features_of(self._texts(tokens), self._where))

    def local_images(self, pixels: Tensor) -> Local:
        """The whole and every patch, of towers that are sequences of patches after a class token (CLIP)."""
        output = self._images(pixels)
        if not hasattr(output, "last_hidden_state") or not loading.can_cut(self.model):
            return networks.one_place(features_of(output, self._where))
        return Local(output.pooler_output, output.last_hidden_state[:, 1:])

    def local_texts(self, tokens: Tensor) -> Local:
        """The whole and every word up to the end mark, of CLIP's causal tower."""
        output = self._texts(tokens)
        if not loading.can_cut(self.model):
            return networks.one_place(features_of(output, self._where))
        ends = loading.end_mark(self.model).ends(tokens)
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        return Local(output.pooler_output, output.last_hidden_state, positions > ends[:, None])

    def projections(self) -> Sequence[nn.Parameter]:
        layers = [getattr(self.model, f"{side}_projection", None) for side in ("visual", "text")]
        weights = [layer.weight for layer in layers if isinstance(layer, nn.Linear)]
        return tuple(weights) if len(weights) == 2 else ()

    def _images(self, pixels: Any) -> Any:
        inputs = {"pixel_values": pixels} if isinstance(pixels, Tensor) else pixels
        return self.model.get_image_features(**inputs)

    def _texts(self, tokens: Any) -> Any:
        if not isinstance(tokens, Tensor):
            return self.model.get_text_features(**tokens)
        mask = {} if self.pad is None else {"attention_mask": (tokens != self.pad).long()}
        return self.model.get_text_features(input_ids=tokens, **mask)

    def towers(self, backbone: Backbone, device: torch.device, dtype: torch.dtype, precision: str) -> Towers:
        tokens = backbone.tokens
        assert isinstance(tokens, HfTokens)

        def run(pictures: Sequence[ndarray]) -> Any:
            return self._images(backbone.pixels(pictures).to(device=device, dtype=dtype))

        plain = self.plain_towers(backbone, device, dtype, precision)
        of_tokens = None
        if tokens.cut:
            # The text tower of CLIP is causal and pools its end mark.
            end = loading.end_mark(self.model)

            def used(texts: Sequence[str]) -> list[Sequence[int]]:
                return [end.cut(ids) for ids in tokens.ids(texts)]

            def states(texts: Sequence[str]) -> Any:
                rows = used(texts)
                # Padding stands behind every end mark, so that its ids do not matter.
                ids, _ = loading.padded_ids(rows, rows[0][-1], device)
                output = self.model.text_model(input_ids=ids, return_dict=True)
                return self.model.text_projection(output.last_hidden_state)

            of_tokens = TokenTower(used, states, tokens.length)
        patches = patches_of(self.model, run, backbone.preparation)
        return Towers(plain.images, plain.texts, tokens.count, tokens.left_out, of_tokens, patches)


def features_of(output: Any, where: str) -> Tensor:
    features = output if isinstance(output, Tensor) else getattr(output, "pooler_output", None)
    if features is None or features.ndim != 2:
        given = type(output).__name__ if features is None else tuple(features.shape)
        raise ModelError("the model gives no single vector per item", where=where, given=given)
    return features
