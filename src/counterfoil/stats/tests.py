"""Tests of the difference between two scorers."""

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray
from scipy.special import bdtr, stdtr

from counterfoil.errors import InputError
from counterfoil.stats.crossed import normal_reach
from counterfoil.stats.resampling import exact_sums, sign_draws
from counterfoil.stats.sharing import Sharing

#: Sums of fewer units that differ are far from normal.
_FEW = 20


def paired_permutation(
    values: Float[ndarray, "n m"],
    clusters: Int[ndarray, "n"] | Sharing,
    pairs: Int[ndarray, "p 2"],
    *,
    seed: int,
    weights: Float[ndarray, "n"] | Float[ndarray, "n m"] | None = None,
    draws: int = 10_000,
) -> Float[ndarray, "p"]:
    """Two-sided p-values of "a and b are exchangeable" for each pair (a, b) of columns of `values`.

    Where two scorers do not differ, swapping their answers to a whole cluster of questions changes nothing
    but luck: the statistic is the sum over clusters of the difference, and each draw gives every cluster a
    sign. p = (1 + draws at least as far from 0 as the data) / (draws + 1), in (0, 1], valid at any number of
    draws; columns that agree throughout get 1. `weights` weigh the questions (`macro_weights` for a macro
    average), of all columns or of each.

    Of a `Sharing` whose images and captions are crossed no partition can be swapped: units of it are, and the
    data's distance from 0 is measured in its crossed standard error (`stats.crossed.normal_reach`).

    All pairs share the same signs, so all of them cost one matrix product. The sums are of whole numbers:
    draws that tie with the data count as ties, not as rounding has it. Raises `InputError` for no questions.

    >>> answers, pairs = np.stack([np.ones(10), np.zeros(10)], axis=1), np.array([[0, 1], [0, 0]])
    >>> p = paired_permutation(answers, np.arange(10), pairs, seed=0, draws=999)
    >>> bool(p[0] < 0.01), float(p[1])
    (True, 1.0)
    """
    if not values.size:
        raise InputError(
            "no questions to compare", given=f"{values.shape[0]} rows, {values.shape[1]} columns"
        )
    shares = np.full((len(values), 1), 1.0) if weights is None else weights.reshape(len(values), -1)
    values = values * shares
    sharing = clusters if isinstance(clusters, Sharing) else None
    sums = exact_sums(values, clusters.units if isinstance(clusters, Sharing) else clusters)
    first, second = pairs[:, 0], pairs[:, 1]

    def distances(signs: Float[ndarray, "draws c"]) -> Float[ndarray, "draws p"]:
        flipped = sums.weighted(signs)
        return np.abs(flipped[:, first] - flipped[:, second])

    n_clusters = len(sums.numbers)
    # Two columns, each rounded, make each of the two statistics that are compared.
    reach = distances(np.ones((1, n_clusters), dtype=np.float32)) - 4 * sums.slack
    if sharing is not None and sharing.crossed and not sharing.independent:
        of_pair = shares if shares.shape[1] == 1 else shares[:, first]
        crossed = normal_reach(sharing, values[:, first] - values[:, second], of_pair)[None] * sums.scale
        differing = (sums.numbers[:, first] != sums.numbers[:, second]).sum(axis=0)
        # Sums of few units are not normal: there the p-value is at least that of their flips.
        crossed -= 4 * sums.slack
        reach = np.where(differing < _FEW, np.minimum(reach, crossed), crossed)
    reached = np.zeros(len(pairs), dtype=np.int64)
    for signs in sign_draws(n_clusters, draws, seed=seed):
        reached += (distances(signs) >= reach).sum(axis=0)
    return (1 + reached) / (draws + 1)


def discordant(first: Float[ndarray, "n"], second: Float[ndarray, "n"]) -> tuple[int, int]:
    """How many questions only the first gets right, and how many only the second.

    Only whole wins count: 1 against 0. Half points for ties decide nothing here.

    >>> discordant(np.array([1.0, 1.0, 0.0, 0.5]), np.array([0.0, 1.0, 1.0, 0.0]))
    (1, 1)
    """
    return int(((first == 1) & (second == 0)).sum()), int(((first == 0) & (second == 1)).sum())


def mcnemar(first: Float[ndarray, "n"], second: Float[ndarray, "n"]) -> float:
    """McNemar's exact two-sided p-value: a fair coin for each question that only one scorer gets right.

    In (0, 1]; 1 where no question is decided. Questions count as independent: where they share images prefer
    `paired_permutation`. Half points for ties are left out (see `discordant`).

    Source: Q. McNemar, Note on the sampling error of the difference between correlated proportions, 1947; the
    binomial form.

    >>> mcnemar(np.array([1.0] * 6 + [0.0]), np.array([0.0] * 6 + [1.0]))  # 2 * (1 + 7) / 2**7
    0.125
    """
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

    `least` is the smallest p-value that each test can have. With K the smallest number such that at most K
    tests have `least` <= level / K, those tests are the family; what is at or below `level` is significant,
    and the chance that any true hypothesis is among that is at most `level`. `least` must not depend on which
    side the data are on.

    Source: R. E. Tarone, A modified Bonferroni method for discrete data, 1990.

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
