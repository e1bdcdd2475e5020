"""The scores of all images with all captions, a block at a time: from embeddings, or a similarity on disk."""

import threading
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int, Real
from numpy import ndarray

from counterfoil.benchmarks.tables import LARGEST
from counterfoil.errors import ScoreError
from counterfoil.models.matching_probability import RowSimilarity

Positions = Int[ndarray, "_"] | slice


@runtime_checkable
class Blocks(Protocol):
    """Scores of `n_images` images with `n_captions` captions; higher is better. Asked by several threads."""

    n_images: int
    n_captions: int
    #: Bytes of one score.
    itemsize: int

    def rows(self, images: slice) -> Real[ndarray, "rows captions"]:
        """The scores of some images with all captions; the thread's next call may write over them."""

    def part(self, images: Positions, captions: Positions) -> Real[ndarray, "rows columns"]:
        """The scores of some images with some captions; may differ from those in `rows` in the last bit."""


def lines(blocks: Blocks, side: str, queries: Positions, items: Positions) -> Real[ndarray, "queries items"]:
    """The scores of some queries of a direction ("i2t", "t2i") with some items, a line per query."""
    return blocks.part(queries, items) if side == "i2t" else blocks.part(items, queries).T


def product(
    left: Float[ndarray, "rows width"], right: Float[ndarray, "columns width"], buffers: threading.local
) -> Float[ndarray, "rows columns"]:
    """The inner products of rows, in memory that the thread's next call reuses: new pages are slow."""
    size = len(left) * len(right)
    if getattr(buffers, "memory", np.empty(0)).size < size:
        buffers.memory = np.empty(size, np.result_type(left, right))
    scores: ndarray = buffers.memory[:size].reshape(len(left), len(right))
    return np.matmul(left, right.T, out=scores)


class Products:
    """Inner products of embeddings (cosines, where these are of unit length), in their own precision.

    A product may round columns at the edge of its tiles in another way; equal captions get equal scores here.
    """

    def __init__(
        self, images: Float[ndarray, "images width"], captions: Float[ndarray, "captions width"]
    ) -> None:
        self._images, self._captions = images, captions
        self.n_images, self.n_captions = len(images), len(captions)
        self.itemsize = int(np.result_type(images, captions).itemsize)
        self._thread = threading.local()
        #: The first caption of the same embedding, for each caption.
        self._first = first_equal(captions)
        self._doubles = np.flatnonzero(self._first != np.arange(len(captions)))

    def rows(self, images: slice) -> Float[ndarray, "rows captions"]:
        scores = product(self._images[images], self._captions, self._thread)
        if len(self._doubles):
            scores[:, self._doubles] = scores[:, self._first[self._doubles]]
        return scores

    def part(self, images: Positions, captions: Positions) -> Float[ndarray, "rows columns"]:
        columns, back = np.unique(self._first[captions], return_inverse=True)
        scores: ndarray = self._images[images] @ self._captions[columns].T
        return scores if len(columns) == len(back) else scores[:, back]


class CustomSimilarity:
    """Blocks of another comparison of rows; equal captions get equal scores, as in `Products`."""

    def __init__(
        self,
        comparison: RowSimilarity,
        images: Float[ndarray, "images width"],
        captions: Float[ndarray, "captions width"],
    ) -> None:
        self._comparison, self._images, self._captions = comparison, images, captions
        self.n_images, self.n_captions = len(images), len(captions)
        self.itemsize = int(np.result_type(images, captions).itemsize)
        distinct, self._column = np.unique(first_equal(captions), return_inverse=True)
        # A score here costs many times what a copy of it does: each distinct caption is compared once.
        self._distinct = captions if len(distinct) == len(captions) else captions[distinct]

    def rows(self, images: slice) -> Float[ndarray, "rows captions"]:
        return self._spread(self._comparison.block(self._images[images], self._distinct), self._column)

    def part(self, images: Positions, captions: Positions) -> Float[ndarray, "rows columns"]:
        columns, back = np.unique(self._column[captions], return_inverse=True)
        return self._spread(self._comparison.block(self._images[images], self._distinct[columns]), back)

    def _spread(self, scores: ndarray, column: ndarray) -> ndarray:
        if len(column) == scores.shape[1] and bool((column == np.arange(len(column))).all()):
            return scores
        return np.ascontiguousarray(scores[:, column])


class Matrix:
    """A similarity that is there already, `values[row_of[image], column_of[caption]]`, read checked."""

    def __init__(
        self,
        values: Real[ndarray, "rows columns"],
        row_of: Int[ndarray, "images"] | None = None,
        column_of: Int[ndarray, "captions"] | None = None,
        *,
        where: str = "similarity",
        names: tuple[Sequence[str], Sequence[str]] | None = None,
    ) -> None:
        self._values, self._where, self._names = values, where, names
        self._rows = np.arange(values.shape[0]) if row_of is None else row_of
        self._columns = np.arange(values.shape[1]) if column_of is None else column_of
        self._in_order = len(self._columns) == values.shape[1] and bool((np.diff(self._columns) == 1).all())
        self.n_images, self.n_captions = len(self._rows), len(self._columns)
        self.itemsize = values.dtype.itemsize

    def rows(self, images: slice) -> Real[ndarray, "rows captions"]:
        return self.part(images, slice(None))

    def part(self, images: Positions, captions: Positions) -> Real[ndarray, "rows columns"]:
        rows, columns = self._rows[images], self._columns[captions]
        consecutive = len(rows) and bool((np.diff(rows) == 1).all())
        lines: Any = self._values[int(rows[0]) : int(rows[-1]) + 1] if consecutive else self._values[rows]
        whole = self._in_order and isinstance(captions, slice) and captions == slice(None)
        scores = np.asarray(lines if whole else lines[:, columns])
        # Of scores with a NaN both are NaN, so that two passes over the block find all that is off.
        if scores.size and scores.dtype.kind == "f":
            low, high = float(scores.min()), float(scores.max())
            if not (low >= -LARGEST and high <= LARGEST):
                most = scores.dtype.type(min(LARGEST, float(np.finfo(scores.dtype).max)))
                row, column = np.argwhere(~((scores >= -most) & (scores <= most)))[0]
                value = float(scores[row, column])
                names = ""
                if self._names is not None:
                    image = self._names[0][int(np.arange(self.n_images)[images][row])]
                    caption = self._names[1][int(np.arange(self.n_captions)[captions][column])]
                    names = f" (image '{image}', caption '{caption}')"
                problem = "a score is not a finite number"
                problem = "a score is out of range" if np.isfinite(value) else problem
                where = f"{self._where}, row {int(rows[row]) + 1}, column {int(columns[column]) + 1}{names}"
                allowed = f"numbers from {-LARGEST:g} to {LARGEST:g}"
                raise ScoreError(problem, where=where, given=value, allowed=allowed)
        return scores


def unit(vectors: Float[ndarray, "items width"]) -> Float[ndarray, "items width"]:
    """The vectors at length one, in their own precision; lengths are summed in float64."""
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
    return vectors / lengths[:, None].astype(vectors.dtype)


def first_equal(rows: ndarray) -> Int[ndarray, "rows"]:
    """For every row the first row of the same bits."""
    whole = np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))
    bits = np.ascontiguousarray(rows).view(whole).reshape(-1)
    _, first, group = np.unique(bits, return_index=True, return_inverse=True)
    of_row: ndarray = first[group.reshape(-1)]
    return of_row
