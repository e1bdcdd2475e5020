"""Blind scorers: constants tie, random draws belong to pairs, length counts words, and no image is opened."""

import numpy as np
import pytest

from counterfoil.benchmarks.records import Caption, Image
from counterfoil.models import baselines
from counterfoil.models.base import Options, Scorer


class Unreadable:
    """A source that fails the test when anybody reads it."""

    def read(self):
        raise AssertionError("a blind scorer opened an image")


IMAGES = [Image(f"image {i}", Unreadable()) for i in range(4)]
CAPTIONS = [
    Caption("a", "a cat"), Caption("b", "a cat on a mat"), Caption("c", "two  cats "), Caption("d", "dogs"),
]  # fmt: skip


@pytest.mark.parametrize("name", ["constant", "random", "length"])
def test_is_a_scorer_that_opens_nothing(name):
    scorer = baselines.load_blind(name)
    assert isinstance(scorer, Scorer)
    assert scorer.identity.name == f"blind:{name}"
    scores = scorer.score(IMAGES, CAPTIONS)
    assert scores.shape == (4,)
    assert scores.dtype == np.float64


def test_length_counts_words_between_blanks():
    assert baselines.load_blind("length").score(IMAGES, CAPTIONS).tolist() == [2, 5, 2, 1]


def test_random_differs_by_seed_image_and_text_and_not_by_a_captions_name():
    found = [
        scorer.score([image] * 4, CAPTIONS).tolist()
        for scorer in (baselines.load_blind("random", Options(seed=seed)) for seed in (0, 1))
        for image in IMAGES
    ]
    assert len({draw for row in found for draw in row}) == 2 * 4 * 4
    one, other = baselines.load_blind("random").score(IMAGES[:1] * 2, [Caption(n, "a cat") for n in "xy"])
    assert one == other


def test_random_is_uniform():
    # 4,000 draws: the mean of a uniform is 1/2 with standard error 0.0046; ten of them allowed.
    captions = [Caption(str(i), f"caption {i}") for i in range(4000)]
    draws = baselines.load_blind("random").score([IMAGES[0]] * 4000, captions)
    assert abs(draws.mean() - 0.5) < 0.046
    assert draws.min() >= 0
    assert draws.max() < 1
