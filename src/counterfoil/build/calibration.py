"""Calibration of a filter `score >= threshold` on rows whose truth was verified.

A threshold that was chosen on a sample looks better on it than it is, so `certified` tests thresholds in an
order that was fixed before any truth was seen, and intervals are reported on rows that the choice did not
see. Sources: Wilson, Probable inference, 1927; Kish, Survey sampling, 1965 (effective size); DeLong et al.,
Comparing areas under correlated ROC curves, 1988; Angelopoulos et al., Learn then test, 2021.
"""

from dataclasses import dataclass
from functools import cached_property
from math import ceil, log
from typing import Any

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray
from numpy.typing import NDArray
from scipy.special import ndtr
from scipy.stats import binom

from counterfoil.errors import InputError, ScoreError
from counterfoil.metrics.statements import placements
from counterfoil.stats.intervals import normal_quantile, wilson_score

#: Starts of `certified`, each with its part of the error that is allowed.
STARTS = 4


@dataclass(frozen=True)
class Share:
    """A share with its interval: NaN in [0, 1] where nothing counts, which is no knowledge at all."""

    value: float
    low: float
    high: float

    def to_json(self) -> list[float | None]:
        return [None if np.isnan(self.value) else self.value, self.low, self.high]


@dataclass(frozen=True, eq=False)
class Verified:
    """Rows of known truth; `weights` are one over the chance of each to be in the sample (None: equal)."""

    scores: NDArray[np.float64]
    right: NDArray[np.bool_]
    weights: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        if not np.isfinite(self.scores).all():
            raise ScoreError("a score of the verified sample is not finite")
        lengths = [len(self.scores), len(self.right)]
        lengths += [] if self.weights is None else [len(self.weights)]
        if len(set(lengths)) > 1 or not lengths[0]:
            raise InputError("a verified sample has a score and a truth for each row", given=lengths)
        if self.weights is not None and not (np.isfinite(self.weights) & (self.weights > 0)).all():
            raise InputError("a weight of the verified sample is not above 0")

    def __len__(self) -> int:
        return len(self.scores)

    @cached_property
    def weight(self) -> NDArray[np.float64]:
        return np.ones(len(self)) if self.weights is None else self.weights.astype(np.float64)

    def take(self, rows: NDArray[Any]) -> "Verified":
        weights = None if self.weights is None else self.weights[rows]
        return Verified(self.scores[rows], self.right[rows], weights)


@dataclass(frozen=True, eq=False)
class Quality:
    """A filter at a threshold: the share of the kept that is right, of the right that is kept, and of all."""

    threshold: float
    precision: Share
    recall: Share
    kept: Share

    def to_json(self) -> dict[str, Any]:
        shares = {name: getattr(self, name).to_json() for name in ("precision", "recall", "kept")}
        return {"threshold": self.threshold if np.isfinite(self.threshold) else None, **shares}


def share(chosen: Bool[ndarray, "n"], among: Bool[ndarray, "n"], weights: Float[ndarray, "n"]) -> Share:
    """The weighted share of `chosen` rows in those `among`, with Wilson's 95 % interval at effective size."""
    weights = weights[among]
    if not len(weights):
        return Share(float("nan"), 0.0, 1.0)
    inside = chosen[among]
    total, square = weights.sum(), weights**2
    value = float(weights[inside].sum() / total)
    kish = total**2 / square.sum()
    spread = ((1 - value) ** 2 * square[inside].sum() + value**2 * square[~inside].sum()) / total**2
    size = min(kish, value * (1 - value) / spread) if spread > 0 else kish
    return _with_interval(value, size)


def _with_interval(value: float, size: float) -> Share:
    low, high = wilson_score(np.array([value]), np.array([size]), np.array([normal_quantile(0.95)]))
    return Share(value, float(low[0]), float(high[0]))


def quality(sample: Verified, threshold: float) -> Quality:
    """Precision, recall and share kept of `score >= threshold`; precision is NaN where nothing is kept."""
    mask, every = sample.scores >= threshold, np.ones(len(sample), dtype=bool)
    return Quality(
        float(threshold),
        share(sample.right, mask, sample.weight),
        share(mask, sample.right, sample.weight),
        share(mask, every, sample.weight),
    )


def curve(sample: Verified, *, points: int = 25) -> tuple[Quality, ...]:
    """The precision-recall curve: the quality at up to so many scores, evenly spaced by rank."""
    levels = np.unique(sample.scores)
    at = np.unique(np.linspace(0, len(levels) - 1, min(points, len(levels))).round().astype(np.int64))
    return tuple(quality(sample, float(threshold)) for threshold in levels[at])


def auroc(sample: Verified) -> Share:
    """The area under the ROC curve, ties one half, its interval by DeLong's variance; NaN for one class."""
    if sample.right.all() or not sample.right.any():
        return Share(float("nan"), 0.0, 1.0)
    _, codes = np.unique(-sample.scores, return_inverse=True)
    codes = codes.reshape(-1)
    sides = []
    for side in (~sample.right, sample.right):
        mass = np.bincount(codes, weights=np.where(side, sample.weight, 0.0))
        sides.append(np.append(0.0, np.cumsum(mass) / mass.sum()))
    wrong, right = sides
    area = float((np.diff(wrong) * (right[1:] + right[:-1]) / 2).sum())
    places, variance = placements(sample.scores, sample.right, sample.weight), 0.0
    for side in (sample.right, ~sample.right):
        weights = sample.weight[side]
        n = len(weights)
        spread = (weights**2 * (places[side] - area) ** 2).sum() / weights.sum() ** 2
        variance += spread * n / max(n - 1, 1)
    fewest = float(min(sample.right.sum(), (~sample.right).sum()))
    size = area * (1 - area) / variance if variance > 0 else fewest
    return _with_interval(area, size)


def certified(sample: Verified, precision: float, *, confidence: float = 0.95) -> float | None:
    """The lowest threshold whose precision reaches the target with this confidence; None where none does."""
    for name, given in (("precision", precision), ("confidence", confidence)):
        if not 0 < given < 1:
            raise InputError(f"a {name} to reach", given=given, allowed="above 0 and below 1")
    order = np.argsort(-sample.scores, kind="stable")
    scores = sample.scores[order]
    # Rows of one score are kept together: only the last of them is a threshold.
    last = np.flatnonzero(np.append(scores[1:] != scores[:-1], True))
    error = (1 - confidence) / STARTS
    # At each threshold the chance of so many right rows, or more, were the precision just the target.
    ranked = sample.take(order)
    if ranked.weights is None:
        chances = binom.sf(np.cumsum(ranked.right)[last] - 1, last + 1, precision)
    else:
        mass = np.cumsum(ranked.weight)[last]
        inside = np.cumsum(ranked.weight * ranked.right)[last] / mass
        size = mass**2 / np.cumsum(ranked.weight**2)[last]
        chances = ndtr((precision - inside) * np.sqrt(size / (precision * (1 - precision))))
    # Fewer rows than these reach no significance even where all are right.
    fewest = ceil(log(error) / log(precision))
    lowest: int | None = None
    for start in np.geomspace(min(fewest, len(scores)), len(scores), STARTS + 1)[:-1].tolist():
        at = int(np.searchsorted(last, ceil(start) - 1))
        failed = np.flatnonzero(chances[at:] > error)
        passed = at + (int(failed[0]) if len(failed) else len(last) - at) - 1
        if passed >= at and (lowest is None or passed > lowest):
            lowest = passed
    return None if lowest is None else float(scores[last[lowest]])


def calibrate(
    sample: Verified,
    rng: np.random.Generator,
    *,
    threshold: float | None = None,
    precision: float | None = None,
    confidence: float = 0.95,
) -> tuple[float | None, dict[str, Any]]:
    """A threshold, given or the lowest that reaches `precision` (None: none does), and its quality and curve.

    A given threshold is reported on the whole sample. One to be chosen is chosen on half of it (`certified`)
    and reported on the other half, so that its intervals are not flattered by the choice.
    """
    if (threshold is None) == (precision is None):
        raise InputError(
            "a filter has a threshold or a precision to reach", given="both" if precision else "neither"
        )
    chosen_on, here = 0, sample
    if precision is not None:
        if len(sample) < 4:
            raise InputError(
                "too few verified rows to choose a threshold", given=len(sample), allowed="4 or more"
            )
        order, chosen_on = rng.permutation(len(sample)), len(sample) // 2
        threshold = certified(sample.take(np.sort(order[:chosen_on])), precision, confidence=confidence)
        here = sample.take(np.sort(order[chosen_on:]))
    measured = None if threshold is None else quality(here, threshold).to_json()
    return threshold, {
        "threshold": None if measured is None else measured["threshold"],
        "target_precision": precision,
        "confidence": confidence,
        "rows_chosen_on": chosen_on,
        "rows_reported_on": len(here),
        "wrong_before": share(~here.right, np.ones(len(here), dtype=bool), here.weight).to_json(),
        "area": auroc(here).to_json(),
        "quality": measured,
        "curve": [point.to_json() for point in curve(here)],
    }
