"""How well metrics rank systems as people do: correlations over the systems' means.

Systems are few, a dozen where captioning systems were judged by people, so a correlation of 0.9 may be luck:
every one comes with an interval over systems drawn anew and with a permutation test. The interval is no
narrower than perfect agreement of so many would leave it (`rank_correlation.perfect`).
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import permutations
from math import factorial, isfinite
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray
from numpy.typing import NDArray

from counterfoil.errors import InputError
from counterfoil.evaluation.rank_correlation import as_spearman, perfect, widened
from counterfoil.evaluation.result import or_none
from counterfoil.metrics.correlation import middle_ranks
from counterfoil.metrics.drawn_correlation import MEASURES as DRAWN
from counterfoil.metrics.drawn_correlation import Drawn
from counterfoil.stats.resampling import cluster_draws

#: The correlations over systems; tau-c says nothing that tau-b does not where hardly any two tie.
MEASURES = ("kendall_tau_b", "spearman", "pearson")

#: The fewest systems of which an order says anything, and how many make an interval worth having.
LEAST, ENOUGH = 3, 10

#: With up to so many systems every order is looked at in the test: 8! are 40,320.
_EVERY_ORDER = 8


@dataclass(frozen=True)
class SystemCorrelation:
    """One correlation of a metric with a human score, over the systems that have both.

    `value`, `low` and `high` are in [-1, 1]; `p` is two-sided, of "the metric's order has nothing to do with
    people's": the share of all orders (of drawn ones, where `exact` is false) that go along as much. NaN
    where all systems score the same.
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

    def to_json(self) -> dict[str, Any]:
        """Plain values, None for NaN."""
        return {name: or_none(value) for name, value in asdict(self).items()}


@dataclass(frozen=True)
class SystemCorrelations:
    """All metrics with all human scores. `left_out` names systems that some metric or human score lacks."""

    metrics: tuple[str, ...]
    humans: tuple[str, ...]
    found: tuple[SystemCorrelation, ...]
    left_out: Mapping[str, tuple[str, ...]]
    draws: int
    seed: int

    def get(self, metric: str, human: str, measure: str) -> SystemCorrelation:
        """One of them."""
        return next(
            each for each in self.found if (each.metric, each.human, each.measure) == (metric, human, measure)
        )

    @property
    def note(self) -> str:
        """A sentence on how little so few systems say; empty where they are many."""
        fewest = min((each.systems for each in self.found), default=0)
        if fewest >= ENOUGH:
            return ""
        return (
            f"only {fewest} systems: the intervals are wide, and no p-value is below "
            f"{2 / factorial(fewest):.2g}"
        )

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "correlations": [each.to_json() for each in self.found],
            "left_out": {name: list(systems) for name, systems in self.left_out.items()},
            "note": self.note,
            "draws": self.draws,
            "seed": self.seed,
        }


def system_correlations(
    table: Mapping[str, Mapping[str, float]],
    humans: Mapping[str, Mapping[str, float]],
    *,
    draws: int = 10_000,
    seed: int = 0,
    level: float = 0.95,
) -> SystemCorrelations:
    """tau-b, Spearman's and Pearson's correlation of every metric with every human score, over systems.

    `table` is {metric: {system: mean}}, `humans` {"M1": {system: score}, ...} (the share of captions found as
    good as people's or better, and those that pass for a person's, in COCO's challenge of 2015). Systems that
    a metric or a human score lacks are left out there. Raises `InputError` for fewer than three systems that
    both have, and for values that are not finite.

    >>> people = {"M1": {"Google": 0.273, "MSR": 0.268, "NeuralTalk": 0.166, "Random": 0.007}}
    >>> means = {"cider": {"Google": 0.94, "MSR": 0.91, "NeuralTalk": 0.67, "Random": 0.05}}
    >>> found = system_correlations(means, people, draws=200).get("cider", "M1", "kendall_tau_b")
    >>> found.value, round(found.p, 4), found.exact  # two of 24 orders agree, or disagree, throughout
    (1.0, 0.0833, True)
    """
    found, left_out = [], {}
    everyone = dict.fromkeys(name for columns in (table, humans) for one in columns.values() for name in one)
    for kind, columns in (("metric", table), ("human score", humans)):
        for name, values in columns.items():
            for system, value in values.items():
                if not isfinite(value):
                    raise InputError(
                        f"a system's {kind} is not a finite number",
                        where=f"{name}, system '{system}'",
                        given=value,
                    )
            lacking = tuple(system for system in everyone if system not in values)
            if lacking:
                left_out[name] = lacking
    for metric, means in table.items():
        for human, scores in humans.items():
            both = [system for system in everyone if system in means and system in scores]
            if len(both) < LEAST:
                raise InputError(
                    "too few systems to correlate",
                    where=f"{metric} with {human}",
                    given=", ".join(both) or "no system that both have",
                    allowed=f"{LEAST} systems or more",
                    hint="are systems called the same in both?",
                )
            x = np.array([means[system] for system in both], dtype=np.float64)
            y = np.array([scores[system] for system in both], dtype=np.float64)
            found += _correlate(metric, human, x, y, draws, seed, level)
    return SystemCorrelations(tuple(table), tuple(humans), tuple(found), left_out, draws, seed)


def _correlate(
    metric: str,
    human: str,
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    draws: int,
    seed: int,
    level: float,
) -> list[SystemCorrelation]:
    n = len(x)
    exact = n <= _EVERY_ORDER
    where = [DRAWN.index(name) for name in MEASURES]
    points = Drawn.of(x, y, np.arange(n))
    values = points.correlations(np.ones((1, n)))[0, where]
    p, low, high = np.full((3, len(MEASURES)), np.nan)
    if not np.isnan(values).any():
        p = _test(x, y, _orders(n, draws, seed))
        samples = [points.correlations(weights) for weights in cluster_draws(n, draws, seed=seed)]
        drawn = np.concatenate(samples)[:, where]
        drawn = drawn[~np.isnan(drawn).any(axis=1)]
        tails = [(1 - level) / 2, (1 + level) / 2]
        low, high = np.quantile(drawn, tails, axis=0) if len(drawn) else np.array([-np.ones(3), np.ones(3)])
        least = perfect(n, level=level)
        for k, limit in enumerate((least, as_spearman(least), as_spearman(least))):
            low[k], high[k] = widened(float(values[k]), float(low[k]), float(high[k]), least=limit)
    return [
        SystemCorrelation(
            metric, human, name, n, float(values[k]), float(min(low[k], values[k])),
            float(max(high[k], values[k])), float(p[k]), exact,
        )
        for k, name in enumerate(MEASURES)
    ]  # fmt: skip


def _orders(n: int, draws: int, seed: int) -> Int[ndarray, "orders n"]:
    """Every order of n systems, or, of more than eight, drawn ones after the one at hand."""
    if n <= _EVERY_ORDER:
        return np.array(list(permutations(range(n))), dtype=np.int64)
    rng = np.random.default_rng([seed, n])
    drawn = rng.permuted(np.tile(np.arange(n), (draws, 1)), axis=1)
    return np.concatenate([np.arange(n)[None], drawn])


def _test(
    x: Float[ndarray, "n"], y: Float[ndarray, "n"], orders: Int[ndarray, "orders n"]
) -> Float[ndarray, "3"]:
    """The share of orders, the one at hand among them, in which x goes along with y as much."""
    above = np.sign(x[:, None] - x), np.sign(y[:, None] - y)
    rank_x, rank_y = middle_ranks(x), middle_ranks(y)
    # What each is divided by is the same in every order.
    statistics = [
        np.einsum("oij,ij->o", above[0][orders[:, :, None], orders[:, None]], above[1]),
        (rank_x - rank_x.mean())[orders] @ (rank_y - rank_y.mean()),
        (x - x.mean())[orders] @ (y - y.mean()),
    ]
    at_hand = [abs(statistic[0]) for statistic in statistics]
    return np.array(
        [
            float((np.abs(statistic) >= reach * (1 - 1e-9)).mean())
            for statistic, reach in zip(statistics, at_hand, strict=True)
        ]
    )
