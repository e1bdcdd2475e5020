"""`world-rated` and `world-preferences`: levels, votes, references."""

import numpy as np
import pytest

from counterfoil.world.captions import matches
from counterfoil.world.ratings import LEVELS, PAIRS, REFERENCES, level, preferences, rated
from counterfoil.world.truth import read

SEED = 6


@pytest.fixture(scope="module")
def made():
    return rated(160, seed=SEED, size=32, lazy=True)


@pytest.fixture(scope="module")
def preferred():
    return preferences(120, seed=SEED, size=32, lazy=True)


def scene_of(made, image):
    return made.images[image].source.scene


def meaning_of(made, caption):
    return read(made.captions[caption].text)


def check_references(made, references, row, scene, candidates):
    said = [meaning_of(made, i) for i in references.row(row)]
    assert len(set(said)) == len(said) == REFERENCES
    assert all(matches(meaning, scene) for meaning in said)
    assert not set(said) & set(candidates)


def test_each_rating_is_the_level_of_the_caption(made):
    questions = made.questions
    for row in range(len(made)):
        meaning = meaning_of(made, questions.captions[row])
        scene = scene_of(made, questions.images[row])
        assert questions.ratings[row, 0] == level(meaning, scene)
        check_references(made, questions.references, row, scene, [meaning])
        assert questions.groupings["things"][row] == f"{len(scene.things)} things"


def test_levels_come_equally_often(made):
    assert np.unique(made.questions.ratings, return_counts=True)[1].tolist() == [40, 40, 40, 40]
    assert len(np.unique(made.clusters)) == len(made.images) == 40


def test_length_tells_nothing():
    made = rated(4 * 96, lazy=True)
    long = np.array([len(made.captions[i].text.split()) for i in made.questions.captions]).reshape(-1, 4)
    # Levels in every order of length equally often, but for scenes of which there is too little to say.
    assert (np.sort(long - long.min(axis=1, keepdims=True)) == np.arange(4)).all(axis=1).mean() > 0.85
    assert np.abs(long.mean(axis=0) - long.mean()).max() < 0.05
    made = preferences(180, lazy=True)
    long = np.array([len(made.captions[i].text.split()) for i in made.questions.captions]).reshape(-1, 2)
    right = np.take_along_axis(long, made.questions.label[:, None], axis=1)[:, 0]
    assert abs((right > long.min(axis=1)).mean() - 0.5) < 0.08
    assert (long[:, 0] == long[:, 1]).mean() < 0.05


def test_a_preference_is_between_two_levels(preferred):
    questions = preferred.questions
    captions = questions.captions.reshape(-1, 2)
    for row in range(len(preferred)):
        scene = scene_of(preferred, questions.images[2 * row])
        said = [meaning_of(preferred, caption) for caption in captions[row]]
        result = [level(meaning, scene) for meaning in said]
        better, worse = questions.groupings["kind"][row].split("-")
        assert (LEVELS[max(result) - 1], LEVELS[min(result) - 1]) == (better, worse)
        assert questions.label[row] == np.argmax(result) == np.argmax(questions.votes[row])
        for side in (0, 1):
            check_references(preferred, questions.references, 2 * row + side, scene, said)
    kinds = questions.groupings["kind"]
    assert {kinds.count(kind) for kind in kinds} == {120 // len(PAIRS)}
    assert 0.3 < questions.label.mean() < 0.7


def test_votes_are_those_of_people_who_err(preferred):
    votes = preferred.questions.votes
    assert (votes.sum(axis=1) == 25).all()
    # 25 voters of accuracy 0.95, 0.9, 0.85 and 0.8: 0.876 of them are right, give or take.
    expected = np.mean([(0.95, 0.9, 0.85, 0.8)[i % 4] for i in range(25)])
    assert abs((votes.max(axis=1) / 25).mean() - expected) < 0.02
    assert (votes.min(axis=1) > 0).any()
