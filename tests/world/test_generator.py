import numpy as np
import pytest

from counterfoil.errors import InputError
from counterfoil.world.captions import matches
from counterfoil.world.edits import SUBSETS
from counterfoil.world.generator import imagine, shows
from counterfoil.world.sample import contrasts
from counterfoil.world.scenes import CONTAINERS

CONTRASTS = contrasts(280, seed=6)


def drawn(failure: float, seed: int = 3):
    rng = np.random.default_rng(seed)
    return [(contrast, *imagine(contrast, rng, failure=failure)) for contrast in CONTRASTS]


def test_a_generator_that_never_fails_draws_the_second_scene():
    assert {contrast.subset for contrast in CONTRASTS} == set(SUBSETS)
    for contrast, scene, right in drawn(0.0):
        assert right
        assert scene == contrast.scenes[1]


@pytest.mark.parametrize("failure", [0.2, 0.61, 1.0])
def test_it_is_right_exactly_where_it_says_so(failure):
    for contrast, scene, right in drawn(failure):
        positive, negative = (matches(caption, scene) for caption in contrast.captions)
        assert right == (negative and not positive) == shows(contrast, scene)


def test_it_fails_as_often_as_asked():
    wrong = np.mean([not right for seed in range(10) for *_, right in drawn(0.61, seed)])
    # Within four standard errors of 2,800 draws.
    assert wrong == pytest.approx(0.61, abs=4 * (0.61 * 0.39 / 2800) ** 0.5)


def test_failures_are_of_several_kinds():
    kinds = {"original": 0, "both": 0, "neither": 0}
    for contrast, scene, _ in drawn(1.0):
        if scene == contrast.scenes[0]:
            kinds["original"] += 1
        elif all(matches(caption, scene) for caption in contrast.captions):
            kinds["both"] += 1
        else:
            kinds["neither"] += 1
    # Four in ten at least are the original, which also stands in for what cannot be had.
    assert kinds["original"] > 0.3 * len(CONTRASTS)
    assert kinds["neither"] > 0.2 * len(CONTRASTS)
    assert kinds["both"] > 0


def test_what_it_draws_are_scenes_of_the_world():
    """No two things of one cell, but for a small one in a container, which is large and plain."""
    for _, scene, _ in drawn(1.0):
        cells: dict[tuple[int, int], list] = {}
        for thing in scene.things:
            cells.setdefault(thing.cell, []).append(thing)
            if thing.shape in CONTAINERS:
                assert (thing.size, thing.texture) == ("large", "plain")
        for things in cells.values():
            if len(things) > 1:
                assert len(things) == 2
                assert sum(thing.shape in CONTAINERS for thing in things) == 1
                assert {thing.size for thing in things if thing.shape not in CONTAINERS} == {"small"}


def test_a_seed_names_what_is_drawn():
    assert drawn(0.5) == drawn(0.5)
    assert drawn(0.5) != drawn(0.5, seed=4)


@pytest.mark.parametrize("failure", [-0.1, 1.1, float("nan")])
def test_what_is_no_probability_is_refused(failure):
    with pytest.raises(InputError, match="no probability"):
        imagine(CONTRASTS[0], np.random.default_rng(0), failure=failure)
