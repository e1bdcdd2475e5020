"""Image-text-to-text models of the package transformers as decoders: Qwen-VL, LLaVA, PaliGemma and others."""

import copy
import inspect
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy import ndarray
from torch import Tensor

from counterfoil.errors import ModelError
from counterfoil.models import hf_loading as loading
from counterfoil.models.base import Identity, digest_tensors
from counterfoil.models.generative import prefixes
from counterfoil.models.generative.prefixes import Decoder, Prefix, Seen, TextRow, cache_argument, cache_of
from counterfoil.models.generative.templates import ChatTemplate, PaliGemmaTemplate, Template
from counterfoil.models.hf_loading import padded_ids
from counterfoil.models.registry import REFUSED
from counterfoil.models.runtime import LoadContext, model_errors, to_device

#: Largest difference of log-probabilities between a shared computation and a whole one, by precision.
TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 0.1, torch.float16: 0.02}


def placed(inputs: Mapping[str, Any], device: Any, dtype: Any) -> dict[str, Tensor]:
    return {
        name: value.to(device, dtype if value.is_floating_point() else value.dtype)
        for name, value in inputs.items()
        if isinstance(value, Tensor)
    }


@dataclass(frozen=True, eq=False, kw_only=True)
class ImageTextDecoder(Decoder):
    """A `Decoder` around an image-text-to-text model.

    Where each agrees with the plain computation on samples, the vision tower's output (`together`) and the
    keys and values before the caption (`shares`) are computed once.
    """

    template: Template
    together: bool = False
    shares: bool = False

    def room(self, taken: int) -> int:
        """How many ids the model reads beside a picture and `taken` others, at least 1."""
        positions = getattr(self.model.config.get_text_config(), "max_position_embeddings", 1 << 20)
        empty = self.template.see(np.full((56, 84, 3), 128, np.uint8))
        return max(1, positions - empty.size - taken)

    def checked(self, rows: Sequence[TextRow], read: tuple[int, ...], where: str) -> "ImageTextDecoder":
        """The same decoder, sharing what agrees with the plain computation on grey pictures and `rows`."""
        plain = replace(self, read=read, together=False, shares=False)
        pictures = [np.full((side, 64, 3), 128, np.uint8) for side in (48, 96)]
        seen = [plain.see(picture) for picture in pictures for _ in rows]
        all_rows = [*rows, *rows]
        what = "the model cannot read a picture and a text"
        with model_errors(what, where=where, given=type(self.model).__name__):
            expected = prefixes.log_probabilities(plain, seen, all_rows, [False] * len(all_rows))
        near, takes = TOLERANCE[self.dtype], inspect.signature(self.model.forward).parameters
        for together in (True, False) if "mm_encoder_outputs" in takes else (False,):
            for shares in (True, False):
                tried = replace(plain, together=together, shares=shares)
                ready = [picture for picture in map(tried.see, pictures) for _ in rows]
                with suppress(Exception):
                    values = prefixes.log_probabilities(tried, ready, all_rows, [True] * len(all_rows))
                    pairs = zip(values, expected, strict=True)
                    if all(np.allclose(one, other, rtol=near, atol=near) for one, other in pairs):
                        return tried
        return plain

    def see(self, picture: ndarray) -> Seen:
        seen = self.template.see(picture)
        return replace(seen, inputs=placed(seen.inputs, self.device, self.dtype))

    def begin(self, seen: Seen) -> Prefix:
        ids = torch.tensor([[*seen.head, *self.read]], device=self.device)
        after = [0] * len(self.read)
        inputs = {
            name: torch.tensor([[*kind, *after]], device=self.device) for name, kind in seen.kinds.items()
        }
        inputs |= {"input_ids": ids, "attention_mask": torch.ones_like(ids), **self._pictures([seen])}
        output = self.model(use_cache=True, logits_to_keep=1, **inputs)
        # The step from an id's place to its position, where pictures take fewer positions than ids (Qwen-VL).
        step = getattr(self.model.model, "rope_deltas", None)
        return Prefix(cache_of(output), ids.shape[1], output.logits[0, -1].float(), step)

    def go_on(self, prefixes: Sequence[Prefix], ids: Tensor, lengths: Tensor, keep: Tensor) -> Tensor:
        (rows, longest), length = ids.shape, prefixes[0].length
        slots = torch.arange(longest, device=self.device)
        mask = torch.ones((rows, length + longest), dtype=torch.long, device=self.device)
        mask[:, length:] = slots < lengths[:, None]
        positions = {}
        if prefixes[0].more is not None:
            token_positions = (length + slots)[None] + torch.cat([prefix.more for prefix in prefixes]).to(
                self.device
            )
            positions = {"position_ids": token_positions[None].expand(3, -1, -1)}
        cache = cache_argument(self.model, stacked([prefix.cache for prefix in prefixes]))
        inputs = {"input_ids": ids, "attention_mask": mask, **positions, **cache}
        return self.model(use_cache=True, logits_to_keep=keep, **inputs).logits

    def whole(self, seen: Sequence[Seen], rows: Sequence[TextRow], keep: Tensor) -> Tensor:
        lines = [(*picture.head, *row.ids) for picture, row in zip(seen, rows, strict=True)]
        ids, mask = padded_ids(lines, 0, self.device)
        kinds = {}
        for name in seen[0].kinds:
            of_rows = [
                (*picture.kinds[name], *[0] * row.prompt, *[self.template.written] * (len(row.wanted) - 1))
                for picture, row in zip(seen, rows, strict=True)
            ]
            kinds[name], _ = padded_ids(of_rows, 0, self.device)
        inputs = {"input_ids": ids, "attention_mask": mask, **kinds, **self._pictures(seen)}
        return self.model(use_cache=False, logits_to_keep=keep, **inputs).logits

    def _pictures(self, seen: Sequence[Seen]) -> dict[str, Any]:
        """What the model gets of the pictures: pixels of one, or the vision tower's output of several."""
        if not self.together:
            return dict(seen[0].inputs)
        for picture in seen:
            if picture.features is None:
                takes = inspect.signature(self.model.get_image_features).parameters
                inputs = {name: value for name, value in picture.inputs.items() if name in takes}
                picture.features = self.model.get_image_features(**inputs, return_dict=True)
        grids = [picture.inputs["image_grid_thw"] for picture in seen if "image_grid_thw" in picture.inputs]
        return {
            "mm_encoder_outputs": {"image": joined([picture.features for picture in seen])},
            **({"image_grid_thw": torch.cat(grids)} if grids else {}),
        }


def joined(outputs: Sequence[Any]) -> Any:
    def both(parts: Sequence[Any]) -> Any:
        if isinstance(parts[0], Tensor):
            return torch.cat(list(parts))
        return [item for part in parts for item in part]

    # Of the class of the tower's own outputs, which a model may return with its own.
    parts = {"pooler_output": both([output.pooler_output for output in outputs])}
    layers = [getattr(output, "deepstack_features", None) for output in outputs]
    if layers[0] is not None:
        parts["deepstack_features"] = [both(part) for part in zip(*layers, strict=True)]
    return type(outputs[0])(**parts)


def stacked(caches: Sequence[Any]) -> Any:
    """The keys and values of several prefixes as one cache, a row each; the given ones stay as they are."""
    joint = copy.copy(caches[0])
    if hasattr(joint, "self_attention_cache"):
        joint.self_attention_cache = stacked([cache.self_attention_cache for cache in caches])
        joint.cross_attention_cache = stacked([cache.cross_attention_cache for cache in caches])
        joint.is_updated = dict(joint.is_updated)
        return joint
    alone = all(cache is caches[0] for cache in caches)
    joint.layers = []
    for layers in zip(*(cache.layers for cache in caches), strict=True):
        layer = copy.copy(layers[0])
        for name, value in vars(layers[0]).items():
            if isinstance(value, Tensor) and value.ndim > 1 and value.shape[0] == 1:
                rows = value.expand(len(caches), *value.shape[1:])
                setattr(layer, name, rows if alone else torch.cat([vars(other)[name] for other in layers]))
        joint.layers.append(layer)
    return joint


@dataclass(frozen=True, eq=False)
class Opened:
    """A model that writes text about pictures, with its processor, ready to answer."""

    model: Any
    processor: Any
    identity: Identity
    device: Any
    dtype: Any
    versions: Mapping[str, Any]

    @property
    def image_id(self) -> int | None:
        holders, names = (self.processor, self.model.config), ("image_token_id", "image_token_index")
        numbers = (getattr(holder, name, None) for holder in holders for name in names)
        return next((int(number) for number in numbers if number is not None), None)

    def decoder(self, where: str) -> ImageTextDecoder:
        template: Template
        if self.model.config.model_type == "paligemma" and not getattr(self.processor, "chat_template", None):
            template = PaliGemmaTemplate(self.processor, self.processor.tokenizer, where)
        else:
            with loading.quiet(loading.library_of()):
                template = ChatTemplate.of(self.processor, self.image_id, where)
        computed = {"model": self.model, "device": self.device, "dtype": self.dtype}
        vocabulary = int(self.model.config.get_text_config().vocab_size)
        return ImageTextDecoder(vocabulary=vocabulary, template=template, **computed)


def opened(argument: str, context: LoadContext) -> Opened:
    where = context.where
    library, config = loading.configuration_of(argument, where)
    if config.model_type in REFUSED:
        problem = "BLIP-2, InstructBLIP and Florence-2 neither answer nor write captions here"
        hint = "let a server do it and ask chat:URL#MODEL; BLIP-2's model of matching is itm:NAME"
        raise ModelError(problem, where=where, given=f"model type {config.model_type}", hint=hint)
    with loading.quiet(library):
        kind = library.AutoModelForImageTextToText
        if type(config) not in kind._model_mapping:
            problem = "the model takes no images, or writes no text about them"
            allowed = "image-text-to-text models: Qwen-VL, LLaVA, SmolVLM, PaliGemma, BLIP, GIT, ..."
            raise ModelError(problem, where=where, given=f"model type {config.model_type}", allowed=allowed)
        model, revision = loading.weights_of(library, argument, where, kind=kind)
        processor: Any = loading.fetched(library.AutoProcessor, argument, where, "processor")
    if not hasattr(processor, "image_processor") or not hasattr(processor, "tokenizer"):
        problem = "the folder holds no processor for images and texts together"
        hint = "save the model's processor beside it (processor.save_pretrained)"
        raise ModelError(problem, where=where, given=type(processor).__name__, hint=hint)
    weights = digest_tensors(model.state_dict())
    model, computed = to_device(model, context.device, context.dtype)
    preprocessing = loading.processing_of(processor.image_processor)
    facts = {"weights": weights, "tokenizer": loading.tokenizer_digest(processor.tokenizer)}
    identity = context.identity(revision=revision, preprocessing=preprocessing, **facts)
    return Opened(model, processor, identity, context.device, computed, context.provenance(library))


def how_computed(decoder: ImageTextDecoder) -> str:
    if decoder.shares:
        return f"picture and {len(decoder.read)} ids of the prompt once"
    return "vision tower once" if decoder.together else "every pair from the beginning"
