"""Measures of several models and benchmarks in draws of clusters of queries that they share.

Galleries that share images (COCO, CxC, ECCV Caption) share their draws, image by image, since a lucky image
is lucky in all of them. Other benchmarks are drawn each on their own. What adds up to the measures is summed
once per cluster, so that a draw is a product of its weights and these sums. Where images and captions are
crossed, draws are of images, and each value is moved away from its centre by as much as its crossed standard
error is larger (`stats.crossed.inflation`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

from counterfoil.data.benchmark import Benchmark
from counterfoil.errors import InputError, UnknownNameError
from counterfoil.evaluation.evaluate import main_measures
from counterfoil.evaluation.forms import of, rated
from counterfoil.evaluation.forms.gallery import overall
from counterfoil.evaluation.result import Run
from counterfoil.metrics.weighted_correlation import MEASURES, WeightedCorrelation
from counterfoil.stats.crossed import inflation
from counterfoil.stats.estimates import deviations
from counterfoil.stats.resampling import ExactSums, cluster_sums, exact_sums
from counterfoil.stats.sharing import Sharing

#: A correlation of fewer models says nothing: two are in the same order or not.
LEAST = 3


@dataclass(frozen=True)
class RankColumn:
    """One measure on one benchmark."""

    benchmark: str
    measure: str
    #: The benchmark as print calls it.
    title: str

    @property
    def name(self) -> str:
        """As `--measure` takes it: "eccv:mean_map_at_r"."""
        return f"{self.benchmark}:{self.measure}"


def choose(groups: Mapping[str, tuple[Run, ...]], wanted: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The measures of each benchmark that become columns."""
    known = {
        name: tuple(dict.fromkeys(m for run in runs for m in of(run.benchmark).measures_of(run)))
        for name, runs in groups.items()
    }
    if not wanted:
        return {name: _default(runs[0].benchmark, known[name]) for name, runs in groups.items()}
    found: dict[str, list[str]] = {name: [] for name in groups}
    for pattern in wanted:
        benchmark, _, measure = pattern.rpartition(":")
        hits = [
            (name, own)
            for name in groups
            if fnmatchcase(name, benchmark or "*")
            for own in known[name]
            if fnmatchcase(own, measure) or own == overall(known[name], measure)
        ]
        if not hits:
            asked = [name for name in groups if fnmatchcase(name, benchmark or "*")]
            if not asked:
                raise UnknownNameError("benchmark", benchmark, groups, where=f"measure '{pattern}'")
            raise UnknownNameError(
                "measure", measure, {own for name in asked for own in known[name]}, where=benchmark or None
            )
        for name, own in hits:
            if own not in found[name]:
                found[name].append(own)
    return {name: tuple(own) for name, own in found.items()}


def _default(benchmark: Benchmark, known: Sequence[str]) -> tuple[str, ...]:
    """The main measures, and in a gallery the means of those its authors report (of all, if none)."""
    names = [*main_measures(benchmark), *of(benchmark).overall(benchmark, known)]
    return tuple(name for name in dict.fromkeys(names) if name in known)


@dataclass(frozen=True, eq=False)
class RatedColumns:
    """What each scorer's correlations are over, and which of them are columns."""

    points: tuple[tuple[rated.Points, ...], ...]
    measures: tuple[str, ...]
    clusters: Int[ndarray, "n"]

    @classmethod
    def of(cls, runs: Sequence[Run], measures: Sequence[str], clusters: Int[ndarray, "n"]) -> "RatedColumns":
        """Those of these runs, which are all on one benchmark."""
        points = tuple(rated.points(run.benchmark.rated, run.answers.scores) for run in runs)
        return cls(points, tuple(measures), clusters)

    def wide(self, sharing: Sharing) -> Float[ndarray, "models measures"]:
        """How much farther correlations move than draws of units say (`stats.crossed.inflation`)."""
        where = [MEASURES.index(name) for name in self.measures]
        moves = [rated.influence(parts, len(sharing))[:, where] for parts in self.points]
        return np.stack([inflation(sharing, moved) for moved in moves])

    def drawn(self, weights: Float[ndarray, "draws all"]) -> Float[ndarray, "draws models measures"]:
        """The correlations in each draw; NaN where one is not defined."""
        where = [MEASURES.index(name) for name in self.measures]
        return np.stack([rated.correlations(ready, [weights])[:, where] for ready in self._ready], axis=1)

    @cached_property
    def _ready(self) -> tuple[tuple[WeightedCorrelation, ...], ...]:
        return tuple(rated.prepared(parts, self.clusters) for parts in self.points)


@dataclass(frozen=True, eq=False)
class ClusterSums:
    """What adds up to the measures over one direction of one part: sums by cluster, model and measure.

    `rows` says which clusters of the draws have a share in it.
    """

    direction: int
    rows: Int[ndarray, "clusters"]
    sums: ExactSums
    counts: Float[ndarray, "clusters measures"]

    def mean(
        self, weights: Float[ndarray, "draws all"], models: int
    ) -> Float[ndarray, "draws models measures"]:
        """The mean of each measure in each draw; NaN where no query of the part was drawn."""
        drawn = weights[:, self.rows]
        totals = self.sums.weighted(drawn).reshape(len(weights), models, -1) / self.sums.scale
        counts = (drawn.astype(np.float64) @ self.counts)[:, None]
        return np.divide(totals, counts, out=np.full_like(totals, np.nan), where=counts > 0)


@dataclass(frozen=True, eq=False)
class Sheet:
    """One benchmark: its models, its measures, and what of them is drawn together.

    `family` numbers the benchmarks whose images are drawn together, `n_clusters` of them.
    """

    benchmark: Benchmark
    models: tuple[str, ...]
    measures: tuple[str, ...]
    #: (n, models x measures) value of each question.
    table: Float[ndarray, "n columns"]
    clusters: Int[ndarray, "n"]
    n_clusters: int
    family: int
    parts: tuple[ClusterSums, ...] = ()
    #: Of rated captions, whose measures are no means of values.
    rated: RatedColumns | None = None
    #: How much farther values of crossed images and captions move than the draws say.
    wide: Float[ndarray, "models measures"] | None = None

    def values(self) -> Float[ndarray, "1 models measures"]:
        """The measures themselves: every cluster once."""
        return self.drawn(np.ones((1, self.n_clusters), dtype=np.float32))

    def drawn(self, weights: Float[ndarray, "draws all"]) -> Float[ndarray, "draws models measures"]:
        """The measures in each draw: means over directions of means over parts of means over queries.

        A part of which no query was drawn is left out; NaN where that leaves none. Correlations with ratings
        are of all captions together.
        """
        found = self._drawn(weights)
        if self.wide is None:
            return found
        centre = self._drawn(np.ones((1, self.n_clusters), dtype=np.float32))
        return centre + self.wide * (found - centre)

    def _drawn(self, weights: Float[ndarray, "draws all"]) -> Float[ndarray, "draws models measures"]:
        if self.rated is not None:
            return self.rated.drawn(weights)
        directions = [
            _mean_of([p.mean(weights, len(self.models)) for p in self.parts if p.direction == direction])
            for direction in sorted({part.direction for part in self.parts})
        ]
        return _mean_of(directions)


def _mean_of(arrays: Sequence[ndarray]) -> ndarray:
    """The mean of arrays, of those that are defined at each place."""
    total, count = np.zeros_like(arrays[0]), np.zeros_like(arrays[0])
    for array in arrays:
        defined = ~np.isnan(array)
        total += np.where(defined, array, 0.0)
        count += defined
    return np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0)


def sheets_of(
    groups: Mapping[str, tuple[Run, ...]], measures: Sequence[str]
) -> tuple[tuple[Sheet, ...], tuple[str, ...]]:
    """What is drawn of each benchmark, and the names of columns that too few models have."""
    chosen = choose(groups, measures)
    few = []
    sheets = []
    shared = {name: Sharing.joined([run.benchmark.sharing for run in runs]) for name, runs in groups.items()}
    for (name, runs), (family, codes, size) in zip(groups.items(), _families(groups, shared), strict=True):
        kept = []
        for measure in chosen[name]:
            having = sum(of(run.benchmark).has(run, measure) for run in runs)
            if having >= LEAST:
                kept.append(measure)
            else:
                few.append(f"{name}:{measure}")
        if kept and not of(runs[0].benchmark).values_per_item:
            having_all = [run for run in runs if all(of(run.benchmark).has(run, measure) for measure in kept)]
            columns = RatedColumns.of(having_all, kept, codes)
            sheets.append(
                Sheet(
                    runs[0].benchmark,
                    tuple(run.name for run in having_all),
                    tuple(kept),
                    np.zeros((len(runs[0].benchmark), 0)),
                    codes,
                    size,
                    family,
                    rated=columns,
                    wide=columns.wide(shared[name]) if shared[name].crossed else None,
                )
            )
        elif kept:
            # A model without one of the measures has NaN there.
            nothing = np.full(len(runs[0].benchmark), np.nan)
            table = np.stack(
                [run.items[m] if of(run.benchmark).has(run, m) else nothing for run in runs for m in kept],
                axis=1,
            )
            models = tuple(run.name for run in runs)
            sheet = Sheet(runs[0].benchmark, models, tuple(kept), table, codes, size, family)
            wide = _wide(sheet, shared[name]) if shared[name].crossed else None
            sheets.append(replace(sheet, parts=tuple(_parts(sheet)), wide=wide))
    return tuple(sheets), tuple(few)


def _wide(sheet: Sheet, sharing: Sharing) -> Float[ndarray, "models measures"]:
    """The inflation of every model's every measure; 1 where a model has none."""
    questions = sheet.benchmark.questions
    of_query = 2 * questions.query_parts + questions.directions
    found = np.ones(sheet.table.shape[1])
    known = ~np.isnan(sheet.table)
    for rows in np.unique(known.T, axis=0):
        columns = (known == rows[:, None]).all(axis=0)
        if rows.any():
            moved = deviations(sheet.table[rows][:, columns], of_query[rows])[1]
            found[columns] = inflation(sharing.part(rows), moved)
    return found.reshape(len(sheet.models), len(sheet.measures))


def _families(
    groups: Mapping[str, tuple[Run, ...]], shared: Mapping[str, Sharing]
) -> list[tuple[int, ndarray, int]]:
    """For each benchmark the number of its family, the cluster of each question, and the family's clusters.

    Galleries with an image in common are a family, whose clusters are the images; any other benchmark is one
    of its own.
    """
    keys: dict[str, list[str]] = {}
    family: dict[str, int] = {}
    for number, (name, runs) in enumerate(groups.items()):
        family[name] = number
        if (images := of(runs[0].benchmark).images(runs[0].benchmark)) is not None:
            keys[name] = images
            for other in [o for o in keys if o != name and not set(keys[o]).isdisjoint(keys[name])]:
                old = family[other]
                family |= {o: number for o, f in family.items() if f == old}
    found = []
    for name in groups:
        if name not in keys:
            codes = shared[name].units
            found.append((family[name], codes, int(codes.max()) + 1))
            continue
        together = sorted({key for o in keys if family[o] == family[name] for key in keys[o]})
        place = {key: i for i, key in enumerate(together)}
        found.append((family[name], np.asarray([place[key] for key in keys[name]], np.int64), len(together)))
    return found


def _parts(sheet: Sheet) -> list[ClusterSums]:
    questions = sheet.benchmark.questions
    directions, of_query = questions.directions, questions.query_parts
    defined = ~np.isnan(sheet.table).reshape(len(sheet.table), len(sheet.models), -1)
    having = defined.any(axis=0)
    # Whether a query has a value under a measure is the benchmark's business, not the model's.
    of_measure = defined.any(axis=1)
    if (defined != (of_measure[:, None] & having[None])).any():
        row, model, _ = np.argwhere(defined != (of_measure[:, None] & having[None]))[0]
        raise InputError(
            f"models on {sheet.benchmark.name} have values for different queries",
            given=f"'{sheet.models[model]}' differs at '{questions.ids[row]}'",
            hint="evaluate all of them in the same way",
        )
    # A model without a measure has no sums of it.
    absent = np.where(having, 0.0, np.nan).reshape(-1)
    parts = []
    for direction, part in sorted(set(zip(directions.tolist(), of_query.tolist(), strict=True))):
        rows = np.flatnonzero((directions == direction) & (of_query == part))
        rows = rows[of_measure[rows].any(axis=1)]
        if not len(rows):
            continue
        present = np.unique(sheet.clusters[rows])
        # A draw may hold any cluster as often as there are clusters, so all of them bound the sums.
        others = np.setdiff1d(np.arange(sheet.n_clusters), present)
        codes = np.concatenate([sheet.clusters[rows], others])
        values = np.zeros((len(codes), sheet.table.shape[1]))
        values[: len(rows)] = np.nan_to_num(sheet.table[rows])
        sums = exact_sums(values, codes, repeats=sheet.n_clusters)
        numbers = sums.numbers[present] + absent.astype(sums.numbers.dtype)
        sums = replace(sums, numbers=numbers)
        counts = cluster_sums(of_measure[rows].astype(np.float64), sheet.clusters[rows])
        parts.append(ClusterSums(int(direction), present, sums, counts))
    return parts
