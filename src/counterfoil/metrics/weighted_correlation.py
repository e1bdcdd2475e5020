"""Correlations of scores with ratings in many samples at once, each of which weighs whole clusters of points.

A bootstrap asks for thousands of correlations of the same points, which differ only in how often each
cluster was drawn. What depends on the points alone (their order, who ties with whom) is worked out once.
Spearman's is a sum over the points in the order of their scores: a sample costs some passes over them.
Kendall's numerator is the pairs of points in the same order by score and by level, less those in opposite
orders; a pair counts as often as the product of the weights of its points. Pairs are counted bit by bit of
the level's number: two levels differ in a highest bit; the points whose levels agree above it are a segment,
and in it the pairs of one with the bit and one without are counted by running sums over the scores:
O(n log levels) for each sample.

All of it but Pearson's is arithmetic of whole numbers, exact up to 200,000 points, so equal samples give
equal bits, and the values are those of scipy on the points written out as often as they weigh.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray
from numpy.typing import NDArray

from counterfoil.errors import InputError
from counterfoil.metrics import correlation
from counterfoil.metrics.correlation import middle_ranks


@dataclass(frozen=True, eq=False)
class Entries:
    """Points with scores and levels as numbers from 0; an entry is `counts` equal points of a cluster.

    Sorted by level, then by score.
    """

    clusters: Int[ndarray, "entries"]
    counts: Int[ndarray, "entries"]
    level: Int[ndarray, "entries"]
    score: Int[ndarray, "entries"]

    def chosen(self, rows: Int[ndarray, "some"] | slice) -> "Chosen":
        """Some of the entries, in this order."""
        counts = self.counts[rows]
        return Chosen(self.clusters[rows], counts if counts.max(initial=1) > 1 else None)


@dataclass(frozen=True, eq=False)
class Chosen:
    """Clusters of some entries, and their counts unless all are 1."""

    clusters: Int[ndarray, "some"]
    counts: Int[ndarray, "some"] | None

    def weighed(self, weights: Int[ndarray, "draws clusters"]) -> Int[ndarray, "draws some"]:
        """What each of them weighs in each sample."""
        # Positions are right by construction; the default mode would copy through a buffer.
        rows: NDArray[np.int64] = np.take(weights, self.clusters, axis=1, mode="clip")
        if self.counts is not None:
            rows *= self.counts
        return rows


@dataclass(frozen=True, eq=False)
class _Bit:
    """The pairs of entries whose levels differ in this bit first.

    `without` and `having` lie in the order of segments and scores. For each entry of `having`, `first` of
    those in `without` score less or are of an earlier segment, and `last` score no more (None where these are
    the same). Segments are cut at `without_cuts` and `having_cuts`.
    """

    without: Chosen
    having: Chosen
    first: NDArray[np.int64]
    last: NDArray[np.int64] | None
    without_cuts: NDArray[np.int64]
    having_cuts: NDArray[np.int64]

    @classmethod
    def of(cls, entries: Entries, bit: int) -> "_Bit":
        """That of one bit, counted from the lowest."""
        segment, has = entries.level >> (bit + 1), (entries.level >> bit) & 1 == 1
        # One number for segment and score, so that places are found by bisection.
        width = int(entries.score.max()) + 2
        key = segment * width + entries.score
        order = np.argsort(key, kind="stable")
        without, having = order[~has[order]], order[has[order]]
        keys, having_keys = key[without], key[having]
        edges = np.arange(int(segment.max()) + 2) * width
        first, last = (np.searchsorted(keys, having_keys, side=side) for side in ("left", "right"))
        return cls(
            entries.chosen(without),
            entries.chosen(having),
            first,
            None if (first == last).all() else last,
            np.searchsorted(keys, edges),
            np.searchsorted(having_keys, edges),
        )

    def sums(self, weights: Int[ndarray, "draws clusters"]) -> Int[ndarray, "draws"]:
        """Half the pairs in the same order less half those in opposite orders, of each sample."""
        below, having = running(self.without.weighed(weights)), self.having.weighed(weights)
        order = np.take(below, self.first, axis=1, mode="clip")
        order += order if self.last is None else np.take(below, self.last, axis=1, mode="clip")
        # What lies below a segment, and below its end, is the same for all of it.
        edges, of_segment = below[:, self.without_cuts], np.diff(running(having)[:, self.having_cuts])
        return _dot(having, order) - _dot(of_segment, edges[:, :-1] + edges[:, 1:])


def running(weights: Int[ndarray, "draws n"]) -> Int[ndarray, "draws m"]:
    """The sums of the weights before each entry, and last of all.

    >>> running(np.array([[2, 0, 1]]))
    array([[0, 2, 2, 3]])
    """
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

    entries: Entries
    #: Sums of every cluster: points, x, y, xx, xy, yy of standardised scores x and ratings y.
    sums: NDArray[np.float64]

    @classmethod
    def of(
        cls, scores: Float[ndarray, "n"], ratings: Float[ndarray, "n"], clusters: Int[ndarray, "n"]
    ) -> "WeightedCorrelation":
        """The points; `clusters` are numbered from 0, and samples weigh the clusters up to the highest.

        Raises `InputError` for no points and for numbers that are not finite.
        """
        if not len(scores):
            raise InputError("no points to correlate")
        if not (np.isfinite(scores).all() and np.isfinite(ratings).all()):
            raise InputError("scores and ratings to correlate must be finite numbers")
        score = np.unique(scores, return_inverse=True)[1].reshape(-1)
        level = np.unique(ratings, return_inverse=True)[1].reshape(-1)
        columns, counts = np.unique(np.stack([level, score, clusters]), axis=1, return_counts=True)
        level, score, cluster = columns.astype(np.int64)
        entries = Entries(cluster, counts.astype(np.int64), level, score)
        x, y = _standardised(scores), _standardised(ratings)
        products = [np.ones(len(x)), x, y, x * x, x * y, y * y]
        size = int(cluster.max()) + 1
        sums = np.stack([np.bincount(clusters, weights=part, minlength=size) for part in products], axis=1)
        # Rounded so that weighted sums are exact: a sample has as many clusters as there are, and may be the
        # largest one again and again.
        reach = size * float(np.abs(sums).max(initial=1.0))
        unit = 2.0 ** np.ceil(np.log2(reach) - 52)
        return cls(entries, np.rint(sums / unit) * unit)

    @property
    def n_clusters(self) -> int:
        """How many clusters a sample weighs."""
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
        whole = weights.astype(np.int64)
        rows = max(1, _AT_ONCE // len(self.entries.clusters))
        blocks = [self._block(whole[i : i + rows]) for i in range(0, len(whole), rows)]
        return np.concatenate([np.empty((0, len(MEASURES))), *blocks])

    def order(self, weights: Int[ndarray, "draws clusters"]) -> Float[ndarray, "draws"]:
        """Kendall's numerator: pairs in the same order less pairs in opposite orders, of each sample."""
        return 2.0 * sum((bit.sums(weights) for bit in self._bits), np.zeros(len(weights)))

    @cached_property
    def _bits(self) -> tuple[_Bit, ...]:
        highest = int(self.entries.level[-1]).bit_length()
        return tuple(_Bit.of(self.entries, bit) for bit in range(highest))

    @cached_property
    def _sorted(self) -> tuple[tuple[Chosen, NDArray[np.int64]], ...]:
        """The entries by their scores, and by their levels, each with the cuts between values."""
        entries, orders = self.entries, []
        for values, rows in ((entries.score, self._by_score[0]), (entries.level, slice(None))):
            cuts = np.searchsorted(values[rows], np.arange(int(values.max()) + 2))
            orders.append((entries.chosen(rows), cuts))
        return tuple(orders)

    @cached_property
    def _by_score(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """The rows of the entries in the order of their scores, and the score and the level of each."""
        rows = np.argsort(self.entries.score, kind="stable")
        return rows, self.entries.score[rows], self.entries.level[rows]

    def _block(self, weights: Int[ndarray, "draws clusters"]) -> Float[ndarray, "draws 4"]:
        """The same of a few samples."""
        order = self.order(weights)
        along, levels = (chosen.weighed(weights) for chosen, _ in self._sorted)
        n = along.sum(axis=1)
        # Of each score and of each level: how much weighs the same, and how much more lies below than above.
        (of_score, rank), (of_level, rank_level) = (
            _ranked(np.take(running(weighed), cuts, axis=1, mode="clip"))
            for weighed, (_, cuts) in zip((along, levels), self._sorted, strict=True)
        )
        _, score, level = self._by_score
        along *= np.take(rank, score, axis=1, mode="clip")
        classes, squares, cubes = zip(_ties(of_score), _ties(of_level), strict=True)
        fewer = np.minimum(*classes)
        product = _dot(along, np.take(rank_level, level, axis=1, mode="clip"))
        # Twice the middle ranks, less their mean, have squares that sum to (n^3 - sum of cubed ties) / 3.
        spearman = _cosine(product, *((n**3 - of) // 3 for of in cubes))
        points, x, y, xx, xy, yy = (weights.astype(np.float64) @ self.sums).T
        points = np.maximum(points, 1)
        pearson = _cosine(xy - x * y / points, xx - x * x / points, yy - y * y / points)
        pairs = (n * n).astype(np.float64)
        tau_c = np.divide(order * fewer, pairs * (fewer - 1), out=np.zeros_like(order), where=fewer > 1)
        tau_b = _cosine(order, *(n * n - of for of in squares))
        table = np.stack([tau_b, tau_c, spearman, pearson], axis=1)
        table[fewer < 2] = np.nan
        return np.asarray(np.clip(table, -1.0, 1.0))


def _standardised(values: NDArray[np.float64]) -> NDArray[np.float64]:
    moved = values - values.mean()
    spread = float(np.abs(moved).max())
    return moved if spread == 0 else moved / spread


def _ranked(before: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Weights of distinct values, and twice the middle rank of each less twice the mean of all ranks.

    `before` is how much weighs less than each value, and last all of it.
    """
    return np.diff(before, axis=1), before[:, :-1] + before[:, 1:] - before[:, -1:]


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


# Influences: the derivative of a correlation by the weight of a point. To first order a sample's error is the
# sum of these over its points, so variances of correlations are those of sums, whatever the points share.
# Kendall's numerator is S = sum w_i w_j s_ij over ordered pairs, of which the derivative is 2 q_i with q_i =
# sum_j s_ij; what it is divided by counts ties and has derivatives of its own. Spearman's is Pearson's of
# ranks that move with the weights: a rank is (up to constants) sum_j w_j sgn(x_i - x_j).


def influences(scores: Float[ndarray, "n"], ratings: Float[ndarray, "n"]) -> Float[ndarray, "n 4"]:
    """The derivative of tau-b, tau-c, Spearman's and Pearson's correlation by the weight of each point.

    Columns sum to 0. NaN where all scores or all ratings are equal.

    Source: the infinitesimal jackknife, B. Efron, The jackknife, the bootstrap and other resampling plans,
    1982, section 6.

    >>> influences(np.array([0.1, 0.2, 0.4]), np.array([1.0, 2.0, 2.0])).sum(axis=0).round(12) + 0.0
    array([0., 0., 0., 0.])
    """
    n = len(scores)
    if any(np.ptp(column) == 0 for column in (scores, ratings)):
        return np.full((n, len(MEASURES)), np.nan)
    x, y = (np.rint(2 * middle_ranks(column)).astype(np.int64) for column in (scores, ratings))
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
