"""The effective number of questions: how many independent ones would have a mean that spreads as much.

Questions that share an image or a caption stand and fall together, so there are fewer of them than rows;
`estimates` says what this is for.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

from counterfoil.stats.score_intervals import tango_score, wilson_score

#: Variances below this are rounding: a single wrong answer in a million questions makes one of 1e-12.
_NO_VARIANCE = 1e-20


@dataclass(frozen=True, eq=False)
class Spread:
    """Estimates, the variance of each, and what that is known from.

    `freedom` are the degrees of freedom of each variance; `units` is how many questions, of all, have nothing
    to do with one another: an estimate that does not vary is one of so many.
    """

    value: Float[ndarray, "k"]
    variance: Float[ndarray, "k"]
    freedom: Float[ndarray, "k"]
    units: Float[ndarray, "k"]

    def effective(self, single: Float[ndarray, "k"] | None = None) -> Float[ndarray, "k"]:
        """How many independent questions, of variance `single` each, would spread as much.

        `single` is by default that of a share. Where nothing varies it is the number of units.
        """
        if single is None:
            single = self.value * (1 - self.value)
        varies = self.variance > _NO_VARIANCE
        return np.where(varies, np.maximum(single, 1e-12) / np.where(varies, self.variance, 1.0), self.units)

    def quantile(self, level: float) -> Float[ndarray, "k"]:
        """Student's quantile; the normal one where nothing varies, since no variance was estimated."""
        some = self.freedom > 0
        student = np.where(some, stdtrit(np.where(some, self.freedom, 1.0), (1 + level) / 2), np.inf)
        return np.where(self.variance > _NO_VARIANCE, student, normal_quantile(level))

    def wilson(self, level: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Wilson's intervals for the effective numbers of questions."""
        return wilson_score(self.value, self.effective(), self.quantile(level))

    def tango(
        self, discord: Float[ndarray, "k"], level: float
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Tango's intervals for estimates that are differences, on this share of discordant questions."""
        effective = self.effective(discord - self.value**2)
        return tango_score(self.value, discord, effective, self.quantile(level))


def normal_quantile(level: float) -> float:
    """The normal quantile that leaves out as much on either side.

    >>> round(normal_quantile(0.95), 4)
    1.96
    """
    return float(ndtri((1 + level) / 2))
