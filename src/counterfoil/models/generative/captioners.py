"""Captioners as decoders: BLIP and GIT; a caption follows a begin mark and the beginning of a text."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import PIL.Image
import torch
from numpy import ndarray
from torch import Tensor

from counterfoil.errors import ModelError
from counterfoil.models.generative.image_text import Opened, stacked
from counterfoil.models.generative.prefixes import Decoder, Prefix, Seen, TextRow, cache_argument, cache_of
from counterfoil.models.generative.templates import plain_ids
from counterfoil.models.hf_loading import padded_ids


@dataclass(frozen=True, eq=False, kw_only=True)
class Captioner(Decoder):
    """What the decoders of this module have in common: a prompt and words."""

    #: The begin mark and the ids of the prompt, which follow the picture.
    prompt: tuple[int, ...]
    #: The most ids that the model reads, those of the picture not counted.
    positions: int
    #: The ids of a text without marks, and the mark that ends a caption.
    words: Callable[[str], tuple[int, ...]]
    end: int
    #: A picture, as it is prepared, to pixels (1, 3, height, width).
    pixels: Callable[[ndarray], Tensor]
    wholes: bool = False

    def see(self, picture: ndarray) -> Seen:
        pixels = self.pixels(picture).to(self.device, self.dtype)
        # About as many positions as it takes in a tower of patches of 16.
        return Seen(pixels.shape[-1] * pixels.shape[-2] // 256, {"pixels": pixels})

    def _mask(self, ids: Tensor, lengths: Tensor) -> Tensor:
        positions = torch.arange(ids.shape[1], device=self.device)
        prompt = torch.ones((len(ids), len(self.prompt)), dtype=torch.long, device=self.device)
        return torch.cat([prompt, (positions < lengths[:, None]).long()], dim=1)


@dataclass(frozen=True, eq=False, kw_only=True)
class BlipCaptioner(Captioner):
    """BLIP: a decoder that attends to the picture across, whose keys and values are kept by layer."""

    wholes: bool = True

    def states(self, pixels: Tensor) -> Tensor:
        return self.model.vision_model(pixel_values=pixels).last_hidden_state

    def decode(self, keep: Tensor | int, **inputs: Any) -> Any:
        return self.model.text_decoder(logits_to_keep=keep, **inputs)

    def whole(self, seen: Sequence[Seen], rows: Sequence[TextRow], keep: Tensor) -> Tensor:
        ids, mask = padded_ids([row.ids for row in rows], 0, self.device)
        # The picture's positions are not among the text's.
        keep = keep - torch.tensor([[picture.size] for picture in seen], device=self.device)
        states = torch.cat([self.states(picture.inputs["pixels"]) for picture in seen])
        inputs = {"input_ids": ids, "attention_mask": mask, "encoder_hidden_states": states}
        return self.decode(keep, use_cache=False, **inputs).logits

    def begin(self, seen: Seen) -> Prefix:
        from transformers import DynamicCache, EncoderDecoderCache

        ids, states = torch.tensor([self.prompt], device=self.device), self.states(seen.inputs["pixels"])
        inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "encoder_hidden_states": states}
        cache = cache_argument(self.model.text_decoder, EncoderDecoderCache(DynamicCache(), DynamicCache()))
        output = self.decode(1, use_cache=True, **inputs, **cache)
        return Prefix(cache_of(output), ids.shape[1], output.logits[0, -1].float(), states[:, :1])

    def go_on(self, prefixes: Sequence[Prefix], ids: Tensor, lengths: Tensor, keep: Tensor) -> Tensor:
        cache = cache_argument(self.model.text_decoder, stacked([prefix.cache for prefix in prefixes]))
        # That there is a picture is all that the states say: its keys and values are in the cache.
        inputs = {"input_ids": ids, "encoder_hidden_states": torch.cat([prefix.more for prefix in prefixes])}
        mask = self._mask(ids, lengths)
        return self.decode(keep, use_cache=True, attention_mask=mask, **inputs, **cache).logits


class GitCaptioner(Captioner):
    """GIT: one decoder over the picture's positions, which see each other, and the caption after them."""

    def begin(self, seen: Seen) -> Prefix:
        pixels, ids = seen.inputs["pixels"], torch.tensor([self.prompt], device=self.device)
        inputs = {"input_ids": ids, "pixel_values": pixels, "attention_mask": torch.ones_like(ids)}
        output = self.model(use_cache=True, logits_to_keep=1, **inputs)
        return Prefix(cache_of(output), ids.shape[1], output.logits[0, -1].float())

    def go_on(self, prefixes: Sequence[Prefix], ids: Tensor, lengths: Tensor, keep: Tensor) -> Tensor:
        positions = len(self.prompt) + torch.arange(ids.shape[1], device=self.device)
        cache = cache_argument(self.model, stacked([prefix.cache for prefix in prefixes]))
        inputs = {"input_ids": ids, "position_ids": positions[None].expand(len(ids), -1), **cache}
        mask = self._mask(ids, lengths)
        return self.model(use_cache=True, logits_to_keep=keep, attention_mask=mask, **inputs).logits


CAPTIONERS: dict[str, type[Captioner]] = {"blip": BlipCaptioner, "git": GitCaptioner}


def captioner_of(opened: Opened, instruction: str, where: str) -> Captioner:
    kind = CAPTIONERS.get(opened.model.config.model_type)
    if kind is None:
        problem = "captions of this kind of model cannot be scored without a chat template"
        allowed = f"{', '.join(CAPTIONERS)}, paligemma, or a model with a chat template"
        raise ModelError(problem, where=where, given=opened.model.config.model_type, allowed=allowed)
    text, tokenizer = opened.model.config.get_text_config(), opened.processor.tokenizer
    # BLIP's decoder begins with a mark of its own; GIT's with the tokenizer's class mark.
    first = text.bos_token_id if kind is BlipCaptioner else tokenizer.cls_token_id
    end = tokenizer.sep_token_id
    if first is None or end is None:
        problem = "its tokenizer has no token that begins a caption, or none that ends it"
        raise ModelError(problem, where=where, given=f"begin {first}, end {end}")

    def pixels(picture: ndarray) -> Tensor:
        image = PIL.Image.fromarray(picture)
        return opened.processor.image_processor(images=image, return_tensors="pt")["pixel_values"]

    computed: Any = {"model": opened.model, "device": opened.device, "dtype": opened.dtype}
    limits: Any = {"vocabulary": int(text.vocab_size), "positions": int(text.max_position_embeddings)}
    prompt = (int(first), *plain_ids(tokenizer, instruction))
    read: Any = {"read": prompt, "prompt": prompt, "words": lambda text: tuple(plain_ids(tokenizer, text))}
    return kind(**computed, **limits, **read, end=int(end), pixels=pixels)
