"""Influence of each point on a correlation.

It is the derivative by the point's weight. To first order a sample's error is the sum of these over
its points, so variances of correlations are those of sums, whatever the points share. Kendall's numerator is
S = sum w_i w_j s_ij over ordered pairs, of which the derivative is 2 q_i with q_i = sum_j s_ij; what it is
divided by counts ties and has derivatives of its own. Spearman's is Pearson's of ranks that move with the
weights: a rank is (up to constants) sum_j w_j sgn(x_i - x_j).

Source: the infinitesimal jackknife, B. Efron, The jackknife, the bootstrap and other resampling plans, 1982,
section 6.
"""

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from numpy.typing import NDArray

from counterfoil.metrics.correlation import middle_ranks
from counterfoil.metrics.weighted_correlation import MEASURES


def influences(scores: Float[ndarray, "n"], ratings: Float[ndarray, "n"]) -> Float[ndarray, "n 4"]:
    """The derivative of tau-b, tau-c, Spearman's and Pearson's correlation by the weight of each point.

    Columns sum to 0. NaN where all scores or all ratings are equal.

    >>> influences(np.array([0.1, 0.2, 0.4]), np.array([1.0, 2.0, 2.0])).sum(axis=0).round(12) + 0.0
    array([0., 0., 0., 0.])
    """
    n = len(scores)
    if any(np.ptp(column) == 0 for column in (scores, ratings)):
        return np.full((n, len(MEASURES)), np.nan)
    x, y = (np.rint(2 * middle_ranks(column)).astype(np.int64) for column in (scores, ratings))
    concordant = np.zeros(n)
    level = np.unique(ratings, return_inverse=True)[1].reshape(-1)
    for one in range(int(level.max()) + 1):
        of_level = upto(x, (level == one).astype(np.float64))
        concordant += np.sign(level - one) * balance(of_level, x)
    total = float(concordant.sum())
    ties = [np.bincount(rank)[rank].astype(np.float64) for rank in (x, y)]
    untied = [n * n - float(each.sum()) for each in ties]
    norm = np.sqrt(untied[0] * untied[1])
    moved = sum((n - tie) / each for tie, each in zip(ties, untied, strict=True))
    tau_b = 2 * concordant / norm - total / norm * moved
    classes = min(len(np.unique(x)), len(np.unique(y)))
    tau_c = 2 * (concordant / n**2 - total / n**3) * classes / (classes - 1)
    return np.stack([tau_b, tau_c, _spearman(x, y), _pearson(scores, ratings)], axis=1)


def _spearman(x: ndarray, y: ndarray) -> ndarray:
    a, b = x - (len(x) + 1.0), y - (len(y) + 1.0)
    product, of_a, of_b = float(a @ b), float(a @ a), float(b @ b)
    moved = a * b - balance(upto(x, b), x) - balance(upto(y, a), y)
    moved_a, moved_b = a * a - 2 * balance(upto(x, a), x), b * b - 2 * balance(upto(y, b), y)
    norm = np.sqrt(of_a * of_b)
    return moved / norm - product / norm / 2 * (moved_a / of_a + moved_b / of_b)


def _pearson(scores: ndarray, ratings: ndarray) -> ndarray:
    x, y = ((column - column.mean()) / column.std() for column in (scores, ratings))
    mean = float(x @ y) / len(x)
    return (x * y - mean * (x * x + y * y) / 2) / len(x)


def upto(ranks: NDArray[np.int64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """How much weighs up to each of the ranks 0, 1, ..., 2 n."""
    found: NDArray[np.float64] = np.cumsum(np.bincount(ranks, weights=weights, minlength=2 * len(ranks) + 1))
    return found


def balance(upto: NDArray[np.float64], ranks: NDArray[np.int64]) -> NDArray[np.float64]:
    """How much weighs below each of some ranks, less what weighs above it."""
    found: NDArray[np.float64] = upto[ranks - 1] + upto[ranks] - upto[-1]
    return found
