"""Degrees of truth, against twins that go claim by claim."""

import numpy as np
import pytest
from scipy.stats import kendalltau, pearsonr, spearmanr

from counterfoil.benchmarks.records import BytesSource, Caption, Image
from counterfoil.benchmarks.videos import Video
from counterfoil.catalog import benchmark
from counterfoil.engine.session import Session, run
from counterfoil.studies.oracle import load
from counterfoil.world import ratings
from counterfoil.world.captions import describe, matches
from counterfoil.world.edits import SUBSETS, edit
from counterfoil.world.ratings import claims, level, level_table
from counterfoil.world.scenes import Scene, Thing, sample_scene
from counterfoil.world.truth import read
from refusals import refuses

STAR = Thing("star", "small", "plain", "red", x=0.2, y=0.2)
MOON = Thing("moon", "large", "dotted", "blue", x=0.8, y=0.2)


@pytest.fixture(scope="module")
def asked():
    """Captions of all kinds, and scenes that some of them are of."""
    rng = np.random.default_rng(5)
    scenes = [sample_scene(rng) for _ in range(8)]
    said = [describe(scene, rng) for scene in scenes for _ in range(3)]
    for scene in scenes:
        result = [edit(scene, subset, rng) for subset in SUBSETS]
        said += [caption for contrast in result if contrast is not None for caption in contrast.captions]
    return list(dict.fromkeys(said)), scenes


def test_all_claims_hold_exactly_where_the_caption_does(asked):
    meanings, scenes = asked
    true = 0
    for meaning in meanings:
        for scene in scenes:
            held = [matches(claim, scene) for claim in claims(meaning)]
            assert all(held) == matches(meaning, scene)
            true += all(held)
    assert 0 < true < len(meanings) * len(scenes)


def test_the_table_equals_the_decision_pair_by_pair(asked):
    meanings, scenes = asked
    table = level_table(meanings, scenes)
    assert set(np.unique(table)) == {1, 2, 3, 4}
    for meaning, row in zip(meanings, table, strict=True):
        for scene, result in zip(scenes, row, strict=True):
            held = [matches(claim, scene) for claim in claims(meaning)]
            of = sum(held) / len(held)
            assert result == level(meaning, scene) == (4 if of == 1 else 3 if of >= 0.5 else 2 if of else 1)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("A red star is to the left of a moon.", 4),
        ("A blue star is to the left of a moon.", 3),  # a star, a moon; not a blue star, not all of it
        ("A red star is above a moon.", 3),  # all but how they lie
        ("Two stars.", 3),  # a star
        ("A heart and a blue star.", 2),  # a star; neither heart, nor a blue one, nor both
        ("A heart.", 1),
        ("A small red heart.", 1),
        ("A blue shape.", 4),
    ],
)
def test_levels_derived_by_hand(said, expected):
    assert level(read(said), Scene((STAR, MOON))) == expected


@pytest.fixture
def rated():
    return ratings.rated(48, size=32, lazy=True)


def test_every_correlation_of_the_oracle_is_one(rated, tmp_path):
    # The first of each tau, and no tie that the ratings have not.
    scores = run(rated, load("oracle"), session=Session(tmp_path)).values
    truth = rated.questions.ratings[:, 0]
    for result in (
        kendalltau(scores, truth, variant="b"),
        kendalltau(scores, truth, variant="c"),
        spearmanr(scores, truth),
        pearsonr(scores, truth),
    ):
        assert result.statistic == pytest.approx(1.0, abs=1e-12)
    # From the cache the same bits.
    assert (run(rated, load("oracle"), session=Session(tmp_path)).values == scores).all()


def test_the_oracle_prefers_what_people_prefer_and_frames_alone_are_no_scene():
    preferences = ratings.preferences(48, size=32, lazy=True)
    scores = run(preferences, load("oracle")).values
    assert not (scores[:, 0] == scores[:, 1]).any()
    assert (np.argmax(scores, axis=1) == preferences.questions.label).all()
    for item in (Image("a", BytesSource(b"")), Video("a", BytesSource(b""))):
        refuses("knows the scenes behind pictures", load("oracle").score, [item], [Caption("c", "A star.")])


# Hundreds of pictures are drawn for it.
@pytest.mark.slow
def test_the_catalog_knows_how_many_there_are():
    for name in ("world-rated", "world-preferences"):
        world = benchmark(name)
        assert len(world) == world.card.size == 400
        assert set(world.card.groupings) == set(world.questions.groupings)
