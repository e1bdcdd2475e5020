"""Captions that a model of transformers writes of images: BLIP, GIT, PaliGemma, chat models."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import PIL.Image
import torch

from counterfoil.benchmarks.records import Image
from counterfoil.errors import ModelError
from counterfoil.models import hf_loading as loading
from counterfoil.models.base import DEFAULT, Identity, Options
from counterfoil.models.generative.captioners import CAPTIONERS, captioner_of
from counterfoil.models.generative.image_text import Opened, opened, placed
from counterfoil.models.generative.likelihood import INSTRUCTION, PALIGEMMA
from counterfoil.models.generative.templates import ChatTemplate
from counterfoil.models.runtime import LoadContext, drawn_from, one_line, sampling

Inputs = Callable[[Sequence[PIL.Image.Image]], tuple[dict[str, Any], int]]


@dataclass(frozen=True, eq=False)
class CaptionWriter:
    """A model that writes captions of pictures; `identity` names it with its weights and its prompt."""

    identity: Identity
    opened: Opened
    inputs: Inputs
    #: The most tokens that it can write after its prompt; None where nothing limits it.
    room: int | None = None

    def write(
        self, images: Sequence[Image], *, most: int, beams: int = 1, temperature: float = 0.0, seed: int = 0
    ) -> list[str]:
        """A caption of each image, of `most` tokens at most, without marks; empty where it writes nothing.

        Temperature 0 is beam search; above it the same images in one call with one seed give the same
        captions.
        """
        if not images:
            return []
        pictures = [image.decode() for image in images]
        beams = 1 if temperature > 0 else beams
        how = sampling(temperature, num_beams=beams, max_new_tokens=min(most, self.room or most))
        quiet = loading.quiet(loading.library_of())
        with quiet, torch.inference_mode(), drawn_from(seed, self.opened.device):
            try:
                given, start = self.inputs(pictures)
                ids = self.opened.model.generate(**given, **how)
            except Exception as error:
                name, words = self.identity.name, f"{type(error).__name__}: {one_line(error)}"
                out = "out of memory" in str(error).lower()
                hint = "let it read fewer images together" if out else None
                raise ModelError("the model failed", where=name, given=words, hint=hint) from None
        texts = self.opened.processor.tokenizer.batch_decode(ids[:, start:], skip_special_tokens=True)
        return [text.strip() for text in texts]


def load_writer(argument: str, options: Options = DEFAULT, *, prompt: str | None = None) -> CaptionWriter:
    where = f"captioner:{argument}"
    model = opened(argument, LoadContext.of(where, options))
    kind = model.model.config.model_type
    inputs: Inputs
    with loading.quiet(loading.library_of()):
        if kind in CAPTIONERS:
            prompt = prompt or ""
            inputs, room = _of_captioner(model, prompt, where)
        elif kind == "paligemma" and not getattr(model.processor, "chat_template", None):
            prompt, room = PALIGEMMA if prompt is None else prompt, None
            text = model.processor.image_token + prompt

            def inputs(pictures: Sequence[PIL.Image.Image]) -> tuple[dict[str, Any], int]:
                texts = [text] * len(pictures)
                return _placed(model.processor(text=texts, images=list(pictures), return_tensors="pt"), model)

        else:
            prompt, room = INSTRUCTION if prompt is None else prompt, None
            instruction, template = prompt, ChatTemplate.of(model.processor, model.image_id, where)
            tokenizer = model.processor.tokenizer
            tokenizer.padding_side = "left"
            if tokenizer.pad_token_id is None:
                tokenizer.pad_token = tokenizer.eos_token

            def inputs(pictures: Sequence[PIL.Image.Image]) -> tuple[dict[str, Any], int]:
                messages = [template.user_message(instruction, picture) for picture in pictures]
                return _placed(template.inputs(messages, padding=True), model)

    identity = replace(model.identity, options={**model.identity.options, "prompt": prompt})
    return CaptionWriter(identity, model, inputs, room)


def _of_captioner(model: Opened, prompt: str, where: str) -> tuple[Inputs, int]:
    captioner = captioner_of(model, prompt, where)
    kind, images = model.model.config.model_type, model.processor.image_processor

    def inputs(pictures: Sequence[PIL.Image.Image]) -> tuple[dict[str, Any], int]:
        pixels = images(images=list(pictures), return_tensors="pt")["pixel_values"]
        ids = torch.tensor([captioner.prompt] * len(pictures), device=model.device)
        given: dict[str, Any] = {"pixel_values": pixels.to(model.device, model.dtype)}
        if kind == "blip":
            # Its own `generate` leaves out the last id.
            end = torch.full((len(ids), 1), captioner.end, device=model.device)
            ids = torch.cat([ids, end], dim=1)
        else:
            given |= {"pad_token_id": captioner.end, "eos_token_id": captioner.end}
        return {**given, "input_ids": ids, "attention_mask": torch.ones_like(ids)}, 0

    return inputs, captioner.positions - len(captioner.prompt)


def _placed(given: Any, model: Opened) -> tuple[dict[str, Any], int]:
    inputs = placed(dict(given), model.device, model.dtype)
    inputs.pop("labels", None)
    return {**inputs, "pad_token_id": model.processor.tokenizer.pad_token_id}, inputs["input_ids"].shape[1]
