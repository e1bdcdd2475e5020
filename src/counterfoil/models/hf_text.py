"""Texts with models of transformers: token ids, CLIP's tokens one by one, and text encoders.

A text encoder is `hf-text:NAME_OR_FOLDER` or `hf-text:NAME_OR_FOLDER@LAYER`: BERT, RoBERTa and similar
models. Every token gets a vector, which `token-match` compares as BERTScore does. They embed no images, so no
other scorer uses them. Layer 0 is the input embeddings; the default is the last layer. BERTScore chose one
for each model: 9 of bert-base-uncased, 17 of roberta-large.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy import ndarray
from torch import Tensor

from counterfoil.benchmarks.records import Caption
from counterfoil.errors import InputError, ModelError
from counterfoil.models import base
from counterfoil.models import hf_loading as loading
from counterfoil.models.captions.base import BatchFrames, BatchTokens, CaptionTokens
from counterfoil.models.dual import TokenIds
from counterfoil.models.runtime import LoadContext

#: Model types whose texts were lower-cased in training, by whatever tokenizer comes with the checkpoint.
LOWER_CASED = ("siglip", "siglip2")


def padded_ids(
    rows: Sequence[Sequence[int]], filler: int, device: Any, *, left: bool = False
) -> tuple[Tensor, Tensor]:
    """(rows, longest) ids, filled up on one side, and which of them are no padding."""
    longest = max(map(len, rows))
    ids = torch.full((len(rows), longest), filler)
    mask = torch.zeros_like(ids)
    for line, row in enumerate(rows):
        place = slice(longest - len(row), None) if left else slice(0, len(row))
        ids[line, place], mask[line, place] = torch.tensor(row), 1
    return ids.to(device), mask.to(device)


@dataclass(frozen=True, eq=False)
class HfTokens:
    """Texts to token ids, in lower case where the model needs it and no longer than it reads."""

    tokenizer: Any
    length: int
    #: Whether a caption's features depend on nothing after its end mark.
    cut: bool = True
    lower: bool = False

    @classmethod
    def of(cls, model: Any, tokenizer: Any) -> "HfTokens":
        """The tokens of a dual encoder."""
        lower = model.config.model_type in LOWER_CASED
        return cls(tokenizer, loading.length_of(model.config, tokenizer), loading.can_cut(model), lower)

    def __call__(self, texts: Sequence[str]) -> Tensor:
        """(batch, length) ids, padded to the longest of the batch where that is exact, else in full."""
        return self.inputs(texts)["input_ids"]

    def inputs(self, texts: Sequence[str]) -> Any:
        """The same ids with all else that the tokenizer gives to the model, such as a mask."""
        return self.tokenizer(
            self._cased(texts),
            padding="longest" if self.cut else "max_length",
            truncation=True,
            max_length=self.length,
            return_tensors="pt",
        )

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text, truncated to the model's length and not padded."""
        encoding = self.tokenizer(self._cased(texts), truncation=True, max_length=self.length)
        return [list(ids) for ids in encoding["input_ids"]]

    def count(self, texts: Sequence[str]) -> list[int]:
        """The number of ids that the model computes of each text."""
        return [len(ids) for ids in self.ids(texts)] if self.cut else [self.length] * len(texts)

    def left_out(self, texts: Sequence[str]) -> list[int]:
        """The number of ids of each text that are cut off."""
        encoding = self.tokenizer(self._cased(texts), truncation=False, verbose=False)
        return [max(0, len(ids) - self.length) for ids in encoding["input_ids"]]

    def _cased(self, texts: Sequence[str]) -> list[str]:
        return [text.lower() for text in texts] if self.lower else list(texts)


@dataclass(frozen=True, eq=False)
class ClipTokens:
    """A `TokenTower` around CLIP of transformers, whose text tower is causal and pools its end mark."""

    model: Any
    ids: HfTokens
    device: Any

    def read(self, texts: Sequence[str]) -> list[TokenIds]:
        """The ids of each text up to the end mark, padded with 0 and not as the tokenizer does it."""
        end = self.model.config.text_config.eos_token_id
        readings = []
        for ids in self.ids.ids(texts):
            # Before 2023 configurations named 2 as CLIP's end mark, which is its vocabulary's highest id.
            mark = max(ids) if end == 2 else end
            # Without an end mark the library pools the first token, and so does this.
            own = ids[: ids.index(mark) + 1] if mark in ids else ids[:1]
            readings.append(TokenIds.of(own, self.ids.length))
        return readings

    def states(self, texts: Sequence[str]) -> Any:
        """(texts, longest, width) features of all tokens."""
        rows = [reading.ids[: reading.used] for reading in self.read(texts)]
        # Padding stands behind every end mark, so that its ids do not matter.
        ids, _ = padded_ids(rows, rows[0][-1], self.device)
        output = self.model.text_model(input_ids=ids, return_dict=True)
        return self.model.text_projection(output.last_hidden_state)


def load(argument: str, options: base.Options = base.DEFAULT) -> "TextEncoder":
    """The model in a local folder, or of that name on the hub (from the local cache where it is there).

    Raises `ModelError` as `hf:` does, and for models whose tokenizer sets no mark at the begin and at the end
    of a text; `InputError` for a layer that the model lacks.
    """
    where = f"hf-text:{argument}"
    context = LoadContext.of(where, options, "prompt")
    name, _, layer = argument.rpartition("@") if "@" in argument else (argument, "", "")
    library = loading.library_of()
    loading.check_place(name, where)
    opened = loading.pretrained(context, library, name)
    model, tokenizer = opened.model, opened.tokenizer
    layers = int(getattr(model.config, "num_hidden_layers", 0))
    if layer and not (layer.isdecimal() and len(layer) < 5 and int(layer) <= layers):
        raise InputError("no such layer", where=where, given=layer, allowed=f"0 to {layers}")
    if len(tokenizer("").input_ids) != 2 or tokenizer.pad_token_id is None:
        problem = "its tokenizer sets no marks around a text, or has nothing to fill up with"
        given = type(tokenizer).__name__
        raise ModelError(problem, where=where, given=given, allowed="encoders like BERT and RoBERTa")
    length = loading.length_of(model.config, tokenizer)
    used = int(layer) if layer else layers
    identity = context.identity(**opened.facts, length=length, layer=used, parts="tokens")
    tokens, filler = HfTokens(tokenizer, length), int(tokenizer.pad_token_id)
    return TextEncoder(identity, model, tokens, filler, used, context.device)


@dataclass(frozen=True, eq=False)
class TextEncoder:
    """A `LocalEmbedder` of captions alone."""

    identity: base.Identity
    model: Any
    ids: HfTokens
    filler: int
    layer: int
    device: Any

    @property
    def local(self) -> "TextEncoder":
        """Itself: single tokens are all that it gives."""
        return self

    def embed_tokens(self, batches: base.CaptionBatches) -> BatchTokens:
        """For each batch of captions their tokens, marks included; the whole is the mark of the begin.

        Captions longer than the model reads are cut off. Raises `DataError` where a text is not at hand.
        """
        for batch in batches:
            rows = self.ids.ids(base.prompted(self.identity, batch)) if batch else []
            captions = []
            if rows:
                ids, mask = padded_ids(rows, self.filler, self.device)
                with torch.inference_mode():
                    output = self.model(
                        input_ids=ids, attention_mask=mask, output_hidden_states=True, return_dict=True
                    )
                    states = torch.nn.functional.normalize(output.hidden_states[self.layer].float(), dim=-1)
                for row, vectors in zip(rows, states.cpu().numpy(), strict=True):
                    # A copy: what lies behind a text's last token means nothing.
                    row_ids, own = np.array(row, dtype=np.int64), vectors[: len(row)].copy()
                    captions.append(CaptionTokens(row_ids, row_ids, own, own[0]))
            yield captions

    def embed_frames(self, batches: base.ImageBatches, *, workers: int = 0) -> BatchFrames:
        """It cannot: raises `InputError`."""
        raise InputError("reads captions and looks at nothing", where=self.identity.name)

    def token_ids(self, texts: Sequence[str]) -> list[ndarray]:
        """The ids of each text within the prompt; no model runs."""
        rows = self.ids.ids([base.filled(self.identity.prompt, text) for text in texts])
        return [np.array(ids, dtype=np.int64) for ids in rows]

    def over_limit(self, captions: Sequence[Caption]) -> int:
        """How many captions, within the prompt, are longer than the model reads, so that they are cut off."""
        return base.cut_off(self.identity, captions, self.ids.left_out)
