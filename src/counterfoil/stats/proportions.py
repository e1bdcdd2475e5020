"""Score intervals of shares and their differences, for the effective number of questions."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from numpy.typing import NDArray

from counterfoil.errors import InputError

#: The normal quantile of 95 % intervals, so that those of independent questions wait for no import of SciPy.
_NORMAL_95 = 1.959963984540054
#: Variances below this are rounding: a single wrong answer in a million questions makes one of 1e-12.
_NO_VARIANCE = 1e-20


@dataclass(frozen=True, eq=False)
class Spread:
    """Estimates, the variance of each, and what that is known from.

    `freedom` are the degrees of freedom of each variance; `units` is how many questions have nothing to do
    with one another: an estimate that does not vary is one of so many.
    """

    value: Float[ndarray, "k"]
    variance: Float[ndarray, "k"]
    freedom: Float[ndarray, "k"]
    units: Float[ndarray, "k"]

    def effective(self, single: Float[ndarray, "k"] | None = None) -> Float[ndarray, "k"]:
        """How many independent questions, of variance `single` each (a share's), would spread as much."""
        if single is None:
            single = self.value * (1 - self.value)
        varies = self.variance > _NO_VARIANCE
        return np.where(varies, np.maximum(single, 1e-12) / np.where(varies, self.variance, 1.0), self.units)

    def quantile(self, level: float) -> Float[ndarray, "k"]:
        """Student's quantile; the normal one where nothing varies, since no variance was estimated."""
        from scipy.special import stdtrit

        some = self.freedom > 0
        student = np.where(some, stdtrit(np.where(some, self.freedom, 1.0), (1 + level) / 2), np.inf)
        return np.where(self.variance > _NO_VARIANCE, student, normal_quantile(level))

    def wilson(self, level: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Wilson's intervals for the effective numbers of questions."""
        return wilson_score(self.value, self.effective(), self.quantile(level))

    def tango(
        self, discord: Float[ndarray, "k"], level: float
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """(low, high, p) of Tango's for differences, on this share of discordant questions."""
        effective = self.effective(discord - self.value**2)
        p = self.tail(np.abs(self.value) * np.sqrt(effective / np.where(discord > 0, discord, 1.0)))
        return *tango_score(self.value, discord, effective, self.quantile(level)), p

    def student(
        self, level: float, *, widest: float = 1.0
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """(low, high, p) of Student's t for estimates in [-widest, widest] that are nearly normal.

        An estimate that does not vary is known as well as one of so many units that agree throughout.
        """
        if widest != 1:
            parts = self.value / widest, self.variance / widest**2, self.freedom, self.units
            low, high, p = Spread(*parts).student(level)
            return widest * low, widest * high, p
        varies, z = self.variance > _NO_VARIANCE, self.quantile(level)
        size = np.minimum(np.abs(self.value), 1.0)
        error = np.sqrt(np.where(varies, self.variance, 1.0))
        reach = np.where(varies, z * error, z**2 / (self.units + z**2))
        constant = np.sqrt(self.units * size / np.maximum(1 - size, 1e-12))
        p = self.tail(np.where(varies, np.abs(self.value) / error, constant))
        return np.maximum(self.value - reach, -1.0), np.minimum(self.value + reach, 1.0), p

    def tail(self, reach: Float[ndarray, "k"]) -> Float[ndarray, "k"]:
        """How much of Student's distribution is as far from 0; of the normal one where nothing varies."""
        from scipy.special import ndtr, stdtr

        some = self.freedom > 0
        student = 2 * stdtr(np.where(some, self.freedom, 1.0), -reach)
        return np.where(self.variance > _NO_VARIANCE, np.where(some, student, 1.0), 2 * ndtr(-reach))


def normal_quantile(level: float) -> float:
    """The normal quantile that leaves out as much on either side.

    >>> from scipy.special import ndtri
    >>> normal_quantile(0.95) == float(ndtri(0.975)), round(normal_quantile(0.9), 4)
    (True, 1.6449)
    """
    if level == 0.95:
        return _NORMAL_95
    from scipy.special import ndtri

    return float(ndtri((1 + level) / 2))


def wilson_score(
    p: Float[ndarray, "k"], n: Float[ndarray, "k"], z: Float[ndarray, "k"]
) -> tuple[Float[ndarray, "k"], Float[ndarray, "k"]]:
    """Wilson's interval around proportions `p` of `n` trials: (low, high) in [0, 1].

    >>> low, high = wilson_score(np.array([0.0]), np.array([4.0]), np.array([2.0]))
    >>> low, high
    (array([0.]), array([0.5]))
    """
    shift = z * z / n
    centre = (p + shift / 2) / (1 + shift)
    half = np.sqrt(shift * (p * (1 - p) + shift / 4)) / (1 + shift)
    # The interval contains the proportion by definition; at 0 and 1 rounding might say otherwise.
    return np.clip(np.minimum(centre - half, p), 0, 1), np.clip(np.maximum(centre + half, p), 0, 1)


def tango_score(
    difference: Float[ndarray, "k"],
    discord: Float[ndarray, "k"],
    n: Float[ndarray, "k"],
    z: Float[ndarray, "k"],
) -> tuple[Float[ndarray, "k"], Float[ndarray, "k"]]:
    """Tango's interval around a difference of paired proportions: (low, high) in [-1, 1].

    `discord` is the share of questions on which the two differ (of fractional values the mean absolute
    difference). Without discord it is +- z**2 / (n + z**2).

    >>> low, high = tango_score(np.array([0.0]), np.array([0.0]), np.array([12.0]), np.array([2.0]))
    >>> low.round(6), high.round(6)
    (array([-0.25]), array([0.25]))
    """
    only_second = (discord - difference) / 2

    def distance(d: Float[ndarray, "k"]) -> Float[ndarray, "k"]:
        # The share of "only the second right" that is likeliest if the difference were d.
        b = (2 - difference) * d - discord
        c = -only_second * d * (1 - d)
        q = (np.sqrt(np.maximum(b * b - 8 * c, 0)) - b) / 4
        spread = np.sqrt(np.maximum(2 * q + d * (1 - d), 1e-300) / n)
        return (difference - d) / spread

    def search(inner: Float[ndarray, "k"], outer: float) -> Float[ndarray, "k"]:
        """The farthest from `inner` towards `outer` that is not rejected; 60 halvings exhaust a float64."""
        accepted, rejected = inner.copy(), np.full(len(inner), outer)
        for _ in range(60):
            middle = (accepted + rejected) / 2
            inside = np.abs(distance(middle)) <= z
            accepted, rejected = np.where(inside, middle, accepted), np.where(inside, rejected, middle)
        return accepted

    return search(difference, -1.0), search(difference, 1.0)


def wilson(successes: float, n: float, *, level: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval for a proportion of independent trials: (low, high) in [0, 1].

    `successes` may be fractional. Raises `InputError` for no trials, or more successes than trials. Source:
    E. B. Wilson, Probable inference, the law of succession, and statistical inference, 1927.

    >>> low, high = wilson(8, 10)
    >>> round(low, 4), round(high, 4)
    (0.4902, 0.9433)
    """
    if not n > 0 or not 0 <= successes <= n:
        raise InputError("no proportion", given=f"{successes} of {n}", allowed="0 to n successes, n above 0")
    low, high = wilson_score(
        np.array([successes / n]), np.array([float(n)]), np.array([normal_quantile(level)])
    )
    return float(low[0]), float(high[0])
