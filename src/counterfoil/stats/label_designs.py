"""Designs of labelling, and the ways in which an item can be answered under one, each with its chance."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import comb

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray
from numpy.typing import NDArray
from scipy.special import gammaln, xlogy

from counterfoil.errors import InputError

#: Ways to answer that are gone through one by one; of more, as many are drawn.
_EXACT = 20_000
#: Labels per item that can be planned.
MOST_LABELS = 50


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
            ("shares of classes", self.share, self._shares_fit(), "a share above 0 of each class, 1 in all"),
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

    def _shares_fit(self) -> bool:
        if self.share is None:
            return True
        shares = self.share if isinstance(self.share, tuple) else (1 - self.share, self.share)
        return len(shares) == self.n_classes and min(shares) > 0 and abs(sum(shares) - 1) < 1e-9

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


@dataclass(frozen=True, eq=False)
class AnswerWays:
    """Ways in which an item can be answered: how many votes each class gets.

    `chance(confusion)` is (classes, ways): how likely each way is for items of each class; rows sum to 1.
    """

    votes: Int[ndarray, "ways classes"]
    chance: Callable[[Float[ndarray, "k k"]], Float[ndarray, "k ways"]]


def answer_ways(labels: int, confusion: Float[ndarray, "k k"], *, seed: int = 0) -> AnswerWays:
    """All ways in which `labels` people can answer; where those are too many, some drawn by `confusion`.

    >>> confusion = np.array([[0.9, 0.1], [0.2, 0.8]])
    >>> ways = answer_ways(2, confusion)
    >>> ways.votes.tolist(), ways.chance(confusion).round(2).tolist()
    ([[0, 2], [1, 1], [2, 0]], [[0.01, 0.18, 0.81], [0.64, 0.32, 0.04]])
    """
    k = len(confusion)
    if comb(labels + k - 1, k - 1) <= _EXACT:
        votes = _compositions(labels, k)
        orders = gammaln(labels + 1) - gammaln(votes + 1).sum(axis=1)

        def exact(confusion: NDArray[np.float64]) -> NDArray[np.float64]:
            return np.exp(orders + xlogy(votes, confusion[:, None, :]).sum(axis=2))

        return AnswerWays(votes, exact)
    rng = np.random.default_rng(seed)
    drawn = np.concatenate([rng.multinomial(labels, row, size=_EXACT // k) for row in confusion])
    # Weights make each way as likely as it should be for one class, though all classes were drawn from.
    proposed = np.logaddexp.reduce(xlogy(drawn, confusion[:, None, :]).sum(axis=2), axis=0)

    def weighed(confusion: NDArray[np.float64]) -> NDArray[np.float64]:
        weights = np.exp(xlogy(drawn, confusion[:, None, :]).sum(axis=2) - proposed)
        return weights / weights.sum(axis=1, keepdims=True)

    return AnswerWays(drawn, weighed)


def _compositions(total: int, parts: int) -> NDArray[np.int64]:
    """All ways to write `total` as a sum of `parts` numbers of 0 and above, in order."""
    if parts == 1:
        return np.array([[total]])
    rows = [
        np.column_stack([np.full(len(rest), first), rest])
        for first in range(total + 1)
        for rest in (_compositions(total - first, parts - 1),)
    ]
    return np.concatenate(rows)
