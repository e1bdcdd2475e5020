"""Evaluation of contrasts (quads, choices, preferences): every question counts the same."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from counterfoil.benchmarks.answers import Answers, Outcomes, Scores
from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.errors import ScoreError
from counterfoil.evaluation import intervals
from counterfoil.evaluation.evaluate import (
    EvaluationSettings,
    FormEvaluation,
    PairedRuns,
    Prepared,
    Tested,
    outcome_ties,
    tie_facts,
)
from counterfoil.evaluation.intervals import resampled_by
from counterfoil.evaluation.result import Estimate
from counterfoil.metrics import contrast
from counterfoil.metrics.measures import Measure, averaged, find
from counterfoil.metrics.ties import Ties
from counterfoil.stats import Reals, Truths
from counterfoil.stats.intervals import differences, macro_weights
from counterfoil.stats.tests import mcnemar

#: The two candidates of a preference, in columns.
_SIDES = ("a", "b")


class ContrastEvaluation(FormEvaluation):
    """All contrasts; quads, choices and preferences say what differs, and so may forms of other packages."""

    #: The things that are right or wrong in released result tables.
    outcomes: ClassVar[tuple[str, ...]] = ("accuracy",)

    def values(self, measure: Measure, benchmark: Benchmark, scores: Reals, ties: Ties) -> Reals:
        """A measure of each of the first questions, from their scores."""
        return np.asarray(measure(scores, ties=ties), dtype=np.float64)

    @abstractmethod
    def tied(self, benchmark: Benchmark, scores: Reals) -> NDArray[Any]:
        """Whether a tie decides each question, or in which share of draws it does."""

    def other_ties(self, benchmark: Benchmark, scores: Reals) -> dict[str, Any]:
        """What the measures are under other customs than the policies of ties."""
        return {}

    def from_outcomes(self, right: Mapping[str, NDArray[Any]]) -> dict[str, Reals]:
        """The measures that right and wrong decide."""
        return {"accuracy": right["accuracy"].astype(np.float64)}

    def score_columns(self, shape: tuple[int, ...]) -> list[str]:
        return [f"s{i}" for i in range(shape[1])]

    def item_columns(self, benchmark: Benchmark) -> dict[str, pa.Array]:
        captions, images = benchmark.listed.slots()
        columns: dict[str, pa.Array] = {}
        for k, column in enumerate(captions.T):
            shown = [benchmark.captions[i] if i >= 0 else None for i in column]
            columns[f"caption_{k}_id"] = pa.array([caption and caption.id for caption in shown], pa.string())
            columns[f"caption_{k}"] = pa.array([caption and caption.text for caption in shown], pa.string())
        for k, column in enumerate(images.T):
            ids = [benchmark.images[i].id if i >= 0 else None for i in column]
            columns[f"image_{k}"] = pa.array(ids, pa.string())
        return columns

    def chance(self, benchmark: Benchmark) -> dict[str, float]:
        """As declared, else what a constant model gets under `half`."""
        every = np.ones(len(benchmark), dtype=bool)
        chances = self._chances(benchmark)
        return {
            measure.name: intervals.chance(benchmark, measure, chances[measure.name], every)
            for measure in self.measures(benchmark)
        }

    def _chances(self, benchmark: Benchmark) -> dict[str, intervals.Chance]:
        """Chance by measure; a value per question where these have different numbers of candidates."""
        questions = benchmark.listed
        constant = np.zeros((1, *questions.shape[1:]))
        if questions.filled is not None:
            constant = questions.collect(np.zeros(int(questions.filled.sum())))
        chances: dict[str, intervals.Chance] = {}
        for declared in self.measures(benchmark):
            measure = find(declared.macro_of, declared.form) if declared.macro_of else declared
            measure = measure or declared
            if measure.expected is not None:
                chances[declared.name] = measure.expected
                continue
            alone = self.values(measure, benchmark, constant, Ties.HALF)
            if questions.filled is None:
                # Questions of a group have images of their own, so that random scores decide them one by one.
                joined = self._joined(measure, benchmark, np.repeat(alone, len(benchmark)))
                chances[declared.name] = float(joined.mean())
            else:
                chances[declared.name] = self._joined(measure, benchmark, alone)
        return chances

    def _joined(self, measure: Measure, benchmark: Benchmark, values: Reals) -> Reals:
        """The values of questions as those of their groups, where the measure is of groups."""
        if measure.within is None:
            return values
        grouping, members = measure.within
        return contrast.together(values, benchmark.questions.groupings[grouping], members)

    def check_outcomes(self, n: int, right: Mapping[str, NDArray[Any]], *, where: str) -> None:
        for name in self.needed(right):
            if name not in right:
                names = tuple(right)
                raise ScoreError(f"no outcomes for '{name}'", where=where, given=names, allowed=self.outcomes)
            if right[name].shape != (n,):
                what = f"outcomes of '{name}' have the wrong number of rows"
                raise ScoreError(what, where=where, given=len(right[name]), allowed=str(n))

    def needed(self, right: Mapping[str, NDArray[Any]]) -> tuple[str, ...]:
        """The outcomes that must be there, beside those that are."""
        return self.outcomes

    def per_item(
        self, benchmark: Benchmark, answers: Answers, *, ties: Ties, measures: Sequence[str] | None = None
    ) -> dict[str, Reals]:
        if isinstance(answers, Scores):
            values = {}
            for measure in self.measures(benchmark):
                if not measure.macro_of:
                    alone = self.values(measure, benchmark, answers.values, ties)
                    values[measure.name] = self._joined(measure, benchmark, alone)
        else:
            values = self.from_outcomes(answers.outcomes.right)
            if "accuracy" in values:
                values |= {
                    measure.name: self._joined(measure, benchmark, values["accuracy"])
                    for measure in self.measures(benchmark)
                    if measure.within is not None
                }
        return values if measures is None else {name: values[name] for name in measures if name in values}

    def binarize(self, benchmark: Benchmark, answers: Scores | Outcomes) -> Outcomes:
        if not isinstance(answers, Scores):
            return answers
        values = self.per_item(benchmark, answers, ties=Ties.STRICT, measures=self.outcomes)
        right = {name: values[name] == 1 for name in self.outcomes}
        ties = "equal scores are wrong, and so are comparisons with a pair that has no answer"
        return Outcomes(right, ties, answers.provenance, answers.unanswered)

    def prepared(self, benchmark: Benchmark, answers: Answers, settings: EvaluationSettings) -> Prepared:
        values, declared = self.per_item(benchmark, answers, ties=settings.ties), self.measures(benchmark)
        available = tuple(m.name for m in declared if (m.macro_of or m.name) in values)
        names = settings.chosen(available, benchmark)
        by_chance = self._chances(benchmark)
        if not isinstance(answers, Scores):
            by_chance = {**by_chance, **answers.outcomes.chance}

        def estimates(mask: Truths) -> dict[str, Estimate]:
            interval = settings.interval
            return intervals.estimates(benchmark, values, names, mask, by_chance, interval=interval)

        if isinstance(answers, Scores):
            by_policy = {settings.ties: values}
            for policy in Ties:
                if policy is not settings.ties:
                    by_policy[policy] = self.per_item(benchmark, answers, ties=policy)
            means = {t: {name: float(v.mean()) for name, v in by_policy[t].items()} for t in Ties}
            # Macro means are those of the card.
            macro = [m for m in declared if m.macro_of and m.name in benchmark.card.measures]
            if macro:
                groups, shares = intervals.macro_groups(benchmark, np.ones(len(benchmark), dtype=bool))
                weights = macro_weights(groups, shares)
                for measure in macro if (groups >= 0).any() else ():
                    for policy, of_policy in by_policy.items():
                        if measure.macro_of in of_policy:
                            means[policy][measure.name] = float(weights @ of_policy[measure.macro_of])
            ties = tie_facts(settings.ties, self.tied(benchmark, answers.values), means)
            ties |= self.other_ties(benchmark, answers.values)
        else:
            ties = outcome_ties(answers, settings.ties)
        # The groups of a few questions that a measure joins are not reported.
        joined = {measure.within[0] for measure in declared if measure.within is not None}
        return Prepared(estimates, ties, {"interval": intervals.facts(benchmark, settings.interval)}, joined)

    def test(self, paired: PairedRuns) -> Tested:
        """Tango's intervals, and exact McNemar tests where questions share nothing."""
        benchmark = paired.runs[0].benchmark
        of_items = [averaged(name, benchmark.questions.form) for name in paired.main]
        values = np.stack([run.items[name] for run in paired.runs for name in of_items], axis=1)
        pairs = paired.columns
        dependence = paired.dependence
        shared = resampled_by(dependence, paired.interval)
        macro = np.array([name != of for name, of in zip(paired.main, of_items, strict=True)])
        macro = np.tile(macro, len(paired.of_models))
        # A column as a table of its own; the difference, its ends and its p-value.
        of_columns = values.T[:, :, None]
        table = np.empty((4, len(pairs)))
        means = values.mean(axis=0)
        table[0] = means[pairs[:, 0]] - means[pairs[:, 1]]
        if not macro.all():
            table[1:, ~macro] = differences(of_columns, shared, pairs[~macro])[1:, :, 0]
        if macro.any():
            groups, shares = intervals.macro_groups(benchmark, np.ones(len(values), dtype=bool))
            weighed = macro_weights(groups, shares) @ values
            table[0, macro] = weighed[pairs[macro, 0]] - weighed[pairs[macro, 1]]
            of_groups = differences(of_columns, shared, pairs[macro], groups=groups, shares=shares)
            table[1:, macro] = of_groups[1:, :, 0]
        mcnemars = [
            None if is_macro or not dependence.independent else mcnemar(values[:, a], values[:, b])
            for (a, b), is_macro in zip(pairs, macro, strict=True)
        ]
        value, low, high, p = table
        return Tested(value, low, high, p, mcnemars, paired.facts(dependence))


class QuadEvaluation(ContrastEvaluation):
    """Quads."""

    finer_measures: ClassVar[bool] = True
    outcomes: ClassVar[tuple[str, ...]] = ("ipos2t", "ineg2t", "tpos2i", "tneg2i")

    def score_columns(self, shape: tuple[int, ...]) -> list[str]:
        return ["c0_i0", "c0_i1", "c1_i0", "c1_i1"]

    def needed(self, right: Mapping[str, NDArray[Any]]) -> tuple[str, ...]:
        """All four, but where one direction alone was asked about, as by released answers of chat models."""
        one_way = (self.outcomes[:2], self.outcomes[2:])
        return next((pair for pair in one_way if set(right) == set(pair)), self.outcomes)

    def tied(self, benchmark: Benchmark, scores: Reals) -> NDArray[Any]:
        return contrast.quad_tied(scores)

    def other_ties(self, benchmark: Benchmark, scores: Reals) -> dict[str, Any]:
        """T2I where a tie is a choice of the second image, as MMVP-VLM's official code has it."""
        return {"second": {"t2i": float(contrast.t2i_ties_to_second(scores).mean())}}

    def from_outcomes(self, right: Mapping[str, NDArray[Any]]) -> dict[str, Reals]:
        return contrast.from_directions(right)

    def margin(self, benchmark: Benchmark, scores: Reals) -> Reals:
        return contrast.quad_margin(scores)


class ChoiceEvaluation(ContrastEvaluation):
    """Choices, and paraphrases: of three pairs of captions the first is right."""

    def values(self, measure: Measure, benchmark: Benchmark, scores: Reals, ties: Ties) -> Reals:
        return measure(scores, correct=benchmark.listed.correct, ties=ties)

    def tied(self, benchmark: Benchmark, scores: Reals) -> NDArray[Any]:
        return contrast.choice_tied(scores, correct=benchmark.listed.correct)

    def margin(self, benchmark: Benchmark, scores: Reals) -> Reals:
        return contrast.choice_margin(scores, correct=benchmark.listed.correct)


class PreferenceEvaluation(ContrastEvaluation):
    """Preferences between two captions."""

    def score_columns(self, shape: tuple[int, ...]) -> list[str]:
        """Those of candidates a and b, of each draw of references where a metric was asked once per draw."""
        draws = [""] if len(shape) == 2 else [f"_d{draw}" for draw in range(shape[2])]
        return [f"{side}{draw}" for side in _SIDES for draw in draws]

    def score_shape(self, benchmark: Benchmark, columns: Sequence[str]) -> tuple[int, ...]:
        shape = benchmark.preferences.shape
        return (*shape, len(columns) // 2) if "a_d0" in columns else shape

    def item_columns(self, benchmark: Benchmark) -> dict[str, pa.Array]:
        questions = benchmark.preferences
        columns: dict[str, pa.Array] = {}
        for k, side in enumerate(_SIDES):
            rows = np.flatnonzero(questions.sides == k)
            starts = pa.array(
                np.searchsorted(questions.owners[rows], np.arange(len(questions) + 1)), pa.int32()
            )
            texts = [benchmark.captions[i].text for i in questions.captions[rows]]
            images = [benchmark.images[i].id for i in questions.images[rows]]
            columns[side] = pa.ListArray.from_arrays(starts, pa.array(texts, pa.string()))
            columns[f"{side}_images"] = pa.ListArray.from_arrays(starts, pa.array(images, pa.string()))
            columns[f"votes_{side}"] = pa.array(questions.votes[:, k], pa.float64())
        return {**columns, "label": pa.array(questions.label, pa.int64())}

    def values(self, measure: Measure, benchmark: Benchmark, scores: Reals, ties: Ties) -> Reals:
        return measure(scores, benchmark.preferences.label[: len(scores)], ties=ties)

    def tied(self, benchmark: Benchmark, scores: Reals) -> NDArray[Any]:
        return contrast.preference_tied(scores, benchmark.preferences.label)

    def other_ties(self, benchmark: Benchmark, scores: Reals) -> dict[str, Any]:
        """The accuracy where a tie is a vote for the second candidate, as Polos counts Pascal-50S."""
        votes = contrast.ties_to_second(scores, benchmark.preferences.label)
        return {"second": {"accuracy": float(votes.mean())}}

    def margin(self, benchmark: Benchmark, scores: Reals) -> Reals:
        """The score of the preferred caption less that of the other, the mean over draws."""
        values = scores.reshape(len(benchmark), 2, -1).mean(axis=2)
        rows, label = np.arange(len(benchmark)), benchmark.preferences.label
        return values[rows, label] - values[rows, 1 - label]

    def conflict(self, first: Benchmark, other: Benchmark) -> str:
        same = np.array_equal(first.preferences.label, other.preferences.label)
        return "" if same else "other ratings or votes"
