"""Sentences: only what the results say."""

import numpy as np

from counterfoil.benchmarks.answers import Scores
from counterfoil.evaluation.compare import Comparison, compare
from counterfoil.evaluation.result import Run
from counterfoil.metrics.ties import Ties
from counterfoil.report.forms import FORMS
from counterfoil.report.notes import below_chance, lead
from report_fixtures import quad_benchmark, run_of

QUADS = FORMS["quad"]


def said(comparison: Comparison) -> list[str]:
    return [note.text.replace("\N{NO-BREAK SPACE}", " ") for note in QUADS.notes(comparison)]


def one(values: np.ndarray, policy: Ties = Ties.STRICT) -> Comparison:
    run = run_of(quad_benchmark(len(values)), "alone", Scores(values), ties=policy)
    return compare([run])[0]


def test_a_constant_scorer_is_exposed():
    comparison = one(np.zeros((40, 2, 2)))
    # A random order of four scores puts the two true ones first in 1 of 6 cases.
    assert said(comparison)[0] == (
        "alone ties a right and a wrong pair in 40 of 40 questions (100.00 %): "
        "Group is 0.00 % under strict, 16.67 % under half, 100.00 % under optimistic."
    )
    assert "Below chance on I2T, T2I and Group, with the whole interval: alone." in said(comparison)
    assert QUADS.notes(comparison)[0].kind == "warning"
    assert QUADS.ties(comparison).endswith("a tie is wrong.")
    assert "random order" in QUADS.ties(one(np.zeros((40, 2, 2)), Ties.HALF))


def test_a_scorer_without_ties_gives_no_warning():
    comparison = one(np.random.default_rng(0).normal(size=(40, 2, 2)) + 5 * np.eye(2))
    assert all(note.kind == "fact" for note in QUADS.notes(comparison))
    assert "No scorer has a tie; they count by the policy strict." in said(comparison)


def test_the_lead_names_the_best_and_the_scorers_not_distinguished_from_it(quads):
    best = max(quads.runs, key=lambda run: run.items["group"].mean())
    text = lead(quads).replace("\N{NO-BREAK SPACE}", " ")
    assert text.startswith(f"{best.name} has Group {100 * best.items['group'].mean():.2f} % (")
    assert "where chance is 16.67 %" in text
    rivals = {
        {d.a: d.b, d.b: d.a}[best.name]
        for d in quads.differences
        if d.measure == "group" and best.name in (d.a, d.b) and d.p_holm >= 0.05
    }
    assert all(name in text for name in rivals)
    assert ("not told apart" in text) == bool(rivals)


def test_equal_scorers_are_not_distinguished():
    benchmark, scores = quad_benchmark(), Scores(np.random.default_rng(1).normal(size=(40, 2, 2)))
    comparison = compare([run_of(benchmark, name, scores) for name in ("a", "b")])[0]
    assert lead(comparison).endswith("the highest of 2, not told apart (p ≥ 0.05 after Holm) from b.")


def test_outcomes_and_intervals_are_mentioned(quads):
    texts = said(quads)
    assert any(text.startswith("outcomes: only right and wrong were given") for text in texts)
    # Neighbouring questions share an image, so the intervals come from clusters.
    assert any(text.startswith("Intervals hold 95 %: over clusters of questions") for text in texts)


def test_the_more_models_are_looked_at_the_farther_below_chance_one_must_be():
    """Alone it is noted; beside twenty others at chance it is not, and one that is never right still is."""
    benchmark = quad_benchmark(200)
    rng = np.random.default_rng(0)

    def model(name: str, right: float) -> Run:
        hit = rng.permutation(np.arange(200) < 200 * right)
        return run_of(benchmark, name, Scores(np.where(hit[:, None, None], np.eye(2), 1 - np.eye(2))))

    low = model("low", 0.17)
    assert low.result["i2t"].high < 0.25
    others = [model(f"m{at}", 0.25) for at in range(20)]
    never = model("never", 0.0)

    def named(*runs: Run) -> str:
        return " ".join(note.text for note in below_chance(Comparison(benchmark.name, runs, None, ())))

    assert "low" in named(low)
    assert "low" not in named(low, *others)
    assert "never" in named(low, never, *others)
