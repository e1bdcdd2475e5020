"""Dual encoders of every model library: batches in, unit vectors out.

A model library contributes four callables (pixels and texts to features, the preparation of pictures, the
count of tokens); this module adds workers, the prompt, device, precision, normalisation and comparison.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from counterfoil.data.records import Caption, Image
from counterfoil.scorers.base import Identity, cosines, text_of
from counterfoil.scorers.images import Preparation, prepared
from counterfoil.scorers.row_similarity import RowSimilarity
from counterfoil.scorers.runtime import import_torch
from counterfoil.scorers.token_encoder import LocalEncoder, TokenTower


@dataclass(frozen=True, eq=False)
class DualEncoder:
    """An `Embedder` around the two towers of a model.

    Embeddings are normalised in float32 whatever the precision of the towers, and compared in float64. Where
    a `comparison` says how rows are compared (several points per item, Gaussians), the towers give finished
    rows and nothing is normalised here.
    """

    identity: Identity
    preparation: Preparation
    #: What `preparation` made of each picture of a batch, to a (batch, width) tensor.
    encode_images: Callable[[Sequence[ndarray]], Any]
    #: Texts to a (batch, width) tensor.
    encode_texts: Callable[[Sequence[str]], Any]
    #: Texts to the number of tokens the model reads of each, marks of begin and end included.
    count_tokens: Callable[[Sequence[str]], Sequence[int]]
    #: What does not change answers beyond rounding and belongs in a manifest: versions, device, towers used.
    provenance: Mapping[str, Any] = field(default_factory=dict)
    comparison: RowSimilarity | None = None
    #: Texts to how many of the tokens of each are left out because the model reads no more; None where
    #: that cannot be known.
    count_left_out: Callable[[Sequence[str]], Sequence[int]] | None = None
    #: The text tower token by token, where it has one point per token in the space of the images.
    tokens: TokenTower | None = None

    def embed_images(
        self, batches: Sequence[Sequence[Image]], *, workers: int = 0
    ) -> Iterator[Float[np.ndarray, "batch width"]]:
        """One (batch, width) float32 array of unit vectors per batch, decoded in `workers` processes.

        Raises `DataError` naming the file where an image cannot be read.
        """
        with closing(prepared(batches, self.preparation, workers=workers)) as stream:
            for arrays in stream:
                yield self._rows(self.encode_images, arrays)

    def embed_captions(
        self, batches: Sequence[Sequence[Caption]]
    ) -> Iterator[Float[np.ndarray, "batch width"]]:
        """One (batch, width) float32 array of unit vectors per batch.

        Captions longer than the model reads are cut off as its tokenizer does. Raises `DataError` where a
        caption's text is not at hand.
        """
        for batch in batches:
            yield self._rows(self.encode_texts, self._texts(batch))

    def lengths(self, captions: Sequence[Caption]) -> Sequence[int]:
        """Tokens of each caption within its prompt, at most as many as the model reads."""
        return self.count_tokens(self._texts(captions)) if len(captions) else []

    def over_limit(self, captions: Sequence[Caption]) -> int:
        """How many captions, within the prompt, are longer than the model reads, so that it cuts them off."""
        if self.count_left_out is None or not len(captions):
            return 0
        return sum(left > 0 for left in self.count_left_out(self._texts(captions)))

    def with_prompt(self, prompt: str) -> "DualEncoder":
        """The same towers, captions put into another prompt, and no second copy in memory."""
        return replace(self, identity=replace(self.identity, prompt=prompt))

    @property
    def local(self) -> LocalEncoder | None:
        """The same model part by part; None where its tokens do not lie in the space of its images."""
        if self.tokens is None or self.comparison is not None:
            return None
        options = {**self.identity.options, "parts": "tokens, frames"}
        return LocalEncoder(
            identity=replace(self.identity, options=options),
            preparation=self.preparation,
            tower=self.tokens,
            unit_images=lambda arrays: self._rows(self.encode_images, arrays),
            unit_states=self._states,
            over_limit=self.over_limit,
        )

    def compare(
        self, captions: Float[ndarray, "pairs width"], images: Float[ndarray, "pairs width"]
    ) -> Float[ndarray, "pairs"]:
        """The cosine of captions[i] with images[i], in [-1, 1] up to rounding; or what `comparison` says."""
        if self.comparison is not None:
            return self.comparison.pairs(captions, images)
        return cosines(captions, images)

    def _rows(self, encode: Callable[[Any], Any], batch: Any) -> Float[np.ndarray, "batch width"]:
        torch = import_torch()
        with torch.inference_mode():
            rows = encode(batch).float()
            if self.comparison is None:
                rows = torch.nn.functional.normalize(rows, dim=-1)
        array: ndarray = rows.cpu().numpy()
        return array

    def _states(self, texts: Sequence[str]) -> Float[np.ndarray, "texts longest width"]:
        torch = import_torch()
        assert self.tokens is not None
        with torch.inference_mode():
            states = torch.nn.functional.normalize(self.tokens.states(texts).float(), dim=-1)
        array: ndarray = states.cpu().numpy()
        return array

    def _texts(self, captions: Sequence[Caption]) -> list[str]:
        before, _, after = self.identity.prompt.partition("{}")
        return [before + text_of(caption) + after for caption in captions]
