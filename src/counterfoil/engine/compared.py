"""The scores of all pairs where items are not compared by the inner product but by a rule of their own."""

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from counterfoil.engine.blocks import Positions, first_equal
from counterfoil.scorers.row_similarity import RowSimilarity


class CustomSimilarity:
    """Blocks of a comparison of rows: several points per item, or distributions.

    Equal captions get equal scores to the last bit, as in `Products`.
    """

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
        """The scores of some images with all captions."""
        return self._spread(self._comparison.block(self._images[images], self._distinct), self._column)

    def part(self, images: Positions, captions: Positions) -> Float[ndarray, "rows columns"]:
        """The scores of some images with some captions."""
        columns, back = np.unique(self._column[captions], return_inverse=True)
        return self._spread(self._comparison.block(self._images[images], self._distinct[columns]), back)

    def _spread(self, scores: ndarray, column: ndarray) -> ndarray:
        if len(column) == scores.shape[1] and bool((column == np.arange(len(column))).all()):
            return scores
        return np.ascontiguousarray(scores[:, column])
