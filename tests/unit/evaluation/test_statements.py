"""Statements that are true or false, and choices of different numbers of candidates."""

import csv
import json
import re
from fractions import Fraction
from itertools import permutations
from math import factorial

import numpy as np
import pytest

from contracts import forms
from counterfoil.benchmarks import Choice, Scores
from counterfoil.benchmarks.answers import Outcomes
from counterfoil.benchmarks.folder import load, save
from counterfoil.catalog import model as load_model
from counterfoil.engine.join_scores import join_scores
from counterfoil.engine.session import Session, run
from counterfoil.errors import InputError, ScoreError
from counterfoil.evaluation.compare import compare
from counterfoil.evaluation.evaluate import chance, evaluate, measured_run, per_item
from counterfoil.evaluation.forms.statement import MEASURES, weighted
from counterfoil.evaluation.lengths import mean_words
from counterfoil.jobs.audit import audit
from counterfoil.metrics.statements import placements
from counterfoil.metrics.ties import Ties
from counterfoil.models import precomputed
from counterfoil.report.forms import report_of
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
    result = evaluate(alone, scores, model="one")["auroc"]
    place = placements(scores.values, alone.statements.truth)
    true = alone.statements.truth
    variance = place[true].var() / 100 + place[~true].var() / 100
    effective = result.value * (1 - result.value) / (variance * 200 / 199)
    assert result.effective == pytest.approx(effective)
    assert result.low < result.value < result.high
    # All statements of a picture are true, or all false: as many units as pictures.
    together = forms.statements(np.repeat([True, False] * 20, 5).tolist(), per_image=5)
    answers = noisy(together, 1, shared=0.9)
    of_pictures = evaluate(together, answers, model="one")
    ready = weighted(together, answers, Ties.STRICT, np.ones(200, bool), np.arange(200) // 5, 40)
    drawn = np.concatenate([ready.measures(w) for w in cluster_draws(40, 2000, seed=0)]).var(axis=0)
    assert of_pictures.provenance["interval"]["clusters"] == "image"
    for name in ("auroc", "fitted_accuracy", "fitted_balanced"):
        assert of_pictures[name].effective < 120
        value = of_pictures[name].value
        effective = value * (1 - value) / drawn[MEASURES.index(name)]
        assert effective == pytest.approx(of_pictures[name].effective, rel=0.25)
    perfect = evaluate(together, Scores(together.statements.truth * 1.0), model="one")["auroc"]
    assert perfect.value == 1
    assert perfect.low < 0.95
    with pytest.raises(InputError, match="no interval of the kind"):
        evaluate(together, noisy(together, 1), model="x", interval="wilson")


def test_a_difference_is_found_where_there_is_one():
    benchmark = forms.statements([True, False] * 60, per_image=2)
    answers = {"strong": noisy(benchmark, 1, signal=3), "weak": noisy(benchmark, 2, signal=0.3)}
    results = {name: evaluate(benchmark, of, model=name, draws=1) for name, of in answers.items()}
    runs = [measured_run(benchmark, answers[name], result) for name, result in results.items()]
    (actual,) = compare(runs)[0].differences
    assert actual.p < 0.001
    assert 0 < actual.low < actual.value < actual.high


def test_tables_of_scores_and_of_right_and_wrong_answer_statements(tmp_path):
    benchmark = forms.statements([True, False] * 3)
    path = tmp_path / "given.csv"

    def joined():
        return join_scores(precomputed.load(str(path)), benchmark)

    path.write_text("id,score\n" + "".join(f"q{i},{i % 2}\n" for i in reversed(range(6))))
    scores = joined()
    # 0 and 1 in a column of scores are scores.
    assert scores.scores.tolist() == [0, 1, 0, 1, 0, 1]
    path.write_text("image,caption,score\n" + "".join(f"i{i // 2},statement {i},0.{i}\n" for i in range(6)))
    assert joined().scores.tolist() == [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]
    path.write_text("id,correct\n" + "".join(f"q{i},{i < 4}\n" for i in range(6)))
    outcomes = joined()
    assert isinstance(outcomes, Outcomes)
    result = evaluate(benchmark, outcomes, model="given")
    values = {name: round(e.value, 4) for name, e in result.measures.items()}
    assert values == {"accuracy": 0.6667, "balanced_accuracy": 0.6667}
    path.write_text("id,score\nq0,1\n")
    refuses("5 of 6 questions are missing", joined, error=ScoreError)


def test_measures_without_a_value_say_why():
    benchmark = forms.statements([True, False] * 6, groups=2)
    result = evaluate(benchmark, noisy(benchmark, 0), model="cosines")
    assert set(result.undefined) == {"accuracy", "balanced_accuracy"}
    assert "are no probabilities" in result.undefined["accuracy"]
    result = evaluate(forms.statements([True] * 4), Scores(np.array([0.6, 0.7, 0.8, 0.9])), model="one")
    assert {name: e.value for name, e in result.measures.items()} == {"accuracy": 1.0}
    assert "not both true and false" in result.undefined["auroc"]
    assert "no threshold" in result.undefined["fitted_accuracy"]


@pytest.mark.parametrize("ties", list(Ties))
def test_auroc_of_answers_of_two_values_counts_every_tie_as_a_half(ties):
    """Three of four are told apart by 0 and 1: pairs that tie are worth a half, whatever the policy."""
    benchmark = forms.statements([True, False] * 20)
    truth = benchmark.statements.truth
    said = np.where(np.arange(40) // 2 % 4 == 0, ~truth, truth) * 1.0
    result = evaluate(benchmark, Scores(said), model="told", ties=ties, draws=50)
    pairs = [(a > b) + (a == b) / 2 for a in said[truth] for b in said[~truth]]
    assert result["auroc"].value == pytest.approx(np.mean(pairs)) == result["balanced_accuracy"].value
    assert {by["auroc"] for by in result.ties["measures"].values()} == {result["auroc"].value}
    coin = evaluate(benchmark, Scores(np.arange(40) // 2 % 2 * 1.0), model="coin", ties=ties, draws=50)
    assert coin["auroc"].value == 0.5
    assert coin["auroc"].low < 0.5 < coin["auroc"].high


def test_the_page_shows_statements_with_their_truth_and_scores():
    benchmark = forms.shown(forms.statements([True, False] * 10, groups=2, calibration=4))
    answers = {"sure": Scores(0.2 + 0.6 * benchmark.statements.truth), "cosines": noisy(benchmark, 3)}
    answers["given"] = Outcomes({"accuracy": np.arange(20) % 3 > 0})
    results = {name: evaluate(benchmark, given, model=name, draws=50) for name, given in answers.items()}
    runs = [measured_run(benchmark, answers[name], result) for name, result in results.items()]
    made = page(compare(runs))
    assert "16 statements, each of one image: 8 are true, 8 false. 4 more, of another split" in made
    assert "Fleiss&#39; kappa 1.000" in made or "Fleiss' kappa 1.000" in made
    assert "Fitted thresholds have the highest balanced accuracy over 4 questions of another split" in made
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
    result = evaluate(world, Scores(np.clip(scores, 0, 1)), model="oracle")
    assert {name: e.value for name, e in result.measures.items()} == dict.fromkeys(result.measures, 1.0)
    assert len(result.measures) == 5
    assert set(world.questions.groupings) == {"type", "subset"}


COUNTS = (2, 5, 3, 4, 2, 6, 3)


def uneven(n=21, **more):
    """Questions of 2 to 6 candidates in turn, in two subsets of different numbers."""
    return forms.choices({"add": n // 3, "swap": n - n // 3}, k=COUNTS, **more)


def value_of(row, ties):
    """Accuracy of one question, whose first candidate is right; `half` by all orders of its candidates."""
    right, highest = row[0], max(row[1:])
    if ties != Ties.HALF:
        return Fraction(right > highest or (ties == Ties.OPTIMISTIC and right == highest))
    places = list(permutations(range(len(row))))
    won = sum((row[0], order[0]) > max(zip(row[1:], order[1:], strict=True)) for order in places)
    return Fraction(won, len(places))


@pytest.mark.parametrize("asks", ["image", "caption"])
@pytest.mark.parametrize("ties", Ties)
def test_accuracy_is_that_of_lists_without_gaps(ties, asks):
    benchmark = uneven(asks=asks)
    scores = forms.scores_of(benchmark, seed=2, values=3)
    lists = [row[row > -np.inf].tolist() for row in scores]
    assert [len(row) for row in lists] == benchmark.choices.counts.tolist() == [*COUNTS] * 3
    expected = [value_of(row, ties) for row in lists]
    result = evaluate(benchmark, Scores(scores), model="model", ties=ties, draws=50)
    assert per_item(benchmark, Scores(scores), ties=ties)["accuracy"].tolist() == pytest.approx(
        [float(item) for item in expected]
    )
    labels = benchmark.questions.groupings["subset"]
    of_group = {
        name: [item for item, label in zip(expected, labels, strict=True) if label == name] for name in labels
    }
    means = {name: sum(item) / len(item) for name, item in of_group.items()}
    assert result["accuracy"].value == pytest.approx(float(sum(expected) / len(expected)))
    assert result["accuracy_macro"].value == pytest.approx(float(sum(means.values()) / 2))
    assert {name: item["accuracy"].value for name, item in result.groups.items()} == pytest.approx(
        {name: float(item) for name, item in means.items()}
    )
    assert result.ties["questions"] == sum(row[0] == max(row[1:]) for row in lists)


@pytest.mark.parametrize("correct", [1, 2])
def test_chance_is_that_of_each_question(correct):
    counts = [item + correct - 1 for item in COUNTS]
    benchmark = forms.choices({"add": 5, "swap": 9}, k=counts, correct=correct)
    own = [Fraction(factorial(correct) * factorial(k - correct), factorial(k)) for k in counts * 2]
    actual = chance(benchmark)
    assert actual["accuracy"] == pytest.approx(float(sum(own) / 14))
    parts = sum(own[:5]) / 5, sum(own[5:]) / 9
    assert actual["accuracy_macro"] == pytest.approx(float(sum(parts) / 2))
    assert parts[0] != parts[1]
    result = evaluate(benchmark, Scores(forms.scores_of(benchmark)), model="model", draws=50)
    assert [item["accuracy"].chance for item in result.groups.values()] == pytest.approx(
        [float(item) for item in parts]
    )
    assert result["accuracy_macro"].chance == actual["accuracy_macro"]


def test_what_the_form_says_of_itself(tmp_path):
    even, wide = forms.choices({"a": 6}, k=3), forms.choices({"a": 6, "b": 1}, k=(3,) * 6 + (7,))
    part = wide.select(np.arange(6))
    assert part.choices.shape == (6, 7)
    # Places behind the last candidate of all say nothing about the questions.
    assert part.digest == even.digest != wide.digest
    save(even, tmp_path / "even")
    assert load(tmp_path / "even").choices.filled is None
    result = uneven()
    asked = result.choices
    captions = [result.captions[i].text or "" for i in range(len(result.captions))]
    longer = [f"{text}{' again' * (i % 3)}" for i, text in enumerate(captions)]
    texts = [[longer[i] for i in row if i >= 0] for row in asked.candidates.tolist()]
    means = asked.caption_means(np.array([len(text.split()) for text in longer], dtype=float), where="here")
    assert means.tolist() == pytest.approx([np.mean([len(t.split()) for t in row]) for row in texts])
    assert mean_words(result).tolist() == pytest.approx([2.0] * len(result))
    source, roles = asked.training_rows(where="here")
    assert len(source) == sum(count - 1 for count in asked.counts.tolist())
    assert (roles["negative_caption"] >= 0).all()
    assert np.bincount(source).tolist() == (asked.counts - 1).tolist()
    here = np.ones(len(result.captions), dtype=bool)
    here[asked.candidates[1, 4]] = False
    at_hand = asked.at_hand(here, np.ones(len(result.images), dtype=bool), where="here")
    assert np.flatnonzero(~at_hand).tolist() == [1]


@pytest.mark.parametrize(
    ("candidates", "message"),
    [
        ([[0, 1], [2, -1]], "the number of correct candidates does not fit; given: 1; allowed: 1 to 0"),
        ([[0, 1, 2], [3, -1, 4]], r"question 'b': candidates are no positions; given: \[3, -1, 4\]"),
        ([[0, 1, -2], [3, 4, 5]], "question 'a': candidates are no positions"),
    ],
)
def test_gaps_are_behind_the_last_candidate(candidates, message):
    refuses(message, Choice, ("a", "b"), query=np.array([0, 1]), candidates=np.array(candidates))


def test_scores_fit_the_gaps():
    benchmark = uneven(7)
    scores = forms.scores_of(benchmark)
    Scores(scores).check(benchmark, where="here")
    for place, value, message in (
        ((0, 2), 0.5, r"question '0', position \(2,\): a score where the question has no candidate"),
        ((0, 2), np.nan, "a score where the question has no candidate; given: nan"),
        ((1, 4), -np.inf, "score is not a finite number"),
    ):
        odd = scores.copy()
        odd[place] = value
        refuses(message, Scores(odd).check, benchmark, error=ScoreError, where="here")


def some_scores():
    benchmark = uneven(14)
    gaps = benchmark.choices.candidates < 0
    return benchmark, np.where(gaps, -np.inf, np.random.default_rng(0).normal(size=(14, 6)))


def _rows(benchmark, scores, *, captions=False):
    """A table of scores, by the questions' ids or by their captions; empty behind the last candidate."""
    width = range(scores.shape[1])
    names = [f"s{k}" for k in width]
    rows = [[*names, *(f"caption_{k}" for k in width)] if captions else ["id", *names]]
    questions = benchmark.choices
    for name, line, own in zip(questions.ids, scores.tolist(), questions.candidates.tolist(), strict=True):
        cells = ["" if value == -np.inf else str(value) for value in line]
        texts = [str(benchmark.captions[i].text) if i >= 0 else "" for i in own]
        rows.append([*cells, *texts] if captions else [name, *cells])
    return rows


def _joined(path, rows, benchmark):
    """The scores of the benchmark's questions in a table."""
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return join_scores(precomputed.load(str(path)), benchmark).scores


def test_given_tables_are_empty_behind_the_last_candidate(tmp_path):
    benchmark, scores = some_scores()
    path, rows = tmp_path / "scores.csv", _rows(benchmark, scores)
    np.testing.assert_array_equal(_joined(path, rows, benchmark), scores)
    # A part, of which no question has as many candidates as the longest.
    some = benchmark.select(np.array([4, 0, 2]))
    part = precomputed.load(str(path)).take(np.array([0, 2, 4]))
    np.testing.assert_array_equal(join_scores(part, some).scores, scores[[4, 0, 2]])
    np.testing.assert_array_equal(_joined(path, _rows(some, scores[[4, 0, 2], :3]), some), scores[[4, 0, 2]])
    for changes, message in (
        ({(2, 3): ""}, "row 2, column 's2': not a number"),
        (
            {(2, 5): "", (1, 3): "0.2"},
            "row 1, column 's2', question '0': not a score for each candidate; given: 3 scores; allowed: 2",
        ),
        ({(2, 5): ""}, r"row 2, column 's4', question '1': .* given: 4 scores; allowed: 5"),
    ):
        changed = [[changes.get((i, j), cell) for j, cell in enumerate(row)] for i, row in enumerate(rows)]
        refuses(message, _joined, path, changed, benchmark, error=ScoreError)


def test_given_tables_are_matched_by_captions_and_folded_from_pairs(tmp_path):
    benchmark, scores = some_scores()
    path, (head, *lines) = tmp_path / "scores.csv", _rows(benchmark, scores, captions=True)
    np.testing.assert_array_equal(_joined(path, [head, *lines[::-1]], benchmark), scores)
    cells = ((name, *cell) for name, *row in _rows(benchmark, scores)[1:] for cell in enumerate(row))
    pairs = [[f"{name}_c{k}", value] for name, k, value in cells if value]
    np.testing.assert_array_equal(_joined(path, [["id", "score"], *pairs[::-1]], benchmark), scores)
    del pairs[1]
    with pytest.raises(ScoreError, match="question '0' has 1 of its 2 scores"):
        _joined(path, [["id", "score"], *pairs], benchmark)


def test_blind_models_and_an_audit():
    """What is learned from the others' candidates: every wrong one has a word of its own."""
    benchmark = forms.shown(uneven(42))
    right = set(benchmark.choices.candidates[:, 0].tolist())
    texts = [
        type(caption)(caption.id, f"{caption.text} {caption.id}{'' if i in right else ' indeed'}")
        for i, caption in enumerate(benchmark.captions)
    ]
    benchmark = type(benchmark)(benchmark.card, benchmark.images, tuple(texts), benchmark.questions)
    answers = run(benchmark, load_model("blind:learned"), session=Session())
    assert per_item(benchmark, answers)["accuracy"].mean() == 1
    length = run(benchmark, load_model("blind:length"), session=Session())
    for row, own in zip(length.scores, benchmark.choices.candidates.tolist(), strict=True):
        assert row[row > -np.inf].tolist() == [len(texts[i].text.split()) for i in own if i >= 0]
    (result,) = audit(benchmark, draws=100, cache=None).audits
    assert [item.word for item in result.named if item.word.isalpha()] == ["indeed"]
    assert {item.model: item["accuracy"].value for item in result.blind}["blind:learned"] == 1
    assert result.blind[0]["accuracy"].chance == pytest.approx(chance(benchmark)["accuracy"])


@pytest.mark.parametrize("asks", ["image", "caption"])
def test_the_page_shows_each_question_with_its_own_candidates(asks):
    benchmark = forms.shown(uneven(14, asks=asks))
    answers = [Scores(forms.scores_of(benchmark, seed=seed)) for seed in (0, 1)]
    results = [evaluate(benchmark, of, model=f"model {seed}", draws=50) for seed, of in enumerate(answers)]
    runs = [measured_run(benchmark, *both) for both in zip(answers, results, strict=True)]
    html = page(compare(runs), pictures="always")
    assert "2 to 6" in html
    assert "Infinity" not in html
    (carried,) = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', html, re.S)[:1]
    (data,) = json.loads(carried)["benchmarks"]
    counts = benchmark.choices.counts.tolist()
    shown = data["captionAt" if asks == "image" else "imageAt"]
    assert [len(row) for row in shown] == counts
    assert min(map(min, shown)) == 0
    assert [len(row) for row in data["models"][0]["scores"]] == counts
    assert data["pictured"] == 14
