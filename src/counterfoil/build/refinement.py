"""Adversarial refinement: choosing rows so that blind scores no longer tell right captions from wrong ones.

`refine` (SugarCrepe) keeps as many rows of each cell of a grid of gaps as of its mirror image.
`filter_predictable` (in the manner of AFLite) drops what a scorer answers most surely until it is at chance.
Neither promises anything of a scorer that took no part. Sources: Hsieh et al., SugarCrepe, 2023, section 4,
and its `adversarial_refine.py`; Le Bras et al., Adversarial filters of dataset biases, 2020, algorithm 1.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray
from numpy.typing import NDArray

from counterfoil.errors import InputError, ScoreError

#: Bins of a gap between 0 and the scale, and those where some other gap of the row is 0.
BINS, EDGE_BINS = 50, 10


def cells(
    gaps: Float[ndarray, "n d"],
    *,
    scales: Sequence[float] | None = None,
    bins: int = BINS,
    edge_bins: int = EDGE_BINS,
    groups: Int[ndarray, "n"] | None = None,
) -> tuple[Int[ndarray, "n"], NDArray[np.int8]]:
    """The cell of every row and its side: rows of one cell with sides 1 and -1 are mirror images."""
    gaps = np.asarray(gaps, dtype=np.float64)
    n, d = gaps.shape
    scales = [1.0] * d if scales is None else list(scales)
    if not d:
        raise InputError("no blind scores", allowed="one or more")
    if len(scales) != d:
        raise InputError("a scale for each blind score", given=len(scales), allowed=str(d))
    if not all(0 < scale < np.inf for scale in scales):
        raise InputError("scale of gaps", given=", ".join(map(str, scales)), allowed="positive numbers")
    if min(bins, edge_bins) < 1:
        raise InputError("number of bins", given=min(bins, edge_bins), allowed="1 or more")
    odd = np.flatnonzero(~np.isfinite(gaps).all(axis=1))
    if len(odd):
        raise ScoreError("a gap is not finite", where=f"row {odd[0] + 1}", given=gaps[odd[0]].tolist())
    signs = np.sign(gaps).astype(np.int8)
    # The first gap that is not 0 decides which of two mirror images a row is.
    side: NDArray[np.int8] = signs[np.arange(n), (signs != 0).argmax(axis=1)]
    many = np.where((signs == 0).any(axis=1), edge_bins, bins)[:, None]
    height = np.minimum(np.abs(gaps) / scales * many, many - 1)
    wide = 2 * max(bins, edge_bins) + 1
    # Mirror images have the same digits.
    digits = (height.astype(np.int64) + 1) * (signs * side[:, None]) + wide // 2
    place, size = np.unique(np.zeros(n) if groups is None else groups, return_inverse=True)[1], n + 1
    for digit in digits.T:
        place, size = place * wide + digit, size * wide
        if size > 2**62 // wide:
            place, size = np.unique(place, return_inverse=True)[1], n + 1
    # Of the rows of which a gap is 0 bins are wider, and the digit 0 tells them from all others.
    return np.unique(place, return_inverse=True)[1], side


def refine(
    gaps: Float[ndarray, "n d"],
    order: Int[ndarray, "n"],
    *,
    scales: Sequence[float] | None = None,
    bins: int = BINS,
    edge_bins: int = EDGE_BINS,
    groups: Int[ndarray, "n"] | None = None,
) -> Bool[ndarray, "n"]:
    """Which rows are kept so that mirrored cells hold equally many; rows first in `order` are preferred.

    With two scores, 50 and 10 bins and scales of 1 this is the rule of SugarCrepe's code; that code fails
    where a gap is 1 or -1.
    """
    cell, side = cells(gaps, scales=scales, bins=bins, edge_bins=edge_bins, groups=groups)
    n = len(cell)
    order = np.asarray(order)
    if order.shape != (n,) or (n and (np.bincount(order, minlength=n) != 1).any()):
        raise InputError("the random choice is no permutation of the rows", given=f"shape {order.shape}")
    several = int(cell.max(initial=-1)) + 1
    # Cell and side as one number: 2 * cell of the one side, 2 * cell + 1 of the other.
    number = 2 * cell + (side < 0)
    counts = np.bincount(number, minlength=2 * several)
    least = counts.reshape(-1, 2).min(axis=1)
    by_cell = order[np.argsort(number[order], kind="stable")]
    starts = np.cumsum(counts) - counts
    rank = np.arange(n) - np.repeat(starts, counts)
    mask = np.empty(n, dtype=bool)
    mask[by_cell] = rank < np.repeat(np.repeat(least, 2), counts)
    mask[side == 0] = True
    return mask


def largest_gaps(gaps: Float[ndarray, "n d"]) -> tuple[float, ...]:
    """A scale for each score: 1 where all its gaps are within [-1, 1], else the largest without its sign."""
    return tuple(max(1.0, float(np.abs(column).max(initial=0))) for column in np.asarray(gaps).T)


def accuracies(gaps: Float[ndarray, "*rows"]) -> Float[ndarray, "*rows"]:
    """1 where a gap is above 0, 1/2 where it is 0, else 0."""
    return (1 + np.sign(np.asarray(gaps, dtype=np.float64))) / 2


@dataclass(frozen=True)
class FilterRound:
    """A round of `filter_predictable`: rows before it, the scorer's accuracy with its interval, and drops."""

    rows: int
    accuracy: float
    low: float
    high: float
    dropped: int


def filter_predictable(
    n: int,
    answer: Callable[[NDArray[np.int64]], Float[ndarray, "rows"]],
    interval: Callable[[NDArray[np.int64], Float[ndarray, "rows"]], tuple[float, float]],
    order: Int[ndarray, "n"],
    *,
    share: float = 0.05,
    least: int = 50,
    rounds: int = 100,
) -> tuple[Bool[ndarray, "n"], tuple[FilterRound, ...]]:
    """Which of `n` rows are kept so that a blind scorer's interval reaches chance, and each round.

    `answer` gives the gaps of rows by position, `interval` the ends of its accuracy. While it lies above 1/2,
    the rows answered right with the largest gaps go (ties by `order`): at most `share` of what is left, and
    no more than bring the accuracy to 1/2. At least `least` rows are left.
    """
    if not 0 < share < 1:
        raise InputError("share of rows dropped in a round", given=share, allowed="between 0 and 1")
    if rounds < 1:
        raise InputError("number of rounds", given=rounds, allowed="1 or more")
    place = np.empty(n, dtype=np.int64)
    place[order] = np.arange(n)
    rows, done = np.arange(n), list[FilterRound]()
    while len(rows):
        gaps = np.asarray(answer(rows), dtype=np.float64)
        if gaps.shape != rows.shape or not np.isfinite(gaps).all():
            raise ScoreError("the blind scorer gave no finite number for some row")
        right = accuracies(gaps)
        accuracy = float(right.mean())
        low, high = interval(rows, gaps)
        # Dropping r of R rights of n rows leaves (R - r) / (n - r), which is 1/2 at r = 2 R - n.
        surplus = round(2 * right.sum() - len(rows))
        most = min(max(1, int(share * len(rows))), surplus, len(rows) - least)
        if low <= 0.5 or most < 1 or len(done) == rounds:
            done.append(FilterRound(len(rows), accuracy, low, high, 0))
            break
        away = np.lexsort((place[rows], -gaps))[:most]
        away = away[gaps[away] > 0]
        done.append(FilterRound(len(rows), accuracy, low, high, len(away)))
        rows = np.delete(rows, away)
    mask = np.zeros(n, dtype=bool)
    mask[rows] = True
    return mask, tuple(done)
