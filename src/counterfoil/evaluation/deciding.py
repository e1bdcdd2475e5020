"""How many questions would decide what a comparison leaves open."""

from math import ceil

from scipy.special import ndtri

from counterfoil.evaluation.compare import Difference

#: The level of intervals and tests.
LEVEL = 0.05


def decided(difference: Difference) -> bool:
    """Whether one of the two is ahead: the interval leaves out 0, and the test says so after Holm."""
    return difference.p_holm < LEVEL and not difference.low <= 0 <= difference.high


def questions_to_decide(value: float, low: float, high: float, n: int, *, power: float = 0.8) -> int | None:
    """So many questions decide a difference that is as large as the one seen, in a share `power` of samples.

    `value` with its 95 % interval `low` to `high` was seen on `n` questions; None where it is 0, which no
    number of questions decides. The interval is taken to shrink with the root of the questions, which are
    like these, and what corrects for several comparisons is left out: with it more are needed.

    >>> questions_to_decide(0.02, -0.03, 0.07, 280)
    3576
    """
    if value == 0:
        return None
    interval, wanted = float(ndtri(1 - LEVEL / 2)), float(ndtri(power))
    error = (high - low) / (2 * interval)
    return ceil(n * ((interval + wanted) * error / value) ** 2)
