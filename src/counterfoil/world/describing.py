"""Loose, true captions of scenes."""

from collections.abc import Collection, Iterable
from dataclasses import replace

import numpy as np

from counterfoil.world.captions import NUMERALS, Meaning, Phrase
from counterfoil.world.scenes import CONTAINERS, RELATIONS, Scene, Thing, holds

#: How often a caption mentions what it need not.
_MENTION = (("size", 0.4), ("texture", 0.4), ("colour", 0.85))
#: How often things that can be counted are, what lies clearly is related, and everything is said to be all.
_COUNTED, _RELATED, _CLOSED = 0.6, 0.5, 0.1
#: The most phrases of a loose caption.
_PHRASES = 3


def describe(scene: Scene, rng: np.random.Generator) -> Meaning:
    """One loose caption of the scene: one to three phrases, at times with a relation or a numeral.

    It is true of the scene, and as a rule of many others.

    >>> from counterfoil.world.captions import matches
    >>> from counterfoil.world.scenes import sample_scene
    >>> rng = np.random.default_rng(1)
    >>> scene = sample_scene(rng)
    >>> matches(describe(scene, rng), scene)
    True
    """
    wanted = 1 + int(rng.random() * min(_PHRASES, len(scene.things)))
    order = [scene.things[i] for i in rng.permutation(len(scene.things))]
    spoken = speak(order, scene, rng, most=wanted)
    phrases = tuple(phrase for phrase, _ in spoken)
    if len(phrases) > 1 and rng.random() < _RELATED:
        relation = relation_of(spoken[0][1], spoken[1][1], rng)
        if relation is not None:
            return Meaning(phrases, relation)
    everything = sum(phrase.count for phrase in phrases) == len(scene.things)
    return Meaning(phrases, closed="things" if everything and rng.random() < _CLOSED else "")


def speak(
    things: Iterable[Thing], scene: Scene, rng: np.random.Generator, *, most: int | None = None
) -> list[tuple[Phrase, tuple[Thing, ...]]]:
    """Phrases for `things`, one after the other, and the things of the scene each speaks of.

    Things that one phrase fits may be counted in one, where none of them has been spoken of. No phrase
    comes twice: what could only be said again ("a star and a star") is left out.
    """
    spoken: list[tuple[Phrase, tuple[Thing, ...]]] = []
    done: list[Thing] = []
    for thing in things:
        if thing in done:
            continue
        phrase, group = counted(mention(thing, rng), thing, scene, rng, but=done)
        if any(phrase == said for said, _ in spoken):
            continue
        spoken.append((phrase, group))
        done += group
        if len(spoken) == most:
            break
    return spoken


def counted(
    phrase: Phrase, thing: Thing, scene: Scene, rng: np.random.Generator, *, but: Collection[Thing] = ()
) -> tuple[Phrase, tuple[Thing, ...]]:
    """The phrase, perhaps with a numeral, and what it then speaks of; never any of `but`."""
    group = tuple(other for other in scene.things if phrase.fits(other))
    countable = 1 < len(group) <= len(NUMERALS) and not any(other in but for other in group)
    if countable and rng.random() < _COUNTED:
        return replace(phrase, count=len(group)), group
    return phrase, (thing,)


def relation_of(first: tuple[Thing, ...], second: tuple[Thing, ...], rng: np.random.Generator) -> str | None:
    """A relation from each of the first to each of the second; one of two where two hold, None for none."""
    found = [name for name in RELATIONS if all(holds(name, a, b) for a in first for b in second)]
    return found[int(rng.random() * len(found))] if found else None


def mention(thing: Thing, rng: np.random.Generator, *must: str) -> Phrase:
    """The thing as a caption may speak of it: what it must say, and some of the rest."""
    said = {name: getattr(thing, name) for name in must}
    hollow = thing.shape in CONTAINERS
    for name, often in _MENTION:
        # "A plain star" is said only where it matters, and all containers are large and plain.
        known = (hollow and name != "colour") or (name == "texture" and thing.texture == "plain")
        if rng.random() < often and not known:
            said[name] = getattr(thing, name)
    # Now and then only "a blue shape", where that says anything.
    if not said or hollow or rng.random() < 0.9:
        said["shape"] = thing.shape
    return Phrase(**said)
