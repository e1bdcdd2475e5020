import re
from collections import Counter
from dataclasses import replace
from difflib import SequenceMatcher

import numpy as np
import pytest

from counterfoil.errors import UnknownNameError
from counterfoil.world.captions import matches, text
from counterfoil.world.edits import SUBSETS, edit
from counterfoil.world.scenes import CONTAINERS, DIRECTIONS, Scene, Thing, sample_scene
from world.english import lawful


def drawn(subset, count=60):
    """Contrasts of one kind from random scenes."""
    rng = np.random.default_rng(SUBSETS.index(subset))
    result = []
    while len(result) < count:
        contrast = edit(sample_scene(rng), subset, rng)
        if contrast is not None:
            result.append(contrast)
    return result


@pytest.mark.parametrize("subset", SUBSETS)
def test_one_answer_in_both_directions(subset):
    for contrast in drawn(subset):
        verdicts = [[matches(caption, scene) for scene in contrast.scenes] for caption in contrast.captions]
        assert verdicts == [[True, False], [False, True]]
        assert contrast.unambiguous()
        assert all(map(lawful, contrast.scenes))
        for caption in contrast.captions:
            assert len(set(caption.phrases)) == len(caption.phrases)
        assert contrast.type == subset[: subset.index("_")]
        assert contrast.reversed.captions == contrast.captions[::-1]
        assert contrast.reversed.unambiguous()
        assert contrast.reversed.reversed == contrast


#: How many things of the scene differ after the edit (more than one of them replaced where the caption counts
#: them, more than two moved where a container takes along what it holds), and what may differ in one of them.
CHANGES = {
    "replace_obj": ({1, 2, 3}, {"shape"}),
    "replace_att": ({1, 2, 3}, {"colour", "size", "texture"}),
    "replace_rel": ({1, 2, 3, 4}, {"x", "y"}),
    "swap_obj": ({2, 3, 4}, {"x", "y"}),
    "swap_att": ({2}, {"colour", "size", "texture"}),
}


@pytest.mark.parametrize("subset", CHANGES)
def test_scenes_differ_by_the_edit_and_nothing_more(subset):
    counts, fields = CHANGES[subset]
    for contrast in drawn(subset):
        before, after = contrast.scenes
        assert before.paper == after.paper
        changed = [pair for pair in zip(before.things, after.things, strict=True) if pair[0] != pair[1]]
        assert len(changed) in counts
        for a, b in changed:
            different = {name for name in a.__dataclass_fields__ if getattr(a, name) != getattr(b, name)}
            assert different <= fields
            if subset not in ("replace_rel", "swap_obj"):
                assert len(different) == 1
        if subset in ("replace_obj", "replace_att"):
            one, two = contrast.captions
            (told,) = [a.count for a, b in zip(one.phrases, two.phrases, strict=True) if a != b]
            assert len(changed) == told


def test_an_added_object_is_one_more_thing():
    inside = 0
    for contrast in drawn("add_obj", 200):
        before, after = contrast.scenes
        assert after.things[:-1] == before.things
        added = after.things[-1]
        held = [thing for thing in before.things if thing.cell == added.cell]
        assert all(thing.shape in CONTAINERS and added.size == "small" for thing in held)
        assert len(held) <= 1
        inside += len(held)
    assert inside > 0


def test_an_added_attribute_is_of_things_that_are_counted_and_one_more_of_them_is_plain():
    for contrast in drawn("add_att", 60):
        before, after = contrast.scenes
        pairs = list(zip(before.things, after.things, strict=False))
        changed = [pair for pair in pairs if pair[0] != pair[1]]
        (more,) = after.things[len(before.things) :]
        one, two = (caption.phrases[0] for caption in contrast.captions)
        assert (one.count, two.count) == (len(changed), len(changed))
        assert all(b == replace(a, texture=two.texture) and a.texture == "plain" for a, b in changed)
        # With it there is one too many for the shorter caption; without its pattern it is none of the longer.
        assert one.fits(more)
        assert not two.fits(more)
        assert contrast.captions[0].phrases[1:] == contrast.captions[1].phrases[1:]
        # Nothing turns on a closing clause.
        assert not any(caption.closed for caption in contrast.captions)


def test_swapped_objects_have_changed_places():
    for contrast in drawn("swap_obj"):
        before, after = contrast.scenes
        moves = {((a.x, a.y), (b.x, b.y)) for a, b in zip(before.things, after.things, strict=True) if a != b}
        # Two places, and whatever lay at one now lies at the other.
        assert len(moves) == 2
        assert {(b, a) for a, b in moves} == moves


def test_containment_and_counts_are_used():
    relations = {
        subset: Counter(tuple(c.relation for c in contrast.captions) for contrast in drawn(subset, 250))
        for subset in ("replace_rel", "swap_obj")
    }
    for inner in ("inside", "around"):
        into = [old in DIRECTIONS and new == inner for old, new in relations["replace_rel"]]
        out = [old == inner and new in DIRECTIONS for old, new in relations["replace_rel"]]
        assert any(into)
        assert any(out)
        assert relations["swap_obj"][inner, inner] > 0
    # Nothing lies around what lay around it, so the two never replace one another.
    assert not {("inside", "around"), ("around", "inside")} & set(relations["replace_rel"])
    for subset in ("replace_obj", "replace_att", "add_obj", "add_att"):
        assert any(
            phrase.count > 1
            for contrast in drawn(subset, 60)
            for caption in contrast.captions
            for phrase in caption.phrases
        ), subset


def words(contrast):
    return [re.findall(r"[a-z]+", text(caption).lower()) for caption in contrast.captions]


@pytest.mark.parametrize("subset", ["replace_obj", "replace_att"])
def test_replacing_changes_one_word(subset):
    for contrast in drawn(subset):
        one, two = words(contrast)
        # "a red star" and "an orange star" differ in the article too.
        assert sum(a != b for a, b in zip(one, two, strict=True) if {a, b} != {"a", "an"}) == 1


def test_replacing_a_relation_changes_only_that():
    for contrast in drawn("replace_rel"):
        one, two = contrast.captions
        assert one.phrases == two.phrases
        assert None not in (one.relation, two.relation)
        assert one.relation != two.relation


@pytest.mark.parametrize("subset", ["swap_obj", "swap_att", "add_obj", "add_att"])
def test_swapping_keeps_every_word_and_adding_only_adds(subset):
    """As SugarCrepe's captions do, "a", "an" and "and" aside."""
    for contrast in drawn(subset):
        one, two = ([w for w in part if w not in ("a", "an", "and")] for part in words(contrast))
        if subset.startswith("swap"):
            assert sorted(one) == sorted(two)
            continue
        operations = {tag for tag, *_ in SequenceMatcher(None, one, two, autojunk=False).get_opcodes()}
        assert operations == {"equal", "insert"}


def test_a_scene_without_room_says_so_and_another_kind_of_edit_is_named():
    rng = np.random.default_rng(0)
    star = Thing("star", "small", "plain", "red", x=0.185, y=0.185)
    twins = Scene((star, Thing("star", "small", "plain", "red", x=0.5, y=0.5)))
    # Nothing to swap between equal things, no one relation between things askew, and nothing to count where
    # no two things are alike.
    assert [edit(twins, subset, rng) for subset in ("swap_obj", "swap_att", "replace_rel")] == [None] * 3
    assert edit(Scene((star, Thing("moon", "large", "plain", "blue", x=0.5, y=0.5))), "add_att", rng) is None
    with pytest.raises(UnknownNameError, match=r"unknown kind of edit; given: swap_objects; .*'swap_obj'"):
        edit(sample_scene(rng), "swap_objects", rng)
