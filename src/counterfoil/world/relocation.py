"""Moves: things of a scene laid elsewhere, with what lies in them."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import product

import numpy as np

from counterfoil.world.scenes import CELLS, CONTAINERS, DIRECTIONS, Scene, Thing, one_of, place

Cell = tuple[int, int]


def holder(thing: Thing, scene: Scene) -> Thing | None:
    """The container that the thing lies in."""
    if thing.shape in CONTAINERS:
        return None
    return next((t for t in scene.things if t.shape in CONTAINERS and t.cell == thing.cell), None)


def has_room(thing: Thing, scene: Scene) -> bool:
    """Whether the thing is a container with nothing in it."""
    return thing.shape in CONTAINERS and sum(other.cell == thing.cell for other in scene.things) == 1


def _lies(first: Cell, second: Cell, direction: str) -> bool:
    """Whether a thing in the first cell lies straight that way from one in the second."""
    right, down = DIRECTIONS[direction]
    across, along = first[0] - second[0], first[1] - second[1]
    return (across * right > 0 and along == 0) if right else (along * down > 0 and across == 0)


#: Every two cells of which the first lies straight that way from the second.
_LINES = {
    name: [(one, two) for one, two in product(CELLS, repeat=2) if _lies(one, two, name)]
    for name in DIRECTIONS
}


def carried(scene: Scene, places: Mapping[Cell, tuple[float, float]]) -> Scene:
    """The scene with everything in these cells laid to these places."""
    return with_things(
        scene,
        *(
            (thing, replace(thing, x=places[thing.cell][0], y=places[thing.cell][1]))
            for thing in scene.things
            if thing.cell in places
        ),
    )


def with_things(scene: Scene, *changes: tuple[Thing, Thing]) -> Scene:
    """The scene with each old thing replaced by its new one, in the same order."""
    new = dict(changes)
    return replace(scene, things=tuple(new.get(thing, thing) for thing in scene.things))


def moved_in(scene: Scene, first: Thing, second: Thing) -> tuple[str, Scene] | None:
    """One of the two laid into the other, where that is an empty container and the first fits in."""
    for relation, guest, host in (("inside", first, second), ("around", second, first)):
        if has_room(host, scene) and guest.size == "small" and guest.shape not in CONTAINERS:
            return relation, with_things(scene, (guest, replace(guest, x=host.x, y=host.y)))
    return None


def moved_out(
    scene: Scene, first: Thing, second: Thing, rng: np.random.Generator
) -> tuple[str, Scene] | None:
    """What lies in the container laid beside, above or below it."""
    guest = second if first.shape in CONTAINERS else first
    free = scene.free()
    ways = [
        (relation, cell)
        for relation in DIRECTIONS
        for cell in free
        if (_lies(cell, second.cell, relation) if guest is first else _lies(first.cell, cell, relation))
    ]
    if not ways:
        return None
    relation, cell = one_of(ways, rng)
    x, y = place(rng, cell)
    return relation, with_things(scene, (guest, replace(guest, x=x, y=y)))


def moved_round(
    scene: Scene, first: Thing, second: Thing, old: str, rng: np.random.Generator
) -> tuple[str, Scene] | None:
    """The two laid another way; what lies in one cell with them comes along."""
    new = one_of([name for name in DIRECTIONS if name != old], rng)
    cells = [first.cell, second.cell, *scene.free()]
    moves = [(one, two) for one, two in _LINES[new] if one in cells and two in cells]
    if not moves:
        return None
    # To swap their places changes least to the eye; then to move one; then to move both.
    swapped = {first.cell, second.cell}
    cost = [0 if {one, two} == swapped else (one != first.cell) + (two != second.cell) for one, two in moves]
    one, two = one_of([move for move, c in zip(moves, cost, strict=True) if c == min(cost)], rng)
    places = {old: place(rng, cell) for old, cell in ((first.cell, one), (second.cell, two)) if old != cell}
    return new, carried(scene, places)
