"""Captions of scenes: a meaning first, English second; strict ones and loose ones.

Captions are partial on purpose, as people's are. "A star" is at least one star, "two stars" are exactly two.
But for numerals and closing clauses a caption is true of every scene that shows at least what it says.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from counterfoil.errors import InputError
from counterfoil.world.scenes import ATTRIBUTES, RELATIONS, Scene, Thing, holds, one_of

#: How many things one phrase may speak of, as English says it.
NUMERALS = ("one", "two", "three", "four")
#: The word for a thing whose shape is left out.
ANY_SHAPE = "shape"


@dataclass(frozen=True)
class Phrase:
    """One thing as a caption speaks of it, or `count` of a kind; None is what it leaves out.

    >>> Phrase("star", size="small", colour="orange").text
    'a small orange star'
    >>> Phrase(colour="orange").text
    'an orange shape'
    >>> Phrase("box", colour="red", count=2).text
    'two red boxes'
    """

    shape: str | None = None
    size: str | None = None
    texture: str | None = None
    colour: str | None = None
    count: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.count <= len(NUMERALS):
            raise InputError(
                "a phrase speaks of one to four things", given=self.count, allowed=f"1 to {len(NUMERALS)}"
            )

    @property
    def attributes(self) -> tuple[tuple[str, str], ...]:
        """The attributes that the phrase mentions, as (attribute, value)."""
        pairs = ((name, getattr(self, name)) for name in ("shape", *ATTRIBUTES))
        return tuple((name, value) for name, value in pairs if value is not None)

    def fits(self, thing: Thing) -> bool:
        """Whether everything the phrase says is true of this one thing."""
        # Written out: this is the innermost test.
        return (
            (self.shape is None or self.shape == thing.shape)
            and (self.colour is None or self.colour == thing.colour)
            and (self.size is None or self.size == thing.size)
            and (self.texture is None or self.texture == thing.texture)
        )

    @property
    def text(self) -> str:
        words = [word for name in ATTRIBUTES if (word := getattr(self, name)) is not None]
        noun = self.shape or ANY_SHAPE
        words.append(noun if self.count == 1 else plural(noun))
        first = NUMERALS[self.count - 1] if self.count > 1 else "an" if words[0][0] in "aeiou" else "a"
        return " ".join([first, *words])


@dataclass(frozen=True)
class Meaning:
    """What a caption claims.

    There are distinct things that fit the `phrases`: at least one for "a star", exactly two for "two stars".
    A `relation` holds from the first phrase to the second, from each to each. Where it is `closed`, there is
    nothing besides.
    """

    phrases: tuple[Phrase, ...]
    relation: str | None = None
    closed: Literal["", "things"] = ""

    def __post_init__(self) -> None:
        if not self.phrases or (self.relation is not None and len(self.phrases) < 2):
            what = "a caption speaks of at least one thing, and a relation of at least two"
            raise InputError(what, given=f"{len(self.phrases)} phrases")
        if self.relation is not None and self.relation not in RELATIONS:
            raise InputError("unknown relation", given=self.relation, allowed=RELATIONS)


def plural(noun: str) -> str:
    return noun + ("es" if noun.endswith("x") else "s")


def matches(meaning: Meaning, scene: Scene) -> bool:
    """Whether the caption is true of the scene. Exact: there is no third answer.

    >>> left = Thing("star", "small", "plain", "red", x=0.2, y=0.5)
    >>> scene = Scene((left, Thing("moon", "large", "plain", "blue", x=0.8, y=0.5)))
    >>> star, moon = Phrase("star", colour="red"), Phrase("moon")
    >>> [matches(Meaning(pair, "to the left of"), scene) for pair in ((star, moon), (moon, star))]
    [True, False]
    >>> [matches(Meaning((star,), closed=closed), scene) for closed in ("", "things")]
    [True, False]
    """
    phrases, things = meaning.phrases, scene.things
    if meaning.closed == "things" and len(things) != sum([phrase.count for phrase in phrases]):
        return False
    fitting: list[list[_Chosen]] = []
    for phrase in phrases:
        fits = [i for i, thing in enumerate(things) if phrase.fits(thing)]
        if not fits or (phrase.count > 1 and len(fits) != phrase.count):
            return False
        fitting.append([tuple(fits)] if phrase.count > 1 else [(i,) for i in fits])
    if len(fitting) == 1:
        return True
    # Whether the relation, if any, holds for one way to point at things.
    relation = meaning.relation
    return any(
        relation is None or all(holds(relation, things[i], things[j]) for i in chosen[0] for j in chosen[1])
        for chosen in _assignments(fitting)
    )


#: The things that a phrase speaks of, by their places in the scene.
_Chosen = tuple[int, ...]


def _assignments(
    fitting: list[list[_Chosen]], taken: tuple[_Chosen, ...] = ()
) -> Iterator[tuple[_Chosen, ...]]:
    """Every way to point at distinct things, a phrase after the other."""
    if len(taken) == len(fitting):
        yield taken
        return
    for chosen in fitting[len(taken)]:
        if not any(i in other for other in taken for i in chosen):
            yield from _assignments(fitting, (*taken, chosen))


#: Ways to begin a caption. The first says no more than the thing itself.
OPENINGS = ("", "there is ", "a picture of ", "here is ", "we see ", "this picture shows ", "an image of ")

CLOSINGS = {"": "", "things": ", and nothing else"}


def text(meaning: Meaning, *, opening: str = "") -> str:
    """The meaning as one English sentence.

    >>> star, moon = Phrase("star", colour="red"), Phrase("moon", size="large")
    >>> text(Meaning((star, moon), "above"), opening="there is ")
    'There is a red star above a large moon.'
    >>> text(Meaning((star, moon, Phrase("heart")), closed="things"), opening="a picture of ")
    'A picture of a red star, a large moon and a heart, and nothing else.'
    >>> text(Meaning((star, Phrase("ring"), Phrase("moon", count=2)), "inside"))
    'A red star is inside a ring; there are also two moons.'
    """
    many = meaning.phrases[0].count > 1
    if many and opening.endswith(" is "):
        opening = opening.removesuffix("is ") + "are "
    claim = _listed(meaning.phrases)
    if meaning.relation is not None:
        first, second, *rest = meaning.phrases
        verb = "" if opening else "are " if many else "is "
        claim = f"{first.text} {verb}{meaning.relation} {second.text}"
        if rest:
            claim += f"; there {'are' if rest[0].count > 1 else 'is'} also {_listed(rest)}"
    sentence = f"{opening}{claim}{CLOSINGS[meaning.closed]}."
    return sentence[0].upper() + sentence[1:]


def _listed(phrases: Sequence[Phrase]) -> str:
    spoken = [phrase.text for phrase in phrases]
    return " and ".join(part for part in (", ".join(spoken[:-1]), spoken[-1]) if part)


#: How often a caption mentions what it need not.
_MENTION = (("size", 0.4), ("texture", 0.4), ("colour", 0.85))
#: How often things that can be counted are, what lies clearly is related, and everything is said to be all.
_COUNTED, _RELATED, _CLOSED = 0.6, 0.5, 0.1
#: The most phrases of a loose caption.
_PHRASES = 3


def describe(scene: Scene, rng: np.random.Generator) -> Meaning:
    """One loose caption of the scene: one to three phrases, at times with a relation or a numeral.

    It is true of the scene, and as a rule of many others.
    """
    wanted = 1 + int(rng.random() * min(_PHRASES, len(scene.things)))
    order = [scene.things[i] for i in rng.permutation(len(scene.things))]
    spoken = speak(order, scene, rng, most=wanted)
    phrases = tuple(phrase for phrase, _ in spoken)
    if len(phrases) > 1 and rng.random() < _RELATED:
        (_, first), (_, second), *_ = spoken
        # From each of the first to each of the second; one of two where two hold.
        relations = [name for name in RELATIONS if all(holds(name, a, b) for a in first for b in second)]
        if relations:
            return Meaning(phrases, one_of(relations, rng))
    everything = sum(phrase.count for phrase in phrases) == len(scene.things)
    return Meaning(phrases, closed="things" if everything and rng.random() < _CLOSED else "")


def speak(
    things: Iterable[Thing], scene: Scene, rng: np.random.Generator, *, most: int | None = None
) -> list[tuple[Phrase, tuple[Thing, ...]]]:
    """Phrases for `things`, and the things that each speaks of; no phrase comes twice."""
    spoken: list[tuple[Phrase, tuple[Thing, ...]]] = []
    done: list[Thing] = []
    for thing in things:
        if thing in done:
            continue
        phrase, group = counted(mention(thing, rng), thing, scene, rng, but=done)
        if any(phrase == earlier for earlier, _ in spoken):
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


def mention(thing: Thing, rng: np.random.Generator, *must: str) -> Phrase:
    """The thing as a caption may speak of it: what it must say, and some of the rest."""
    attributes = {name: getattr(thing, name) for name in must}
    hollow = thing.is_container
    for name, often in _MENTION:
        # "A plain star" is said only where it matters, and all containers are large and plain.
        implied = (hollow and name != "colour") or (name == "texture" and thing.texture == "plain")
        if rng.random() < often and not implied:
            attributes[name] = getattr(thing, name)
    # Now and then only "a blue shape", where that says anything.
    if not attributes or hollow or rng.random() < 0.9:
        attributes["shape"] = thing.shape
    return Phrase(**attributes)
