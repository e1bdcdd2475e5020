"""Texts with models of transformers: token ids, CLIP's tokens one by one, and text encoders.

A text encoder is `hf-text:NAME_OR_FOLDER` or `hf-text:NAME_OR_FOLDER@LAYER`: BERT, RoBERTa and similar
models. Every token gets a vector, which `token-match` compares as BERTScore does. They embed no images, so no
other scorer uses them. Layer 0 is the input embeddings; the default is the last layer. BERTScore chose one
for each model: 9 of bert-base-uncased, 17 of roberta-large.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from counterfoil.benchmarks.records import Caption, Image
from counterfoil.errors import InputError, ModelError
from counterfoil.models import hf_loading as loading
from counterfoil.models.base import DEFAULT, Identity, Options, prompted
from counterfoil.models.captions.base import CaptionTokens
from counterfoil.models.dual import TokenIds
from counterfoil.models.runtime import LoadContext, to_device

#: Model types whose texts were lower-cased in training, by whatever tokenizer comes with the checkpoint.
LOWER_CASED = ("siglip", "siglip2")


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
        rows = []
        for ids in self.ids.ids(texts):
            # Before 2023 configurations named 2 as CLIP's end mark, which is its vocabulary's highest id.
            mark = max(ids) if end == 2 else end
            # Without an end mark the library pools the first token, and so does this.
            rows.append(ids[: ids.index(mark) + 1] if mark in ids else ids[:1])
        return [TokenIds.of(own, self.ids.length) for own in rows]

    def states(self, texts: Sequence[str]) -> Any:
        """(texts, longest, width) features of all tokens."""
        rows = [reading.ids[: reading.used] for reading in self.read(texts)]
        longest = max(map(len, rows))
        # Padding stands behind every end mark, so that its ids do not matter.
        ids = torch.tensor([(*row, *[row[-1]] * (longest - len(row))) for row in rows])
        output = self.model.text_model(input_ids=ids.to(self.device), return_dict=True)
        return self.model.text_projection(output.last_hidden_state)


def load(argument: str, options: Options = DEFAULT) -> "TextEncoder":
    """The model in a local folder, or of that name on the hub (from the local cache where it is there).

    Raises `ModelError` as `hf:` does, and for models whose tokenizer sets no mark at the begin and at the end
    of a text; `InputError` for a layer that the model lacks.
    """
    where = f"hf-text:{argument}"
    context = LoadContext.of(where, options, "prompt")
    name, at, behind = argument.rpartition("@")
    name, layer = (name, behind) if at else (argument, "")
    library = loading.library_of()
    loading.check_place(name, where)
    with loading.quiet(library):
        model, revision = loading.weights_of(library, name, where)
        tokenizer = loading.fetched(library.AutoTokenizer, name, where, "tokenizer")
    layers = int(getattr(model.config, "num_hidden_layers", 0))
    if layer and not (layer.isdecimal() and len(layer) < 5 and int(layer) <= layers):
        raise InputError("no such layer", where=where, given=layer, allowed=f"0 to {layers}")
    if len(tokenizer("").input_ids) != 2 or tokenizer.pad_token_id is None:
        raise ModelError(
            "its tokenizer sets no marks around a text, or has nothing to fill up with",
            where=where,
            given=type(tokenizer).__name__,
            allowed="encoders like BERT and RoBERTa",
        )
    weights = loading.digest_without_pooler(model)
    model, _ = to_device(model, context.device, context.dtype)
    length = loading.length_of(model.config, tokenizer)
    used = int(layer) if layer else layers
    return TextEncoder(
        identity=context.identity(
            revision=revision,
            weights=weights,
            tokenizer=loading.tokenizer_digest(tokenizer),
            length=length,
            layer=used,
            parts="tokens",
        ),
        model=model,
        ids=HfTokens(tokenizer, length),
        filler=int(tokenizer.pad_token_id),
        layer=used,
        device=context.device,
    )


@dataclass(frozen=True, eq=False)
class TextEncoder:
    """A `LocalEmbedder` of captions alone."""

    identity: Identity
    model: Any
    ids: HfTokens
    filler: int
    layer: int
    device: Any

    @property
    def local(self) -> "TextEncoder":
        """Itself: single tokens are all that it gives."""
        return self

    def embed_tokens(self, batches: Sequence[Sequence[Caption]]) -> Iterator[list[CaptionTokens]]:
        """For each batch of captions their tokens, marks included; the whole is the mark of the begin.

        Captions longer than the model reads are cut off. Raises `DataError` where a text is not at hand.
        """
        for batch in batches:
            rows = self.ids.ids(prompted(self.identity, batch)) if batch else []
            states = self._states(rows) if rows else ()
            yield [self._tokens(ids, vectors) for ids, vectors in zip(rows, states, strict=True)]

    def embed_frames(
        self, batches: Sequence[Sequence[Image]], *, workers: int = 0
    ) -> Iterator[list[Float[np.ndarray, "frames width"]]]:
        """It cannot: raises `InputError`."""
        raise InputError("reads captions and looks at nothing", where=self.identity.name)

    def token_ids(self, texts: Sequence[str]) -> list[ndarray]:
        """The ids of each text within the prompt; no model runs."""
        captions = [Caption("", text) for text in texts]
        return [np.array(ids, dtype=np.int64) for ids in self.ids.ids(prompted(self.identity, captions))]

    def over_limit(self, captions: Sequence[Caption]) -> int:
        """How many captions, within the prompt, are longer than the model reads, so that they are cut off."""
        if not len(captions):
            return 0
        return sum(left > 0 for left in self.ids.left_out(prompted(self.identity, captions)))

    def _states(self, rows: Sequence[Sequence[int]]) -> Float[ndarray, "texts longest width"]:
        """Unit vectors of all tokens; what lies behind a text's last one means nothing."""
        longest = max(map(len, rows))
        ids = torch.tensor([[*row, *[self.filler] * (longest - len(row))] for row in rows])
        mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows])
        with torch.inference_mode():
            output = self.model(
                input_ids=ids.to(self.device),
                attention_mask=mask.to(self.device),
                output_hidden_states=True,
                return_dict=True,
            )
            states = torch.nn.functional.normalize(output.hidden_states[self.layer].float(), dim=-1)
        return states.cpu().numpy()

    def _tokens(self, ids: Sequence[int], vectors: Float[ndarray, "longest width"]) -> CaptionTokens:
        own, used = vectors[: len(ids)].copy(), np.array(ids, dtype=np.int64)
        return CaptionTokens(used, used, own, own[0])
