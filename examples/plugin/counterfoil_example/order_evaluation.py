"""The evaluation of ordered captions: two measures with a value per question, and what a tie is."""

from itertools import combinations

import numpy as np

from counterfoil.benchmarks import Benchmark
from counterfoil.evaluation.forms.contrast import ContrastEvaluation
from counterfoil.metrics.measures import Measure
from counterfoil.metrics.ties import Ties


def concordance(scores: np.ndarray, *, ties: Ties = Ties.STRICT) -> np.ndarray:
    """The share of pairs of captions whose truer one scores higher, per question, from scores (n, k)."""
    tied = {Ties.STRICT: 0.0, Ties.HALF: 0.5, Ties.OPTIMISTIC: 1.0}[Ties(ties)]
    pairs = [(scores[:, a], scores[:, b]) for a, b in combinations(range(scores.shape[1]), 2)]
    return np.mean([(truer > other) + tied * (truer == other) for truer, other in pairs], axis=0)


def in_order(scores: np.ndarray, *, ties: Ties = Ties.STRICT) -> np.ndarray:
    """1 where all captions score in their order, else 0; m tied neighbours are worth 1/m! under `half`."""
    gaps, tied = -np.diff(scores, axis=1), np.ones(len(scores))
    right = ((gaps > 0) if ties == Ties.STRICT else (gaps >= 0)).all(axis=1).astype(float)
    for gap in gaps.T if ties == Ties.HALF else ():
        tied = np.where(gap == 0, tied + 1, 1)
        right /= tied
    return right


CONCORDANCE = Measure(
    "concordance",
    form="order",
    label="Concordance",
    meaning="the share of pairs of captions whose truer one scores higher",
    chance="1/2",
    per_item=concordance,
    main=True,
)
ACCURACY = Measure(
    "accuracy",
    form="order",
    label="Accuracy",
    meaning="all captions score in the order of their truth",
    chance="1/k!",
    per_item=in_order,
    main=True,
)


class OrderEvaluation(ContrastEvaluation):
    """Intervals, chance, groups, tests and run folders are those of all contrasts."""

    def tied(self, benchmark: Benchmark, scores: np.ndarray) -> np.ndarray:
        """Whether two captions of a question score the same."""
        return (np.diff(np.sort(scores, axis=1), axis=1) == 0).any(axis=1)

    def margins(self, benchmark: Benchmark, scores: np.ndarray) -> dict[str, np.ndarray]:
        """The least gap between neighbours, positive where all are in order."""
        return {"accuracy": (-np.diff(scores, axis=1)).min(axis=1)}


EVALUATION = OrderEvaluation()
