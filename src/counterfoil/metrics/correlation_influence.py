"""Influence of each point on a correlation, and on the difference between two metrics' correlations.

`influences`: the derivative by the point's weight. To first order a sample's error is the sum of these over
its points, so variances of correlations are those of sums, whatever the points share. Kendall's numerator is
S = sum w_i w_j s_ij over ordered pairs, of which the derivative is 2 q_i with q_i = sum_j s_ij; what it is
divided by counts ties and has derivatives of its own. Spearman's is Pearson's of ranks that move with the
weights: a rank is (up to constants) sum_j w_j sgn(x_i - x_j).

Source: the infinitesimal jackknife, B. Efron, The jackknife, the bootstrap and other resampling plans, 1982,
section 6.

`contributions`: by how much two metrics' correlations with ratings differ, point by point. Where two metrics
are equally good, swapping their scores of some points changes nothing but luck. The test of Deutsch et al.
(2021) makes both metrics' scores comparable, swaps them, and takes both correlations again. That need not be
done swap by swap: turned into ranks, and with S(x) the sum over pairs of points of `sgn(x_i - x_j) w_ij`, the
difference of S between the two mixtures is *linear* in the swaps,

    S(first') - S(second') = sum_i s_i (q_i(first) - q_i(second)),    s_i = -1 where i is swapped, else 1,
    q_i(x) = sum_j (sgn(x_i - first_j) + sgn(x_i - second_j)) w_ij,

because whatever is quadratic in `s` is the same in both. `w_ij` is `sgn(y_i - y_j)` for Kendall and the
difference of the ratings' ranks for Spearman. What S is divided by (how many pairs are tied) moves with the
swaps too, and is taken to first order around the mean of both metrics; so is the spread in Pearson's
correlation, of which the scores are standardised and not ranked.

Source: D. Deutsch, R. Dror, D. Roth, A statistical analysis of summarization evaluation metrics using
resampling methods, 2021 (the permutation tests); the linear form is ours, and a test holds it against
swapping.
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


def contributions(
    first: Float[ndarray, "n"], second: Float[ndarray, "n"], ratings: Float[ndarray, "n"]
) -> Float[ndarray, "n 4"]:
    """What each point adds to the differences of tau-b, tau-c, Spearman's and Pearson's correlation.

    Columns sum to the correlation of `first` less that of `second` (tau-b and Spearman to first order in the
    difference of ties); a swapped point counts with the opposite sign. NaN where a column is constant.

    >>> ratings = np.array([1.0, 2.0, 3.0, 4.0])
    >>> found = contributions(np.array([0.1, 0.2, 0.3, 0.4]), np.array([4.0, 3.0, 2.0, 1.0]), ratings)
    >>> found.sum(axis=0).round(6)
    array([2., 2., 2., 2.])
    """
    n = len(ratings)
    if any(np.ptp(column) == 0 for column in (first, second, ratings)):
        return np.full((n, len(MEASURES)), np.nan)
    # Twice the middle ranks, as whole numbers, so that both metrics lie on one scale.
    ranks = [np.rint(2 * middle_ranks(column)).astype(np.int64) for column in (first, second)]
    level = np.unique(ratings, return_inverse=True)[1].reshape(-1)
    rated = 2 * middle_ranks(ratings) - (n + 1)
    # Of each metric: what its points say of the order among all points of both, and among its own.
    order, own_order = np.zeros((2, n)), np.zeros((2, n))
    for one in range(int(level.max()) + 1):
        below = [upto(rank, (level == one).astype(np.float64)) for rank in ranks]
        toward = np.sign(level - one)
        for k, rank in enumerate(ranks):
            both = [balance(each, rank) for each in below]
            order[k] += toward * (both[0] + both[1])
            own_order[k] += toward * both[k]
    ones, by_rating = ([upto(rank, weights) for rank in ranks] for weights in (np.ones(n), rated))
    rank_order, own_rank_order = np.zeros((2, n)), np.zeros((2, n))
    for k, rank in enumerate(ranks):
        both = [(rated * balance(ones[j], rank) - balance(by_rating[j], rank)) / 2 for j in (0, 1)]
        rank_order[k], own_rank_order[k] = both[0] + both[1], both[k]
    # How many points of each metric tie with each point of each.
    counts = [np.bincount(rank, minlength=2 * n + 1).astype(np.float64) for rank in ranks]
    ties = np.array([[count[rank] for count in counts] for rank in ranks])
    own_ties = np.array([ties[0, 0], ties[1, 1]])
    squares = ties[:, 0] + ties[:, 1]
    cubes = ties[:, 0] ** 2 + ties[:, 0] * ties[:, 1] + ties[:, 1] ** 2
    level_ties = float((np.bincount(level).astype(np.float64) ** 2).sum())
    classes = [min(len(np.unique(rank)), int(level.max()) + 1) for rank in ranks]
    return np.stack(
        [
            _normalised(order, own_order, n**2 - own_ties.sum(axis=1), -squares, n**2 - level_ties),
            (order[0] - order[1]) * float(np.mean([k / (k - 1) for k in classes])) / n**2,
            _normalised(
                rank_order,
                own_rank_order,
                (float(n) ** 3 - (own_ties**2).sum(axis=1)) / 3,
                -cubes / 3,
                float(rated @ rated),
            ),
            _pearson_terms(first, second, ratings),
        ],
        axis=1,
    )


def _normalised(
    terms: NDArray[np.float64],
    own: NDArray[np.float64],
    spread: NDArray[np.float64],
    of_spread: NDArray[np.float64],
    other: float,
) -> NDArray[np.float64]:
    """Terms of S over sqrt(spread * other), where the spread has terms too: to first order around the mean.

    `terms`, `own` (whose sums are S) and `of_spread` are (2 metrics, n), `spread` is (2,).
    """
    mean, total = float(spread.mean()), float(own.sum() / 2)
    moved = (of_spread[0] - of_spread[1]) * total / (2 * mean)
    found: NDArray[np.float64] = (terms[0] - terms[1] - moved) / np.sqrt(mean * other)
    return found


def _pearson_terms(
    first: NDArray[np.float64], second: NDArray[np.float64], ratings: NDArray[np.float64]
) -> NDArray[np.float64]:
    x, y, z = ((column - column.mean()) / column.std() for column in (first, second, ratings))
    mean = float((x @ z + y @ z) / 2) / len(z)
    found: NDArray[np.float64] = ((x - y) * z - (x * x - y * y) * mean / 2) / len(z)
    return found


def upto(ranks: NDArray[np.int64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """How much weighs up to each of the ranks 0, 1, ..., 2 n."""
    found: NDArray[np.float64] = np.cumsum(np.bincount(ranks, weights=weights, minlength=2 * len(ranks) + 1))
    return found


def balance(upto: NDArray[np.float64], ranks: NDArray[np.int64]) -> NDArray[np.float64]:
    """How much weighs below each of some ranks, less what weighs above it."""
    found: NDArray[np.float64] = upto[ranks - 1] + upto[ranks] - upto[-1]
    return found
