"""Variances of means over questions that share images and captions.

The variance of a mean is the sum, over pairs of questions that share something, of the products of their
deviations: over whole clusters, or where images and captions are crossed images' part, plus captions' part,
less what is in both (Cameron, Gelbach and Miller). For few or unequal clusters (chosen by simulation,
docs/statistics.md):

* each deviation is divided by sqrt(1 - h), where h is the share of the questions of its group that its
  cluster holds (CR2: Bell and McCaffrey): unbiased where questions are in fact independent;
* Student's quantile is taken for Satterthwaite's degrees of freedom: C - 1 for C equal clusters, few where
  one holds much.

Crossed variances may come out close to 0 or below, so they are at least half of the larger part.

Sources: R. M. Bell, D. F. McCaffrey, Bias reduction in standard errors for linear regression with multi-stage
samples, 2002; J. E. Pustejovsky, E. Tipton, Small-sample methods for cluster-robust variance estimation and
hypothesis testing in fixed effects models, 2018; A. C. Cameron, J. B. Gelbach, D. L. Miller, Robust inference
with multiway clustering, 2011, equation 2.13.
"""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

from counterfoil.stats import Reals, Wholes
from counterfoil.stats.bootstrap import cluster_sums
from counterfoil.stats.dependence import Dependence, Shared, column_sums

#: The variance is at least this share of that of one factor alone.
_LEAST = 0.5

#: Smaller sums of squares are rounding.
_NOTHING = 1e-300

#: Numbers of questions times groups that are worked on at a time.
_BLOCK = 1 << 22


def mean_variance(
    dependence: Dependence,
    values: Float[ndarray, "n m"],
    strata: Int[ndarray, "n"],
    weights: Float[ndarray, "n"],
) -> tuple[Float[ndarray, "m"], Float[ndarray, "m"], Float[ndarray, "m"]]:
    """Weighted sums of the columns, the variance of each, and its degrees of freedom, 1 or more.

    `strata` are the groups whose means are averaged; `weights` sum to 1 and are the same for all questions of
    a group. The questions of a group that lies in one cluster deviate from the weighted sum instead, as if
    group means varied by chance alone.

    >>> pairs = Dependence(images=np.repeat(np.arange(3), 2)[:, None], captions=np.arange(6)[:, None])
    >>> one = np.zeros(6, dtype=int), np.full(6, 1 / 6)
    >>> value, variance, freedom = mean_variance(pairs, np.array([[1.0], [1], [0], [0], [-1], [-1]]), *one)
    >>> value, (variance * 36).round(6), freedom.round(6)  # (4 + 0 + 4) * 3 / 2, two degrees of freedom
    (array([0.]), array([12.]), array([2.]))
    """
    group = np.unique(strata, return_inverse=True)[1].reshape(-1)
    sizes, share = np.bincount(group), np.bincount(group, weights)
    centre = cluster_sums(values, group) / sizes[:, None]
    # Relative weights: of one group, or of equal ones, no rounding of 1 / n enters the value.
    relative = share / share.max()
    value = column_sums(relative[:, None] * centre) / relative.sum()
    factors, gaps = [], np.full(len(sizes), np.inf)
    for part in dependence.factors:
        # With how many questions of its group each shares something, itself included.
        near = np.zeros(len(group))
        for columns, first in _indicators(group):
            rows = np.flatnonzero((group >= first) & (group < first + columns.shape[1]))
            near[rows] = part.around(columns)[rows, group[rows] - first]
        factors.append((part, near))
        np.minimum.at(gaps, group, sizes[group] - near)
    alone = (gaps < 0.5)[group] if len(sizes) > 1 else np.zeros(len(group), dtype=bool)
    moved = weights[:, None] * (values - np.where(alone[:, None], value, centre[group]))
    # For degrees of freedom groups of one cluster are one group.
    merged = np.where(alone, len(sizes), group)
    corrected = []
    for part, near in factors:
        scale = _scale(np.where(alone, share[group], near / sizes[group]))
        corrected.append((part, scale, _freedom(part, weights * scale, merged)))
    return value, *_variance(dependence, corrected, moved)


def linear_variance(
    dependence: Dependence, deviations: Float[ndarray, "n m"]
) -> tuple[Float[ndarray, "m"], Float[ndarray, "m"]]:
    """The variance of the sum of each column of `deviations`, and its degrees of freedom, 1 or more.

    A deviation is what a question adds to the error of an estimate; columns sum to 0.

    >>> pairs = Dependence(images=np.repeat(np.arange(3), 2)[:, None], captions=np.arange(6)[:, None])
    >>> variance, freedom = linear_variance(pairs, np.array([[1.0], [1], [0], [0], [-1], [-1]]))
    >>> variance.round(6), freedom.round(6)  # (4 + 0 + 4) * 3 / 2
    (array([12.]), array([2.]))
    """
    n, corrected = len(dependence), []
    for part in dependence.factors:
        scale = _scale(part.partners / n)
        corrected.append((part, scale, _freedom(part, scale, np.zeros(n, dtype=np.int64))))
    return _variance(dependence, corrected, deviations)


def _variance(
    dependence: Dependence, factors: list[tuple[Shared, Reals, float]], moved: Reals
) -> tuple[Reals, Reals]:
    """`factors` are each with what deviations are multiplied by for it, and its degrees of freedom."""
    variances = [np.maximum(part.sums(moved * scale[:, None]), 0.0) for part, scale, _ in factors]
    if len(factors) == 1:
        return variances[0], np.full(len(variances[0]), factors[0][2])
    variance, spent = dependence.shared.sums(moved), np.zeros(moved.shape[1])
    least = _LEAST * column_sums(moved**2)
    for (part, _, freedom), of_factor in zip(factors, variances, strict=True):
        variance += of_factor - part.sums(moved)
        least = np.maximum(least, _LEAST * of_factor)
        spent += of_factor**2 / freedom
    variance = np.maximum(variance, least)
    return variance, np.maximum(variance**2 / np.maximum(spent, _NOTHING), 1.0)


def _scale(held: Reals) -> Reals:
    """1 / sqrt(1 - h); 0 where a cluster holds everything, since then nothing deviates."""
    left = 1 - held
    return np.where(left > 1e-9, 1 / np.sqrt(np.maximum(left, 1e-9)), 0.0)


def _freedom(part: Shared, weights: Reals, strata: Wholes) -> float:
    """Satterthwaite's degrees of freedom of the sum of w_i e_i w_j e_j over pairs that share something.

    With Q the weights of the pairs and M the matrix that takes group means off: tr(QM)^2 / tr(QMQM).
    """
    group = np.unique(strata, return_inverse=True)[1].reshape(-1)
    sizes = np.bincount(group).astype(np.float64)
    between, squares = np.zeros((len(sizes), len(sizes))), 0.0
    for columns, first in _indicators(group):
        of_group = weights[:, None] * part.around(weights[:, None] * columns)
        last = first + columns.shape[1]
        between[:, first:last] = cluster_sums(of_group, group)
        squares += float((column_sums(of_group**2) / sizes[first:last]).sum())
    trace = float((weights**2).sum() - (np.diag(between) / sizes).sum())
    pairs = float((weights**2 * part.around(weights[:, None] ** 2)[:, 0]).sum())
    twice = pairs - 2 * squares + float((between**2 / (sizes[:, None] * sizes)).sum())
    return max(trace**2 / twice, 1.0) if trace > 0 and twice > 0 else 1.0


def _indicators(group: Wholes) -> Iterator[tuple[Reals, int]]:
    """Columns of 1 in the rows of each group, some groups at a time, and the number of the first."""
    many = int(group.max(initial=0)) + 1
    step = max(1, _BLOCK // max(len(group), 1))
    for first in range(0, many, step):
        yield (group[:, None] == np.arange(first, min(first + step, many))).astype(np.float64), first


def inflation(dependence: Dependence, deviations: Float[ndarray, "n m"]) -> Float[ndarray, "m"]:
    """How much wider 95 % intervals from draws of units must be for few, unequal or crossed units.

    `deviations` are what each question adds to the error of a statistic (sums to 0); percentiles of draws of
    units are as if normal.

    >>> many = Dependence(images=np.arange(999)[:, None], captions=np.arange(999)[:, None])
    >>> inflation(many, np.linspace(-1, 1, 999)[:, None]).round(2)
    array([1.])
    """
    from scipy.special import ndtri, stdtrit

    variance, freedom = linear_variance(dependence, deviations)
    drawn = column_sums(cluster_sums(deviations, dependence.units) ** 2)
    wide = np.sqrt(variance / np.maximum(drawn, _NOTHING))
    quantile = (1 + 0.95) / 2
    return np.where(variance > _NOTHING, wide * stdtrit(freedom, quantile) / ndtri(quantile), 1.0)
