"""What is said of the images, captions and effective questions behind intervals."""

import numpy as np
import pytest

from counterfoil.benchmarks.answers import Scores
from counterfoil.benchmarks.benchmark import Benchmark, Card
from counterfoil.benchmarks.forms import Choice
from counterfoil.benchmarks.records import Caption, Image
from counterfoil.evaluation.evaluate import evaluate
from counterfoil.evaluation.result import Result
from counterfoil.report.notes import resting, rests_on, warnings


def asked(captions: np.ndarray, query: np.ndarray) -> Benchmark:
    """A choice per row of `captions`, of the images of `query`."""
    n = len(captions)
    return Benchmark(
        Card(name="mine", title="Mine", form="choice"),
        tuple(Image(f"i{i}") for i in range(int(query.max()) + 1)),
        tuple(Caption(f"c{i}", f"text {i}") for i in range(int(captions.max()) + 1)),
        Choice(tuple(map(str, range(n))), query=query, candidates=captions, asks="image"),
    )


def measured(images: int, captions: np.ndarray, interval: str = "auto") -> tuple[Benchmark, Result]:
    """Nine in ten right."""
    n = len(captions)
    benchmark, right = asked(captions, np.arange(n) % images), np.arange(n) % 10 > 0
    scores = Scores(np.stack([right, ~right], axis=1).astype(np.float64))
    return benchmark, evaluate(benchmark, scores, scorer="s", interval=interval, draws=200)


def test_two_captions_of_all_questions_are_noted_as_given():
    benchmark, result = measured(200, np.tile([[0, 1]], (200, 1)))
    assert result.provenance["interval"]["given"] == {"images": 0, "captions": 2}
    estimate = result.measures["accuracy"]
    assert 0.84 < estimate.low < 0.9 < estimate.high < 0.95
    assert resting(benchmark, [result]) == (
        "intervals rest on 200 images and 2 captions; Accuracy: 200 effective questions"
    )
    assert warnings(benchmark, [result]) == [
        "2 captions are in so many questions that intervals take them as given: they say nothing of "
        "other captions"
    ]


def test_few_images_are_warned_of_and_many_of_all_are_not():
    unique = np.arange(600).reshape(300, 2)
    benchmark, result = measured(300, unique)
    assert rests_on(benchmark, [result])[1:] == []
    benchmark, result = measured(12, unique)
    assert warnings(benchmark, [result])[0].startswith("few images (12)")


@pytest.mark.parametrize(("interval", "warned"), [("auto", True), ("wilson", True), ("clusters", False)])
def test_given_items_are_noted_for_intervals_that_take_them_so(interval, warned):
    benchmark, result = measured(200, np.tile([[0, 1]], (200, 1)), interval)
    assert any("as given" in line for line in warnings(benchmark, [result])) == warned
    # As one cluster, all questions are one.
    assert any("few effective" in line for line in warnings(benchmark, [result])) == (not warned)


def test_effective_numbers_are_those_of_all_results():
    rng = np.random.default_rng(0)
    benchmark, first = measured(250, np.stack([rng.integers(0, 40, 500), 40 + np.arange(500)], axis=1))
    _, second = measured(250, np.asarray(benchmark.questions.candidates), "wilson")
    assert first.provenance["interval"]["method"] == "crossed"
    assert first.provenance["interval"]["images"] == 250
    assert second.measures["accuracy"].effective == 500
    assert " to 500 effective questions" in resting(benchmark, [first, second]) or (
        "500 to" in resting(benchmark, [first, second])
    )


def test_an_image_or_a_caption_of_more_than_a_tenth_is_named():
    """Of 300 questions 40 are of image 0, and 20 of caption 0; a tenth of them would be 30."""
    captions = np.arange(600).reshape(300, 2)
    captions[:20, 0] = 0
    assert warnings(asked(captions, np.maximum(np.arange(300) - 39, 0)), []) == [
        "image 'i0' is in 13 % of the questions: intervals rest on few others, and are wide"
    ]
