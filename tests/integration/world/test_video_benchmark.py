"""`world-clips`: graded captions of moving scenes."""

from collections import Counter
from itertools import permutations

import numpy as np
import pytest

from counterfoil.benchmarks.videos import Video
from counterfoil.world.benchmarks import MOTIONS, REFERENCES, clips
from counterfoil.world.captions import matches
from counterfoil.world.truth import read

SEED, N = 4, 63


@pytest.fixture(scope="module")
def made():
    return clips(N, seed=SEED, size=32)


def test_each_rating_is_what_the_frames_say(made):
    questions = made.questions
    for row in range(len(made)):
        meaning = read(made.captions[questions.captions[row]].text)
        video = made.images[questions.images[row]]
        assert isinstance(video, Video)
        true = [matches(meaning, scene) for scene in video.source.scenes]
        rating = questions.ratings[row, 0]
        assert rating == (1.0 if all(true) else 0.5 if any(true) else 0.0)
        if rating == 0.5:
            assert 0.2 <= np.mean(true) <= 0.8


def test_grades_and_motions_are_balanced(made):
    values, counts = np.unique(made.questions.ratings, return_counts=True)
    assert values.tolist() == [0, 0.5, 1]
    assert counts.tolist() == [21, 21, 21]
    motions = made.questions.groupings["motion"]
    assert {motion: motions.count(motion) for motion in MOTIONS} == dict.fromkeys(MOTIONS, 9)


def test_references_are_true_throughout_and_say_something_else(made):
    questions = made.questions
    for row in range(len(made)):
        scenes = made.images[questions.images[row]].source.scenes
        said = [read(made.captions[i].text) for i in questions.references.row(row)]
        assert len(set(said)) == len(said) == REFERENCES
        assert all(matches(meaning, scene) for meaning in said for scene in scenes)
        assert read(made.captions[questions.captions[row]].text) not in said


def test_length_tells_nothing():
    made = clips(90, size=32)
    long = np.array([len(made.captions[i].text.split()) for i in made.questions.captions]).reshape(-1, 3)
    # Of every clip the three captions are a word apart, and each order of the grades is as common as any.
    orders = [tuple(row - row.min()) for row in long]
    assert Counter(orders) == dict.fromkeys(permutations(range(3)), 5)


def test_same_seed_same_clips(made):
    again = clips(N, seed=SEED, size=32)
    assert again.digest == made.digest
    assert [image.source.read() for image in again.images] == [image.source.read() for image in made.images]
    assert clips(9, seed=SEED + 1, size=32).digest != clips(9, seed=SEED, size=32).digest
