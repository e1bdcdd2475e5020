"""The mean of independent numbers that have no bounds."""

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from scipy.special import stdtrit

from counterfoil.errors import InputError


def student(values: Float[ndarray, "n"], *, level: float = 0.95) -> tuple[float, float]:
    """Student's t interval for the mean of `n` independent numbers.

    Returns (low, high); zero width where all numbers agree. For numbers in [0, 1] that share images,
    `counterfoil.stats.estimates.cluster_bootstrap` is the better one. Raises `InputError` for fewer than two.

    Source: Student, The probable error of a mean, 1908.

    >>> low, high = student(np.array([1.0, 2.0, 3.0, 4.0]))
    >>> round(low, 4), round(high, 4)
    (0.4457, 4.5543)
    """
    n = len(values)
    if n < 2:
        raise InputError("no interval for the mean", given=f"{n} numbers", allowed="2 or more")
    centre = float(np.mean(values))
    half = float(stdtrit(n - 1, (1 + level) / 2)) * float(np.std(values, ddof=1)) / n**0.5
    return centre - half, centre + half
