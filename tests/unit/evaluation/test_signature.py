"""Signatures of all forms: what they say, and that they come from the result alone."""

from dataclasses import replace

import numpy as np
import pytest

from contracts import forms
from counterfoil import __version__
from counterfoil.evaluation.evaluate import evaluate
from counterfoil.evaluation.result import Result, Run
from counterfoil.report.comparison_tables import signature_of


def made(benchmark, *, draws=100, **how):
    scores = forms.scores_of(benchmark)
    return evaluate(benchmark, forms.answers_of(benchmark, scores), scorer="s", draws=draws, **how)


UNANSWERED = {"benchmark": {"limit": 5, "unanswered": {"questions": 2, "policy": "wrong"}}}


@pytest.mark.parametrize(
    ("benchmark", "how", "measure", "signed"),
    [
        (forms.quads(), {"ties": "half"}, "group", "ties:half|ci:wilson"),
        (forms.quads(), {"interval": "folds"}, "i2t", "ties:strict|ci:folds"),
        (forms.quads(120, share=2), {"seed": 3}, "group", "ties:strict|ci:clusters|clusters:image"),
        (forms.quads(120, share=2), {"seed": 3}, "", "ties:strict|ci:clusters|clusters:image"),
        # Crossed intervals draw nothing.
        (
            forms.quads(share=2),
            {"interval": "crossed", "seed": 3},
            "group",
            "ties:strict|ci:crossed|clusters:image+caption",
        ),
        # Means over groups have an interval of their own.
        (forms.choices({"add": 6, "swap": 2}), {}, "accuracy", "ties:strict|ci:wilson"),
        (
            forms.choices({"add": 6, "swap": 2}),
            {},
            "accuracy_macro",
            "ties:strict|ci:clusters|clusters:question",
        ),
        (
            forms.choices({"add": 6, "swap": 2}),
            {},
            "",
            "ties:strict|ci:wilson|macro-ci:clusters|clusters:question",
        ),
        # Correlations have no policy, and percentiles.
        (
            forms.rated(forms.grades(200), per_image=2),
            {"interval": "clusters"},
            "spearman",
            "ci:bootstrap-percentiles|draws:100|clusters:image|seed:0",
        ),
        (
            forms.quads(),
            {"provenance": UNANSWERED},
            "group",
            "ties:strict|ci:wilson|limit:5|unanswered:wrong",
        ),
    ],
)
def test_a_signature_has_all_that_a_number_depends_on(benchmark, how, measure, signed):
    result = made(benchmark, **how)
    expected = "|".join([*([measure] if measure else []), signed, f"v{__version__}"])
    assert result.signature(measure) == expected
    assert Result.from_json(result.to_json()).signature(measure) == expected
    assert result.to_json()["signature"] == result.signature()


def test_given_outcomes_have_a_policy_that_is_not_known_and_a_bare_result_has_the_name():
    benchmark = forms.quads()
    outcomes = forms.outcomes_of(benchmark, forms.scores_of(benchmark))
    result = evaluate(benchmark, outcomes, scorer="s")
    assert result.signature("t2i") == f"t2i|ties:as-given|ci:wilson|v{__version__}"
    assert Result("toy", "s", {}).signature("group") == "group"


@pytest.mark.parametrize("measure", ["i2t_recall_at_1", "mean_recall_at_1"])
def test_cut_rankings_are_part_of_it(measure):
    result = made(forms.gallery())
    drawn = f"ties:strict|ci:clusters|clusters:image|v{__version__}"
    assert result.signature(measure) == f"{measure}|{drawn}"
    gallery = {**result.provenance["gallery"], "cut": {"i2t": 3, "t2i": None}}
    cut = replace(result, provenance={**result.provenance, "gallery": gallery})
    assert cut.signature(measure) == f"{measure}|{drawn}".replace("|v", "|cut-i2t:3|v")
    assert cut.signature("t2i_recall_at_1") == f"t2i_recall_at_1|{drawn}"


def test_runs_share_a_line_or_have_one_each():
    benchmark = forms.quads()
    strict, half = (made(benchmark, ties=ties) for ties in ("strict", "half"))

    def run(name, result):
        answers = forms.answers_of(benchmark, forms.scores_of(benchmark))
        return Run(name, benchmark, answers, {}, result, {})

    assert signature_of([run("a", strict), run("b", strict)], "group") == strict.signature("group")
    assert signature_of([run("a", strict), run("b", half)], "group") == (
        f"a: {strict.signature('group')}; b: {half.signature('group')}"
    )
    assert signature_of([run("a", strict)], "accuracy") == ""


def test_what_ties_components():
    assert np.unique(forms.quads(12, share=3).sharing.components).size == 4
    assert forms.quads(12, share=3).sharing.clustered == "image"
    assert forms.quads().sharing.clustered == "question"
