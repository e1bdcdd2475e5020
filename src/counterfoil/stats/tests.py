"""Is the difference between two scorers more than luck?"""

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray
from scipy.stats import binom

from counterfoil.stats.resampling import sign_draws, whole


def paired_permutation(
    values: Float[ndarray, "n m"],
    clusters: Int[ndarray, "n"],
    pairs: Int[ndarray, "p 2"],
    *,
    seed: int,
    weights: Float[ndarray, "n"] | None = None,
    draws: int = 10_000,
) -> Float[ndarray, "p"]:
    """Two-sided p-values of "columns a and b could be swapped", for each pair (a, b) of columns.

    Under no difference the sign of every cluster's difference is a coin toss, so whole clusters are flipped.
    p = (1 + number of draws at least as far from 0 as the data) / (draws + 1).
    """
    weighted = values if weights is None else values * weights[:, None]
    n_clusters = len(np.unique(clusters))
    sums = whole(weighted, clusters, largest=n_clusters)
    first, second = pairs[:, 0], pairs[:, 1]
    ones = np.ones((1, n_clusters), dtype=np.float32)
    observed = sums.weighted(ones)
    distance = np.abs(observed[:, first] - observed[:, second])
    reached = np.zeros(len(pairs), dtype=np.int64)
    for signs in sign_draws(n_clusters, draws, seed=seed):
        flipped = sums.weighted(signs)
        reached += (np.abs(flipped[:, first] - flipped[:, second]) >= distance).sum(axis=0)
    return (1 + reached) / (draws + 1)


def discordant(first: Float[ndarray, "n"], second: Float[ndarray, "n"]) -> tuple[int, int]:
    """Questions that only the first gets right, and that only the second does."""
    return int((first > second).sum()), int((second > first).sum())


def mcnemar(first: Float[ndarray, "n"], second: Float[ndarray, "n"]) -> float:
    """McNemar's exact two-sided p-value over the questions on which two scorers differ; 1 where none do."""
    wins, losses = discordant(first, second)
    return float(min(1.0, 2 * binom.cdf(min(wins, losses), wins + losses, 0.5)))


def holm(p: Float[ndarray, "p"]) -> Float[ndarray, "p"]:
    """Holm's step-down adjustment of a family of p-values, in the order given.

    >>> holm(np.array([0.01, 0.04, 0.03]))
    array([0.03, 0.06, 0.06])
    """
    order = np.argsort(p, kind="stable")
    stepped = p[order] * np.arange(len(p), 0, -1)
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(stepped))
    return adjusted
