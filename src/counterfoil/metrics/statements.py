"""Measures of statements that are true or false of an image: AUROC, and accuracy at a threshold.

A statement is answered "true" where its score is above a threshold; a score that equals it is a tie: `strict`
counts it as wrong, `half` as one half and `optimistic` as right. AUROC counts a tie as one half by
definition.

A fitted threshold has the highest balanced accuracy over *other* questions (another split, or folds of
images): fitted on the questions that it is measured on, it would flatter every model.

Sources: J. A. Hanley, B. J. McNeil, The meaning and use of the area under a receiver operating characteristic
(ROC) curve, 1982; E. R. DeLong, D. M. DeLong, D. L. Clarke-Pearson, Comparing the areas under two or more
correlated receiver operating characteristic curves, 1988 (placements and their influence).
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray
from numpy.typing import NDArray

from counterfoil.errors import InputError
from counterfoil.metrics.measures import Measure, by_name
from counterfoil.metrics.ties import Ties

#: A number of each statement, and whether it is true.
Scores = Float[ndarray, "n"]
Truth = Bool[ndarray, "n"]

#: The threshold of models that give probabilities.
HALF = 0.5
#: What a tie is worth.
_WORTH = {Ties.STRICT: 0.0, Ties.HALF: 0.5, Ties.OPTIMISTIC: 1.0}


def placements(
    scores: Float[ndarray, "n"], truth: Bool[ndarray, "n"], weights: Float[ndarray, "n"] | None = None
) -> Float[ndarray, "n"]:
    """The share of the statements of the other truth that each statement is on the right side of, in [0, 1].

    A tie is one half; `weights` say what each counts. NaN where there is no statement of the other truth.

    >>> placements(np.array([0.9, 0.2, 0.2, 0.1]), np.array([True, True, False, False]))
    array([1.  , 0.75, 0.75, 1.  ])
    """
    shares, weights = np.full(len(scores), np.nan), np.ones(len(scores)) if weights is None else weights
    for side, sign in ((truth, 1.0), (~truth, -1.0)):
        order = np.argsort(sign * scores[~side], kind="stable")
        others = (sign * scores[~side])[order]
        if len(others):
            mass = np.append(0.0, np.cumsum(weights[~side][order]))
            below, upto = (np.searchsorted(others, sign * scores[side], side=i) for i in ("left", "right"))
            shares[side] = (mass[below] + mass[upto]) / 2 / mass[-1]
    return shares


def auroc(scores: Float[ndarray, "n"], truth: Bool[ndarray, "n"]) -> float:
    """The share of pairs of a true and a false statement of which the true one scores higher, in [0, 1].

    A tie is one half, whatever the policy. Raises `InputError` where all statements are true, or all false.

    >>> auroc(np.array([0.9, 0.2, 0.2]), np.array([True, True, False]))
    0.75
    """
    _check_both(truth)
    return float(placements(scores, truth)[truth].mean())


def correct_at(
    scores: Scores, truth: Truth, thresholds: Scores | float = HALF, *, ties: Ties = Ties.STRICT
) -> Float[ndarray, "n"]:
    """1 where a statement is on the right side of its threshold, 0 where not; at it what a tie is worth.

    >>> correct_at(np.array([0.9, 0.5, 0.2]), np.array([True, True, True]), ties=Ties.HALF)
    array([1. , 0.5, 0. ])
    """
    side = np.where(truth, 1.0, -1.0) * np.sign(scores - thresholds)
    return np.where(side == 0, _WORTH[Ties(ties)], side > 0)


def threshold(scores: Float[ndarray, "n"], truth: Bool[ndarray, "n"]) -> float:
    """The threshold of the highest balanced accuracy: the middle between two neighbouring scores.

    Of several the one in the widest gap, then the lowest; where all scores are equal that score. Raises
    `InputError` where all statements are true, or all false.

    >>> threshold(np.array([0.1, 0.2, 0.6, 0.7]), np.array([False, False, True, True]))
    0.4
    """
    _check_both(truth)
    levels, codes = np.unique(scores, return_inverse=True)
    if len(levels) == 1:
        return float(levels[0])
    codes = codes.reshape(-1)
    false_upto, true_upto = (
        np.cumsum(np.bincount(codes[side], minlength=len(levels)))[:-1] for side in (~truth, truth)
    )
    n_true, n_false = int(truth.sum()), int((~truth).sum())
    # Whole numbers, so that equal balanced accuracies are equal.
    worth = false_upto * n_true + (n_true - true_upto) * n_false
    gaps = np.where(worth == worth.max(), np.diff(levels), -1.0)
    best = int(np.argmax(gaps))
    return float(levels[best] + gaps[best] / 2)


def cross_fitted(
    scores: Float[ndarray, "n"], truth: Bool[ndarray, "n"], folds: Int[ndarray, "n"]
) -> Float[ndarray, "n"]:
    """For every statement the threshold that the statements of all other folds choose.

    Raises `InputError` for one fold, and where the others are all true, or all false.

    >>> cross_fitted(np.array([0.1, 0.6, 0.3, 0.8]), np.array([False, True] * 2), np.array([0, 0, 1, 1]))
    array([0.55, 0.55, 0.35, 0.35])
    """
    numbers = np.unique(folds)
    if len(numbers) < 2:
        problem = "no other fold to choose a threshold on"
        raise InputError(problem, given=f"{len(numbers)}", allowed="2 or more")
    thresholds = np.empty(len(scores))
    for fold in numbers:
        inside = folds == fold
        thresholds[inside] = threshold(scores[~inside], truth[~inside])
    return thresholds


def accuracy(
    scores: Scores, truth: Truth, thresholds: Scores | float = HALF, *, ties: Ties = Ties.STRICT
) -> float:
    """The share of statements on the right side of their threshold.

    >>> accuracy(np.array([0.9, 0.8, 0.2, 0.7]), np.array([True, True, True, False]))
    0.5
    """
    return float(correct_at(scores, truth, thresholds, ties=ties).mean())


def balanced_accuracy(
    scores: Scores, truth: Truth, thresholds: Scores | float = HALF, *, ties: Ties = Ties.STRICT
) -> float:
    """The mean of the accuracies on true and on false statements; `InputError` without one of either.

    >>> round(balanced_accuracy(np.array([0.9, 0.8, 0.2, 0.7]), np.array([True, True, True, False])), 4)
    0.3333
    """
    _check_both(truth)
    right = correct_at(scores, truth, thresholds, ties=ties)
    return float((right[truth].mean() + right[~truth].mean()) / 2)


def _check_both(truth: NDArray[np.bool_]) -> None:
    if truth.all() or not truth.any():
        given = f"{int(truth.sum())} true and {int((~truth).sum())} false"
        raise InputError("not both true and false statements", given=given, allowed="at least one of each")


_AUROC = "of pairs of a true and a false statement, how many have the true one score higher (a tie is a half)"
_RIGHT = "the statement is on the right side of"
_BOTH = "the mean of the accuracies on true and on false statements, at"
_ACCURACY = f"{_RIGHT} the threshold 0.5, of models that give probabilities"
_BALANCED = f"{_BOTH} the threshold 0.5"
_FITTED = f"{_RIGHT} a threshold that other questions chose"
_FITTED_BALANCED = f"{_BOTH} a threshold as for accuracy, fitted"

#: The measures by name, in the order of reports.
MEASURES: Mapping[str, Measure] = by_name(
    *(
        Measure(name, "statement", label, meaning, "1/2", of_all=of_all, main=main)
        for name, label, of_all, main, meaning in (
            ("auroc", "AUROC", auroc, True, _AUROC),
            ("accuracy", "Accuracy", accuracy, True, _ACCURACY),
            ("balanced_accuracy", "Balanced accuracy", balanced_accuracy, False, _BALANCED),
            ("fitted_accuracy", "Accuracy, fitted", accuracy, False, _FITTED),
            ("fitted_balanced", "Balanced, fitted", balanced_accuracy, False, _FITTED_BALANCED),
        )
    )
)


@dataclass(frozen=True, eq=False)
class WeightedStatements:
    """Statements made ready for samples of clusters: the five measures under weights of `n_clusters` of them.

    `right` is (n, 2): right at 0.5 and at the fitted threshold; NaN in a column that is not defined. `scores`
    is None where only right and wrong are known.
    """

    scores: Float[ndarray, "n"] | None
    truth: Bool[ndarray, "n"]
    right: Float[ndarray, "n 2"]
    clusters: Int[ndarray, "n"]
    n_clusters: int

    def measures(self, weights: Float[ndarray, "draws c"]) -> Float[ndarray, "draws 5"]:
        """The measures where each cluster counts as often as its weight; NaN where one is not defined."""
        drawn = weights.astype(np.float64)[:, self.clusters]
        weighed = drawn @ np.hstack(
            [self.right * self.truth[:, None], self.right * ~self.truth[:, None], _two(self.truth)]
        )
        of_true, of_false, sizes = weighed[:, :2], weighed[:, 2:4], weighed[:, 4:]
        total = sizes.sum(axis=1, keepdims=True)
        both = (sizes > 0).all(axis=1, keepdims=True)
        # How much the pairs that are right weigh together.
        pairs = np.full(len(drawn), np.nan)
        if self.scores is not None:
            order = np.argsort(self.scores, kind="stable")
            ordered, true = self.scores[order], self.truth[order]
            upto = np.zeros((len(drawn), len(order) + 1))
            np.cumsum(drawn[:, order] * ~true, axis=1, out=upto[:, 1:])
            low, high = (np.searchsorted(ordered, ordered[true], side=i) for i in ("left", "right"))
            points = (upto[:, low] + upto[:, high]) / 2
            pairs = (drawn[:, order][:, true] * points).sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            plain = (of_true + of_false) / total
            balanced = np.where(both, (of_true / sizes[:, :1] + of_false / sizes[:, 1:]) / 2, np.nan)
            area = np.where(both[:, 0], pairs / (sizes[:, 0] * sizes[:, 1]), np.nan)
        return np.stack([area, plain[:, 0], balanced[:, 0], plain[:, 1], balanced[:, 1]], axis=1)

    def values(self) -> Float[ndarray, "5"]:
        """The measures themselves: every cluster once."""
        return np.asarray(self.measures(np.ones((1, self.n_clusters)))[0])

    def influences(self) -> Float[ndarray, "n 5"]:
        """What each statement adds to the error of each measure, to first order; columns sum to 0."""
        n, sizes = len(self.truth), _two(self.truth).sum(axis=0)
        of_class = np.where(self.truth, sizes[0], sizes[1])[:, None]
        plain = (self.right - self.right.mean(axis=0)) / n
        balanced = self.right.copy()
        for side in (self.truth, ~self.truth):
            balanced[side] -= balanced[side].mean(axis=0) if side.any() else 0
        balanced = balanced / (2 * of_class) if sizes.all() else np.full((n, 2), np.nan)
        area = np.full(n, np.nan)
        if self.scores is not None and sizes.all():
            place = placements(self.scores, self.truth)
            area = (place - place[self.truth].mean()) / of_class[:, 0]
        return np.stack([area, plain[:, 0], balanced[:, 0], plain[:, 1], balanced[:, 1]], axis=1)


def _two(truth: NDArray[np.bool_]) -> NDArray[np.float64]:
    return np.stack([truth, ~truth], axis=1).astype(np.float64)
