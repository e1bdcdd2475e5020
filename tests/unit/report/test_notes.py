"""Sentences: only what the results say, and what stands behind their intervals."""

import numpy as np
import pytest

from counterfoil.benchmarks.answers import Scores
from counterfoil.benchmarks.benchmark import Benchmark, Card
from counterfoil.benchmarks.forms import Choice
from counterfoil.benchmarks.records import Caption, Image
from counterfoil.evaluation.compare import Comparison, compare
from counterfoil.evaluation.evaluate import evaluate
from counterfoil.metrics.ties import Ties
from counterfoil.report.forms import FORMS
from counterfoil.report.results import below_chance, lead, rests_on
from report_fixtures import quad_benchmark, run_of

QUADS = FORMS["quad"]


def said(comparison):
    return [note.text.replace("\N{NO-BREAK SPACE}", " ") for note in QUADS.notes(comparison)]


def one(values, policy=Ties.STRICT):
    return compare([run_of(quad_benchmark(len(values)), "alone", Scores(values), ties=policy)])[0]


def test_a_constant_model_is_exposed():
    comparison = one(np.zeros((40, 2, 2)))
    # A random order of four scores puts the two true ones first in 1 of 6 cases.
    assert said(comparison)[0] == (
        "alone ties a right and a wrong pair in 40 of 40 questions (100.00 %): "
        "by how ties count, Group is 0.00 % as wrong, 16.67 % by chance, 100.00 % as right."
    )
    assert "Below chance on I2T, T2I and Group, with the whole interval: alone." in said(comparison)
    assert "below chance (16.67" in lead(comparison)
    assert QUADS.notes(comparison)[0].kind == "warning"
    assert QUADS.ties(comparison).endswith("a tie is wrong.")
    assert "random order" in QUADS.ties(one(np.zeros((40, 2, 2)), Ties.HALF))


def test_a_model_without_ties_gives_no_warning_and_equal_ones_are_not_distinguished():
    comparison = one(np.random.default_rng(0).normal(size=(40, 2, 2)) + 5 * np.eye(2))
    assert all(note.kind == "fact" for note in QUADS.notes(comparison))
    assert "No model has a tie; ties count as wrong." in said(comparison)
    benchmark, scores = quad_benchmark(), Scores(np.random.default_rng(1).normal(size=(40, 2, 2)))
    comparison = compare([run_of(benchmark, name, scores) for name in ("a", "b")])[0]
    assert lead(comparison).endswith("of 2, not significantly different (p ≥ 0.05 after Holm) from b.")


def test_the_lead_names_the_best_and_the_models_not_distinguished_from_it(quads):
    best = max(quads.runs, key=lambda run: run.items["group"].mean())
    text = lead(quads).replace("\N{NO-BREAK SPACE}", " ")
    assert text.startswith(f"{best.name} has Group {100 * best.items['group'].mean():.2f} % (")
    assert "chance (16.67 %)" in text
    tested = [d for d in quads.differences if d.measure == "group" and d.p_holm >= 0.05]
    rivals = {{d.a: d.b, d.b: d.a}[best.name] for d in tested if best.name in (d.a, d.b)}
    assert all(name in text for name in rivals)
    assert ("not significantly different (p" in text) == bool(rivals)
    texts = said(quads)
    assert any(text.startswith("outcomes: only right and wrong were given") for text in texts)
    # Neighbouring questions share an image, so the intervals come from clusters.
    assert any(text.startswith("95 % intervals: over clusters of questions") for text in texts)


def test_the_more_models_are_looked_at_the_farther_below_chance_one_must_be():
    """Alone it is noted; beside twenty others at chance it is not, and one that is never right still is."""
    benchmark = quad_benchmark(200)
    rng = np.random.default_rng(0)

    def model(name, right):
        hit = rng.permutation(np.arange(200) < 200 * right)
        return run_of(benchmark, name, Scores(np.where(hit[:, None, None], np.eye(2), 1 - np.eye(2))))

    low = model("low", 0.17)
    assert low.result["i2t"].high < 0.25
    others = [model(f"m{i}", 0.25) for i in range(20)]
    never = model("never", 0.0)

    def named(*runs):
        return " ".join(note.text for note in below_chance(Comparison(benchmark.name, runs, None, ())))

    assert "low" in named(low)
    assert "low" not in named(low, *others)
    assert "never" in named(low, never, *others)


def asked(captions, query):
    """A choice per row of `captions`, of the images of `query`."""
    n = len(captions)
    return Benchmark(
        Card(name="mine", title="Mine", form="choice"),
        tuple(Image(f"i{i}") for i in range(int(query.max()) + 1)),
        tuple(Caption(f"c{i}", f"text {i}") for i in range(int(captions.max()) + 1)),
        Choice(tuple(map(str, range(n))), query=query, candidates=captions, asks="image"),
    )


def measured(images, captions, interval="auto"):
    """Nine in ten right."""
    n = len(captions)
    benchmark, right = asked(captions, np.arange(n) % images), np.arange(n) % 10 > 0
    scores = Scores(np.stack([right, ~right], axis=1).astype(np.float64))
    return benchmark, evaluate(benchmark, scores, model="s", interval=interval, draws=200)


def test_two_captions_of_all_questions_are_noted_as_given():
    benchmark, result = measured(200, np.tile([[0, 1]], (200, 1)))
    assert result.provenance["interval"]["given"] == {"images": 0, "captions": 2}
    estimate = result.measures["accuracy"]
    assert 0.84 < estimate.low < 0.9 < estimate.high < 0.95
    (line, second), images = rests_on(benchmark, [result]), "intervals rest on 200 images and 2 captions"
    assert line == f"{images}; effective sample size for Accuracy: 200"
    assert second.startswith("2 captions are in so many questions that intervals take them as given: they")


def test_few_images_are_warned_of_and_many_of_all_are_not():
    unique = np.arange(600).reshape(300, 2)
    benchmark, result = measured(300, unique)
    assert rests_on(benchmark, [result])[1:] == []
    benchmark, result = measured(12, unique)
    assert rests_on(benchmark, [result])[1].startswith("few images (12)")


@pytest.mark.parametrize(("interval", "warned"), [("auto", True), ("wilson", True), ("clusters", False)])
def test_given_items_are_noted_for_intervals_that_take_them_so(interval, warned):
    benchmark, result = measured(200, np.tile([[0, 1]], (200, 1)), interval)
    assert any("as given" in line for line in rests_on(benchmark, [result])) == warned
    # As one cluster, all questions are one.
    assert any("few effective" in line for line in rests_on(benchmark, [result])) == (not warned)


def test_effective_numbers_are_those_of_all_results():
    rng = np.random.default_rng(0)
    benchmark, first = measured(250, np.stack([rng.integers(0, 40, 500), 40 + np.arange(500)], axis=1))
    _, second = measured(250, np.asarray(benchmark.questions.candidates), "wilson")
    assert first.provenance["interval"]["method"] == "crossed"
    assert first.provenance["interval"]["images"] == 250
    assert second.measures["accuracy"].effective == 500
    resting = rests_on(benchmark, [first, second])[0]
    assert resting.endswith(" to 500") or ": 500 to " in resting


def test_an_image_or_a_caption_of_more_than_a_tenth_is_named():
    """Of 300 questions 40 are of image 0, and 20 of caption 0; a tenth of them would be 30."""
    captions = np.arange(600).reshape(300, 2)
    captions[:20, 0] = 0
    assert rests_on(asked(captions, np.maximum(np.arange(300) - 39, 0)), [])[1:] == [
        "image 'i0' is in 13 % of the questions: intervals are wide, since they rest on few other images"
    ]
