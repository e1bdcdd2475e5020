"""An image generator that sometimes draws something other than its caption.

Of TROHN-Img, BiVLC's authors (section 5.2) estimate that 61 % of negative images are wrong: they show the
original, or something else, or fit both captions. Here the rate is chosen, and what is wrong is known. What
is drawn for a caption alone is composed until the exact rules of truth say that the caption is true of it.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from counterfoil.errors import InputError
from counterfoil.world import scenes
from counterfoil.world.captions import Meaning, Phrase, matches
from counterfoil.world.edits import SUBSETS, Cell, MinimalPair, has_room, with_values
from counterfoil.world.scenes import Scene, Thing, hollow, one_of, place, sample_scene, sample_thing

#: Tries at one kind of failure before the original is shown.
_TRIES = 60
#: Spoilt scenes have one thing changed; one more after each round of tries.
_PER_THING = 12

#: Of wrong pictures, how many fit both captions, and how the others divide.
_FITS_BOTH = 0.1
_OTHERS = {"original": 0.4, "spoilt": 0.3, "another": 0.2}
#: Captions of ADD close what they say, so no scene fits both; the other kinds of edit make up for it.
_OPEN = sum(not subset.startswith("add") for subset in SUBSETS) / len(SUBSETS)


def imagine(pair: MinimalPair, rng: np.random.Generator, *, failure: float = 0.0) -> tuple[Scene, bool]:
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
    _check_failure(failure)
    if rng.random() >= failure:
        return pair.scenes[1], True
    if rng.random() < (0 if pair.type == "add" else _FITS_BOTH / _OPEN):
        kind = "both"
    else:
        odds = np.cumsum(list(_OTHERS.values()))
        kind = list(_OTHERS)[int(np.searchsorted(odds, odds[-1] * rng.random(), side="right"))]
    if kind == "original":
        return pair.scenes[0], False
    wanted, draw = _KINDS[kind]
    for tried in range(_TRIES):
        scene = draw(pair, rng, tried)
        if tuple(matches(caption, scene) for caption in pair.captions) == wanted:
            return scene, False
    return pair.scenes[0], False


def _check_failure(failure: float) -> None:
    if not 0 <= failure <= 1:
        raise InputError("the generator's failure is no probability", given=failure, allowed="0 to 1")


def spoilt(scene: Scene, rng: np.random.Generator, tried: int) -> Scene:
    """The scene with another shape, colour or texture on one thing, after some tries on more.

    Never with another size: a thing may lie in a container, which itself keeps shape and texture.
    """
    things, kinds = list(scene.things), (scenes.SHAPES, scenes.COLOURS, scenes.TEXTURES)
    for i in rng.permutation(len(things))[: 1 + tried // _PER_THING]:
        thing = things[i]
        shape, colour, texture = (
            one_of([value for value in values if value != old], rng)
            for values, old in zip(kinds, (thing.shape, thing.colour, thing.texture), strict=True)
        )
        things[i] = replace(thing, colour=colour)
        if not thing.is_container:
            changes = replace(thing, shape=shape), things[i], replace(thing, texture=texture)
            things[i] = one_of(changes, rng)
    return replace(scene, things=tuple(things))


def _both(pair: MinimalPair, rng: np.random.Generator, tried: int) -> Scene:
    """The original and what is changed in the right scene, beside each other.

    Other tries lay it elsewhere: first with what shares its cell ("inside a box"), then alone; and in the
    last third all things anew, since a relation may need the room.
    """
    original, right = pair.scenes
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
    for group in sorted(groups, key=lambda group: not any(thing.is_container for thing in group)):
        scene = Scene(tuple(things))
        room: list[Cell | Thing] = list(scene.free())
        if len(group) == 1 and group[0].size == "small" and not group[0].is_container:
            room += [host for host in things if has_room(host, scene)]
        if room:
            spot = one_of(room, rng)
            x, y = (spot.x, spot.y) if isinstance(spot, Thing) else place(rng, spot)
            things += [replace(thing, x=x, y=y) for thing in group]
    return tuple(things)


#: What makes each kind, and of which of the two captions it must be true.
_KINDS: dict[str, tuple[tuple[bool, bool], Callable[[MinimalPair, np.random.Generator, int], Scene]]] = {
    "spoilt": ((False, False), lambda pair, rng, tried: spoilt(pair.scenes[1], rng, tried)),
    "another": ((False, False), lambda _, rng, __: sample_scene(rng)),
    "both": ((True, True), _both),
}


#: Tries at a composition, and at one thing that no numeral counts by mistake.
_COMPOSED, _SAMPLES = 300, 30
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
    for _ in range(_COMPOSED):
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
    _check_failure(failure)
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
    scene, _ = imagine(MinimalPair(subset, (unlike, meaning), (first, right)), rng, failure=failure)
    return scene, _right(meaning, unlike, scene)


def _right(meaning: Meaning, unlike: Meaning | None, scene: Scene) -> bool:
    return matches(meaning, scene) and (unlike is None or not matches(unlike, scene))


def _composed(meaning: Meaning, rng: np.random.Generator) -> Scene | None:
    """A scene that most likely fits; None where things have no room or cannot be as a phrase has them."""
    cells = _cells(meaning, [phrase.count for phrase in meaning.phrases], rng)
    if cells is None:
        return None
    roles = [""] * len(meaning.phrases)
    if meaning.relation in scenes.CONTAINMENT:
        roles[:2] = ["guest", "host"] if meaning.relation == "inside" else ["host", "guest"]
    things: list[Thing] = []
    for k, phrase in enumerate(meaning.phrases):
        others = [other for other in meaning.phrases if other.count > 1 and other is not phrase]
        for cell in cells[k]:
            thing = _spoken(phrase, cell, rng, others, roles[k])
            if thing is None:
                return None
            things.append(thing)
    if meaning.relation in scenes.CONTAINMENT:
        host, guest = roles.index("host"), roles.index("guest")
        things[guest] = replace(things[guest], x=things[host].x, y=things[host].y)
    scene = Scene(tuple(things), paper=one_of(scenes.PAPERS, rng))
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


def _cells(meaning: Meaning, counts: list[int], rng: np.random.Generator) -> list[list[Cell]] | None:
    """The cells of the things of each phrase, so that the relation holds; None where there is no room."""
    order = [scenes.CELLS[i] for i in rng.permutation(len(scenes.CELLS))]
    if meaning.relation is None:
        return _taken(order, counts)
    if meaning.relation in scenes.CONTAINMENT:
        cells = _taken(order, [1, *counts[2:]]) if counts[:2] == [1, 1] else None
        return cells and [cells[0], *cells]
    right, down = scenes.DIRECTIONS[meaning.relation]
    # What a cell has more of, the further it lies in the direction from the second to the first.
    ahead = {cell: right * cell[0] + down * cell[1] for cell in scenes.CELLS}
    ways = [cut for cut in (1, 2) if counts[0] <= 3 * (3 - cut) and counts[1] <= 3 * cut]
    if not ways:
        return None
    cut = sorted(set(ahead.values()))[one_of(ways, rng)]
    first = [cell for cell in order if ahead[cell] >= cut][: counts[0]]
    second = [cell for cell in order if ahead[cell] < cut][: counts[1]]
    rest = _taken([cell for cell in order if cell not in (*first, *second)], counts[2:])
    return None if rest is None else [first, second, *rest]


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
        thing = with_values(sample_thing(rng, cell), dict(phrase.attributes))
        if role == "host" and phrase.shape is None:
            thing = hollow(thing, rng)
        if thing.is_container:
            thing = replace(thing, size="large", texture="plain")
        elif role == "guest":
            thing = replace(thing, size="small")
        out_of_place = (role == "host") != thing.is_container and role != ""
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
            if thing.is_container:
                thing = replace(thing, size="large", texture="plain")
        elif rng.random() < _HOLLOW:
            thing = hollow(thing, rng)
        hosts = [host for host in scene.things if has_room(host, scene)]
        if hosts and thing.shape in scenes.SHAPES and rng.random() < _HELD:
            host = one_of(hosts, rng)
            thing = replace(thing, size="small", x=host.x, y=host.y)
        if not any(phrase.count > 1 and phrase.fits(thing) for phrase in meaning.phrases):
            return thing
    return None
