"""Agreement between people with intervals, for other items and other people than those at hand.

    found = people_agreement(items, people, values, scale=Scale.ORDINAL)
    print(found.alpha)                                    # 0.7312 [0.6904, 0.7689]

Answers about one item are alike, and so are those of one person, so both are reweighted. With V(items) the
variance of the statistic over reweightings of items, V(people) over those of people and V(answers) over those
of single answers, its variance is

    V = V(items) + max(V(people) - V(answers), 0):

what items have in common by their people comes on top of what varies from item to item (Cameron, Gelbach and
Miller). Reweighting items and people at once would count single answers three times (Owen and Eckles).
Weights are exponential (the Bayesian bootstrap), so that no item loses its pairs, and pulled towards 1, where
products of weights add little of their own.

A kappa or alpha is 1 - (1 - p) / e with a share p of agreement and the disagreement e that chance gives. The
interval is Wilson's for p, with as many trials as make p vary as much and Student's quantile, so that it has
a width where all agree; it ends at the lowest value that kappa and alpha can have of m answers, -1 / (m - 1).
Coverage of nominal 95 % intervals for alpha in a simulation (three categories, random assignment, people's
accuracies beta(8, 2) where they differ; 300 repetitions, so +- 2.5), and their width over that of 3.92 true
standard errors:

    items, people, labels per item   200, 20, 3   60, 10, 3   200, 5, 5   1000, 30, 2   200, 20, 3, all alike
    coverage                               96.7        94.0        89.3          91.3                    97.7
    width                                   1.1         1.0         1.1           1.0                     1.2

Sources: A. C. Cameron, J. B. Gelbach, D. L. Miller, Robust inference with multiway clustering, 2011; A. Owen,
D. Eckles, Bootstrapping data arrays of arbitrary order, 2012; D. Rubin, The Bayesian bootstrap, 1981.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterfoil.evaluation.result import Estimate, Plain
from counterfoil.metrics.agreement import ReliabilityData, Scale, cohen_kappa_draws, weighted_agreement
from counterfoil.stats import Reals, Wholes
from counterfoil.stats.bootstrap import weight_draws
from counterfoil.stats.intervals import Spread

#: Fewer people than these say too little about others: intervals are then for these people on other items.
FEWEST_PEOPLE = 5
#: Weights are 1 plus this share of what exponential ones are off 1.
_PULL = 0.3
#: Reweightings are worked on together, as many as fit this many numbers.
_AT_ONCE = 1 << 21
_UNDEFINED = Estimate(float("nan"), float("nan"), float("nan"), 0, None)


@dataclass(frozen=True)
class PeopleAgreement(Plain):
    """Agreement about items that two or more people judged; `cohen` is None for three people or more."""

    scale: Scale
    raw: Estimate
    fleiss: Estimate
    alpha: Estimate
    cohen: Estimate | None
    items: int
    people: int
    answers: int
    over_people: bool
    draws: int
    seed: int
    level: float = 0.95


def people_agreement(
    items: Sequence[object] | NDArray[Any],
    people: Sequence[object] | NDArray[Any],
    values: NDArray[Any],
    *,
    scale: Scale = Scale.NOMINAL,
    alike: Wholes | None = None,
    draws: int = 1000,
    seed: int = 0,
) -> PeopleAgreement:
    """Agreement with intervals over items and people, from one row per answer; NaN where it is undefined.

    `alike` is of each answer how many exchangeable options its item has, 0 for none (`metrics.agreement`).
    """
    data = _paired(items, people, values, alike)
    if data is None:
        none = _UNDEFINED
        return PeopleAgreement(scale, none, none, none, None, 0, 0, 0, False, draws, seed)

    def statistics(**weights: Reals) -> Reals:
        agreement = weighted_agreement(data, scale, **weights)
        return np.stack([agreement.raw, agreement.kappa, agreement.alpha])

    centre = weighted_agreement(data, scale)
    room = np.array([1.0, centre.unequal[0], centre.distance[0]])
    # Variances over items and, of people who are enough, over people and over single answers; with the units.
    n, n_people, answers = data.n_items, data.n_people, len(data.item)
    parts = [(_variance(lambda w: statistics(items=w), n, answers, draws, seed, 0), n)]
    if n_people >= FEWEST_PEOPLE:
        of_people = _variance(lambda w: statistics(answers=w[data.person]), n_people, answers, draws, seed, 1)
        of_answers = _variance(lambda w: statistics(answers=w), answers, answers, draws, seed, 2)
        parts += [(of_people, n_people), (of_answers, answers)]
    raw, fleiss, alpha = _estimates(data, statistics()[:, 0], room, parts, (None, 0.0, 0.0))
    cohen = _cohen(data, draws, seed) if n_people == 2 else None
    counts = n, n_people, answers
    return PeopleAgreement(scale, raw, fleiss, alpha, cohen, *counts, len(parts) > 1, draws, seed)


def pair_agreements(
    items: Wholes,
    people: Wholes,
    values: NDArray[Any],
    pairs: Sequence[tuple[int, int]],
    *,
    alike: Wholes | None = None,
    draws: int = 1000,
    seed: int = 0,
) -> tuple[Estimate, ...]:
    """Cohen's kappa of each pair of people over what both judged, with interval; NaN where undefined."""
    kappas = []
    for pair in pairs:
        rows = np.isin(people, pair)
        of_pair = None if alike is None else alike[rows]
        data = _paired(items[rows], people[rows], values[rows], of_pair) if rows.any() else None
        kappas.append(_UNDEFINED if data is None else _cohen(data, draws, seed))
    return tuple(kappas)


def _paired(
    items: Sequence[object] | NDArray[Any],
    people: Sequence[object] | NDArray[Any],
    values: NDArray[Any],
    alike: Wholes | None = None,
) -> ReliabilityData | None:
    """The answers about items with two answers or more; None without any."""
    every = ReliabilityData.of(items, people, values, alike)
    paired = np.bincount(every.item, minlength=every.n_items)[every.item] >= 2
    if not paired.any():
        return None
    back = np.argsort(every.row)
    back = back[paired[back]]
    values = every.categories[every.category[back]]
    return ReliabilityData.of(every.item[back], every.person[back], values, every.alike[back])


def _cohen(data: ReliabilityData, draws: int, seed: int) -> Estimate:
    """Of two people who judged all items of `data`, which is in their order."""
    order = np.lexsort((data.person, data.item))
    first, second = data.category[order].reshape(-1, 2).T
    alike, n = data.alike[order].reshape(-1, 2).T, data.n_items
    kappa, room = cohen_kappa_draws(first, second, np.ones((n, 1)), alike)
    variance = _variance(lambda w: cohen_kappa_draws(first, second, w, alike)[0][None], n, n, draws, seed, 0)
    return _estimates(data, kappa, room, [(variance, n)], (0.0,))[0]


def _variance(
    statistics: Callable[[Reals], Reals], n: int, size: int, draws: int, seed: int, factor: int
) -> Reals:
    """The variance of each of (statistics, draws) over reweightings of `n` units; `size` numbers per draw."""
    at_once = max(1, _AT_ONCE // size)
    drawn = [
        statistics(1 + _PULL * (np.ascontiguousarray(block[lo : lo + at_once].T) - 1))
        for block in weight_draws(n, draws, seed=seed, factor=factor)
        for lo in range(0, len(block), at_once)
    ]
    spread: Reals = np.concatenate(drawn, axis=1).var(axis=1)
    # Few units: shares of exponential weights vary by 1 / (n + 1), means of n units by 1 / (n - 1).
    return spread / _PULL**2 * ((n + 1) / max(n - 1, 1))


def _estimates(
    data: ReliabilityData,
    value: Reals,
    room: Reals,
    parts: Sequence[tuple[Reals, int]],
    chance: Sequence[float | None],
) -> list[Estimate]:
    """With Wilson's intervals of 1 - (1 - value) * room, brought back; `parts` are variances and units."""
    total = parts[0][0]
    if len(parts) > 1:
        total = total + np.maximum(parts[1][0] - parts[2][0], 0.0)
    spent = np.sum([v**2 / max(n - 1, 1) for v, n in parts[:2]], axis=0)
    freedom = np.maximum(total**2 / np.maximum(spent, 1e-300), 1.0)
    units = np.full(len(value), float(min(n for _, n in parts)))
    # So far below chance are answers of which no two about an item agree.
    least = np.where([expected is None for expected in chance], 0.0, -1 / (np.bincount(data.item).min() - 1))
    share = np.clip(1 - (1 - value) * room, 0.0, 1.0)
    with np.errstate(invalid="ignore"):
        ends = Spread(share, total * room**2, freedom, units).wilson()
        low, high = (np.maximum(1 - (1 - end) / room, least) for end in ends)
    return [
        Estimate(float(v), float(min(a, v)), float(max(b, v)), data.n_items, by_chance)
        for v, a, b, by_chance in zip(value, low, high, chance, strict=True)
    ]
