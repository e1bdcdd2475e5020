"""Evaluation of captions with human ratings: correlations of all questions together."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from counterfoil.data.benchmark import Benchmark
from counterfoil.data.scores import Answers, Scores
from counterfoil.evaluation.forms.base import (
    EvaluationSettings,
    FormEvaluation,
    PairedRuns,
    Tested,
    refuse_rankings,
)
from counterfoil.evaluation.judged import differences, rated
from counterfoil.evaluation.question_means import IntervalMethod
from counterfoil.evaluation.result import Result, Run
from counterfoil.metrics.ties import Ties


class RatedEvaluation(FormEvaluation):
    """Ratings."""

    values_per_item: ClassVar[bool] = False
    captions_drawn: ClassVar[bool] = False

    def main_measures(self, benchmark: Benchmark) -> tuple[str, ...]:
        return rated.main_measures(benchmark)

    def chance(self, benchmark: Benchmark) -> dict[str, float]:
        """0: scores that have nothing to do with the ratings."""
        return {measure.name: float(measure.expected or 0) for measure in self.measures(benchmark)}

    def check(self, benchmark: Benchmark, answers: Answers, *, where: str) -> None:
        refuse_rankings(benchmark, answers, where=where)
        rated.check(benchmark, answers, where=where)

    def per_item(
        self, benchmark: Benchmark, answers: Answers, *, ties: Ties, measures: Sequence[str] | None = None
    ) -> dict[str, NDArray[np.float64]]:
        return {}

    def score_columns(self, shape: tuple[int, ...]) -> list[str]:
        return ["score"]

    def item_columns(self, benchmark: Benchmark) -> dict[str, pa.Array]:
        """The candidate, the image, and a column per rater, empty where there is no rating."""
        questions = benchmark.rated
        ratings = {
            f"r{rater}": pa.array(given, pa.float64(), mask=np.isnan(given))
            for rater, given in enumerate(questions.ratings.T)
        }
        return {
            "candidate": pa.array([benchmark.captions[i].text for i in questions.captions], pa.string()),
            "image": pa.array([benchmark.images[i].id for i in questions.images], pa.string()),
            **ratings,
        }

    def evaluate(self, benchmark: Benchmark, answers: Answers, settings: EvaluationSettings) -> Result:
        if settings.interval in (IntervalMethod.WILSON, IntervalMethod.FOLDS):
            rated.refuse(settings.interval, benchmark)
        return rated.evaluate_rated(benchmark, Scores(answers.scores), **vars(settings))

    def test(self, paired: PairedRuns) -> Tested:
        """Permutations that swap scores, since a correlation has no values of questions to swap."""
        if paired.interval in (IntervalMethod.WILSON, IntervalMethod.FOLDS):
            rated.refuse(paired.interval, paired.runs[0].benchmark)
        found = differences.differences(
            paired.runs,
            rated.shared_by(paired.sharing, paired.interval),
            paired.of_scorers,
            paired.main,
            draws=paired.draws,
            permutations=paired.permutations,
            seed=paired.seed,
        )
        value, low, high, p = (array.reshape(-1) for array in found)
        return Tested(value, low, high, p, [None] * len(value))

    def conflict(self, first: Benchmark, other: Benchmark) -> str:
        """Whether other ratings were given, or they are measured otherwise."""
        ours, theirs = first.rated, other.rated
        alike = (ours.raters, ours.decimals) == (theirs.raters, theirs.decimals)
        same = alike and np.array_equal(ours.ratings, theirs.ratings, equal_nan=True)
        return "" if same else "other ratings or votes"

    def has(self, run: Run, measure: str) -> bool:
        """Whether a correlation is defined."""
        return measure in run.result.measures
