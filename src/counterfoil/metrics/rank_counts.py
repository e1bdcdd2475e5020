"""Counting how many items of a gallery score above given scores, part of the gallery by part.

A block of some images x all captions ranks the captions for those images at once, but holds for each caption
only a part of its gallery. Counts add up: where the scores of a caption's positives are known beforehand, one
matrix product serves both directions, and no block is ever turned around.
"""

import numpy as np
from jaxtyping import Int, Real
from numpy import ndarray

# Comparisons are made for about so many scores at once: they stay in the processor's cache.
_AT_ONCE = 1 << 19
# Counts of so many rows fit into one byte.
_BYTE = 255


def tally(
    scores: Real[ndarray, "part queries"], query: Int[ndarray, "pairs"], score: Real[ndarray, "pairs"]
) -> tuple[Int[ndarray, "pairs"], Int[ndarray, "pairs"]]:
    """How many items of a part of the gallery score above each given score of its query, how many as high.

    A row of `scores` is an item, a column a query; pair p asks about `score[p]` in column `query[p]`. The
    sums over all parts of a gallery are what `ranks.from_counts` takes, each positive itself being one of
    those as high, if its score is the one in the block to the last bit.

    >>> above, level = tally(np.array([[3.0, 1.0], [2.0, 1.0]]), np.array([0, 1]), np.array([2.0, 1.0]))
    >>> above, level
    (array([1, 0]), array([1, 2]))
    """
    above, level = np.zeros(len(query), np.int64), np.zeros(len(query), np.int64)
    order = np.argsort(query, kind="stable")
    columns, first, size = np.unique(query[order], return_index=True, return_counts=True)
    # Queries of most pairs first, so that those with a second, third, ... pair are always the first so many.
    fewer = np.argsort(-size, kind="stable")
    most = int(size.max(initial=0))
    layers = [order[first[fewer[: np.count_nonzero(size > nth)]] + nth] for nth in range(most)]
    if len(columns) == scores.shape[1]:
        # Every column has a pair: the first of each needs no column moved.
        _add(scores, [order[first]], score, above, level)
        layers, columns = layers[1:], columns[fewer[: len(layers[1])]] if len(layers) > 1 else columns[:0]
    else:
        columns = columns[fewer]
    step = max(1, _AT_ONCE // max(len(columns), 1))
    for lo in range(0, len(scores) if len(columns) else 0, step):
        _add(scores[lo : lo + step].take(columns, axis=1), layers, score, above, level)
    return above, level


def _add(block: ndarray, layers: list[ndarray], score: ndarray, above: ndarray, level: ndarray) -> None:
    """Add to the counts of pairs, those of a layer being one for each of the first so many columns."""
    for at in layers:
        asked, step = score[at], min(_BYTE, max(1, _AT_ONCE // max(len(at), 1)))
        higher, equal = np.zeros((2, len(at)), np.int64)
        for lo in range(0, len(block), step):
            part = block[lo : lo + step, : len(at)]
            higher += _count(part > asked)
            equal += _count(part == asked)
        above[at] += higher
        level[at] += equal


def _count(true: ndarray) -> ndarray:
    """How many of each column are true, of at most 255 rows."""
    return np.add.reduce(true.view(np.uint8), axis=0, dtype=np.uint8)
