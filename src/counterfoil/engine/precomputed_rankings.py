"""Given rankings as answers to a gallery: ranks of its right answers in the lists.

A list may end before the gallery does. What stands behind its end is unknown, and a measure that depends on
it is refused, here or where it is computed. Published numbers have been computed from cut lists all the same,
counting what was cut off as wrong: those are had with `truncated_as_miss`, and they change with the cut.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float64, Int32, Int64
from numpy import ndarray

from counterfoil.benchmarks.answers import DirectionRanks, Rankings
from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.forms import Ids, RetrievalDirection
from counterfoil.engine.deduplicate import Note, warn
from counterfoil.errors import InputError, ScoreError
from counterfoil.metrics.class_rules import Plausible
from counterfoil.metrics.ranks import Qrels
from counterfoil.models.precomputed_galleries import PrecomputedRankings, RankedLists

_HINT = "give full rankings, or scores"
# Pairs of a query and an item that a rule is asked about at once.
_AT_ONCE = 1 << 22


def rank_precomputed(
    benchmark: Benchmark,
    given: PrecomputedRankings,
    *,
    top: int = 50,
    truncated_as_miss: bool = False,
    note: Note = warn,
) -> Rankings:
    """Where the right answers of a gallery stand in given rankings, in both directions.

    Queries and items are found by their ids; rankings of other queries are left alone. A list orders all it
    names, so nothing is level; `depth` is its length, and the whole gallery (of the query's part) with
    `truncated_as_miss`, which `note` is told of where it made a difference. In a gallery of parts a list is
    read as if the items of other parts were not there. `top` keeps the first so many items of each query.

    Raises `ScoreError` for queries without a list and for items that are not in the gallery, and `InputError`
    where lists end too early: in a gallery of parts for all that do not name the whole part (how many of its
    items the first fifty hold is chance), and where a rule says what is right for those that end before R.
    """
    gallery = benchmark.gallery
    images, captions = ([item.id for item in items] for items in (benchmark.images, benchmark.captions))
    of_images, of_captions = (images, gallery.image_parts), (captions, gallery.caption_parts)
    placed, cut = [], []
    for name, search, lists, sizes, queries, items in (
        ("i2t", gallery.i2t, given.i2t, gallery.sizes[0], of_images, of_captions),
        ("t2i", gallery.t2i, given.t2i, gallery.sizes[1], of_captions, of_images),
    ):
        where = f"{given.identity.name}, {name}"
        direction = _Direction(benchmark.name, where, search, sizes, *queries, *items, lists)
        placed.append(direction.placed(top, truncated_as_miss))
        cut.append(int((direction.lengths < direction.sizes)[search.defined].sum()))
    if truncated_as_miss and any(cut):
        note(
            f"{given.identity.name}: {cut[0]} rankings of images and {cut[1]} of captions end before the "
            f"gallery of {benchmark.name} does; what is not listed counts as wrong, and the numbers change "
            "with the length of the lists"
        )
    return Rankings(placed[0], placed[1])


@dataclass(frozen=True, eq=False)
class _Direction:
    """One direction of a gallery: what is asked, the ids and parts of queries and of items, and the lists."""

    benchmark: str
    where: str
    search: RetrievalDirection
    #: How many items each query's gallery holds: those of its own part.
    sizes: Int64[ndarray, "queries"]
    query_ids: list[str]
    query_parts: Ids | None
    item_ids: list[str]
    item_parts: Ids | None
    lists: RankedLists

    def placed(self, top: int, truncated_as_miss: bool) -> DirectionRanks:
        """Where the right answers stand, and the first items of every list."""
        short = (self.lengths < self.sizes) & self.search.defined
        if self.query_parts is not None and short.any() and not truncated_as_miss:
            at = int(np.argmax(short))
            raise InputError(
                f"{self.benchmark} needs full rankings: each query is ranked within its own part, "
                "of which a cut list holds only what chance left in it",
                where=f"{self.where}, query '{self._query(at)}'",
                given=f"{self.lengths[at]} of the {self.sizes[at]} items of its part",
                hint=f"so for {int(short.sum())} of {len(short)} queries; {_HINT}",
            )
        positives, none = self.search.positives, np.empty(0, dtype=np.int64)
        depth = self.sizes if truncated_as_miss else self.lengths
        best = np.full((len(self.search), min(top, len(self.item_ids))), -1, dtype=np.int32)
        unscored = np.full(best.shape, np.nan, dtype=np.float32)
        if isinstance(positives, Plausible):
            shares = self._shares(positives, best, truncated_as_miss)
            return DirectionRanks(none, none, depth, best, unscored, shares)
        above = self._places(positives, best)
        return DirectionRanks(above, (above >= 0).astype(np.int64), depth, best, unscored)

    @cached_property
    def lengths(self) -> Int64[ndarray, "queries"]:
        """How many items of its gallery each query's list names."""
        if self.item_parts is None:
            return np.where(self._rows >= 0, np.append(self.lists.lengths, 0)[self._rows], 0)
        return np.array([len(self._items(at)) for at in range(len(self.search))], dtype=np.int64)

    def _query(self, at: int) -> str:
        return self.query_ids[self.search.queries[at]]

    @cached_property
    def _rows(self) -> Int64[ndarray, "queries"]:
        """The list of every query; -1 without one, where nothing is right and so nothing is measured."""
        row_of = {name: row for row, name in enumerate(self.lists.queries)}
        rows = np.array([row_of.get(self._query(at), -1) for at in range(len(self.search))], dtype=np.int64)
        missing = np.flatnonzero((rows < 0) & self.search.defined)
        if len(missing):
            raise ScoreError(
                f"queries of {self.benchmark} have no ranking",
                where=self.where,
                given=f"{len(missing)} of {len(rows)} missing: "
                + ", ".join(f"'{self._query(int(at))}'" for at in missing[:3])
                + (", ..." if len(missing) > 3 else ""),
                hint=f"the first ranking is of '{self.lists.queries[0]}'" if self.lists.queries else None,
            )
        return rows

    @cached_property
    def _positions(self) -> Int32[ndarray, "items"]:
        """The position of everything that the lists name, -1 where the gallery does not hold it."""
        position = {name: at for at, name in enumerate(self.item_ids)}
        return np.array([position.get(name, -1) for name in self.lists.items], dtype=np.int32)

    def _items(self, at: int) -> Int32[ndarray, "listed"]:
        """The positions of a query's items, best first; those of other parts left out."""
        row = self._rows[at]
        if row < 0:
            return np.empty(0, dtype=np.int32)
        entries = self.lists.entries[self.lists.starts[row] : self.lists.starts[row + 1]]
        items = self._positions[entries]
        if len(items) and items.min() < 0:
            strange = self.lists.items[entries[int(np.argmin(items))]]
            raise ScoreError(
                f"a ranking names an item that the gallery of {self.benchmark} does not hold",
                where=f"{self.where}, query '{self._query(at)}'",
                given=f"'{strange}'",
                hint=f"is it of another gallery? this one has {len(self.item_ids)} items, "
                f"the first is '{self.item_ids[0]}'",
            )
        if self.query_parts is not None and self.item_parts is not None:
            items = items[self.item_parts[items] == self.query_parts[self.search.queries[at]]]
        return items

    def _places(self, positives: Qrels, best: Int32[ndarray, "queries top"]) -> Int64[ndarray, "pairs"]:
        """How many items stand before each right answer, -1 where it is not listed; fills in the best."""
        above = np.full(len(positives.items), -1, dtype=np.int64)
        # The place of every item in the list at hand; the last is for right answers outside the gallery.
        stands = np.full(len(self.item_ids) + 1, -1, dtype=np.int64)
        for at in range(len(best)):
            items = self._items(at)
            best[at, : len(items)] = items[: best.shape[1]]
            pairs = slice(positives.starts[at], positives.starts[at + 1])
            stands[items] = np.arange(len(items))
            above[pairs] = stands[positives.items[pairs]]
            stands[items] = -1
        return above

    def _shares(
        self, rule: Plausible, best: Int32[ndarray, "queries top"], truncated_as_miss: bool
    ) -> Float64[ndarray, "thresholds 3 queries"]:
        """R-Precision of each query at each threshold, the same under all policies: there are no ties.

        Fills in the best items on the way.
        """
        n = len(self.search)
        shares = np.full((len(rule.thresholds), 3, n), np.nan)
        step = max(1, _AT_ONCE // max(len(self.item_ids), 1))
        for lo in range(0, n, step):
            queries = slice(lo, min(lo + step, n))
            apart = rule.distances(queries)
            if self.query_parts is not None and self.item_parts is not None:
                own = self.query_parts[self.search.queries[queries]]
                # Farther than any two codes are: never right.
                apart[own[:, None] != self.item_parts] = np.iinfo(apart.dtype).max
            ranked = [self._items(at) for at in range(queries.start, queries.stop)]
            for at, items in enumerate(ranked, start=lo):
                best[at, : len(items)] = items[: best.shape[1]]
            for nth, threshold in enumerate(rule.thresholds):
                right = apart <= threshold
                places = np.minimum(right.sum(axis=1), rule.cap or len(self.item_ids))
                short = (self.lengths[queries] < places) & (not truncated_as_miss)
                if short.any():
                    at = int(np.argmax(short))
                    raise InputError(
                        f"the ranking is too short for R-Precision on {self.benchmark}",
                        where=f"{self.where}, query '{self._query(lo + at)}'",
                        given=f"{self.lengths[lo + at]} items",
                        allowed=f"{places[at]} or more",
                        hint=_HINT,
                    )
                for at in np.flatnonzero(places).tolist():
                    hits = np.count_nonzero(right[at, ranked[at][: places[at]]])
                    shares[nth, :, lo + at] = hits / places[at]
        return shares
