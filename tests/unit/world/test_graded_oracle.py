"""The oracle on captions that are right by degrees: every correlation is 1, every preference right."""

from functools import partial

import numpy as np
import pytest
from scipy.stats import kendalltau, pearsonr, spearmanr

from counterfoil.benchmarks.records import BytesSource, Caption, Image
from counterfoil.benchmarks.videos import Video
from counterfoil.catalog import benchmark
from counterfoil.engine.run import run
from counterfoil.engine.session import Session
from counterfoil.errors import DataError
from counterfoil.studies.oracle import load
from counterfoil.world import ratings
from counterfoil.world.benchmarks import clips


@pytest.fixture(params=[partial(ratings.rated, lazy=True), clips], ids=["rated", "clips"])
def rated(request):
    return request.param(48, size=32)


def test_every_correlation_of_the_oracle_is_one(rated, tmp_path):
    # The first of each tau, and no tie that the ratings have not.
    scores = run(rated, load("oracle"), session=Session(tmp_path)).values
    truth = rated.questions.ratings[:, 0]
    for found in (
        kendalltau(scores, truth, variant="b"),
        kendalltau(scores, truth, variant="c"),
        spearmanr(scores, truth),
        pearsonr(scores, truth),
    ):
        assert found.statistic == pytest.approx(1.0, abs=1e-12)
    # From the cache the same bits.
    assert (run(rated, load("oracle"), session=Session(tmp_path)).values == scores).all()


def test_the_oracle_prefers_what_people_prefer():
    preferences = ratings.preferences(48, size=32, lazy=True)
    scores = run(preferences, load("oracle")).values
    assert not (scores[:, 0] == scores[:, 1]).any()
    assert (np.argmax(scores, axis=1) == preferences.questions.label).all()


# Hundreds of pictures and videos are drawn for it.
@pytest.mark.slow
def test_the_catalog_knows_how_many_there_are():
    for name, size, shows in (
        ("world-rated", 400, "image"),
        ("world-preferences", 400, "image"),
        ("world-clips", 399, "video"),
    ):
        world = benchmark(name)
        assert len(world) == world.card.size == size
        assert world.card.shows == shows
        assert set(world.card.groupings) == set(world.questions.groupings)
        assert all(isinstance(image, Video) == (shows == "video") for image in world.images)


def test_a_video_that_is_only_frames_is_no_scene():
    for item in (Image("a", BytesSource(b"")), Video("a", BytesSource(b""))):
        with pytest.raises(DataError, match="knows the scenes behind pictures"):
            load("oracle").score([item], [Caption("c", "A star.")])
