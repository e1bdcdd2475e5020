"""Sets of right answers against people's judgements: how many are confirmed, how many are missed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.forms import RetrievalDirection
from counterfoil.benchmarks.judgements import Judgements
from counterfoil.benchmarks.records import caption_key
from counterfoil.errors import DataError
from counterfoil.evaluation.result import or_none
from counterfoil.metrics.annotators import precision_recall
from counterfoil.metrics.class_rules import Plausible
from counterfoil.metrics.ranks import Qrels
from counterfoil.stats import Reals, Truths, Wholes
from counterfoil.stats.dependence import Dependence
from counterfoil.stats.intervals import cluster_interval


@dataclass(frozen=True, eq=False)
class JudgedPairs:
    """Judged pairs of one direction, their `place` in models' lists (0: beyond `depth`) and proposers."""

    direction: str
    models: tuple[str, ...]
    query: Wholes
    gain: Reals
    place: Wholes
    proposed: Truths
    depth: tuple[int, ...]
    dependence: Dependence

    @property
    def n_queries(self) -> int:
        """How many queries there are."""
        return len(self.dependence)

    @property
    def n_found(self) -> Wholes:
        """Per query, how many right answers all models together found."""
        right = (self.gain > 0) & self.proposed.any(axis=1)
        return np.bincount(self.query[right], minlength=self.n_queries)


def positions_in(query: Wholes, item: Wholes, tops: Sequence[Wholes]) -> Wholes:
    """(pairs, models) places of a pair's item in each model's list of the query, from 1; 0 if not there.

    >>> positions_in(np.array([0, 1]), np.array([7, 7]), [np.array([[4, 7], [5, -1]])]).tolist()
    [[2], [0]]
    """
    width = 1 + max([int(item.max(initial=0)), *(int(top.max(initial=0)) for top in tops)])
    wanted = query * width + item
    table = np.zeros((len(query), len(tops)), dtype=np.int64)
    for model, top in enumerate(tops):
        rows, place = np.nonzero(top >= 0)
        codes = rows * width + top[rows, place]
        order = np.argsort(codes)
        spot = np.searchsorted(codes[order], wanted)
        there = spot < len(codes)
        there[there] = codes[order][spot[there]] == wanted[there]
        table[there, model] = place[order][spot[there]] + 1
    return table


def proposals(judged: Judgements, models: Sequence[str]) -> Wholes | None:
    """(pairs, models) the places at which the table says they were proposed; None where it says nothing."""
    there = [name for name in models if name in judged.place]
    if not there:
        return None
    lacking = [name for name in models if name not in judged.place]
    if lacking:
        raise DataError(
            "the table says of some models only what they proposed",
            given=", ".join(lacking),
            allowed=", ".join(f"place:{name}" for name in judged.place),
            hint="give the models that made the pool, or leave those columns out",
        )
    return np.stack([judged.place[name] for name in models], axis=1)


def right_pairs(
    benchmark: Benchmark, direction: Literal["i2t", "t2i"], queries: Sequence[str], items: Sequence[str]
) -> Wholes:
    """(pairs, 2) positions in `queries` and in `items` of all right answers that the benchmark lists."""
    search, query_ids, item_ids = _sides(benchmark, direction)
    positives = _listed(benchmark, search)
    row = _renumbered([query_ids[i] for i in search.queries.tolist()], queries)
    column = np.append(_renumbered(item_ids, items), -1)
    pairs = np.stack([row[positives.queries], column[positives.items]], axis=1)
    return pairs[(pairs >= 0).all(axis=1)]


def are_right(
    benchmark: Benchmark,
    direction: Literal["i2t", "t2i"],
    queries: Sequence[str],
    items: Sequence[str],
    query: Wholes,
    item: Wholes,
) -> dict[str, Truths]:
    """Which pairs the benchmark calls right, by its name; of a rule for each threshold, as "pmrp (0)"."""
    search, query_ids, item_ids = _sides(benchmark, direction)
    if not isinstance(search.positives, Plausible):
        is_right = right_pairs(benchmark, direction, queries, items)
        width = len(items)
        return {benchmark.name: np.isin(query * width + item, is_right[:, 0] * width + is_right[:, 1])}
    rule = search.positives
    row = _renumbered(queries, [query_ids[i] for i in search.queries.tolist()])[query]
    column = _renumbered(items, item_ids)[item]
    there = (row >= 0) & (column >= 0)
    distances = (rule.query_codes[row[there]] != rule.item_codes[column[there]]).sum(axis=1)
    named = {}
    for threshold in rule.thresholds:
        right = np.zeros(len(query), dtype=bool)
        right[there] = distances <= threshold
        many = len(rule.thresholds) > 1
        named[f"{benchmark.name} ({threshold})" if many else benchmark.name] = right
    return named


def how_many(benchmark: Benchmark, direction: Literal["i2t", "t2i"], queries: Sequence[str]) -> Wholes:
    """How many right answers each query has, those outside the gallery included; 0 where it is no query."""
    search, query_ids, _ = _sides(benchmark, direction)
    row = _renumbered(queries, [query_ids[i] for i in search.queries.tolist()])
    return np.where(row >= 0, _listed(benchmark, search).counts[row], 0)


def _listed(benchmark: Benchmark, search: RetrievalDirection) -> Qrels:
    if isinstance(search.positives, Plausible):
        raise DataError("right is what a rule says, not a list", where=benchmark.name)
    return search.positives


def asked_about(
    benchmark: Benchmark | None, direction: Literal["i2t", "t2i"], queries: Sequence[str]
) -> Dependence:
    """What queries share: captions the image they were written for, and their text, as the benchmark says."""
    n = len(queries)
    images, captions = np.arange(n), np.full(n, -1)
    if benchmark is not None and direction == "t2i":
        gallery = benchmark.gallery
        positions = _renumbered(queries, [caption.id for caption in benchmark.captions])
        owner = np.where(positions >= 0, gallery.owners[positions], -1)
        images = np.where(owner >= 0, owner, gallery.n_images + np.arange(n))
        texts = [benchmark.captions[row].text if row >= 0 else None for row in positions.tolist()]
        texts = [None if text is None else caption_key(text) for text in texts]
        number = {text: k for k, text in enumerate(dict.fromkeys(texts))}
        captions = np.array([-1 if text is None else number[text] for text in texts])
    return Dependence(images[:, None], captions[:, None])


def _sides(
    benchmark: Benchmark, direction: Literal["i2t", "t2i"]
) -> tuple[RetrievalDirection, Sequence[str], Sequence[str]]:
    """The search of a direction, the ids of what asks and of what is found."""
    images = [image.id for image in benchmark.images]
    captions = [caption.id for caption in benchmark.captions]
    if direction == "i2t":
        return benchmark.gallery.i2t, images, captions
    return benchmark.gallery.t2i, captions, images


def _renumbered(names: Sequence[str], among: Sequence[str]) -> Wholes:
    place = {name: i for i, name in enumerate(among)}
    return np.array([place.get(name, -1) for name in names], dtype=np.int64)


#: The name of the right answers that people accepted, among those of benchmarks.
JUDGED = "judgements"


@dataclass(frozen=True, eq=False)
class Coverage:
    """A set of right answers against the judgements, with intervals over `queries` (ECCV Caption Table 2)."""

    name: str
    direction: str
    precision: tuple[float, float, float]
    recall: tuple[float, float, float]
    queries: int
    left_out: int

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        named = {"precision": self.precision, "recall": self.recall}
        ends = ("value", "low", "high")
        shares = {name: dict(zip(ends, map(or_none, of), strict=True)) for name, of in named.items()}
        return {**shares, "queries": self.queries, "left_out": self.left_out}


@dataclass(frozen=True, eq=False)
class Multiplicity:
    """How many right answers queries have: ECCV Table 3 and Figure 3a. `histogram` maps number to queries."""

    name: str
    direction: str
    histogram: Mapping[int, int]

    @property
    def total(self) -> int:
        """All right answers."""
        return sum(number * queries for number, queries in self.histogram.items())

    @property
    def mean(self) -> float:
        """Right answers per query."""
        return self.total / max(sum(self.histogram.values()), 1)

    @property
    def median(self) -> float:
        """The middle of the queries' numbers."""
        return float(np.median(np.repeat(list(self.histogram), list(self.histogram.values()))))

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        histogram = {str(number): queries for number, queries in self.histogram.items()}
        return {"total": self.total, "mean": self.mean, "median": self.median, "histogram": histogram}


def against(
    judged: Judgements, benchmarks: Sequence[Benchmark], *, dependence: Dependence
) -> tuple[list[Coverage], list[Multiplicity]]:
    """Coverage of benchmarks by judgements, and right answers per query of each and, last, of `JUDGED`."""
    way, accepted = judged.direction, judged.gain > 0
    counts, coverages = [], []
    for benchmark in benchmarks:
        asking = benchmark.images if way == "i2t" else benchmark.captions
        if not {record.id for record in asking} & set(judged.queries):
            raise DataError(
                f"none of the judged {'images' if way == 'i2t' else 'captions'} is in this benchmark",
                where=benchmark.name,
                given=f"{judged.queries[0]} and {len(judged.queries) - 1:,} more",
                allowed=f"such as {asking[0].id}",
                hint="choose positives over the gallery that was judged",
            )
        named = are_right(benchmark, way, judged.queries, judged.items, judged.query, judged.item)
        of: dict[str, Any] = {"query": judged.query, "accepted": accepted, "dependence": dependence}
        coverages += [coverage(name, way, right=right, **of) for name, right in named.items()]
        if not isinstance(_sides(benchmark, way)[0].positives, Plausible):
            counts.append(count(benchmark.name, way, how_many(benchmark, way, judged.queries)))
    mine = np.bincount(judged.query[accepted], minlength=len(judged.queries))
    return coverages, [*counts, count(JUDGED, way, mine)]


def coverage(
    name: str, direction: str, *, query: Wholes, right: Truths, accepted: Truths, dependence: Dependence
) -> Coverage:
    """How many of a set's right answers people confirm, and how many of theirs it has (ECCV Caption 3.3)."""
    n = len(dependence)
    item = np.arange(len(query))
    sets = []
    for chosen in (right, np.ones(len(query), dtype=bool), accepted):
        starts = np.concatenate([[0], np.cumsum(np.bincount(query[chosen], minlength=n))])
        sets.append(Qrels(starts, item[chosen], np.ones(len(item[chosen]))))
    precision, recall = precision_recall(*sets)
    counted = ~np.isnan(precision)

    def ends(values: Reals) -> tuple[float, float, float]:
        there = ~np.isnan(values)
        if not there.any():
            return np.nan, np.nan, np.nan
        (low,), (high,) = cluster_interval(values[there][:, None], dependence.take(there))
        return float(values[there].mean()), float(low), float(high)

    confirmed, covered = ends(precision), ends(np.where(counted, recall, np.nan))
    return Coverage(name, direction, confirmed, covered, int(counted.sum()), int(n - counted.sum()))


def count(name: str, direction: str, counts: Wholes) -> Multiplicity:
    """The multiplicity of queries, from the number of right answers of each."""
    numbers, queries = np.unique(counts, return_counts=True)
    return Multiplicity(name, direction, dict(zip(numbers.tolist(), queries.tolist(), strict=True)))
