"""Correlations of scores with ratings in many samples at once, each of which weighs whole clusters of points.

Kendall's numerator is the pairs of points in the same order by score and by level, less those in opposite
orders; a pair counts as the product of its weights. Pairs are counted bit by bit of the level's number: two
levels differ in a highest bit, the points whose levels agree above it are a segment, and in a segment pairs
of one with the bit and one without are counted by running sums over the scores: O(n log levels) per sample.

All but Pearson's is arithmetic of whole numbers, exact up to 200,000 points: equal samples give equal bits.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray
from numpy.typing import NDArray

from counterfoil.errors import InputError
from counterfoil.metrics import correlation


@dataclass(frozen=True, eq=False)
class SortedPoints:
    """The cluster, level and score of each point, as numbers from 0."""

    clusters: Int[ndarray, "n"]
    level: Int[ndarray, "n"]
    score: Int[ndarray, "n"]


def columns(table: Int[ndarray, "draws n"], chosen: Int[ndarray, "m"]) -> Int[ndarray, "draws m"]:
    # Places are right by construction; the default mode would copy through a buffer.
    return np.asarray(np.take(table, chosen, axis=1, mode="clip"))


@dataclass(frozen=True, eq=False)
class _Bit:
    """The pairs of points whose levels differ in this bit first.

    `without` and `having` are their clusters, in the order of segments and scores. For each of `having`,
    `first` of those in `without` score less or are of an earlier segment, and `last` score no more. Each
    segment with a point of `having` has them from `starts` on; those of `without` lie between `edges`.
    """

    without: NDArray[np.int64]
    having: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    starts: NDArray[np.int64]
    edges: NDArray[np.int64]

    @classmethod
    def of(cls, points: SortedPoints, bit: int) -> "_Bit":
        segment, has = points.level >> (bit + 1), (points.level >> bit) & 1 == 1
        # One number for segment and score, so that places are found by bisection.
        width = int(points.score.max()) + 2
        key = segment * width + points.score
        order = np.argsort(key, kind="stable")
        without, having = order[~has[order]], order[has[order]]
        keys, having_keys = key[without], key[having]
        segments, starts = np.unique(segment[having], return_index=True)
        clusters = points.clusters[without], points.clusters[having]
        first, last = (np.searchsorted(keys, having_keys, side=side) for side in ("left", "right"))
        edges = np.searchsorted(keys, np.stack([segments, segments + 1]) * width)
        return cls(*clusters, first, last, starts, edges)

    def sums(self, weights: Int[ndarray, "draws clusters"]) -> Int[ndarray, "draws"]:
        """Half the pairs in the same order less half those in opposite orders, of each sample."""
        below, having = _running(columns(weights, self.without)), columns(weights, self.having)
        order = columns(below, self.first)
        order += order if self.untied else columns(below, self.last)
        # What lies below a segment, and below its end, is the same for all of it.
        of_segment = np.add.reduceat(having, self.starts, axis=1)
        return _dot(having, order) - _dot(of_segment, below[:, self.edges].sum(axis=1))

    @cached_property
    def untied(self) -> bool:
        return np.array_equal(self.first, self.last)


def _running(weights: Int[ndarray, "draws n"]) -> Int[ndarray, "draws m"]:
    """The sums of the weights before each entry, and last of all."""
    sums = np.empty((len(weights), weights.shape[1] + 1), dtype=np.int64)
    sums[:, 0] = 0
    np.cumsum(weights, axis=1, out=sums[:, 1:])
    return sums


#: The columns of `WeightedCorrelation.correlations`.
MEASURES = tuple(correlation.MEASURES)

#: Numbers that one array may hold (2 MiB), so that passes stay near the processor.
_AT_ONCE = 1 << 18


@dataclass(frozen=True, eq=False)
class WeightedCorrelation:
    """Scores and ratings of points in clusters, made ready for any number of samples."""

    #: By level, then by score.
    points: SortedPoints
    #: Sums of every cluster: points, x, y, xx, xy, yy of standardised scores x and ratings y.
    sums: NDArray[np.float64]

    @classmethod
    def of(
        cls, scores: Float[ndarray, "n"], ratings: Float[ndarray, "n"], clusters: Int[ndarray, "n"]
    ) -> "WeightedCorrelation":
        """The points; `clusters` are numbered from 0. Raises `InputError` for none, and NaN or infinity."""
        if not len(scores):
            raise InputError("no points to correlate")
        if not (np.isfinite(scores).all() and np.isfinite(ratings).all()):
            raise InputError("scores and ratings to correlate must be finite numbers")
        score = np.unique(scores, return_inverse=True)[1].reshape(-1)
        level = np.unique(ratings, return_inverse=True)[1].reshape(-1)
        order, size = np.lexsort((score, level)), int(clusters.max()) + 1
        points = SortedPoints(*(of[order].astype(np.int64) for of in (clusters, level, score)))
        x, y = _standardised(scores), _standardised(ratings)
        products = [np.ones(len(x)), x, y, x * x, x * y, y * y]
        sums = np.stack([np.bincount(clusters, weights=part, minlength=size) for part in products], axis=1)
        # Rounded so that weighted sums are exact, also of the largest cluster again and again.
        reach = size * float(np.abs(sums).max(initial=1.0))
        unit = 2.0 ** np.ceil(np.log2(reach) - 52)
        return cls(points, np.rint(sums / unit) * unit)

    @property
    def n_clusters(self) -> int:
        return len(self.sums)

    def correlations(self, weights: Float[ndarray, "draws clusters"]) -> Float[ndarray, "draws 4"]:
        """tau-b, tau-c, Spearman's and Pearson's correlation (`MEASURES`) of each sample.

        `weights` says how often each cluster counts, in whole numbers: the values are those of the points
        written out as often. NaN where the scores or the ratings of the points that count are all equal.

        >>> x, y = np.array([0.1, 0.4, 0.4, 0.3]), np.array([1.0, 2.0, 3.0, 1.0])
        >>> weights = np.array([[1.0, 1, 1, 1], [0, 0, 2, 1]])
        >>> WeightedCorrelation.of(x, y, np.arange(4)).correlations(weights).round(3)
        array([[0.8  , 0.75 , 0.889, 0.739],
               [1.   , 0.889, 1.   , 1.   ]])
        """
        rows, tables = max(1, _AT_ONCE // len(self.points.clusters)), [np.empty((0, len(MEASURES)))]
        by_score, (score_starts, level_starts) = self._by_score, self._starts
        for start in range(0, len(weights), rows):
            whole = weights[start : start + rows].astype(np.int64)
            order = self.order(whole)
            along = columns(whole, by_score.clusters)
            n = along.sum(axis=1)
            untied = len(score_starts) == along.shape[1]
            of_score = along if untied else np.add.reduceat(along, score_starts, axis=1)
            of_level = np.add.reduceat(columns(whole, self.points.clusters), level_starts, axis=1)
            rank, rank_level = _ranks(of_score), _ranks(of_level)
            classes, squares, cubes = zip(_ties(of_score), _ties(of_level), strict=True)
            along = along * (rank if untied else columns(rank, by_score.score))
            fewer = np.minimum(*classes)
            product = _dot(along, columns(rank_level, by_score.level))
            # Twice the middle ranks, less their mean, have squares that sum to (n^3 - sum of cubed ties) / 3.
            spearman = _cosine(product, *((n**3 - of) // 3 for of in cubes))
            points, x, y, xx, xy, yy = (whole.astype(np.float64) @ self.sums).T
            points = np.maximum(points, 1)
            pearson = _cosine(xy - x * y / points, xx - x * x / points, yy - y * y / points)
            pairs = (n * n).astype(np.float64)
            tau_c = np.divide(order * fewer, pairs * (fewer - 1), out=np.zeros_like(order), where=fewer > 1)
            tau_b = _cosine(order, *(n * n - of for of in squares))
            table = np.stack([tau_b, tau_c, spearman, pearson], axis=1)
            table[fewer < 2] = np.nan
            tables.append(np.clip(table, -1.0, 1.0))
        return np.concatenate(tables)

    def order(self, weights: Int[ndarray, "draws clusters"]) -> Float[ndarray, "draws"]:
        """Kendall's numerator: pairs in the same order less pairs in opposite orders, of each sample."""
        return 2.0 * sum((bit.sums(weights) for bit in self._bits), np.zeros(len(weights)))

    @cached_property
    def _bits(self) -> tuple[_Bit, ...]:
        highest = int(self.points.level[-1]).bit_length()
        return tuple(_Bit.of(self.points, bit) for bit in range(highest))

    @cached_property
    def _by_score(self) -> SortedPoints:
        points = self.points
        rows = np.argsort(points.score, kind="stable")
        return SortedPoints(points.clusters[rows], points.level[rows], points.score[rows])

    @cached_property
    def _starts(self) -> tuple[NDArray[np.int64], ...]:
        """Where each score begins in that order, and each level in the order of levels."""
        return tuple(np.unique(of, return_index=True)[1] for of in (self._by_score.score, self.points.level))


def _standardised(values: NDArray[np.float64]) -> NDArray[np.float64]:
    moved = values - values.mean()
    spread = float(np.abs(moved).max())
    return moved if spread == 0 else moved / spread


def _ranks(weights: NDArray[np.int64]) -> NDArray[np.int64]:
    """Twice the middle rank of each of some distinct values, less twice the mean of all ranks."""
    before = _running(weights)
    return before[:, :-1] + before[:, 1:] - before[:, -1:]


def _ties(weights: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
    """Of each sample how many values there are, and the sums of the squares and cubes of their weights."""
    squared = weights * weights
    return np.count_nonzero(weights, axis=1), squared.sum(axis=1), _dot(squared, weights)


def _dot(first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.asarray(np.einsum("ij,ij->i", first, second))


def _cosine(product: ndarray, first: ndarray, second: ndarray) -> NDArray[np.float64]:
    """product / sqrt(first * second), exactly 1 where all three are equal; 0 where one of the two is 0."""
    product, first, second = (of.astype(np.float64, copy=False) for of in (product, first, second))
    some = (first > 0) & (second > 0)
    ratio = np.divide(first, second, out=np.zeros_like(first), where=some)
    return np.divide(product, first, out=np.zeros_like(first), where=some) * np.sqrt(ratio)


# To first order a sample's error is the sum of influences over its points. Kendall's numerator is the sum of
# w_i w_j s_ij, of which the derivative is 2 q_i with q_i = sum_j s_ij; what it is divided by counts ties and
# moves too. Spearman's is Pearson's of ranks that move with the weights.


def influences(scores: Float[ndarray, "n"], ratings: Float[ndarray, "n"]) -> Float[ndarray, "n 4"]:
    """The derivative of tau-b, tau-c, Spearman's and Pearson's correlation by the weight of each point.

    Columns sum to 0; NaN where all scores or all ratings are equal. Source: the infinitesimal jackknife, B.
    Efron, The jackknife, the bootstrap and other resampling plans, 1982, section 6.

    >>> influences(np.array([0.1, 0.2, 0.4]), np.array([1.0, 2.0, 2.0])).sum(axis=0).round(12) + 0.0
    array([0., 0., 0., 0.])
    """
    n = len(scores)
    if any(np.ptp(column) == 0 for column in (scores, ratings)):
        return np.full((n, len(MEASURES)), np.nan)
    x, y = (np.rint(2 * correlation.middle_ranks(column)).astype(np.int64) for column in (scores, ratings))
    concordant = np.zeros(n)
    level = np.unique(ratings, return_inverse=True)[1].reshape(-1)
    for one in range(int(level.max()) + 1):
        of_level = upto(x, (level == one).astype(np.float64))
        concordant += np.sign(level - one) * balance(of_level, x)
    total = float(concordant.sum())
    ties = [np.bincount(rank)[rank].astype(np.float64) for rank in (x, y)]
    untied = [n * n - float(tie.sum()) for tie in ties]
    norm = np.sqrt(untied[0] * untied[1])
    moved = sum((n - tie) / pairs for tie, pairs in zip(ties, untied, strict=True))
    tau_b = 2 * concordant / norm - total / norm * moved
    classes = min(len(np.unique(x)), len(np.unique(y)))
    tau_c = 2 * (concordant / n**2 - total / n**3) * classes / (classes - 1)
    a, b = x - (n + 1.0), y - (n + 1.0)
    product, of_a, of_b = float(a @ b), float(a @ a), float(b @ b)
    moved = a * b - balance(upto(x, b), x) - balance(upto(y, a), y)
    moved_a, moved_b = a * a - 2 * balance(upto(x, a), x), b * b - 2 * balance(upto(y, b), y)
    norm = np.sqrt(of_a * of_b)
    spearman = moved / norm - product / norm / 2 * (moved_a / of_a + moved_b / of_b)
    a, b = ((column - column.mean()) / column.std() for column in (scores, ratings))
    pearson = (a * b - float(a @ b) / n * (a * a + b * b) / 2) / n
    return np.stack([tau_b, tau_c, spearman, pearson], axis=1)


def upto(ranks: NDArray[np.int64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """How much weighs up to each of the ranks 0, 1, ..., 2 n."""
    return np.asarray(np.cumsum(np.bincount(ranks, weights=weights, minlength=2 * len(ranks) + 1)))


def balance(upto: NDArray[np.float64], ranks: NDArray[np.int64]) -> NDArray[np.float64]:
    """How much weighs below each of some ranks, less what weighs above it."""
    return np.asarray(upto[ranks - 1] + upto[ranks] - upto[-1])
