"""Tests of the difference between two models."""

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from counterfoil.errors import InputError


def discordant(first: Float[ndarray, "n"], second: Float[ndarray, "n"]) -> tuple[int, int]:
    """How many questions only the first gets right, and how many only the second; half points decide nothing.

    >>> discordant(np.array([1.0, 1.0, 0.0, 0.5]), np.array([0.0, 1.0, 1.0, 0.0]))
    (1, 1)
    """
    return int(((first == 1) & (second == 0)).sum()), int(((first == 0) & (second == 1)).sum())


def mcnemar(first: Float[ndarray, "n"], second: Float[ndarray, "n"]) -> float:
    """McNemar's exact two-sided p-value: a fair coin for each question that only one model gets right.

    In (0, 1]; 1 where no question is decided. Questions count as independent: where they share images prefer
    `intervals.differences`. Source: Q. McNemar, Note on the sampling error of the difference between
    correlated proportions, 1947; the binomial form.

    >>> mcnemar(np.array([1.0] * 6 + [0.0]), np.array([0.0] * 6 + [1.0]))  # 2 * (1 + 7) / 2**7
    0.125
    """
    from scipy.special import bdtr

    wins, losses = discordant(first, second)
    return float(min(1.0, 2 * bdtr(min(wins, losses), wins + losses, 0.5)))


def williams(first: float, second: float, between: float, n: int) -> float:
    """Williams' two-sided p-value of "both metrics correlate as much with people", of `n` independent rows.

    `first` and `second` are the two metrics' (Pearson's) correlations with people, `between` the one between
    the metrics; t with n - 3 degrees of freedom. It takes rows as independent and normal: where captions
    share images believe `evaluation.compare`, this is a second opinion. NaN where a correlation is NaN.
    Raises `InputError` for fewer than four rows.

    Source: E. J. Williams, Regression analysis, 1959; for metrics, Y. Graham and T. Baldwin, Testing for
    significance of increased correlation with human judgment, 2014, equation 1.

    >>> round(williams(0.6, 0.5, 0.4, 103), 4), williams(0.5, 0.5, 0.9, 20)
    (0.2405, 1.0)
    """
    from scipy.special import stdtr

    if n < 4:
        raise InputError("too few rows to compare correlations", given=n, allowed="4 or more")
    if any(value != value for value in (first, second, between)):
        return float("nan")
    if first == second:
        return 1.0
    volume = 1 - first**2 - second**2 - between**2 + 2 * first * second * between
    spread = 2 * volume * (n - 1) / (n - 3) + (first + second) ** 2 / 4 * (1 - between) ** 3
    if spread <= 0:
        return 0.0
    t = (first - second) * ((n - 1) * (1 + between) / spread) ** 0.5
    return float(min(1.0, 2 * stdtr(n - 3, -abs(t))))


def holm(p: Float[ndarray, "p"]) -> Float[ndarray, "p"]:
    """Holm's step-down adjustment of a family of p-values, in the order given.

    The smallest of k is multiplied by k, the next by k - 1 and so on, never falling and at most 1; rejecting
    those below alpha keeps the chance of any false rejection below alpha, whatever the dependence.

    Source: S. Holm, A simple sequentially rejective multiple test procedure, 1979.

    >>> holm(np.array([0.01, 0.04, 0.03]))
    array([0.03, 0.06, 0.06])
    """
    order = np.argsort(p, kind="stable")
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)))
    return adjusted


def tarone_holm(
    p: Float[ndarray, "p"], least: Float[ndarray, "p"], *, level: float = 0.05
) -> Float[ndarray, "p"]:
    """Holm's adjustment among the tests that could reach the level at all; the others get 1.

    `least` is the smallest p-value that each test can have, whichever side the data are on. With K the
    smallest number such that at most K tests have `least` <= level / K, those tests are the family. The
    chance that any true hypothesis is at or below `level` is at most `level`. Source: R. E. Tarone, A
    modified Bonferroni method for discrete data, 1990.

    >>> tarone_holm(np.array([0.004, 0.03, 1.0]), np.array([0.001, 0.03, 0.5]))
    array([0.004, 1.   , 1.   ])
    """
    k = 1
    while (least <= level / k).sum() > k:
        k += 1
    family = least <= level / k
    adjusted = np.ones(len(p))
    adjusted[family] = holm(p[family]) if family.any() else 1.0
    return adjusted
