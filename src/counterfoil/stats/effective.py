"""The effective number of questions: how many independent ones would have a mean that spreads as much.

Questions that share an image or a caption stand and fall together, so there are fewer of them than rows;
`estimates` says what this is for.
"""

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from scipy.special import ndtri, stdtrit

from counterfoil.stats.score_intervals import wilson_score

#: Variances below this are rounding: a single wrong answer in a million questions makes one of 1e-12.
_NO_VARIANCE = 1e-20


def around_means(
    value: Float[ndarray, "m"], variance: Float[ndarray, "m"], n_clusters: int, level: float
) -> tuple[Float[ndarray, "m"], Float[ndarray, "m"]]:
    """Wilson's intervals for the effective numbers of questions, around means of this variance over draws."""
    effective, z = effective_number(value * (1 - value), variance, n_clusters, level)
    return wilson_score(value, effective, z)


def effective_number(
    single: Float[ndarray, "k"], variance: Float[ndarray, "k"], n_clusters: int, level: float
) -> tuple[Float[ndarray, "k"], Float[ndarray, "k"]]:
    """How many independent questions, of variance `single` each, have means of `variance`; and the quantile.

    Where nothing varies between clusters it is the number of clusters, and nothing was estimated: the normal
    quantile holds.
    """
    varies = variance > _NO_VARIANCE
    effective = np.where(varies, np.maximum(single, 1e-12) / np.where(varies, variance, 1.0), n_clusters)
    student = float(stdtrit(n_clusters - 1, (1 + level) / 2)) if n_clusters > 1 else np.inf
    return effective, np.where(varies, student, normal_quantile(level))


def normal_quantile(level: float) -> float:
    """The normal quantile that leaves out as much on either side.

    >>> round(normal_quantile(0.95), 4)
    1.96
    """
    return float(ndtri((1 + level) / 2))
