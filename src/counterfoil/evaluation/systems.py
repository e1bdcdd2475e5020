"""Correlations of metrics with people over the scores of systems.

A system's number is made of sums over images, so a sample of images is a product of its weights and these
sums; numbers of which no images are known are `fixed`. Intervals are over `images`, drawn jointly for metrics
and people while systems stay, or over `systems`, no narrower than perfect agreement leaves them
(`rank_correlation.perfect`). The permutation test is always over systems. `ONE_PERSON` is the mean over
judges of each one's correlation with the mean of the others, a bound for metrics.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from math import factorial, isfinite
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray

from counterfoil.errors import InputError
from counterfoil.evaluation.rank_correlation import as_spearman, perfect, widened
from counterfoil.evaluation.result import Plain
from counterfoil.metrics.correlation import middle_ranks, weighted_pearson, weighted_spearman, weighted_tau_b
from counterfoil.stats import Reals
from counterfoil.stats.bootstrap import cluster_draws, percentiles, sign_draws
from counterfoil.stats.tests import holm, williams

#: The number that sums over images make, along the last axis.
NumberOf = Callable[[Reals], Reals]


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
        return self.take(np.array([self.systems.index(name) for name in names], dtype=np.int64))

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
    return SystemScores(first.systems, ratio(sums.sum(axis=1)), sums, ratio)


#: The correlations over systems; tau-c says nothing that tau-b does not where hardly any two tie.
MEASURES = ("kendall_tau_b", "spearman", "pearson")
#: The fewest systems of which an order says anything, and the fewest whose order is tested.
LEAST, ENOUGH = 3, 10
#: What is correlated with people as if it were a metric: one of them, with the mean of the others.
ONE_PERSON = "one person"
#: Numbers that a block of samples may hold.
_AT_ONCE = 1 << 21
#: The most systems of which the test looks at every order: 8! are 40,320.
_EVERY_ORDER = 8

Over = Literal["images", "systems"]
Numbers = SystemScores | Mapping[str, float]


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

    def around(self, values: Reals, samples: Float[ndarray, "draws m"], n: int) -> Float[ndarray, "2 m"]:
        """Ends around correlations over n systems, at least as far as perfect agreement would reach.

        Images drawn anew add their noise twice: percentiles or their reflections, whichever is further.
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
    weights = np.ones(values.shape[:2]) if weights is None else weights
    of = (weighted_tau_b, weighted_spearman, weighted_pearson)
    return np.stack([measure(values, weights) for measure in of], axis=1)


def _between(*of: SystemScores) -> Float[ndarray, "3 columns columns"]:
    return measures(np.stack([scores.fixed for scores in of], axis=1)[None])[0]


@dataclass(frozen=True)
class SystemDifference(Plain):
    """Metric `a`'s correlation with people less `b`'s, with tests; `williams` is of Pearson's alone."""

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
    rows: list[tuple[str, str, Reals, Reals, Reals, float]] = []
    for a, b in combinations(columns, 2):
        systems = [s for s in columns[a][0].systems if s in columns[b][0].systems]
        if len(systems) < LEAST:
            continue
        first, second, humans = (
            of.of_systems(systems) for of in (columns[a][0], columns[b][0], columns[a][1])
        )
        between = _between(first, second, humans)
        values = between[:, 0, 2] - between[:, 1, 2]
        if np.isnan(values).any():
            continue
        ends = np.full((2, len(MEASURES)), np.nan)
        if drawing.drawable(first, second, humans):
            samples = drawing.correlations(first, second, humans)
            ends = percentiles(samples[:, :, 0, 2] - samples[:, :, 1, 2])
            ends = np.stack([np.fmin(ends[0], values), np.fmax(ends[1], values)])
        p, r = _swapped(first, second, humans, values, drawing), between[-1]
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
) -> Reals:
    """p of "both metrics are exchangeable"; NaN over images where a metric is no mean of images' scores."""
    if drawing.over == "systems":
        one, other = (((of.fixed - of.fixed.mean()) / of.fixed.std())[:, None] for of in (first, second))
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


@dataclass(frozen=True)
class SystemCorrelation(Plain):
    """One correlation of a metric with a human score; `p` is over all orders (drawn ones if not `exact`)."""

    metric: str
    human: str
    measure: str
    systems: int
    value: float
    low: float
    high: float
    p: float
    exact: bool


@dataclass(frozen=True)
class SystemCorrelations:
    """All metrics with all human scores; `left_out` names systems that some metric or human score lacks."""

    metrics: tuple[str, ...]
    humans: tuple[str, ...]
    correlations: tuple[SystemCorrelation, ...]
    differences: tuple[SystemDifference, ...]
    left_out: Mapping[str, tuple[str, ...]]
    over: Over
    images: int
    draws: int
    seed: int
    notes: tuple[str, ...]

    def get(self, metric: str, human: str, measure: str) -> SystemCorrelation:
        """One of them."""
        wanted = metric, human, measure
        return next(row for row in self.correlations if (row.metric, row.human, row.measure) == wanted)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        drawn = {"level": 0.95, "draws": self.draws, "seed": self.seed}
        return {
            "correlations": [row.to_json() for row in self.correlations],
            "differences": [row.to_json() for row in self.differences],
            "left_out": {name: list(systems) for name, systems in self.left_out.items()},
            "notes": list(self.notes),
            "interval": {"method": "percentiles", "over": self.over, "images": self.images, **drawn},
        }


def system_correlations(
    table: Mapping[str, Numbers],
    humans: Mapping[str, Numbers],
    *,
    judges: Mapping[str, Mapping[str, SystemScores]] | None = None,
    over: Over = "images",
    draws: int = 10_000,
    seed: int = 0,
) -> SystemCorrelations:
    """tau-b, Spearman's and Pearson's correlation of every metric with every human score, over systems.

    `judges` are what each person said, by human score. Raises `InputError` for fewer than three common
    systems, values that are not finite and different images.
    """
    metrics, people = _finite(table, "metric"), _finite(humans, "human score")
    everyone = tuple(dict.fromkeys(s for of in (*metrics.values(), *people.values()) for s in of.systems))
    left_out = {
        name: lacking
        for name, of in (*metrics.items(), *people.items())
        if (lacking := tuple(system for system in everyone if system not in of.systems))
    }
    each_judge = judges or {}
    of_judges = (of for by_judge in each_judge.values() for of in by_judge.values())
    images = {of.images for of in (*metrics.values(), *people.values(), *of_judges) if of.images}
    if len(images) > 1:
        raise InputError("metrics and people are about different images", given=sorted(images))
    drawing = SystemDraws(over, next(iter(images), 0), draws, seed)
    correlations, differences, notes = [], [], []
    for human, scores in people.items():
        # Both columns over the systems that both have, in one order.
        columns = {}
        for metric, of in metrics.items():
            both = [system for system in everyone if system in of.systems and system in scores.systems]
            if len(both) < LEAST:
                raise InputError(
                    "too few systems to correlate",
                    where=f"{metric} with {human}",
                    given=", ".join(both) or "no system that both have",
                    allowed=f"{LEAST} systems or more",
                    hint="are systems called the same in both?",
                )
            columns[metric] = of.of_systems(both), scores.of_systems(both)
        for metric, both_of in columns.items():
            x, y = both_of[0].fixed, both_of[1].fixed
            values = _between(*both_of)[:, 0, 1]
            p, low, high = np.full((3, len(MEASURES)), np.nan)
            if not np.isnan(values).any():
                p = _test(x, y, draws, seed)
                if drawing.drawable(*both_of):
                    low, high = drawing.around(values, drawing.correlations(*both_of)[:, :, 0, 1], len(x))
            numbers = values, low, high, p
            correlations += _rows(metric, human, len(x), numbers, exact=len(x) <= _EVERY_ORDER)
            notes += _why_missing(metric, human, *both_of, drawing)
        correlations += _one_person(human, each_judge.get(human, {}), drawing)
        differences += differences_of(human, columns, drawing)
    fewest = min((correlation.systems for correlation in correlations), default=ENOUGH)
    if fewest < ENOUGH:
        least = 2 / factorial(fewest)
        notes.append(f"only {fewest} systems: no p-value of a correlation is below {least:.2g}")
    if fewest == LEAST:
        notes.append(f"Williams' test takes {LEAST + 1} systems or more")
    made_with = over, drawing.images, draws, seed, tuple(dict.fromkeys(notes))
    return SystemCorrelations(
        tuple(metrics), tuple(people), tuple(correlations), tuple(differences), left_out, *made_with
    )


def _finite(columns: Mapping[str, Numbers], kind: str) -> dict[str, SystemScores]:
    scores = {n: of if isinstance(of, SystemScores) else SystemScores.of(of) for n, of in columns.items()}
    for name, of in scores.items():
        for system, value in zip(of.systems, of.fixed.tolist(), strict=True):
            if not isfinite(value):
                where = f"{name}, system '{system}'"
                raise InputError(f"a system's {kind} is not a finite number", where=where, given=value)
    return scores


def _rows(
    metric: str, human: str, n: int, numbers: Sequence[Reals], *, exact: bool
) -> list[SystemCorrelation]:
    columns = zip(MEASURES, *(column.tolist() for column in numbers), strict=True)
    return [
        SystemCorrelation(metric, human, name, n, value, low, high, p, exact)
        for name, value, low, high, p in columns
    ]


def _one_person(
    human: str, judges: Mapping[str, SystemScores], drawing: SystemDraws
) -> list[SystemCorrelation]:
    """The mean over judges of each one's correlation with the mean of the others; none for a single judge."""
    if len(judges) < 2:
        return []
    pairs = []
    for name, scores in judges.items():
        others = together({other: of for other, of in judges.items() if other != name})
        both = ~(np.isnan(scores.fixed) | np.isnan(others.fixed))
        if both.sum() >= LEAST:
            pairs.append((scores.take(both), others.take(both)))
    if not pairs:
        return []
    values = np.mean([_between(*pair)[:, 0, 1] for pair in pairs], axis=0)
    p, low, high = np.full((3, len(MEASURES)), np.nan)
    fewest = min(len(scores.fixed) for scores, _ in pairs)
    if not np.isnan(values).any() and drawing.drawable(*(of for pair in pairs for of in pair)):
        samples = np.mean([drawing.correlations(*pair)[:, :, 0, 1] for pair in pairs], axis=0)
        low, high = drawing.around(values, samples, fewest)
    return _rows(ONE_PERSON, human, fewest, (values, low, high, p), exact=False)


def _why_missing(
    metric: str, human: str, scores: SystemScores, theirs: SystemScores, drawing: SystemDraws
) -> list[str]:
    if np.ptp(scores.fixed) == 0:
        return [f"{metric}: all systems have the same number, so there is no order to correlate"]
    if np.ptp(theirs.fixed) == 0:
        return [f"{human}: people gave all systems the same, so there is no order to correlate"]
    if drawing.over == "systems":
        return []
    if not drawing.drawable(scores, theirs):
        return [f"{metric}: no interval over images: its numbers are known of systems alone"]
    fixed = (name for name, of in ((metric, scores), (human, theirs)) if not of.images)
    given = "no scores of single images, so intervals over images take it as given"
    return [f"{name}: {given}" for name in fixed]


def _test(x: Float[ndarray, "n"], y: Float[ndarray, "n"], draws: int, seed: int) -> Float[ndarray, "3"]:
    """The share of all (or drawn) orders in which x goes with y at least as much as observed."""
    n = len(x)
    if n <= _EVERY_ORDER:
        orders = np.array(list(permutations(range(n))), dtype=np.int64)
    else:
        drawn = np.random.default_rng([seed, n]).permuted(np.tile(np.arange(n), (draws, 1)), axis=1)
        orders = np.concatenate([np.arange(n)[None], drawn])
    above = np.sign(x[:, None] - x), np.sign(y[:, None] - y)
    rank_x, rank_y = middle_ranks(x), middle_ranks(y)
    # What each is divided by is the same in every order.
    statistics = [
        np.einsum("oij,ij->o", above[0][orders[:, :, None], orders[:, None]], above[1]),
        (rank_x - rank_x.mean())[orders] @ (rank_y - rank_y.mean()),
        (x - x.mean())[orders] @ (y - y.mean()),
    ]
    # The observed order comes first.
    return np.array([(np.abs(of) >= abs(of[0]) * (1 - 1e-9)).mean() for of in statistics])
