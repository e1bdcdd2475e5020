"""Dual encoders of every model library: batches in, unit vectors out.

A model library contributes the preparation of pictures and its `Towers`; this module adds worker processes,
the prompt, normalisation and comparison.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from counterfoil.data.records import Caption, Image
from counterfoil.scorers.base import Ability, Identity, cosines, text_of
from counterfoil.scorers.images import Preparation, prepared
from counterfoil.scorers.matching_probability import RowSimilarity
from counterfoil.scorers.runtime import import_torch
from counterfoil.scorers.token_encoder import LocalEncoder, TokenTower


@dataclass(frozen=True, eq=False)
class Towers:
    """The two towers of a model on its device, as functions of prepared pictures and of texts."""

    #: What the preparation made of each picture of a batch, to a (batch, width) tensor.
    images: Callable[[Sequence[ndarray]], Any]
    #: Texts to a (batch, width) tensor.
    texts: Callable[[Sequence[str]], Any]
    #: Texts to the number of tokens that are computed of each, start and end marks included.
    count: Callable[[Sequence[str]], Sequence[int]]
    #: Texts to how many tokens of each exceed the model's length and are cut off; None where unknown.
    left_out: Callable[[Sequence[str]], Sequence[int]] | None = None
    #: The text tower token by token, where it has one point per token in the space of the images.
    tokens: TokenTower | None = None
    #: Which implementation computes each tower, for the provenance of a run.
    notes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class DualEncoder:
    """An `Embedder` around the two towers of a model.

    Embeddings are normalised in float32 whatever the precision of the towers, and compared in float64. Where
    a `comparison` says how rows are compared (several points per item, Gaussians), the towers give finished
    rows and nothing is normalised here.
    """

    does: ClassVar[tuple[Ability, ...]] = ("embeds",)

    identity: Identity
    preparation: Preparation
    towers: Towers
    #: Facts for a run's manifest that change scores by rounding at most: versions, device, towers used.
    provenance: Mapping[str, Any] = field(default_factory=dict)
    comparison: RowSimilarity | None = None

    def embed_images(
        self, batches: Sequence[Sequence[Image]], *, workers: int = 0
    ) -> Iterator[Float[np.ndarray, "batch width"]]:
        """One (batch, width) float32 array of unit vectors per batch, decoded in `workers` processes.

        Raises `DataError` naming the file where an image cannot be read.
        """
        with closing(prepared(batches, self.preparation, workers=workers)) as stream:
            for arrays in stream:
                yield self._rows(self.towers.images, arrays)

    def embed_captions(
        self, batches: Sequence[Sequence[Caption]]
    ) -> Iterator[Float[np.ndarray, "batch width"]]:
        """One (batch, width) float32 array of unit vectors per batch.

        Captions longer than the model reads are cut off as its tokenizer does. Raises `DataError` where a
        caption's text is not at hand.
        """
        for batch in batches:
            yield self._rows(self.towers.texts, self._texts(batch))

    def lengths(self, captions: Sequence[Caption]) -> Sequence[int]:
        """Tokens of each caption within its prompt, at most as many as the model reads."""
        return self.towers.count(self._texts(captions)) if len(captions) else []

    def over_limit(self, captions: Sequence[Caption]) -> int:
        """The number of captions that, within the prompt, are longer than the model reads and are cut off."""
        if self.towers.left_out is None or not len(captions):
            return 0
        return sum(left > 0 for left in self.towers.left_out(self._texts(captions)))

    def with_prompt(self, prompt: str) -> "DualEncoder":
        """The same model with another prompt around captions, without a second copy in memory."""
        return replace(self, identity=replace(self.identity, prompt=prompt))

    @property
    def local(self) -> LocalEncoder | None:
        """The same model token by token; None where its tokens do not lie in the space of its images."""
        if self.towers.tokens is None or self.comparison is not None:
            return None
        options = {**self.identity.options, "parts": "tokens, frames"}
        return LocalEncoder(
            identity=replace(self.identity, options=options),
            preparation=self.preparation,
            tower=self.towers.tokens,
            unit_images=lambda arrays: self._rows(self.towers.images, arrays),
            unit_states=self._states,
            over_limit=self.over_limit,
        )

    def compare(
        self, captions: Float[ndarray, "pairs width"], images: Float[ndarray, "pairs width"]
    ) -> Float[ndarray, "pairs"]:
        """The cosine of captions[i] with images[i], in [-1, 1] up to rounding; or that of `comparison`."""
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
        assert self.towers.tokens is not None
        with torch.inference_mode():
            states = torch.nn.functional.normalize(self.towers.tokens.states(texts).float(), dim=-1)
        array: ndarray = states.cpu().numpy()
        return array

    def _texts(self, captions: Sequence[Caption]) -> list[str]:
        before, _, after = self.identity.prompt.partition("{}")
        return [before + text_of(caption) + after for caption in captions]
