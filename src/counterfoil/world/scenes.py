"""Scenes: a few paper shapes on a sheet, everything about them known. Truth is about scenes, never pixels."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import product
from typing import TypeVar

import numpy as np

from counterfoil.errors import DataError

#: Shapes that are cut from paper; each may be small or large, plain or patterned.
SHAPES = ("circle", "square", "triangle", "star", "heart", "diamond", "moon", "flower")
#: Hollow shapes: always large and plain, with room for one small thing inside.
CONTAINERS = ("ring", "box")
COLOURS = ("red", "orange", "yellow", "green", "blue", "purple", "pink")
SIZES = ("small", "large")
TEXTURES = ("plain", "striped", "dotted")

#: The attributes of a thing besides its shape, in the order of English words.
ATTRIBUTES: Mapping[str, tuple[str, ...]] = {"size": SIZES, "texture": TEXTURES, "colour": COLOURS}

#: Relations as the direction from the second thing to the first; x runs right and y runs down.
DIRECTIONS: Mapping[str, tuple[int, int]] = {
    "to the left of": (-1, 0),
    "to the right of": (1, 0),
    "above": (0, -1),
    "below": (0, 1),
}
#: Relations between a container and what lies in it.
CONTAINMENT = ("inside", "around")
RELATIONS = (*DIRECTIONS, *CONTAINMENT)

#: The sheets a scene may lie on; no caption speaks of them.
PAPERS = ("cream", "mist", "sage")

#: Things lie near the points of a 3 x 3 grid: (column, row) of each.
CELLS = tuple((column, row) for row in range(3) for column in range(3))
_FIRST, _STEP, _JITTER = 0.185, 0.315, 0.015

#: How far apart two things must be along an axis for a relation to hold. Neighbours of the grid are at least
#: 0.28 apart and things of one row or column at most 0.03, so no scene is ever near the line.
CLEAR = 0.16

#: Angles in degrees that a thing may be turned by, as if laid down by hand.
TURNS = (-9, -4, 0, 4, 9)

#: How often a scene has a container, how often that holds something, and how often two things are alike.
CONTAINED = 0.25
_HOLDING, _TWINS = 0.75, 0.2

T = TypeVar("T")


@dataclass(frozen=True)
class Thing:
    """One paper shape. `x` and `y` are its centre in [0, 1]; `turn` is in degrees and means nothing."""

    shape: str
    size: str
    texture: str
    colour: str
    x: float
    y: float
    turn: int = 0

    @property
    def is_container(self) -> bool:
        return self.shape in CONTAINERS

    @cached_property
    def cell(self) -> tuple[int, int]:
        """The grid cell the thing lies in, (column, row)."""
        return round((self.x - _FIRST) / _STEP), round((self.y - _FIRST) / _STEP)


@dataclass(frozen=True)
class Scene:
    """A few things on a sheet of paper.

    Two of them lie in one cell of the grid only where one is a container and the other a small thing in it.
    """

    things: tuple[Thing, ...]
    paper: str = PAPERS[0]

    def free(self) -> list[tuple[int, int]]:
        """The cells in which nothing lies."""
        taken = {thing.cell for thing in self.things}
        return [cell for cell in CELLS if cell not in taken]

    def to_json(self) -> str:
        """The scene as text for a cell of a table; `from_json` reads it back to an equal one."""
        things = [list(asdict(thing).values()) for thing in self.things]
        return json.dumps({"paper": self.paper, "things": things}, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str, *, where: object = None) -> "Scene":
        """The scene of a text that `to_json` wrote; raises `DataError` for any other."""
        try:
            held = json.loads(text)
            scene = cls(tuple(Thing(*values) for values in held["things"]), held["paper"])
        except (ValueError, TypeError, KeyError) as error:
            raise DataError("no scene of the drawn world", where=where, given=text) from error
        named = {"shape": (*SHAPES, *CONTAINERS), **ATTRIBUTES}
        checks = [(name, getattr(of, name), values) for of in scene.things for name, values in named.items()]
        for name, value, values in (*checks, ("paper", scene.paper, PAPERS)):
            if value not in values:
                raise DataError(f"no {name} of the drawn world", where=where, given=value, allowed=values)
        ranges = {"x": (0, 1), "y": (0, 1), "turn": (-360, 360)}
        for thing, (name, (low, high)) in product(scene.things, ranges.items()):
            value = getattr(thing, name)
            if type(value) not in (int, float) or not low <= value <= high:
                allowed = f"{low} to {high}"
                raise DataError(f"no {name} of a thing", where=where, given=value, allowed=allowed)
        return scene


def holds(relation: str, first: Thing, second: Thing) -> bool:
    """Whether `first` is, say, "to the left of" `second`: further that way by at least `CLEAR`.

    Two directions may hold at once; none holds between a container and what lies inside it.

    >>> star = Thing("star", "small", "plain", "red", x=0.2, y=0.5)
    >>> moon = Thing("moon", "large", "plain", "blue", x=0.8, y=0.5)
    >>> [name for name in RELATIONS if holds(name, star, moon)]
    ['to the left of']
    """
    if relation == "inside":
        return second.is_container and not first.is_container and first.cell == second.cell
    if relation == "around":
        return holds("inside", second, first)
    right, down = DIRECTIONS[relation]
    return right * (first.x - second.x) + down * (first.y - second.y) >= CLEAR


def relation_between(first: Thing, second: Thing) -> str | None:
    """The one relation that holds from `first` to `second`; None where two do, since they lie askew."""
    relations = [name for name in RELATIONS if holds(name, first, second)]
    return relations[0] if len(relations) == 1 else None


def sample_scene(
    rng: np.random.Generator, *, fewest: int = 2, most: int = 4, containers: float = CONTAINED
) -> Scene:
    """A scene of `fewest` to `most` things, everything about them drawn from `rng`.

    Six things in ten are plain, one scene in five has two things of one shape and colour, and with
    probability `containers` one thing is a container, more often than not with another inside.
    """
    count = fewest + int(rng.random() * (most + 1 - fewest))
    cells = [CELLS[i] for i in rng.permutation(len(CELLS))[:count]]
    things = [sample_thing(rng, cell) for cell in cells]
    if count > 1 and rng.random() < _TWINS:
        things[-2] = replace(things[-2], shape=things[-1].shape, colour=things[-1].colour)
    if rng.random() < containers:
        first = things[0] = hollow(things[0], rng)
        if count > 1 and rng.random() < _HOLDING:
            things[1] = replace(things[1], size="small", x=first.x, y=first.y)
    return Scene(tuple(things), paper=one_of(PAPERS, rng))


def hollow(thing: Thing, rng: np.random.Generator) -> Thing:
    """A container where `thing` lies, of its colour."""
    return replace(thing, shape=one_of(CONTAINERS, rng), size="large", texture="plain")


def sample_thing(rng: np.random.Generator, cell: tuple[int, int]) -> Thing:
    texture = "plain" if rng.random() < 0.6 else one_of(TEXTURES[1:], rng)
    x, y = place(rng, cell)
    return Thing(
        one_of(SHAPES, rng), one_of(SIZES, rng), texture, one_of(COLOURS, rng), x, y, one_of(TURNS, rng)
    )


def place(rng: np.random.Generator, cell: tuple[int, int]) -> tuple[float, float]:
    """A point near the middle of `cell`, rounded so that it prints and compares exactly."""
    x, y = (_FIRST + _STEP * i + _JITTER * (2 * rng.random() - 1) for i in cell)
    return round(x, 3), round(y, 3)


def one_of(values: Sequence[T], rng: np.random.Generator) -> T:
    """One of `values`, each as likely as any other."""
    # Five times as fast as `rng.integers`, and as even up to one part in 10^15.
    return values[int(rng.random() * len(values))]
