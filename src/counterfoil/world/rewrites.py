"""Rewrites: a scene changed as one caption of it was changed into another.

What an editor of images does that is given an image, the caption of it and another caption: a word that
differs is changed in what it speaks of, words that changed places exchange what they speak of, a relation is
laid anew, what is said besides is added. Whether the scene then fits is for the rules of truth to say.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np

from counterfoil.world.captions import Meaning, Phrase
from counterfoil.world.edits import (
    CONTAINED,
    carried,
    changeable,
    has_room,
    holder,
    moved_in,
    moved_out,
    moved_round,
    with_things,
    with_values,
)
from counterfoil.world.scenes import (
    CONTAINERS,
    CONTAINMENT,
    Scene,
    Thing,
    one_of,
    sample_thing,
)

#: What a phrase may say of a thing.
_ATTRIBUTES = ("shape", "size", "texture", "colour")


def rewrites(scene: Scene, old: Meaning, meaning: Meaning, rng: np.random.Generator) -> Iterator[Scene]:
    """The scene after the change that makes `old`, a caption of it, into `meaning`: one for every way.

    There are several ways where the scene shows several things that `old` may speak of, and none where the
    captions differ in more than one thing. Not all of them fit `meaning`.

    >>> from counterfoil.world.truth import read
    >>> star = Thing("star", "small", "plain", "red", 0.2, 0.5)
    >>> scene = Scene((star, Thing("moon", "large", "plain", "blue", 0.8, 0.5)))
    >>> rng = np.random.default_rng(0)
    >>> (new,) = rewrites(scene, read("A red star."), read("A pink star."), rng)
    >>> new.things[0].colour, new.things[1] == scene.things[1]
    ('pink', True)
    """
    before, after = old.phrases, meaning.phrases
    if old.closed == meaning.closed == "things" and abs(len(before) - len(after)) == 1:
        yield from _more_or_less(scene, before, after, rng)
        return
    if len(before) != len(after) or old.closed != meaning.closed:
        return
    if old.relation != meaning.relation:
        if before == after and old.relation is not None and meaning.relation is not None:
            yield from _laid_anew(scene, old, meaning.relation, rng)
        return
    differing = [k for k, pair in enumerate(zip(before, after, strict=True)) if pair[0] != pair[1]]
    if len(differing) == 1:
        (at,) = differing
        yield from _reworded(scene, before[at], after[at], rng)
    elif len(differing) == 2:
        one, two = (before[k] for k in differing)
        if (two, one) == tuple(after[k] for k in differing):
            yield from _places_exchanged(scene, one, two)
        else:
            yield from _values_exchanged(scene, (one, two), tuple(after[k] for k in differing))


def _fitting(scene: Scene, phrase: Phrase) -> list[Thing]:
    return [thing for thing in scene.things if phrase.fits(thing)]


def _pairs(scene: Scene, one: Phrase, two: Phrase) -> Iterator[tuple[Thing, Thing]]:
    """Every two things that the phrases may speak of."""
    for first, second in product(_fitting(scene, one), _fitting(scene, two)):
        if first is not second:
            yield first, second


def _reworded(scene: Scene, old: Phrase, new: Phrase, rng: np.random.Generator) -> Iterator[Scene]:
    """Another value for what the phrase speaks of; a value said besides, or no longer."""
    changed = [name for name in _ATTRIBUTES if getattr(old, name) != getattr(new, name)]
    if len(changed) != 1 or old.count != new.count:
        return
    (name,) = changed
    was, value = getattr(old, name), getattr(new, name)
    if was is None or value is None:
        yield from _counted_anew(scene, old, new, rng)
        return
    fitting = _fitting(scene, old)
    for group in [fitting] if old.count > 1 else [[thing] for thing in fitting]:
        if all(changeable(thing, name, scene) for thing in group):
            yield with_things(scene, *((thing, with_values(thing, {name: value})) for thing in group))


def _counted_anew(scene: Scene, old: Phrase, new: Phrase, rng: np.random.Generator) -> Iterator[Scene]:
    """A texture that is said besides of all that are counted, or no longer.

    A caption with one word less stays true unless it says how many, so "two striped stars" that were "two
    stars" have a plain one beside them, and lose it where they are "two stars" again.
    """
    if old.count < 2 or (old.texture is None) == (new.texture is None):
        return
    group = _fitting(scene, old)
    if not all(changeable(thing, "texture", scene) for thing in group):
        return
    texture = new.texture or "plain"
    changed = with_things(scene, *((thing, replace(thing, texture=texture)) for thing in group))
    if new.texture is None:
        beside = [thing for thing in _fitting(scene, new) if thing not in group]
        yield replace(changed, things=tuple(thing for thing in changed.things if thing not in beside))
        return
    free = scene.free()
    if free:
        more = replace(sample_thing(rng, one_of(free, rng)), texture="plain")
        yield replace(changed, things=(*changed.things, with_values(more, dict(old.said))))


def _values_exchanged(
    scene: Scene, before: tuple[Phrase, Phrase], after: tuple[Phrase, ...]
) -> Iterator[Scene]:
    """Two things with each other's colour, size or texture, as the phrases have it."""
    named = [
        [name for name in _ATTRIBUTES if getattr(old, name) != getattr(new, name)]
        for old, new in zip(before, after, strict=True)
    ]
    if named[0] != named[1] or len(named[0]) != 1 or any(phrase.count > 1 for phrase in before):
        return
    (name,) = named[0]
    if any(getattr(phrase, name) is None for phrase in after):
        return
    for first, second in _pairs(scene, *before):
        if changeable(first, name, scene) and changeable(second, name, scene):
            yield with_things(
                scene,
                (first, with_values(first, {name: getattr(after[0], name)})),
                (second, with_values(second, {name: getattr(after[1], name)})),
            )


def _places_exchanged(scene: Scene, one: Phrase, two: Phrase) -> Iterator[Scene]:
    """Two things in each other's place; what lies in one cell with them comes along, a container stays."""
    for first, second in _pairs(scene, one, two):
        if first.cell == second.cell:
            continue
        both = (first, second)
        held = [holder(thing, scene) is not None for thing in both]
        if any(held) and all(thing.size == "small" and thing.shape not in CONTAINERS for thing in both):
            yield with_things(
                scene,
                (first, replace(first, x=second.x, y=second.y)),
                (second, replace(second, x=first.x, y=first.y)),
            )
        else:
            yield carried(scene, {first.cell: (second.x, second.y), second.cell: (first.x, first.y)})


def _laid_anew(scene: Scene, caption: Meaning, relation: str, rng: np.random.Generator) -> Iterator[Scene]:
    """Two things laid as the relation has them, straight for a direction; no more moved than need be."""
    old = caption.relation
    assert old is not None
    for first, second in _pairs(scene, *caption.phrases[:2]):
        together = first.cell == second.cell
        if together != (old in CONTAINMENT):
            continue
        if relation in CONTAINMENT:
            moved = None if together else moved_in(scene, first, second)
        elif together:
            moved = moved_out(scene, first, second, rng, new=relation)
        else:
            moved = moved_round(scene, first, second, old, rng, new=relation)
        if moved is not None and moved[0] == relation:
            yield moved[1]


def _more_or_less(
    scene: Scene, before: tuple[Phrase, ...], after: tuple[Phrase, ...], rng: np.random.Generator
) -> Iterator[Scene]:
    """One thing more, or one less, where the captions speak of everything."""
    longer, shorter = (after, before) if len(after) > len(before) else (before, after)
    extra = [k for k in range(len(longer)) if longer[:k] + longer[k + 1 :] == shorter]
    if not extra:
        return
    phrase = longer[extra[-1]]
    if longer is before:
        for thing in _fitting(scene, phrase):
            yield replace(scene, things=tuple(other for other in scene.things if other is not thing))
        return
    free = scene.free()
    if not free or phrase.count > 1:
        return
    # The phrase fits it; everything else about it is at random.
    added = with_values(sample_thing(rng, one_of(free, rng)), dict(phrase.said))
    if added.shape in CONTAINERS:
        added = replace(added, size="large", texture="plain")
    hosts = [thing for thing in scene.things if has_room(thing, scene)]
    fits_in = added.shape not in CONTAINERS and phrase.size != "large"
    if hosts and fits_in and rng.random() < CONTAINED:
        added = replace(added, size="small", x=hosts[0].x, y=hosts[0].y)
    yield replace(scene, things=(*scene.things, added))
