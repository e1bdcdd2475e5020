"""Captions: what somebody says of a scene, as a meaning first and as English second.

Captions are partial on purpose: they speak of some things and of some of their attributes, as people do.
A caption without a closing clause is true of every scene that shows at least what it says.
"""

from dataclasses import dataclass
from itertools import permutations
from typing import Literal

from counterfoil.errors import InputError
from counterfoil.world.scenes import ATTRIBUTES, Scene, Thing, holds


@dataclass(frozen=True)
class Phrase:
    """One thing as a caption speaks of it; None is what it leaves out.

    >>> Phrase("star", size="small", colour="orange").text
    'a small orange star'
    >>> Phrase(colour="orange").text
    'an orange shape'
    """

    shape: str | None = None
    size: str | None = None
    texture: str | None = None
    colour: str | None = None

    def fits(self, thing: Thing) -> bool:
        """Whether everything said is so."""
        return all(getattr(self, name) in (None, getattr(thing, name)) for name in ("shape", *ATTRIBUTES))

    @property
    def text(self) -> str:
        """The noun phrase with its article."""
        words = [word for name in ATTRIBUTES if (word := getattr(self, name)) is not None]
        words.append(self.shape or "shape")
        return " ".join(["an" if words[0][0] in "aeiou" else "a", *words])


@dataclass(frozen=True)
class Meaning:
    """What a caption claims.

    There are distinct things that fit the `phrases`; where there is a `relation`, it holds from the first to
    the second. `closed` rules out more than is said: "things" that there is nothing besides, "textures"
    that nothing has stripes or dots except what the caption says has.
    """

    phrases: tuple[Phrase, ...]
    relation: str | None = None
    closed: Literal["", "things", "textures"] = ""

    def __post_init__(self) -> None:
        if not self.phrases or (self.relation is not None and len(self.phrases) != 2):
            raise InputError(
                "a caption speaks of at least one thing, and a relation of exactly two",
                where=f"Meaning with relation {self.relation!r}",
                given=f"{len(self.phrases)} phrases",
            )


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
    if meaning.closed == "things" and len(scene.things) != len(meaning.phrases):
        return False
    return any(
        _true_of(meaning, chosen, scene) for chosen in permutations(scene.things, len(meaning.phrases))
    )


def _true_of(meaning: Meaning, chosen: tuple[Thing, ...], scene: Scene) -> bool:
    """Whether the caption is true where its phrases speak of the `chosen` things, in this order."""
    if not all(phrase.fits(thing) for phrase, thing in zip(meaning.phrases, chosen, strict=True)):
        return False
    if meaning.relation is not None and not holds(meaning.relation, chosen[0], chosen[1]):
        return False
    if meaning.closed != "textures":
        return True
    named = [t for phrase, t in zip(meaning.phrases, chosen, strict=True) if phrase.texture is not None]
    return all(thing.texture == "plain" for thing in scene.things if thing not in named)


#: Ways to begin a caption. The first says no more than the thing itself.
OPENINGS = ("", "there is ", "a picture of ")

_CLOSINGS = {"": "", "things": ", and nothing else", "textures": ", with no other stripes or dots"}


def text(meaning: Meaning, *, opening: str = "") -> str:
    """The meaning as one English sentence.

    >>> star, moon = Phrase("star", colour="red"), Phrase("moon", size="large")
    >>> text(Meaning((star, moon), "above"))
    'A red star is above a large moon.'
    >>> text(Meaning((star, moon), "above"), opening="there is ")
    'There is a red star above a large moon.'
    >>> text(Meaning((star, moon, Phrase("heart")), closed="things"), opening="a picture of ")
    'A picture of a red star, a large moon and a heart, and nothing else.'
    """
    spoken = [phrase.text for phrase in meaning.phrases]
    if meaning.relation is not None:
        verb = "" if opening else "is "
        said = f"{spoken[0]} {verb}{meaning.relation} {spoken[1]}"
    else:
        said = " and ".join(part for part in (", ".join(spoken[:-1]), spoken[-1]) if part)
    sentence = f"{opening}{said}{_CLOSINGS[meaning.closed]}."
    return sentence[0].upper() + sentence[1:]
