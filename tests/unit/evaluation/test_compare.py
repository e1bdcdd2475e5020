"""Is the difference more than luck, and which measure decides?"""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from contracts import forms
from counterfoil import catalog
from counterfoil.benchmarks import Outcomes, Scores
from counterfoil.errors import InputError, UnknownNameError
from counterfoil.evaluation.compare import (
    Comparison,
    Difference,
    compare,
    is_significant,
    over_shared,
    remeasured,
)
from counterfoil.evaluation.evaluate import leading, main_measures, of
from counterfoil.evaluation.forms.bootstrap import DrawnQuestions
from counterfoil.evaluation.intervals import macro_groups
from counterfoil.evaluation.rank_correlation import rank_correlation
from counterfoil.report.comparison_tables import main_measures as shown_measures, ranking
from counterfoil.report.rankings_page import ranks_table
from counterfoil.report.results import lead
from counterfoil.stats.bootstrap import cluster_draws
from counterfoil.stats.intervals import macro_weights
from counterfoil.stats.tests import holm
from counterfoil.train.validation import leading as of_training
from evaluation.made_runs import evaluated
from paired_columns import difference_interval
from refusals import refuses


def _quality(benchmark, quality, seed):
    """Scores in which true pairs are `quality` standard deviations above false ones."""
    return Scores(np.random.default_rng(seed).normal(size=(len(benchmark), 2, 2)) + quality * np.eye(2))


def test_a_real_difference_is_found_and_none_is_not(quads):
    benchmark = quads(300)
    qualities = {"weak": 0.5, "weak too": 0.5, "strong": 2.0}
    runs = [evaluated(n, benchmark, _quality(benchmark, q, i)) for i, (n, q) in enumerate(qualities.items())]
    (comparison,) = compare(runs, baseline="weak")
    result = {(d.a, d.measure): d for d in comparison.against_baseline()}
    assert result["strong", "group"].p_holm < 0.01
    assert result["strong", "group"].low > 0
    assert result["weak too", "group"].p_holm > 0.05
    means = [run.items["group"].mean() for run in runs]
    assert result["strong", "group"].value == pytest.approx(means[2] - means[0])


@pytest.mark.parametrize(
    ("interval", "signed"),
    [
        ("clusters", "ci:clusters|clusters:image"),
        ("wilson", "ci:clusters|clusters:question"),
        ("crossed", "ci:crossed|clusters:image+caption"),
    ],
)
def test_a_difference_has_a_signature(quads, interval, signed):
    benchmark = quads(20, share=2)
    runs = [evaluated(f"m{i}", benchmark, _quality(benchmark, 1.0, i)) for i in range(2)]
    (comparison,) = compare(runs, interval=interval)
    assert comparison.differences[0].signature.startswith(f"i2t|ties:strict|{signed}|v")


@pytest.mark.parametrize(("share", "given"), [(1, True), (2, False)])
def test_mcnemar_is_only_for_independent_questions(quads, share, given):
    benchmark = quads(20, share=share)
    runs = [evaluated(f"m{i}", benchmark, _quality(benchmark, 1.0, i)) for i in range(2)]
    assert all((d.mcnemar is not None) == given for d in compare(runs)[0].differences)


def test_one_comparison_per_benchmark(quads, choices):
    quad, choice = quads(6), choices({"add": 4, "swap": 3})
    right = Outcomes({"accuracy": np.array([1, 0, 1, 1, 0, 1, 0], dtype=bool)})
    runs = [evaluated(name, quad, _quality(quad, 1.0, seed)) for seed, name in enumerate("ab")]
    runs.append(evaluated("a", choice, right))
    sizes = [(c.benchmark, len(c.runs), len(c.differences)) for c in compare(runs, baseline="a")]
    assert sizes == [("toy", 2, 3), ("toy-choice", 1, 0)]


def test_runs_that_cannot_be_paired_are_refused(quads):
    short, long = quads(5), quads(6)
    a, b = evaluated("a", short, _quality(short, 1, 0)), evaluated("b", long, _quality(long, 1, 0))
    refuses(r"ask different questions.*'a' 5 and 'b' 6", compare, [a, b], error=InputError)
    refuses("have one name", compare, [a, a], error=InputError)
    with pytest.raises(UnknownNameError, match="did you mean 'clip-large'"):
        compare([evaluated("clip-large", short, _quality(short, 1, 0)), a], baseline="clip-larg")


@pytest.mark.parametrize(
    "benchmark", [forms.quads(12), forms.statements([True, False] * 8), forms.rated(forms.grades(20))]
)
def test_a_run_is_measured_anew_with_other_ties_in_every_form(benchmark):
    answers = Scores(forms.scores_of(benchmark, values=3))
    strict, half = (evaluated("m", benchmark, answers, ties=ties, draws=50) for ties in ("strict", "half"))
    result = remeasured(strict, ties="half", draws=50)
    assert result.result.measures == half.result.measures
    assert result.result.ties["policy"] == "half"
    assert {name: values.tolist() for name, values in result.items.items()} == {
        name: values.tolist() for name, values in half.items.items()
    }


def test_runs_are_compared_over_the_questions_that_all_answer(quads):
    whole = quads(30)
    rows = np.array([3, 7, 8, 20, 29])
    part = whole.part(rows, "some")
    answers = [_quality(whole, 1.0, seed) for seed in range(3)]
    runs = [evaluated(f"m{seed}", whole, item) for seed, item in enumerate(answers)]
    people = evaluated("people", part, answers[2].take(rows))
    notes: list[str] = []
    result = over_shared([*runs, people], note=notes.append, draws=100)
    expected = [evaluated(f"m{seed}", part, item.take(rows)) for seed, item in enumerate(answers)]
    for run, other in zip(result, [*expected, people], strict=True):
        assert run.benchmark.questions.ids == part.questions.ids
        assert {name: run.items[name].tolist() for name in run.items} == {
            name: other.items[name].tolist() for name in other.items
        }
        for measure, value in other.result.measures.items():
            assert run.result.measures[measure].value == value.value
    assert len(notes) == 3
    assert "'m0' is measured on the 5 of its questions that all runs answer" in notes[0]
    # The model that gave the very answers of the sample is no different from it.
    (comparison,) = compare(result, baseline="people")
    assert {d.value for d in comparison.against_baseline() if d.a == "m2"} == {0.0}
    alone = evaluated("b", whole.part(np.array([0]), "one"), answers[0].take(np.array([0])))
    refuses("is answered by all runs", over_shared, [people, alone], error=InputError, note=notes.append)


def test_galleries_are_not_cut_to_some_queries_nor_paired_with_others(galleries):
    asked, fewer = galleries(parts=False, values=30), galleries(parts=False, values=30)
    run, other = _ranked("a", asked, asked.scores), _ranked("b", fewer, fewer.scores)
    renamed = replace(other.benchmark.questions, ids=(*other.benchmark.questions.ids[:-1], "another"))
    other = replace(other, benchmark=replace(other.benchmark, questions=renamed))
    refuses("cannot be cut to some questions", over_shared, [run, other], error=InputError, note=print)
    with pytest.raises(InputError, match="other galleries, or other right answers"):
        compare([run, _ranked("b", galleries(gains=True), asked.scores)])


def _ranked(name, asked, scores):
    return evaluated(name, asked.benchmark, asked.scored(scores).rankings, draws=50)


@pytest.mark.parametrize("parts", [False, True])
def test_galleries_are_compared(galleries, parts):
    asked = galleries(parts=parts, values=30)
    own = np.zeros(asked.scores.shape)
    own[np.arange(36) // 3, np.arange(36)] = 15
    runs = [_ranked("good", asked, asked.scores + own), _ranked("bad", asked, asked.scores)]
    (comparison,) = compare(runs)
    assert [d.measure for d in comparison.differences] == ["i2t_map_at_r", "t2i_map_at_r", "mean_map_at_r"]
    for d in comparison.differences:
        gap = runs[0].result.measures[d.measure].value - runs[1].result.measures[d.measure].value
        assert d.value == pytest.approx(gap, abs=1e-15)
        assert d.low <= d.value <= d.high
        assert d.mcnemar is None
    assert comparison.differences[2].p < 0.01
    # Turned around, everything changes its sign and nothing else.
    (turned,) = compare(runs[::-1])
    for d, t in zip(comparison.differences, turned.differences, strict=True):
        assert (t.value, t.p) == (-d.value, d.p)
        assert (t.low, t.high) == (pytest.approx(-d.high, abs=1e-12), pytest.approx(-d.low, abs=1e-12))
    (same,) = compare([runs[0], replace(runs[0], name="again")])
    assert all((d.value, d.p) == (0.0, 1.0) and d.low < 0 < d.high for d in same.differences)


def test_the_test_of_a_gallery_is_over_images(galleries):
    """The twelve images with their captions are units, and directions weigh a half each."""
    asked = galleries(values=30)
    runs = [_ranked("a", asked, asked.scores), _ranked("b", asked, asked.scores[::-1])]
    (comparison,) = compare(runs)
    values = np.stack([run.items["mean_map_at_r"] for run in runs], axis=1)
    image = np.concatenate([np.arange(12), np.arange(36) // 3])
    direction, known = np.repeat([0, 1], [12, 36]), ~np.isnan(values[:, 0])
    ends = difference_interval(values[known], image[known], np.array([[0, 1]]), groups=direction[known])
    result = comparison.differences[2]
    assert (result.low, result.high, result.p) == pytest.approx([item[0] for item in ends])


def test_decided_is_what_interval_and_test_both_say():
    result = Difference("pairs", "accuracy", "a", "b", 0.1, 0.02, 0.18, 0.01, 0.03, None)
    assert is_significant(result)
    assert is_significant(replace(result, value=-0.1, low=-0.18, high=-0.02))
    assert not is_significant(replace(result, p_holm=0.06))
    assert not is_significant(replace(result, low=-0.01))


#: Cards whose first measure is a number of all questions together have tests of their own.
FORMS = ("quad", "choice", "paraphrase", "preference", "statement")
CARDS = [name for name in catalog.BENCHMARKS if catalog.benchmark_card(name).form in FORMS]


def of_card(name):
    """A toy benchmark with the card of a real one, and groups of four questions."""
    card = catalog.benchmark_card(name)
    made = {
        "quad": lambda: forms.quads(12),
        "choice": lambda: forms.choices({"a": 12}),
        "paraphrase": lambda: forms.paraphrases({"a": 12}),
        "preference": lambda: forms.preferred(np.tile([[3.0, 1.0], [1.0, 3.0]], (6, 1))),
        "statement": lambda: forms.statements([True, False] * 6),
    }[card.form]()
    sizes = {"pair": 2, "set": 4, "same_question": 2, "same_image": 2, "quartet": 4}
    labels = {name: tuple(f"{name} {i // size}" for i in range(12)) for name, size in sizes.items()}
    questions = replace(made.questions, groupings={**made.questions.groupings, **labels})
    return replace(made, card=card, questions=questions)


@pytest.mark.parametrize("name", CARDS)
def test_models_are_ordered_by_the_first_measure_of_the_card_and_tested_on_it(name):
    benchmark = of_card(name)
    first = benchmark.card.measures[0]
    assert leading(benchmark) == first
    assert first in main_measures(benchmark)
    if benchmark.card.form != "statement":
        assert of_training(benchmark) == first


def runs_of(benchmark, answers):
    return [evaluated(name, benchmark, Scores(scores), draws=200) for name, scores in answers.items()]


def chosen(right):
    """Scores of two candidates, of which the first is right."""
    return np.stack([right, ~right], axis=1) * 1.0


def test_the_page_on_cola_leads_by_t2i_where_group_says_the_other():
    """One model has both captions find their images in 60 of 100, the other has more groups right."""
    benchmark = of_card("cola")
    benchmark = replace(forms.quads(100), card=benchmark.card)
    only_t2i, both, nothing = np.array([[0.5, 0.0], [0.8, 1.0]]), np.eye(2), 1 - np.eye(2)
    t2i = np.stack([only_t2i if i < 60 else nothing for i in range(100)])
    group = np.stack([both if i >= 70 else nothing for i in range(100)])
    (comparison,) = compare(runs_of(benchmark, {"grouped": group, "by-text": t2i}))
    values = {run.name: run.result for run in comparison.runs}
    assert values["by-text"]["t2i"].value > values["grouped"]["t2i"].value
    assert values["by-text"]["group"].value < values["grouped"]["group"].value
    assert ranking(comparison) == ["by-text", "grouped"]
    assert lead(comparison).startswith("by-text has T2I 60.00")
    assert lead(comparison).endswith("of 2, significantly (p < 0.05 after Holm) above the other.")


def test_a_mean_over_groups_is_tested_as_it_weighs_the_questions():
    """A large group on which the one model is right, and small ones on which the other is."""
    subsets = {"large": 80, **{f"small {i}": 4 for i in range(10)}}
    benchmark = forms.choices(subsets, measures=("accuracy_macro", "accuracy"))
    labels = benchmark.questions.groupings["subset"]
    rng = np.random.default_rng(0)
    large = np.array([label == "large" for label in labels])
    right = {
        "often": np.where(large, rng.random(120) < 0.9, rng.random(120) < 0.4),
        "evenly": np.where(large, rng.random(120) < 0.5, rng.random(120) < 0.95),
    }
    (comparison,) = compare(runs_of(benchmark, {name: chosen(hit) for name, hit in right.items()}))
    result = {d.measure: d for d in comparison.differences}
    assert set(result) == {"accuracy_macro", "accuracy"}
    # What each question adds to the mean over groups, group by group.
    weights = np.array([1 / labels.count(label) / len(set(labels)) for label in labels])
    gaps = weights * (right["often"].astype(float) - right["evenly"])
    macro = result["accuracy_macro"]
    assert macro.value == pytest.approx(gaps.sum())
    assert macro.value < 0 < result["accuracy"].value
    assert macro.low < macro.value < macro.high < 0
    assert macro.mcnemar is None
    assert result["accuracy"].mcnemar is not None
    flips = np.random.default_rng(1).choice([-1.0, 1.0], (4000, 120)) @ gaps
    assert macro.p == pytest.approx((1 + (abs(flips) >= abs(gaps.sum()) - 1e-12).sum()) / 4001, abs=0.01)
    assert lead(comparison).startswith("evenly has Accuracy (macro)")
    # The same questions without groups of their own: the difference is that of all.
    assert result["accuracy"].value == pytest.approx(right["often"].mean() - right["evenly"].mean())


@pytest.mark.parametrize("interval", ["auto", "clusters", "crossed", "wilson"])
def test_means_over_groups_of_groups_have_intervals_of_every_kind(interval):
    benchmark = forms.quads(60, share=2, macro="type > half", measures=("group_macro",))
    halves = tuple("one" if i < 40 else "two" for i in range(60))
    questions = replace(benchmark.questions, groupings={**benchmark.questions.groupings, "half": halves})
    benchmark = replace(benchmark, questions=questions)
    rng = np.random.default_rng(2)
    scores = {name: rng.normal(size=(60, 2, 2)) + k * np.eye(2) for k, name in enumerate("ab")}
    runs = runs_of(benchmark, scores)
    (comparison,) = compare(runs, interval=interval)
    assert main_measures(benchmark) == ("i2t", "t2i", "group_macro")
    (macro,) = [d for d in comparison.differences if d.measure == "group_macro"]
    assert macro.value == pytest.approx(
        runs[0].result["group_macro"].value - runs[1].result["group_macro"].value
    )
    assert macro.low < macro.value < macro.high
    assert 0 < macro.p <= macro.p_holm <= 1
    # Types weigh the same, and halves in them.
    types = questions.groupings["type"]
    group = [run.items["group"] for run in runs]
    cells = [
        np.mean([group[0][i] - group[1][i] for i in range(60) if (types[i], halves[i]) == cell])
        for cell in product(("add", "swap"), ("one", "two"))
    ]
    assert macro.value == pytest.approx(np.mean(cells))


def test_what_all_models_have_is_led_by():
    """VSR's authors report accuracy, which scores that are no probabilities do not have."""
    benchmark = of_card("vsr-random")
    truth = benchmark.statements.truth
    runs = runs_of(benchmark, {"sure": 0.3 + 0.4 * truth, "cosine": 20.0 * truth + np.arange(12)})
    alone = Comparison(benchmark.name, (runs[0],), None, ())
    both = Comparison(benchmark.name, tuple(runs), None, ())
    assert lead(alone).startswith("sure has Accuracy 100")
    assert "Accuracy, fitted" in lead(both)
    assert shown_measures(both)[0] == "accuracy"


def test_a_baseline_makes_two_families_under_two_headings():
    benchmark = forms.quads(60)
    rng = np.random.default_rng(3)
    scores = {f"m{k}": rng.normal(size=(60, 2, 2)) + k * 0.3 * np.eye(2) for k in range(4)}
    (comparison,) = compare(runs_of(benchmark, scores), baseline="m0")
    first, second = comparison.families()
    # Three others, three main measures; in all six pairs of models.
    assert (len(first.differences), len(comparison.differences)) == (3 * 3, 6 * 3)
    assert first.differences == comparison.against_baseline()
    assert {d.b for d in first.differences} == {"m0"}
    assert not {"m0"} & {name for d in second.differences for name in (d.a, d.b)}
    assert len(first.differences) + len(second.differences) == len(comparison.differences)
    for family in (first, second):
        p = np.array([d.p for d in family.differences])
        np.testing.assert_allclose([d.p_holm for d in family.differences], holm(p))
    # The sentence is of one family.
    assert lead(comparison).endswith("significantly (p < 0.05 after Holm) above the baseline m0.")
    (whole,) = compare(runs_of(benchmark, scores))
    assert whole.families() == (whole,)
    p, p_holm = np.array([(d.p, d.p_holm) for d in whole.differences]).T
    np.testing.assert_allclose(p_holm, holm(p))


def unequal(measures, macro="subset", name="toy"):
    """Four models: the more often one is right in the large group, the less often in the small ones."""
    subsets = {"large": 40, **{f"small {i}": 4 for i in range(5)}}
    benchmark = forms.choices(subsets, measures=measures, macro=macro, name=name)
    # Groups of groups: the large one alone, and all others.
    sizes = tuple(label.partition(" ")[0] for label in benchmark.questions.groupings["subset"])
    questions = replace(benchmark.questions, groupings={**benchmark.questions.groupings, "size": sizes})
    benchmark = replace(benchmark, questions=questions)
    place = np.concatenate([np.arange(40), np.tile(np.arange(4), 5)])
    limits = {f"m{k}": np.where(np.array(sizes) == "large", 12 + 8 * k, 4 - k) for k in range(4)}
    right = {model: place < limit for model, limit in limits.items()}
    return benchmark, runs_of(benchmark, {name: chosen(hit) for name, hit in right.items()})


@pytest.mark.parametrize("measures", [("accuracy_macro",), ("accuracy_macro", "accuracy")])
def test_models_are_in_the_order_of_the_first_measure_of_the_card(measures):
    _, runs = unequal(measures)
    result = rank_correlation([*runs, *unequal(measures, name="other")[1]], draws=20)
    assert {c.measure for c in result.columns} == set(measures)
    assert result.columns[result.lead].name == "toy:accuracy_macro"
    assert result.values[:, result.lead] == pytest.approx(
        [run.result["accuracy_macro"].value for run in runs]
    )
    (comparison,) = compare(runs)
    assert [row.name for row in ranks_table(result).rows] == ranking(comparison) == ["m0", "m1", "m2", "m3"]
    # By all questions alike the order is the contrary one.
    assert np.argsort([run.result["accuracy"].value for run in runs]).tolist() == [0, 1, 2, 3]


def test_measures_that_are_asked_for_order_as_they_are_asked_for():
    _, runs = unequal(("accuracy_macro", "accuracy"))
    result = rank_correlation(runs, measures=["accuracy", "accuracy_macro"], draws=20)
    assert [c.measure for c in result.columns] == ["accuracy", "accuracy_macro"]
    assert [row.name for row in ranks_table(result).rows] == ["m3", "m2", "m1", "m0"]
    (pair,) = result.pairs
    assert pair.tau == -1


@pytest.mark.parametrize("macro", ["subset", "size > subset"])
def test_a_draw_weighs_groups_as_the_mean_over_them_does(macro):
    """Against the definition, question by question; a group of which nothing is drawn is left out."""
    benchmark, runs = unequal(("accuracy_macro",), macro)
    questions = np.arange(60)
    draws = of(benchmark).draws(
        runs, ["accuracy_macro", "accuracy"], DrawnQuestions(benchmark, questions, 60, benchmark.dependence)
    )
    weights = np.concatenate(list(cluster_draws(60, 50, seed=3)))
    result = draws.drawn(weights)
    groups, shares = macro_groups(benchmark, np.ones(60, dtype=bool))
    missed = 0
    for draw, copies in enumerate(weights.astype(int)):
        rows = np.repeat(questions, copies)
        own = None if shares is None else shares / shares[np.unique(groups[rows])].sum()
        missed += len(np.unique(groups[rows])) < 6
        for model, run in enumerate(runs):
            values = run.items["accuracy"][rows]
            assert result[draw, model, 0] == pytest.approx(macro_weights(groups[rows], own) @ values)
            assert result[draw, model, 1] == pytest.approx(values.mean())
    assert missed


def test_a_gallery_is_ordered_by_the_mean_of_both_directions(mixed):
    result = rank_correlation(mixed, draws=5)
    assert result.columns[result.lead].name == "whole:mean_map_at_r"
