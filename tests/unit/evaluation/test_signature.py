"""Signatures of all forms: what they say, and that they come from the result alone."""

from dataclasses import replace

import numpy as np
import pytest

from contracts import forms
from counterfoil import __version__
from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.evaluation.evaluate import evaluate
from counterfoil.evaluation.result import Result, Run
from counterfoil.report.comparison_tables import signature_of


def made(benchmark: Benchmark, *, draws: int = 100, **how: object) -> Result:
    scores = forms.scores_of(benchmark)
    return evaluate(benchmark, forms.answers_of(benchmark, scores), scorer="s", draws=draws, **how)


def test_independent_questions_have_no_draws() -> None:
    assert made(forms.quads(), ties="half").signature("group") == f"group|ties:half|ci:wilson|v{__version__}"
    assert (
        made(forms.quads(), interval="folds").signature("i2t") == f"i2t|ties:strict|ci:folds|v{__version__}"
    )


def test_clusters_that_the_variance_is_over() -> None:
    result = made(forms.quads(120, share=2), seed=3)
    expected = f"ties:strict|ci:clusters|clusters:image|v{__version__}"
    assert result.signature("group") == f"group|{expected}"
    assert result.signature() == result.to_json()["signature"] == expected
    assert Result.from_json(result.to_json()).signature("group") == f"group|{expected}"


def test_crossed_intervals_draw_nothing() -> None:
    result = made(forms.quads(share=2), interval="crossed", seed=3)
    assert result.signature("group") == f"group|ties:strict|ci:crossed|clusters:image+caption|v{__version__}"


def test_means_over_groups_have_an_interval_of_their_own() -> None:
    result = made(forms.choices({"add": 6, "swap": 2}))
    drawn = "ci:clusters|clusters:question"
    assert result.signature("accuracy") == f"accuracy|ties:strict|ci:wilson|v{__version__}"
    assert result.signature("accuracy_macro") == f"accuracy_macro|ties:strict|{drawn}|v{__version__}"
    assert result.signature() == f"ties:strict|ci:wilson|macro-{drawn}|v{__version__}"


def test_given_outcomes_have_a_policy_that_is_not_known() -> None:
    benchmark = forms.quads()
    outcomes = forms.outcomes_of(benchmark, forms.scores_of(benchmark))
    result = evaluate(benchmark, outcomes, scorer="s")
    assert result.signature("t2i") == f"t2i|ties:as-given|ci:wilson|v{__version__}"


def test_correlations_have_no_policy_and_percentiles() -> None:
    result = made(forms.rated(forms.grades(200), per_image=2), interval="clusters")
    expected = f"spearman|ci:bootstrap-percentiles|draws:100|clusters:image|seed:0|v{__version__}"
    assert result.signature("spearman") == expected


@pytest.mark.parametrize("measure", ["i2t_recall_at_1", "mean_recall_at_1"])
def test_cut_rankings_are_part_of_it(measure: str) -> None:
    result = made(forms.gallery())
    drawn = f"ties:strict|ci:clusters|clusters:image|v{__version__}"
    assert result.signature(measure) == f"{measure}|{drawn}"
    gallery = {**result.provenance["gallery"], "cut": {"i2t": 3, "t2i": None}}
    cut = replace(result, provenance={**result.provenance, "gallery": gallery})
    assert cut.signature(measure) == f"{measure}|{drawn}".replace("|v", "|cut-i2t:3|v")
    assert cut.signature("t2i_recall_at_1") == f"t2i_recall_at_1|{drawn}"


def test_a_limit_and_unanswered_questions_are_part_of_it() -> None:
    about = {"benchmark": {"limit": 5, "unanswered": {"questions": 2, "policy": "wrong"}}}
    assert (
        made(forms.quads(), provenance=about)
        .signature("group")
        .endswith(f"|ci:wilson|limit:5|unanswered:wrong|v{__version__}")
    )


def test_a_result_that_knows_nothing_of_itself_has_the_name() -> None:
    assert Result("toy", "s", {}).signature("group") == "group"


def test_runs_share_a_line_or_have_one_each() -> None:
    benchmark = forms.quads()
    strict, half = (made(benchmark, ties=ties) for ties in ("strict", "half"))

    def run(name: str, result: Result) -> Run:
        answers = forms.answers_of(benchmark, forms.scores_of(benchmark))
        return Run(name, benchmark, answers, {}, result, {})

    assert signature_of([run("a", strict), run("b", strict)], "group") == strict.signature("group")
    assert signature_of([run("a", strict), run("b", half)], "group") == (
        f"a: {strict.signature('group')}; b: {half.signature('group')}"
    )
    assert signature_of([run("a", strict)], "accuracy") == ""


def test_what_ties_components() -> None:
    assert np.unique(forms.quads(12, share=3).sharing.components).size == 4
    assert forms.quads(12, share=3).sharing.clustered == "image"
    assert forms.quads().sharing.clustered == "question"
