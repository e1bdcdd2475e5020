"""Compositions: scenes of which a given caption is true, checked by the exact rules of truth."""

from dataclasses import replace
from itertools import pairwise

import numpy as np

from counterfoil.errors import InputError
from counterfoil.world.captions import Meaning, Phrase, matches
from counterfoil.world.edits import Contrast, has_room, with_values
from counterfoil.world.generator import imagine, shows, spoilt
from counterfoil.world.scenes import (
    CELLS,
    CONTAINERS,
    CONTAINMENT,
    DIRECTIONS,
    PAPERS,
    SHAPES,
    Scene,
    Thing,
    hollow,
    one_of,
    sample_scene,
    sample_thing,
)

Cell = tuple[int, int]

#: Tries at a composition, and at one thing that no numeral counts by mistake.
_TRIES, _SAMPLES = 300, 30
#: How many things a picture shows where its caption leaves it open, as in scenes drawn at random.
_FEWEST, _MOST = 2, 4
#: How often a thing that no phrase speaks of is like another, is a container, and lies in one with room.
_TWINS, _HOLLOW, _HELD = 0.2, 0.12, 0.5
#: Tries at a wrong picture of a lone caption, and how often it is the right one spoilt rather than another.
_WRONG, _SPOILT = 60, 0.6


def compose(meaning: Meaning, rng: np.random.Generator, *, unlike: Meaning | None = None) -> Scene | None:
    """A scene of which `meaning` is true and, where it is given, `unlike` is not; None after 300 tries.

    >>> from counterfoil.world.truth import read
    >>> caption = read("Two red stars are above a blue moon.")
    >>> matches(caption, compose(caption, np.random.default_rng(0)))
    True
    """
    for _ in range(_TRIES):
        scene = _composed(meaning, rng)
        if scene is not None and _right(meaning, unlike, scene):
            return scene
    return None


def imagine_caption(
    meaning: Meaning,
    rng: np.random.Generator,
    *,
    unlike: Meaning | None = None,
    original: Scene | None = None,
    failure: float = 0.0,
    subset: str = "",
) -> tuple[Scene, bool] | None:
    """What the world's image generator draws for a caption, and whether that is right.

    Right is a scene of which `meaning` is true and `unlike`, the caption that the picture must not fit, is
    false. With probability `failure` the picture is wrong: as in `generator.imagine` where there is an
    `unlike`, else 60 % are spoilt and 40 % show something else. A picture that can only be right by half is
    drawn for `meaning` and is not right. None where no scene fits `meaning`.

    >>> from counterfoil.world.truth import read
    >>> said, negative = read("A star is above a moon."), read("A moon is above a star.")
    >>> scene, right = imagine_caption(negative, np.random.default_rng(0), unlike=said)
    >>> right, matches(negative, scene), matches(said, scene)
    (True, True, False)
    """
    if not 0 <= failure <= 1:
        raise InputError("the generator's failure is no probability", given=failure, allowed="0 to 1")
    right = compose(meaning, rng, unlike=unlike)
    if right is None and unlike is not None:
        right = compose(meaning, rng)
    if right is None:
        return None
    first = original
    if first is None and unlike is not None:
        first = compose(unlike, rng)
    if unlike is None or first is None:
        # Nothing can show the original, so it cannot be drawn by mistake either.
        if rng.random() < failure:
            # The right one spoilt, or another; what everything fits has no wrong picture.
            spoils = rng.random() < _SPOILT
            others = (spoilt(right, rng, tried) if spoils else sample_scene(rng) for tried in range(_WRONG))
            right = next((scene for scene in others if not matches(meaning, scene)), right)
        return right, _right(meaning, unlike, right)
    contrast = Contrast(subset, (unlike, meaning), (first, right))
    scene, _ = imagine(contrast, rng, failure=failure)
    return scene, shows(contrast, scene)


def _right(meaning: Meaning, unlike: Meaning | None, scene: Scene) -> bool:
    return matches(meaning, scene) and (unlike is None or not matches(unlike, scene))


def _composed(meaning: Meaning, rng: np.random.Generator) -> Scene | None:
    """A scene that most likely fits; None where things have no room or cannot be as a phrase has them."""
    counts = [phrase.count for phrase in meaning.phrases]
    cells = _places(meaning, counts, rng)
    if cells is None:
        return None
    roles: list[str] = ["", ""]
    if meaning.relation in CONTAINMENT:
        roles = ["guest", "host"] if meaning.relation == "inside" else ["host", "guest"]
    roles += [""] * (len(counts) - 2)
    things: list[Thing] = []
    for k, phrase in enumerate(meaning.phrases):
        others = [other for other in meaning.phrases if other.count > 1 and other is not phrase]
        for cell in cells[k]:
            thing = _spoken(phrase, cell, rng, others, roles[k])
            if thing is None:
                return None
            things.append(thing)
    if meaning.relation in CONTAINMENT:
        host, guest = (1, 0) if meaning.relation == "inside" else (0, 1)
        things[guest] = replace(things[guest], x=things[host].x, y=things[host].y)
    scene = Scene(tuple(things), paper=one_of(PAPERS, rng))
    if meaning.closed:
        return scene
    wanted = _FEWEST + int(rng.random() * (_MOST + 1 - _FEWEST))
    while len(scene.things) < wanted:
        more = _more(scene, meaning, rng)
        if more is None:
            break
        scene = replace(scene, things=(*scene.things, more))
    # What was spoken of first need not be painted first.
    return replace(scene, things=tuple(scene.things[i] for i in rng.permutation(len(scene.things))))


def _places(meaning: Meaning, counts: list[int], rng: np.random.Generator) -> list[list[Cell]] | None:
    """The cells of the things of each phrase, so that the relation holds; None where there is no room."""
    order = [CELLS[i] for i in rng.permutation(len(CELLS))]
    if meaning.relation is None:
        cells = _taken(order, counts)
    elif meaning.relation in CONTAINMENT:
        if counts[:2] != [1, 1]:
            return None
        cells = _taken(order, [1, *counts[2:]])
        cells = cells and [cells[0], *cells]
    else:
        right, down = DIRECTIONS[meaning.relation]
        # What a cell has more of, the further it lies in the direction from the second to the first.
        ahead = {cell: right * cell[0] + down * cell[1] for cell in CELLS}
        levels = sorted(set(ahead.values()))
        ways = [cut for cut in (1, 2) if counts[0] <= 3 * (3 - cut) and counts[1] <= 3 * cut]
        if not ways:
            return None
        cut = levels[one_of(ways, rng)]
        first = [cell for cell in order if ahead[cell] >= cut][: counts[0]]
        second = [cell for cell in order if ahead[cell] < cut][: counts[1]]
        rest = _taken([cell for cell in order if cell not in (*first, *second)], counts[2:])
        cells = None if rest is None else [first, second, *rest]
    return cells


def _taken(cells: list[Cell], counts: list[int]) -> list[list[Cell]] | None:
    """The first cells for the first phrase, the next for the next; None where they do not last."""
    if sum(counts) > len(cells):
        return None
    ends = np.cumsum([0, *counts])
    return [cells[start:stop] for start, stop in pairwise(ends)]


def _spoken(
    phrase: Phrase, cell: Cell, rng: np.random.Generator, others: list[Phrase], role: str
) -> Thing | None:
    """A thing that fits the phrase and none of the others, which count theirs; None where none is found."""
    for _ in range(_SAMPLES):
        thing = with_values(sample_thing(rng, cell), dict(phrase.said))
        if role == "host" and phrase.shape is None:
            thing = hollow(thing, rng)
        if thing.shape in CONTAINERS:
            thing = replace(thing, size="large", texture="plain")
        elif role == "guest":
            thing = replace(thing, size="small")
        out_of_place = (role == "host") != (thing.shape in CONTAINERS) and role != ""
        if phrase.fits(thing) and not out_of_place and not any(other.fits(thing) for other in others):
            return thing
        if thing.shape == phrase.shape and not phrase.fits(thing):
            # Of this shape there is none of the size or texture.
            return None
    return None


def _more(scene: Scene, meaning: Meaning, rng: np.random.Generator) -> Thing | None:
    """One thing that no phrase speaks of, where it makes no numeral wrong; None where there is none."""
    free = scene.free()
    if not free:
        return None
    for _ in range(_SAMPLES):
        thing = sample_thing(rng, one_of(free, rng))
        if rng.random() < _TWINS:
            # As in scenes at random; "two stars" and no "two striped stars" need a third star.
            twin = one_of(scene.things, rng)
            thing = replace(thing, shape=twin.shape, colour=twin.colour)
            if thing.shape in CONTAINERS:
                thing = replace(thing, size="large", texture="plain")
        elif rng.random() < _HOLLOW:
            thing = hollow(thing, rng)
        hosts = [host for host in scene.things if has_room(host, scene)]
        if hosts and thing.shape in SHAPES and rng.random() < _HELD:
            host = one_of(hosts, rng)
            thing = replace(thing, size="small", x=host.x, y=host.y)
        if not any(phrase.count > 1 and phrase.fits(thing) for phrase in meaning.phrases):
            return thing
    return None
