"""Evaluation of statements that are true or false of an image: measures of all of them together.

Variances are those of the influences of questions, summed over what questions share: DeLong's for AUROC
(DeLong, DeLong, Clarke-Pearson 1988), Obuchowski's (1997) where questions share images. Intervals are
Wilson's for the effective number of questions. Thresholds that other questions chose are taken as given.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from jaxtyping import Bool, Float
from numpy import ndarray

from counterfoil.benchmarks.answers import Answers, Scores
from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.errors import InputError, ScoreError
from counterfoil.evaluation.evaluate import (
    EvaluationSettings,
    JointEvaluation,
    Prepared,
    outcome_ties,
    shared_by,
    tie_facts,
)
from counterfoil.evaluation.intervals import facts, of_spread
from counterfoil.evaluation.result import Estimate, Run
from counterfoil.metrics import statements
from counterfoil.metrics.agreement import fleiss_kappa
from counterfoil.metrics.statements import HALF, WeightedStatements
from counterfoil.metrics.ties import Ties
from counterfoil.stats import Reals, Truths, Wholes
from counterfoil.stats.intervals import Spread
from counterfoil.stats.two_way_clustering import linear_variance

#: The measures in the order of reports.
MEASURES = tuple(statements.MEASURES)
#: Those that right and wrong decide, and those of a threshold that other questions chose.
OF_OUTCOMES = ("accuracy", "balanced_accuracy")
FITTED = ("fitted_accuracy", "fitted_balanced")
#: Probabilities may be off by rounding.
_ROUNDING = 1e-5
#: Without another split a threshold is chosen on the other folds of images.
FOLDS = 10


@dataclass(frozen=True, eq=False)
class Decisions:
    """Whether each statement is right, (n, 2) at 0.5 and at the fitted threshold; NaN where `undefined`."""

    right: Float[ndarray, "n 2"]
    thresholds: Float[ndarray, "n"] | None
    #: What chose the threshold, in words.
    chosen_on: str
    undefined: Mapping[str, str]


def decisions(benchmark: Benchmark, answers: Answers, ties: Ties) -> Decisions:
    """Right and wrong of all statements at both thresholds."""
    questions = benchmark.statements
    right = np.full((len(questions), 2), np.nan)
    if not isinstance(answers, Scores):
        right[:, 0] = answers.outcomes.right["accuracy"]
        return Decisions(right, None, "", {})
    scores, measured = answers.values, questions.measured
    undefined: dict[str, str] = {}
    low, high = scores[measured].min(), scores[measured].max()
    if low == high:
        # One score for everything says nothing: whatever it is, all statements tie, which is chance.
        right[:] = 0.5
        return Decisions(right, np.full(len(scores), low), "any questions", {})
    if low < -_ROUNDING or high > 1 + _ROUNDING:
        why = f"scores from {low:.4g} to {high:.4g} are no probabilities, so 0.5 is no threshold of theirs"
        undefined |= dict.fromkeys(OF_OUTCOMES, why)
    else:
        right[:, 0] = statements.correct_at(scores, questions.truth, HALF, ties=ties)
    try:
        if questions.calibration is not None:
            other = questions.calibration
            threshold = statements.threshold(scores[other], questions.truth[other])
            thresholds = np.full(len(scores), threshold)
            chosen_on = f"{int(other.sum()):,} questions of another split"
        else:
            units = benchmark.dependence.units
            numbers = np.unique(units, return_index=True)[1]
            # Units in order of first use take turns, so that folds do not depend on how units are numbered.
            in_turn = zip(units[np.sort(numbers)].tolist(), np.arange(len(numbers)) % FOLDS, strict=True)
            fold_of = dict(in_turn)
            folds = np.asarray([fold_of[unit] for unit in units.tolist()], dtype=np.int64)
            thresholds = statements.cross_fitted(scores, questions.truth, folds)
            n_folds = min(FOLDS, len(numbers))
            chosen_on = f"the other {n_folds - 1} of {n_folds} folds of images"
    except InputError as error:
        why = f"no threshold: {str(error).split(';')[0]}"
        return Decisions(right, None, "", undefined | dict.fromkeys(FITTED, why))
    right[:, 1] = statements.correct_at(scores, questions.truth, thresholds, ties=ties)
    return Decisions(right, thresholds, chosen_on, undefined)


def weighted(
    benchmark: Benchmark,
    answers: Answers,
    ties: Ties,
    chosen: Bool[ndarray, "n"],
    clusters: Wholes | None = None,
    n_clusters: int = 1,
    *,
    decisions_made: Decisions | None = None,
) -> WeightedStatements:
    """The chosen statements made ready for samples; without `clusters` all are in one."""
    decisions_made = decisions_made or decisions(benchmark, answers, ties)
    inside = np.zeros(len(chosen), dtype=np.int64) if clusters is None else clusters
    scores = answers.values[chosen] if isinstance(answers, Scores) else None
    truth = benchmark.statements.truth[chosen]
    return WeightedStatements(scores, truth, decisions_made.right[chosen], inside[chosen], n_clusters)


class StatementEvaluation(JointEvaluation):
    """Statements."""

    joint = MEASURES
    refused = "measures of true and false statements together have"

    def main_measures(self, benchmark: Benchmark) -> tuple[str, ...]:
        """What the benchmark's authors report, else accuracy; and AUROC, which needs no threshold, last."""
        first = [name for name in benchmark.card.measures if name in MEASURES] or ["accuracy"]
        return (*(name for name in first if name != "auroc"), "auroc")

    def chance(self, benchmark: Benchmark) -> dict[str, float]:
        return {measure.name: float(measure.expected or 0) for measure in self.measures(benchmark)}

    def check_outcomes(self, n: int, right: Mapping[str, ndarray], *, where: str) -> None:
        if set(right) != {"accuracy"} or right["accuracy"].shape != (n,):
            raise ScoreError(
                "outcomes do not answer every statement once",
                where=where,
                given=", ".join(f"{name}: {len(column):,}" for name, column in right.items()),
                allowed=f"accuracy: {n:,}",
            )

    def item_columns(self, benchmark: Benchmark) -> dict[str, pa.Array]:
        questions = benchmark.statements
        return {
            "statement": pa.array([benchmark.captions[i].text for i in questions.captions], pa.string()),
            "image": pa.array([benchmark.images[i].id for i in questions.images], pa.string()),
            "truth": pa.array(questions.truth, pa.bool_()),
            "calibration": pa.array(~questions.measured, pa.bool_()),
        }

    def prepared(self, benchmark: Benchmark, answers: Answers, settings: EvaluationSettings) -> Prepared:
        """All measures, thresholds being those over everything; undefined ones go to provenance."""
        interval = settings.interval
        self.refuse(interval, benchmark)
        names = settings.chosen(self.measure_names(benchmark), benchmark)
        if not isinstance(answers, Scores):
            names = tuple(name for name in names if name in OF_OUTCOMES)
        chosen = decisions(benchmark, answers, settings.ties)
        measured = benchmark.statements.measured
        of_chance = self.chance(benchmark)

        def estimates(mask: Truths) -> dict[str, Estimate]:
            if not mask.any():
                return {}
            ready = weighted(benchmark, answers, settings.ties, mask, decisions_made=chosen)
            shared, value = shared_by(benchmark.dependence.part(mask), interval), ready.values()
            variance, freedom = linear_variance(shared, np.nan_to_num(ready.influences()))
            n_units = len(np.unique(shared.units))
            # An estimate that does not vary is one of as many pairs as the rarer truth has statements.
            rarer = float(min(ready.truth.sum(), (~ready.truth).sum()))
            most = np.array([max(rarer, 1.0), *[float(n_units)] * 4])
            defined = ~np.isnan(value)
            spread = Spread(np.nan_to_num(value), variance, freedom, np.minimum(most, n_units))
            estimated = of_spread(spread, MEASURES, [int(mask.sum())] * len(MEASURES), of_chance)
            shown = {name for name, is_defined in zip(MEASURES, defined, strict=True) if is_defined}
            return {name: estimate for name, estimate in estimated.items() if name in names and name in shown}

        undefined = {name: why for name, why in chosen.undefined.items() if name in names}
        if benchmark.statements.truth[measured].all() or not benchmark.statements.truth[measured].any():
            one = [name for name in ("auroc", "balanced_accuracy", "fitted_balanced") if name in names]
            undefined = dict.fromkeys(one, "not both true and false statements") | undefined
        threshold = agreement = None
        if chosen.thresholds is not None:
            low, high = float(chosen.thresholds.min()), float(chosen.thresholds.max())
            threshold = {"chosen_on": chosen.chosen_on, "low": low, "high": high}
        votes = benchmark.statements.votes
        if votes is not None and not np.isnan(kappa := fleiss_kappa(votes[measured])):
            judged = int((votes[measured].sum(axis=1) >= 2).sum())
            agreement = {"fleiss_kappa": kappa, "statements": judged}
        shared = shared_by(benchmark.measured_dependence, interval)
        method = "crossed" if shared.crossed else "influence"
        made_with = {
            "undefined": undefined or None,
            "threshold": threshold,
            "agreement": agreement,
            "interval": {**facts(benchmark, interval), "method": method, "clusters": shared.clustered},
        }
        return Prepared(estimates, self._ties(benchmark, answers, settings.ties), made_with)

    def _ties(self, benchmark: Benchmark, answers: Answers, policy: Ties) -> dict[str, Any]:
        if not isinstance(answers, Scores):
            return outcome_ties(answers, policy)
        questions = benchmark.statements
        measured = questions.measured
        ready = {ties: weighted(benchmark, answers, ties, measured) for ties in Ties}
        scores, truth = answers.values[measured], questions.truth[measured]
        level = np.where(truth, np.isin(scores, scores[~truth]), np.isin(scores, scores[truth]))
        tied = level | (ready[Ties.HALF].right == 0.5).any(axis=1)
        means = {}
        for ties, of_policy in ready.items():
            values = zip(MEASURES, of_policy.values().tolist(), strict=True)
            means[ties] = {name: value for name, value in values if value == value}
        return tie_facts(policy, tied, means)

    def weighted_run(self, run: Run, clusters: Wholes, n_clusters: int) -> WeightedStatements:
        """The measured statements under the run's policy of ties."""
        measured, ties = run.benchmark.statements.measured, Ties(run.result.ties["policy"])
        return weighted(run.benchmark, run.answers, ties, measured, clusters, n_clusters)

    def margin(self, benchmark: Benchmark, scores: Reals) -> Reals | None:
        """How far each score is on the right side of the threshold that other questions chose."""
        chosen = decisions(benchmark, Scores(scores), Ties.STRICT)
        if chosen.thresholds is None:
            return None
        return np.where(benchmark.statements.truth, 1.0, -1.0) * (scores - chosen.thresholds)

    def conflict(self, first: Benchmark, other: Benchmark) -> str:
        one, two = first.statements, other.statements
        same = np.array_equal(one.truth, two.truth) and np.array_equal(one.measured, two.measured)
        return "" if same else "other true statements"
