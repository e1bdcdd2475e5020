"""Plausible matches: right answers by rule, where two pictures show nearly the same classes of object.

Every image has a code, one bit per class; a caption has that of its image. Two items match where their codes
differ in at most `threshold` places: too many pairs to list, so blocks of scores are compared with blocks of
matches.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int, Real
from numpy import ndarray

from counterfoil.errors import InputError, ScoreError
from counterfoil.metrics.measures import Measure, by_name


@dataclass(frozen=True, eq=False)
class Plausible:
    """Right answers by rule, at one or several thresholds; with `cap`, R is at most that.

    Codes have a row per query, or item of the gallery, and a column per class.
    """

    query_codes: Bool[ndarray, "queries classes"]
    item_codes: Bool[ndarray, "items classes"]
    thresholds: tuple[int, ...] = (0,)
    cap: int | None = None

    def distances(
        self, queries: Int[ndarray, "chosen"] | slice, items: Int[ndarray, "part"] | slice = slice(None)
    ) -> Int[ndarray, "chosen part"]:
        """In how many classes the codes of some queries and some items differ (the Hamming distance).

        >>> codes = np.array([[True, False], [True, True]])
        >>> Plausible(codes, codes).distances(slice(0, 1)).tolist()
        [[0, 1]]
        """
        left = self.query_codes[queries].astype(np.float32)
        right = self.item_codes[items].astype(np.float32)
        # |a - b| = a + b - 2ab for bits; small whole numbers are exact in float32.
        return (left.sum(1)[:, None] + right.sum(1)[None, :] - 2 * left @ right.T).astype(np.int16)

    def take(self, queries: Int[ndarray, "chosen"]) -> "Plausible":
        return Plausible(self.query_codes[queries], self.item_codes, self.thresholds, self.cap)


def precision_at_r(
    scores: Real[ndarray, "queries gallery"], right: Bool[ndarray, "queries gallery"], *, cap: int | None
) -> Float[ndarray, "3 queries"]:
    """R-Precision of each query from a block of scores and a block of right and wrong.

    The share of right items among the first R, R being the number of right ones (at most `cap`). Rows of the
    result are the tie policies strict, half and optimistic; NaN where nothing is right. Raises `ScoreError`
    for NaN and for blocks of different shapes. Source: ECCV Caption section 2.1, E.3, and section 5.1 for the
    cap.

    >>> scores = np.array([[3.0, 2.0, 2.0, 1.0]])
    >>> precision_at_r(scores, np.array([[True, True, False, False]]), cap=None).tolist()
    [[0.5], [0.75], [1.0]]
    """
    if scores.shape != right.shape:
        problem = "scores do not fit the right answers"
        raise ScoreError(problem, given=str(scores.shape), allowed=str(right.shape))
    if cap is not None and cap < 1:
        raise InputError("R-Precision needs places to look at", given=cap, allowed="a cap of 1 or more")
    if scores.size and scores.dtype.kind == "f" and np.isnan(scores.min()):
        raise ScoreError("a score is not a number", given="NaN")
    wanted = right.sum(axis=1)
    positions = wanted if cap is None else np.minimum(wanted, cap)
    gallery = scores.shape[1]
    values = np.full((3, len(scores)), np.nan)
    for row in np.flatnonzero(positions):
        r, line, positive = int(positions[row]), scores[row], right[row]
        last = np.partition(line, gallery - r)[gallery - r]
        over, tied = line > last, line == last
        sure = int(np.count_nonzero(over & positive))
        room = r - int(np.count_nonzero(over))
        p = int(np.count_nonzero(tied & positive))
        w = int(np.count_nonzero(tied)) - p
        values[:, row] = sure + max(0, room - w), sure + room * p / (p + w), sure + min(room, p)
        values[:, row] /= r
    return values


def pmrp(shares: Float[ndarray, "thresholds queries"]) -> Float[ndarray, "queries"]:
    """Plausible-Match R-Precision: the mean over thresholds of `precision_at_r` under one tie policy.

    In [0, 1]; NaN where nothing is right at some threshold. Source: ECCV Caption section 2.1.

    >>> pmrp(np.array([[0.5, 1.0], [1.0, 1.0]]))
    array([0.75, 1.  ])
    """
    return shares.mean(axis=0)


_PMRP = "R-Precision where all that shows nearly the same classes of object is right"
#: The measures by name.
MEASURES: Mapping[str, Measure] = by_name(
    Measure("pmrp", "gallery", "PMRP", _PMRP, "R/n", pmrp, needs="classes")
)
