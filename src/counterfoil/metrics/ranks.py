"""The rank of every right answer of a query in a gallery, and nothing else of the scores.

Measures of retrieval need a few whole numbers per positive: how many wrong items score strictly above it, how
many the same, how many positives above. `positive_ranks` counts them in a block of scores (some queries x the
whole gallery), `list_places` finds them in lists that another program ranked and perhaps truncated.

`tally` counts the gallery part by part: a block of some images x all captions ranks the captions for those
images, but holds for each caption only a part of its gallery. Counts add up: where the scores of a caption's
positives are known beforehand, one matrix product serves both directions.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from jaxtyping import Bool, Float, Int, Real
from numpy import ndarray

from counterfoil.errors import InputError, ScoreError

# With this many positives of a query, sorting all scores once is faster than comparing them with each.
_SORT_FROM = 60


@dataclass(frozen=True)
class Qrels:
    """The right answers of each query: those of query q are `items[starts[q]:starts[q + 1]]`.

    Items are columns of the gallery; -1 is a right answer that the gallery does not hold: never found, but
    counted in R. `gains` are above 0: 1 for a full match, less for a partial one.
    """

    starts: Int[ndarray, "bounds"]
    items: Int[ndarray, "pairs"]
    gains: Float[ndarray, "pairs"]

    @staticmethod
    def of(items: Sequence[Sequence[int]], gains: Sequence[Sequence[float]] | None = None) -> "Qrels":
        """From a list of columns per query, and of gains where not all are 1; raises as `checked`.

        >>> Qrels.of([[3, 1], [], [0, -1]]).counts
        array([2, 0, 2])
        """
        sizes = [len(row) for row in items]
        if gains is not None and [len(row) for row in gains] != sizes:
            raise InputError("items and gains of positives do not go together", allowed="one gain per item")
        flat = np.array([item for row in items for item in row], dtype=np.int64)
        worth = np.ones(len(flat)) if gains is None else np.array([g for row in gains for g in row], float)
        return Qrels(np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]), flat, worth).checked()

    def checked(self, *, where: str = "") -> "Qrels":
        """Itself; raises `InputError` where an item is listed twice or below -1, or a gain not above 0."""
        flat, worth, query = self.items, self.gains, self.queries
        order = np.lexsort((flat, query))
        same = (np.diff(flat[order]) == 0) & (np.diff(query[order]) == 0) & (flat[order][1:] >= 0)
        unworthy = ~(np.isfinite(worth) & (worth > 0))
        for what, rows, values, allowed in (
            ("'s gain is out of range", np.flatnonzero(unworthy), worth, "above 0"),
            (" is no column", np.flatnonzero(flat < -1), flat, "0 and above, or -1 where absent"),
            (" is listed twice", order[1:][same], flat, None),
        ):
            if len(rows):
                place = f"{where}, query {query[rows[0]]}" if where else f"query {query[rows[0]]}"
                raise InputError(f"a positive{what}", where=place, given=values[rows[0]], allowed=allowed)
        return self

    @property
    def counts(self) -> Int[ndarray, "queries"]:
        """R of each query: how many right answers it has, absent ones included."""
        return np.diff(self.starts)

    @property
    def defined(self) -> Bool[ndarray, "queries"]:
        """Which queries have a right answer, so that measures have a value."""
        return self.counts > 0

    @property
    def absent(self) -> Int[ndarray, "queries"]:
        """How many right answers of each query the gallery does not hold."""
        return np.bincount(self.queries[self.items < 0], minlength=len(self.starts) - 1)

    @property
    def queries(self) -> Int[ndarray, "pairs"]:
        return np.repeat(np.arange(len(self.starts) - 1), self.counts)

    def take(self, queries: Int[ndarray, "chosen"] | slice) -> "Qrels":
        """Those of some queries only, in the order given.

        >>> Qrels.of([[3, 1], [2]]).take(np.array([1])).items
        array([2])
        """
        first, sizes = self.starts[:-1][queries], self.counts[queries]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        positions = np.arange(starts[-1]) + np.repeat(first - starts[:-1], sizes)
        return replace(self, starts=starts, items=self.items[positions], gains=self.gains[positions])


@dataclass(frozen=True)
class Ranks:
    """Where the positives of each query stand: one entry per positive found, by query, best first.

    `wrong` items score strictly above it, `tied` wrong ones the same, `before` other positives strictly
    above. `depth` is how far down each query's ranking is known: the gallery, or the length of a list.
    """

    positives: Qrels
    query: Int[ndarray, "found"]
    wrong: Int[ndarray, "found"]
    tied: Int[ndarray, "found"]
    before: Int[ndarray, "found"]
    gains: Float[ndarray, "found"]
    depth: Int[ndarray, "queries"]
    gallery: int

    @property
    def cut(self) -> Bool[ndarray, "queries"]:
        """Which rankings end before all positives of the gallery are found: some ranks are unknown."""
        present = self.positives.queries[self.positives.items >= 0]
        n = len(self.depth)
        unfound = np.bincount(present, minlength=n) > np.bincount(self.query, minlength=n)
        return unfound & (self.depth < self.gallery)


def positive_ranks(scores: Real[ndarray, "queries gallery"], positives: Qrels) -> Ranks:
    """The ranks of all positives in a block of scores, some queries with the *whole* gallery.

    Raises `ScoreError` for NaN and for a block that does not fit the positives; infinite scores are in order.

    >>> ranks = positive_ranks(np.array([[0.9, 0.5, 0.7, 0.5]]), Qrels.of([[0, 1]]))
    >>> ranks.wrong, ranks.tied, ranks.before
    (array([0, 1]), array([0, 1]), array([0, 1]))
    """
    n, gallery = scores.shape
    last = int(positives.items.max(initial=-1))
    if len(positives.starts) - 1 != n or last >= gallery:
        allowed = f"{len(positives.starts) - 1} queries, more than {last} items"
        given = f"{n} queries x {gallery} items"
        raise ScoreError("scores do not fit the positives", given=given, allowed=allowed)
    if scores.size and scores.dtype.kind == "f" and np.isnan(scores.min()):
        row, column = np.argwhere(np.isnan(scores))[0]
        raise ScoreError("a score is not a number", where=f"query {row}, item {column}", given="NaN")
    query, item, (place,) = distinct_pairs([positives], gallery)
    above, level = row_counts(scores, query, scores[query, item])
    return from_counts(positives, above[place], level[place], gallery=gallery)


def distinct_pairs(
    sets: Sequence[Qrels], gallery: int
) -> tuple[Int[ndarray, "pairs"], Int[ndarray, "pairs"], tuple[Int[ndarray, "_"], ...]]:
    """The pairs of query and item in any of several sets, each once and in order, absent ones left out.

    Returns their queries, their items, and for each set where its own pairs are among them.

    >>> query, item, places = distinct_pairs([Qrels.of([[2], [0]]), Qrels.of([[1, 2], []])], 3)
    >>> query, item, places[1]
    (array([0, 0, 1]), array([1, 2, 0]), array([0, 1]))
    """
    codes = [p.queries[p.items >= 0] * gallery + p.items[p.items >= 0] for p in sets]
    pairs, positions = np.unique(np.concatenate([*codes, np.empty(0, np.int64)]), return_inverse=True)
    query, item = np.divmod(pairs, max(gallery, 1))
    ends = np.cumsum([len(c) for c in codes])
    return query, item, tuple(np.split(positions, ends)[:-1])


def from_counts(
    positives: Qrels, above: Int[ndarray, "present"], level: Int[ndarray, "present"], *, gallery: int
) -> Ranks:
    """The ranks of positives from how many items score above each, and as high (itself included).

    In the order of the positives, absent ones left out; sums of what `tally` gives over the parts of a
    gallery.
    """
    present = positives.items >= 0
    query, gains = positives.queries[present], positives.gains[present]
    order = np.argsort(query * (gallery + 1) + above, kind="stable")
    query, gains, above, level = query[order], gains[order], above[order], level[order]
    group, size = runs(query, above)
    begin = np.searchsorted(query, query)
    before = (np.cumsum(size) - size)[group] - begin
    depth = np.full(len(positives.starts) - 1, gallery)
    return Ranks(positives, query, above - before, level - size[group], before, gains, depth, gallery)


def from_places(
    positives: Qrels,
    above: Int[ndarray, "pairs"],
    level: Int[ndarray, "pairs"],
    *,
    depth: Int[ndarray, "queries"],
    gallery: int,
) -> Ranks:
    """The ranks of positives from counts as in `from_counts` for each, absent and unfound ones included.

    `above` is -1 where the gallery does not hold the positive or the ranking, known `depth` items deep, does
    not reach it.

    >>> pair = Qrels.of([[2, 9]])
    >>> from_places(pair, np.array([1, -1]), np.array([1, 0]), depth=np.array([3]), gallery=10).wrong
    array([1])
    """
    ranked = above >= 0
    listed = replace(
        positives,
        starts=np.concatenate([[0], np.cumsum(np.bincount(positives.queries[ranked], minlength=len(depth)))]),
        items=np.where(ranked, np.maximum(positives.items, 0), -1)[ranked],
        gains=positives.gains[ranked],
    )
    ranks = from_counts(listed, above[ranked], level[ranked], gallery=gallery)
    return replace(ranks, positives=positives, depth=depth)


def runs(*keys: ndarray) -> tuple[ndarray, ndarray]:
    """Which run of equal keys each entry belongs to, and how long each run is."""
    new = np.ones(len(keys[0]), dtype=bool)
    if len(new):
        new[1:] = np.any([k[1:] != k[:-1] for k in keys], axis=0)
    group = np.cumsum(new) - 1
    return group, np.bincount(group)


def row_counts(
    scores: Real[ndarray, "queries gallery"], query: Int[ndarray, "pairs"], score: Real[ndarray, "pairs"]
) -> tuple[Int[ndarray, "pairs"], Int[ndarray, "pairs"]]:
    """How many scores of its row are above each given one, and how many equal it; rows ascending.

    >>> row_counts(np.array([[3.0, 1.0, 1.0]]), np.array([0, 0]), np.array([3.0, 1.0]))
    (array([0, 1]), array([1, 2]))
    """
    above, level = np.empty((2, len(query)), np.int64)
    bounds = np.searchsorted(query, np.arange(len(scores) + 1)).tolist()
    for row, (begin, end) in enumerate(pairwise(bounds)):
        # The rows of a transposed block lie scattered in memory.
        line = np.ascontiguousarray(scores[row])
        if end - begin >= _SORT_FROM:
            line = np.sort(line)
            up_to = line.searchsorted(score[begin:end], side="right")
            above[begin:end] = len(line) - up_to
            level[begin:end] = up_to - line.searchsorted(score[begin:end], side="left")
            continue
        for i in range(begin, end):
            above[i] = np.count_nonzero(line > score[i])
            level[i] = np.count_nonzero(line == score[i])
    return above, level


def list_places(
    lists: Iterable[Int[ndarray, "_"]], positives: Qrels, *, gallery: int
) -> Int[ndarray, "pairs"]:
    """How many items of its query's list stand before each positive, -1 where the list does not have it.

    >>> list_places([np.array([4, 2, 7])], Qrels.of([[2, 9, 7]]), gallery=10)
    array([ 1, -1,  2])
    """
    above = np.full(len(positives.items), -1, dtype=np.int64)
    # The place of every item in the list at hand; the last is for positives outside the gallery.
    stands = np.full(gallery + 1, -1, dtype=np.int64)
    for items, begin, end in zip(lists, positives.starts[:-1], positives.starts[1:], strict=True):
        stands[items] = np.arange(len(items))
        above[begin:end] = stands[positives.items[begin:end]]
        stands[items] = -1
    return above


def join(blocks: Sequence[Ranks]) -> Ranks:
    """The ranks of consecutive blocks of queries in the same gallery as one."""
    sizes = np.array([len(b.depth) for b in blocks])
    shift = np.cumsum(sizes) - sizes
    pairs = np.cumsum([0, *(len(b.positives.items) for b in blocks)])
    starts = [b.positives.starts[:-1] + p for b, p in zip(blocks, pairs, strict=False)]
    positives = Qrels(
        np.concatenate([*starts, pairs[-1:]]),
        np.concatenate([b.positives.items for b in blocks]),
        np.concatenate([b.positives.gains for b in blocks]),
    )
    query = np.concatenate([b.query + s for b, s in zip(blocks, shift, strict=True)])
    wrong, tied, before, gains, depth = (
        np.concatenate([getattr(b, name) for b in blocks])
        for name in ("wrong", "tied", "before", "gains", "depth")
    )
    return Ranks(positives, query, wrong, tied, before, gains, depth, blocks[0].gallery)


# Scores compared at once: about as many as fit the processor's cache.
_COUNTED_AT_ONCE = 1 << 19
# The most rows whose counts fit into one byte.
_BYTE = 255


def tally(
    scores: Real[ndarray, "part queries"], query: Int[ndarray, "pairs"], score: Real[ndarray, "pairs"]
) -> tuple[Int[ndarray, "pairs"], Int[ndarray, "pairs"]]:
    """How many items of a part of the gallery score above each given score of its query, how many as high.

    A row of `scores` is an item, a column a query; pair p asks about `score[p]` in column `query[p]`. Sums
    over all parts are what `from_counts` takes, if scores are those of the block to the last bit.

    >>> above, level = tally(np.array([[3.0, 1.0], [2.0, 1.0]]), np.array([0, 1]), np.array([2.0, 1.0]))
    >>> above, level
    (array([1, 0]), array([1, 2]))
    """
    above, level = np.zeros(len(query), np.int64), np.zeros(len(query), np.int64)
    order = np.argsort(query, kind="stable")
    columns, first, size = np.unique(query[order], return_index=True, return_counts=True)
    # Queries of most pairs first, so that those with a second, third, ... pair always come first.
    fewer = np.argsort(-size, kind="stable")
    most = int(size.max(initial=0))
    layers = [order[first[fewer[: np.count_nonzero(size > nth)]] + nth] for nth in range(most)]
    if len(columns) == scores.shape[1]:
        # Every column has a pair: the first of each needs no column moved.
        _add(scores, [order[first]], score, above, level)
        layers, columns = layers[1:], columns[fewer[: len(layers[1])]] if len(layers) > 1 else columns[:0]
    else:
        columns = columns[fewer]
    step = max(1, _COUNTED_AT_ONCE // max(len(columns), 1))
    for lo in range(0, len(scores) if len(columns) else 0, step):
        _add(scores[lo : lo + step].take(columns, axis=1), layers, score, above, level)
    return above, level


def _add(block: ndarray, layers: list[ndarray], score: ndarray, above: ndarray, level: ndarray) -> None:
    """Add to the counts of pairs; those of a layer are one for each of the first columns."""
    for i in layers:
        thresholds, step = score[i], min(_BYTE, max(1, _COUNTED_AT_ONCE // max(len(i), 1)))
        higher, equal = np.zeros((2, len(i)), np.int64)
        for lo in range(0, len(block), step):
            part = block[lo : lo + step, : len(i)]
            higher += _count(part > thresholds)
            equal += _count(part == thresholds)
        above[i] += higher
        level[i] += equal


def _count(true: ndarray) -> ndarray:
    """How many of each column are true, of at most 255 rows."""
    return np.add.reduce(true.view(np.uint8), axis=0, dtype=np.uint8)
