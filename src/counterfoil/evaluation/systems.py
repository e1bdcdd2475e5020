"""Correlations of metrics with people over the scores of systems.

Intervals are over `images`, drawn jointly for metrics and people while systems stay (numbers without images
stay as they are), or over `systems`, no narrower than perfect agreement leaves them
(`rank_correlation.perfect`). The permutation test is always over systems. `ONE_PERSON` is the mean over
judges of each one's correlation with the mean of the others, a bound for metrics.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from math import factorial, isfinite
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from numpy.typing import NDArray

from counterfoil.errors import InputError
from counterfoil.evaluation.result import Plain
from counterfoil.evaluation.system_scores import (
    LEAST,
    MEASURES,
    Over,
    SystemDifference,
    SystemDraws,
    SystemScores,
    differences_of,
    measures,
    together,
)
from counterfoil.metrics.correlation import middle_ranks

#: What is correlated with people as if it were a metric: one of them, with the mean of the others.
ONE_PERSON = "one person"

#: The fewest systems whose order is tested.
ENOUGH = 10

#: With up to so many systems every order is looked at in the test: 8! are 40,320.
_EVERY_ORDER = 8

Numbers = SystemScores | Mapping[str, float]


@dataclass(frozen=True)
class SystemCorrelation(Plain):
    """One correlation of a metric with a human score over the systems that have both; NaN where undefined.
    `p` is two-sided, over all orders (over drawn ones, where `exact` is false).
    """

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
        return {
            "correlations": [row.to_json() for row in self.correlations],
            "differences": [row.to_json() for row in self.differences],
            "left_out": {name: list(systems) for name, systems in self.left_out.items()},
            "notes": list(self.notes),
            "interval": {
                "method": "percentiles",
                "over": self.over,
                "images": self.images,
                "level": 0.95,
                "draws": self.draws,
                "seed": self.seed,
            },
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
    Systems that one lacks are left out there. `judges` are what each person said, by human score. Raises
    `InputError` for fewer than three common systems, values that are not finite and different images.

    >>> people = {"M1": {"Google": 0.273, "MSR": 0.268, "NeuralTalk": 0.166, "Random": 0.007}}
    >>> means = {"cider": {"Google": 0.94, "MSR": 0.91, "NeuralTalk": 0.67, "Random": 0.05}}
    >>> found = system_correlations(means, people, over="systems", draws=200)
    >>> one = found.get("cider", "M1", "kendall_tau_b")
    >>> one.value, round(one.p, 4), one.exact  # two of 24 orders agree, or disagree, throughout
    (1.0, 0.0833, True)
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
        for metric, (metric_scores, human_scores) in columns.items():
            n = len(metric_scores.fixed)
            values = measures(np.stack([metric_scores.fixed, human_scores.fixed], axis=1)[None])[0, :, 0, 1]
            p, low, high = np.full((3, len(MEASURES)), np.nan)
            if not np.isnan(values).any():
                p = _test(metric_scores.fixed, human_scores.fixed, draws, seed)
                if drawing.drawable(metric_scores, human_scores):
                    low, high = drawing.around(
                        values, drawing.correlations(metric_scores, human_scores)[:, :, 0, 1], n
                    )
            correlations += _rows(metric, human, n, (values, low, high, p), exact=n <= _EVERY_ORDER)
            notes += _why_missing(metric, human, metric_scores, human_scores, drawing)
        correlations += _one_person(human, each_judge.get(human, {}), drawing)
        differences += differences_of(human, columns, drawing)
    fewest = min((correlation.systems for correlation in correlations), default=ENOUGH)
    if fewest < ENOUGH:
        least = 2 / factorial(fewest)
        notes.append(f"only {fewest} systems: no p-value of a correlation is below {least:.2g}")
    if fewest == LEAST:
        notes.append(f"Williams' test takes {LEAST + 1} systems or more")
    return SystemCorrelations(
        tuple(metrics),
        tuple(people),
        tuple(correlations),
        tuple(differences),
        left_out,
        over,
        drawing.images,
        draws,
        seed,
        tuple(dict.fromkeys(notes)),
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
    metric: str, human: str, n: int, numbers: Sequence[NDArray[np.float64]], *, exact: bool
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
    values = np.mean(
        [measures(np.stack([a.fixed, b.fixed], axis=1)[None])[0, :, 0, 1] for a, b in pairs], axis=0
    )
    p, low, high = np.full((3, len(MEASURES)), np.nan)
    fewest = min(len(scores.fixed) for scores, _ in pairs)
    if not np.isnan(values).any() and drawing.drawable(*(of for pair in pairs for of in pair)):
        samples = np.mean([drawing.correlations(*pair)[:, :, 0, 1] for pair in pairs], axis=0)
        low, high = drawing.around(values, samples, fewest)
    return _rows(ONE_PERSON, human, fewest, (values, low, high, p), exact=False)


def _why_missing(
    metric: str, human: str, own: SystemScores, theirs: SystemScores, drawing: SystemDraws
) -> list[str]:
    if np.ptp(own.fixed) == 0:
        return [f"{metric}: all systems have the same number, so there is no order to correlate"]
    if np.ptp(theirs.fixed) == 0:
        return [f"{human}: people gave all systems the same, so there is no order to correlate"]
    if drawing.over == "systems":
        return []
    if not drawing.drawable(own, theirs):
        return [f"{metric}: no interval over images: its numbers are known of systems alone"]
    fixed = [name for name, of in ((metric, own), (human, theirs)) if not of.images]
    return [
        f"{name}: no scores of single images, so intervals over images take it as given" for name in fixed
    ]


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
