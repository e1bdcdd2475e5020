"""Means over questions, with intervals, and tests of whether they are beyond chance."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Any

import numpy as np

from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.evaluation.result import Estimate
from counterfoil.metrics.measures import Measure, of_form
from counterfoil.stats import Reals, Truths, Wholes
from counterfoil.stats.dependence import Dependence
from counterfoil.stats.intervals import NORMAL, Spread, macro_weights, spread, wilson


class IntervalMethod(StrEnum):
    """How an interval is made.

    `auto` is Wilson where questions share nothing; where what they share falls into many small clusters,
    `clusters`, from the variance over these; else `crossed`, from the variance over images and captions as
    crossed factors (`stats.two_way_clustering`). `clusters` and `crossed` ask for one of the two whatever is
    shared, and `wilson` takes questions as independent, which measures of all questions together have not.
    """

    AUTO = "auto"
    WILSON = "wilson"
    CLUSTERS = "clusters"
    CROSSED = "crossed"


def method(dependence: Dependence, interval: IntervalMethod) -> IntervalMethod:
    """The method that `auto` chooses: Wilson's, unless questions share images or captions."""
    if interval is not IntervalMethod.AUTO:
        return interval
    if dependence.independent:
        return IntervalMethod.WILSON
    return IntervalMethod.CROSSED if dependence.crossed else IntervalMethod.CLUSTERS


def resampled_by(dependence: Dependence, interval: IntervalMethod) -> Wholes | Dependence:
    """The dependence that an interval takes into account: under `wilson` none."""
    if interval is IntervalMethod.AUTO:
        return dependence
    if interval is IntervalMethod.CROSSED:
        return replace(dependence, always_crossed=True)
    return dependence.components if interval is IntervalMethod.CLUSTERS else np.arange(len(dependence))


def facts(benchmark: Benchmark, interval: IntervalMethod) -> dict[str, Any]:
    """What a result says of its intervals: the method, and the items that they are about."""
    dependence = benchmark.measured_dependence
    given = {"images": int(dependence.given_images.sum()), "captions": int(dependence.given_captions.sum())}
    images, captions = dependence.counts
    described: dict[str, Any] = {
        "method": str(method(dependence, interval)),
        "level": 0.95,
        "images": images,
        "captions": captions,
        "clusters": dependence.clustered,
        "apart": round(dependence.shared.n_independent, 1),
    }
    if interval in (IntervalMethod.AUTO, IntervalMethod.CROSSED) and any(given.values()):
        described["given"] = given
    return described


#: Chance of a measure: of all questions alike, or of each, (n,).
Chance = float | Reals


def chance(benchmark: Benchmark, measure: Measure, by_chance: Chance, mask: Truths) -> float:
    """Chance over the questions of a mask: a mean over groups where the measure is one."""
    if not isinstance(by_chance, np.ndarray):
        return by_chance
    if not measure.macro_of:
        return float(by_chance[mask].mean())
    groups, shares = macro_groups(benchmark, mask)
    return float(macro_weights(groups, shares) @ by_chance[mask]) if (groups >= 0).any() else np.nan


def macro_groups(benchmark: Benchmark, mask: Truths) -> tuple[Wholes, Reals | None]:
    """The macro group of each question of a mask, -1 for none, and the weights of groups (None: equal). Of
    several groupings each group shares the weight of the larger one equally with its siblings.
    """
    groupings = benchmark.questions.groupings
    columns = [np.asarray(groupings[name], dtype=object)[mask] for name in benchmark.card.macro_groupings]
    inside = np.logical_and.reduce([column != "" for column in columns])
    paths = [tuple(path) for path in zip(*(column[inside].astype(str) for column in columns), strict=True)]
    kinds = sorted(set(paths))
    number = {path: i for i, path in enumerate(kinds)}
    groups = np.full(len(inside), -1, dtype=np.int64)
    groups[inside] = [number[path] for path in paths]
    if len(columns) == 1:
        return groups, None
    siblings: dict[tuple[str, ...], set[str]] = {}
    for path in kinds:
        for depth, label in enumerate(path):
            siblings.setdefault(path[:depth], set()).add(label)
    shares = [np.prod([1 / len(siblings[path[:depth]]) for depth in range(len(path))]) for path in kinds]
    return groups, np.asarray(shares, dtype=np.float64)


def of_spread(
    spread: Spread, names: Sequence[str], n: Sequence[int], chances: Mapping[str, float | None]
) -> dict[str, Estimate]:
    """The values of a spread with Wilson's 95 % intervals, by name; `n` is how many questions each is of."""
    columns = zip(names, spread.value, *spread.wilson(), n, spread.effective(), strict=True)
    return {
        name: Estimate(float(value), float(low), float(high), many, chances[name], float(effective))
        for name, value, low, high, many, effective in columns
    }


def estimates(
    benchmark: Benchmark,
    values: Mapping[str, Reals],
    names: Sequence[str],
    mask: Truths,
    by_chance: Mapping[str, Chance],
    *,
    interval: IntervalMethod,
) -> dict[str, Estimate]:
    """The named measures over the questions of a mask, from their values per question, with chance there."""
    declared = {measure.name: measure for measure in of_form(benchmark.questions.form)}
    plain = [name for name in names if not declared[name].macro_of]
    table = (
        np.stack([values[name][mask] for name in plain], axis=1) if plain else np.zeros((int(mask.sum()), 0))
    )
    n = len(table)
    chances = {name: chance(benchmark, declared[name], by_chance[name], mask) for name in names}
    chosen = method(benchmark.dependence, interval)
    shared = resampled_by(benchmark.dependence.part(mask), interval)
    effective = [float(n)] * len(plain)
    if chosen in (IntervalMethod.CLUSTERS, IntervalMethod.CROSSED) and plain:
        clustered = spread(table, shared)
        bounds = list(zip(*(ends.tolist() for ends in clustered.wilson()), strict=True))
        effective = clustered.effective().tolist()
    else:
        bounds = [wilson(float(column.sum()), n) for column in table.T]
    by_name = {
        name: Estimate(float(column.mean()), float(bound[0]), float(bound[1]), n, chances[name], many)
        for name, column, bound, many in zip(plain, table.T, bounds, effective, strict=True)
    }
    for name in names:
        of = declared[name].macro_of
        if not of:
            continue
        groups, shares = macro_groups(benchmark, mask)
        if (groups >= 0).any():
            # Wilson's interval knows no groups: the variance over what they take as shared.
            of_groups = spread(values[of][mask][:, None], shared, groups=groups, shares=shares)
            # Questions outside every group do not count.
            by_name |= of_spread(of_groups, [name], [int((groups >= 0).sum())], chances)
    return {name: by_name[name] for name in names if name in by_name}


#: The chance, at most, of naming any number beyond chance, or any word an artefact, where none is.
LEVEL = 0.05

#: By how much the standard error of ten folds is wider than that of as many independent answers: what is
#: learned in one fold rests on the answers of the others. Source: C. Nadeau, Y. Bengio, Inference for the
#: generalization error, 2003 (a variance 1 + J n_test / n_train times as large).
OF_FOLDS = (1 + 10 / 9) ** 0.5


def one_sided(estimate: Estimate, *, above: bool, correlation: bool = False, wider: float = 1.0) -> float:
    """The p-value of "not above chance" (or "not below"), in (0, 1]: the test that the 95 % interval
    inverts. 1 where chance is unknown or on the other side. `wider` enlarges the standard error; intervals
    are Wilson's, and of correlations taken as symmetric.

    >>> round(one_sided(Estimate(0.6, 0.5020, 0.6906, 100, 0.5, 100.0), above=True), 3)
    0.023
    """
    from scipy.special import stdtr, stdtridf

    value, chance = estimate.value, estimate.chance
    if chance is None or not (value > chance if above else value < chance):
        return 1.0
    # The end of the interval on the side of chance.
    end = estimate.low if above else estimate.high
    reach, distance = abs(end - value), abs(chance - value) / wider
    if correlation:
        return float(stdtr(np.inf, -NORMAL * distance / max(reach, 1e-12)))
    width = reach**2 / max(end * (1 - end), 1e-12)
    statistic = distance / np.sqrt(max(width * chance * (1 - chance), 1e-12))
    quantile = NORMAL if estimate.effective is None else np.sqrt(width * estimate.effective)
    freedom = stdtridf(0.975, quantile) if quantile > NORMAL + 1e-6 else np.inf
    return float(stdtr(freedom, -quantile * statistic))
