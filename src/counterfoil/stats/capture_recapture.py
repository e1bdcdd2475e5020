"""How many right pairs no model proposed, from how often those that were proposed were proposed again.

How many are left follows from how finds overlap: capture-recapture, as animals are counted. Models overlap
more than chance, since they see the same easy pairs, so it is a lower bound.

Sources: A. Chao, Estimating the population size for capture-recapture data with unequal catchability, 1987.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool
from numpy import ndarray

from counterfoil.errors import InputError
from counterfoil.stats.intervals import NORMAL


@dataclass(frozen=True)
class Population:
    """At least how many there are in `total`, with its interval; `n_found` of them were found."""

    n_found: int
    total: float
    low: float
    high: float


def chao(finds: Bool[ndarray, "pairs proposers"]) -> Population:
    """A lower bound of all there is, where some pairs are harder to find than others.

        N >= S + (f1^2 - Z_1^2 - ... - Z_t^2) / (2 (f2 + 1)),

    with S found, Z_i by proposer i alone, f1 by one (their sum) and f2 by two; with equal rates it is Chao's
    bound. The interval is log-normal around what is missing, with the variance of Poisson counts; where no
    two proposers found a pair alone nothing is missing, and `high` is S + f1. It covers the bound, not the
    truth, which may be above it. Raises `InputError` for fewer than two proposers.

    >>> alone = [[1, 0, 0]] * 20 + [[0, 1, 0]] * 10 + [[0, 0, 1]] * 10
    >>> here = chao(np.array(alone + [[1, 1, 0]] * 20 + [[1, 1, 1]] * 10, dtype=bool))
    >>> here.n_found, round(here.total, 1)  # 70 + (40**2 - 20**2 - 10**2 - 10**2) / (2 * 21)
    (70, 93.8)
    """
    if finds.ndim != 2 or finds.shape[1] < 2:
        given = f"{finds.shape[-1] if finds.ndim == 2 else 0} proposers"
        raise InputError("what is missing shows in what several find again", given=given, allowed="2 or more")
    finds = finds[finds.any(axis=1)]
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
    wide = np.exp(NORMAL * np.sqrt(np.log1p(variance / missing**2)))
    return Population(
        n_found, n_found + missing, float(n_found + missing / wide), float(n_found + missing * wide)
    )
