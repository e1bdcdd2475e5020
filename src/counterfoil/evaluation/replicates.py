"""Several runs of one model, trained from different seeds, as one: the mean of their answers per question.

A question's value is its mean over the seeds, and intervals come from the variance over clusters of
questions, as for one run. So they say how far the mean of
*these* seeds would move with other questions; how far it would move with other seeds is what `Evidence.seeds`
shows, one number per seed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Literal

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from counterfoil.errors import InputError, UnknownNameError
from counterfoil.evaluation.evaluate import chance
from counterfoil.evaluation.forms import gallery, of
from counterfoil.evaluation.result import Estimate, Run, tenths
from counterfoil.stats.dependence import Sharing
from counterfoil.stats.estimates import cluster_interval
from counterfoil.stats.estimates import differences as paired_differences
from counterfoil.stats.tests import holm


@dataclass(frozen=True)
class Evidence:
    """A number with its interval: a "level" (a measure, in [0, 1]) or a "difference" of two, in [-1, 1].

    `measure` is what it is in, "i2t − t2i" where two measures are held against each other. `low` and `high`
    bound it (95 %); `n` is how many questions it rests on; `seeds` holds the same number for
    every seed alone. A level has its `chance`. A difference that decides a finding has the `threshold` it is
    held against; `p` is that of no difference, `p_holm` the same after Holm's step-down
    over the finding's deciding differences, None for differences between two benchmarks.
    """

    label: str
    measure: str
    kind: Literal["level", "difference"]
    value: float
    low: float
    high: float
    n: int
    chance: float | None = None
    seeds: tuple[float, ...] = ()
    p: float | None = None
    p_holm: float | None = None
    threshold: float = 0.0
    decides: bool = False

    @classmethod
    def of(cls, label: str, measure: str, estimate: Estimate, seeds: tuple[float, ...] = ()) -> "Evidence":
        """The level that an estimate is."""
        e = estimate
        return cls(label, measure, "level", e.value, e.low, e.high, e.n, e.chance, seeds)

    @property
    def above(self) -> bool:
        """Whether the number is above its threshold: the whole interval, and significantly after Holm."""
        return self.low > self.threshold and (self.p_holm is None or self.p_holm < 0.05)

    @property
    def below(self) -> bool:
        """Whether the whole interval lies below the threshold."""
        return self.high < self.threshold


def independent_difference(label: str, one: Evidence, other: Evidence) -> Evidence:
    """`one` minus `other`, where they are about different questions: two differences on two benchmarks.

    The interval is made of theirs (the method of variance estimates recovery), which takes the two sets of
    questions as drawn independently of each other.

    Source: G. Y. Zou and A. Donner, Construction of confidence limits about effect measures, 2008.

    >>> gains = [Evidence(name, "m", "difference", v, v - 0.03, v + 0.03, 100)
    ...          for name, v in (("a", 0.10), ("b", 0.04))]
    >>> found = independent_difference("a against b", *gains)
    >>> round(found.value, 2), round(found.low, 4), round(found.high, 4)
    (0.06, 0.0176, 0.1024)
    """
    value = one.value - other.value
    seeds = tuple(a - b for a, b in zip(one.seeds, other.seeds, strict=False))
    return Evidence(
        label,
        between(one.measure, other.measure),
        "difference",
        value,
        max(-2.0, value - sqrt((one.value - one.low) ** 2 + (other.high - other.value) ** 2)),
        min(2.0, value + sqrt((one.high - one.value) ** 2 + (other.value - other.low) ** 2)),
        min(one.n, other.n),
        seeds=seeds if len(one.seeds) == len(other.seeds) else (),
    )


def deciding(evidence: Sequence[Evidence]) -> list[Evidence]:
    """The same differences as one family that decides a finding: p-values after Holm's step-down."""
    tested = [number.p for number in evidence if number.p is not None]
    stepped = iter(holm(np.array(tested)).tolist() if tested else [])
    return [
        replace(number, decides=True, p_holm=None if number.p is None else next(stepped))
        for number in evidence
    ]


def between(one: str, other: str) -> str:
    """The measure that a difference is in, or both: "i2t − t2i"."""
    return one if one == other else f"{one} − {other}"


def percent(level: Evidence) -> str:
    """A level in words: "41.2 % (38.0 to 44.5)"."""
    return f"{100 * level.value:.1f} % ({100 * level.low:.1f} to {100 * level.high:.1f})"


def points(difference: Evidence) -> str:
    """A difference in words, with signs: "+3.1 points (−0.2 to +6.4)"."""
    value, low, high = (
        tenths(end, signed=True) for end in (difference.value, difference.low, difference.high)
    )
    return f"{value} points ({low} to {high})"


@dataclass(frozen=True, eq=False)
class Replicates:
    """Runs of one model on one benchmark, a run per seed.

    Raises `InputError` where there is none, or they ask different questions or count ties differently.
    """

    name: str
    runs: tuple[Run, ...]

    def __post_init__(self) -> None:
        if not self.runs:
            raise InputError("no runs", where=self.name)
        check_same([self])

    @property
    def sharing(self) -> Sharing:
        """What the questions share."""
        return self.runs[0].benchmark.sharing

    def values(self, measure: str) -> Float[ndarray, "n"]:
        """The mean over seeds of a measure's values per question; NaN where a gallery's query has none."""
        for run in self.runs:
            if not of(run.benchmark).values_per_item:
                raise InputError(
                    "a correlation with ratings is of all captions together: seeds have no values to average",
                    where=f"{self.name}, {run.name}",
                    hint="compare the runs one by one",
                )
            if measure not in run.items:
                raise UnknownNameError("measure", measure, run.items, where=f"{self.name}, {run.name}")
        return np.mean([run.items[measure] for run in self.runs], axis=0)

    def mean(self, measure: str) -> float:
        """The measure: over questions, or as galleries average over directions and parts."""
        return _mean(self.runs[0], self.values(measure))

    def level(self, measure: str) -> Evidence:
        """The measure with its interval. One run's own estimate stays what its result says."""
        values = self.values(measure)
        seeds = tuple(_mean(run, run.items[measure]) for run in self.runs)
        n, by_chance = len(self.sharing), chance(self.runs[0].benchmark).get(measure)
        known = self.runs[0].result.measures.get(measure)
        if len(self.runs) == 1 and known is not None:
            return Evidence.of(self.name, measure, known, seeds)
        if self.runs[0].benchmark.questions.directed:
            spread = gallery.spread(self.runs[0].benchmark, {measure: values}, (measure,), self.sharing)
            (low,), (high,) = spread.wilson(0.95)
            n = int((~np.isnan(values)).sum())
        else:
            (low,), (high,) = cluster_interval(np.clip(values, 0.0, 1.0)[:, None], self.sharing)
        estimate = Estimate(self.mean(measure), float(low), float(high), n, by_chance)
        return Evidence.of(self.name, measure, estimate, seeds)


def check_same(models: Sequence[Replicates]) -> None:
    """Raise `InputError` unless all runs of all models ask the same questions and count ties alike."""
    first = models[0].runs[0]
    for model in models:
        for run in model.runs:
            if run.benchmark.questions.ids != first.benchmark.questions.ids:
                raise InputError(
                    "runs ask different questions, so they cannot be paired",
                    where=model.name,
                    given=f"'{first.benchmark.name}' ({len(first.benchmark):,}) and "
                    f"'{run.benchmark.name}' ({len(run.benchmark):,})",
                    hint="evaluate all models on the same data",
                )
            policies = [str(either.result.ties.get("policy")) for either in (first, run)]
            if policies[0] != policies[1]:
                raise InputError("runs count ties differently", where=model.name, given=", ".join(policies))


#: One side of a difference: the mean of a measure over some models, each a mean over its seeds.
Side = tuple[Sequence[Replicates], str]


def differences(comparisons: Sequence[tuple[str, Side, Side]], *, threshold: float = 0.0) -> list[Evidence]:
    """Every (label, a, b) as "a minus b" over the same questions, with interval and p-value.

    A side is (models, measure): the mean over the models of the measure. Intervals are Tango's for the
    effective number of questions, with the p-values that belong to them; galleries have intervals alone, and
    both sides one measure. Raises `InputError` where the models were not asked the same questions.
    """
    if not comparisons:
        return []
    models = [model for _, one, other in comparisons for models, _ in (one, other) for model in models]
    check_same(models)
    benchmark = models[0].runs[0].benchmark
    columns = [
        np.mean([model.values(measure) for model in models_of_side], axis=0)
        for _, one, other in comparisons
        for models_of_side, measure in (one, other)
    ]
    pairs = np.arange(len(columns)).reshape(-1, 2)
    counts = [int((~np.isnan(column)).sum()) for column in columns[::2]]
    if benchmark.questions.directed:
        name = comparisons[0][1][1]
        values = [{name: column} for column in columns]
        table = gallery.differences(benchmark, values, (name,), benchmark.sharing, pairs)[:, :, 0]
        table[3] = np.nan
    else:
        # Means of thirds may end in 1 + 2e-16.
        answers = np.clip(np.stack(columns, axis=1), 0.0, 1.0)
        common = Sharing.joined([model.sharing for model in models])
        table = paired_differences(answers.T[:, :, None], common, pairs)[:, :, 0]
        means = answers.mean(axis=0)
        table[0] = means[pairs[:, 0]] - means[pairs[:, 1]]
    numbers = zip(comparisons, *table.tolist(), counts, strict=True)
    evidence = []
    for (label, one, other), value, low, high, p, n in numbers:
        # For every seed alone too, where all models of both sides have as many.
        runs = {len(model.runs) for models, _ in (one, other) for model in models}
        places = range(runs.pop()) if len(runs) == 1 else ()
        seeds = tuple(_of_seed(one, at) - _of_seed(other, at) for at in places)
        measure = between(one[1], other[1])
        number = Evidence(label, measure, "difference", value, low, high, n, seeds=seeds)
        evidence.append(replace(number, p=None if np.isnan(p) else p, threshold=threshold))
    return evidence


def _mean(run: Run, values: Float[ndarray, "n"]) -> float:
    return of(run.benchmark).mean(run.benchmark, values)


def _of_seed(side: Side, at: int) -> float:
    return float(np.mean([_mean(m.runs[at], m.runs[at].items[side[1]]) for m in side[0]]))
