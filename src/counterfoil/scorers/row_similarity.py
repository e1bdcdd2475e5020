"""Similarity of items that are not one point each: rows of embeddings to scores, in NumPy alone.

An embedder's rows are flat, whatever they hold. Where their score is not the inner product, the embedder
carries a `comparison`, and the engine asks that for blocks of a gallery.
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float
from numpy import ndarray


@runtime_checkable
class RowSimilarity(Protocol):
    """A score of two rows; higher is a better match. Pure: the same rows always get the same score."""

    def pairs(
        self, captions: Float[ndarray, "pairs width"], images: Float[ndarray, "pairs width"]
    ) -> Float[ndarray, "pairs"]:
        """captions[i] with images[i], computed in float64."""
        ...

    def block(
        self, images: Float[ndarray, "rows width"], captions: Float[ndarray, "columns width"]
    ) -> Float[ndarray, "rows columns"]:
        """All images with all captions, in the precision of the rows; asked by several threads."""
        ...


@dataclass(frozen=True)
class MostSimilarHeads:
    """The largest cosine between any head of an image and any of a caption (PVSE's multiple instances).

    A row is its heads one after the other, each of length one. In [-1, 1] up to rounding.

    >>> caption, image = np.array([[1.0, 0.0, 0.0, 1.0]]), np.array([[0.0, -1.0, 0.6, 0.8]])
    >>> MostSimilarHeads(2).pairs(caption, image)
    array([0.8])
    """

    heads: int

    def pairs(
        self, captions: Float[ndarray, "pairs width"], images: Float[ndarray, "pairs width"]
    ) -> Float[ndarray, "pairs"]:
        """The score of captions[i] with images[i]."""
        left, right = (
            rows.astype(np.float64).reshape(len(rows), self.heads, rows.shape[1] // self.heads)
            for rows in (captions, images)
        )
        return np.einsum("nkd,nld->nkl", left, right).max(axis=(1, 2))

    def block(
        self, images: Float[ndarray, "rows width"], captions: Float[ndarray, "columns width"]
    ) -> Float[ndarray, "rows columns"]:
        """The scores of all images with all captions, one product of matrices per pair of heads."""
        best: ndarray | None = None
        for left in np.split(images, self.heads, axis=1):
            for right in np.split(captions, self.heads, axis=1):
                scores = left @ right.T
                best = scores if best is None else np.maximum(best, scores, out=best)
        assert best is not None  # there is a head
        return best
