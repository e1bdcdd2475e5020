"""Pairs of points in the same order by score and by level, less pairs in opposite orders, in many samples.

This is the numerator of Kendall's correlations. A sample weighs whole clusters of points, and a pair counts
as often as the product of the weights of its points. There are two ways to it, of equal results:

* `ByClusters`: what any two clusters add, once for all samples; a sample is then a quadratic form of its
  weights, and many samples are one product of matrices. It takes clusters squared numbers to hold;
* `ByBits`, for more clusters than that: pairs are counted bit by bit of the level's number. Two levels differ
  in a highest bit; the points whose levels agree above it are a segment, and in it the pairs of one with the
  bit and one without are counted by running sums over the scores: O(n log levels) for each sample.

Both count in whole numbers, which are exact, so they give the same bits.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray
from numpy.typing import NDArray

#: Numbers that the table of `ByClusters`, or what it is made with, may hold (256 MiB).
_MOST = 1 << 26

#: Steps that making it may take (a few seconds).
_WORK = 1 << 30

#: Whole numbers below this are exact in float32.
_EXACT_32 = 2.0**24

#: Columns of one part of the product of matrices.
_PART = 1024


@dataclass(frozen=True, eq=False)
class Entries:
    """Points with scores and levels as numbers from 0; an entry is `counts` equal points of a cluster.

    Sorted by level, then by score.
    """

    clusters: Int[ndarray, "entries"]
    counts: Int[ndarray, "entries"]
    level: Int[ndarray, "entries"]
    score: Int[ndarray, "entries"]
    n_clusters: int

    @property
    def n_levels(self) -> int:
        """How many levels there are."""
        return int(self.level[-1]) + 1

    def chosen(self, rows: Int[ndarray, "some"]) -> "Chosen":
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
        found: NDArray[np.int64] = np.take(weights, self.clusters, axis=1, mode="clip")
        if self.counts is not None:
            found *= self.counts
        return found


@dataclass(frozen=True, eq=False)
class ByClusters:
    """What any two clusters add, above the diagonal of `pairs`, and each with itself; `sizes` are points."""

    pairs: Float[ndarray, "clusters clusters"]
    own: Float[ndarray, "clusters"]
    sizes: Float[ndarray, "clusters"]

    @classmethod
    def fits(cls, entries: Entries) -> bool:
        """Whether the table is small enough to hold, and to make."""
        clusters, levels = entries.n_clusters, entries.n_levels
        made = len(entries.clusters) * (clusters + levels)
        return clusters * max(clusters, levels) <= _MOST and made <= _WORK

    @classmethod
    def of(cls, entries: Entries) -> "ByClusters":
        """The table of all pairs: points pass in the order of their scores.

        `order` holds for each level and cluster what a point of this level, if it passed now, would make with
        the cluster: the sum over the cluster's points of the sign of (level - the point's), times 1 for
        points that have passed and -1 for those that have not.
        """
        n, levels = entries.n_clusters, entries.n_levels
        place = entries.level * n + entries.clusters
        sizes = np.bincount(place, weights=entries.counts, minlength=levels * n).reshape(levels, n)
        order = (sizes.sum(axis=0) - 2 * np.cumsum(sizes, axis=0) + sizes).astype(np.float32)
        signs = np.sign(np.arange(1 - levels, levels)).astype(np.float32)
        pairs = np.zeros((n, n), dtype=np.float32)
        by_score = np.argsort(entries.score, kind="stable")
        passing = [of[by_score].tolist() for of in (entries.clusters, entries.counts, entries.level)]
        cuts = np.flatnonzero(np.diff(entries.score[by_score])) + 1
        for start, stop in pairwise([0, *cuts.tolist(), len(by_score)]):
            group = [(of[start:stop]) for of in passing]
            # Points of equal scores make nothing with each other: they are neither before nor behind.
            for cluster, count, level in zip(*group, strict=True):
                order[:, cluster] += count * signs[levels - 1 - level : 2 * levels - 1 - level]
            for cluster, count, level in zip(*group, strict=True):
                pairs[cluster] += count * order[level]
            for cluster, count, level in zip(*group, strict=True):
                order[:, cluster] += count * signs[levels - 1 - level : 2 * levels - 1 - level]
        own = np.diagonal(pairs).astype(np.float64)
        for row in range(n):
            pairs[row, : row + 1] = 0
        return cls(pairs, own, sizes.sum(axis=0))

    def sums(self, weights: Int[ndarray, "draws clusters"]) -> Float[ndarray, "draws"]:
        """Pairs in the same order less pairs in opposite orders, of each sample."""
        exact = weights.astype(np.float64)
        total = exact**2 @ self.own
        # What a sample makes with a cluster is at most this; if that is not exact in float32, nothing is.
        most = float((exact @ self.sizes).max(initial=0)) * float(self.sizes.max())
        pairs, rows = self.pairs, exact
        if most < _EXACT_32:
            rows = weights.astype(np.float32)
        for start in range(0, len(pairs), _PART):
            part = slice(start, start + _PART)
            made = rows[:, : start + _PART] @ pairs[: start + _PART, part].astype(rows.dtype, copy=False)
            total += 2 * np.einsum("ij,ij->i", made.astype(np.float64, copy=False), exact[:, part])
        return total


@dataclass(frozen=True, eq=False)
class _Bit:
    """The pairs of entries whose levels differ in this bit first.

    `without` and `having` lie in the order of segments and scores. For each entry of `having`, `first` of
    those in `without` score less or are of an earlier segment, and `last` score no more; its segment's lie
    between `start` and `stop`.
    """

    without: Chosen
    having: Chosen
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    start: NDArray[np.int64]
    stop: NDArray[np.int64]

    @classmethod
    def of(cls, entries: Entries, bit: int) -> "_Bit":
        """That of one bit, counted from the lowest."""
        segment, has = entries.level >> (bit + 1), (entries.level >> bit) & 1 == 1
        # One number for segment and score, so that places are found by bisection.
        width = int(entries.score.max()) + 2
        key = segment * width + entries.score
        order = np.argsort(key, kind="stable")
        without, having = order[~has[order]], order[has[order]]
        keys, asked = key[without], key[having]
        edges = segment[having] * width
        return cls(
            entries.chosen(without),
            entries.chosen(having),
            np.searchsorted(keys, asked, side="left"),
            np.searchsorted(keys, asked, side="right"),
            np.searchsorted(keys, edges),
            np.searchsorted(keys, edges + width),
        )


@dataclass(frozen=True, eq=False)
class ByBits:
    """The pairs of entries, bit by bit of the level's number."""

    bits: tuple[_Bit, ...]

    @classmethod
    def of(cls, entries: Entries) -> "ByBits":
        """All bits that a level's number can have."""
        highest = (entries.n_levels - 1).bit_length()
        return cls(tuple(_Bit.of(entries, bit) for bit in range(highest)))

    def sums(self, weights: Int[ndarray, "draws clusters"]) -> Float[ndarray, "draws"]:
        """Pairs in the same order less pairs in opposite orders, of each sample."""
        total = np.zeros(len(weights), dtype=np.int64)
        for bit in self.bits:
            below = running(bit.without.weighed(weights))
            places = [np.take(below, place, axis=1, mode="clip") for place in (bit.first, bit.last)]
            edges = [np.take(below, place, axis=1, mode="clip") for place in (bit.start, bit.stop)]
            having = bit.having.weighed(weights)
            total += np.einsum("ij,ij->i", having, places[0] + places[1] - edges[0] - edges[1])
        return 2 * total.astype(np.float64)


def running(weights: Int[ndarray, "draws n"]) -> Int[ndarray, "draws m"]:
    """The sums of the weights before each entry, and last of all.

    >>> running(np.array([[2, 0, 1]]))
    array([[0, 2, 2, 3]])
    """
    found = np.empty((len(weights), weights.shape[1] + 1), dtype=np.int64)
    found[:, 0] = 0
    np.cumsum(weights, axis=1, out=found[:, 1:])
    return found
