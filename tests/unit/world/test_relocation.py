import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from counterfoil.world.edits import carried, has_room, holder, moved_in, moved_out, moved_round, with_things
from counterfoil.world.scenes import DIRECTIONS, Scene, Thing, holds, relation_between, sample_scene

SEEDS = st.integers(0, 2**32 - 1)

RING = Thing("ring", "large", "plain", "blue", x=0.185, y=0.185)
HELD = Thing("star", "small", "dotted", "red", x=0.185, y=0.185)
MOON = Thing("moon", "small", "plain", "pink", x=0.5, y=0.185)
HEART = Thing("heart", "large", "plain", "pink", x=0.815, y=0.185)


def test_who_holds_whom():
    scene = Scene((RING, HELD, MOON))
    assert [holder(thing, scene) for thing in scene.things] == [None, RING, None]
    assert not has_room(RING, scene)
    assert has_room(RING, Scene((RING, MOON)))
    assert not has_room(MOON, scene)


def test_what_is_held_is_carried_along():
    scene = Scene((RING, HELD, MOON))
    moved = carried(scene, {(0, 0): (0.5, 0.815)})
    assert [(thing.x, thing.y) for thing in moved.things] == [(0.5, 0.815), (0.5, 0.815), (0.5, 0.185)]
    assert with_things(scene, (MOON, HEART)).things == (RING, HELD, HEART)


def test_only_what_is_small_goes_in_and_only_where_there_is_room():
    relation, changed = moved_in(Scene((RING, MOON, HEART)), MOON, RING)
    assert relation == "inside"
    assert holds("inside", changed.things[1], changed.things[0])
    assert moved_in(Scene((RING, MOON)), RING, MOON)[0] == "around"
    assert moved_in(Scene((RING, HEART)), HEART, RING) is None
    assert moved_in(Scene((RING, HELD, MOON)), MOON, RING) is None
    assert moved_in(Scene((MOON, HEART)), MOON, HEART) is None


@given(SEEDS)
@settings(deadline=None)
def test_what_comes_out_lies_in_line(seed):
    rng = np.random.default_rng(seed)
    scene = Scene((RING, HELD, MOON))
    for first, second in ((RING, HELD), (HELD, RING)):
        relation, changed = moved_out(scene, first, second, rng)
        ring, held, moon = changed.things
        assert (ring, moon) == (RING, MOON)
        assert relation_between(*((ring, held) if first is RING else (held, ring))) == relation
        assert relation in DIRECTIONS
        # The only cell to the right that is free is beyond the moon.
        assert held.cell in {(2, 0), (0, 1), (0, 2)}


@given(SEEDS)
@settings(deadline=None)
def test_the_new_way_is_another_and_the_only_one(seed):
    rng = np.random.default_rng(seed)
    scene = sample_scene(rng, containers=0.5)
    first, second = scene.things[:2]
    old = relation_between(first, second)
    if old not in DIRECTIONS:
        return
    found = moved_round(scene, first, second, old, rng)
    if found is not None:
        new, changed = found
        assert new != old
        assert relation_between(*changed.things[:2]) == new
        for before, after in zip(scene.things, changed.things, strict=True):
            assert (holder(before, scene) is None) == (holder(after, changed) is None)
