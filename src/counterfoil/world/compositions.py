"""Compositions: scenes of which a given caption is true, made from the caption or from another scene.

An image generator of the world. It draws what a caption claims and, where the caption leaves room, a few
things besides; as an editor it changes a scene as its caption was changed, or as little as will do. What
comes out is checked by the exact rules of truth, so a scene is never believed to fit: it fits, or there is
none.

An editor of images is given an image, the caption of it and another caption. A word that differs is changed
in what it speaks of, words that changed places exchange what they speak of, a relation is laid anew, what is
said besides is added (`rewrites`).
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, pairwise, product

import numpy as np

from counterfoil.errors import InputError
from counterfoil.world.captions import Meaning, Phrase, matches
from counterfoil.world.edits import (
    CONTAINED,
    Contrast,
    carried,
    changeable,
    has_room,
    holder,
    moved_in,
    moved_out,
    moved_round,
    swapped,
    with_things,
    with_values,
)
from counterfoil.world.generator import imagine, shows, spoilt
from counterfoil.world.scenes import (
    ATTRIBUTES,
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
    place,
    sample_scene,
    sample_thing,
)

Cell = tuple[int, int]

#: Tries at a composition, and at one thing that no numeral counts by mistake.
_TRIES, _SAMPLES = 300, 30
#: How many things a picture shows where its caption leaves it open, as in scenes drawn at random.
_FEWEST, _MOST = 2, 4
#: How often a thing that no phrase speaks of has the shape and colour of another, is a container, and lies in
#: one that has room for it.
_TWINS, _HOLLOW, _HELD = 0.2, 0.12, 0.5
#: First changes that are tried where no single change will do.
_FIRST = 12
#: Tries at a wrong picture of a lone caption, and how often it is the right one spoilt rather than another.
_WRONG, _SPOILT = 60, 0.6


def compose(meaning: Meaning, rng: np.random.Generator, *, unlike: Meaning | None = None) -> Scene | None:
    """A scene of which `meaning` is true and, where it is given, `unlike` is not; as a rule of 2 to 4 things.

    None where no such scene was found in 300 tries: nothing is both a star and a ring, a ring is never
    striped, a container has room for one small thing, and more than nine things find no place. Captions that
    describe scenes of the world are always drawn.

    >>> from counterfoil.world.truth import read
    >>> rng = np.random.default_rng(0)
    >>> caption = read("Two red stars are above a blue moon.")
    >>> matches(caption, compose(caption, rng))
    True
    >>> compose(read("A star is inside a heart."), rng) is None
    True
    """
    for _ in range(_TRIES):
        scene = _composed(meaning, rng)
        if scene is not None and _right(meaning, unlike, scene):
            return scene
    return None


def adapt(
    scene: Scene, meaning: Meaning, rng: np.random.Generator, *, unlike: Meaning | None = None
) -> Scene | None:
    """`scene` changed for `meaning` to be true of it and `unlike` to be false.

    Where `unlike` is a caption of the scene that differs from `meaning` in one thing, what it speaks of is
    changed as the caption was (`rewrites`), so that adapted scenes differ as the world's own edits do. Else
    the scene is changed as little as will do: by one change (another shape, colour, size, texture or place of
    a thing or of all that are counted together, an exchange of one of these by two things, a thing more or
    less) where one will do, any of those that do being as likely; else by two, if a few tries find them; else
    it is a new scene by `compose`. The scene itself where nothing need be changed. None where there is no
    such scene.

    >>> from counterfoil.world.truth import read
    >>> star = Thing("star", "small", "plain", "red", 0.2, 0.5)
    >>> scene = Scene((star, Thing("moon", "large", "plain", "blue", 0.8, 0.5)))
    >>> new = adapt(scene, read("A star is to the right of a moon."), np.random.default_rng(0))
    >>> sorted(thing.shape for thing in new.things)
    ['moon', 'star']
    """
    if _right(meaning, unlike, scene):
        return scene
    if unlike is not None and matches(unlike, scene):
        ways = [
            candidate
            for candidate in rewrites(scene, unlike, meaning, rng)
            if _right(meaning, unlike, candidate)
        ]
        if ways:
            return one_of(ways, rng)
    changes = list(_changes(scene, meaning, rng))
    for phrase in unlike.phrases if unlike is not None else ():
        changes += _together(scene, phrase, rng)
    order = [changes[i] for i in rng.permutation(len(changes))]
    for changed in order:
        if _right(meaning, unlike, changed):
            return changed
    for first in order[:_FIRST]:
        second_changes = [
            candidate for candidate in _changes(first, meaning, rng) if _right(meaning, unlike, candidate)
        ]
        if second_changes:
            return one_of(second_changes, rng)
    return compose(meaning, rng, unlike=unlike)


def imagine_caption(
    meaning: Meaning,
    rng: np.random.Generator,
    *,
    unlike: Meaning | None = None,
    original: Scene | None = None,
    adapted: bool = False,
    failure: float = 0.0,
    subset: str = "",
) -> tuple[Scene, bool] | None:
    """What the world's image generator draws for a caption, and whether that is right.

    Right is a scene of which `meaning` is true and `unlike`, the caption that the picture must not fit, is
    false. With probability `failure` the picture is wrong. Where there is an `unlike`, wrong pictures are
    those of `generator.imagine`: 40 % show the original (drawn from `unlike` where `original` is not given),
    the others are spoilt, show something else or fit both captions; `subset` is the kind of edit, which
    decides how often the last can be. For a lone caption 60 % are spoilt and 40 % show something else. A
    caption that everything fits ("a shape") has no wrong picture, and its right one is drawn.

    `adapted` pictures change `original` as `adapt` does; others are drawn from the caption alone. A
    picture that can only be right by half, as that of "a star and a heart" is where it must not fit "a star",
    is drawn for `meaning` and is not right. None where the world has no scene that `meaning` is true of.

    Raises `InputError` where `failure` is no probability, or a picture is to be adapted from nothing.

    >>> from counterfoil.world.truth import read
    >>> said, negative = read("A star is above a moon."), read("A moon is above a star.")
    >>> scene, right = imagine_caption(negative, np.random.default_rng(0), unlike=said)
    >>> right, matches(negative, scene), matches(said, scene)
    (True, True, False)
    """
    if not 0 <= failure <= 1:
        raise InputError("the generator's failure is no probability", given=failure, allowed="0 to 1")
    if adapted and original is None:
        raise InputError("a picture can be adapted only where its original is known")

    def drawn(but: Meaning | None) -> Scene | None:
        if adapted and original is not None:
            return adapt(original, meaning, rng, unlike=but)
        return compose(meaning, rng, unlike=but)

    right = drawn(unlike)
    if right is None and unlike is not None:
        right = drawn(None)
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


def _changes(scene: Scene, meaning: Meaning, rng: np.random.Generator) -> Iterator[Scene]:
    """The scene after one change, for every change that leaves a scene of the world."""
    things, free = scene.things, scene.free()
    for thing in things:
        for name, values in {"shape": _shapes(thing), **ATTRIBUTES}.items():
            for value in values:
                changed = with_values(thing, {name: value})
                if changed != thing and _lawful(changed, held=holder(thing, scene) is not None):
                    yield with_things(scene, (thing, changed))
        yield replace(scene, things=tuple(other for other in things if other is not thing))
        for cell in free:
            # What a container holds comes along.
            yield carried(scene, {thing.cell: place(rng, cell)})
            if holder(thing, scene) is not None:
                x, y = place(rng, cell)
                yield with_things(scene, (thing, replace(thing, x=x, y=y)))
        if thing.size == "small" and holder(thing, scene) is None:
            for host in things:
                if has_room(host, scene):
                    yield with_things(scene, (thing, replace(thing, x=host.x, y=host.y)))
    for one, two in combinations(things, 2):
        # An attribute, their shapes or their places exchanged.
        inside = [holder(thing, scene) is not None for thing in (one, two)]
        for name in _ATTRIBUTES:
            first = with_values(one, {name: getattr(two, name)})
            second = with_values(two, {name: getattr(one, name)})
            if first != one and _lawful(first, held=inside[0]) and _lawful(second, held=inside[1]):
                yield with_things(scene, (one, first), (two, second))
        if one.cell != two.cell:
            yield carried(scene, {one.cell: (two.x, two.y), two.cell: (one.x, one.y)})
    for phrase in meaning.phrases:
        for cell in free:
            more = _spoken(phrase, cell, rng, [], "")
            if more is not None:
                yield replace(scene, things=(*things, more))


def _together(scene: Scene, phrase: Phrase, rng: np.random.Generator) -> Iterator[Scene]:
    """The scene after one change of all things that the phrase counts, with or without another one as before.

    "Two striped stars" that must not be "two stars" need the third.
    """
    group = [thing for thing in scene.things if phrase.fits(thing)]
    if not 1 < len(group) == phrase.count:
        return
    held = [holder(thing, scene) is not None for thing in group]
    for name, values in {"shape": _shapes(group[0]), **ATTRIBUTES}.items():
        for value in values:
            new = [with_values(thing, {name: value}) for thing in group]
            if all(_lawful(thing, held=inside) for thing, inside in zip(new, held, strict=True)):
                changed = with_things(scene, *zip(group, new, strict=True))
                yield changed
                for cell in scene.free():
                    x, y = place(rng, cell)
                    yield replace(changed, things=(*changed.things, replace(group[0], x=x, y=y)))


def _shapes(thing: Thing) -> tuple[str, ...]:
    """The shapes that a thing may have instead: containers hold their shape among themselves."""
    return CONTAINERS if thing.shape in CONTAINERS else SHAPES


def _lawful(thing: Thing, *, held: bool) -> bool:
    """Whether there may be such a thing: containers are large and plain, and what they hold is small."""
    if thing.shape in CONTAINERS:
        return not held and (thing.size, thing.texture) == ("large", "plain")
    return not held or thing.size == "small"


#: What a phrase may say of a thing.
_ATTRIBUTES = ("shape", *ATTRIBUTES)


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
            # In each other's place; what lies in one cell with them comes along, a container stays.
            for both in _pairs(scene, one, two):
                first, second = both
                held = any(holder(thing, scene) is not None for thing in both)
                small = all(thing.size == "small" and thing.shape not in CONTAINERS for thing in both)
                if first.cell != second.cell and held and small:
                    yield swapped(scene, first, second)
                elif first.cell != second.cell:
                    yield carried(scene, {first.cell: (second.x, second.y), second.cell: (first.x, first.y)})
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
