"""Scenes that are changed as a caption of them was."""

import numpy as np
import pytest

from counterfoil.world.captions import matches
from counterfoil.world.compositions import adapt, rewrites
from counterfoil.world.edits import SUBSETS
from counterfoil.world.sample import contrasts
from counterfoil.world.scenes import Scene, Thing, relation_between
from counterfoil.world.truth import read
from world.english import lawful
from world.test_compositions import changed

STAR = Thing("star", "small", "plain", "red", 0.185, 0.5)
MOON = Thing("moon", "large", "dotted", "blue", 0.815, 0.5)
RING = Thing("ring", "large", "plain", "green", 0.5, 0.185)


def made(scene: Scene, said: str, meaning: str) -> list[Scene]:
    return list(rewrites(scene, read(said), read(meaning), np.random.default_rng(0)))


def test_every_edit_of_the_world_has_a_rewrite_that_fits():
    rng = np.random.default_rng(1)
    for contrast in contrasts(210, seed=3):
        said, meaning = contrast.captions
        ways = list(rewrites(contrast.scenes[0], said, meaning, rng))
        assert any(matches(meaning, scene) and not matches(said, scene) for scene in ways), contrast
        assert all(map(lawful, ways))


CONTRASTS = contrasts(560, seed=4)


@pytest.mark.parametrize("subset", SUBSETS)
def test_an_adapted_scene_is_changed_as_much_as_the_edit_of_its_kind(subset):
    rng = np.random.default_rng(2)
    of_kind = [each for each in CONTRASTS if each.subset == subset]
    sizes = np.array(
        [
            (
                changed(*each.scenes),
                changed(
                    each.scenes[0], adapt(each.scenes[0], each.captions[1], rng, unlike=each.captions[0])
                ),
            )
            for each in of_kind
        ]
    )
    own, adapted = sizes.T
    # Which of two like things is moved or taken away is chance, and a container brings along what it holds.
    assert abs(own.mean() - adapted.mean()) < 0.12
    assert np.mean(own == adapted) > (0.75 if subset == "replace_rel" else 0.9)


def test_what_is_reworded_is_changed_and_nothing_else():
    scene = Scene((STAR, MOON), paper="sage")
    (new,) = made(scene, "A red star and a moon.", "A pink star and a moon.")
    assert (new.things[0].colour, new.things[1], new.paper) == ("pink", MOON, "sage")
    (new,) = made(scene, "A star.", "A heart.")
    assert [thing.shape for thing in new.things] == ["heart", "moon"]
    # Either of two that the caption may speak of.
    both = Scene((STAR, Thing("star", "large", "plain", "red", 0.5, 0.5)))
    assert len(made(both, "A red star.", "A pink star.")) == 2
    (new,) = made(both, "Two red stars.", "Two pink stars.")
    assert [thing.colour for thing in new.things] == ["pink", "pink"]


def test_places_and_values_are_exchanged():
    scene = Scene((STAR, MOON))
    (new,) = made(scene, "A star is to the left of a moon.", "A moon is to the left of a star.")
    assert [(thing.shape, thing.x) for thing in new.things] == [("star", 0.815), ("moon", 0.185)]
    (new,) = made(scene, "A red star and a blue moon.", "A blue star and a red moon.")
    assert [(thing.colour, thing.x) for thing in new.things] == [("blue", 0.185), ("red", 0.815)]
    # A value that one of the two phrases leaves out is nobody's to have.
    assert made(scene, "A red star and a moon.", "A star and a red moon.") == []


def test_a_new_relation_is_straight():
    scene = Scene((STAR, MOON, RING))
    for relation in ("above", "below", "to the right of"):
        (new,) = made(scene, "A star is to the left of a moon.", f"A star is {relation} a moon.")
        star, moon = new.things[:2]
        assert relation_between(star, moon) == relation
        assert new.things[2] == RING
    (new,) = made(Scene((STAR, RING)), "A star is below a ring.", "A star is inside a ring.")
    assert new.things[0].cell == RING.cell
    (back,) = made(new, "A star is inside a ring.", "A star is to the right of a ring.")
    assert relation_between(*back.things) == "to the right of"


def test_one_thing_more_or_less():
    scene, rng = Scene((STAR, MOON)), np.random.default_rng(0)
    closed = "{}, and nothing else."
    (more,) = made(scene, closed.format("A star and a moon"), closed.format("A star, a moon and a ring"))
    assert more.things[:2] == (STAR, MOON)
    assert (more.things[2].shape, more.things[2].size) == ("ring", "large")
    (less,) = made(more, closed.format("A star, a moon and a ring"), closed.format("A star and a moon"))
    assert less.things == (STAR, MOON)
    stars = Scene((STAR, Thing("star", "large", "plain", "red", 0.5, 0.5)))
    (striped,) = rewrites(stars, read("Two stars."), read("Two striped stars."), rng)
    assert [thing.texture for thing in striped.things] == ["striped", "striped", "plain"]
    (plain,) = rewrites(striped, read("Two striped stars."), read("Two stars."), rng)
    assert plain.things == stars.things


@pytest.mark.parametrize(
    ("said", "meaning"),
    [
        ("A star.", "A star and a moon."),
        ("A red star.", "A pink heart."),
        ("A star is above a moon.", "A moon and a star."),
        ("Two stars.", "Three stars."),
        ("A star and a moon, and nothing else.", "A star and a moon."),
    ],
)
def test_captions_that_differ_otherwise_have_no_rewrite(said, meaning):
    assert made(Scene((STAR, MOON)), said, meaning) == []
