"""Models are ranked as `compare` orders them: by what a benchmark's authors put first, macro means too."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from contracts import forms
from counterfoil.benchmarks import Benchmark, Scores
from counterfoil.evaluation.compare import compare
from counterfoil.evaluation.forms import of
from counterfoil.evaluation.forms.bootstrap import DrawnQuestions
from counterfoil.evaluation.intervals import macro_groups
from counterfoil.evaluation.rank_correlation import rank_correlation
from counterfoil.evaluation.result import Run
from counterfoil.report.comparison_tables import ranking
from counterfoil.report.rankings_page import ranks_table
from counterfoil.stats.estimates import macro_weights
from counterfoil.stats.resampling import cluster_draws
from evaluation.made_runs import evaluated


def runs_of(benchmark: Benchmark, right: Mapping[str, NDArray[np.bool_]]) -> list[Run]:
    scores = {name: Scores(np.stack([hit, ~hit], axis=1) * 1.0) for name, hit in right.items()}
    return [evaluated(name, benchmark, given, draws=10) for name, given in scores.items()]


def unequal(
    measures: tuple[str, ...], macro: str = "subset", name: str = "toy"
) -> tuple[Benchmark, list[Run]]:
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
    return benchmark, runs_of(benchmark, {model: place < limit for model, limit in limits.items()})


@pytest.mark.parametrize("measures", [("accuracy_macro",), ("accuracy_macro", "accuracy")])
def test_models_are_in_the_order_of_the_first_measure_of_the_card(measures: tuple[str, ...]) -> None:
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


def test_measures_that_are_asked_for_order_as_they_are_asked_for() -> None:
    _, runs = unequal(("accuracy_macro", "accuracy"))
    found = rank_correlation(runs, measures=["accuracy", "accuracy_macro"], draws=20)
    assert [c.measure for c in found.columns] == ["accuracy", "accuracy_macro"]
    assert [row.name for row in ranks_table(found).rows] == ["m3", "m2", "m1", "m0"]
    (pair,) = found.pairs
    assert pair.tau == -1


@pytest.mark.parametrize("macro", ["subset", "size > subset"])
def test_a_draw_weighs_groups_as_the_mean_over_them_does(macro: str) -> None:
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


def test_a_gallery_is_ordered_by_the_mean_of_both_directions(mixed: list[Run]) -> None:
    found = rank_correlation(mixed, draws=5)
    assert found.columns[found.lead].name == "whole:mean_map_at_r"
