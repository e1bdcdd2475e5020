"""Numbers that claims rest on: levels and differences with their intervals, and how words say them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Literal

import numpy as np

from counterfoil.stats.tests import holm


@dataclass(frozen=True)
class Evidence:
    """A number with its interval: a "level" (a measure, in [0, 1]) or a "difference" of two, in [-1, 1].

    `measure` is what it is in, "i2t − t2i" where two measures are held against each other. `low` and `high`
    bound it (95 %); `n` is how many questions it rests on; `seeds` holds the same number for
    every seed alone. A level has its `chance`. A difference that decides a finding has the `threshold` it is
    held against; `p` is the paired permutation test's against 0, `p_holm` the same after Holm's step-down
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

    @property
    def above(self) -> bool:
        """Whether the number is above its threshold: the whole interval, and significantly after Holm."""
        return self.low > self.threshold and (self.p_holm is None or self.p_holm < 0.05)

    @property
    def below(self) -> bool:
        """Whether the whole interval lies below the threshold."""
        return self.high < self.threshold


def apart(label: str, one: Evidence, other: Evidence) -> Evidence:
    """`one` minus `other`, where they are about different questions: two differences on two benchmarks.

    The interval is made of theirs (the method of variance estimates recovery), which takes the two sets of
    questions as drawn independently of each other.

    Source: G. Y. Zou and A. Donner, Construction of confidence limits about effect measures, 2008.

    >>> gains = [Evidence(name, "m", "difference", v, v - 0.03, v + 0.03, 100)
    ...          for name, v in (("a", 0.10), ("b", 0.04))]
    >>> found = apart("a against b", *gains)
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
    tested = [each.p for each in evidence if each.p is not None]
    stepped = iter(holm(np.array(tested)).tolist() if tested else [])
    return [
        replace(each, decides=True, p_holm=None if each.p is None else next(stepped)) for each in evidence
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
        tenths(each, signed=True) for each in (difference.value, difference.low, difference.high)
    )
    return f"{value} points ({low} to {high})"


def tenths(value: float, *, signed: bool = False) -> str:
    """A ratio, a correlation or a difference times a hundred, with one decimal.

    What rounds to nothing has no sign.

    >>> tenths(-0.0412), tenths(0.5), tenths(0.069, signed=True), tenths(-0.0002, signed=True)
    ('−4.1', '50.0', '+6.9', '0.0')
    """
    text = f"{100 * value:{'+' if signed else ''}.1f}"
    return text.replace("-", "−") if float(text) else text.lstrip("+-")
