"""Designs and plans of labelling: how right labels will be, how wide intervals, for how many hours and cost.

    design = LabelDesign(items=3000, labels=3, accuracy=0.85, n_classes=6)
    plan_labels(design)                                    # label_accuracy, and estimates with half-widths
    labels_needed(design, 0.02, of="alpha")                # the plan with the fewest labels per item
    labelling_hours(3000, 3, 4.5), labelling_cost(11.25, 12.0, fee=1 / 3)

An item's label is that of most people; ties are broken by a coin. People err independently of each other
given the item's class. The ways in which an item can be answered are gone through one by one (or drawn, where
they are too many), so label accuracy, agreement and their spread from item to item are exact. `people` who
differ by `spread` add what all items have in common by them. Half-widths are those of the intervals that
results get: Wilson's for a share, and that of `counterfoil.evaluation.agreement` for agreement.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from math import comb

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray
from numpy.typing import NDArray
from scipy.special import gammaln, xlogy

from counterfoil.errors import InputError, UnknownNameError
from counterfoil.stats.score_intervals import Spread

#: How far accuracies are moved to see what depends on them.
_STEP = 1e-4


#: Ways to answer that are gone through one by one; of more, as many are drawn.
_EXACT = 20_000
#: Labels per item that can be planned.
MOST_LABELS = 50
# Of so many at most it is asked whether they suffice.
_MOST = 25


@dataclass(frozen=True)
class LabelDesign:
    """What is planned: `labels` answers to each of `items`, one of `n_classes`.

    `accuracy` is the chance of the right answer, errors falling evenly on the other classes; for two classes
    it may be a pair, the chance of a no where no is right and that of a yes where yes is. `share` is the
    share of items of each class, for two classes that of yes; by default all are equal. `people` in all,
    whose accuracies differ by the standard deviation `spread`, share the work evenly. Raises `InputError`
    for numbers outside their range.

    >>> LabelDesign(items=10, labels=3, accuracy=(0.9, 0.8), share=0.25).confusion().round(2).tolist()
    [[0.9, 0.1], [0.2, 0.8]]
    """

    items: int
    labels: int
    accuracy: float | tuple[float, float]
    n_classes: int = 2
    share: float | tuple[float, ...] | None = None
    people: int | None = None
    spread: float = 0.0

    def __post_init__(self) -> None:
        rates = self.accuracy if isinstance(self.accuracy, tuple) else (self.accuracy,)
        fit = self.share is None or (
            len(self.shares) == self.n_classes and min(self.shares) > 0 and abs(sum(self.shares) - 1) < 1e-9
        )
        for what, given, right, allowed in (
            ("items to label", self.items, self.items >= 2, "2 or more"),
            ("labels per item", self.labels, 1 <= self.labels <= MOST_LABELS, f"1 to {MOST_LABELS}"),
            ("classes", self.n_classes, self.n_classes >= 2, "2 or more"),
            ("accuracy", self.accuracy, all(0 <= rate <= 1 for rate in rates), "0 to 1"),
            (
                "accuracies",
                self.accuracy,
                len(rates) == 1 or self.n_classes == 2,
                "one, or two of two classes",
            ),
            ("shares of classes", self.share, fit, "a share above 0 of each class, 1 in all"),
            (
                "people",
                self.people,
                self.people is None or self.people >= self.labels,
                "at least the labels per item",
            ),
            ("spread of accuracies", self.spread, 0 <= self.spread < 0.5, "0 to 0.5"),
        ):
            if not right:
                raise InputError(what, given=given, allowed=allowed)
        if self.spread and self.people is None:
            raise InputError("people who differ are counted", given="no number of people", hint="give people")

    @cached_property
    def shares(self) -> NDArray[np.float64]:
        """The share of each class."""
        if self.share is None:
            return np.full(self.n_classes, 1 / self.n_classes)
        shares = self.share if isinstance(self.share, tuple) else (1 - self.share, self.share)
        return np.array(shares)

    def confusion(self, moved: float = 0.0) -> NDArray[np.float64]:
        """(class, answer) chances of answers, with every accuracy moved by so much."""
        k = self.n_classes
        rates = self.accuracy if isinstance(self.accuracy, tuple) else (self.accuracy,) * k
        right = np.clip(np.array(rates) + moved, 0.0, 1.0)
        return np.where(np.eye(k, dtype=bool), right[:, None], ((1 - right) / (k - 1))[:, None])


#: (confusion) -> (classes, ways): how likely each way is for items of each class; rows sum to 1.
WayChance = Callable[[Float[ndarray, "k k"]], Float[ndarray, "k ways"]]


def answer_ways(
    labels: int, confusion: Float[ndarray, "k k"], *, seed: int = 0
) -> tuple[Int[ndarray, "ways classes"], WayChance]:
    """All ways in which `labels` people can answer; where those are too many, some drawn by `confusion`.

    How many votes each class gets in each way, and the function that says how likely the ways are.

    >>> confusion = np.array([[0.9, 0.1], [0.2, 0.8]])
    >>> votes, chance = answer_ways(2, confusion)
    >>> votes.tolist(), chance(confusion).round(2).tolist()
    ([[0, 2], [1, 1], [2, 0]], [[0.01, 0.18, 0.81], [0.64, 0.32, 0.04]])
    """
    k = len(confusion)
    if comb(labels + k - 1, k - 1) <= _EXACT:
        # The places of k - 1 bars among so many stars, in order, are all the ways to part these.
        bars = np.array(list(combinations(range(labels + k - 1), k - 1)))
        votes = np.diff(bars, prepend=-1, append=labels + k - 1, axis=1) - 1
        orders = gammaln(labels + 1) - gammaln(votes + 1).sum(axis=1)

        def exact(confusion: NDArray[np.float64]) -> NDArray[np.float64]:
            return np.exp(orders + xlogy(votes, confusion[:, None, :]).sum(axis=2))

        return votes, exact
    rng = np.random.default_rng(seed)
    drawn = np.concatenate([rng.multinomial(labels, row, size=_EXACT // k) for row in confusion])
    # Weights make each way as likely as it should be for one class, though all classes were drawn from.
    proposed = np.logaddexp.reduce(xlogy(drawn, confusion[:, None, :]).sum(axis=2), axis=0)

    def weighed(confusion: NDArray[np.float64]) -> NDArray[np.float64]:
        weights = np.exp(xlogy(drawn, confusion[:, None, :]).sum(axis=2) - proposed)
        return weights / weights.sum(axis=1, keepdims=True)

    return drawn, weighed


@dataclass(frozen=True)
class PlannedEstimate:
    """A number that is expected, and half of the width of its interval; NaN where it is not defined."""

    value: float
    half_width: float


@dataclass(frozen=True)
class LabelPlan:
    """What to expect of a design.

    `label_accuracy` is the chance that an item's label is right, `tied` that it is left to a coin. With
    intervals of 95 %: `score`, the share of items whose label is right (people's score against a reference);
    `positive`, the share whose label is one given class (yes, of two); `answers`, the share of single
    answers that are right; `agreement` of pairs of answers, and `alpha`, both NaN for one label per item.
    """

    design: LabelDesign
    label_accuracy: float
    tied: float
    score: PlannedEstimate
    positive: PlannedEstimate
    answers: PlannedEstimate
    agreement: PlannedEstimate
    alpha: PlannedEstimate


#: Estimates of a plan whose half-width can be aimed at.
TARGETS = ("score", "positive", "answers", "agreement", "alpha")


def plan_labels(design: LabelDesign, *, seed: int = 0) -> LabelPlan:
    """What to expect of a design: see `LabelPlan`. `seed` counts where there are too many ways to answer.

    >>> plan = plan_labels(LabelDesign(items=3000, labels=3, accuracy=0.85))
    >>> round(plan.label_accuracy, 4)  # 0.85**3 + 3 * 0.85**2 * 0.15
    0.9392
    >>> print(f"{plan.alpha.value:.3f} +- {plan.alpha.half_width:.3f}")
    0.490 +- 0.023
    """
    ways = answer_ways(design.labels, design.confusion(), seed=seed)
    here = _facts(design, *ways, 0.0)
    # How much each estimate moves with the accuracies of people.
    slopes = dict.fromkeys(TARGETS, 0.0)
    if design.spread:
        up, down = _facts(design, *ways, _STEP), _facts(design, *ways, -_STEP)
        slopes = {name: (up[name][0] - down[name][0]) / (2 * _STEP) for name in TARGETS}
    expected = {name: _expected(design, *here[name], slopes[name]) for name in TARGETS}
    return LabelPlan(design, here["score"][0], here["tied"][0], **expected)


def _plans(design: LabelDesign, seed: int) -> Iterator[LabelPlan]:
    """The plans of one label per item, of two, ..., of `_MOST` or as many as there are people."""
    for labels in range(1, min(_MOST, design.people or _MOST) + 1):
        yield plan_labels(replace(design, labels=labels), seed=seed)


def labels_needed(design: LabelDesign, half_width: float, *, of: str, seed: int = 0) -> LabelPlan:
    """The plan of the fewest labels per item whose interval of `of` is at most so wide on either side.

    `of` is one of `TARGETS`; the design's own number of labels does not count. Raises `InputError` where
    25 labels per item do not suffice, since more labels narrow only what labels make uncertain: the
    message says what they reach, and that more items are needed.

    >>> design = LabelDesign(items=400, labels=1, accuracy=0.8)
    >>> labels_needed(design, 0.03, of="agreement").design.labels
    4
    """
    if of not in TARGETS:
        raise UnknownNameError("estimate of a plan", of, TARGETS)
    if not half_width > 0:
        raise InputError("half-width to aim at", given=half_width, allowed="above 0")
    reached = float("inf")
    for plan in _plans(design, seed):
        width: float = getattr(plan, of).half_width
        if width <= half_width:
            return plan
        reached = min(reached, width)
    raise InputError(
        f"labels do not make the interval of {of} so narrow",
        given=f"+- {half_width:g}",
        allowed=f"+- {reached:.4f} and more with {design.items:,} items and up to {_MOST} labels of each",
        hint="plan more items" + (" or more people" if design.spread else ""),
    )


def accuracy_needed(design: LabelDesign, label_accuracy: float, *, seed: int = 0) -> LabelPlan:
    """The plan of the fewest labels per item that make an item's label right with that chance.

    Raises `InputError` where 25 labels do not, as where people guess.

    >>> accuracy_needed(LabelDesign(items=100, labels=1, accuracy=0.85), 0.95).design.labels
    5
    """
    reached = float("nan")
    for plan in _plans(design, seed):
        reached = plan.label_accuracy
        if reached >= label_accuracy:
            return plan
    raise InputError(
        "more labels do not make them so accurate",
        given=f"{label_accuracy:g}",
        allowed=f"up to {reached:.4f} with {_MOST} labels per item",
        hint="train or choose people",
    )


def labelling_hours(items: int, labels: int, seconds: float) -> float:
    """Hours of work: so many labels of each item, so many seconds each.

    >>> labelling_hours(3000, 3, 4.5)
    11.25
    """
    if items < 0 or labels < 0 or not seconds > 0:
        raise InputError(
            "work to do", given=f"{items} items, {labels} labels, {seconds} seconds", allowed="0 and above"
        )
    return items * labels * seconds / 3600


def labelling_cost(hours: float, pay_per_hour: float, *, fee: float = 0.0) -> float:
    """What the work costs, in the unit of the pay; `fee` is the platform's share on top of the pay.

    >>> round(labelling_cost(11.25, 12.0, fee=1 / 3), 2)
    180.0
    """
    if hours < 0 or pay_per_hour < 0 or fee < 0:
        raise InputError(
            "cost of work", given=f"{hours} hours at {pay_per_hour}, fee {fee}", allowed="0 and above"
        )
    return hours * pay_per_hour * (1 + fee)


def _facts(
    design: LabelDesign, votes: NDArray[np.int64], way_chance: WayChance, moved: float
) -> dict[str, tuple[float, float, float]]:
    """Of each estimate its value, its variance over items, and what makes a share of it (see `_expected`)."""
    m = design.labels
    chance = way_chance(design.confusion(moved)) * design.shares[:, None]
    total = chance.sum(axis=0)
    top = votes == votes.max(axis=1, keepdims=True)
    won = top / top.sum(axis=1, keepdims=True)
    score, positive = float((chance * won.T).sum()), float(total @ won[:, -1])
    right = np.asarray(votes, dtype=np.float64).T / m
    answers = float((chance * right).sum())
    facts = {
        "score": (score, score * (1 - score), 1.0),
        "positive": (positive, positive * (1 - positive), 1.0),
        "answers": (answers, float((chance * (right - answers) ** 2).sum()), 1.0),
        "tied": (float(total @ (top.sum(axis=1) > 1)), 0.0, 1.0),
    }
    if m < 2:
        nothing = (float("nan"), float("nan"), 1.0)
        return facts | {"agreement": nothing, "alpha": nothing}
    equal = (votes * (votes - 1)).sum(axis=1) / (m * (m - 1))
    raw = float(total @ equal)
    marginal = total @ votes / m
    apart = 1 - float((marginal**2).sum())
    if apart <= 1e-12:
        return facts | {"agreement": (raw, 0.0, 1.0), "alpha": (float("nan"), float("nan"), 1.0)}
    # What an item adds to the error of alpha, to first order.
    by_chance = -2 * (votes / m - marginal) @ marginal
    error = (equal - raw) / apart + (1 - raw) / apart**2 * by_chance
    return facts | {
        "agreement": (raw, float(total @ (equal - raw) ** 2), 1.0),
        "alpha": (1 - (1 - raw) / apart, float(total @ error**2), apart),
    }


def _expected(
    design: LabelDesign, value: float, variance: float, room: float, slope: float
) -> PlannedEstimate:
    """Half of Wilson's interval of 1 - (1 - value) * room, brought back, with what items and people add."""
    if np.isnan(value):
        return PlannedEstimate(value, value)
    by_items, by_people = variance / design.items, 0.0
    units, spent = design.items, by_items**2 / (design.items - 1)
    if design.people is not None and design.spread:
        by_people = (slope * design.spread) ** 2 / design.people
        units, spent = min(units, design.people), spent + by_people**2 / max(design.people - 1, 1)
    total = by_items + by_people
    freedom = total**2 / spent if spent > 0 else float(design.items - 1)
    low, high = Spread(
        np.array([1 - (1 - value) * room]),
        np.array([total * room**2]),
        np.array([max(freedom, 1.0)]),
        np.array([float(units)]),
    ).wilson(0.95)
    return PlannedEstimate(value, float(high[0] - low[0]) / 2 / room)
