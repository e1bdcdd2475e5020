"""Correlations of scores with ratings in many samples at once, each of which weighs whole clusters of points.

A bootstrap asks for thousands of correlations of the same points, which differ only in how often each
cluster was drawn. What depends on the points alone (their order, who ties with whom) is worked out once; a
sample then costs O(n log levels), for n points whose ratings have so many levels:

* pairs in the same and in opposite orders are counted bit by bit of the level's number. Two levels differ in
  a highest bit; the points whose levels agree above it are a segment, and in it the pairs of one with the bit
  and one without are counted by running sums over the scores;
* all of it but Pearson's is arithmetic of whole numbers, exact in float64 up to 200,000 points, so equal
  samples give equal bits, and the values are those of scipy on the points written out as often as they weigh.
"""

from dataclasses import dataclass
from itertools import pairwise
from math import isqrt

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray
from numpy.typing import NDArray

from counterfoil.errors import InputError

#: The columns of `Drawn.correlations`.
MEASURES = ("kendall_tau_b", "kendall_tau_c", "spearman", "pearson")

#: Numbers that one array may hold (2 MiB), so that the running sums stay near the processor.
_AT_ONCE = 1 << 18


@dataclass(frozen=True, eq=False)
class _Bit:
    """The pairs of points whose levels differ in this bit first: positions among the entries.

    `without` and `having` lie in the order of segments and scores. For each entry of `having`, `first` of
    those in `without` score less or are of an earlier segment, and `last` score no more. The segments, in
    order, are cut out of both at `cuts_without` and `cuts_having`.
    """

    without: NDArray[np.int64]
    having: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    cuts_without: NDArray[np.int64]
    cuts_having: NDArray[np.int64]


class _Space:
    """Arrays that are used again from block to block: fresh ones of megabytes cost more than what fills them.

    Whoever asks for the same name again gets the same place.
    """

    def __init__(self) -> None:
        self._held: dict[str, NDArray[np.float64]] = {}

    def _place(self, name: str, rows: int, columns: int) -> NDArray[np.float64]:
        held = self._held.get(name)
        if held is None or held.size < rows * columns:
            held = self._held[name] = np.empty(rows * columns)
        return held[: rows * columns].reshape(rows, columns)

    def rows(self, name: str, values: NDArray[np.float64], chosen: NDArray[np.int64]) -> NDArray[np.float64]:
        """Some rows of `values`."""
        out = self._place(name, len(chosen), values.shape[1])
        # Positions are right by construction; the default mode would copy through a buffer.
        return np.take(values, chosen, axis=0, out=out, mode="clip")

    def running(self, name: str, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """(rows + 1, columns) sums of the rows before each row, and of all.

        `numpy.cumsum` along the rows takes several times as long: it goes down one column after another.
        """
        n, columns = rows.shape
        out = self._place(name, n + 1, columns)
        out[0] = 0
        step = max(1, isqrt(n))
        whole = n // step * step
        parts, sums = rows[:whole].reshape(-1, step, columns), out[1 : whole + 1].reshape(-1, step, columns)
        for i in range(step if whole else 0):
            if i:
                np.add(sums[:, i - 1], parts[:, i], out=sums[:, i])
            else:
                sums[:, 0] = parts[:, 0]
        for i in range(1, len(sums)):
            sums[i] += sums[i - 1, -1]
        for i in range(whole, n):
            np.add(out[i], rows[i], out=out[i + 1])
        return out


@dataclass(frozen=True, eq=False)
class Drawn:
    """Scores and ratings of points in clusters, made ready for any number of samples.

    An entry stands for all points of one cluster that have one score and one rating.
    """

    clusters: NDArray[np.int64]
    counts: NDArray[np.float64]
    level: NDArray[np.int64]
    score: NDArray[np.int64]
    #: The entries in the order of their scores, where that is cut into distinct scores, and into levels.
    by_score: NDArray[np.int64]
    score_cuts: NDArray[np.int64]
    level_cuts: NDArray[np.int64]
    bits: tuple[_Bit, ...]
    #: Sums of every cluster: points, x, y, xx, xy, yy of standardised scores x and ratings y.
    sums: NDArray[np.float64]

    @classmethod
    def of(
        cls, scores: Float[ndarray, "n"], ratings: Float[ndarray, "n"], clusters: Int[ndarray, "n"]
    ) -> "Drawn":
        """The points; `clusters` are numbered from 0, and samples weigh the clusters up to the highest.

        Raises `InputError` for no points and for numbers that are not finite.
        """
        if not len(scores):
            raise InputError("no points to correlate")
        if not (np.isfinite(scores).all() and np.isfinite(ratings).all()):
            raise InputError("scores and ratings to correlate must be finite numbers")
        score = np.unique(scores, return_inverse=True)[1].reshape(-1)
        level = np.unique(ratings, return_inverse=True)[1].reshape(-1)
        # Sorted by level, then by score: the totals of levels are sums of neighbours.
        columns, counts = np.unique(np.stack([level, score, clusters]), axis=1, return_counts=True)
        level, score, cluster = columns.astype(np.int64)
        by_score = np.argsort(score, kind="stable")
        score_cuts = np.searchsorted(score[by_score], np.arange(score.max() + 2))
        level_cuts = np.searchsorted(level, np.arange(level.max() + 2))
        bits = [_bit(level, score, bit) for bit in range(int(level.max()).bit_length())]
        return cls(
            cluster, counts.astype(np.float64), level, score, by_score, score_cuts, level_cuts, tuple(bits),
            _cluster_sums(scores, ratings, clusters),
        )  # fmt: skip

    @property
    def n_clusters(self) -> int:
        """How many clusters a sample weighs."""
        return len(self.sums)

    def correlations(self, weights: Float[ndarray, "draws clusters"]) -> Float[ndarray, "draws 4"]:
        """tau-b, tau-c, Spearman's and Pearson's correlation (`MEASURES`) of each sample.

        `weights` says how often each cluster counts, in whole numbers: the values are those of the points
        written out as often. NaN where the scores or the ratings of the points that count are all equal.

        >>> x, y = np.array([0.1, 0.4, 0.4, 0.3]), np.array([1.0, 2.0, 3.0, 1.0])
        >>> Drawn.of(x, y, np.arange(4)).correlations(np.array([[1.0, 1, 1, 1], [0, 0, 2, 1]])).round(3)
        array([[0.8  , 0.75 , 0.889, 0.739],
               [1.   , 0.889, 1.   , 1.   ]])
        """
        rows, space = max(32, _AT_ONCE // len(self.clusters)), _Space()
        found = [
            self._block(np.ascontiguousarray(weights[i : i + rows].T, dtype=np.float64), space)
            for i in range(0, len(weights), rows)
        ]
        return np.concatenate([*found, np.empty((0, len(MEASURES)))])

    def _block(self, weights: NDArray[np.float64], space: "_Space") -> NDArray[np.float64]:
        """The same of a few samples, given as columns."""
        entries = space.rows("entries", weights, self.clusters)
        if self.counts.max() > 1:
            entries *= self.counts[:, None]
        n = entries.sum(axis=0)
        # Of each score and of each level: how much weighs the same, and how much more lies below than above.
        of_score, rank_score = _ranked(
            space.running("below", space.rows("sorted", entries, self.by_score))[self.score_cuts], n
        )
        of_level, rank_level = _ranked(space.running("levels", _sums(entries, self.level_cuts)), n)
        classes = np.minimum((of_score > 0).sum(axis=0), (of_level > 0).sum(axis=0))
        pairs = n * n
        untied_scores = pairs - _dot(of_score, of_score)
        untied_levels = pairs - _dot(of_level, of_level)
        order = 2 * self._order(entries, space)
        along = space.rows("along", rank_score, self.score)
        along *= entries
        spearman = _cosine(
            _dot(_sums(along, self.level_cuts), rank_level),
            _dot(of_score, rank_score * rank_score),
            _dot(of_level, rank_level * rank_level),
        )
        points, x, y, xx, xy, yy = self.sums.T @ weights
        points = np.maximum(points, 1)
        pearson = _cosine(xy - x * y / points, xx - x * x / points, yy - y * y / points)
        tau_c = np.divide(order * classes, pairs * (classes - 1), out=np.zeros_like(order), where=classes > 1)
        found = np.stack([_cosine(order, untied_scores, untied_levels), tau_c, spearman, pearson], axis=1)
        found[classes < 2] = np.nan
        clipped: NDArray[np.float64] = np.clip(found, -1.0, 1.0)
        return clipped

    def _order(self, entries: NDArray[np.float64], space: "_Space") -> NDArray[np.float64]:
        """Pairs of points in the same order by score and level, less those in opposite orders."""
        total = np.zeros(entries.shape[1])
        for bit in self.bits:
            below = space.running("below", space.rows("sorted", entries, bit.without))
            having = space.rows("having", entries, bit.having)
            for place in (bit.first, bit.last):
                total += _dot(having, space.rows("along", below, place))
            ends = below[bit.cuts_without]
            for i, (start, stop) in enumerate(pairwise(bit.cuts_having)):
                total -= having[start:stop].sum(axis=0) * (ends[i] + ends[i + 1])
        return total


def _bit(level: NDArray[np.int64], score: NDArray[np.int64], bit: int) -> _Bit:
    segment, has = level >> (bit + 1), (level >> bit) & 1 == 1
    # One number for segment and score, so that places are found by bisection.
    width = int(score.max()) + 2
    key = segment * width + score
    order = np.argsort(key, kind="stable")
    without, having = order[~has[order]], order[has[order]]
    keys, asked = key[without], key[having]
    cuts = np.arange(int(segment.max()) + 2) * width
    return _Bit(
        without,
        having,
        np.searchsorted(keys, asked, side="left"),
        np.searchsorted(keys, asked, side="right"),
        np.searchsorted(keys, cuts),
        np.searchsorted(asked, cuts),
    )


def _cluster_sums(
    scores: NDArray[np.float64], ratings: NDArray[np.float64], clusters: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Sums whose weighted sums are exact: standardised numbers, rounded so that they are whole multiples."""
    x, y = _standardised(scores), _standardised(ratings)
    columns = [np.ones(len(x)), x, y, x * x, x * y, y * y]
    size = int(clusters.max()) + 1
    sums = np.stack([np.bincount(clusters, weights=column, minlength=size) for column in columns], axis=1)
    # A sample has as many clusters as there are, and may be the largest one again and again.
    reach = size * float(np.abs(sums).max(initial=1.0))
    unit = 2.0 ** np.ceil(np.log2(reach) - 52)
    whole: NDArray[np.float64] = np.rint(sums / unit) * unit
    return whole


def _standardised(values: NDArray[np.float64]) -> NDArray[np.float64]:
    moved = values - values.mean()
    spread = float(np.abs(moved).max())
    return moved if spread == 0 else moved / spread


def _ranked(
    below: NDArray[np.float64], n: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Weights of distinct values, and twice the middle rank of each less twice the mean of all ranks.

    `below` is how much weighs less than each value, and last all of it.
    """
    return np.diff(below, axis=0), below[:-1] + below[1:] - n


def _sums(rows: NDArray[np.float64], cuts: NDArray[np.int64]) -> NDArray[np.float64]:
    """The sum of the rows between each cut and the next."""
    return np.stack([rows[start:stop].sum(axis=0) for start, stop in pairwise(cuts)])


def _dot(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    found: NDArray[np.float64] = np.einsum("ij,ij->j", first, second)
    return found


def _cosine(
    product: NDArray[np.float64], first: NDArray[np.float64], second: NDArray[np.float64]
) -> NDArray[np.float64]:
    """product / sqrt(first * second), exactly 1 where all three are equal; 0 where one of the two is 0."""
    some = (first > 0) & (second > 0)
    ratio = np.divide(first, second, out=np.zeros_like(first), where=some)
    return np.divide(product, first, out=np.zeros_like(first), where=some) * np.sqrt(ratio)
