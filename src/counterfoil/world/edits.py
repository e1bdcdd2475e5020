"""Minimal edits: one change made to a caption and to its scene together.

The seven kinds are SugarCrepe's. Each gives two captions and two scenes of which the exact checker says
that caption 0 is true of scene 0 only and caption 1 of scene 1 only, so the question has one answer in
both directions. ADD needs care for that: "a heart" stays true when a star is laid beside it. So captions
of ADD close what they say: "..., and nothing else" where a thing is added, "..., with no other stripes or
dots" where a pattern is.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import TypeVar

import numpy as np

from counterfoil.world.captions import Meaning, Phrase, matches
from counterfoil.world.scenes import (
    ATTRIBUTES,
    RELATIONS,
    SHAPES,
    TEXTURES,
    Scene,
    Thing,
    one_of,
    place,
    relation_between,
    sample_thing,
)

#: How often a caption mentions what it need not.
_MENTION = {"size": 0.35, "texture": 0.25, "colour": 0.6}
#: How often a caption of one changed thing speaks of a second one as well, and says how they lie.
_SECOND, _RELATED = 0.6, 0.5
#: What REPLACE att and SWAP att change: colours twice as often as sizes and textures.
_CHANGED = ("colour", "colour", "size", "texture")
#: Tries at one scene before it is given up.
_TRIES = 12

Draft = tuple[Meaning, Meaning, Scene]
Said = TypeVar("Said", Thing, Phrase)


@dataclass(frozen=True)
class Contrast:
    """Two captions and two scenes; caption i belongs to scene i. `subset` is one of `SUBSETS`."""

    subset: str
    captions: tuple[Meaning, Meaning]
    scenes: tuple[Scene, Scene]

    @property
    def type(self) -> str:
        """ "replace", "swap" or "add"."""
        return self.subset.split("_")[0]

    def unambiguous(self) -> bool:
        """Whether each caption is true of its own scene and false of the other."""
        return all(
            matches(caption, scene) == (i == j)
            for (i, caption), (j, scene) in product(enumerate(self.captions), enumerate(self.scenes))
        )


def edit(scene: Scene, subset: str, rng: np.random.Generator) -> Contrast | None:
    """A caption of `scene` and one edit of both, of the kind `subset`.

    None where the scene has no room for such an edit (nothing in it to swap, say).

    >>> from counterfoil.world.scenes import sample_scene
    >>> rng = np.random.default_rng(1)
    >>> contrast = edit(sample_scene(rng), "replace_obj", rng)
    >>> contrast.unambiguous()
    True
    """
    for _ in range(_TRIES):
        draft = _EDITS[subset](scene, rng)
        if draft is None:
            continue
        caption, negative, changed = draft
        contrast = Contrast(subset, (caption, negative), (scene, changed))
        # "A heart and a heart" is not how people speak.
        plain_speech = all(len(set(c.phrases)) == len(c.phrases) for c in contrast.captions)
        if plain_speech and contrast.unambiguous():
            return contrast
    return None


def _replace_obj(scene: Scene, rng: np.random.Generator) -> Draft | None:
    """Another shape."""
    return _replace("shape", SHAPES, scene, rng)


def _replace_att(scene: Scene, rng: np.random.Generator) -> Draft | None:
    """Another colour, size or texture."""
    attribute = one_of(_CHANGED, rng)
    return _replace(attribute, ATTRIBUTES[attribute], scene, rng)


def _replace(attribute: str, values: tuple[str, ...], scene: Scene, rng: np.random.Generator) -> Draft:
    target, other = _two_of(scene, rng)
    new = one_of([value for value in values if value != getattr(target, attribute)], rng)
    phrase = _mention(target, rng, attribute)
    changed = _with(scene, (target, _set(target, attribute, new)))
    if rng.random() > _SECOND:
        return Meaning((phrase,)), Meaning((_set(phrase, attribute, new),)), changed
    relation = relation_between(target, other) if rng.random() < _RELATED else None
    second = _mention(other, rng)
    return (
        Meaning((phrase, second), relation),
        Meaning((_set(phrase, attribute, new), second), relation),
        changed,
    )


def _replace_rel(scene: Scene, rng: np.random.Generator) -> Draft | None:
    """The same two things, lying another way; no more of them moved than need be."""
    first, second = _two_of(scene, rng)
    old = relation_between(first, second)
    if old is None:
        return None
    new = one_of([name for name in RELATIONS if name != old], rng)
    phrases = _mention(first, rng), _mention(second, rng)
    free = scene.free()
    moves = [
        (one, two)
        for one, two in product([first.cell, second.cell, *free], repeat=2)
        if one != two and _lies(one, two, new)
    ]
    if not moves:
        return None
    # To swap their places changes least to the eye; then to move one; then to move both.
    swapped = {first.cell, second.cell}
    cost = [0 if {one, two} == swapped else (one != first.cell) + (two != second.cell) for one, two in moves]
    one, two = one_of([move for move, c in zip(moves, cost, strict=True) if c == min(cost)], rng)
    changed = _with(scene, (first, _moved(first, one, rng)), (second, _moved(second, two, rng)))
    return Meaning(phrases, old), Meaning(phrases, new), changed


def _swap_obj(scene: Scene, rng: np.random.Generator) -> Draft | None:
    """Two things change places."""
    first, second = _two_of(scene, rng)
    relation = relation_between(first, second)
    if relation is None:
        return None
    one, two = _mention(first, rng), _mention(second, rng)
    changed = _with(
        scene,
        (first, replace(first, x=second.x, y=second.y)),
        (second, replace(second, x=first.x, y=first.y)),
    )
    return Meaning((one, two), relation), Meaning((two, one), relation), changed


def _swap_att(scene: Scene, rng: np.random.Generator) -> Draft | None:
    """Two things of different shapes change colours, sizes or textures."""
    first, second = _two_of(scene, rng)
    attribute = one_of(_CHANGED, rng)
    one, two = getattr(first, attribute), getattr(second, attribute)
    if one == two or first.shape == second.shape:
        return None
    relation = relation_between(first, second) if rng.random() < _RELATED else None
    phrases = _mention(first, rng, "shape", attribute), _mention(second, rng, "shape", attribute)
    swapped = _set(phrases[0], attribute, two), _set(phrases[1], attribute, one)
    changed = _with(scene, (first, _set(first, attribute, two)), (second, _set(second, attribute, one)))
    return Meaning(phrases, relation), Meaning(swapped, relation), changed


def _add_obj(scene: Scene, rng: np.random.Generator) -> Draft | None:
    """One thing more, said of a scene of which everything is said."""
    free = scene.free()
    if len(scene.things) > 3 or not free:
        return None
    added = sample_thing(rng, one_of(free, rng))
    phrases = tuple(_mention(thing, rng) for thing in scene.things)
    return (
        Meaning(phrases, closed="things"),
        Meaning((*phrases, _mention(added, rng)), closed="things"),
        replace(scene, things=(*scene.things, added)),
    )


def _add_att(scene: Scene, rng: np.random.Generator) -> Draft | None:
    """Stripes or dots on a plain thing.

    Only a texture can be added: whatever has no other size or colour has one already.
    """
    patterned = [thing for thing in scene.things if thing.texture != "plain"]
    plain = [thing for thing in scene.things if thing.texture == "plain"]
    if len(patterned) != 1 or not plain:
        return None
    target = one_of(plain, rng)
    new = one_of(TEXTURES[1:], rng)
    phrase = replace(_mention(target, rng, "shape"), texture=None)
    other = _mention(patterned[0], rng, "texture")
    changed = _with(scene, (target, replace(target, texture=new)))
    return (
        Meaning((phrase, other), closed="textures"),
        Meaning((replace(phrase, texture=new), other), closed="textures"),
        changed,
    )


_EDITS: Mapping[str, Callable[[Scene, np.random.Generator], Draft | None]] = {
    "replace_obj": _replace_obj,
    "replace_att": _replace_att,
    "replace_rel": _replace_rel,
    "swap_obj": _swap_obj,
    "swap_att": _swap_att,
    "add_obj": _add_obj,
    "add_att": _add_att,
}

#: The kinds of edit.
SUBSETS = tuple(_EDITS)


def _mention(thing: Thing, rng: np.random.Generator, *must: str) -> Phrase:
    """The thing as a caption may speak of it: what it must say, and some of the rest."""
    said = {name for name, often in _MENTION.items() if rng.random() < often} | set(must)
    # "A plain star" is said only where it matters.
    if thing.texture == "plain" and "texture" not in must:
        said.discard("texture")
    # Now and then only "a blue shape", where that says anything.
    if not said & ATTRIBUTES.keys() or "shape" in must or rng.random() < 0.9:
        said.add("shape")
    return Phrase(**{name: getattr(thing, name) for name in said})


def _two_of(scene: Scene, rng: np.random.Generator) -> tuple[Thing, Thing]:
    one, two = rng.permutation(len(scene.things))[:2]
    return scene.things[one], scene.things[two]


def _lies(first: tuple[int, int], second: tuple[int, int], relation: str) -> bool:
    """Whether a thing in the first cell lies straight that way from one in the second."""
    right, down = RELATIONS[relation]
    across, along = first[0] - second[0], first[1] - second[1]
    return (across * right > 0 and along == 0) if right else (along * down > 0 and across == 0)


def _moved(thing: Thing, cell: tuple[int, int], rng: np.random.Generator) -> Thing:
    if cell == thing.cell:
        return thing
    x, y = place(rng, cell)
    return replace(thing, x=x, y=y)


def _with(scene: Scene, *changes: tuple[Thing, Thing]) -> Scene:
    """The scene with each old thing replaced by its new one, in the same order."""
    new = dict(changes)
    return replace(scene, things=tuple(new.get(thing, thing) for thing in scene.things))


def _set(value: Said, attribute: str, new: str) -> Said:
    # One attribute of several, by name: more than the type checker can follow.
    return replace(value, **{attribute: new})  # type: ignore[arg-type]
