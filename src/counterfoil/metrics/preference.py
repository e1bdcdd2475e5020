"""Measures of a preference: of two candidates, does the one that people preferred score higher?

`scores[q, c]` is the score of candidate c of question q, or `scores[q, c, d]` where the metric was asked once
per draw of references; `label[q]` is the preferred candidate. A value per question is the mean over draws.
"""

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float, Int, Shaped
from numpy import ndarray
from numpy.typing import NDArray

from counterfoil.metrics.measure import Measure, by_name
from counterfoil.metrics.ties import Ties, all_above


def accuracy(
    scores: Shaped[ndarray, "n 2 *draws"], label: Int[ndarray, "n"], *, ties: Ties = Ties.STRICT
) -> Float[ndarray, "n"]:
    """How often the preferred candidate scores higher, in [0, 1] per question.

    A tie is wrong under `strict`, worth a half under `half`, right under `optimistic`. Source: PAC-S section
    4.3 (Pascal-50S: five draws of references, averaged) and 4.4 (FOIL: strict).

    >>> accuracy(np.array([[0.3, 0.1], [0.2, 0.2], [0.1, 0.5]]), np.array([0, 0, 1]))
    array([1., 0., 1.])
    >>> accuracy(np.array([[[0.3, 0.3], [0.1, 0.3]]]), np.array([0]))  # a win and a tie
    array([0.5])
    """
    preferred, other = _sides(scores, label)
    draws = [all_above(a[:, None], b[:, None], ties=ties) for a, b in zip(preferred.T, other.T, strict=True)]
    mean: NDArray[np.float64] = np.mean(draws, axis=0)
    return mean


#: The measures by name, in the order of reports.
MEASURES: Mapping[str, Measure] = by_name(
    Measure(
        "accuracy",
        "preference",
        "Accuracy",
        "the preferred caption scores above the other",
        "1/2",
        accuracy,
        main=True,
    ),
    Measure(
        "accuracy_macro",
        "preference",
        "Accuracy (macro)",
        "accuracy averaged over groups, each counting the same",
        "1/2",
        macro_of="accuracy",
    ),
)


def tied(scores: Shaped[ndarray, "n 2 *draws"], label: Int[ndarray, "n"]) -> Float[ndarray, "n"]:
    """The share of draws in which both candidates score the same, per question.

    >>> tied(np.array([[0.3, 0.1], [0.2, 0.2]]), np.array([0, 0]))
    array([0., 1.])
    """
    preferred, other = _sides(scores, label)
    share: NDArray[np.float64] = (preferred == other).mean(axis=1)
    return share


def ties_to_second(scores: Shaped[ndarray, "n 2 *draws"], label: Int[ndarray, "n"]) -> Float[ndarray, "n"]:
    """`accuracy` where equal scores count as a vote for the second candidate, as in Polos' Pascal-50S.

    >>> ties_to_second(np.array([[0.2, 0.2], [0.2, 0.2]]), np.array([0, 1]))
    array([0., 1.])
    """
    both = scores.reshape(*scores.shape[:2], -1)
    second = both[:, 1] >= both[:, 0]
    mean: NDArray[np.float64] = (second == (label == 1)[:, None]).mean(axis=1)
    return mean


def _sides(
    scores: NDArray[np.float64], label: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Scores of the preferred and of the other candidate, each (n, draws)."""
    both = scores.reshape(*scores.shape[:2], -1)
    rows = np.arange(len(both))
    return both[rows, label], both[rows, 1 - label]
