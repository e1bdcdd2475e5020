"""Means of independent numbers in any range, such as the scores of captions.

Scores of captions are skewed, many of them are 0, and each metric has a range of its own. Coverage of nominal
95 % intervals for the mean of 10, 25 and 60 such numbers (exponential, half of them replaced by 0; 1,500
repetitions, so +- 1.4), and how often the interval of ten goes below 0, where no mean can be:

    Student's t                                   85.8   90.3   92.3      66.9
    percentiles of the draws                      83.4   89.7   92.3       0
    percentiles, widened for small samples        87.5   91.3   93.1       0
    bias-corrected and accelerated, widened       89.9   93.9   94.2       0

So it is the last. Below ten numbers none of them is worth printing.
"""

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from scipy.special import ndtr, ndtri, stdtrit

from counterfoil.errors import InputError
from counterfoil.stats.resampling import cluster_draws, exact_sums

#: Fewer numbers than these say too little about the spread of their mean.
FEWEST = 10


def mean_intervals(
    values: Float[ndarray, "n m"], *, seed: int = 0, draws: int = 2_000, level: float = 0.95
) -> tuple[Float[ndarray, "m"], Float[ndarray, "m"]]:
    """Bootstrap intervals for the mean of each column of `n` independent rows.

    Returns (low, high), each (m,): bias-corrected and accelerated, at quantiles widened for small samples.
    Both are means of drawn rows, so they lie between a column's smallest and largest number, and within
    whatever range its metric has. Zero width where all numbers of a column agree. All columns share the same
    draws; the same seed gives the same bits. Raises `InputError` for fewer than `FEWEST` rows.

    Sources: B. Efron, Better bootstrap confidence intervals, 1987; T. Hesterberg, What teachers should know
    about the bootstrap, 2015, section 3.5 (the widened quantiles).

    >>> low, high = mean_intervals(np.arange(20.0)[:, None])
    >>> bool(6 < low[0] < 9.5 < high[0] < 13)
    True
    """
    n = len(values)
    if n < FEWEST:
        raise InputError("no interval for the mean", given=f"{n} numbers", allowed=f"{FEWEST} or more")
    sums = exact_sums(values, np.arange(n), repeats=n)
    drawn = np.concatenate([sums.weighted(weights) for weights in cluster_draws(n, draws, seed=seed)])
    drawn /= sums.scale * n
    # The same sums of every row once, so that a draw of equal mean is seen to be equal.
    centre = sums.weighted(np.ones((1, n), dtype=np.float32))[0] / (sums.scale * n)
    below = (drawn < centre).mean(axis=0) + (drawn == centre).mean(axis=0) / 2
    bias = ndtri(np.clip(below, 1 / draws, 1 - 1 / draws))
    away = values - values.mean(axis=0)
    spread = (away**2).sum(axis=0) ** 1.5
    skew = (away**3).sum(axis=0) / np.where(spread > 0, 6 * spread, 1.0)
    # Draws spread too little, by sqrt((n - 1) / n), and as if the spread were known.
    z = float(stdtrit(n - 1, (1 + level) / 2)) * (n / (n - 1)) ** 0.5
    ends = []
    for end in (bias - z, bias + z):
        # Where the correction has no solution the end is that of all draws.
        slope = np.maximum(1 - skew * end, 1e-6)
        places = np.where(spread > 0, ndtr(bias + end / slope), 0.5)
        ends.append(np.array([np.quantile(drawn[:, k], place) for k, place in enumerate(places)]))
    return ends[0], ends[1]
