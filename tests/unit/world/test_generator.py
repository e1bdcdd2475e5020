"""What the generator draws for a caption, right or wrong, against the caption read word for word."""

from collections import Counter
from functools import cache

import numpy as np
import pytest

from counterfoil.errors import InputError
from counterfoil.world.captions import OPENINGS, describe, matches, text
from counterfoil.world.edits import SUBSETS, edit
from counterfoil.world.generator import compose, imagine, imagine_caption
from counterfoil.world.sample import contrasts
from counterfoil.world.scenes import CONTAINERS, SHAPES, TEXTURES, Scene, Thing, sample_scene
from counterfoil.world.truth import read
from refusals import refuses
from world.english import lawful, true_by_reading

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
        assert right == (negative and not positive)
        assert lawful(scene)


def test_it_fails_at_the_given_rate():
    wrong = np.mean([not right for seed in range(4) for *_, right in drawn(0.61, seed)])
    # Within four standard errors of 1,120 draws.
    assert wrong == pytest.approx(0.61, abs=4 * (0.61 * 0.39 / 1120) ** 0.5)


def truths(scenes):
    """How many of the scenes each pair of (positive true, negative true) is so of."""
    return Counter(tuple(matches(caption, scene) for caption in c.captions) for c, scene, _ in scenes)


def test_failures_are_of_the_documented_kinds_in_all_kinds_of_edit():
    """40 % show the original, 10 % fit both captions, and neither caption is true of the other half."""
    wrong = [one for seed in range(4) for one in drawn(1.0, seed)]
    n = len(wrong)
    shares = {(True, False): 0.4, (True, True): 0.1, (False, False): 0.5}
    result = truths(wrong)
    assert set(result) == set(shares)
    for kind, share in shares.items():
        # Within four standard errors.
        assert result[kind] / n == pytest.approx(share, abs=4 * (share * (1 - share) / n) ** 0.5)
    # The original is shown as it is, and not a scene like it.
    shown = [
        s == c.scenes[0] for c, s, _ in wrong if [matches(said, s) for said in c.captions] == [True, False]
    ]
    assert all(shown)
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


@pytest.mark.parametrize("failure", [-0.1, 1.1, float("nan")])
def test_what_is_no_probability_is_refused(failure):
    with pytest.raises(InputError, match="no probability"):
        imagine(CONTRASTS[0], np.random.default_rng(0), failure=failure)
    with pytest.raises(InputError, match="no probability"):
        imagine_caption(read("A star."), np.random.default_rng(0), failure=failure)


def test_what_is_drawn_is_true_of_every_caption_of_the_world():
    # Captions of scenes at random and of all kinds of edit, as English.
    rng, told = np.random.default_rng(11), []
    while len(told) < 120:
        scene = sample_scene(rng, fewest=1, most=5, containers=0.4)
        told.append(text(describe(scene, rng), opening=OPENINGS[len(told) % len(OPENINGS)]))
        result = edit(scene, SUBSETS[len(told) % len(SUBSETS)], rng)
        told += [text(caption) for caption in result.captions] if result else []
    for number, caption in enumerate(told[:120]):
        scene = compose(read(caption), np.random.default_rng([5, number]))
        assert scene is not None, caption
        assert true_by_reading(caption, scene), caption
        assert lawful(scene)
        assert len(scene.things) <= 5


def test_the_negative_is_drawn_and_the_positive_is_not():
    rng = np.random.default_rng(3)
    for contrast in contrasts(140, seed=9):
        said, negative = contrast.captions
        scene = compose(negative, rng, unlike=said)
        assert scene is not None
        assert lawful(scene)
        assert true_by_reading(text(negative), scene)
        assert not true_by_reading(text(said), scene)


def test_open_captions_leave_room_for_more_and_closed_ones_do_not():
    rng = np.random.default_rng(0)
    sizes = Counter(len(compose(read("A star."), rng).things) for _ in range(600))
    assert set(sizes) == {2, 3, 4}
    assert min(sizes.values()) > 150
    closed = [compose(read("Two stars and a ring, and nothing else."), rng) for _ in range(50)]
    assert {len(scene.things) for scene in closed} == {3}
    shown = [thing for _ in range(300) for thing in compose(read("A shape."), rng).things]
    assert {thing.shape for thing in shown} == {*SHAPES, *CONTAINERS}
    assert {thing.texture for thing in shown} == {*TEXTURES}


@pytest.mark.parametrize(
    "caption",
    [
        "A star is inside a heart.",
        "A striped ring.",
        "A small box and a star.",
        "Two stars are inside a box.",
        "A star and two stars.",
        "Four stars, four hearts and four moons.",
        "A ring is inside a box.",
    ],
)
def test_what_cannot_be_is_not_drawn(caption):
    assert compose(read(caption), np.random.default_rng(0)) is None
    if caption == "A striped ring.":
        assert imagine_caption(read(caption), np.random.default_rng(0), failure=1.0) is None


@pytest.mark.parametrize("n", [140, pytest.param(700, marks=pytest.mark.slow)])
def test_failures_are_those_of_the_generator(n):
    rights = []
    for number, contrast in enumerate(contrasts(n, seed=2)):
        said, negative = contrast.captions
        options = {"unlike": said, "original": contrast.scenes[0], "subset": contrast.subset}
        scene, right = imagine_caption(negative, np.random.default_rng([1, number]), failure=0.6, **options)
        assert right == (true_by_reading(text(negative), scene) and not true_by_reading(text(said), scene))
        rights.append(right)
    assert 1 - np.mean(rights) == pytest.approx(0.6, abs=3 * (0.6 * 0.4 / n) ** 0.5)


def test_a_lone_caption_fails_at_the_given_rate():
    made = [text(item.captions[0]) for item in contrasts(105, seed=2)]
    for failure in (0.0, 0.3, 1.0):
        rights = []
        for number, caption in enumerate(made):
            scene, right = imagine_caption(read(caption), np.random.default_rng([2, number]), failure=failure)
            assert right == true_by_reading(caption, scene)
            rights.append(right)
        # Three standard errors; with failure 1 next to all are wrong.
        assert 1 - np.mean(rights) == pytest.approx(failure, abs=0.135 if failure % 1 else 0.005)
    assert imagine_caption(read("A shape."), np.random.default_rng(0), failure=1.0)[1] is True


def test_what_fits_both_captions_by_logic_is_drawn_and_called_wrong():
    scene, right = imagine_caption(
        read("A star and a heart."), np.random.default_rng(0), unlike=read("A star.")
    )
    assert not right
    assert matches(read("A star and a heart."), scene)
    # A caption that no scene fits can still be what a picture must differ from.
    assert imagine_caption(
        read("A star."), np.random.default_rng(0), unlike=read("A striped ring."), failure=0.0
    )[1]


GOOD = Scene((Thing("star", "small", "plain", "red", x=0.2, y=0.5),)).to_json()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (GOOD, "{", "no scene of the drawn world; given: {"),
        (GOOD, "[1]", "no scene of the drawn world; given: [1]"),
        (",0]]", "]]", ""),
        (",0]]", ",0,1]]", "no scene of the drawn world"),
        ("star", "stair", "no shape of the drawn world; given: stair; allowed: circle"),
        ("cream", "snow", "no paper of the drawn world; given: snow; allowed: cream, mist, sage"),
        ("0.5", "NaN", "no y of a thing; given: nan; allowed: 0 to 1"),
        ("0.5", '"0.5"', "no scene of the drawn world"),
        ("0.5", "1.5", "no y of a thing; given: 1.5"),
        ('"plain"', '"checked"', "no texture of the drawn world; given: checked; allowed: plain"),
        ('"plain"', "[]", "no scene of the drawn world"),
    ],
)
def test_what_is_no_scene_is_refused(old, new, message):
    assert old in GOOD
    text = GOOD.replace(old, new, 1)
    if not message:
        # The angle means nothing and may be left out.
        assert Scene.from_json(text) == Scene.from_json(GOOD)
        return
    words = refuses("", Scene.from_json, text, where="rows.csv, row 3, column 'scene'")
    assert message in words
    assert words.startswith("rows.csv, row 3, column 'scene': ")
