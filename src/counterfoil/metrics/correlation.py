"""How two columns of numbers go together, with the chance of seeing as much by luck."""

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from scipy.stats import pearsonr, spearmanr

from counterfoil.errors import InputError


def pearson(first: Float[ndarray, "n"], second: Float[ndarray, "n"]) -> tuple[float, float]:
    """Pearson's correlation and its two-sided p-value under independence: (coefficient, p).

    The coefficient is in [-1, 1]. Both are NaN where a column is constant: there is nothing to go along with.
    With a column of zeros and ones it is the point-biserial correlation, as in P003 Table 6 between a
    question's group score and the mean length of its two captions in words. Raises `InputError` for fewer
    than three rows.

    >>> coefficient, p = pearson(np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 3.0, 2.0, 4.0]))
    >>> round(coefficient, 4), round(p, 4)
    (0.8, 0.2)
    """
    if _constant(first, second):
        return float("nan"), float("nan")
    found = pearsonr(first, second)
    return float(found.statistic), float(found.pvalue)


def spearman(first: Float[ndarray, "n"], second: Float[ndarray, "n"]) -> tuple[float, float]:
    """Spearman's rank correlation and its two-sided p-value under independence: (coefficient, p).

    Equal numbers share the mean of their ranks. Otherwise as `pearson`.

    >>> spearman(np.array([1.0, 2.0, 3.0]), np.array([1.0, 4.0, 9.0]))[0]
    1.0
    """
    if _constant(first, second):
        return float("nan"), float("nan")
    found = spearmanr(first, second)
    return float(found.statistic), float(found.pvalue)


def _constant(first: Float[ndarray, "n"], second: Float[ndarray, "n"]) -> bool:
    if len(first) < 3:
        raise InputError("too few rows for a correlation", given=len(first), allowed="3 or more")
    return bool(np.ptp(first) == 0 or np.ptp(second) == 0)
