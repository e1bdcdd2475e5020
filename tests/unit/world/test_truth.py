"""The fast table against the checker, and both against a twin that only reads English."""

import numpy as np

from counterfoil.world.captions import Meaning, Phrase, describe, matches, text
from counterfoil.world.edits import SUBSETS, edit
from counterfoil.world.scenes import Scene, sample_scene
from counterfoil.world.truth import table
from world.english import random_meaning, true_by_reading


def mixed(rng, captions, scenes):
    """Loose captions, wild ones and near misses, and scenes of one to eight things."""
    shown = [sample_scene(rng, fewest=1, most=int(rng.integers(1, 9)), containers=0.5) for _ in range(scenes)]
    told = []
    while len(told) < captions:
        scene = shown[rng.integers(len(shown))]
        told += [describe(scene, rng), random_meaning(scene, rng)]
        if len(scene.things) > 1:
            contrast = edit(scene, SUBSETS[rng.integers(len(SUBSETS))], rng)
            if contrast is not None:
                told += contrast.captions
                shown += contrast.scenes
    return told[:captions], shown


def test_table_checker_and_reader_agree_on_thousands_of_pairs():
    told, shown = mixed(np.random.default_rng(3), 110, 50)
    answers = table(told, shown)
    assert answers.shape == (110, len(shown))
    assert answers.dtype == bool
    slow = np.array([[matches(meaning, scene) for scene in shown] for meaning in told])
    assert (answers == slow).all()
    read = np.array([[true_by_reading(text(m), s) for s in shown if len(s.things) < 6] for m in told])
    assert (slow[:, [len(s.things) < 6 for s in shown]] == read).all()
    assert read.size > 5000
    assert 0.02 < answers.mean() < 0.5


def test_nothing_to_ask():
    scene = sample_scene(np.random.default_rng(0))
    star = Meaning((Phrase("star"),))
    assert table([], [scene]).shape == (0, 1)
    assert table([star], []).shape == (1, 0)
    assert table([star], [Scene(())]).tolist() == [[False]]
