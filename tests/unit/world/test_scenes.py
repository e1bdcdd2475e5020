import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from counterfoil.world.painting import RADII
from counterfoil.world.scenes import (
    CLEAR,
    CONTAINERS,
    RELATIONS,
    Thing,
    holds,
    relation_between,
    sample_scene,
)
from world.english import lawful

SEEDS = st.integers(0, 2**32 - 1)


@given(SEEDS)
@settings(deadline=None)
def test_things_lie_on_the_sheet_and_in_cells_of_their_own(seed):
    scene = sample_scene(np.random.default_rng(seed))
    assert 2 <= len(scene.things) <= 4
    assert len(scene.free()) == 9 - len({thing.cell for thing in scene.things})
    assert lawful(scene)
    for thing in scene.things:
        assert RADII["large"] < min(thing.x, thing.y) <= max(thing.x, thing.y) < 1 - RADII["large"]


@given(SEEDS)
@settings(deadline=None)
def test_no_relation_is_ever_a_near_thing(seed):
    """Whatever lies apart lies well apart: no distance along an axis is near the line that decides."""
    scene = sample_scene(np.random.default_rng(seed), fewest=4)
    for a in scene.things:
        for b in scene.things:
            for distance in (abs(a.x - b.x), abs(a.y - b.y)):
                assert distance < CLEAR / 4 or distance > CLEAR * 1.5


@given(SEEDS)
@settings(deadline=None)
def test_relations_come_in_opposites(seed):
    a, b = sample_scene(np.random.default_rng(seed)).things[:2]
    assert holds("to the left of", a, b) == holds("to the right of", b, a)
    assert holds("above", a, b) == holds("below", b, a)
    assert any(holds(name, a, b) for name in RELATIONS)


def test_askew_things_have_no_single_relation():
    a = Thing("star", "small", "plain", "red", x=0.2, y=0.2)
    b = Thing("moon", "small", "plain", "red", x=0.5, y=0.5)
    c = Thing("moon", "small", "plain", "red", x=0.5, y=0.2)
    assert relation_between(a, b) is None
    assert relation_between(a, c) == "to the left of"
    assert relation_between(b, c) == "below"


def test_every_value_turns_up():
    """300 scenes have about 900 things; the rarest value (a shape, 1 in 8) is missed with odds of 1e-52."""
    rng = np.random.default_rng(5)
    things = [thing for _ in range(300) for thing in sample_scene(rng).things]
    assert len({thing.shape for thing in things}) == 10
    assert len({thing.colour for thing in things}) == 7
    assert len({thing.cell for thing in things}) == 9
    # 0.6 within four standard errors of sqrt(0.6 * 0.4 / 900).
    assert sum(thing.texture == "plain" for thing in things) / len(things) == pytest.approx(0.6, abs=0.066)


def test_containers_are_as_common_as_the_option_says():
    rng = np.random.default_rng(6)
    scenes = [sample_scene(rng) for _ in range(1200)]
    hollow = [[thing for thing in scene.things if thing.shape in CONTAINERS] for scene in scenes]
    assert max(map(len, hollow)) == 1
    # 0.25 within four standard errors of sqrt(0.25 * 0.75 / 1200).
    assert np.mean([len(result) for result in hollow]) == pytest.approx(0.25, abs=0.05)
    assert all((t.size, t.texture) == ("large", "plain") for result in hollow for t in result)
    held = [any(holds("inside", t, o) for t in s.things for o in s.things) for s in scenes]
    # Three containers in four hold something: 0.75 within four standard errors of sqrt(0.75 * 0.25 / 300).
    assert sum(held) / sum(map(len, hollow)) == pytest.approx(0.75, abs=0.1)
    none = [sample_scene(rng, containers=0.0) for _ in range(300)]
    assert not any(thing.shape in CONTAINERS for scene in none for thing in scene.things)


@given(SEEDS)
@settings(deadline=None)
def test_what_is_inside_has_something_around_it_and_no_direction(seed):
    things = sample_scene(np.random.default_rng(seed), containers=1.0).things
    assert sum(thing.shape in CONTAINERS for thing in things) == 1
    for a in things:
        for b in things:
            assert holds("inside", a, b) == holds("around", b, a)
            if holds("inside", a, b):
                assert relation_between(a, b) == "inside"
                assert [name for name in RELATIONS if holds(name, b, a)] == ["around"]
