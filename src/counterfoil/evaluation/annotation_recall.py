"""Sets of right answers against what people judged: how much is confirmed, how much missed, and how many."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterfoil.data.benchmark import Benchmark
from counterfoil.data.pools import Judgements
from counterfoil.errors import DataError
from counterfoil.evaluation.ground_truth import are_right, how_many
from counterfoil.evaluation.result import or_none
from counterfoil.metrics.annotators import multiplicity, precision_recall
from counterfoil.metrics.class_rules import Plausible
from counterfoil.metrics.ranks import Positives
from counterfoil.stats.estimates import cluster_bootstrap
from counterfoil.stats.sharing import Sharing

#: What the right answers that people accepted are called among those of benchmarks.
JUDGED = "judgements"


@dataclass(frozen=True, eq=False)
class Coverage:
    """A set of right answers against the judgements: ECCV Caption Table 2.

    `precision` and `recall` with their intervals over queries, by what these share; `queries` count,
    `left_out` have no right answer of the set among their judged pairs. NaN where nothing counts.
    """

    name: str
    direction: str
    precision: tuple[float, float, float]
    recall: tuple[float, float, float]
    queries: int
    left_out: int

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        named = {"precision": self.precision, "recall": self.recall}
        return {
            **{
                name: dict(zip(("value", "low", "high"), map(or_none, ends), strict=True))
                for name, ends in named.items()
            },
            "queries": self.queries,
            "left_out": self.left_out,
        }


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
        return {
            "total": self.total,
            "mean": self.mean,
            "median": self.median,
            "histogram": {str(number): queries for number, queries in self.histogram.items()},
        }


def against(
    judged: Judgements,
    benchmarks: Sequence[Benchmark],
    *,
    sharing: Sharing,
    draws: int = 2000,
    seed: int = 0,
) -> tuple[list[Coverage], list[Multiplicity]]:
    """The right answers of benchmarks held against the judgements of one direction.

    `sharing` says what the judged queries share. Returns the coverage of each benchmark, or of each threshold
    of a rule, and how many right answers the judged queries have in each that lists them and, last, in the
    judgements themselves, named `JUDGED`. Raises `DataError` for a benchmark of other images or captions.
    """
    way, accepted = judged.direction, judged.gain > 0
    counts = []
    found = []
    for benchmark in benchmarks:
        asking = benchmark.images if way == "i2t" else benchmark.captions
        if not {each.id for each in asking} & set(judged.queries):
            raise DataError(
                f"none of the judged {'images' if way == 'i2t' else 'captions'} is in this benchmark",
                where=benchmark.name,
                given=f"{judged.queries[0]} and {len(judged.queries) - 1:,} more",
                allowed=f"such as {asking[0].id}",
                hint="choose positives over the gallery that was judged",
            )
        named = are_right(benchmark, way, judged.queries, judged.items, judged.query, judged.item)
        for name, right in named.items():
            found.append(
                coverage(
                    name,
                    way,
                    query=judged.query,
                    right=right,
                    accepted=accepted,
                    sharing=sharing,
                    seed=seed,
                    draws=draws,
                )
            )
        search = benchmark.gallery.i2t if way == "i2t" else benchmark.gallery.t2i
        if not isinstance(search.positives, Plausible):
            counts.append(count(benchmark.name, way, how_many(benchmark, way, judged.queries)))
    mine = np.bincount(judged.query[accepted], minlength=len(judged.queries))
    return found, [*counts, count(JUDGED, way, mine)]


def coverage(
    name: str,
    direction: str,
    *,
    query: NDArray[np.int64],
    right: NDArray[np.bool_],
    accepted: NDArray[np.bool_],
    sharing: Sharing,
    seed: int = 0,
    draws: int = 2000,
) -> Coverage:
    """How many of a set's right answers people confirm, and how many of theirs the set has.

    Over judged pairs, by query: `right` in the set, `accepted` by people. Queries none of whose judged pairs
    is in the set are left out of both means, as in ECCV Caption section 3.3.
    """
    n = len(sharing)
    item = np.arange(len(query))
    sets = [
        _positives(query[chosen], item[chosen], n)
        for chosen in (right, np.ones(len(query), dtype=bool), accepted)
    ]
    precision, recall = precision_recall(*sets)
    counted = ~np.isnan(precision)
    if not counted.any():
        nothing = (np.nan, np.nan, np.nan)
        return Coverage(name, direction, nothing, nothing, 0, n)
    ends = []
    for values in (precision, np.where(counted, recall, np.nan)):
        there = ~np.isnan(values)
        if not there.any():
            ends.append((np.nan, np.nan, np.nan))
            continue
        low, high = cluster_bootstrap(values[there][:, None], sharing.take(there), seed=seed, draws=draws)
        ends.append((float(values[there].mean()), float(low[0]), float(high[0])))
    return Coverage(name, direction, ends[0], ends[1], int(counted.sum()), int(n - counted.sum()))


def count(name: str, direction: str, counts: NDArray[np.int64]) -> Multiplicity:
    """The multiplicity of queries with so many right answers each.

    >>> count("mine", "t2i", np.array([1, 3, 3])).mean
    2.3333333333333335
    """
    starts = np.concatenate([[0], np.cumsum(counts)])
    empty = Positives(starts, np.full(int(starts[-1]), -1), np.ones(int(starts[-1])))
    return Multiplicity(name, direction, multiplicity(empty))


def _positives(query: NDArray[np.int64], item: NDArray[np.int64], n: int) -> Positives:
    starts = np.concatenate([[0], np.cumsum(np.bincount(query, minlength=n))])
    return Positives(starts, item, np.ones(len(item)))
