"""Measures that are means over questions, with intervals."""

from collections.abc import Mapping, Sequence
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from counterfoil.data.benchmark import Benchmark
from counterfoil.evaluation.result import Estimate
from counterfoil.stats.estimates import cluster_bootstrap, macro_bootstrap, t_over_folds, wilson


class Interval(StrEnum):
    """How an interval is made.

    `auto` is Wilson where questions are independent and the clustered bootstrap where they share images or
    captions; `folds` is Student's t over four parts, as in Winoground's appendix A. In a gallery all queries
    look through the same items: `auto` is the bootstrap over images with their captions, `wilson` takes
    queries as independent, and there are no `folds`. Correlations with ratings have the bootstrap only.
    """

    AUTO = "auto"
    WILSON = "wilson"
    BOOTSTRAP = "bootstrap"
    FOLDS = "folds"


def method(benchmark: Benchmark, interval: Interval) -> Interval:
    """What `auto` stands for: Wilson's, unless questions share images or captions."""
    if interval is not Interval.AUTO:
        return interval
    shared = len(np.unique(benchmark.clusters)) < len(benchmark)
    return Interval.BOOTSTRAP if shared else Interval.WILSON


def estimates(
    benchmark: Benchmark,
    values: Mapping[str, NDArray[np.float64]],
    names: Sequence[str],
    mask: NDArray[np.bool_],
    by_chance: Mapping[str, float],
    *,
    interval: Interval,
    draws: int,
    seed: int,
) -> dict[str, Estimate]:
    """The named measures over the questions of a mask, from their values per question."""
    plain = [name for name in names if name != "accuracy_macro"]
    table = (
        np.stack([values[name][mask] for name in plain], axis=1) if plain else np.zeros((int(mask.sum()), 0))
    )
    n = len(table)
    chosen = method(benchmark, interval)
    if chosen is Interval.BOOTSTRAP and plain:
        low, high = cluster_bootstrap(table, benchmark.clusters[mask], draws=draws, seed=seed)
        bounds = list(zip(low.tolist(), high.tolist(), strict=True))
    elif chosen is Interval.FOLDS and n >= 4:
        bounds = [t_over_folds(column) for column in table.T]
    else:
        bounds = [wilson(float(column.sum()), n) for column in table.T]
    found = {
        name: Estimate(float(column.mean()), float(bound[0]), float(bound[1]), n, by_chance[name])
        for name, column, bound in zip(plain, table.T, bounds, strict=True)
    }
    if "accuracy_macro" in names:
        labels = np.asarray(benchmark.questions.groupings[benchmark.card.macro], dtype=object)[mask]
        if any(labels):
            found["accuracy_macro"] = _macro(
                values["accuracy"][mask], labels, benchmark.clusters[mask], by_chance["accuracy"], draws, seed
            )
    return {name: found[name] for name in names if name in found}


def _macro(
    values: NDArray[np.float64],
    labels: NDArray[np.object_],
    clusters: NDArray[np.int64],
    by_chance: float,
    draws: int,
    seed: int,
) -> Estimate:
    """The mean over groups of each group's accuracy; questions outside every group do not count."""
    inside = labels != ""
    codes = np.unique(labels[inside].astype(str), return_inverse=True)[1].astype(np.int64)
    value, low, high = macro_bootstrap(values[inside], codes, clusters[inside], draws=draws, seed=seed)
    return Estimate(value, low, high, int(inside.sum()), by_chance)
