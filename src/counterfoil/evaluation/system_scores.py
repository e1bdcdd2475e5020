"""Scores of each system by a metric or by people, and in draws of other images.

A number is made of sums over images, so a sample of images is a product of its weights and these sums.
Numbers of which no images are known are `fixed`: the same in every sample.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray
from numpy.typing import NDArray

from counterfoil.errors import InputError
from counterfoil.evaluation.rank_correlation import as_spearman, perfect, widened
from counterfoil.evaluation.result import Plain
from counterfoil.metrics.correlation import weighted_pearson, weighted_spearman, weighted_tau_b
from counterfoil.stats.bootstrap import cluster_draws, percentiles, sign_draws
from counterfoil.stats.tests import holm, williams

#: The number that sums over images make, along the last axis.
NumberOf = Callable[[NDArray[np.float64]], NDArray[np.float64]]


def ratio(sums: Float[ndarray, "... 2"]) -> Float[ndarray, "..."]:
    """A mean, of a sum and how many it is of; NaN of none."""
    total, n = sums[..., 0], sums[..., 1]
    return np.divide(total, n, out=np.full(np.shape(n), np.nan), where=n > 0)


@dataclass(frozen=True, eq=False)
class SystemScores:
    """One metric of some systems, or what people gave them. `sums` add up over images and `value` makes a
    number of them, None where `fixed`; `scores` are what images get, where the number is their mean.
    """

    systems: tuple[str, ...]
    fixed: Float[ndarray, "systems"]
    sums: Float[ndarray, "systems images k"] | None = None
    value: NumberOf = ratio
    scores: Float[ndarray, "systems images"] | None = None

    @classmethod
    def of(cls, numbers: Mapping[str, float]) -> "SystemScores":
        """Numbers by system, of which no images are known."""
        return cls(tuple(numbers), np.array([float(number) for number in numbers.values()]))

    @classmethod
    def summed(
        cls, systems: Sequence[str], sums: Float[ndarray, "systems images k"], value: NumberOf
    ) -> "SystemScores":
        """Of sums over images."""
        return cls(tuple(systems), value(sums.sum(axis=1)), sums, value)

    @classmethod
    def means(cls, systems: Sequence[str], scores: Float[ndarray, "systems images"]) -> "SystemScores":
        """Means of a score per image; NaN is no score, and does not count."""
        there = ~np.isnan(scores)
        sums = np.stack([np.where(there, scores, 0.0), there.astype(np.float64)], axis=2)
        return cls(tuple(systems), ratio(sums.sum(axis=1)), sums, ratio, scores if there.all() else None)

    @property
    def images(self) -> int:
        """How many images the numbers are made of; 0 where that is not known."""
        return 0 if self.sums is None else self.sums.shape[1]

    def take(self, chosen: Bool[ndarray, "systems"] | Int[ndarray, "some"]) -> "SystemScores":
        """The same of some systems, by a mask or by position."""
        return SystemScores(
            tuple(np.array(self.systems, dtype=object)[chosen].tolist()),
            self.fixed[chosen],
            None if self.sums is None else self.sums[chosen],
            self.value,
            None if self.scores is None else self.scores[chosen],
        )

    def of_systems(self, names: Sequence[str]) -> "SystemScores":
        """The same of some systems by name, in this order."""
        rows = np.array([self.systems.index(name) for name in names], dtype=np.int64)
        return self.take(rows)

    def drawn(self, weights: Float[ndarray, "draws images"]) -> Float[ndarray, "draws systems"]:
        """The numbers in samples of images, which count as often as they weigh; fixed ones as they are."""
        if self.sums is None:
            return np.broadcast_to(self.fixed, (len(weights), len(self.fixed)))
        systems, images, k = self.sums.shape
        flat = self.sums.transpose(1, 0, 2).reshape(images, systems * k)
        return self.value((weights.astype(np.float64) @ flat).reshape(len(weights), systems, k))


def together(judges: Mapping[str, SystemScores]) -> SystemScores:
    """The ratings of several judges on one scale: the mean over all of a system's ratings."""
    all_of = list(judges.values())
    for name, scores in judges.items():
        if scores.systems != all_of[0].systems or scores.images != all_of[0].images:
            raise InputError("judges are about different systems or images", where=name)
    first = all_of[0]
    if first.sums is None:
        fixed = np.stack([scores.fixed for scores in all_of])
        there = ~np.isnan(fixed)
        means = ratio(np.stack([np.where(there, fixed, 0.0).sum(axis=0), there.sum(axis=0)], axis=-1))
        return SystemScores(first.systems, means)
    sums = np.sum([scores.sums for scores in all_of if scores.sums is not None], axis=0)
    return SystemScores.summed(first.systems, sums, ratio)


#: The correlations over systems; tau-c says nothing that tau-b does not where hardly any two tie.
MEASURES = ("kendall_tau_b", "spearman", "pearson")

#: The fewest systems of which an order says anything.
LEAST = 3

Over = Literal["images", "systems"]

#: Numbers that a block of samples may hold.
_AT_ONCE = 1 << 21


@dataclass(frozen=True)
class SystemDraws:
    """What is drawn anew, and how often."""

    over: Over
    images: int
    draws: int
    seed: int

    def drawable(self, *of: SystemScores) -> bool:
        """Whether samples differ in any of these."""
        return self.over == "systems" or (self.images > 1 and any(scores.images for scores in of))

    def correlations(self, *of: SystemScores) -> Float[ndarray, "draws 3 columns columns"]:
        """The measures between all pairs of some columns in every sample, the same samples for all."""
        systems = len(of[0].fixed)
        n = systems if self.over == "systems" else self.images
        blocks = []
        for weights in cluster_draws(n, self.draws, seed=self.seed):
            step = max(1, _AT_ONCE // (systems**2 * len(of)))
            for lo in range(0, len(weights), step):
                part = weights[lo : lo + step].astype(np.float64)
                if self.over == "systems":
                    fixed = np.stack([scores.fixed for scores in of], axis=1)
                    blocks.append(measures(np.broadcast_to(fixed, (len(part), *fixed.shape)), part))
                else:
                    blocks.append(measures(np.stack([scores.drawn(part) for scores in of], axis=2)))
        return np.concatenate(blocks)

    def around(
        self, values: NDArray[np.float64], samples: Float[ndarray, "draws m"], n: int
    ) -> Float[ndarray, "2 m"]:
        """Ends of intervals around correlations over n systems. Over systems they reach at least as far as
        perfect agreement would. Over images samples add their noise a second time, so ends are percentiles
        or their reflections, whichever are further.
        """
        low, high = percentiles(samples)
        if self.over == "images":
            low, high = np.fmin(low, 2 * values - high), np.fmax(high, 2 * values - low)
            low, high = np.maximum(low, -1.0), np.minimum(high, 1.0)
        else:
            least = perfect(n)
            for k, limit in enumerate((least, as_spearman(least), as_spearman(least))):
                low[k], high[k] = widened(float(values[k]), float(low[k]), float(high[k]), least=limit)
        return np.stack([np.fmin(low, values), np.fmax(high, values)])


def measures(
    values: Float[ndarray, "draws rows columns"], weights: Float[ndarray, "draws rows"] | None = None
) -> Float[ndarray, "draws 3 columns columns"]:
    """`MEASURES` between all pairs of columns in each sample."""
    if weights is None:
        weights = np.ones(values.shape[:2])
    of = (weighted_tau_b, weighted_spearman, weighted_pearson)
    return np.stack([measure(values, weights) for measure in of], axis=1)


@dataclass(frozen=True)
class SystemDifference(Plain):
    """Metric `a`'s correlation with a human score less `b`'s; `p` is of swapping what was drawn, `p_holm`
    over all pairs and measures, `williams` of Pearson's alone. NaN what is not known.
    """

    a: str
    b: str
    human: str
    measure: str
    value: float
    low: float
    high: float
    p: float
    p_holm: float
    williams: float


def differences_of(
    human: str, columns: Mapping[str, tuple[SystemScores, SystemScores]], drawing: SystemDraws
) -> list[SystemDifference]:
    """Every pair of metrics over the systems that both (and people) have."""
    rows: list[tuple[str, str, NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], float]] = []
    for a, b in combinations(columns, 2):
        systems = [s for s in columns[a][0].systems if s in columns[b][0].systems]
        if len(systems) < LEAST:
            continue
        first, second, humans = (
            of.of_systems(systems) for of in (columns[a][0], columns[b][0], columns[a][1])
        )
        between = measures(np.stack([of.fixed for of in (first, second, humans)], axis=1)[None])[0]
        values = between[:, 0, 2] - between[:, 1, 2]
        if np.isnan(values).any():
            continue
        ends = np.full((2, len(MEASURES)), np.nan)
        if drawing.drawable(first, second, humans):
            samples = drawing.correlations(first, second, humans)
            ends = percentiles(samples[:, :, 0, 2] - samples[:, :, 1, 2])
            ends = np.stack([np.fmin(ends[0], values), np.fmax(ends[1], values)])
        p = _swapped(first, second, humans, values, drawing)
        r = between[-1]
        three = float(r[0, 2]), float(r[1, 2]), float(r[0, 1])
        both = williams(*three, len(systems)) if len(systems) > LEAST else float("nan")
        rows.append((a, b, values, ends, p, both))
    tested = np.concatenate([row[4] for row in rows]) if rows else np.empty(0)
    adjusted = np.full(len(tested), np.nan)
    adjusted[~np.isnan(tested)] = holm(tested[~np.isnan(tested)])
    return [
        SystemDifference(
            a, b, human, name, float(values[k]), float(ends[0][k]), float(ends[1][k]), float(p[k]),
            float(adjusted[len(MEASURES) * i + k]), both if name == "pearson" else float("nan"),
        )
        for i, (a, b, values, ends, p, both) in enumerate(rows)
        for k, name in enumerate(MEASURES)
    ]  # fmt: skip


def _swapped(
    first: SystemScores, second: SystemScores, theirs: SystemScores, values: ndarray, drawing: SystemDraws
) -> NDArray[np.float64]:
    """p of "both metrics are exchangeable"; NaN over images where a metric is no mean of images' scores."""
    if drawing.over == "systems":
        one, other = (((of.fixed - of.fixed.mean()) / of.fixed.std())[None] for of in (first, second))
        one, other = one.T, other.T
    elif first.scores is None or second.scores is None or first.scores.shape != second.scores.shape:
        return np.full(len(MEASURES), np.nan)
    else:
        one, other = ((of.scores - of.scores.mean()) / of.scores.std() for of in (first, second))  # type: ignore[union-attr]
    reached = np.zeros(len(MEASURES))
    units = len(one) if drawing.over == "systems" else one.shape[1]
    for signs in sign_draws(units, drawing.draws, seed=drawing.seed):
        if drawing.over == "systems":
            moved = signs * (one - other)[:, 0] / 2
            middle = (one + other)[:, 0] / 2
        else:
            moved = signs.astype(np.float64) @ (one - other).T / (2 * units)
            middle = (one + other).mean(axis=1) / 2
        people = np.broadcast_to(theirs.fixed, moved.shape)
        swapped = measures(np.stack([middle + moved, middle - moved, people], axis=2))
        gap = np.abs(swapped[:, :, 0, 2] - swapped[:, :, 1, 2])
        # A mixture that is equal for all systems correlates with nothing.
        reached += (np.nan_to_num(gap) >= np.abs(values) - 1e-9).sum(axis=0)
    return (1 + reached) / (drawing.draws + 1)
