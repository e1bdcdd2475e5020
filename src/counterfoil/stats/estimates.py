"""Intervals for means of per-question values."""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray
from scipy.stats import norm, t

from counterfoil.errors import InputError
from counterfoil.stats.resampling import cluster_draws, cluster_sums, whole


def wilson(successes: float, n: float, *, level: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval for a proportion of independent trials.

    `successes` of `n` may be fractional, as half points for ties make them. Returns (low, high) in [0, 1];
    it never has zero width, also not at 0 and `n` successes. Raises `InputError` for no trials.

    Source: E. B. Wilson, Probable inference, the law of succession, and statistical inference, 1927.

    >>> low, high = wilson(8, 10)
    >>> round(low, 4), round(high, 4)
    (0.4902, 0.9433)
    """
    if not n > 0 or not 0 <= successes <= n:
        raise InputError("no proportion", given=f"{successes} of {n}", allowed="0 to n successes, n above 0")
    z2 = float(norm.ppf((1 + level) / 2)) ** 2
    p = successes / n
    centre = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = (z2 * (p * (1 - p) / n + z2 / (4 * n * n))) ** 0.5 / (1 + z2 / n)
    # At the ends the formula is exact up to rounding; the interval contains the proportion by definition.
    return max(0.0, min(centre - half, p)), min(1.0, max(centre + half, p))


def cluster_bootstrap(
    values: Float[ndarray, "n m"],
    clusters: Int[ndarray, "n"],
    *,
    seed: int,
    draws: int = 10_000,
    level: float = 0.95,
) -> tuple[Float[ndarray, "m"], Float[ndarray, "m"]]:
    """Intervals for the mean of each column, where questions of one cluster stand or fall together.

    Returns (low, high), each (m,). All columns share the same draws.
    """
    replicates = np.concatenate(list(_replicates(values, clusters, None, draws, seed)))
    alpha = (1 - level) / 2
    low, high = np.quantile(replicates, [alpha, 1 - alpha], axis=0)
    n_clusters = len(np.unique(clusters))
    for column in np.flatnonzero(values.min(axis=0) == values.max(axis=0)):
        low[column], high[column] = wilson(float(values[0, column]) * n_clusters, n_clusters, level=level)
    return low, high


def macro_bootstrap(
    values: Float[ndarray, "n"],
    groups: Int[ndarray, "n"],
    clusters: Int[ndarray, "n"],
    *,
    seed: int,
    draws: int = 10_000,
    level: float = 0.95,
) -> tuple[float, float, float]:
    """The mean over groups of the group means (`accuracy_macro`) with its interval: (value, low, high).

    Groups may share clusters. A group that no drawn cluster has a question of is left out of that draw.
    """
    value = float(np.mean([values[groups == label].mean() for label in np.unique(groups)]))
    replicates = np.concatenate(list(_replicates(values[:, None], clusters, groups, draws, seed)))[:, 0]
    alpha = (1 - level) / 2
    low, high = np.quantile(replicates, [alpha, 1 - alpha])
    return value, float(low), float(high)


def difference_bootstrap(
    values: Float[ndarray, "n m"],
    clusters: Int[ndarray, "n"],
    pairs: Int[ndarray, "p 2"],
    *,
    seed: int,
    groups: Int[ndarray, "n"] | None = None,
    draws: int = 10_000,
    level: float = 0.95,
) -> tuple[Float[ndarray, "p"], Float[ndarray, "p"]]:
    """Intervals for mean(column a) - mean(column b), for each pair (a, b) of columns, paired by question.

    With `groups` it is the difference of the means over groups of group means.
    Columns are models, or models x measures. All pairs share the same draws. Returns (low, high), each (p,).
    """
    replicates = np.concatenate(list(_replicates(values, clusters, groups, draws, seed)))
    alpha = (1 - level) / 2
    ends = [np.quantile(replicates[:, a] - replicates[:, b], [alpha, 1 - alpha]) for a, b in pairs]
    low, high = np.reshape(ends, (len(pairs), 2)).T
    return low, high


def t_over_folds(values: Float[ndarray, "n"], *, folds: int = 4, level: float = 0.95) -> tuple[float, float]:
    """Student's t interval over the means of `folds` consecutive parts, clipped to [0, 1].

    Source: P003, appendix A.
    """
    means = np.array([part.mean() for part in np.array_split(values, folds)])
    half = float(t.ppf((1 + level) / 2, folds - 1)) * float(means.std(ddof=1)) / folds**0.5
    centre = float(values.mean())
    return max(0.0, centre - half), min(1.0, centre + half)


def _replicates(
    values: Float[ndarray, "n m"],
    clusters: Int[ndarray, "n"],
    groups: Int[ndarray, "n"] | None,
    draws: int,
    seed: int,
) -> Iterator[Float[ndarray, "block m"]]:
    """The mean of each column in each draw, a block of draws at a time."""
    n, m = values.shape
    n_clusters = len(np.unique(clusters))
    labels = np.zeros(1, dtype=np.int64) if groups is None else np.unique(groups[groups >= 0])
    parts = []
    for label in labels:
        member = np.ones(n) if groups is None else (groups == label).astype(np.float64)
        columns = np.column_stack([values * member[:, None], member])
        parts.append(whole(columns, clusters, largest=n_clusters))
    for weights in cluster_draws(n_clusters, draws, seed=seed):
        total, present = np.zeros((len(weights), m)), np.zeros((len(weights), 1))
        for part in parts:
            sums = part.weighted(weights)
            size = sums[:, m:]
            there = size > 0
            total += np.where(there, sums[:, :m] / np.where(there, size, 1), 0.0)
            present += there
        yield total / present


__all__ = ["cluster_bootstrap", "cluster_sums", "difference_bootstrap", "t_over_folds", "wilson"]
