"""Measures of several models in draws of clusters of questions: sums per cluster, weighted in each draw."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray

from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.errors import InputError
from counterfoil.evaluation.intervals import macro_groups
from counterfoil.metrics.measures import averaged
from counterfoil.stats.bootstrap import ExactSums, cluster_sums, exact_sums
from counterfoil.stats.dependence import Dependence
from counterfoil.stats.intervals import deviations
from counterfoil.stats.two_way_clustering import inflation


@dataclass(frozen=True, eq=False)
class DrawnQuestions:
    """What is drawn of a benchmark: the cluster of each question, their number, and what questions share."""

    benchmark: Benchmark
    clusters: Int[ndarray, "n"]
    n_clusters: int
    dependence: Dependence


@dataclass(frozen=True, eq=False)
class MeasureDraws:
    """Measures of models under weights of clusters; `wide` moves values farther off if crossed."""

    models: tuple[str, ...]
    measures: tuple[str, ...]
    n_clusters: int
    wide: Float[ndarray, "models measures"] | None
    weighted: Callable[[Float[ndarray, "draws all"]], Float[ndarray, "draws models measures"]]

    def values(self) -> Float[ndarray, "1 models measures"]:
        """The measures themselves: every cluster once."""
        return self.weighted(np.ones((1, self.n_clusters), dtype=np.float32))

    def drawn(self, weights: Float[ndarray, "draws all"]) -> Float[ndarray, "draws models measures"]:
        """The measures where each cluster counts as often as its weight, moved from the centre by `wide`."""
        values = self.weighted(weights)
        if self.wide is None:
            return values
        centre = self.values()
        return centre + self.wide * (values - centre)


class WeightedMeasures(Protocol):
    """Measures of all questions together, made ready for samples of clusters of questions."""

    def measures(self, weights: Float[ndarray, "draws c"]) -> Float[ndarray, "draws every"]:
        """The measures where each cluster counts as often as its weight; NaN where one is not defined."""

    def values(self) -> Float[ndarray, "every"]:
        """The measures themselves: every cluster once."""

    def influences(self) -> Float[ndarray, "n every"]:
        """What each question adds to the error of each measure, to first order; columns sum to 0."""


@dataclass(frozen=True, eq=False)
class _Strata:
    """The group of each question that some measures average over (-1 for none), and what groups weigh."""

    measures: Bool[ndarray, "measures"]
    groups: Int[ndarray, "n"]
    directions: Int[ndarray, "groups"]
    shares: Float[ndarray, "groups"] | None


@dataclass(frozen=True, eq=False)
class _Weighing:
    """Sums by cluster, model and measure over one direction of one part, and what the part weighs."""

    direction: int
    weight: float
    rows: Int[ndarray, "clusters"]
    sums: ExactSums
    counts: Float[ndarray, "clusters measures"]

    def mean(self, weights: Float[ndarray, "draws all"]) -> Float[ndarray, "draws models measures"]:
        """The mean of each measure in each draw; NaN where no query of the part was drawn."""
        drawn = weights[:, self.rows]
        shape = len(weights), -1, self.counts.shape[1]
        totals = self.sums.weighted(drawn).reshape(shape) / self.sums.scale
        counts = (drawn.astype(np.float64) @ self.counts)[:, None]
        return np.divide(totals, counts, out=np.full_like(totals, np.nan), where=counts > 0)


def mean_draws(
    models: Sequence[str], measures: Sequence[str], table: Float[ndarray, "n columns"], drawn: DrawnQuestions
) -> MeasureDraws:
    """Measures that are means over directions of means over parts (or macro groups) of means over queries.

    `table` is (n, models x measures), NaN where there is no value. A part without a drawn query is left out.
    """
    questions = drawn.benchmark.questions
    macro = np.array([averaged(name, questions.form) != name for name in measures])
    # The parts of each direction, and the groups of macro means; those that any of the measures is of.
    strata = []
    if not macro.all():
        pairs = np.stack([questions.directions, questions.query_parts], axis=1)
        kinds, groups = np.unique(pairs, axis=0, return_inverse=True)
        strata.append(_Strata(~macro, groups.reshape(-1), kinds[:, 0], None))
    if macro.any():
        groups, shares = macro_groups(drawn.benchmark, np.ones(len(questions), dtype=bool))
        together = np.zeros(int(groups.max(initial=-1)) + 1, dtype=np.int64)
        strata.append(_Strata(macro, groups, together, shares))
    wide = None
    if drawn.dependence.crossed:
        defined, inflated = ~np.isnan(table), np.ones(table.shape[1])
        for stratum in strata:
            tiled = np.tile(stratum.measures, len(models))
            for rows in np.unique(defined[:, tiled].T, axis=0):
                columns = (defined == rows[:, None]).all(axis=0) & tiled
                if rows.any():
                    moved = deviations(table[rows][:, columns], stratum.groups[rows], stratum.shares)[1]
                    inflated[columns] = inflation(drawn.dependence.part(rows), moved)
        wide = inflated.reshape(len(models), -1)
    parts = _parts(strata, models, table, drawn)

    def weighted(weights: Float[ndarray, "draws all"]) -> Float[ndarray, "draws models measures"]:
        of_directions = []
        for direction in sorted({part.direction for part in parts}):
            same = [part for part in parts if part.direction == direction]
            of_directions.append(
                _mean_of([part.mean(weights) for part in same], [part.weight for part in same])
            )
        return _mean_of(of_directions, [1.0] * len(of_directions))

    return MeasureDraws(tuple(models), tuple(measures), drawn.n_clusters, wide, weighted)


def _mean_of(arrays: Sequence[ndarray], weights: Sequence[float]) -> ndarray:
    """The weighted mean of arrays, of those that are defined at each place."""
    total, count = np.zeros_like(arrays[0]), np.zeros_like(arrays[0])
    for array, weight in zip(arrays, weights, strict=True):
        defined = ~np.isnan(array)
        total += np.where(defined, weight * array, 0.0)
        count += weight * defined
    return np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0)


def _parts(
    strata: Sequence[_Strata],
    models: Sequence[str],
    table: Float[ndarray, "n columns"],
    drawn: DrawnQuestions,
) -> list[_Weighing]:
    clusters, n_clusters = drawn.clusters, drawn.n_clusters
    defined = ~np.isnan(table).reshape(len(table), len(models), -1)
    having = defined.any(axis=0)
    # Whether a query has a value under a measure is the benchmark's business, not the model's.
    of_measure = defined.any(axis=1)
    if (defined != (of_measure[:, None] & having[None])).any():
        row, model, _ = np.argwhere(defined != (of_measure[:, None] & having[None]))[0]
        raise InputError(
            f"models on {drawn.benchmark.name} have values for different queries",
            given=f"'{models[model]}' differs at '{drawn.benchmark.questions.ids[row]}'",
            hint="evaluate all of them in the same way",
        )
    # A model without a measure has no sums of it.
    absent = np.where(having, 0.0, np.nan).reshape(-1)
    parts = []
    for stratum in strata:
        counted = of_measure & stratum.measures
        for group, direction in enumerate(stratum.directions.tolist()):
            rows = np.flatnonzero((stratum.groups == group) & counted.any(axis=1))
            if not len(rows):
                continue
            present = np.unique(clusters[rows])
            # A draw may hold any cluster as often as there are clusters, so all of them bound the sums.
            others = np.setdiff1d(np.arange(n_clusters), present)
            codes = np.concatenate([clusters[rows], others])
            values = np.zeros((len(codes), table.shape[1]))
            values[: len(rows)] = np.nan_to_num(table[rows])
            sums = exact_sums(values, codes, repeats=n_clusters)
            numbers = sums.numbers[present] + absent.astype(sums.numbers.dtype)
            sums = replace(sums, numbers=numbers)
            counts = cluster_sums(counted[rows].astype(np.float64), clusters[rows])
            weight = 1.0 if stratum.shares is None else float(stratum.shares[group])
            parts.append(_Weighing(direction, weight, present, sums, counts))
    return parts
