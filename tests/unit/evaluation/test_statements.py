"""Evaluation of true and false statements: intervals, paired tests, given tables, the page, and the world."""

import re

import numpy as np
import pytest

from contracts import forms
from counterfoil.benchmarks.answers import Outcomes, Scores
from counterfoil.engine.join_scores import join_scores
from counterfoil.errors import InputError, ScoreError
from counterfoil.evaluation.compare import compare
from counterfoil.evaluation.evaluate import evaluate, measured_run
from counterfoil.evaluation.forms.statement import MEASURES, weighted
from counterfoil.metrics.statements import placements
from counterfoil.metrics.ties import Ties
from counterfoil.models.precomputed import load
from counterfoil.report.forms import report_of
from counterfoil.report.labels import measure_label
from counterfoil.report.page import page
from counterfoil.stats.bootstrap import cluster_draws
from counterfoil.studies import oracle
from counterfoil.world import statements
from refusals import refuses


def noisy(benchmark, seed, *, signal=1.0, shared=0.0):
    """Scores of the truth and noise, some of it that of the image."""
    rng = np.random.default_rng(seed)
    questions = benchmark.statements
    of_image = rng.normal(size=len(benchmark.images))[questions.images]
    noise = rng.normal(size=len(questions))
    return Scores(signal * questions.truth + shared * of_image + (1 - shared**2) ** 0.5 * noise)


def test_intervals_of_independent_statements_are_delongs_and_those_of_pictures_are_wider():
    alone = forms.statements([True, False] * 100, per_image=1)
    scores = noisy(alone, 0)
    found = evaluate(alone, scores, scorer="one")["auroc"]
    place = placements(scores.values, alone.statements.truth)
    true = alone.statements.truth
    variance = place[true].var() / 100 + place[~true].var() / 100
    effective = found.value * (1 - found.value) / (variance * 200 / 199)
    assert found.effective == pytest.approx(effective)
    assert found.low < found.value < found.high
    # All statements of a picture are true, or all false: as many units as pictures.
    together = forms.statements(np.repeat([True, False] * 20, 5).tolist(), per_image=5)
    answers = noisy(together, 1, shared=0.9)
    of_pictures = evaluate(together, answers, scorer="one")
    ready = weighted(together, answers, Ties.STRICT, np.ones(200, bool), np.arange(200) // 5, 40)
    drawn = np.concatenate([ready.measures(w) for w in cluster_draws(40, 2000, seed=0)]).var(axis=0)
    assert of_pictures.provenance["interval"]["clusters"] == "image"
    for name in ("auroc", "fitted_accuracy", "fitted_balanced"):
        assert of_pictures[name].effective < 120
        value = of_pictures[name].value
        effective = value * (1 - value) / drawn[MEASURES.index(name)]
        assert effective == pytest.approx(of_pictures[name].effective, rel=0.25)
    perfect = evaluate(together, Scores(together.statements.truth * 1.0), scorer="one")["auroc"]
    assert perfect.value == 1
    assert perfect.low < 0.95
    for interval in ("wilson", "folds"):
        with pytest.raises(InputError, match="no interval of the kind"):
            evaluate(together, noisy(together, 1), scorer="x", interval=interval)


def test_a_difference_is_found_where_there_is_one():
    benchmark = forms.statements([True, False] * 60, per_image=2)
    strong, weak = (
        measured_run(benchmark, answers, evaluate(benchmark, answers, scorer=name, draws=1))
        for name, answers in (
            ("strong", noisy(benchmark, 1, signal=3)),
            ("weak", noisy(benchmark, 2, signal=0.3)),
        )
    )
    (found,) = compare([strong, weak])[0].differences
    assert found.p < 0.001
    assert 0 < found.low < found.value < found.high


def test_tables_of_scores_and_of_right_and_wrong_answer_statements(tmp_path):
    benchmark = forms.statements([True, False] * 3)
    path = tmp_path / "given.csv"
    path.write_text("id,score\n" + "".join(f"q{i},{i % 2}\n" for i in reversed(range(6))))
    scores = join_scores(load(str(path)), benchmark)
    # 0 and 1 in a column of scores are scores.
    assert scores.scores.tolist() == [0, 1, 0, 1, 0, 1]
    path.write_text("image,caption,score\n" + "".join(f"i{i // 2},statement {i},0.{i}\n" for i in range(6)))
    assert join_scores(load(str(path)), benchmark).scores.tolist() == [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]
    path.write_text("id,correct\n" + "".join(f"q{i},{i < 4}\n" for i in range(6)))
    outcomes = join_scores(load(str(path)), benchmark)
    assert isinstance(outcomes, Outcomes)
    result = evaluate(benchmark, outcomes, scorer="given")
    values = {name: round(e.value, 4) for name, e in result.measures.items()}
    assert values == {"accuracy": 0.6667, "balanced_accuracy": 0.6667}
    path.write_text("id,score\nq0,1\n")
    refuses("5 of 6 questions are missing", join_scores, load(str(path)), benchmark, error=ScoreError)


def test_measures_without_a_value_say_why():
    benchmark = forms.statements([True, False] * 6, groups=2)
    result = evaluate(benchmark, noisy(benchmark, 0), scorer="cosines")
    assert set(result.undefined) == {"accuracy", "balanced_accuracy"}
    assert "are no probabilities" in result.undefined["accuracy"]
    true = forms.statements([True] * 4)
    result = evaluate(true, Scores(np.array([0.6, 0.7, 0.8, 0.9])), scorer="one")
    assert {name: e.value for name, e in result.measures.items()} == {"accuracy": 1.0}
    assert "not both true and false" in result.undefined["auroc"]
    assert "no threshold" in result.undefined["fitted_accuracy"]


@pytest.mark.parametrize("ties", list(Ties))
def test_auroc_of_answers_of_two_values_counts_every_tie_as_a_half(ties):
    """Three of four are told apart by 0 and 1: pairs that tie are worth a half, whatever the policy."""
    benchmark = forms.statements([True, False] * 20)
    truth = benchmark.statements.truth
    said = np.where(np.arange(40) // 2 % 4 == 0, ~truth, truth) * 1.0
    result = evaluate(benchmark, Scores(said), scorer="told", ties=ties, draws=50)
    pairs = [(a > b) + (a == b) / 2 for a in said[truth] for b in said[~truth]]
    assert result["auroc"].value == pytest.approx(np.mean(pairs)) == result["balanced_accuracy"].value
    assert {by["auroc"] for by in result.ties["measures"].values()} == {result["auroc"].value}
    coin = evaluate(benchmark, Scores(np.arange(40) // 2 % 2 * 1.0), scorer="coin", ties=ties, draws=50)
    assert coin["auroc"].value == 0.5
    assert coin["auroc"].low < 0.5 < coin["auroc"].high


def test_the_page_shows_statements_with_their_truth_and_scores():
    benchmark = forms.shown(forms.statements([True, False] * 10, groups=2, calibration=4))
    answers = {"sure": Scores(0.2 + 0.6 * benchmark.statements.truth), "cosines": noisy(benchmark, 3)}
    answers["given"] = Outcomes({"accuracy": np.arange(20) % 3 > 0})
    results = {name: evaluate(benchmark, given, scorer=name, draws=50) for name, given in answers.items()}
    runs = [measured_run(benchmark, answers[name], result) for name, result in results.items()]
    made = page(compare(runs))
    assert "16 statements, each of one image: 8 are true, 8 false. 4 more, of another split" in made
    assert "Fleiss&#39; kappa 1.000" in made or "Fleiss' kappa 1.000" in made
    assert "Fitted thresholds have the highest balanced accuracy over 4 questions of another split" in made
    assert f"Margins of {measure_label('fitted_accuracy')}: sure" in made
    assert re.search(r'"truth":\s*\[true,\s*false', made)
    report = report_of(benchmark)
    assert report.kinds(runs[0]).tolist() == [0] * 20
    assert report.kinds(runs[2]).tolist() == [int(i % 3 == 0) for i in range(20)]
    order, said = report.failures(runs[1])
    assert all("on the wrong side of its threshold" in text for text in said.values())
    assert order


def test_the_oracle_knows_which_statements_of_the_world_are_true():
    world = statements(40, size=48, lazy=True)
    captions, images = world.statements.pairs()
    scores = oracle.load("oracle").score(
        [world.images[i] for i in images], [world.captions[i] for i in captions]
    )
    found = evaluate(world, Scores(np.clip(scores, 0, 1)), scorer="oracle")
    assert {name: e.value for name, e in found.measures.items()} == dict.fromkeys(found.measures, 1.0)
    assert len(found.measures) == 5
    assert set(world.questions.groupings) == {"type", "subset"}
