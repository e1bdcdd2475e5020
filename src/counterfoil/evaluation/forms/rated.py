"""Correlations of scores with human ratings over all rated captions, with intervals.

Intervals are percentiles over samples of whole images; a sample in which scores or ratings are all equal is
left out. Where samples spread too little both ends are moved by `stats.two_way_clustering.inflation`.
Differences of two metrics have Student's t intervals from how much every question moves them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from jaxtyping import Bool, Float, Int
from numpy import ndarray

from counterfoil.benchmarks.answers import Answers, Scores
from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.forms import Rated
from counterfoil.evaluation.evaluate import EvaluationSettings, JointEvaluation, Prepared, shared_by
from counterfoil.evaluation.forms.bootstrap import DrawnQuestions, MeasureDraws
from counterfoil.evaluation.intervals import IntervalMethod, facts, of_spread
from counterfoil.evaluation.result import Estimate, Run
from counterfoil.metrics import correlation
from counterfoil.metrics.measures import Measure, find
from counterfoil.metrics.ties import Ties
from counterfoil.metrics.weighted_correlation import MEASURES as MEASURES, WeightedCorrelation, influences
from counterfoil.stats import Truths, Wholes
from counterfoil.stats.bootstrap import cluster_draws, percentiles
from counterfoil.stats.intervals import Spread
from counterfoil.stats.two_way_clustering import inflation, linear_variance


@dataclass(frozen=True, eq=False)
class Points:
    """What one correlation is over: scores, ratings, and the question that each point belongs to."""

    scores: Float[ndarray, "points"]
    ratings: Float[ndarray, "points"]
    questions: Int[ndarray, "points"]

    @property
    def undefined(self) -> str:
        """Why no correlation exists; empty where one does."""
        if len(self.scores) < 2:
            return "fewer than two ratings"
        for name, column in (("scores", self.scores), ("ratings", self.ratings)):
            if np.ptp(column) == 0:
                return f"all {name} are equal"
        return ""


def points(
    questions: Rated, scores: Float[ndarray, "n"], chosen: Bool[ndarray, "n"] | None = None
) -> tuple[Points, ...]:
    """The points of every correlation that the measure averages: one, or one per rater who stands apart.

    Scores are rounded first where the protocol does so; a rater without chosen ratings is left out.
    """
    if questions.decimals is not None:
        scores = np.round(scores, questions.decimals)
    given = ~np.isnan(questions.ratings)
    if chosen is not None:
        given &= chosen[:, None]
    masks = [given]
    if questions.raters != "points":
        masks = [given & (np.arange(given.shape[1]) == rater) for rater in range(given.shape[1])]
    rows_of = [(mask, np.nonzero(mask)[0]) for mask in masks]
    return tuple(Points(scores[rows], questions.ratings[mask], rows) for mask, rows in rows_of if len(rows))


@dataclass(frozen=True, eq=False)
class WeightedRatings:
    """Points made ready for samples; `clusters` has the cluster of each question."""

    parts: tuple[Points, ...]
    clusters: Int[ndarray, "n"]
    n_clusters: int

    @cached_property
    def correlated(self) -> tuple[WeightedCorrelation, ...]:
        return tuple(
            WeightedCorrelation.of(part.scores, part.ratings, self.clusters[part.questions])
            for part in self.parts
        )

    def measures(self, weights: Float[ndarray, "draws c"]) -> Float[ndarray, "draws 4"]:
        """The four measures in each sample, means over `parts`; NaN where one has no correlation."""
        of_parts = [part.correlations(weights[:, : part.n_clusters]) for part in self.correlated]
        return np.asarray(np.mean(of_parts, axis=0))

    def values(self) -> Float[ndarray, "4"]:
        """The measures themselves: every cluster once."""
        return np.asarray(self.measures(np.ones((1, self.n_clusters)))[0])

    def influences(self) -> Float[ndarray, "n 4"]:
        """How much each question moves the measures: the sum over its points, the mean over `parts`."""
        total = np.zeros((len(self.clusters), len(MEASURES)))
        for part in self.parts:
            np.add.at(total, part.questions, influences(part.scores, part.ratings) / len(self.parts))
        return total


def measured(
    benchmark: Benchmark,
    answers: Scores,
    chosen: Bool[ndarray, "n"],
    names: Sequence[str],
    *,
    interval: IntervalMethod = IntervalMethod.AUTO,
    draws: int,
    seed: int,
) -> dict[str, Estimate]:
    """The named measures over some questions; empty where undefined, [-1, 1] as interval of one unit."""
    questions = benchmark.rated
    parts = points(questions, answers.values, chosen)
    if not parts or any(part.undefined for part in parts):
        return {}
    shared = shared_by(benchmark.dependence.part(chosen), interval, images_alone=True)
    numbers, inside = np.unique(shared.units, return_inverse=True)
    clusters = np.zeros(len(questions), dtype=np.int64)
    clusters[chosen] = inside.reshape(-1)
    ready = WeightedRatings(parts, clusters, len(numbers))
    value = ready.values()
    low, high = -np.ones(len(MEASURES)), np.ones(len(MEASURES))
    if len(numbers) > 1:
        drawn = cluster_draws(len(numbers), draws, seed=seed)
        samples = np.concatenate([ready.measures(weights) for weights in drawn])
        wide = inflation(shared, ready.influences()[chosen])
        ends = percentiles(samples)
        low, high = (np.where(np.isnan(end), far, end) for end, far in zip(ends, (low, high), strict=True))
        low, high = (value + wide * (end - value) for end in (low, high))
        low, high = np.maximum(low, -1.0), np.minimum(high, 1.0)
    n = len(parts[0].scores) if questions.raters == "points" else int(chosen.sum())
    estimates = {}
    for k, measure in enumerate(find(name, "rated") for name in MEASURES):
        if measure is not None and measure.name in names:
            left, right = min(low[k], value[k]), max(high[k], value[k])
            estimates[measure.name] = Estimate(float(value[k]), left, right, n, measure.expected)
    return estimates


class RatedEvaluation(JointEvaluation):
    """Ratings."""

    joint = MEASURES
    images_alone = True
    widest: ClassVar[float] = 2.0
    ends: ClassVar[Mapping[str, str]] = {"ends": "t"}
    refused = "a correlation has"
    why_refused = "Wilson's is for shares of independent questions"
    captions_drawn: ClassVar[bool] = False
    by_policy: ClassVar[bool] = False

    def measures(self, benchmark: Benchmark) -> tuple[Measure, ...]:
        """Pairwise accuracies only where the benchmark's authors report them."""
        declared = super().measures(benchmark)
        return tuple(m for m in declared if m.name in MEASURES or m.name in benchmark.card.measures)

    def main_measures(self, benchmark: Benchmark) -> tuple[str, ...]:
        """The correlations that the benchmark's authors report; all where its card names none."""
        reported = tuple(name for name in benchmark.card.measures if name in MEASURES)
        return reported or MEASURES

    def chance(self, benchmark: Benchmark) -> dict[str, float]:
        """0: scores that have nothing to do with the ratings; of pairwise accuracies the estimates say it."""
        return {name: 0.0 for name in self.measure_names(benchmark) if name in MEASURES}

    def item_columns(self, benchmark: Benchmark) -> dict[str, pa.Array]:
        questions = benchmark.rated
        columns = {
            "candidate": pa.array([benchmark.captions[i].text for i in questions.captions], pa.string()),
            "image": pa.array([benchmark.images[i].id for i in questions.images], pa.string()),
        }
        for rater, given in enumerate(questions.ratings.T):
            columns[f"r{rater}"] = pa.array(given, pa.float64(), mask=np.isnan(given))
        return columns

    def prepared(self, benchmark: Benchmark, answers: Answers, settings: EvaluationSettings) -> Prepared:
        """All correlations with the ratings; undefined ones are left out with the reason in provenance."""
        interval, drawn = settings.interval, {"draws": settings.draws, "seed": settings.seed}
        self.refuse(interval, benchmark)
        names = settings.chosen(self.measure_names(benchmark), benchmark)
        scores = Scores(answers.scores)
        reasons = [part.undefined for part in points(benchmark.rated, scores.values)]
        undefined = next((reason for reason in reasons if reason), "")
        if benchmark.rated.raters == "apart":
            undefined = undefined.replace("ratings", "ratings of one rater")
        shared = shared_by(benchmark.dependence, interval, images_alone=True)
        described = {
            **facts(benchmark, interval),
            **drawn,
            "method": "crossed" if shared.crossed else "bootstrap",
            "clusters": shared.clustered,
            "ends": "percentiles",
        }
        made_with: dict[str, Any] = {
            "undefined": dict.fromkeys(names, undefined) if undefined else None,
            "tie_threshold": None,
            "interval": described,
        }

        def estimates(mask: Truths) -> dict[str, Estimate]:
            by_name = measured(benchmark, scores, mask, MEASURES, interval=interval, **drawn)
            if by_name and set(names) - set(MEASURES):
                of_pairs, tie = pairwise_estimates(benchmark, scores.values, mask, names)
                by_name |= of_pairs
                # That over everything, which comes first.
                if "pairwise_accuracy_fitted" in of_pairs and made_with["tie_threshold"] is None:
                    made_with["tie_threshold"] = tie
            return {name: by_name[name] for name in names if name in by_name}

        return Prepared(estimates, self._ties(benchmark, scores, settings.ties), made_with)

    def _ties(self, benchmark: Benchmark, answers: Scores, policy: Ties) -> dict[str, Any]:
        """Ties in correlations: no policy applies; `rate` is the share of equal pairs of scores."""
        decimals = benchmark.rated.decimals
        scores = answers.values if decimals is None else np.round(answers.values, decimals)
        n = len(scores)
        same = np.unique(scores, return_counts=True)[1].astype(np.float64)
        rate = float((same * (same - 1)).sum() / (n * (n - 1))) if n > 1 else 0.0
        return {
            "policy": str(policy),
            "questions": None,
            "rate": rate,
            "note": f"{100 * rate:.2f} % of pairs of captions score the same; --ties does not apply: tau-b "
            "corrects for them, tau-c does not, and Spearman gives them the mean of their ranks",
        }

    def weighted_run(self, run: Run, clusters: Wholes, n_clusters: int) -> WeightedRatings | None:
        parts = points(run.benchmark.rated, run.answers.scores)
        undefined = any(part.undefined for part in parts)
        return None if undefined else WeightedRatings(parts, clusters, n_clusters)

    def draws(self, runs: Sequence[Run], measures: Sequence[str], drawn: DrawnQuestions) -> MeasureDraws:
        """Those of the runs that have all of the measures."""
        having = [run for run in runs if all(self.has(run, name) for name in measures)]
        return super().draws(having, measures, drawn)

    def conflict(self, first: Benchmark, other: Benchmark) -> str:
        a, b = first.rated, other.rated
        alike = (a.raters, a.decimals) == (b.raters, b.decimals)
        same = alike and np.array_equal(a.ratings, b.ratings, equal_nan=True)
        return "" if same else "other ratings or votes"


def pairwise_estimates(
    benchmark: Benchmark, scores: Float[ndarray, "n"], chosen: Bool[ndarray, "n"], names: Sequence[str]
) -> tuple[dict[str, Estimate], float]:
    """Pairwise accuracies over the chosen questions, and the fitted threshold of ties (NaN without one).

    An item adds to the error of a mean over pairs twice the deviation of the share of its pairs that agree.
    """
    shared, scores = benchmark.dependence.part(chosen), scores[chosen]
    ratings = np.nanmean(benchmark.rated.ratings[chosen], axis=1)
    estimates: dict[str, Estimate] = {}
    tie = float("nan")
    for name in (name for name in correlation.PAIR_MEASURES if name in names):
        fitted = name == "pairwise_accuracy_fitted"
        tie = correlation.fitted_tie(scores, ratings) if fitted else tie
        share = correlation.agreement(scores, ratings, tie=tie if fitted else 0.0)
        value = share.mean()
        variance, freedom = linear_variance(shared, 2 * (share - value)[:, None] / len(share))
        units = np.array([float(len(np.unique(shared.units)))])
        spread = Spread(np.array([value]), variance, freedom, units)
        chance = None if fitted else (1 - correlation.tied_ratings(ratings)) / 2
        estimates |= of_spread(spread, [name], [len(share)], {name: chance})
    return estimates, tie
