"""Tie policies, and what each counts in choices and in rankings.

Whether a tie between a correct and a wrong item counts as right can be worth 100 points: two widely used
harnesses give a constant model 100 % on SugarCrepe, because argmax breaks ties towards the correct caption.

* `strict` -- a tie is wrong (the default, and what BiVLC, Winoground and SugarCrepe do)
* `half` -- the expected value over random orders of the tied scores
* `optimistic` -- a tie is right

In rankings `strict` puts the wrong items of a tie before the right ones and lesser gains before greater,
`optimistic` behind. With `a` items above the tie, `p` positives and `w` wrong ones in it, n = p + w, `half`
is:

* a positive of the tie stands at each of the places a + 1 .. a + n with chance 1 / n (sums over positives:
  R-Precision, nDCG, the graded ones);
* its first j places hold no positive with chance C(w, j) / C(n, j): recall and the reciprocal rank;
* place a + j holds a positive with chance p / n, and then on average (j - 1)(p - 1) / (n - 1) of the tie's
  other positives stand before it: mAP@R.
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy import ndarray

from counterfoil.metrics.ranks import Ranks, runs


class Ties(StrEnum):
    """How a tie between a correct and a wrong item is counted."""

    STRICT = "strict"
    HALF = "half"
    OPTIMISTIC = "optimistic"


@dataclass(frozen=True)
class TiedItems:
    """Qrels of one query and score: items `above`, positives `before` them, `right` and `wrong` in it."""

    query: ndarray
    above: ndarray
    before: ndarray
    right: ndarray
    wrong: ndarray
    gains: ndarray

    @property
    def size(self) -> ndarray:
        return self.right + self.wrong


def tied_items(ranks: Ranks, chosen: ndarray | None = None) -> TiedItems:
    """One entry per query and score (of the chosen positives), `gains` being the sum."""
    keep = np.ones(len(ranks.query), dtype=bool) if chosen is None else chosen
    query, before = ranks.query[keep], ranks.before[keep]
    group, size = runs(query, before)
    first = np.cumsum(size) - size
    gains = np.bincount(group, weights=ranks.gains[keep], minlength=len(size))
    above = (ranks.wrong[keep] + before)[first]
    return TiedItems(query[first], above, before[first], size, ranks.tied[keep][first], gains)


def positions(ranks: Ranks, ties: Ties) -> tuple[ndarray, ndarray]:
    """Place of each positive from 1 on, by query and place, and the gain of what stands there."""
    worst_first = 1 if ties == Ties.STRICT else -1
    order = np.lexsort((worst_first * ranks.gains, ranks.before, ranks.query))
    nth = np.arange(len(order)) - np.searchsorted(ranks.query, ranks.query) + 1
    behind = ranks.tied if ties == Ties.STRICT else 0
    return ranks.wrong + behind + nth, ranks.gains[order]


def chance_within(ranks: Ranks, slots: ndarray, ties: Ties) -> tuple[ndarray, ndarray]:
    """The chance that each positive is among the first `places`, and the gains in the same order."""
    if ties != Ties.HALF:
        position, gains = positions(ranks, ties)
        return (position <= slots).astype(np.float64), gains
    group, size = runs(ranks.query, ranks.before)
    above = ranks.wrong + ranks.before
    return np.clip((slots - above) / (size[group] + ranks.tied), 0.0, 1.0), ranks.gains
