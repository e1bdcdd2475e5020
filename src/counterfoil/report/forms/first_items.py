"""The first items that scorers find in a gallery, for a sample of queries: what is right, what is missed.

A gallery can have tens of thousands of queries, so a page carries a sample of them.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray

from counterfoil.benchmarks.answers import DirectionRanks
from counterfoil.benchmarks.forms import RetrievalDirection
from counterfoil.evaluation.compare import Comparison
from counterfoil.evaluation.result import Run
from counterfoil.metrics.class_rules import Plausible
from counterfoil.metrics.ties import Ties
from counterfoil.report.forms import BrowserSource
from counterfoil.report.thumbnails import turns

#: How many of a scorer's first items a query shows.
FIRST = 5
#: A scorer's result on a query, by the digit that encodes it.
KINDS = ("a right answer first", f"first right answer at 2 to {FIRST}", f"none among the first {FIRST}")
#: An item's relevance to a query, by the digit that encodes it.
MARKS = ("wrong", "right", "partly right")
#: At most so many queries are shown, and at most so many answers of all scorers together.
MOST_QUERIES, MOST_ANSWERS = 2_000, 12_000


def right_answers(search: RetrievalDirection) -> Int[ndarray, "queries"]:
    """R of every query: how many right answers it has, by its list or by the rule's first threshold."""
    positives = search.positives
    if not isinstance(positives, Plausible):
        return positives.counts
    # Many items share a code, so distances are taken between the few different ones.
    queries, of_query = np.unique(positives.query_codes, axis=0, return_inverse=True)
    items, size = np.unique(positives.item_codes, axis=0, return_counts=True)
    near = Plausible(queries, items).distances(slice(None)) <= positives.thresholds[0]
    return (near @ size).astype(np.int64)[of_query.reshape(-1)]


def sample(comparison: Comparison, *, seed: int = 0) -> Int[ndarray, "chosen"]:
    """Rows of the queries that a page shows, ascending: all, or equally many of each direction, by lot.

    Queries without right answers are left out, since nothing about them is right or wrong.
    """
    questions = comparison.runs[0].benchmark.gallery
    room = max(2, min(MOST_QUERIES, MOST_ANSWERS // len(comparison.runs)))
    sides = [np.flatnonzero(questions.defined & (questions.directions == side)) for side in (0, 1)]
    fewer = min(len(rows) for rows in sides)
    per_direction = max(room // 2, room - fewer)
    rng = np.random.default_rng(seed)
    chosen = [
        rows if len(rows) <= per_direction else np.sort(rng.choice(rows, per_direction, replace=False))
        for rows in sides
    ]
    return np.concatenate(chosen).astype(np.int64)


def sides_of(run: Run) -> list[tuple[RetrievalDirection, DirectionRanks]]:
    """Both directions of a gallery, each with where a run's rankings have the right answers."""
    gallery, rankings = run.benchmark.gallery, run.answers.rankings
    return [(gallery.i2t, rankings.i2t), (gallery.t2i, rankings.t2i)]


def kinds(run: Run) -> Int[ndarray, "queries"]:
    """Positions in `KINDS` for all queries, by the run's tie policy; a value below 1 is a failure.

    The same as R@1 and R@5 say where those are known.
    """
    policy = Ties(run.result.ties["policy"])
    low, high = np.concatenate([first_right(*side) for side in sides_of(run)]).T
    # Half of a tie is less than a right answer, so there too the last place counts.
    place = np.where(low > 0, low if policy == Ties.OPTIMISTIC else high, -1)
    place = np.where(place > 0, place, np.iinfo(np.int64).max)
    return np.where(place == 1, 0, np.where(place <= FIRST, 1, 2))


def marks(search: RetrievalDirection, items: Int[ndarray, "queries width"]) -> Int[ndarray, "queries width"]:
    """Positions in `MARKS` of some items of every query; items of -1 are none, and count as wrong."""
    positives = search.positives
    width = items.shape[1]
    if isinstance(positives, Plausible):
        codes, of_items = positives.query_codes[:, None], positives.item_codes[items]
        near = (codes != of_items).sum(axis=2) <= positives.thresholds[0]
        return (near & (items >= 0)).astype(np.int64)
    if not len(positives.items):
        return np.zeros(items.shape, dtype=np.int64)
    size = int(max(items.max(initial=0), positives.items.max())) + 2
    known = positives.queries * size + positives.items
    order = np.argsort(known)
    wanted = np.repeat(np.arange(len(items)), width) * size + items.reshape(-1)
    at = np.minimum(np.searchsorted(known[order], wanted), len(known) - 1)
    gains = positives.gains[order][at]
    hit = (known[order][at] == wanted) & (items.reshape(-1) >= 0)
    return np.where(hit, np.where(gains >= 1, 1, 2), 0).reshape(items.shape)


def missed(
    search: RetrievalDirection, placed: DirectionRanks
) -> tuple[Int[ndarray, "queries 3"], Bool[ndarray, "queries"]]:
    """The first right answer that is not among the first items shown, per query, and whether there is one.

    Its item, the first place at which it may stand and the last (where other items score the same); the
    places are 0 where the ranking ends before it, the item is -1 where the gallery does not hold it.
    """
    positives = search.positives
    places = np.zeros((len(search), 3), dtype=np.int64)
    if isinstance(positives, Plausible):
        return places, np.zeros(len(search), dtype=bool)
    top = placed.top[:, :FIRST]
    shown = (positives.items[:, None] == top[positives.queries]).any(axis=1) & (positives.items >= 0)
    left = np.flatnonzero(~shown)
    # Found ones by place, then those the ranking does not reach, then those outside the gallery.
    depth = np.where(placed.above[left] >= 0, placed.above[left], np.iinfo(np.int64).max - 1)
    depth = np.where(positives.items[left] < 0, np.iinfo(np.int64).max, depth)
    order = left[np.lexsort((depth, positives.queries[left]))]
    queries, first = np.unique(positives.queries[order], return_index=True)
    pairs = order[first]
    reached = placed.above[pairs] >= 0
    places[queries, 0] = positives.items[pairs]
    places[queries, 1] = np.where(reached, placed.above[pairs] + 1, 0)
    places[queries, 2] = np.where(reached, placed.above[pairs] + placed.level[pairs], 0)
    there = np.zeros(len(search), dtype=bool)
    there[queries] = True
    return places, there


def first_right(search: RetrievalDirection, placed: DirectionRanks) -> Int[ndarray, "queries 2"]:
    """The first and the last place at which a query's first right answer may stand, 0 where unknown.

    The two differ where it scores the same as a wrong one. By rule it is looked for among the items that were
    kept; where all that were kept behind it score the same, the last place is -1.
    """
    positives = search.positives
    places = np.zeros((len(search), 2), dtype=np.int64)
    if isinstance(positives, Plausible):
        items = placed.top.astype(np.int64)
        if not items.shape[1]:
            return places
        right = marks(search, items) > 0
        # Where only an order is known nothing is tied.
        by_place = -np.arange(items.shape[1], dtype=np.float32)
        scores = np.where(np.isnan(placed.top_scores), by_place, placed.top_scores)
        best = np.take_along_axis(scores, right.argmax(axis=1)[:, None], axis=1)
        wrong = ~right & (items >= 0)
        low, high = ((wrong & (scores > best)).sum(axis=1), (wrong & (scores >= best)).sum(axis=1))
        open_ended = (scores[:, -1:] == best)[:, 0] & (items.shape[1] < placed.depth)
        places[:, 0], places[:, 1] = low + 1, np.where(open_ended, -1, high + 1)
        places[~right.any(axis=1)] = 0
        return places
    reached = np.flatnonzero(placed.above >= 0)
    query, above = positives.queries[reached], placed.above[reached]
    order = np.lexsort((above, query))
    queries, first = np.unique(query[order], return_index=True)
    best = reached[order[first]]
    # Of the items level with it as many are right as have as many above them.
    least = np.full(len(search), -1)
    least[queries] = placed.above[best]
    right = np.bincount(query[above == least[query]], minlength=len(search))[queries]
    places[queries, 0] = placed.above[best] + 1
    places[queries, 1] = placed.above[best] + placed.level[best] - right + 1
    return places


def queries_data(source: BrowserSource) -> dict[str, Any]:
    """A sample of a gallery's queries with what every scorer puts first, pictures as far as there is room."""
    comparison, benchmark = source.comparison, source.benchmark
    questions = comparison.runs[0].benchmark.gallery
    rows = sample(comparison)
    split = int((rows < len(questions.i2t)).sum())
    query = np.concatenate([questions.i2t.queries, questions.t2i.queries])[rows]
    answers = [_answers(run, rows) for run in comparison.runs]
    # (queries, items) of all scorers: what a caption query shows are images, and the other way round.
    items = np.concatenate([np.column_stack([a.top, a.missed[:, 0]]) for a in answers], axis=1)
    used_captions = _used(items[:split], query[split:])
    used_images = _used(query[:split], items[split:])
    shown: dict[int, int] = {}
    needed = [
        [q] if i < split else [p for p in dict.fromkeys(row) if p >= 0]
        for i, (q, row) in enumerate(zip(query.tolist(), items.tolist(), strict=True))
    ]
    if source.pictures:
        strata = np.column_stack([np.arange(len(rows)) < split, *(a.kinds for a in answers)])
        order = turns(list(map(tuple, strata.tolist())))
        shown = source.thumbnails.add(benchmark.images, [needed[i] for i in order])
    pictured = [all(p in shown for p in positions) for positions in needed]
    models = []
    for run, a in zip(comparison.runs, answers, strict=True):
        missed_rows: list[list[int] | int] | None = None
        if a.misses is not None:
            item, *places = a.missed.T
            numbers = [*_numbers(item[:split], used_captions), *_numbers(item[split:], used_images)]
            rows_of = zip(numbers, *(place.tolist() for place in places), a.misses.tolist(), strict=True)
            missed_rows = [[*row] if there else 0 for *row, there in rows_of]
        # Six digits of each, for showing; None where only an order is known.
        scores = [[float(f"{v:.6g}") for v in row if np.isfinite(v)] for row in a.scores.tolist()]
        model = {
            "name": run.name,
            "kinds": "".join(map(str, a.kinds.tolist())),
            "top": _numbers(a.top[:split], used_captions) + _numbers(a.top[split:], used_images),
            "marks": ["".join(map(str, row)) for row in a.marks.tolist()],
            "scores": scores if np.isfinite(a.scores).any() else None,
            # Per query the item missed and its places, 0 where none is; None where not counted.
            "missed": missed_rows,
            "first": a.first.tolist(),
        }
        models.append(model)
    return {
        "ids": [questions.ids[row] for row in rows.tolist()],
        "of": int(questions.defined.sum()),
        "split": split,
        "marks": list(MARKS),
        "captions": source.named_captions(benchmark.captions[p] for p in used_captions.tolist()),
        "images": [[benchmark.images[p].id, shown.get(p, -1)] for p in used_images.tolist()],
        "query": _numbers(query[:split], used_images) + _numbers(query[split:], used_captions),
        "right": np.concatenate([right_answers(s) for s in (questions.i2t, questions.t2i)])[rows].tolist(),
        "pictures": "".join("1" if there else "0" for there in pictured),
        "pictured": sum(pictured),
        "models": models,
    }


@dataclass(frozen=True)
class _Answers:
    """One scorer's results on the queries of the sample, a row for each."""

    kinds: Int[ndarray, "queries"]
    top: Int[ndarray, "queries first"]
    scores: Float[ndarray, "queries first"]
    marks: Int[ndarray, "queries first"]
    first: Int[ndarray, "queries 2"]
    missed: Int[ndarray, "queries 3"]
    #: Whether a right answer is missed among the first; None where not counted.
    misses: Bool[ndarray, "queries"] | None


def _answers(run: Run, rows: Int[ndarray, "chosen"]) -> _Answers:
    def joined(of_sides: Iterable[ndarray]) -> ndarray:
        return np.concatenate(list(of_sides))[rows]

    sides = sides_of(run)
    tops = [_padded(placed.top.astype(np.int64), -1) for _, placed in sides]
    by_rule = any(isinstance(search.positives, Plausible) for search, _ in sides)
    left = [missed(*side) for side in sides]
    return _Answers(
        kinds=kinds(run)[rows],
        top=joined(tops),
        scores=joined(_padded(placed.top_scores.astype(np.float64), np.nan) for _, placed in sides),
        marks=joined(marks(search, top) for (search, _), top in zip(sides, tops, strict=True)),
        first=joined(first_right(*side) for side in sides),
        missed=joined(places for places, _ in left),
        misses=None if by_rule else joined(there for _, there in left),
    )


def _padded(values: ndarray, empty: float) -> ndarray:
    """The first columns, and `empty` where there are not as many."""
    first = values[:, :FIRST]
    return np.pad(first, ((0, 0), (0, FIRST - first.shape[1])), constant_values=empty)


def _used(*positions: ndarray) -> Int[ndarray, "used"]:
    """The positions that occur, ascending, none twice."""
    flat = np.concatenate([array.reshape(-1) for array in positions])
    return np.unique(flat[flat >= 0]).astype(np.int64)


def _numbers(positions: ndarray, used: Int[ndarray, "used"]) -> list[Any]:
    """Where each position stands among the used ones; -1 stays what it is."""
    return np.where(positions < 0, -1, np.searchsorted(used, positions)).tolist()
