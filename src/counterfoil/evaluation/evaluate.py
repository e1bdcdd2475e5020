"""One scorer on one benchmark: per-item values, then numbers with intervals, over everything and by group."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, TypeVar

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from numpy.typing import NDArray

from counterfoil.data import provenance as origin
from counterfoil.data.benchmark import Benchmark
from counterfoil.data.forms import Choice, Gallery, Preference, Quad, Rated
from counterfoil.data.scores import Answers, Outcomes, Rankings, Scores
from counterfoil.errors import InputError, ScoreError, UnknownNameError
from counterfoil.evaluation import question_means
from counterfoil.evaluation.galleries import chance as gallery_chance
from counterfoil.evaluation.galleries import measures as gallery_measures
from counterfoil.evaluation.galleries import retrieval
from counterfoil.evaluation.galleries.gallery import evaluate_gallery, no_folds
from counterfoil.evaluation.judged import rated
from counterfoil.evaluation.question_means import IntervalMethod as IntervalMethod
from counterfoil.evaluation.result import Estimate, Result
from counterfoil.metrics import choice, preference, quad
from counterfoil.metrics.measure import DIRECTIONS, Measure
from counterfoil.metrics.measures import find, of_form
from counterfoil.metrics.ties import Ties

_Name = TypeVar("_Name", bound=StrEnum)


def main_measures(benchmark: Benchmark) -> tuple[str, ...]:
    """The measures that comparisons test: what papers put first.

    For a gallery the first measure of its card (R@1 where it names none), in both directions and their mean;
    for ratings the correlations of its card, or all.
    """
    if isinstance(benchmark.questions, Rated):
        return rated.main_measures(benchmark)
    main = tuple(measure.name for measure in of_form(benchmark.questions.form) if measure.main)
    if isinstance(benchmark.questions, Gallery):
        first = (benchmark.card.measures or main)[0]
        return tuple(f"{side}_{first}" for side in DIRECTIONS)
    return main


def measure_names(benchmark: Benchmark) -> tuple[str, ...]:
    """Every measure that scores of this benchmark can give, in the order reports show them.

    Of a gallery those that are reported by default: recall can be asked for at any K.
    """
    if isinstance(benchmark.questions, Gallery):
        return gallery_measures.measure_names(benchmark)
    return tuple(measure.name for measure in _declared(benchmark))


def _declared(benchmark: Benchmark) -> tuple[Measure, ...]:
    """The measures of a benchmark; those over groups where its card names the groups."""
    known = of_form(benchmark.questions.form)
    return tuple(measure for measure in known if not measure.macro_of or benchmark.card.macro)


def check_measures(benchmark: Benchmark, names: str | Sequence[str]) -> None:
    """Raise what `evaluate` would where a benchmark lacks a measure, before anything is scored."""
    names = [names] if isinstance(names, str) else names
    if isinstance(benchmark.questions, Gallery):
        gallery_measures.expand(names, benchmark)
        return
    available = measure_names(benchmark)
    for name in names:
        if name not in available:
            raise UnknownNameError("measure", name, available, where=benchmark.name)


def chance(benchmark: Benchmark) -> dict[str, float]:
    """What a scorer of random, never equal numbers gets on average, per measure.

    A tie policy does not change it, since such a scorer has no ties; a constant scorer gets 0 under
    `strict`, exactly this under `half`, and 1 under `optimistic`. In a gallery it is the expected value under
    a random order; a correlation is 0.
    """
    if isinstance(benchmark.questions, Gallery):
        return gallery_chance.chance(benchmark)
    return {measure.name: _expected(measure, benchmark.questions) for measure in _declared(benchmark)}


def _expected(measure: Measure, questions: Quad | Choice | Preference | Rated) -> float:
    """Chance of a measure as a number: as declared, else what a constant scorer gets under `half`."""
    if measure.macro_of:
        measure = find(measure.macro_of, measure.form) or measure
    if measure.expected is not None:
        return measure.expected
    return float(_values_of(measure, questions, np.zeros((1, *questions.shape[1:])), Ties.HALF)[0])


def per_item(
    benchmark: Benchmark,
    answers: Answers,
    *,
    ties: Ties = Ties.STRICT,
    measures: str | Sequence[str] | None = None,
) -> dict[str, Float[ndarray, "n"]]:
    """Each measure's value per question, in [0, 1]; averages of these are the measures.

    From scores every measure follows; from outcomes those that right and wrong decide (group match needs
    scores). Outcomes know no ties, so `ties` concerns scores only. In a gallery a question is a query, and a
    value is NaN where the measure is of the other direction or the query has no right answer. A correlation
    with ratings is of all questions together, so there it is empty. `measures` chooses, by default all.
    """
    measures = [measures] if isinstance(measures, str) else measures
    questions = benchmark.questions
    if isinstance(questions, Rated):
        return {}
    if isinstance(questions, Gallery):
        assert isinstance(answers, Rankings)  # `check` has seen to it
        return retrieval.per_item(benchmark, answers, ties=ties, measures=measures)
    values = _paired_values(questions, answers, ties)
    return values if measures is None else {name: values[name] for name in measures if name in values}


def _paired_values(
    questions: Quad | Choice | Preference, answers: Answers, ties: Ties
) -> dict[str, Float[ndarray, "n"]]:
    if isinstance(answers, Scores):
        return {
            measure.name: _values_of(measure, questions, answers.values, ties)
            for measure in of_form(questions.form)
            if not measure.macro_of
        }
    assert isinstance(answers, Outcomes)  # `check` has seen to it
    if not isinstance(questions, Quad):
        return {"accuracy": answers.right["accuracy"].astype(np.float64)}
    return quad.from_directions(answers.right)


def _values_of(
    measure: Measure, questions: Quad | Choice | Preference | Rated, scores: NDArray[np.float64], ties: Ties
) -> Float[ndarray, "n"]:
    """A measure of each of the first questions, from their scores."""
    if isinstance(questions, Preference):
        return measure(scores, questions.label[: len(scores)], ties=ties)
    if isinstance(questions, Choice):
        return measure(scores, correct=questions.correct, ties=ties)
    return measure(scores, ties=ties)


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
    """All measures of one scorer on one benchmark, with 95 % intervals.

    `scorer` is what tables call it, by default the name of the scorer that the engine asked. `provenance`
    adds to what the answers and the benchmark say themselves (scorer, weights, versions, the digest of the
    questions).
    `measures`, a name or several, are those reported (default: all that the answers allow). Raises
    `ScoreError` where the answers are not finite or do not fit the benchmark, `UnknownNameError` for an
    unknown measure, policy of ties or interval.

    >>> from counterfoil.world.sample import quads
    >>> world = quads(40, seed=0)
    >>> scores = Scores(np.random.default_rng(0).normal(size=(len(world), 2, 2)))
    >>> result = evaluate(world, scores, scorer="random", draws=1000)
    >>> sorted(result.measures)[:3], result.measures["group"].chance
    (['group', 'group_match', 'i2t'], 0.16666666666666666)
    """
    measures = [measures] if isinstance(measures, str) else measures
    ties, interval = _named(Ties, "policy of ties", ties), _named(IntervalMethod, "interval", interval)
    scorer = _scorer(answers) if scorer is None else scorer
    check(benchmark, answers, where=scorer)
    provenance = {**origin.of(benchmark, answers), **(provenance or {})}
    if isinstance(answers, Rankings):
        if interval is IntervalMethod.FOLDS:
            raise no_folds(benchmark)
        return evaluate_gallery(
            benchmark,
            answers,
            scorer=scorer,
            ties=ties,
            interval=interval,
            draws=draws,
            seed=seed,
            measures=measures,
            provenance=provenance,
        )
    if isinstance(benchmark.questions, Rated):
        assert isinstance(answers, Scores)  # `check` has seen to it
        if interval in (IntervalMethod.WILSON, IntervalMethod.FOLDS):
            rated.refuse(interval, benchmark)
        return rated.evaluate_rated(
            benchmark,
            answers,
            scorer=scorer,
            ties=ties,
            interval=interval,
            draws=draws,
            seed=seed,
            measures=measures,
            provenance=provenance,
        )
    values = per_item(benchmark, answers, ties=ties)
    names = _chosen(measures, benchmark, values)
    by_chance = chance(benchmark)
    everything = np.ones(len(benchmark), dtype=bool)

    def estimates(mask: NDArray[np.bool_]) -> dict[str, Estimate]:
        return question_means.estimates(
            benchmark, values, names, mask, by_chance, interval=interval, draws=draws, seed=seed
        )

    return Result(
        benchmark=benchmark.name,
        scorer=scorer,
        measures=estimates(everything),
        groups={label: estimates(mask) for label, mask in benchmark.questions.groups().items()},
        ties=_ties(benchmark, answers, ties),
        provenance={
            **provenance,
            "interval": question_means.facts(benchmark, interval, draws=draws, seed=seed),
        },
    )


def _scorer(answers: Answers) -> str:
    """What the scorer of `answers` is called."""
    made = answers.made.get("scorer")
    if made is None:
        raise InputError(
            "these answers do not say which scorer gave them", allowed="evaluate(..., scorer=NAME)"
        )
    return str(made.get("title") or made["name"])


def _named(names: type[_Name], kind: str, name: str) -> _Name:
    """The member that is called `name`: a plain string fails a test with `is`."""
    if name not in list(names):
        raise UnknownNameError(kind, name, [str(each) for each in names])
    return names(name)


def check(benchmark: Benchmark, answers: Answers, *, where: str) -> None:
    """Raise `ScoreError` unless `answers` answer every question of `benchmark`."""
    if isinstance(benchmark.questions, Gallery):
        retrieval.check(benchmark, answers, where=where)
        return
    if isinstance(answers, Rankings):
        raise ScoreError(
            "rankings answer a gallery only", where=where, given=f"form '{benchmark.questions.form}'"
        )
    if isinstance(benchmark.questions, Rated):
        rated.check(benchmark, answers, where=where)
        return
    if isinstance(answers, Scores):
        answers.check(benchmark, where=where)
        return
    needed = (
        ("ipos2t", "ineg2t", "tpos2i", "tneg2i") if isinstance(benchmark.questions, Quad) else ("accuracy",)
    )
    for name in needed:
        if name not in answers.right:
            raise ScoreError(
                f"no outcomes for '{name}'", where=where, given=tuple(answers.right), allowed=needed
            )
        if answers.right[name].shape != (len(benchmark),):
            raise ScoreError(
                f"outcomes of '{name}' have the wrong number of rows",
                where=where,
                given=len(answers.right[name]),
                allowed=str(len(benchmark)),
            )


def _chosen(
    measures: Sequence[str] | None, benchmark: Benchmark, values: Mapping[str, NDArray[np.float64]]
) -> tuple[str, ...]:
    available = tuple(m.name for m in _declared(benchmark) if (m.macro_of or m.name) in values)
    if measures is None:
        return available
    for name in measures:
        if name not in available:
            raise UnknownNameError("measure", name, available, where=benchmark.name)
    return tuple(name for name in available if name in measures)


def _ties(benchmark: Benchmark, answers: Scores | Outcomes, policy: Ties) -> dict[str, Any]:
    """What ties did: in how many questions, and the measures under every policy.

    Where a metric was drawn, `questions` counts those with a tie in any draw, and `rate` is the share of all
    draws. `second` is the accuracy on preferences where a tie is a vote for the second candidate, as Polos
    counts Pascal-50S; FOIL's and ActivityNet-FOIL's official code is `strict`.
    """
    if isinstance(answers, Outcomes):
        return {
            "policy": str(policy),
            "questions": None,
            "rate": None,
            "note": answers.ties,
        }
    questions = benchmark.questions
    second = {}
    if isinstance(questions, Preference):
        tied = preference.tied(answers.values, questions.label)
        votes = preference.ties_to_second(answers.values, questions.label)
        second = {"second": {"accuracy": float(votes.mean())}}
    elif isinstance(questions, Choice):
        tied = choice.tied(answers.values, correct=questions.correct)
    else:
        tied = quad.tied(answers.values)
    return {
        "policy": str(policy),
        "questions": int((tied > 0).sum()),
        "rate": float(tied.mean()),
        "measures": {
            str(other): {
                name: float(value.mean()) for name, value in per_item(benchmark, answers, ties=other).items()
            }
            for other in Ties
        },
        **second,
    }
