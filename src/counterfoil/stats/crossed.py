"""Variances of means over questions that share images and captions, as crossed factors.

The variance of a mean is the sum, over the pairs of questions that share an image or a caption, of the
products of their deviations: images' part, plus captions' part, less what is in both (Cameron, Gelbach and
Miller). Three things are done about few or unequal items, chosen by simulation (docs/statistics.md):

* deviations are from the mean of the same questions, so each part is too small by a known factor if the
  questions that share an item are as alike as the part itself says they are; it is divided by that factor;
* Student's quantile is taken for the degrees of freedom that the parts have together (Satterthwaite), each
  part having those of as many equally frequent items as would vary as much (Carter, Schnepel, Steigerwald);
* the sum may come out close to 0 or below, so it is at least half of the larger of both parts.

Sources: A. C. Cameron, J. B. Gelbach, D. L. Miller, Robust inference with multiway clustering, 2011, equation
2.13; A. V. Carter, K. T. Schnepel, D. G. Steigerwald, Asymptotic behavior of a t-test robust to cluster
heterogeneity, 2017; F. E. Satterthwaite, An approximate distribution of estimates of variance components,
1946.
"""

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from numpy.typing import NDArray
from scipy.special import ndtri, stdtr, stdtrit

from counterfoil.stats.sharing import Shared, Sharing

#: The variance is at least this share of that of one factor alone.
_LEAST = 0.5

#: Smaller sums of squares are rounding.
_NOTHING = 1e-300


def crossed_variance(
    sharing: Sharing, deviations: Float[ndarray, "n m"]
) -> tuple[Float[ndarray, "m"], Float[ndarray, "m"]]:
    """The variance of the sum of each column of `deviations`, and its degrees of freedom, 1 or more.

    A deviation is what a question adds to the error of an estimate, such as (value - mean) / n. Columns sum
    to 0, which makes their spread look smaller than it is, and is made up for.

    >>> sharing = Sharing(images=np.repeat(np.arange(3), 2)[:, None], captions=np.arange(6)[:, None])
    >>> variance, freedom = crossed_variance(sharing, np.array([[1.0], [1], [0], [0], [-1], [-1]]) / 6)
    >>> (variance * 36).round(6), freedom.round(6)  # (4 + 0 + 4) * 3 / 2, two degrees of freedom
    (array([12.]), array([2.]))
    """
    single = (deviations**2).sum(axis=0)
    variance = sharing.shared.sums(deviations)
    least, spent = single * _LEAST, np.zeros(len(single))
    for part in sharing.factors:
        if not len(part.signs):
            continue
        own = np.maximum(part.sums(deviations), 0.0)
        kept, freedom = _small_sample(part, own, single)
        variance += own * (1 / kept - 1)
        least = np.maximum(least, _LEAST * own / kept)
        spent = spent + (own / kept) ** 2 / freedom
    if sharing.independent:
        variance *= len(sharing) / max(len(sharing) - 1, 1)
        spent = variance**2 / max(len(sharing) - 1, 1)
    variance = np.maximum(variance, least)
    return variance, np.maximum(variance**2 / np.maximum(spent, _NOTHING), 1.0)


def _small_sample(
    part: Shared, own: NDArray[np.float64], single: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Which share of its variance a part keeps when deviations are from the mean, and its degrees of freedom.

    Both for questions of one item that are as alike (correlation `rho`) as the part's own variance says.
    """
    n, partners = len(part), part.partners
    rho = np.clip((own / np.maximum(single, _NOTHING) - 1) / (part.pairs / n - 1), 0.0, 1.0)
    # With l = 1 + (partners - 1) rho for every question: sums of l, of partners l, and of partners l^2. What
    # items alone make vary has as many degrees of freedom as items, also where each question has several.
    more = partners - 1
    total = n + rho * more.sum()
    weighted = part.pairs + rho * (partners * more).sum()
    cubes = min(float((partners**3).sum()), part.pairs**2 / part.equal_items)
    mixed = 2 * rho * (1 - rho) * float((partners**2).sum())
    squares = (1 - rho) ** 2 * part.pairs + mixed + rho**2 * cubes
    kept = 1 - 2 * weighted / (n * total) + part.pairs / n**2
    freedom = total**2 / squares - 1
    return np.maximum(kept, 1 / n), np.maximum(freedom, 1 / n)


def linear_variance(
    sharing: Sharing, deviations: Float[ndarray, "n m"]
) -> tuple[Float[ndarray, "m"], Float[ndarray, "m"]]:
    """The variance of the sum of each column, and its degrees of freedom, whatever questions share.

    `crossed_variance` where images and captions are crossed, else that over clusters, which vary together.

    >>> sharing = Sharing(images=np.repeat(np.arange(3), 2)[:, None], captions=np.arange(6)[:, None])
    >>> variance, freedom = linear_variance(sharing, np.array([[1.0], [1], [0], [0], [-1], [-1]]))
    >>> variance, freedom  # (4 + 0 + 4) * 3 / 2
    (array([12.]), array([2.]))
    """
    if sharing.crossed:
        return crossed_variance(sharing, deviations)
    n = len(np.unique(sharing.units))
    variance = _units_variance(sharing, deviations) * (n / max(n - 1, 1))
    return variance, np.full(len(variance), float(max(n - 1, 1)))


def inflation(
    sharing: Sharing, deviations: Float[ndarray, "n m"], *, level: float = 0.95
) -> Float[ndarray, "m"]:
    """How much wider intervals from draws of units must be for what units share among each other.

    `deviations` are what each question adds to the error of a statistic (sums to 0); 1 where units share
    nothing.

    >>> inflation(Sharing(images=np.arange(9)[:, None], captions=np.arange(9)[:, None]), np.eye(9) - 1 / 9)
    array([1., 1., 1., 1., 1., 1., 1., 1., 1.])
    """
    if not sharing.crossed:
        return np.ones(deviations.shape[1])
    variance, freedom = crossed_variance(sharing, deviations)
    wide = np.sqrt(variance / np.maximum(_units_variance(sharing, deviations), _NOTHING))
    quantile = (1 + level) / 2
    return np.where(variance > _NOTHING, wide * stdtrit(freedom, quantile) / ndtri(quantile), 1.0)


def normal_reach(
    sharing: Sharing, differences: Float[ndarray, "n m"], weights: Float[ndarray, "n w"]
) -> Float[ndarray, "m"]:
    """How far from 0 the sum of each column is, for sums whose units' signs are flipped at random.

    The sum is so many crossed standard errors from 0: what has the tail under the normal distribution that
    this has under Student's, times the standard deviation of the flipped sums. `weights` are what the
    values were multiplied by, a column for all or one for each: standard errors are those of intervals,
    around the mean.

    >>> sharing = Sharing(images=np.arange(9)[:, None], captions=np.arange(9)[:, None])
    >>> normal_reach(sharing, np.zeros((9, 1)), np.ones((9, 1)))
    array([0.])
    """
    total = differences.sum(axis=0)
    moved = differences - weights / weights.sum(axis=0) * total
    variance, freedom = crossed_variance(sharing, moved)
    t = np.abs(total) / np.sqrt(np.maximum(variance, _NOTHING))
    # Beyond what a float can hold of a tail, none of the flipped sums is as far.
    tail = np.maximum(stdtr(freedom, -t), 1e-300)
    reach: NDArray[np.float64] = np.maximum(-ndtri(tail), 0.0) * np.sqrt(
        _units_variance(sharing, differences)
    )
    return np.where(variance > _NOTHING, reach, np.abs(total))


def _units_variance(sharing: Sharing, deviations: NDArray[np.float64]) -> NDArray[np.float64]:
    """The variance of sums of units, each drawn or flipped by itself."""
    found: NDArray[np.float64] = (_sums_of(sharing.units, deviations) ** 2).sum(axis=0)
    return found


def _sums_of(units: NDArray[np.int64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    from scipy.sparse import csr_matrix

    n = len(units)
    table = csr_matrix((np.ones(n), (units, np.arange(n))), shape=(int(units.max(initial=-1)) + 1, n))
    return np.asarray(table @ values)
