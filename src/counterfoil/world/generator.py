"""An image generator that does not always draw what it is told.

Negative images of real data are drawn by a machine from the negative caption. Of TROHN-Img, P000 (section
5.2) estimates that 61 % are wrong: they show the original, or something else, or fit both captions. Here the
rate is chosen, and what is wrong is known.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from counterfoil.errors import InputError
from counterfoil.world.captions import matches
from counterfoil.world.edits import Contrast
from counterfoil.world.scenes import COLOURS, SHAPES, TEXTURES, Scene, Thing, one_of, sample_scene

#: Tries at one kind of failure before the original is shown.
_TRIES = 8


def imagine(contrast: Contrast, rng: np.random.Generator, *, failure: float = 0.0) -> tuple[Scene, bool]:
    """What the generator draws for the negative caption, and whether it is right.

    Right is a scene of which the negative caption is true and the positive one false. With probability
    `failure` it is not: then in four cases of ten the original is shown, in three the right scene with one
    thing spoilt, in two another scene altogether, in one a scene that fits both captions. Where a kind cannot
    be had (few captions can be true together), the original is shown. Whatever comes out is checked, so the
    answer's second part is the truth, and exactly `failure` of many are wrong on average.

    Raises `InputError` where `failure` is no probability.

    >>> from counterfoil.world.edits import edit
    >>> from counterfoil.world.scenes import sample_scene
    >>> rng = np.random.default_rng(1)
    >>> contrast = edit(sample_scene(rng), "replace_obj", rng)
    >>> imagine(contrast, rng) == (contrast.scenes[1], True)
    True
    >>> imagine(contrast, rng, failure=1.0)[1]
    False
    """
    if not 0 <= failure <= 1:
        raise InputError("the generator's failure is no probability", given=failure, allowed="0 to 1")
    if rng.random() >= failure:
        return contrast.scenes[1], True
    kind = _KINDS[int(np.searchsorted(np.cumsum(_ODDS), rng.random(), side="right"))]
    for _ in range(_TRIES):
        scene = kind(contrast, rng)
        if not shows(contrast, scene):
            return scene, False
    return contrast.scenes[0], False


def shows(contrast: Contrast, scene: Scene) -> bool:
    """Whether `scene` is a right negative image: of its two captions, only the negative one is true."""
    return matches(contrast.captions[1], scene) and not matches(contrast.captions[0], scene)


def _original(contrast: Contrast, _: np.random.Generator) -> Scene:
    return contrast.scenes[0]


def _spoilt(contrast: Contrast, rng: np.random.Generator) -> Scene:
    """The right scene with another shape, colour or texture on one thing."""
    scene = contrast.scenes[1]
    at = int(rng.integers(len(scene.things)))
    changed = _repainted(scene.things[at], rng)
    return replace(scene, things=(*scene.things[:at], changed, *scene.things[at + 1 :]))


def _another(_: Contrast, rng: np.random.Generator) -> Scene:
    return sample_scene(rng)


def _both(contrast: Contrast, rng: np.random.Generator) -> Scene:
    """The original with as many of the right scene's things laid beside it as there is room for."""
    original, right = contrast.scenes
    things = list(original.things)
    for thing in right.things:
        if thing not in things and thing.cell not in {other.cell for other in things}:
            things.append(thing)
    scene = replace(original, things=tuple(things))
    return scene if all(matches(caption, scene) for caption in contrast.captions) else original


def _repainted(thing: Thing, rng: np.random.Generator) -> Thing:
    """One attribute changed; never a size, since it may lie in a container, which keeps shape and texture."""
    shape, colour, texture = (
        one_of([value for value in values if value != old], rng)
        for values, old in ((SHAPES, thing.shape), (COLOURS, thing.colour), (TEXTURES, thing.texture))
    )
    painted = replace(thing, colour=colour)
    if thing.shape not in SHAPES:
        return painted
    return one_of([replace(thing, shape=shape), painted, replace(thing, texture=texture)], rng)


_KINDS: tuple[Callable[[Contrast, np.random.Generator], Scene], ...] = (_original, _spoilt, _another, _both)
#: How often each kind is tried where the generator fails.
_ODDS = (0.4, 0.3, 0.2, 0.1)
