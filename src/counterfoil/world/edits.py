"""Minimal edits: one change made to a caption and to its scene together, of SugarCrepe's seven kinds.

Each gives two captions and two scenes of which the exact checker says that caption 0 is true of scene 0 only
and caption 1 of scene 1 only. ADD needs care for that: "a heart" stays true when a star is laid beside it, so
captions of added objects close what they say ("..., and nothing else"). An added attribute is one of things
that are counted: "two stars" become "two striped stars", and a plain star beside them makes the shorter
caption false.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, TypeVar

import numpy as np

from counterfoil.errors import UnknownNameError
from counterfoil.world import scenes
from counterfoil.world.captions import Meaning, Phrase, counted, matches, mention, speak
from counterfoil.world.scenes import Scene, Thing, hollow, one_of, place, relation_between, sample_thing

Cell = tuple[int, int]
Edited = TypeVar("Edited", Thing, Phrase)


def holder(thing: Thing, scene: Scene) -> Thing | None:
    """The container in which the thing lies."""
    if thing.is_container:
        return None
    return next((t for t in scene.things if t.is_container and t.cell == thing.cell), None)


def has_room(thing: Thing, scene: Scene) -> bool:
    """Whether the thing is a container with nothing in it."""
    return thing.is_container and sum(other.cell == thing.cell for other in scene.things) == 1


#: Every two cells of which the first lies straight that way from the second.
_LINES = {
    name: [
        (one, two)
        for one, two in product(scenes.CELLS, repeat=2)
        if tuple(map(np.sign, np.subtract(one, two))) == direction
    ]
    for name, direction in scenes.DIRECTIONS.items()
}


def carried(scene: Scene, positions: Mapping[Cell, tuple[float, float]]) -> Scene:
    """The scene with everything in these cells laid to these places."""
    moved = [thing for thing in scene.things if thing.cell in positions]
    return with_things(scene, *((one, _moved(one, *positions[one.cell])) for one in moved))


def _moved(thing: Thing, x: float, y: float) -> Thing:
    return replace(thing, x=x, y=y)


def with_things(scene: Scene, *changes: tuple[Thing, Thing]) -> Scene:
    """The scene with each old thing replaced by its new one, in the same order."""
    new = dict(changes)
    return replace(scene, things=tuple(new.get(thing, thing) for thing in scene.things))


def with_values(value: Edited, values: Mapping[str, Any]) -> Edited:
    return replace(value, **values)


def moved_in(scene: Scene, first: Thing, second: Thing) -> tuple[str, Scene] | None:
    """One of the two laid into the other, where that is an empty container and the first fits in."""
    for relation, guest, host in (("inside", first, second), ("around", second, first)):
        if has_room(host, scene) and guest.size == "small" and not guest.is_container:
            return relation, with_things(scene, (guest, _moved(guest, host.x, host.y)))
    return None


def moved_out(
    scene: Scene, first: Thing, second: Thing, rng: np.random.Generator
) -> tuple[str, Scene] | None:
    """What lies in the container laid beside, above or below it."""
    guest = second if first.is_container else first
    ways = [
        (relation, cell)
        for relation in scenes.DIRECTIONS
        for cell in scene.free()
        if ((cell, second.cell) if guest is first else (first.cell, cell)) in _LINES[relation]
    ]
    if not ways:
        return None
    relation, cell = one_of(ways, rng)
    return relation, with_things(scene, (guest, _moved(guest, *place(rng, cell))))


def moved_round(
    scene: Scene, first: Thing, second: Thing, old: str, rng: np.random.Generator
) -> tuple[str, Scene] | None:
    """The two laid another way; what lies in one cell with them comes along."""
    new = one_of([name for name in scenes.DIRECTIONS if name != old], rng)
    cells = [first.cell, second.cell, *scene.free()]
    moves = [(one, two) for one, two in _LINES[new] if one in cells and two in cells]
    if not moves:
        return None
    # To swap their places changes least to the eye; then to move one; then to move both.
    swapped = {first.cell, second.cell}
    cost = [0 if {one, two} == swapped else (one != first.cell) + (two != second.cell) for one, two in moves]
    one, two = one_of([move for move, c in zip(moves, cost, strict=True) if c == min(cost)], rng)
    positions = {
        old: place(rng, cell) for old, cell in ((first.cell, one), (second.cell, two)) if old != cell
    }
    return new, carried(scene, positions)


#: How often a caption of one changed thing speaks of a second one as well, and says how they lie.
_SECOND, _RELATED = 0.85, 0.6
#: How often containment is used where an edit has room for it, and how often an added thing is a container.
CONTAINED, _HOLLOW = 0.7, 0.12
#: What REPLACE att and SWAP att change: colours twice as often as sizes and textures.
_CHANGED = ("colour", "colour", "size", "texture")
#: Tries at one scene before it is given up.
_TRIES = 12

Draft = tuple[Meaning, Meaning, Scene]


@dataclass(frozen=True)
class MinimalPair:
    """Two captions and two scenes; caption i belongs to scene i. `subset` is one of `SUBSETS`."""

    subset: str
    captions: tuple[Meaning, Meaning]
    scenes: tuple[Scene, Scene]

    @property
    def type(self) -> str:
        """ "replace", "swap" or "add"."""
        return self.subset.split("_")[0]

    @property
    def reversed(self) -> "MinimalPair":
        """The same question from the other side."""
        return replace(self, captions=self.captions[::-1], scenes=self.scenes[::-1])

    def unambiguous(self) -> bool:
        """Whether each caption is true of its own scene and false of the other."""
        return all(
            matches(caption, scene) == (i == j)
            for (i, caption), (j, scene) in product(enumerate(self.captions), enumerate(self.scenes))
        )


def edit(scene: Scene, subset: str, rng: np.random.Generator) -> MinimalPair | None:
    """A caption of `scene` and one edit of both, of the kind `subset`, one of `SUBSETS`.

    None where the scene has no room for such an edit.

    >>> from counterfoil.world.scenes import sample_scene
    >>> rng = np.random.default_rng(1)
    >>> contrast = edit(sample_scene(rng), "replace_obj", rng)
    >>> contrast.unambiguous()
    True
    """
    if subset not in _EDITS:
        raise UnknownNameError("kind of edit", subset, SUBSETS)
    if len(scene.things) < 2:
        return None
    for _ in range(_TRIES):
        draft = _EDITS[subset](scene, rng)
        if draft is None:
            continue
        caption, negative, changed = draft
        pair = MinimalPair(subset, (caption, negative), (scene, changed))
        # "A heart and a heart" is not idiomatic.
        plain_speech = all(len(set(c.phrases)) == len(c.phrases) for c in pair.captions)
        if plain_speech and pair.unambiguous():
            return pair
    return None


def _replace(attribute: str, scene: Scene, rng: np.random.Generator) -> Draft | None:
    """Another value for a thing, or for several that the caption counts; for a container the other one."""
    target, other = _two_of(scene, rng)
    if not changeable(target, attribute, scene):
        return None
    shapes = scenes.CONTAINERS if target.is_container else scenes.SHAPES
    values = shapes if attribute == "shape" else scenes.ATTRIBUTES[attribute]
    new = one_of([value for value in values if value != getattr(target, attribute)], rng)
    phrase, group = counted(mention(target, rng, attribute), target, scene, rng, but=(other,))
    if not all(changeable(thing, attribute, scene) for thing in group):
        return None
    changed = with_things(scene, *((thing, with_values(thing, {attribute: new})) for thing in group))
    swapped = with_values(phrase, {attribute: new})
    if rng.random() > _SECOND:
        return Meaning((phrase,)), Meaning((swapped,)), changed
    relation = relation_between(target, other) if phrase.count == 1 and rng.random() < _RELATED else None
    second = mention(other, rng)
    if relation is None:
        second, _ = counted(second, other, scene, rng, but=group)
    return Meaning((phrase, second), relation), Meaning((swapped, second), relation), changed


def changeable(thing: Thing, attribute: str, scene: Scene) -> bool:
    """Whether the thing may have another value: containers are all equal, and what they hold is small."""
    if attribute in ("size", "texture") and thing.is_container:
        return False
    return attribute != "size" or holder(thing, scene) is None


def _replace_rel(scene: Scene, rng: np.random.Generator) -> Draft | None:
    """The same two things, lying another way; no more of them moved than need be."""
    first, second = _two_of(scene, rng)
    old = relation_between(first, second)
    if old is None:
        return None
    phrases = mention(first, rng), mention(second, rng)
    if old in scenes.DIRECTIONS:
        moved = moved_in(scene, first, second) if rng.random() < CONTAINED else None
        moved = moved or moved_round(scene, first, second, old, rng)
    else:
        moved = moved_out(scene, first, second, rng)
    if moved is None:
        return None
    return Meaning(phrases, old), Meaning(phrases, moved[0]), moved[1]


def _swap_obj(scene: Scene, rng: np.random.Generator) -> Draft | None:
    """Two things change places, or one enters a container and the other leaves it."""
    first, second = _two_of(scene, rng)
    host = holder(first, scene)
    fits_in = second.size == "small" and not second.is_container
    if host is not None and fits_in and rng.random() < CONTAINED:
        one, two, around = mention(first, rng), mention(second, rng), mention(host, rng)
        # The two, and nothing else in their cells, in each other's place.
        moved = _moved(first, second.x, second.y), _moved(second, first.x, first.y)
        changed = with_things(scene, *zip((first, second), moved, strict=True))
        if rng.random() < 0.5:
            return Meaning((one, around, two), "inside"), Meaning((two, around, one), "inside"), changed
        return Meaning((around, one, two), "around"), Meaning((around, two, one), "around"), changed
    relation = relation_between(first, second)
    if relation not in scenes.DIRECTIONS:
        return None
    one, two = mention(first, rng), mention(second, rng)
    changed = carried(scene, {first.cell: (second.x, second.y), second.cell: (first.x, first.y)})
    return Meaning((one, two), relation), Meaning((two, one), relation), changed


def _swap_att(scene: Scene, rng: np.random.Generator) -> Draft | None:
    """Two things of different shapes change colours, sizes or textures."""
    first, second = _two_of(scene, rng)
    attribute = one_of(_CHANGED, rng)
    one, two = getattr(first, attribute), getattr(second, attribute)
    may = all(changeable(thing, attribute, scene) for thing in (first, second))
    if one == two or first.shape == second.shape or not may:
        return None
    relation = relation_between(first, second) if rng.random() < _RELATED else None
    phrases = mention(first, rng, "shape", attribute), mention(second, rng, "shape", attribute)
    swapped = with_values(phrases[0], {attribute: two}), with_values(phrases[1], {attribute: one})
    exchanged = with_values(first, {attribute: two}), with_values(second, {attribute: one})
    changed = with_things(scene, *zip((first, second), exchanged, strict=True))
    return Meaning(phrases, relation), Meaning(swapped, relation), changed


def _add_obj(scene: Scene, rng: np.random.Generator) -> Draft | None:
    """One more thing, in a scene whose caption mentions everything."""
    free = scene.free()
    if len(scene.things) > 3 or not free:
        return None
    added = sample_thing(rng, one_of(free, rng))
    hosts = [thing for thing in scene.things if has_room(thing, scene)]
    if hosts and rng.random() < CONTAINED:
        added = replace(added, size="small", x=hosts[0].x, y=hosts[0].y)
    elif rng.random() < _HOLLOW:
        added = hollow(added, rng)
    phrases = tuple(phrase for phrase, _ in speak(scene.things, scene, rng))
    return (
        Meaning(phrases, closed="things"),
        Meaning((*phrases, mention(added, rng)), closed="things"),
        replace(scene, things=(*scene.things, added)),
    )


def _add_att(scene: Scene, rng: np.random.Generator) -> Draft | None:
    """Stripes or dots on all of a kind that the caption counts, and one more of the kind, plain.

    Only a texture can be added: every thing has a size and colour already.
    """
    free = scene.free()
    plain = [t for t in scene.things if t.texture == "plain" and not t.is_container]
    if len(scene.things) > 3 or not free or len(plain) < 2:
        return None
    target = one_of(plain, rng)
    phrase = mention(target, rng)
    group = [thing for thing in scene.things if phrase.fits(thing)]
    if len(group) < 2 or not all(thing in plain for thing in group):
        return None
    new = one_of(scenes.TEXTURES[1:], rng)
    phrase = replace(phrase, count=len(group))
    more = replace(sample_thing(rng, one_of(free, rng)), texture="plain")
    more = with_values(more, dict(phrase.attributes))
    changed = with_things(scene, *((thing, replace(thing, texture=new)) for thing in group))
    others = [thing for thing in scene.things if thing not in group]
    second = (mention(one_of(others, rng), rng),) if others and rng.random() < _SECOND else ()
    return (
        Meaning((phrase, *second)),
        Meaning((replace(phrase, texture=new), *second)),
        replace(changed, things=(*changed.things, more)),
    )


_EDITS: Mapping[str, Callable[[Scene, np.random.Generator], Draft | None]] = {
    "replace_obj": lambda scene, rng: _replace("shape", scene, rng),
    "replace_att": lambda scene, rng: _replace(one_of(_CHANGED, rng), scene, rng),
    "replace_rel": _replace_rel,
    "swap_obj": _swap_obj,
    "swap_att": _swap_att,
    "add_obj": _add_obj,
    "add_att": _add_att,
}
SUBSETS = tuple(_EDITS)


def _two_of(scene: Scene, rng: np.random.Generator) -> tuple[Thing, Thing]:
    count = len(scene.things)
    one, two = int(rng.random() * count), int(rng.random() * (count - 1))
    return scene.things[one], scene.things[two + (two >= one)]
