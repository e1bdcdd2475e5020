"""An image generator that sometimes draws something other than its caption.

Of TROHN-Img, BiVLC's authors (section 5.2) estimate that 61 % of negative images are wrong: they show the
original, or something else, or fit both captions. Here the rate is chosen, and what is wrong is known.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from counterfoil.errors import InputError
from counterfoil.world.captions import matches
from counterfoil.world.edits import SUBSETS, Contrast, has_room
from counterfoil.world.scenes import (
    COLOURS,
    CONTAINERS,
    SHAPES,
    TEXTURES,
    Scene,
    Thing,
    one_of,
    place,
    sample_scene,
)

#: Tries at one kind of failure before the original is shown.
_TRIES = 60
#: Spoilt scenes have one thing changed; after every so many tries one more.
_PER_THING = 12

#: Of wrong pictures, how many fit both captions, and how the others divide.
_FITS_BOTH = 0.1
_OTHERS = {"original": 0.4, "spoilt": 0.3, "another": 0.2}
#: Captions of ADD close what they say, so no scene fits both; the other kinds of edit make up for it.
_OPEN = sum(not subset.startswith("add") for subset in SUBSETS) / len(SUBSETS)


def imagine(contrast: Contrast, rng: np.random.Generator, *, failure: float = 0.0) -> tuple[Scene, bool]:
    """What the generator draws for the negative caption, and whether only the negative caption is true of it.

    With probability `failure` it is not. Of what is wrong, over equally many contrasts of each kind, 40 %
    shows the original, 30 % the right scene with a thing spoilt, 20 % another scene (neither caption is
    true), and 10 % fits both captions (14 % of REPLACE and SWAP, none of ADD, whose captions cannot be true
    together).

    >>> from counterfoil.world.edits import edit
    >>> from counterfoil.world.scenes import sample_scene
    >>> rng = np.random.default_rng(1)
    >>> contrast = edit(sample_scene(rng), "replace_obj", rng)
    >>> imagine(contrast, rng) == (contrast.scenes[1], True)
    True
    """
    if not 0 <= failure <= 1:
        raise InputError("the generator's failure is no probability", given=failure, allowed="0 to 1")
    if rng.random() >= failure:
        return contrast.scenes[1], True
    if rng.random() < (0 if contrast.type == "add" else _FITS_BOTH / _OPEN):
        kind = "both"
    else:
        odds = np.cumsum(list(_OTHERS.values()))
        kind = list(_OTHERS)[int(np.searchsorted(odds, odds[-1] * rng.random(), side="right"))]
    if kind == "original":
        return contrast.scenes[0], False
    wanted, draw = _KINDS[kind]
    for tried in range(_TRIES):
        scene = draw(contrast, rng, tried)
        if tuple(matches(caption, scene) for caption in contrast.captions) == wanted:
            return scene, False
    return contrast.scenes[0], False


def shows(contrast: Contrast, scene: Scene) -> bool:
    """Whether `scene` is a right negative image: of its two captions, only the negative one is true."""
    return matches(contrast.captions[1], scene) and not matches(contrast.captions[0], scene)


def spoilt(scene: Scene, rng: np.random.Generator, tried: int) -> Scene:
    """The scene with another shape, colour or texture on one thing, after some tries on more."""
    things = list(scene.things)
    for at in rng.permutation(len(things))[: 1 + tried // _PER_THING]:
        things[at] = repainted(things[at], rng)
    return replace(scene, things=tuple(things))


def _both(contrast: Contrast, rng: np.random.Generator, tried: int) -> Scene:
    """The original and what is changed in the right scene, beside each other.

    Other tries lay it elsewhere: first with what shares its cell ("inside a box"), then alone; and in the
    last third all things anew, since a relation may need the room.
    """
    original, right = contrast.scenes
    changed = [thing for thing in right.things if thing not in original.things]
    if tried == 0 and not {thing.cell for thing in changed} & {thing.cell for thing in original.things}:
        return replace(original, things=(*original.things, *changed))
    some = [changed[i] for i in rng.permutation(len(changed))[: int(rng.integers(1, len(changed) + 1))]]
    if 3 * tried < _TRIES:
        cells = dict.fromkeys(thing.cell for thing in some)
        groups = [[thing for thing in right.things if thing.cell == cell] for cell in cells]
        return replace(original, things=_laid(original.things, groups, rng))
    if 3 * tried < 2 * _TRIES:
        return replace(original, things=_laid(original.things, [[thing] for thing in some], rng))
    return replace(original, things=_laid((), [[thing] for thing in (*original.things, *some)], rng))


def _laid(
    fixed: Sequence[Thing], groups: Sequence[Sequence[Thing]], rng: np.random.Generator
) -> tuple[Thing, ...]:
    """The fixed things, and each of the `groups` laid to a free cell or an empty container, if any."""
    things = list(fixed)
    for group in sorted(groups, key=lambda group: all(thing.shape not in CONTAINERS for thing in group)):
        scene = Scene(tuple(things))
        room: list[tuple[int, int] | Thing] = list(scene.free())
        if len(group) == 1 and group[0].size == "small" and group[0].shape not in CONTAINERS:
            room += [host for host in things if has_room(host, scene)]
        if room:
            spot = one_of(room, rng)
            x, y = (spot.x, spot.y) if isinstance(spot, Thing) else place(rng, spot)
            things += [replace(thing, x=x, y=y) for thing in group]
    return tuple(things)


def repainted(thing: Thing, rng: np.random.Generator) -> Thing:
    """One attribute changed; never a size, since it may lie in a container, which keeps shape and texture."""
    shape, colour, texture = (
        one_of([value for value in values if value != old], rng)
        for values, old in ((SHAPES, thing.shape), (COLOURS, thing.colour), (TEXTURES, thing.texture))
    )
    painted = replace(thing, colour=colour)
    if thing.shape not in SHAPES:
        return painted
    return one_of([replace(thing, shape=shape), painted, replace(thing, texture=texture)], rng)


#: What makes each kind, and of which of the two captions it must be true.
_KINDS: dict[str, tuple[tuple[bool, bool], Callable[[Contrast, np.random.Generator, int], Scene]]] = {
    "spoilt": ((False, False), lambda contrast, rng, tried: spoilt(contrast.scenes[1], rng, tried)),
    "another": ((False, False), lambda _, rng, __: sample_scene(rng)),
    "both": ((True, True), _both),
}
