from collections import Counter
from functools import cache

import numpy as np
import pytest

from counterfoil.errors import InputError
from counterfoil.world.captions import matches
from counterfoil.world.edits import SUBSETS
from counterfoil.world.generator import imagine, shows
from counterfoil.world.sample import contrasts
from world.english import lawful

CONTRASTS = contrasts(280, seed=6)


@cache
def drawn(failure, seed=3):
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


def test_it_fails_at_the_given_rate():
    wrong = np.mean([not right for seed in range(4) for *_, right in drawn(0.61, seed)])
    # Within four standard errors of 1,120 draws.
    assert wrong == pytest.approx(0.61, abs=4 * (0.61 * 0.39 / 1120) ** 0.5)


def truths(scenes):
    """How many of the scenes each pair of (positive true, negative true) is so of."""
    return Counter(tuple(matches(caption, scene) for caption in c.captions) for c, scene, _ in scenes)


def test_failures_are_of_the_documented_kinds():
    """40 % show the original, 10 % fit both captions, and neither caption is true of the other half."""
    wrong = [one for seed in range(4) for one in drawn(1.0, seed)]
    n = len(wrong)
    shares = {(True, False): 0.4, (True, True): 0.1, (False, False): 0.5}
    found = truths(wrong)
    assert set(found) == set(shares)
    for kind, share in shares.items():
        # Within four standard errors.
        assert found[kind] / n == pytest.approx(share, abs=4 * (share * (1 - share) / n) ** 0.5)
    # The original is shown as it is, and not a scene like it.
    assert all(s == c.scenes[0] for c, s, _ in wrong if matches(c.captions[0], s) and not shows_both(c, s))


def shows_both(contrast, scene):
    return all(matches(caption, scene) for caption in contrast.captions)


def test_both_captions_fit_in_all_kinds_of_edit_that_allow_it():
    wrong = [one for seed in range(4) for one in drawn(1.0, seed)]
    for subset in SUBSETS:
        of = [one for one in wrong if one[0].subset == subset]
        # ADD says "and nothing else", so no scene fits both; the five others make up for it.
        share = 0.0 if subset.startswith("add") else 0.1 * 7 / 5
        both = truths(of)[True, True] / len(of)
        assert both == pytest.approx(share, abs=4 * (share * (1 - share) / len(of)) ** 0.5)


def test_spoilt_pictures_are_the_right_one_with_little_changed():
    """Three in ten of the wrong ones have the right scene's things in their places, all but one or two."""
    near = 0
    for contrast, scene, _ in (wrong := [one for seed in range(4) for one in drawn(1.0, seed)]):
        right = contrast.scenes[1].things
        if len(scene.things) == len(right) and scene != contrast.scenes[0]:
            same = sum(one == other for one, other in zip(scene.things, right, strict=True))
            places = [(t.x, t.y) for t in scene.things] == [(t.x, t.y) for t in right]
            near += places and same >= len(right) - 2
    assert near / len(wrong) == pytest.approx(0.3, abs=4 * (0.3 * 0.7 / len(wrong)) ** 0.5)


def test_what_it_draws_are_scenes_of_the_world():
    assert all(lawful(scene) for _, scene, _ in drawn(1.0))


@pytest.mark.parametrize("failure", [-0.1, 1.1, float("nan")])
def test_what_is_no_probability_is_refused(failure):
    with pytest.raises(InputError, match="no probability"):
        imagine(CONTRASTS[0], np.random.default_rng(0), failure=failure)
