"""Text encoders of the package transformers: `hf-text:NAME_OR_FOLDER` or `hf-text:NAME_OR_FOLDER@LAYER`.

BERT, RoBERTa and similar models: every token gets a vector, which `token-match` compares as BERTScore does.
They embed no images, so no other scorer uses them. Layer 0 is the input embeddings; the default is the last
layer. BERTScore chose one for each model: 9 of bert-base-uncased, 17 of roberta-large.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray

from counterfoil.data.records import Caption, Image
from counterfoil.errors import InputError, ModelError
from counterfoil.scorers import hf_loading as loading
from counterfoil.scorers.base import DEFAULT, Identity, Options, prompt_of, reject_unused_options, text_of
from counterfoil.scorers.captions.base import CaptionTokens
from counterfoil.scorers.hf import HfTokens
from counterfoil.scorers.runtime import device_of, digest_tensors, precision_of, to_device


def load(argument: str, options: Options = DEFAULT) -> "TextEncoder":
    """The model in a local folder, or of that name on the hub (from the local cache where it is there).

    Raises `ModelError` as `hf:` does, and for models whose tokenizer sets no mark at the begin and at the end
    of a text; `InputError` for a layer that the model lacks.
    """
    where = f"hf-text:{argument}"
    reject_unused_options(where, options, "precision", "prompt")
    name, at, behind = argument.rpartition("@")
    name, layer = (name, behind) if at else (argument, "")
    library = loading.library_of()
    device = device_of(options, where=where)
    dtype = precision_of(options, device, where=where)
    prompt = prompt_of(options, where=where)
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
    # No token depends on the pooler, and where a checkpoint has none it is random.
    kept = {key: value for key, value in model.state_dict().items() if not key.startswith("pooler.")}
    weights = digest_tensors(kept)
    model, _ = to_device(model, device, dtype)
    length = loading.length_of(model.config, tokenizer)
    used = int(layer) if layer else layers
    return TextEncoder(
        identity=Identity(
            name=where,
            revision=revision,
            weights=weights,
            precision=options.precision,
            prompt=prompt,
            options={
                "device": device.type,
                "tokenizer": loading.tokenizer_digest(tokenizer),
                "length": length,
                "layer": used,
                "parts": "tokens",
            },
        ),
        model=model,
        ids=HfTokens(tokenizer, length),
        filler=int(tokenizer.pad_token_id),
        layer=used,
        device=device,
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
            rows = self.ids.ids(self._texts(batch)) if batch else []
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
        return [np.array(ids, dtype=np.int64) for ids in self.ids.ids(self._texts(captions))]

    def over_limit(self, captions: Sequence[Caption]) -> int:
        """How many captions, within the prompt, are longer than the model reads, so that they are cut off."""
        if not len(captions):
            return 0
        return sum(left > 0 for left in self.ids.left_out(self._texts(captions)))

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
        found: ndarray = states.cpu().numpy()
        return found

    def _tokens(self, ids: Sequence[int], vectors: Float[ndarray, "longest width"]) -> CaptionTokens:
        own, used = vectors[: len(ids)].copy(), np.array(ids, dtype=np.int64)
        return CaptionTokens(used, used, own, own[0])

    def _texts(self, captions: Sequence[Caption]) -> list[str]:
        before, _, after = self.identity.prompt.partition("{}")
        return [before + text_of(caption) + after for caption in captions]
