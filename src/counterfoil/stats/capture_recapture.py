"""Numbers of things that were never found, from how often those that were found were found again.

Several proposers (models, people) each find some of the N right pairs of a gallery. How many are left follows
from how their finds overlap: capture-recapture, as animals are counted.

* `independent`: every proposer finds each pair with a chance of its own, whatever the others find. Models
  that see the same easy pairs overlap more than chance, so N comes out *too low*: it is a lower bound then.
* `chao`: a lower bound for chances that differ from pair to pair, from those found once and twice, whatever
  the rates of the proposers. It is below the truth on average unless all pairs are equally hard.
* `graded`: chances differ from pair to pair by one grade of difficulty that all proposers share (Darroch).
  A figure under assumptions: that no pair is out of every proposer's reach, which nothing that was found can
  show, and that proposers share no more than this grade, as near copies do. It has no interval, since one
  that is right under them holds the truth next to never without.

Sources: D. G. Chapman, Some properties of the hypergeometric distribution with applications to zoological
sample censuses, 1951; A. Chao, Estimating the population size for capture-recapture data with unequal
catchability, 1987; R. M. Cormack, Interval estimation for mark-recapture studies of closed populations, 1992;
J. N. Darroch et al., A three-sample multiple-recapture approach to census population estimation, 1993.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from math import inf, log

import numpy as np
from jaxtyping import Bool
from numpy import ndarray
from scipy.optimize import brentq, minimize_scalar
from scipy.special import gammaln, xlogy
from scipy.stats import chi2

from counterfoil.errors import InputError
from counterfoil.stats.score_intervals import normal_quantile

#: More proposers than these make too many patterns of finds for `graded`.
MOST = 10
#: A population this many times what was found is as good as unbounded.
_BEYOND = 1e6


@dataclass(frozen=True)
class Population:
    """All there is: `total`, with its interval, infinite where unbounded; `n_found` of them were found."""

    n_found: int
    total: float
    low: float
    high: float


def independent(finds: Bool[ndarray, "pairs proposers"]) -> Population:
    """All there is, where proposers find pairs independently of each other, each at a rate of its own.

    `finds[p, i]` is whether proposer i found pair p; pairs that none found do not count. The likeliest
    number, which for two proposers is Chapman's estimate give or take one, with its profile-likelihood
    interval: `high` is infinite where no pair was found twice. 0 of 0 where nothing was found. Raises
    `InputError` for fewer than two proposers.

    >>> both, one = np.ones((30, 2), bool), np.array([[True, False]] * 30 + [[False, True]] * 20)
    >>> here = independent(np.concatenate([both, one]))
    >>> here.n_found, round(here.total), round(here.low), round(here.high)
    (80, 99, 87, 120)
    """
    finds = _found(finds)
    n_found, per_proposer = len(finds), finds.sum(axis=0).astype(np.float64)
    if not n_found:
        return Population(0, 0.0, 0.0, inf)

    def likelihood(total: float) -> float:
        left = total - per_proposer
        return float(
            gammaln(total + 1)
            - gammaln(total - n_found + 1)
            + (xlogy(left, left) - xlogy(total, total)).sum()
        )

    total, best, at = _likeliest(n_found, likelihood)
    least, most = log(1e-3), log(_BEYOND * (n_found + 1))
    none = likelihood(float(n_found))
    # The totals that are not rejected.
    floor = max(at(best), none) - float(chi2.ppf(0.95, 1)) / 2

    def end(start: float, stop: float) -> float:
        return n_found + float(np.exp(brentq(lambda log_missing: at(log_missing) - floor, start, stop)))

    low = end(least, best) if none < floor and at(least) < floor else float(n_found)
    high = inf
    if at(most) < floor:
        inside = next((start for start in (best, least) if at(start) >= floor), None)
        high = float(n_found) if inside is None else end(inside, most)
    return Population(n_found, total, low, high)


def chao(finds: Bool[ndarray, "pairs proposers"]) -> Population:
    """A lower bound of all there is, where some pairs are harder to find than others.

        N >= S + (f1^2 - Z_1^2 - ... - Z_t^2) / (2 (f2 + 1)),

    with S found, Z_i by proposer i alone, f1 by one (their sum) and f2 by two. Proposers who find pairs
    independently miss (Z_i Z_j) / f2_ij of them by each two, whatever their rates; what they share makes it
    less. With equal rates it is Chao's bound. The interval is log-normal around what is missing, with the
    variance of counts that are Poisson; where no two proposers found a pair alone nothing is missing as far
    as the bound tells, and `high` is S + f1. It covers the bound, not the truth, which may be above it.
    Raises `InputError` for fewer than two proposers.

    >>> alone = [[1, 0, 0]] * 20 + [[0, 1, 0]] * 10 + [[0, 0, 1]] * 10
    >>> here = chao(np.array(alone + [[1, 1, 0]] * 20 + [[1, 1, 1]] * 10, dtype=bool))
    >>> here.n_found, round(here.total, 1)  # 70 + (40**2 - 20**2 - 10**2 - 10**2) / (2 * 21)
    (70, 93.8)
    """
    finds = _found(finds)
    n_found, times = len(finds), finds.sum(axis=1)
    alone = finds[times == 1].sum(axis=0).astype(np.float64)
    once, twice = float(alone.sum()), float((times == 2).sum())
    missing = (once**2 - float(alone @ alone)) / (2 * (twice + 1))
    if missing <= 0:
        return Population(n_found, float(n_found), float(n_found), float(n_found + once))
    # As Chao 1987 equation 11, with each proposer's own count.
    variance = (
        missing
        + float(alone @ (once - alone) ** 2) / (twice + 1) ** 2
        + twice * missing**2 / (twice + 1) ** 2
    )
    wide = np.exp(normal_quantile(0.95) * np.sqrt(np.log1p(variance / missing**2)))
    return Population(
        n_found, n_found + missing, float(n_found + missing / wide), float(n_found + missing * wide)
    )


def graded(finds: Bool[ndarray, "pairs proposers"]) -> float:
    """All there is, if pairs differ by one grade of difficulty that all proposers share, and by no more.

    The likeliest total of the log-linear model of the counts of all patterns of finds with a rate per
    proposer and a term in k (k - 1) / 2 for pairs found by k of them (Darroch's); infinite where unbounded, 0
    where nothing was found. A figure under assumptions, without an interval (see the module). Raises
    `InputError` for fewer than three proposers or more than `MOST`.

    >>> rng = np.random.default_rng(0)
    >>> hard = rng.beta(1, 1, size=(400, 1))
    >>> finds = rng.random((400, 4)) < hard
    >>> round(graded(finds) / 400, 1), bool(independent(finds).high < 400)
    (1.0, True)
    """
    t = finds.shape[1]
    if not 3 <= t <= MOST:
        raise InputError(
            "a shared grade of difficulty needs several proposers", given=t, allowed=f"3 to {MOST}"
        )
    finds = _found(finds)
    if not len(finds):
        return 0.0
    cells = np.array(list(product((0, 1), repeat=t)))
    counts = np.bincount(finds @ (1 << np.arange(t)[::-1]), minlength=len(cells)).astype(np.float64)
    k = cells.sum(axis=1)
    design = np.column_stack([np.ones(len(cells)), cells, k * (k - 1) / 2])
    n_found = len(finds)

    def likelihood(total: float) -> float:
        # The pattern of no find has what is missing; given the total, counts are multinomial.
        every = counts.copy()
        every[0] = total - n_found
        # The log-linear model's counts, by iteratively reweighted least squares.
        fitted = every + 0.1
        for _ in range(50):
            before, weight = fitted, np.sqrt(fitted)
            working = np.log(fitted) + (every - fitted) / fitted
            terms = np.linalg.lstsq(design * weight[:, None], working * weight, rcond=None)[0]
            fitted = np.exp(np.clip(design @ terms, -30, 30))
            if np.abs(fitted - before).max() <= 1e-8 * (1 + before.max()):
                break
        chance = fitted / fitted.sum()
        return float(gammaln(total + 1) - gammaln(every[0] + 1) + xlogy(every, chance).sum())

    return _likeliest(n_found, likelihood)[0]


def _found(finds: Bool[ndarray, "pairs proposers"]) -> Bool[ndarray, "found proposers"]:
    if finds.ndim != 2 or finds.shape[1] < 2:
        raise InputError(
            "what is missing shows in what several find again",
            given=f"{finds.shape[-1] if finds.ndim == 2 else 0} proposers",
            allowed="2 or more",
        )
    return np.asarray(finds[finds.any(axis=1)])


def _likeliest(
    n_found: int, likelihood: Callable[[float], float]
) -> tuple[float, float, Callable[[float], float]]:
    """The likeliest total from `n_found` on, the log missing of its hill, and likelihoods by log missing."""
    least, most = log(1e-3), log(_BEYOND * (n_found + 1))

    def at(missing: float) -> float:
        return likelihood(n_found + float(np.exp(missing)))

    # Likelihoods of a total are unimodal; a coarse pass finds the hill, a search its top.
    grid = np.linspace(least, most, 60)
    values = np.array([at(log_missing) for log_missing in grid])
    top = int(np.argmax(values))
    around = grid[max(top - 1, 0)], grid[min(top + 1, len(grid) - 1)]
    best = float(minimize_scalar(lambda log_missing: -at(log_missing), bounds=around, method="bounded").x)
    if top == len(grid) - 1:
        return inf, best, at
    none = likelihood(float(n_found)) >= at(best)
    return (float(n_found) if none else n_found + float(np.exp(best))), best, at
