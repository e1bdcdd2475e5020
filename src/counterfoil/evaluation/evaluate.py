"""One model on one benchmark: per-item values, then numbers with intervals, over everything and by group."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, ClassVar, TypeVar

import numpy as np
import pyarrow as pa
from jaxtyping import Float
from numpy import ndarray
from numpy.typing import NDArray

from counterfoil.benchmarks.answers import Answers, Outcomes, Scores, command, provenance_of
from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.forms import Forms
from counterfoil.benchmarks.forms.base import NO_CANDIDATE
from counterfoil.benchmarks.tables import LARGEST
from counterfoil.errors import DataError, InputError, ScoreError, UnknownNameError
from counterfoil.evaluation.forms.bootstrap import DrawnQuestions, MeasureDraws, WeightedMeasures, mean_draws
from counterfoil.evaluation.intervals import IntervalMethod
from counterfoil.evaluation.result import Estimate, Result, Run
from counterfoil.inputs.columns import ColumnSchema, Schema, check_columns
from counterfoil.metrics.measures import Measure, averaged, of_form, signed
from counterfoil.metrics.ties import Ties
from counterfoil.stats import Reals, Truths, Wholes
from counterfoil.stats.dependence import Dependence
from counterfoil.stats.intervals import Spread
from counterfoil.stats.two_way_clustering import inflation, linear_variance

_SCORE, _RIGHT = ColumnSchema("real", low=-LARGEST, high=LARGEST), ColumnSchema("truth")
#: Columns of right and wrong, which hold shares where a question was answered several times.
_OUTCOMES = ("ipos2t", "ineg2t", "tpos2i", "tneg2i", "accuracy")
_SHARE = ColumnSchema("real", low=0.0, high=1.0)
#: Pairs of positions.
IndexPairs = Sequence[tuple[int, int]]


@dataclass(frozen=True, eq=False)
class PairedRuns:
    """A test of differences: the main measures of pairs of runs, given as positions."""

    runs: Sequence[Run]
    main: Sequence[str]
    of_models: IndexPairs
    interval: IntervalMethod

    @property
    def columns(self) -> Wholes:
        """Pairs of columns, for columns of models x measures."""
        wide = len(self.main)
        return np.asarray(
            [(a * wide + k, b * wide + k) for a, b in self.of_models for k in range(wide)], dtype=np.int64
        )

    @property
    def dependence(self) -> Dependence:
        """What questions share by any of the runs: some may know images or captions that others lack."""
        return Dependence.joined([run.benchmark.dependence for run in self.runs])

    def facts(self, dependence: Dependence, **more: Any) -> dict[str, Any]:
        """How intervals of the differences were made."""
        method = str(self.interval)
        if self.interval in (IntervalMethod.AUTO, IntervalMethod.WILSON):
            two_way = self.interval is IntervalMethod.AUTO and dependence.crossed
            method = "crossed" if two_way else "clusters"
        clusters = "question" if self.interval is IntervalMethod.WILSON else dependence.clustered
        return {"method": method, "clusters": clusters, **more}


@dataclass(frozen=True, eq=False)
class Tested:
    """Each difference with interval and p-values: for every pair of models, the main measures in turn."""

    value: Reals
    low: Reals
    high: Reals
    p: Reals
    mcnemar: list[float | None]
    #: How the intervals were made (`PairedRuns.facts`).
    interval: Mapping[str, Any]


@dataclass(frozen=True)
class EvaluationSettings:
    """The settings of one evaluation: ties, intervals, chosen measures."""

    ties: Ties
    interval: IntervalMethod
    draws: int
    seed: int
    measures: Sequence[str] | None

    def chosen(self, measures: Sequence[str], benchmark: Benchmark) -> tuple[str, ...]:
        """The measures that are asked for; raises `UnknownNameError` where one of them is not known."""
        for name in self.measures or ():
            if name not in measures:
                raise UnknownNameError("measure", name, measures, where=benchmark.name)
        return tuple(name for name in measures if self.measures is None or name in self.measures)


@dataclass(frozen=True, eq=False)
class Prepared:
    """Answers made ready: `estimates` gives the measures over the questions of a mask, `ties` and `facts`
    what the result says of ties and provenance; estimates may add to facts, and None is left out.
    """

    estimates: Callable[[Truths], dict[str, Estimate]]
    ties: Mapping[str, Any]
    facts: Mapping[str, Any]
    #: Groupings whose groups are not reported.
    without: Collection[str] = ()


class FormEvaluation(ABC):
    """The evaluation of one form of question."""

    #: Whether a question has a value of its own under a measure; else measures are of all questions together.
    values_per_item: ClassVar[bool] = True
    #: Whether intervals allow for other captions; else these come with the images they belong to.
    captions_drawn: ClassVar[bool] = True
    #: Whether a policy of ties decides values; else every measure counts ties in its own way.
    by_policy: ClassVar[bool] = True
    #: Whether the measures that are not main ones are parts of those.
    finer_measures: ClassVar[bool] = False

    def measures(self, benchmark: Benchmark) -> tuple[Measure, ...]:
        """The declared measures; those over groups where the benchmark has the groups, and some whole."""
        measures = []
        for measure in of_form(benchmark.questions.form):
            if measure.macro_of and not benchmark.card.macro:
                continue
            if measure.within is not None:
                grouping, members = measure.within
                if members not in Counter(benchmark.questions.groupings.get(grouping, ())).values():
                    continue
            measures.append(measure)
        return tuple(measures)

    def main_measures(self, benchmark: Benchmark) -> tuple[str, ...]:
        """The measures that comparisons test: the form's main ones, the card's first, and its macro means in
        place of what they average, unless the card has both.
        """
        card, measures = benchmark.card.measures, self.measures(benchmark)
        averaged = {m.macro_of for m in measures if m.macro_of and m.name in card}
        return tuple(
            measure.name
            for measure in measures
            if measure.name in card[:1]
            or (measure.macro_of and measure.name in card)
            or (measure.main and (measure.name in card or measure.name not in averaged))
        )

    def leading(self, benchmark: Benchmark, measures: Collection[str]) -> str:
        """The first known main measure of the card, else of correlations the first and of others the last."""
        main = self.main_measures(benchmark)
        named = [name for name in benchmark.card.measures if name in main]
        order = [*named, *(main if signed(main[0]) else reversed(main))]
        return next((name for name in order if name in measures), order[0])

    def measure_names(self, benchmark: Benchmark) -> tuple[str, ...]:
        """Every measure that is reported by default, in the order of reports."""
        return tuple(measure.name for measure in self.measures(benchmark))

    def check_measures(self, benchmark: Benchmark, names: Sequence[str]) -> None:
        """Raise `UnknownNameError` where the benchmark lacks a measure."""
        available = self.measure_names(benchmark)
        for name in names:
            if name not in available:
                raise UnknownNameError("measure", name, available, where=benchmark.name)

    @abstractmethod
    def chance(self, benchmark: Benchmark) -> dict[str, float]:
        """The mean value of random, never equal scores, per measure."""

    def check(self, benchmark: Benchmark, answers: Answers, *, where: str) -> None:
        """Raise `ScoreError` unless `answers` answer every question."""
        if answers.has_rankings:
            form = benchmark.questions.form
            raise ScoreError("rankings answer a gallery only", where=where, given=f"form '{form}'")
        if answers.has_scores:
            Scores(answers.scores).check(benchmark, where=where)
        else:
            self.check_outcomes(len(benchmark), answers.outcomes.right, where=where)

    def check_outcomes(self, n: int, right: Mapping[str, NDArray[Any]], *, where: str) -> None:
        """Raise `ScoreError` unless what is right answers all of n questions."""
        problem = "right and wrong say nothing of how scores go with ratings"
        raise ScoreError(problem, where=where, given="outcomes", allowed="a score per question")

    @abstractmethod
    def per_item(
        self, benchmark: Benchmark, answers: Answers, *, ties: Ties, measures: Sequence[str] | None = None
    ) -> dict[str, Reals]:
        """Each measure's value per question, in [0, 1]; empty where measures are of all together."""

    @abstractmethod
    def score_columns(self, shape: tuple[int, ...]) -> list[str]:
        """The columns of scores of this shape, one for each of a question's scores in their order."""

    def score_shape(self, benchmark: Benchmark, columns: Sequence[str]) -> tuple[int, ...]:
        """The shape of the scores in these columns."""
        return benchmark.listed.shape

    def answer_columns(self, benchmark: Benchmark, answers: Answers) -> dict[str, pa.Array]:
        """The columns of a run's answers, a row per question: scores, or what is right and wrong."""
        if not answers.has_scores:
            return {name: pa.array(right) for name, right in answers.outcomes.right.items()}
        scores = answers.scores
        flat = scores.reshape(len(scores), -1).T
        names = self.score_columns(scores.shape)
        filled = benchmark.listed.filled
        lacking = [None] * len(names) if filled is None else [*~filled.T]
        columns = zip(names, flat, lacking, strict=True)
        return {name: pa.array(column, pa.float64(), mask=none) for name, column, none in columns}

    def read_answers(self, benchmark: Benchmark, table: pa.Table, *, where: object) -> Answers:
        """The answers that `answer_columns` gave; raises `DataError` where they do not fit the questions."""
        given = [name for name in table.column_names if name != "question"]
        right = bool(given) and all(
            name in _OUTCOMES or pa.types.is_boolean(table.schema.field(name).type) for name in given
        )
        shape = self.score_shape(benchmark, given)
        if not right and given != (expected := self.score_columns(shape)):
            raise DataError(
                "not the scores of these questions",
                where=where,
                given=", ".join(given[:12]) or "no column",
                allowed=expected[:12],
            )
        filled = None if right else benchmark.listed.filled
        kind = _SCORE if filled is None else replace(_SCORE, null=True)
        kinds = dict.fromkeys(given, kind)
        if right:
            whole = {name: pa.types.is_boolean(table.schema.field(name).type) for name in given}
            kinds = {name: _RIGHT if whole[name] else _SHARE for name in given}
        table = check_answers(table, kinds, benchmark.questions.ids, where=where)
        columns = {name: table[name].to_numpy(zero_copy_only=False) for name in given}
        if right:
            return Outcomes(
                {name: column.astype(bool if whole[name] else float) for name, column in columns.items()}
            )
        scores = np.stack([*columns.values()], axis=1).astype(np.float64).reshape(shape)
        if filled is not None:
            # What is empty elsewhere stays NaN, which no answers may hold.
            scores = np.where(~filled & np.isnan(scores), NO_CANDIDATE, scores)
        return Scores(scores)

    @abstractmethod
    def item_columns(self, benchmark: Benchmark) -> dict[str, pa.Array]:
        """The columns that show a question to readers of a run's items: its captions and images."""

    def without(self, benchmark: Benchmark, measure: str) -> Truths | None:
        """The questions that a measure is not about, whose cells are empty among a run's items."""
        return None

    def binarize(self, benchmark: Benchmark, answers: Scores | Outcomes) -> Outcomes:
        """Right and wrong of scores, NaN being wrong; raises `InputError` where no answer can be wrong."""
        raise InputError(
            "a question without an answer cannot count as wrong here",
            where=benchmark.name,
            given="--unanswered wrong",
            allowed="refuse, leave-out",
        )

    @abstractmethod
    def prepared(self, benchmark: Benchmark, answers: Answers, settings: EvaluationSettings) -> Prepared:
        """What `evaluate` makes estimates from; raises `InputError` for intervals that the form has not."""

    @abstractmethod
    def test(self, paired: PairedRuns) -> Tested:
        """Differences between models, question by question, with intervals and p-values."""

    def draws(self, runs: Sequence[Run], measures: Sequence[str], drawn: DrawnQuestions) -> MeasureDraws:
        """The measures of runs on one benchmark in draws of clusters, NaN where a run lacks one."""
        form, nothing = drawn.benchmark.questions.form, np.full(len(drawn.clusters), np.nan)
        columns = [
            run.items[averaged(name, form)] if self.has(run, name) else nothing
            for run in runs
            for name in measures
        ]
        return mean_draws([run.name for run in runs], measures, np.stack(columns, axis=1), drawn)

    def margin(self, benchmark: Benchmark, scores: Reals) -> Reals | None:
        """(n,) how far right scores are ahead, in the unit of the scores; of contrasts alone."""
        return None

    def conflict(self, first: Benchmark, other: Benchmark) -> str:
        """Why runs on two benchmarks of the same questions cannot be paired: the facts that differ, or ""."""
        return ""

    def measures_of(self, run: Run) -> tuple[str, ...]:
        """The measures that a run has a value of; of macro means those that it reports."""
        if not self.values_per_item:
            return tuple(run.result.measures)
        form = run.benchmark.questions.form
        return (*run.items, *(name for name in run.result.measures if averaged(name, form) != name))

    def has(self, run: Run, measure: str) -> bool:
        """Whether a run has a value of a measure."""
        of_items = averaged(measure, run.benchmark.questions.form)
        if of_items != measure and measure not in run.result.measures:
            return False
        values = run.items.get(of_items)
        return values is not None and bool(np.isfinite(values).any())

    def overall(self, benchmark: Benchmark, measures: Sequence[str]) -> list[str]:
        """Measures besides the main ones by which models are ordered unless some are chosen."""
        return []

    def images(self, benchmark: Benchmark) -> list[str] | None:
        """The image of each question where benchmarks that share images are drawn together, else None."""
        return None

    def mean(self, benchmark: Benchmark, values: Reals) -> float:
        """A measure from its values per question."""
        return float(values.mean())


class JointEvaluation(FormEvaluation):
    """Forms whose measures are of all questions together: none has a value of its own, each has one score."""

    values_per_item: ClassVar[bool] = False
    #: All measures of the form, in the order in which `weighted_run` has them.
    joint: ClassVar[tuple[str, ...]]
    #: Whether intervals by `clusters` are over images alone, whatever captions share.
    images_alone: ClassVar[bool] = False
    #: What the measures are, where an interval is refused, and why.
    refused: ClassVar[str]
    why_refused: ClassVar[str | None] = None
    #: The largest difference of two values, and what is said of the ends of differences.
    widest: ClassVar[float] = 1.0
    ends: ClassVar[Mapping[str, str]] = {}

    def refuse(self, interval: IntervalMethod, benchmark: Benchmark) -> None:
        if interval is IntervalMethod.WILSON:
            raise InputError(
                f"{self.refused} no interval of the kind '{interval}'",
                where=benchmark.name,
                allowed=("auto", "clusters", "crossed"),
                hint=self.why_refused,
            )

    def per_item(
        self, benchmark: Benchmark, answers: Answers, *, ties: Ties, measures: Sequence[str] | None = None
    ) -> dict[str, Reals]:
        return {}

    def score_columns(self, shape: tuple[int, ...]) -> list[str]:
        return ["score"]

    def has(self, run: Run, measure: str) -> bool:
        return measure in run.result.measures

    @abstractmethod
    def weighted_run(self, run: Run, clusters: Wholes, n_clusters: int) -> WeightedMeasures | None:
        """The measures of a run under weights of the clusters of questions; None where none is defined."""

    def test(self, paired: PairedRuns) -> Tested:
        """Student's t intervals and p-values, since no question has a value of its own to compare."""
        benchmark = paired.runs[0].benchmark
        self.refuse(paired.interval, benchmark)
        dependence = paired.dependence.part(benchmark.questions.measured)
        dependence = shared_by(dependence, paired.interval, images_alone=self.images_alone)
        table = self.differences(paired.runs, dependence, paired.of_models, paired.main)
        value, low, high, p = table.reshape(4, -1)
        method = "crossed" if dependence.crossed else "influence"
        return Tested(
            value, low, high, p, [None] * len(value), paired.facts(dependence, method=method, **self.ends)
        )

    def differences(
        self, runs: Sequence[Run], dependence: Dependence, pairs: IndexPairs, names: Sequence[str]
    ) -> Reals:
        """(4, pairs, names) value, ends and p of run a less run b; NaN where one is undefined."""
        where = [self.joint.index(name) for name in names]
        units = float(len(np.unique(dependence.units)))
        ready = [self.weighted_run(run, np.zeros(len(run.benchmark), dtype=np.int64), 1) for run in runs]
        nothing = np.full(len(names), np.nan)
        values = [nothing if one is None else one.values()[where] for one in ready]
        moves = [nothing if one is None else one.influences()[:, where] for one in ready]
        table = np.full((4, len(pairs), len(names)), np.nan)
        for k, (a, b) in enumerate(pairs):
            value = values[a] - values[b]
            defined = ~np.isnan(value)
            if defined.any():
                variance, freedom = linear_variance(dependence, (moves[a] - moves[b])[:, defined])
                spread = Spread(value[defined], variance, freedom, np.full(len(variance), units))
                table[:, k, defined] = spread.value, *spread.student(widest=self.widest)
                if units == 1 and self.widest == 2:
                    # Of one unit nothing is known of how much a correlation varies.
                    table[1:, k, defined] = np.array([[-2.0], [2.0], [1.0]])
        return table

    def draws(self, runs: Sequence[Run], measures: Sequence[str], drawn: DrawnQuestions) -> MeasureDraws:
        """NaN where a run has no value of a measure; runs without any are left out."""
        where = tuple(self.joint.index(name) for name in measures)
        both = [(run.name, self.weighted_run(run, drawn.clusters, drawn.n_clusters)) for run in runs]
        ready = {name: of_run for name, of_run in both if of_run is not None}
        wide = None
        if drawn.dependence.crossed:
            part = drawn.dependence.part(drawn.benchmark.questions.measured)
            moves = (np.nan_to_num(of_run.influences()[:, where]) for of_run in ready.values())
            wide = np.stack([inflation(part, moved) for moved in moves])

        def weighted(weights: NDArray[Any]) -> Reals:
            return np.stack([of_run.measures(weights)[:, where] for of_run in ready.values()], axis=1)

        return MeasureDraws(tuple(ready), tuple(measures), drawn.n_clusters, wide, weighted)


def shared_by(dependence: Dependence, interval: IntervalMethod, *, images_alone: bool = False) -> Dependence:
    """What questions share in joint measures: by `clusters` their images."""
    if interval is IntervalMethod.CLUSTERS and (images_alone or dependence.crossed):
        return Dependence(dependence.images, np.zeros((len(dependence), 0), dtype=np.int64))
    return replace(dependence, always_crossed=interval is IntervalMethod.CROSSED)


def outcome_ties(answers: Answers, policy: Ties) -> dict[str, Any]:
    """What is said of ties of right and wrong alone: who gave them counted the ties."""
    return {"policy": str(policy), "questions": None, "rate": None, "note": answers.outcomes.ties}


def tie_facts(
    policy: Ties, tied: NDArray[Any], measures: Mapping[Ties, Mapping[str, float]]
) -> dict[str, Any]:
    """What ties did; where a metric was drawn `tied` has shares of draws, and a tie in any draw counts."""
    return {
        "policy": str(policy),
        "questions": int((tied > 0).sum()),
        "rate": float(tied.mean()),
        "measures": {str(ties): of_all for ties, of_all in measures.items()},
    }


def check_answers(
    table: pa.Table, columns: dict[str, ColumnSchema], ids: tuple[str, ...], *, where: object
) -> pa.Table:
    """The table of answers, checked, with a row for each of the questions `ids` in their order."""
    schema = Schema({"question": ColumnSchema("text", unique=True), **columns})
    checked = check_columns(table, schema, where=where)
    questions = checked["question"].to_pylist()
    if questions != list(ids):
        both = enumerate(zip(questions, ids, strict=False))
        row = next((i for i, (name, other) in both if name != other), min(len(questions), len(ids)))
        raise DataError(
            "the questions are not those of questions.parquet",
            where=f"{where}, row {row + 1}",
            given=questions[row] if row < len(questions) else f"{len(questions)} rows",
            allowed=ids[row] if row < len(ids) else f"{len(ids)} rows",
            hint="was it edited?",
        )
    return checked


#: Raised when the layout of a run folder changes.
SCHEMA = 4

#: What of a result's provenance a manifest says.
_PROVENANCE = ("benchmark", "model", "versions", "interval")

_Name = TypeVar("_Name", bound=StrEnum)

#: The evaluation of every form, by the form's name.
FORMS: Forms[FormEvaluation] = Forms(
    {
        "quad": "counterfoil.evaluation.forms.contrast:QuadEvaluation",
        "choice": "counterfoil.evaluation.forms.contrast:ChoiceEvaluation",
        "paraphrase": "counterfoil.evaluation.forms.contrast:ChoiceEvaluation",
        "preference": "counterfoil.evaluation.forms.contrast:PreferenceEvaluation",
        "statement": "counterfoil.evaluation.forms.statement:StatementEvaluation",
        "gallery": "counterfoil.evaluation.forms.gallery:GalleryEvaluation",
        "rated": "counterfoil.evaluation.forms.rated:RatedEvaluation",
    },
    "evaluation",
)


def of(benchmark: Benchmark) -> FormEvaluation:
    """The evaluation of a benchmark's form."""
    return FORMS[benchmark.questions.form]


def main_measures(benchmark: Benchmark) -> tuple[str, ...]:
    """The measures that comparisons test: the form's main ones, and what the card puts first."""
    return of(benchmark).main_measures(benchmark)


def leading(benchmark: Benchmark, *results: Result) -> str:
    """The main measure that models are ordered by: the card's first that all results have, or any."""
    form, main = of(benchmark), set(main_measures(benchmark))
    held = [main.intersection(result.measures) for result in results] or [main]
    return form.leading(benchmark, set.intersection(*held) or set.union(*held))


def chance(benchmark: Benchmark) -> dict[str, float]:
    """What a model of random, never equal numbers gets on average, per measure, under every tie policy."""
    return of(benchmark).chance(benchmark)


def per_item(
    benchmark: Benchmark,
    answers: Answers,
    *,
    ties: Ties = Ties.STRICT,
    measures: str | Sequence[str] | None = None,
) -> dict[str, Float[ndarray, "n"]]:
    """Each measure's value per question, in [0, 1]; of a gallery per query, NaN where it does not apply.
    `ties` concerns scores only. Correlations with ratings are of all questions together, so they have none.
    """
    measures = [measures] if isinstance(measures, str) else measures
    return of(benchmark).per_item(benchmark, answers, ties=ties, measures=measures)


def evaluate(
    benchmark: Benchmark,
    answers: Answers,
    *,
    model: str | None = None,
    ties: Ties | str = Ties.STRICT,
    interval: IntervalMethod | str = IntervalMethod.AUTO,
    draws: int = 10_000,
    seed: int = 0,
    measures: str | Sequence[str] | None = None,
    provenance: Mapping[str, Any] | None = None,
) -> Result:
    """All measures of one model on one benchmark, with 95 % intervals. `model` is its name in tables, by
    default that of the model which gave the answers; `provenance` adds to what answers and benchmark say.
    Raises `ScoreError` for answers that do not fit, `UnknownNameError`.

    >>> import numpy as np
    >>> from counterfoil.benchmarks.answers import Scores
    >>> from counterfoil.world.sample import quads
    >>> world = quads(40, seed=0)
    >>> scores = Scores(np.random.default_rng(0).normal(size=(len(world), 2, 2)))
    >>> result = evaluate(world, scores, model="random", draws=1000)
    >>> sorted(result.measures)[:3], result.measures["group"].chance
    (['group', 'group_macro', 'group_match'], 0.16666666666666666)
    """
    measures = [measures] if isinstance(measures, str) else measures
    ties, interval = _named(Ties, "policy of ties", ties), _named(IntervalMethod, "interval", interval)
    if model is None:
        identity = answers.provenance.get("model")
        if identity is None:
            raise InputError(
                "these answers do not say which model gave them", allowed="evaluate(..., model=NAME)"
            )
        model = str(identity.get("title") or identity["name"])
    form, questions = of(benchmark), benchmark.questions
    form.check(benchmark, answers, where=model)
    settings = EvaluationSettings(ties, interval, draws, seed, measures)
    ready = form.prepared(benchmark, answers, settings)
    overall = ready.estimates(questions.measured)
    masks = questions.groups(without=ready.without)
    groups = {label: ready.estimates(mask & questions.measured) for label, mask in masks.items()}
    if not form.values_per_item:
        # Measures of all questions together may not be defined; a group without any is left out.
        groups = {label: values for label, values in groups.items() if values}
    facts = {name: fact for name, fact in ready.facts.items() if fact is not None}
    whole = {**provenance_of(benchmark, answers), **(provenance or {}), **facts}
    return Result(benchmark.name, model, overall, groups, ready.ties, whole)


def measured_run(
    benchmark: Benchmark, answers: Answers, result: Result, manifest: Mapping[str, Any] | None = None
) -> Run:
    """The run as `save_run` writes it, in memory alone: its manifest has no digests of files."""
    full = {
        "schema": SCHEMA,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": command(),
        "model": {"name": result.model},
        **provenance_of(benchmark, answers),
        **{key: result.provenance[key] for key in _PROVENANCE if key in result.provenance},
        **(manifest or {}),
    }
    return Run(result.model, benchmark, answers, item_values(benchmark, answers, result), result, full)


def item_values(benchmark: Benchmark, answers: Answers, result: Result) -> dict[str, Float[ndarray, "n"]]:
    """The values per question: of a gallery those measures that the result has, for recall has any K."""
    chosen = tuple(result.measures) if benchmark.questions.directed else None
    return per_item(benchmark, answers, ties=Ties(result.ties["policy"]), measures=chosen)


def _named(names: type[_Name], kind: str, name: str) -> _Name:
    """The member that is called `name`: a plain string fails a test with `is`."""
    if name not in list(names):
        raise UnknownNameError(kind, name, [str(member) for member in names])
    return names(name)
