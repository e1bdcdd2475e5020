"""Captioners as decoders: BLIP, GIT and encoder-decoders of the package transformers, CoCa of open_clip.

They have no chat template: a caption follows a begin mark and, where one is wanted, the beginning of a text.
The picture goes through its tower once; keys and values of a decoder that attends to it across, too.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import PIL.Image
import torch
from numpy import ndarray
from torch import Tensor

from counterfoil.errors import ModelError
from counterfoil.models.base import Identity, digest_tensors
from counterfoil.models.generative.image_text import Opened, stacked
from counterfoil.models.generative.prefixes import (
    Decoder,
    Prefix,
    Seen,
    TextRow,
    cache_argument,
    cache_of,
)
from counterfoil.models.generative.templates import plain_ids
from counterfoil.models.hf_loading import padded_ids
from counterfoil.models.images import UNTOUCHED, Preparation
from counterfoil.models.runtime import LoadContext, to_device
from counterfoil.store import canonical_json


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
    preparation: Preparation = UNTOUCHED
    wholes: bool = False

    def see(self, picture: ndarray) -> Seen:
        """A picture's pixels."""
        pixels = self.pixels(picture).to(self.device, self.dtype)
        # About as many positions as it takes in a tower of patches of 16.
        return Seen(pixels.shape[-1] * pixels.shape[-2] // 256, {"pixels": pixels})

    def _mask(self, ids: Tensor, lengths: Tensor) -> Tensor:
        """Which ids are read: the prompt, and those of each row."""
        places = torch.arange(ids.shape[1], device=self.device)
        prompt = torch.ones((len(ids), len(self.prompt)), dtype=torch.long, device=self.device)
        return torch.cat([prompt, (places < lengths[:, None]).long()], dim=1)


@dataclass(frozen=True, eq=False, kw_only=True)
class CrossCaptioner(Captioner):
    """A decoder that attends to the picture across; keys and values for the picture are kept by layer."""

    wholes: bool = True
    #: What the model calls its text decoder.
    named: ClassVar[str] = "decoder"

    @property
    def writer(self) -> Any:
        """The text decoder."""
        return getattr(self.model, self.named)

    @abstractmethod
    def states(self, pixels: Tensor) -> Tensor:
        """(1, places, width): the picture as the decoder attends to it."""

    @abstractmethod
    def decode(self, keep: Tensor | int, **inputs: Any) -> Any:
        """The decoder's output, with the logits of the positions `keep`, or of so many last ones."""

    def whole(self, seen: Sequence[Seen], rows: Sequence[TextRow], keep: Tensor) -> Tensor:
        """Pictures with one caption each."""
        ids, mask = padded_ids([row.ids for row in rows], 0, self.device)
        # The picture's positions are not among the text's.
        keep = keep - torch.tensor([[picture.size] for picture in seen], device=self.device)
        return self.decode(
            keep,
            input_ids=ids,
            attention_mask=mask,
            encoder_hidden_states=torch.cat([self.states(picture.inputs["pixels"]) for picture in seen]),
            use_cache=False,
        ).logits

    def begin(self, seen: Seen) -> Prefix:
        """A picture and the prompt."""
        from transformers import DynamicCache, EncoderDecoderCache

        ids, states = torch.tensor([self.prompt], device=self.device), self.states(seen.inputs["pixels"])
        output = self.decode(
            1,
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            encoder_hidden_states=states,
            use_cache=True,
            **cache_argument(self.writer, EncoderDecoderCache(DynamicCache(), DynamicCache())),
        )
        return Prefix(cache_of(output), ids.shape[1], output.logits[0, -1].float(), states[:, :1])

    def go_on(self, prefixes: Sequence[Prefix], ids: Tensor, lengths: Tensor, keep: Tensor) -> Tensor:
        """Captions after the prompt."""
        return self.decode(
            keep,
            input_ids=ids,
            attention_mask=self._mask(ids, lengths),
            # That there is a picture is all it says: its keys and values are in the cache.
            encoder_hidden_states=torch.cat([prefix.more for prefix in prefixes]),
            use_cache=True,
            **cache_argument(self.writer, stacked([prefix.cache for prefix in prefixes])),
        ).logits


class BlipCaptioner(CrossCaptioner):
    """BLIP's captioner."""

    named = "text_decoder"

    def states(self, pixels: Tensor) -> Tensor:
        """The states of all patches."""
        return self.model.vision_model(pixel_values=pixels).last_hidden_state

    def decode(self, keep: Tensor | int, **inputs: Any) -> Any:
        """By its text decoder."""
        return self.writer(logits_to_keep=keep, **inputs)


class PairedCaptioner(CrossCaptioner):
    """A vision encoder with a text decoder that was trained to attend to it (`VisionEncoderDecoderModel`)."""

    def states(self, pixels: Tensor) -> Tensor:
        """The encoder's states, as wide as the decoder needs them."""
        model = self.model
        patches: Tensor = model.encoder(pixel_values=pixels).last_hidden_state
        narrow = getattr(model.decoder.config, "cross_attention_hidden_size", None) is None
        if narrow and model.encoder.config.hidden_size != model.decoder.config.hidden_size:
            patches = model.enc_to_dec_proj(patches)
        return patches

    def decode(self, keep: Tensor | int, **inputs: Any) -> Any:
        """By its decoder, which gives all logits: some kinds cannot be asked for fewer."""
        output = self.writer(**inputs)
        if isinstance(keep, Tensor):
            output.logits = output.logits.take_along_dim(keep[..., None], dim=1)
        return output


class GitCaptioner(Captioner):
    """GIT: one decoder over the picture's positions, which see each other, and the caption after them."""

    def begin(self, seen: Seen) -> Prefix:
        """A picture and the prompt."""
        pixels, ids = seen.inputs["pixels"], torch.tensor([self.prompt], device=self.device)
        output = self.model(
            input_ids=ids,
            pixel_values=pixels,
            attention_mask=torch.ones_like(ids),
            use_cache=True,
            logits_to_keep=1,
        )
        return Prefix(cache_of(output), ids.shape[1], output.logits[0, -1].float())

    def go_on(self, prefixes: Sequence[Prefix], ids: Tensor, lengths: Tensor, keep: Tensor) -> Tensor:
        """Captions after the prompt; their positions count from it, not from the picture."""
        places = len(self.prompt) + torch.arange(ids.shape[1], device=self.device)
        return self.model(
            input_ids=ids,
            attention_mask=self._mask(ids, lengths),
            position_ids=places[None].expand(len(ids), -1),
            use_cache=True,
            logits_to_keep=keep,
            **cache_argument(self.model, stacked([prefix.cache for prefix in prefixes])),
        ).logits


class CocaCaptioner(Captioner):
    """CoCa: a text tower that sees no picture, and a decoder that does; the prompt is read with rows.

    Its `read` is empty: there is no prefix but the picture.
    """

    def begin(self, seen: Seen) -> Prefix:
        """A picture."""
        return Prefix(None, 0, None, self.model._encode_image(seen.inputs["pixels"])[1])

    def go_on(self, prefixes: Sequence[Prefix], ids: Tensor, lengths: Tensor, keep: Tensor) -> Tensor:
        """Prompts and captions."""
        pictures = torch.cat([prefix.more for prefix in prefixes])
        logits: Tensor = self.model.text_decoder(pictures, self.model._encode_text(ids)[1])
        return logits.take_along_dim(keep[..., None], dim=1)


#: The captioners by transformers' model type.
CAPTIONERS: dict[str, type[Captioner]] = {
    "blip": BlipCaptioner,
    "git": GitCaptioner,
    "vision-encoder-decoder": PairedCaptioner,
}


def captioner_of(opened: Opened, instruction: str, where: str) -> Captioner:
    """The captioner in a model of transformers that has no chat template: one of `CAPTIONERS`.

    Raises `ModelError` for other kinds of model.
    """
    kind = CAPTIONERS.get(opened.model.config.model_type)
    if kind is None:
        problem = "captions of this kind of model cannot be scored without a chat template"
        allowed = f"{', '.join(CAPTIONERS)}, paligemma, or a model with a chat template"
        raise ModelError(problem, where=where, given=opened.model.config.model_type, allowed=allowed)
    config, tokenizer = opened.model.config, opened.processor.tokenizer
    if kind is PairedCaptioner:
        text, first, end = config.decoder, config.decoder_start_token_id, config.eos_token_id
        first = text.bos_token_id if first is None else first
        end = tokenizer.eos_token_id if end is None else end
    else:
        text = config.get_text_config()
        # BLIP's decoder begins with a mark of its own; GIT's with the tokenizer's class mark.
        first = text.bos_token_id if kind is BlipCaptioner else tokenizer.cls_token_id
        end = tokenizer.sep_token_id
    if first is None or end is None:
        problem = "nothing says which token begins a caption, and which one ends it"
        hint = "set decoder_start_token_id and eos_token_id in config.json"
        raise ModelError(problem, where=where, given=f"begin {first}, end {end}", hint=hint)
    prompt = (int(first), *plain_ids(tokenizer, instruction))
    return kind(
        model=opened.model,
        device=opened.device,
        dtype=opened.dtype,
        vocabulary=int(text.vocab_size),
        read=prompt,
        prompt=prompt,
        positions=int(text.max_position_embeddings),
        words=lambda caption: tuple(plain_ids(tokenizer, caption)),
        end=int(end),
        pixels=lambda picture: opened.processor.image_processor(
            images=PIL.Image.fromarray(picture), return_tensors="pt"
        )["pixel_values"],
    )


def coca(argument: str, context: LoadContext, instruction: str) -> tuple[Captioner, Identity, dict[str, Any]]:
    """A CoCa of open_clip, named as `open-clip:` names models; its identity and the versions behind it.

    Raises what loading that model as a dual encoder raises, and `ModelError` for models without a decoder.
    """
    from counterfoil.models import open_clip

    where, device, library = context.where, context.device, open_clip.library_of()
    model, tokenizer, activation, card = open_clip.loaded(library, argument, where)
    if not hasattr(model, "text_decoder") or not hasattr(tokenizer, "encode"):
        given = type(model).__name__
        raise ModelError("the model writes no captions", where=where, given=given, allowed="CoCa")
    weights = digest_tensors(model.state_dict())
    model, computed = to_device(model, device, context.dtype)
    pixels = open_clip.OpenClipPixels.of(card["preprocess"], device, computed)
    marks = tokenizer.encoder if hasattr(tokenizer, "encoder") else {}

    def words(text: str) -> tuple[int, ...]:
        # What looks like a mark in a caption is plain text.
        for mark in ("<start_of_text>", "<end_of_text>"):
            text = text.replace(mark, f"< {mark[1:]}") if mark in marks else text
        return tuple(tokenizer.encode(text))

    captioner = CocaCaptioner(
        model=model,
        device=device,
        dtype=computed,
        vocabulary=int(model.text_decoder.text_projection.shape[1]),
        prompt=(int(tokenizer.sot_token_id), *(words(instruction) if instruction else ())),
        positions=int(model.context_length),
        words=words,
        end=int(tokenizer.eot_token_id),
        pixels=lambda picture: pixels([picture]),
        preparation=pixels.preparation,
    )
    identity = context.identity(
        weights=weights, preprocessing=canonical_json(card["preprocess"]), **activation.options()
    )
    return captioner, identity, context.provenance(library)
