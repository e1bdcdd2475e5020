"""Evaluation of quads, choices and preferences: every question counts the same."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from counterfoil.data.benchmark import Benchmark
from counterfoil.evaluation import pair_tables
from counterfoil.evaluation.forms.base import FormEvaluation, PairedRuns, Tested
from counterfoil.evaluation.judged import tables as judged_tables
from counterfoil.evaluation.question_means import IntervalMethod, dependence
from counterfoil.metrics import choice, quad
from counterfoil.stats.estimates import difference_bootstrap, t_over_folds
from counterfoil.stats.tests import mcnemar, paired_permutation


class ContrastEvaluation(FormEvaluation):
    """All contrasts."""

    tables: ClassVar[Any] = pair_tables

    def test(self, paired: PairedRuns) -> Tested:
        """Paired permutations of questions, and exact McNemar tests where these share nothing."""
        values = np.stack([run.items[measure] for run in paired.runs for measure in paired.main], axis=1)
        pairs = paired.columns
        sharing = paired.sharing
        folds = paired.interval is IntervalMethod.FOLDS
        shared = dependence(sharing, IntervalMethod.AUTO if folds else paired.interval)
        p = paired_permutation(values, shared, pairs, seed=paired.seed, draws=paired.permutations)
        if folds:
            gaps = (values[:, a] - values[:, b] for a, b in pairs)
            low, high = np.array([t_over_folds(gap, least=-1.0) for gap in gaps]).T
        else:
            low, high = difference_bootstrap(values, shared, pairs, seed=paired.seed, draws=paired.draws)
        means = values.mean(axis=0)
        value = np.array([means[a] - means[b] for a, b in pairs])
        return Tested(
            value,
            low,
            high,
            p,
            [mcnemar(values[:, a], values[:, b]) if sharing.independent else None for a, b in pairs],
        )


class QuadEvaluation(ContrastEvaluation):
    """Quads."""

    def margins(self, benchmark: Benchmark, scores: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        """Those of every direction and of groups."""
        return dict(quad.margins(scores))


class ChoiceEvaluation(ContrastEvaluation):
    """Choices."""

    def margins(self, benchmark: Benchmark, scores: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        """The least right score less the highest wrong one."""
        return {"accuracy": choice.margin(scores, correct=benchmark.choices.correct)}


class PreferenceEvaluation(ContrastEvaluation):
    """Preferences between two captions."""

    layout: ClassVar[int] = 3
    tables: ClassVar[Any] = judged_tables

    def margins(self, benchmark: Benchmark, scores: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        """The score of the preferred caption less that of the other, the mean over draws."""
        values = scores.reshape(len(benchmark), 2, -1).mean(axis=2)
        rows, label = np.arange(len(benchmark)), benchmark.preferences.label
        return {"accuracy": values[rows, label] - values[rows, 1 - label]}

    def conflict(self, first: Benchmark, other: Benchmark) -> str:
        """Whether other captions are preferred."""
        same = np.array_equal(first.preferences.label, other.preferences.label)
        return "" if same else "other ratings or votes"
