"""One contract over all forms of question, through the public functions that take any of them."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from contracts import forms
from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.folder import load, save
from counterfoil.evaluation.compare import compare
from counterfoil.evaluation.evaluate import chance, evaluate, main_measures, of, per_item
from counterfoil.evaluation.rank_correlation import sheets_of
from counterfoil.evaluation.run import Run, load_run, save_run
from counterfoil.metrics.ties import Ties

VOTES = np.array([[3.0, 1.0], [0.0, 2.0], [2.0, 2.0], [1.0, 4.0], [5.0, 0.0], [1.0, 2.0]])

CASES: dict[str, Callable[[], Benchmark]] = {
    "quads": lambda: forms.quads(12),
    "quads that share images": lambda: forms.quads(12, share=3),
    "image to captions": lambda: forms.choices({"add": 7, "swap": 3}),
    "caption to images": lambda: forms.choices({"add": 4, "swap": 4}, k=4, correct=2, asks="caption"),
    "image to 2 to 5 captions": lambda: forms.choices({"add": 7, "swap": 4}, k=(2, 5, 3)),
    "caption to 3 to 6 images": lambda: forms.choices(
        {"add": 4, "swap": 5}, k=(6, 3, 4), correct=2, asks="caption"
    ),
    "paraphrases": lambda: forms.paraphrases({"swap": 7, "replace": 4}, per_image=2),
    "preferences": lambda: forms.preferred(VOTES, groups=3, macro=True),
    "paragraphs": lambda: forms.paragraphs_of(6, 2, np.arange(24)),
    "gallery": lambda: forms.gallery(),
    "gallery in parts": lambda: forms.gallery(images=range(8), parts=2, measures=("map_at_r", "recall_at_1")),
    "gallery, some queries": lambda: forms.gallery(images=range(8), asked=slice(2, 7)),
    "gallery by rule": lambda: forms.gallery(rule=True),
    "statements": lambda: forms.statements([True, False] * 12, groups=3),
    "statements of two splits": lambda: forms.statements([True, False, False] * 12, calibration=12),
    "ratings": lambda: forms.rated(forms.grades(24), groups=2),
    "ratings of several": lambda: forms.rated(forms.grades(24, raters=3), raters="apart", decimals=4),
}
#: Ratings have no value per question, nor have statements.
PER_ITEM = [name for name in CASES if not name.startswith(("ratings", "statements"))]
RATINGS = [name for name in CASES if name.startswith("ratings")]
STATEMENTS = [name for name in CASES if name.startswith("statements")]
CONTRASTS = [name for name in PER_ITEM if not name.startswith("gallery")]


def run_of(benchmark, *, seed=0, ties=Ties.STRICT, answers_of=forms.answers_of):
    """A run with scores of few values, or with what was right by them."""
    answers = answers_of(benchmark, forms.scores_of(benchmark, seed=seed))
    result = evaluate(benchmark, answers, model=f"model {seed}", ties=ties, draws=50)
    chosen = tuple(result.measures) if benchmark.card.form == "gallery" else None
    items = per_item(benchmark, answers, ties=ties, measures=chosen)
    return Run(result.model, benchmark, answers, items, result, {"time": "today", "command": "none"})


def value_of(benchmark, scores):
    """The measures of these scores."""
    result = evaluate(benchmark, forms.answers_of(benchmark, scores), model="model", draws=1)
    return {measure: estimate.value for measure, estimate in result.measures.items()}


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def same_answers(first, second):
    """Whether two answers have the same arrays, to the bit."""
    assert type(first) is type(second)
    for name, value in vars(first).items():
        other = getattr(second, name)
        if isinstance(value, np.ndarray):
            assert value.dtype == other.dtype
            assert value.shape == other.shape
            assert value.tobytes() == other.tobytes(), name
        elif type(value).__module__.startswith("counterfoil"):
            same_answers(value, other)


@pytest.mark.parametrize("name", CASES)
def test_captions_that_questions_choose_among_are_those_of_their_pairs(name):
    benchmark = CASES[name]()
    result = benchmark.questions.caption_candidates()
    if name.startswith(("gallery", "caption to", "paraphrases")):
        assert result is None
        return
    assert result is not None
    np.testing.assert_array_equal(result.caption[result.row_of], benchmark.questions.pairs()[0].reshape(-1))
    if result.decides:
        by_truth = benchmark.listed.collect(result.truth[result.row_of])
        np.testing.assert_array_equal(by_truth, forms.without_gaps(benchmark, forms.perfect_of(benchmark)))


@pytest.mark.parametrize("name", PER_ITEM)
def test_a_constant_model_gets_zero_chance_or_one_by_the_policy_of_ties(name):
    benchmark = CASES[name]()
    answers = forms.answers_of(benchmark, forms.scores_of(benchmark, values=1))
    by_chance = chance(benchmark)
    perfect, worst = (value_of(benchmark, sign * forms.perfect_of(benchmark)) for sign in (1, -1))
    assert set(perfect.values()) == {1.0}
    # The last of few items is still among the first ten, and has a reciprocal rank above 0.
    assert all(worst[m] == 0 for m in (worst if name in CONTRASTS else main_measures(benchmark)))
    for ties, expected in {"strict": worst, "half": by_chance, "optimistic": perfect}.items():
        result = evaluate(benchmark, answers, model="constant", ties=ties, draws=50)
        assert set(main_measures(benchmark)) <= set(result.measures)
        for measure, estimate in result.measures.items():
            assert estimate.value == pytest.approx(expected[measure], abs=1e-12), measure
            assert estimate.chance == by_chance[measure]
            assert estimate.low <= estimate.value <= estimate.high


def test_the_mean_rating_correlates_perfectly_with_the_ratings_of_one():
    benchmark = CASES["ratings"]()
    result = value_of(benchmark, forms.perfect_of(benchmark))
    assert set(result) == set(of(benchmark).measure_names(benchmark))
    assert result["kendall_tau_b"] == pytest.approx(1)
    assert result["spearman"] == pytest.approx(1)
    assert value_of(benchmark, -forms.perfect_of(benchmark))["spearman"] == pytest.approx(-1)


@pytest.mark.parametrize("name", RATINGS)
def test_a_constant_model_has_no_correlation_with_ratings_and_the_result_says_why(name):
    benchmark = CASES[name]()
    answers = forms.answers_of(benchmark, forms.scores_of(benchmark, values=1))
    result = evaluate(benchmark, answers, model="constant", draws=50)
    assert result.measures == {}
    assert set(result.provenance["undefined"]) == set(of(benchmark).measure_names(benchmark))


@pytest.mark.parametrize("name", STATEMENTS)
@pytest.mark.parametrize("ties", Ties)
def test_constant_scores_of_statements_get_chance_whatever_the_policy_of_ties(name, ties):
    benchmark = CASES[name]()
    answers = forms.answers_of(benchmark, forms.scores_of(benchmark, values=1))
    perfect = value_of(benchmark, forms.perfect_of(benchmark))
    assert perfect == dict.fromkeys(of(benchmark).measure_names(benchmark), 1.0)
    assert set(value_of(benchmark, 1 - forms.perfect_of(benchmark)).values()) == {0.0}
    result = evaluate(benchmark, answers, model="constant", ties=ties, draws=50)
    assert {m: e.value for m, e in result.measures.items()} == dict.fromkeys(perfect, 0.5)
    assert chance(benchmark) == dict.fromkeys(perfect, 0.5)
    assert result.ties["rate"] == 1


@pytest.mark.parametrize("name", [*CONTRASTS, *STATEMENTS])
def test_outcomes_equal_strict_scores(name):
    benchmark = CASES[name]()
    scores = forms.scores_of(benchmark)
    outcomes = forms.outcomes_of(benchmark, scores)
    by_scores = evaluate(benchmark, forms.answers_of(benchmark, scores), model="model", draws=50)
    by_outcomes = evaluate(benchmark, outcomes, model="model", draws=50)
    assert set(main_measures(benchmark)) - {"auroc"} <= set(by_outcomes.measures)
    for measure, estimate in by_outcomes.measures.items():
        assert estimate == by_scores.measures[measure]
    for label, measures in by_outcomes.groups.items():
        assert measures.items() <= by_scores.groups[label].items()
    values = per_item(benchmark, forms.answers_of(benchmark, scores))
    for measure, value in per_item(benchmark, outcomes).items():
        np.testing.assert_array_equal(value, values[measure])


@pytest.mark.parametrize("name", PER_ITEM)
@pytest.mark.parametrize("ties", [Ties.STRICT, Ties.HALF])
def test_values_per_question_are_those_of_the_chosen_questions_alone(name, ties):
    benchmark = CASES[name]()
    scores = forms.scores_of(benchmark)
    every = per_item(benchmark, forms.answers_of(benchmark, scores), ties=ties)
    # A gallery keeps its queries in their order; other questions may come in any.
    rows = np.array([0, 2, len(benchmark) - 1] if benchmark.card.form == "gallery" else [5, 0, 3])
    chosen = benchmark.select(rows)
    assert chosen.questions.ids == tuple(benchmark.questions.ids[row] for row in rows)
    some = scores if benchmark.card.form == "gallery" else scores[rows]
    result = per_item(chosen, forms.answers_of(chosen, some), ties=ties)
    assert set(result) == set(every)
    for measure, value in result.items():
        np.testing.assert_array_equal(value, every[measure][rows], err_msg=measure)


@pytest.mark.parametrize("name", CASES)
def test_a_group_has_the_values_of_its_questions_alone(name):
    benchmark = CASES[name]()
    scores = forms.scores_of(benchmark)
    result = evaluate(benchmark, forms.answers_of(benchmark, scores), model="model", draws=50)
    masks = benchmark.questions.groups()
    assert set(result.groups) == set(masks)
    for label, mask in masks.items():
        own, answers = benchmark.select(mask), forms.answers_of(benchmark, scores[mask])
        alone = evaluate(own, answers, model="model", draws=50)
        if name in CONTRASTS:
            of_chance = chance(benchmark.select(mask))
            by_group = {m: e.chance for m, e in result.groups[label].items()}
            assert by_group == pytest.approx({m: of_chance[m] for m in by_group})
        # A fitted threshold is that of all questions.
        own = {m: (e.value, e.n) for m, e in alone.measures.items() if not m.startswith("fitted_")}
        assert own.items() <= {m: (e.value, e.n) for m, e in result.groups[label].items()}.items()
        assert {m for m in result.groups[label] if not m.startswith("fitted_")} == set(own)


@pytest.mark.parametrize("name", CASES)
def test_a_draw_of_every_unit_once_is_the_value(name):
    benchmark = CASES[name]()
    runs = tuple(run_of(benchmark, seed=seed) for seed in range(3))
    (sheet,), few = sheets_of({benchmark.name: runs}, main_measures(benchmark))
    assert few == ()
    assert sheet.draws.measures
    for run, values in zip(runs, sheet.draws.values()[0], strict=True):
        for measure, value in zip(sheet.draws.measures, values, strict=True):
            assert value == pytest.approx(run.result.measures[measure].value, abs=1e-12), measure


@pytest.mark.parametrize("name", CASES)
def test_the_difference_of_a_model_from_itself_is_nothing(name):
    first = run_of(CASES[name]())
    (comparison,) = compare([first, replace(first, name="again")])
    for difference in comparison.differences:
        assert difference.value == 0
        assert difference.low <= 0 <= difference.high
        assert difference.p == pytest.approx(1)


@pytest.mark.parametrize("name", CASES)
def test_a_saved_benchmark_is_loaded_to_the_bit(name, tmp_path):
    benchmark = CASES[name]()
    save(benchmark, tmp_path / "first")
    again = load(tmp_path / "first")
    assert again.digest == benchmark.digest
    assert again.questions.ids == benchmark.questions.ids
    assert again.questions.groupings == benchmark.questions.groupings
    assert again.card == benchmark.card
    assert again.captions == benchmark.captions
    assert [image.id for image in again.images] == [image.id for image in benchmark.images]
    np.testing.assert_array_equal(again.dependence.images, benchmark.dependence.images)
    np.testing.assert_array_equal(again.dependence.captions, benchmark.dependence.captions)
    save(again, tmp_path / "second")
    assert contents(tmp_path / "first") == contents(tmp_path / "second")


#: Runs of scores by the policy of halves, and of outcomes, which have no ties.
RUNS = [(name, Ties.HALF, forms.answers_of) for name in CASES]
RUNS += [(name, Ties.STRICT, forms.outcomes_of) for name in [*CONTRASTS, *STATEMENTS]]


@pytest.mark.parametrize(("name", "ties", "answers_of"), RUNS)
def test_a_saved_run_is_loaded_to_the_bit(name, ties, answers_of, tmp_path):
    before = run_of(CASES[name](), ties=ties, answers_of=answers_of)
    save_run(tmp_path / "first", before.benchmark, before.answers, before.result, before.manifest)
    again = load_run(tmp_path / "first")
    assert again.name == before.name
    assert again.benchmark.digest == before.benchmark.digest
    assert again.result.to_json() == before.result.to_json()
    assert again.items.keys() == before.items.keys()
    for measure, value in before.items.items():
        assert again.items[measure].tobytes() == value.tobytes(), measure
    same_answers(before.answers, again.answers)
    result = evaluate(again.benchmark, again.answers, model=before.name, ties=ties, draws=50)
    assert result.measures == before.result.measures
    assert result.groups == before.result.groups
    save_run(tmp_path / "second", again.benchmark, again.answers, again.result, again.manifest)
    assert contents(tmp_path / "first") == contents(tmp_path / "second")
