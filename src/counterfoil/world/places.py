"""Places: the pixels of a picture on which each thing lies, and the things that a word speaks of.

What a heatmap should point at is known here exactly.
"""

import numpy as np
from jaxtyping import Bool
from numpy import ndarray

from counterfoil.world.captions import plural
from counterfoil.world.painting import corner, paper_of
from counterfoil.world.scenes import ATTRIBUTES, CONTAINERS, SHAPES, Scene

#: The words that say something of a thing that can be seen where it lies: the attribute and its value.
SAYS = {
    **{word: ("shape", shape) for shape in (*SHAPES, *CONTAINERS) for word in (shape, plural(shape))},
    **{value: (name, value) for name, values in ATTRIBUTES.items() for value in values},
}


def masks(scene: Scene, side: int) -> Bool[ndarray, "things side side"]:
    """The pixels that each thing covers, more than half of each; shadows are no part of a thing.

    A hole of a container belongs to no one, or to what lies in it.

    >>> from counterfoil.world.scenes import Thing
    >>> found = masks(Scene((Thing("square", "large", "plain", "red", x=0.5, y=0.5),)), 100)
    >>> found.shape, bool(found[0, 50, 50]), bool(found[0, 10, 10]), round(float(found.mean()), 2)
    ((1, 100, 100), True, False, 0.05)
    """
    covered = np.zeros((len(scene.things), side, side), dtype=np.bool_)
    for mask, thing in zip(covered, scene.things, strict=True):
        paper = paper_of(thing, side) > 0.5
        left, top = corner(thing, side, len(paper))
        rows, columns = (
            at[(at >= 0) & (at < side)] for at in (np.arange(len(paper)) + k for k in (top, left))
        )
        mask[np.ix_(rows, columns)] = paper[np.ix_(rows - top, columns - left)]
    return covered


def spoken_of(word: str, scene: Scene) -> list[int]:
    """Which things of the scene have what the word says: all red ones for "red"; none for other words.

    >>> from counterfoil.world.scenes import Thing
    >>> star = Thing("star", "small", "plain", "red", x=0.2, y=0.5)
    >>> scene = Scene((star, Thing("moon", "large", "plain", "red", x=0.8, y=0.5)))
    >>> [spoken_of(word, scene) for word in ("red", "Stars", "blue", "above")]
    [[0, 1], [0], [], []]
    """
    attribute = SAYS.get(word.lower())
    if attribute is None:
        return []
    return [
        number for number, thing in enumerate(scene.things) if getattr(thing, attribute[0]) == attribute[1]
    ]
