"""Which measure decides: what a benchmark's authors put first, tested as it is reported, macro means too."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from contracts import forms
from counterfoil import catalog
from counterfoil.benchmarks import Benchmark, Scores
from counterfoil.evaluation.compare import Comparison, compare
from counterfoil.evaluation.evaluate import leading, main_measures
from counterfoil.evaluation.result import Run
from counterfoil.report.comparison_tables import main_measures as shown_measures
from counterfoil.report.comparison_tables import ranking
from counterfoil.report.notes import lead
from counterfoil.stats.tests import holm
from counterfoil.train.validation import leading as of_training
from evaluation.made_runs import evaluated

#: Cards whose first measure is a number of all questions together have tests of their own.
CARDS = [
    name
    for name in catalog.benchmarks()
    if catalog.benchmark_card(name).form in ("quad", "choice", "paraphrase", "preference", "statement")
]


def of_card(name: str) -> Benchmark:
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
def test_scorers_are_ordered_by_the_first_measure_of_the_card_and_tested_on_it(name: str) -> None:
    benchmark = of_card(name)
    first = benchmark.card.measures[0]
    assert leading(benchmark) == first
    assert first in main_measures(benchmark)
    if benchmark.card.form != "statement":
        assert of_training(benchmark) == first


def runs_of(benchmark: Benchmark, answers: dict[str, np.ndarray]) -> list[Run]:
    return [evaluated(name, benchmark, Scores(scores), draws=200) for name, scores in answers.items()]


def test_the_page_on_cola_leads_by_t2i_where_group_says_the_other() -> None:
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


def test_a_mean_over_groups_is_tested_as_it_weighs_the_questions() -> None:
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
    scores = {name: np.stack([hit, ~hit], axis=1) * 1.0 for name, hit in right.items()}
    (comparison,) = compare(runs_of(benchmark, scores))
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
def test_means_over_groups_of_groups_have_intervals_of_every_kind(interval: str) -> None:
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


def test_what_all_scorers_have_is_led_by() -> None:
    """VSR's authors report accuracy, which scores that are no probabilities do not have."""
    benchmark = of_card("vsr-random")
    truth = benchmark.statements.truth
    runs = runs_of(benchmark, {"sure": 0.3 + 0.4 * truth, "cosine": 20.0 * truth + np.arange(12)})
    alone = Comparison(benchmark.name, (runs[0],), None, ())
    both = Comparison(benchmark.name, tuple(runs), None, ())
    assert lead(alone).startswith("sure has Accuracy 100")
    assert "Accuracy, fitted" in lead(both)
    assert shown_measures(both)[0] == "accuracy"


def test_a_baseline_makes_two_families_under_two_headings() -> None:
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
