"""Pairwise accuracy of scores against ratings, where calling a tie a tie is right.

Of two rated items a metric may say that one is better, or that both are alike, and people may too; the
measure is the share of all pairs on which they say the same. Scores hardly ever tie, so metrics are allowed a
threshold: differences up to it are ties. The threshold that makes the most pairs agree is fitted on the pairs
that are then counted, which flatters every metric, so the measure without it stands beside it.

Source: D. Deutsch, G. Foster, M. Freitag, Ties Matter: Meta-Evaluating Modern Metrics with Pairwise Accuracy
and Tie Calibration, 2023 (pairwise accuracy with ties, and tie calibration).
"""

from collections.abc import Iterator, Mapping

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from numpy.typing import NDArray

from counterfoil.errors import InputError
from counterfoil.metrics.measure import Measure, by_name

#: Pairs that are looked at together.
_BLOCK = 1 << 23


def agreement(
    scores: Float[ndarray, "n"], ratings: Float[ndarray, "n"], *, tie: float = 0.0
) -> Float[ndarray, "n"]:
    """For every item the share of the others with which scores and ratings say the same.

    The mean over items is the measure. Scores that differ by `tie` or less are alike. Raises `InputError` for
    fewer than two items.

    >>> agreement(np.array([0.1, 0.2, 0.9]), np.array([1.0, 1.0, 2.0]), tie=0.1)
    array([1., 1., 1.])
    """
    _check(scores)
    shares = np.empty(len(scores))
    for rows, apart, rated in _pairs(scores, ratings):
        predicted = (apart > tie).astype(np.int8) - (apart < -tie)
        # An item agrees with itself.
        shares[rows] = np.count_nonzero(predicted == rated, axis=1) - 1
    return shares / (len(scores) - 1)


def pairwise_accuracy(
    scores: Float[ndarray, "n"], ratings: Float[ndarray, "n"], *, tie: float = 0.0
) -> float:
    """The share of pairs of items on which scores and ratings say the same, in [0, 1].

    Both that one is better, and the same one, or both that they are alike: scores where they differ by `tie`
    or less, ratings where they are equal. Raises `InputError` for fewer than two items.

    >>> pairwise_accuracy(np.array([0.1, 0.2, 0.9]), np.array([1.0, 1.0, 2.0]))
    0.6666666666666666
    """
    return float(agreement(scores, ratings, tie=tie).mean())


def fitted_tie(scores: Float[ndarray, "n"], ratings: Float[ndarray, "n"]) -> float:
    """The difference up to which scores must be alike for the most pairs to agree; of several the smallest.

    It is 0 or the difference of two scores whose ratings are equal. Raises `InputError` for fewer than two
    items.

    >>> fitted_tie(np.array([0.0, 0.25, 2.0]), np.array([1.0, 1.0, 2.0]))
    0.25
    """
    _check(scores)
    alike = []
    for level in np.unique(ratings):
        own = scores[ratings == level]
        alike.append(np.abs(own[:, None] - own)[np.triu_indices(len(own), 1)])
    # At 0 equal scores are alike, whether there are any or not.
    candidates, counts = np.unique(np.concatenate([np.zeros(1), *alike]), return_counts=True)
    gained = np.cumsum(counts)
    # Pairs that scores order as people do are lost once they count as ties.
    for _, apart, rated in _pairs(scores, ratings):
        ordered = np.sort(apart[(rated > 0) & (apart > 0)])
        gained -= np.searchsorted(ordered, candidates, side="right")
    return float(candidates[np.argmax(gained)])


def tied_ratings(ratings: Float[ndarray, "n"]) -> float:
    """The share of pairs of items whose ratings are equal.

    >>> round(tied_ratings(np.array([1.0, 1.0, 2.0])), 4)
    0.3333
    """
    counts = np.unique(ratings, return_counts=True)[1].astype(np.float64)
    return float((counts * (counts - 1)).sum() / (len(ratings) * (len(ratings) - 1)))


def _pairs(
    scores: NDArray[np.float64], ratings: NDArray[np.float64]
) -> Iterator[tuple[slice, NDArray[np.float64], NDArray[np.int8]]]:
    """Some rows at a time: how far their scores are above those of all items, and the sign of ratings."""
    step = max(1, _BLOCK // len(scores))
    for start in range(0, len(scores), step):
        rows = slice(start, start + step)
        above, below = ratings[rows, None] > ratings, ratings[rows, None] < ratings
        yield rows, scores[rows, None] - scores, above.astype(np.int8) - below


def _check(scores: NDArray[np.float64]) -> None:
    if len(scores) < 2:
        raise InputError("too few items for pairs", given=len(scores), allowed="2 or more")


#: The measures by name; reported where a benchmark's card names them.
MEASURES: Mapping[str, Measure] = by_name(
    Measure(
        "pairwise_accuracy",
        "rated",
        "Pairwise accuracy",
        "of all pairs, on how many scores and ratings say the same: which is better, or that both are alike",
        "(1-t)/2",
        of_all=pairwise_accuracy,
    ),
    Measure(
        "pairwise_accuracy_fitted",
        "rated",
        "Pairwise accuracy, fitted ties",
        "the same, where scores that differ by a threshold or less are alike; the threshold is fitted on the "
        "same pairs, which flatters",
        "none",
        of_all=lambda scores, ratings: pairwise_accuracy(scores, ratings, tie=fitted_tie(scores, ratings)),
    ),
)
