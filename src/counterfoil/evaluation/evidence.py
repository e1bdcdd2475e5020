"""Levels and differences with their intervals, each the evidence for a finding."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Literal

import numpy as np

from counterfoil.errors import InputError
from counterfoil.evaluation.result import Estimate, Run, tenths
from counterfoil.stats.dependence import Sharing
from counterfoil.stats.intervals import differences as paired_differences
from counterfoil.stats.tests import holm


@dataclass(frozen=True)
class Evidence:
    """A number with its interval: a "level" (a measure, in [0, 1]) or a "difference" of two, in [-1, 1].

    `measure` is what it is in, "i2t − t2i" where two measures are held against each other. `low` and `high`
    bound it (95 %); `n` is how many questions it rests on. A level has its `chance`. A difference that
    decides a finding has the `threshold` it is held against; `p` is that of no difference, `p_holm` the same
    after Holm's step-down over the finding's deciding differences, None for differences between two
    benchmarks.
    """

    label: str
    measure: str
    kind: Literal["level", "difference"]
    value: float
    low: float
    high: float
    n: int
    chance: float | None = None
    p: float | None = None
    p_holm: float | None = None
    threshold: float = 0.0
    decides: bool = False

    @classmethod
    def of(cls, label: str, measure: str, estimate: Estimate) -> "Evidence":
        """The level that an estimate is."""
        e = estimate
        return cls(label, measure, "level", e.value, e.low, e.high, e.n, e.chance)

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
    return Evidence(
        label,
        between(one.measure, other.measure),
        "difference",
        value,
        max(-2.0, value - sqrt((one.value - one.low) ** 2 + (other.high - other.value) ** 2)),
        min(2.0, value + sqrt((one.high - one.value) ** 2 + (other.value - other.low) ** 2)),
        min(one.n, other.n),
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


def check_same(runs: Sequence[Run]) -> None:
    """Raise `InputError` unless all runs ask the same questions and count ties alike."""
    first = runs[0]
    for run in runs:
        if run.benchmark.questions.ids != first.benchmark.questions.ids:
            raise InputError(
                "runs ask different questions, so they cannot be paired",
                where=run.name,
                given=f"'{first.benchmark.name}' ({len(first.benchmark):,}) and "
                f"'{run.benchmark.name}' ({len(run.benchmark):,})",
                hint="evaluate all models on the same data",
            )
        policies = [str(either.result.ties.get("policy")) for either in (first, run)]
        if policies[0] != policies[1]:
            raise InputError("runs count ties differently", where=run.name, given=", ".join(policies))


#: One side of a difference: the mean of a measure over the runs of some models.
Side = tuple[Sequence[Run], str]


def differences(comparisons: Sequence[tuple[str, Side, Side]], *, threshold: float = 0.0) -> list[Evidence]:
    """Every (label, a, b) as "a minus b" over the same questions, with interval and p-value.

    Intervals are Tango's for the effective number of questions, with the p-values that belong to them. Raises
    `InputError` where the models were not asked the same questions.
    """
    sides = [side for _, *both in comparisons for side in both]
    runs = [run for runs_of_side, _ in sides for run in runs_of_side]
    check_same(runs)
    columns = [
        np.mean([run.items[measure] for run in runs_of_side], axis=0) for runs_of_side, measure in sides
    ]
    pairs = np.arange(len(columns)).reshape(-1, 2)
    # Means of thirds may end in 1 + 2e-16.
    answers = np.clip(np.stack(columns, axis=1), 0.0, 1.0)
    common = Sharing.joined([run.benchmark.sharing for run in runs])
    table = paired_differences(answers.T[:, :, None], common, pairs)[:, :, 0]
    means = answers.mean(axis=0)
    table[0] = means[pairs[:, 0]] - means[pairs[:, 1]]
    numbers = zip(comparisons, *table.tolist(), strict=True)
    return [
        Evidence(
            label,
            between(one[1], other[1]),
            *("difference", value, low, high, len(answers)),
            p=None if np.isnan(p) else p,
            threshold=threshold,
        )
        for (label, one, other), value, low, high, p in numbers
    ]
