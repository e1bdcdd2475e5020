"""One scorer on one benchmark: per-item values, then numbers with intervals, over everything and by group."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, TypeVar

from jaxtyping import Float
from numpy import ndarray

from counterfoil.benchmarks.answers import Answers, command, provenance_of
from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.forms import Forms
from counterfoil.errors import InputError, UnknownNameError
from counterfoil.evaluation.forms.base import EvaluationSettings, FormEvaluation
from counterfoil.evaluation.intervals import IntervalMethod as IntervalMethod
from counterfoil.evaluation.result import Result, Run
from counterfoil.metrics.ties import Ties

#: Raised when the layout of a run folder changes.
SCHEMA = 4

#: What of a result's provenance a manifest says.
_MADE = ("benchmark", "scorer", "versions", "interval")

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
    """The main measure that scorers are ordered by: the card's first that all results have, or any."""
    form, main = of(benchmark), set(main_measures(benchmark))
    held = [main.intersection(result.measures) for result in results] or [main]
    return form.leading(benchmark, set.intersection(*held) or set.union(*held))


def chance(benchmark: Benchmark) -> dict[str, float]:
    """What a scorer of random, never equal numbers gets on average, per measure, under every tie policy."""
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
    scorer: str | None = None,
    ties: Ties | str = Ties.STRICT,
    interval: IntervalMethod | str = IntervalMethod.AUTO,
    draws: int = 10_000,
    seed: int = 0,
    measures: str | Sequence[str] | None = None,
    provenance: Mapping[str, Any] | None = None,
) -> Result:
    """All measures of one scorer on one benchmark, with 95 % intervals. `scorer` is its name in tables, by
    default that of the scorer which gave the answers; `provenance` adds to what answers and benchmark say.
    Raises `ScoreError` for answers that do not fit, `UnknownNameError`.

    >>> import numpy as np
    >>> from counterfoil.benchmarks.answers import Scores
    >>> from counterfoil.world.sample import quads
    >>> world = quads(40, seed=0)
    >>> scores = Scores(np.random.default_rng(0).normal(size=(len(world), 2, 2)))
    >>> result = evaluate(world, scores, scorer="random", draws=1000)
    >>> sorted(result.measures)[:3], result.measures["group"].chance
    (['group', 'group_macro', 'group_match'], 0.16666666666666666)
    """
    measures = [measures] if isinstance(measures, str) else measures
    ties, interval = _named(Ties, "policy of ties", ties), _named(IntervalMethod, "interval", interval)
    if scorer is None:
        identity = answers.made.get("scorer")
        if identity is None:
            raise InputError(
                "these answers do not say which scorer gave them", allowed="evaluate(..., scorer=NAME)"
            )
        scorer = str(identity.get("title") or identity["name"])
    form, questions = of(benchmark), benchmark.questions
    form.check(benchmark, answers, where=scorer)
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
    return Result(benchmark.name, scorer, overall, groups, ready.ties, whole)


def measured_run(
    benchmark: Benchmark, answers: Answers, result: Result, manifest: Mapping[str, Any] | None = None
) -> Run:
    """The run as `save_run` writes it, in memory alone: its manifest has no digests of files."""
    full = {
        "schema": SCHEMA,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": command(),
        "scorer": {"name": result.scorer},
        **provenance_of(benchmark, answers),
        **{key: result.provenance[key] for key in _MADE if key in result.provenance},
        **(manifest or {}),
    }
    return Run(result.scorer, benchmark, answers, item_values(benchmark, answers, result), result, full)


def item_values(benchmark: Benchmark, answers: Answers, result: Result) -> dict[str, Float[ndarray, "n"]]:
    """The values per question: of a gallery those measures that the result has, for recall has any K."""
    chosen = tuple(result.measures) if benchmark.questions.directed else None
    return per_item(benchmark, answers, ties=Ties(result.ties["policy"]), measures=chosen)


def _named(names: type[_Name], kind: str, name: str) -> _Name:
    """The member that is called `name`: a plain string fails a test with `is`."""
    if name not in list(names):
        raise UnknownNameError(kind, name, [str(member) for member in names])
    return names(name)
