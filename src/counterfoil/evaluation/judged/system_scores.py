"""Scores of each system by a metric or by people, and in draws of other images.

A number of a system is made of what adds up over images: scores and their number of a mean, matches and
lengths of BLEU. So a sample of images, drawn with replacement, is a product of its weights and these sums.
Numbers of which no images are known (a table of people's scores, a corpus metric that does not add up) are
`fixed`: they are the same in every sample.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray
from numpy.typing import NDArray

from counterfoil.errors import InputError

#: The number that sums over images make, along the last axis.
NumberOf = Callable[[NDArray[np.float64]], NDArray[np.float64]]


def ratio(sums: Float[ndarray, "... 2"]) -> Float[ndarray, "..."]:
    """A mean, of a sum and how many it is of; NaN of none.

    >>> ratio(np.array([[3.0, 2.0], [0.0, 0.0]]))
    array([1.5, nan])
    """
    total, n = sums[..., 0], sums[..., 1]
    return np.divide(total, n, out=np.full(np.shape(n), np.nan), where=n > 0)


@dataclass(frozen=True, eq=False)
class SystemScores:
    """One metric of some systems, or what one person (or all people together) gave them.

    `sums` (systems, images, k) add up over images, and `value` makes a number of them; None where the numbers
    are `fixed`. `scores` (systems, images) are what images get, where the number is their mean.
    """

    systems: tuple[str, ...]
    fixed: Float[ndarray, "systems"]
    sums: Float[ndarray, "systems images k"] | None = None
    value: NumberOf = ratio
    scores: Float[ndarray, "systems images"] | None = None

    @classmethod
    def of(cls, numbers: Mapping[str, float]) -> "SystemScores":
        """Numbers by system, of which no images are known.

        >>> SystemScores.of({"A": 0.5, "B": 0.25}).fixed
        array([0.5 , 0.25])
        """
        return cls(tuple(numbers), np.array([float(each) for each in numbers.values()]))

    @classmethod
    def summed(
        cls, systems: Sequence[str], sums: Float[ndarray, "systems images k"], value: NumberOf
    ) -> "SystemScores":
        """Of sums over images."""
        return cls(tuple(systems), value(sums.sum(axis=1)), sums, value)

    @classmethod
    def means(cls, systems: Sequence[str], scores: Float[ndarray, "systems images"]) -> "SystemScores":
        """Means of a score per image; NaN is no score, and does not count.

        >>> SystemScores.means(["A", "B"], np.array([[1.0, 0.0], [1.0, np.nan]])).fixed
        array([0.5, 1. ])
        """
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
    """What several judges of one scale gave: the mean of all that they said of a system.

    Fixed numbers count once for each judge. Raises `InputError` where judges know other systems or images.

    >>> both = {"a": SystemScores.of({"X": 1, "Y": 0}), "b": SystemScores.of({"X": 0, "Y": 0})}
    >>> together(both).fixed
    array([0.5, 0. ])
    """
    all_of = list(judges.values())
    for name, each in judges.items():
        if each.systems != all_of[0].systems or each.images != all_of[0].images:
            raise InputError("judges are about different systems or images", where=name)
    first = all_of[0]
    if first.sums is None:
        with_number = np.stack([each.fixed for each in all_of])
        return SystemScores(first.systems, _mean(with_number))
    sums = np.sum([each.sums for each in all_of if each.sums is not None], axis=0)
    return SystemScores.summed(first.systems, sums, ratio)


def _mean(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    there = ~np.isnan(rows)
    return ratio(np.stack([np.where(there, rows, 0.0).sum(axis=0), there.sum(axis=0)], axis=-1))
