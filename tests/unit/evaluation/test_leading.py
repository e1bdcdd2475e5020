"""Which measure decides: what a benchmark's authors put first, tested and ranked by, macro means too."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from contracts import forms
from counterfoil import catalog
from counterfoil.benchmarks import Scores
from counterfoil.evaluation.compare import Comparison, compare
from counterfoil.evaluation.evaluate import leading, main_measures, of
from counterfoil.evaluation.forms.bootstrap import DrawnQuestions
from counterfoil.evaluation.intervals import macro_groups
from counterfoil.evaluation.rank_correlation import rank_correlation
from counterfoil.report.comparison_tables import main_measures as shown_measures
from counterfoil.report.comparison_tables import ranking
from counterfoil.report.rankings_page import ranks_table
from counterfoil.report.results import lead
from counterfoil.stats.bootstrap import cluster_draws
from counterfoil.stats.intervals import macro_weights
from counterfoil.stats.tests import holm
from counterfoil.train.validation import leading as of_training
from evaluation.made_runs import evaluated

#: Cards whose first measure is a number of all questions together have tests of their own.
CARDS = [
    name
    for name in catalog.benchmarks()
    if catalog.benchmark_card(name).form in ("quad", "choice", "paraphrase", "preference", "statement")
]


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
    labels = {
        name: tuple(f"{name} {at // size}" for at in range(12))
        for name, size in (("pair", 2), ("set", 4), ("same_question", 2), ("same_image", 2), ("quartet", 4))
    }
    questions = replace(made.questions, groupings={**made.questions.groupings, **labels})
    return replace(made, card=card, questions=questions)


@pytest.mark.parametrize("name", CARDS)
def test_scorers_are_ordered_by_the_first_measure_of_the_card_and_tested_on_it(name):
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
    """One scorer has both captions find their images in 60 of 100, the other has more groups right."""
    benchmark = of_card("cola")
    benchmark = replace(forms.quads(100), card=benchmark.card)
    only_t2i, both, nothing = np.array([[0.5, 0.0], [0.8, 1.0]]), np.eye(2), 1 - np.eye(2)
    t2i = np.stack([only_t2i if at < 60 else nothing for at in range(100)])
    group = np.stack([both if at >= 70 else nothing for at in range(100)])
    (comparison,) = compare(runs_of(benchmark, {"grouped": group, "by-text": t2i}))
    values = {run.name: run.result for run in comparison.runs}
    assert values["by-text"]["t2i"].value > values["grouped"]["t2i"].value
    assert values["by-text"]["group"].value < values["grouped"]["group"].value
    assert ranking(comparison) == ["by-text", "grouped"]
    assert lead(comparison).startswith("by-text has T2I 60.00")
    assert lead(comparison).endswith("ahead of the other by more than luck (p < 0.05 after Holm).")


def test_a_mean_over_groups_is_tested_as_it_weighs_the_questions():
    """A large group on which the one scorer is right, and small ones on which the other is."""
    subsets = {"large": 80, **{f"small {at}": 4 for at in range(10)}}
    benchmark = forms.choices(subsets, measures=("accuracy_macro", "accuracy"))
    labels = benchmark.questions.groupings["subset"]
    rng = np.random.default_rng(0)
    large = np.array([label == "large" for label in labels])
    right = {
        "often": np.where(large, rng.random(120) < 0.9, rng.random(120) < 0.4),
        "evenly": np.where(large, rng.random(120) < 0.5, rng.random(120) < 0.95),
    }
    (comparison,) = compare(runs_of(benchmark, {name: chosen(hit) for name, hit in right.items()}))
    found = {d.measure: d for d in comparison.differences}
    assert set(found) == {"accuracy_macro", "accuracy"}
    # What each question adds to the mean over groups, group by group.
    weights = np.array([1 / labels.count(label) / len(set(labels)) for label in labels])
    gaps = weights * (right["often"].astype(float) - right["evenly"])
    macro = found["accuracy_macro"]
    assert macro.value == pytest.approx(gaps.sum())
    assert macro.value < 0 < found["accuracy"].value
    assert macro.low < macro.value < macro.high < 0
    assert macro.mcnemar is None
    assert found["accuracy"].mcnemar is not None
    flips = np.random.default_rng(1).choice([-1.0, 1.0], (4000, 120)) @ gaps
    p = (1 + (abs(flips) >= abs(gaps.sum()) - 1e-12).sum()) / 4001
    assert macro.p == pytest.approx(p, abs=0.01)
    assert lead(comparison).startswith("evenly has Accuracy (macro)")
    # The same questions without groups of their own: the difference is that of all.
    assert found["accuracy"].value == pytest.approx(right["often"].mean() - right["evenly"].mean())


@pytest.mark.parametrize("interval", ["auto", "clusters", "crossed", "wilson", "folds"])
def test_means_over_groups_of_groups_have_intervals_of_every_kind(interval):
    benchmark = forms.quads(60, share=2, macro="type > half", measures=("group_macro",))
    halves = tuple("one" if at < 40 else "two" for at in range(60))
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
        np.mean([group[0][at] - group[1][at] for at in range(60) if (types[at], halves[at]) == cell])
        for cell in product(("add", "swap"), ("one", "two"))
    ]
    assert macro.value == pytest.approx(np.mean(cells))


def test_what_all_scorers_have_is_led_by():
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
    assert lead(comparison).endswith("the baseline m0 by more than luck (p < 0.05 after Holm).")
    (whole,) = compare(runs_of(benchmark, scores))
    assert whole.families() == (whole,)
    np.testing.assert_allclose(
        [d.p_holm for d in whole.differences], holm(np.array([d.p for d in whole.differences]))
    )


# --- orders of models


def unequal(measures, macro="subset", name="toy"):
    """Four models: the more often one is right in the large group, the less often in the small ones."""
    subsets = {"large": 40, **{f"small {at}": 4 for at in range(5)}}
    benchmark = forms.choices(subsets, measures=measures, macro=macro, name=name)
    labels = benchmark.questions.groupings["subset"]
    # Groups of groups: the large one alone, and all others.
    sizes = tuple(label.partition(" ")[0] for label in labels)
    questions = replace(benchmark.questions, groupings={**benchmark.questions.groupings, "size": sizes})
    benchmark = replace(benchmark, questions=questions)
    place = np.concatenate([np.arange(40), np.tile(np.arange(4), 5)])
    limits = {f"m{k}": np.where(np.array(sizes) == "large", 12 + 8 * k, 4 - k) for k in range(4)}
    right = {model: place < limit for model, limit in limits.items()}
    return benchmark, runs_of(benchmark, {name: chosen(hit) for name, hit in right.items()})


@pytest.mark.parametrize("measures", [("accuracy_macro",), ("accuracy_macro", "accuracy")])
def test_models_are_in_the_order_of_the_first_measure_of_the_card(measures):
    _, runs = unequal(measures)
    found = rank_correlation([*runs, *unequal(measures, name="other")[1]], draws=20)
    assert {c.measure for c in found.columns} == set(measures)
    assert found.columns[found.lead].name == "toy:accuracy_macro"
    macro = found.values[:, found.lead]
    assert macro == pytest.approx([run.result["accuracy_macro"].value for run in runs])
    (comparison,) = compare(runs)
    assert [row.name for row in ranks_table(found).rows] == ranking(comparison) == ["m0", "m1", "m2", "m3"]
    # By all questions alike the order is the contrary one.
    assert np.argsort([run.result["accuracy"].value for run in runs]).tolist() == [0, 1, 2, 3]


def test_measures_that_are_asked_for_order_as_they_are_asked_for():
    _, runs = unequal(("accuracy_macro", "accuracy"))
    found = rank_correlation(runs, measures=["accuracy", "accuracy_macro"], draws=20)
    assert [c.measure for c in found.columns] == ["accuracy", "accuracy_macro"]
    assert [row.name for row in ranks_table(found).rows] == ["m3", "m2", "m1", "m0"]
    (pair,) = found.pairs
    assert pair.tau == -1


@pytest.mark.parametrize("macro", ["subset", "size > subset"])
def test_a_draw_weighs_groups_as_the_mean_over_them_does(macro):
    """Against the definition, question by question; a group of which nothing is drawn is left out."""
    benchmark, runs = unequal(("accuracy_macro",), macro)
    questions = np.arange(60)
    draws = of(benchmark).draws(
        runs, ["accuracy_macro", "accuracy"], DrawnQuestions(benchmark, questions, 60, benchmark.sharing)
    )
    weights = np.concatenate(list(cluster_draws(60, 50, seed=3)))
    found = draws.drawn(weights)
    groups, shares = macro_groups(benchmark, np.ones(60, dtype=bool))
    missed = 0
    for draw, copies in enumerate(weights.astype(int)):
        rows = np.repeat(questions, copies)
        own = None if shares is None else shares / shares[np.unique(groups[rows])].sum()
        missed += len(np.unique(groups[rows])) < 6
        for model, run in enumerate(runs):
            values = run.items["accuracy"][rows]
            assert found[draw, model, 0] == pytest.approx(macro_weights(groups[rows], own) @ values)
            assert found[draw, model, 1] == pytest.approx(values.mean())
    assert missed


def test_a_gallery_is_ordered_by_the_mean_of_both_directions(mixed):
    found = rank_correlation(mixed, draws=5)
    assert found.columns[found.lead].name == "whole:mean_map_at_r"
