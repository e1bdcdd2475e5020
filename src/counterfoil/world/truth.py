"""The truth of captions: English read back to its meaning, and which captions are true of which scenes.

A scene has few things, so a set of them is the bits of one small integer. What fits a phrase is then the
`and` of one such set per attribute, and whether phrases can speak of distinct things is Hall's condition:
any few of them have together at least as many things that fit as they speak of.

The grammar of what is read is that of `captions.text`, and a little wider: an article may be "a" or "an",
attributes may come in any order, and nothing depends on upper and lower case.

    caption   := [opening] what [closing] "."
    what      := phrase ["is" | "are"] relation phrase ["; there is also" list] | list
    list      := phrase {"," phrase} ["and" phrase]
    phrase    := ("a" | "an" | numeral) {size | texture | colour} shape
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from itertools import combinations
from typing import Any, Literal, NoReturn

import numpy as np
from jaxtyping import Bool
from numpy import ndarray
from numpy.typing import NDArray

from counterfoil.errors import DataError, InputError
from counterfoil.world import captions
from counterfoil.world.captions import ANY_SHAPE, CLOSINGS, NUMERALS, OPENINGS, Meaning, Phrase, plural
from counterfoil.world.scenes import ATTRIBUTES, CLEAR, CONTAINERS, DIRECTIONS, RELATIONS, SHAPES, Scene

#: Sets of things, one bit each: (scenes,) or (captions, scenes).
Sets = NDArray[np.unsignedinteger[Any]]
Flags = NDArray[np.bool_]

#: Pairs that are decided at a time: what is in hand then stays in the processor's cache.
_BLOCK = 1 << 17


def table(meanings: Sequence[Meaning], scenes: Sequence[Scene]) -> Bool[ndarray, "captions scenes"]:
    """Which meanings are true of which scenes; exact. Captions of one build are decided together.

    Raises `InputError` for a scene of more than 32 things.
    """
    answer = np.zeros((len(meanings), len(scenes)), dtype=np.bool_)
    if answer.size == 0:
        return answer
    columns = _columns(scenes)
    kinds: dict[object, list[int]] = {}
    for row, meaning in enumerate(meanings):
        build = meaning.relation, meaning.closed, tuple(phrase.count for phrase in meaning.phrases)
        kinds.setdefault(build, []).append(row)
    for rows in kinds.values():
        step = max(1, _BLOCK // len(scenes))
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            answer[part] = _decide([meanings[row] for row in part], columns)
    return answer


@dataclass(frozen=True)
class _SceneColumns:
    """Scenes as sets of things.

    `sizes` (scenes,) is how many things there are, `everything` the set of all, `having` the set of those
    with a value; `related` has per relation a row per thing: the set of those it bears the relation to.
    """

    sizes: NDArray[np.int64]
    everything: Sets
    having: Mapping[tuple[str, str], Sets]
    related: Mapping[str, Sets]

    @property
    def bits(self) -> list[Any]:
        """The set of the first thing alone, of the second, ..."""
        kind = self.everything.dtype.type
        return [kind(1 << i) for i in range(int(self.sizes.max()))]


def _columns(scenes: Sequence[Scene]) -> _SceneColumns:
    sizes = np.asarray([len(scene.things) for scene in scenes], dtype=np.int64)
    most = int(sizes.max())
    if most > 32:
        raise InputError("too many things in one scene", given=most, allowed="at most 32")
    kind = np.dtype(np.uint8 if most <= 8 else np.uint16 if most <= 16 else np.uint32)
    present = np.arange(most) < sizes[:, None]
    bits = (1 << np.arange(most, dtype=np.int64)).astype(kind)

    def as_sets(flags: Flags) -> Sets:
        """(..., things) to (...,)"""
        return np.asarray((flags * bits).sum(axis=-1, dtype=kind))

    things = [thing for scene in scenes for thing in scene.things]

    def column(values: list[Any], missing: object) -> NDArray[Any]:
        array = np.asarray(values)
        filled = np.full(present.shape, missing, dtype=array.dtype if array.size else None)
        filled[present] = array
        return filled

    having: dict[tuple[str, str], Sets] = {}
    for name in ("shape", *ATTRIBUTES):
        codes: dict[str, int] = {}
        coded = column([codes.setdefault(getattr(t, name), len(codes)) for t in things], -1)
        having |= {(name, value): as_sets(coded == code) for value, code in codes.items()}
    x, y = (column([getattr(thing, axis) for thing in things], np.nan) for axis in ("x", "y"))
    cell = column([3 * thing.cell[1] + thing.cell[0] for thing in things], -1)
    hollow = column([thing.shape in CONTAINERS for thing in things], False)
    # An absent thing is nowhere, and no distance to it reaches the line.
    related = {
        name: as_sets(
            right * (x[:, :, None] - x[:, None, :]) + down * (y[:, :, None] - y[:, None, :]) >= CLEAR
        ).T
        for name, (right, down) in DIRECTIONS.items()
    }
    together = (cell[:, :, None] == cell[:, None, :]) & present[:, :, None] & present[:, None, :]
    inside = together & ~hollow[:, :, None] & hollow[:, None, :]
    related["inside"] = as_sets(inside).T
    related["around"] = as_sets(inside.swapaxes(1, 2)).T
    return _SceneColumns(sizes, as_sets(present), having, related)


def _decide(meanings: list[Meaning], columns: _SceneColumns) -> Flags:
    """The truth of captions of one build: (captions, scenes)."""
    first = meanings[0]
    counts = [phrase.count for phrase in first.phrases]
    # The things that each phrase fits: (phrases, scenes) for the first of each caption, the second, ...
    nothing = np.zeros_like(columns.everything)
    fits = [np.repeat(columns.everything[None], len(meanings), axis=0) for _ in counts]
    for row, meaning in enumerate(meanings):
        for sets, phrase in zip(fits, meaning.phrases, strict=True):
            for attribute in phrase.said:
                sets[row] &= columns.having.get(attribute, nothing)
    true = np.ones(fits[0].shape, dtype=np.bool_)
    for sets, count in zip(fits, counts, strict=True):
        # "A star" is at least one, a numeral is exact.
        true &= _at_least(sets, count)
        if count > 1:
            true &= ~_at_least(sets, count + 1)
    if first.closed == "things":
        true &= columns.sizes == sum(counts)
    if first.relation is None:
        return true & _apart(fits, counts)
    related = np.zeros_like(true)
    for one, two in _pairs(fits, counts, first.relation, columns):
        rest = [sets & ~(one | two) for sets in fits[2:]]
        sets = (one != 0) & (two != 0)
        related |= sets & _apart(rest, counts[2:]) if rest else sets
    return true & related


def _pairs(
    fits: list[Sets], counts: list[int], relation: str, columns: _SceneColumns
) -> list[tuple[Sets, Sets]]:
    """What the first two phrases may speak of under their relation; empty sets where they may not."""
    pairs = []
    # One of the things that fit the first phrase, or all of them under a numeral.
    for one in [fits[0]] if counts[0] > 1 else [fits[0] & bit for bit in columns.bits]:
        # What each of `one` bears the relation to.
        reach = fits[1].copy()
        for bit, row in zip(columns.bits, columns.related[relation], strict=True):
            reach &= np.where(one & bit, row, ~one.dtype.type(0))
        if counts[1] > 1:
            pairs.append((one, np.where(reach == fits[1], reach, 0).astype(one.dtype)))
        else:
            pairs += [(one, reach & bit) for bit in columns.bits]
    return pairs


def _apart(fits: list[Sets], counts: list[int]) -> Flags:
    """Whether the phrases can speak of distinct things (Hall's condition)."""
    true = np.ones(fits[0].shape, dtype=np.bool_)
    for size in range(1, len(fits) + 1):
        for chosen in combinations(range(len(fits)), size):
            union = np.bitwise_or.reduce([fits[k] for k in chosen])
            true &= _at_least(union, sum(counts[k] for k in chosen))
    return true


def _at_least(sets: Sets, count: int) -> Flags:
    """Whether sets have at least `count` things."""
    for _ in range(count - 1):
        # Clears the lowest bit.
        sets = sets & (sets - (sets != 0).astype(sets.dtype))
    return np.asarray(sets != 0)


_TOKEN = re.compile(r"[^\s,;.]+|[,;.]")
_NOUNS = {noun: noun for noun in (*SHAPES, *CONTAINERS, ANY_SHAPE)}
_PLURALS = {plural(noun): noun for noun in _NOUNS}
_ATTRIBUTE_OF = {value: name for name, values in ATTRIBUTES.items() for value in values}
_COUNTS = {"a": 1, "an": 1} | {word: count for count, word in enumerate(NUMERALS, 1) if count > 1}

Words = tuple[str, ...]


def _words(text: str) -> Words:
    return tuple(_TOKEN.findall(text.lower()))


# The longest first, so that none is taken for the beginning of another.
_OPENINGS = sorted(
    {
        _words(form)
        for opening in OPENINGS
        if opening
        for form in (opening, re.sub(r"\bis $", "are ", opening))
    },
    key=len,
    reverse=True,
)
_CLOSING = _words(CLOSINGS["things"])
_RELATIONS = {_words(relation): relation for relation in RELATIONS}
_ALSO = (_words("; there is also"), _words("; there are also"))

#: Every word that a caption may use.
VOCABULARY = frozenset(
    word
    for words in (
        *_OPENINGS,
        _CLOSING,
        *_RELATIONS,
        *_ALSO,
        _NOUNS,
        _PLURALS,
        _ATTRIBUTE_OF,
        _COUNTS,
        ("is", "are", "and", "."),
    )
    for word in words
)


@lru_cache(maxsize=1 << 16)
def read(text: str) -> Meaning:
    """What the sentence claims: the inverse of `captions.text`, up to the opening.

    Raises `DataError` where the sentence cannot be read, naming the word it stumbled over.

    >>> read("There are two red stars above a moon.").phrases[0]
    Phrase(shape='star', size=None, texture=None, colour='red', count=2)
    >>> read("A picture of a ring around a heart.").relation
    'around'
    >>> try:
    ...     read("A rad star.")
    ... except DataError as error:
    ...     print(error)
    caption 'A rad star.': no caption says this word; given: rad; did you mean 'red'?
    """
    return _Reader(text).caption()


def understood(text: str) -> Meaning | None:
    """What the sentence claims; None where it cannot be read.

    >>> understood("A cat.") is None
    True
    """
    try:
        return read(text)
    except DataError:
        return None


def matches(caption: Meaning | str, scene: Scene) -> bool:
    """Whether the caption, or the sentence, is true of the scene: `captions.matches` for both.

    Raises `DataError` for a sentence that cannot be read.
    """
    return captions.matches(_meaning(caption), scene)


def positives(captions: Sequence[Meaning | str], scenes: Sequence[Scene]) -> Bool[ndarray, "captions scenes"]:
    """Which captions are true of which scenes: what `matches` says of each pair, for all pairs at once.

    Raises `DataError` for a sentence that cannot be read.

    >>> from counterfoil.world.scenes import Thing
    >>> star = Thing("star", "small", "plain", "red", x=0.2, y=0.5)
    >>> positives(["A star.", "Two stars."], [Scene((star,))]).tolist()
    [[True], [False]]
    """
    return table([_meaning(caption) for caption in captions], scenes)


def _meaning(caption: Meaning | str) -> Meaning:
    return read(caption) if isinstance(caption, str) else caption


#: The words that say something of a thing that can be seen where it lies: the attribute and its value.
SAYS = {
    **{word: ("shape", shape) for shape in (*SHAPES, *CONTAINERS) for word in (shape, plural(shape))},
    **{value: (name, value) for name, values in ATTRIBUTES.items() for value in values},
}


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


class _Reader:
    """The words of one sentence and how far it has been read."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.words = _words(text)
        self.at = 0

    def caption(self) -> Meaning:
        for word in self.words:
            if word not in VOCABULARY:
                near = get_close_matches(word, sorted(VOCABULARY), n=1, cutoff=0.6)
                raise DataError(
                    "no caption says this word",
                    where=f"caption {self.text!r}",
                    given=word,
                    hint=f"did you mean '{near[0]}'?" if near else None,
                )
        opened = any(self._take(opening) for opening in _OPENINGS)
        phrases = [self._phrase()]
        verb = not opened and (self._take(("is",)) or self._take(("are",)))
        relation = next((name for words, name in _RELATIONS.items() if self._take(words)), None)
        if verb and relation is None:
            self._stop(f"one of {', '.join(RELATIONS)}")
        if relation is not None:
            phrases.append(self._phrase())
            if any(self._take(also) for also in _ALSO):
                phrases += self._list(self._phrase())
        else:
            phrases = self._list(phrases[0])
        closed: Literal["", "things"] = "things" if self._take(_CLOSING) else ""
        if not self._take((".",)) or self.at < len(self.words):
            self._stop("a full stop at the end")
        return Meaning(tuple(phrases), relation, closed)

    def _list(self, first: Phrase) -> list[Phrase]:
        """The rest of a list that begins with `first`."""
        phrases = [first]
        # ", and" begins the closing.
        while self._peek() == "," and self._peek(1) in _COUNTS:
            self.at += 1
            phrases.append(self._phrase())
        if self._take(("and",)):
            phrases.append(self._phrase())
        elif len(phrases) > 1:
            self._stop("'and' before the last of several things")
        return phrases

    def _phrase(self) -> Phrase:
        count = _COUNTS.get(self._peek())
        if count is None:
            self._stop("'a', 'an' or a number")
        self.at += 1
        attributes: dict[str, str] = {}
        while (name := _ATTRIBUTE_OF.get(self._peek())) is not None:
            if name in attributes:
                self._stop(f"one {name} for a thing")
            attributes[name] = self._peek()
            self.at += 1
        noun = (_NOUNS if count == 1 else _PLURALS).get(self._peek())
        if noun is None:
            self._stop("the name of a shape" if count == 1 else "the name of a shape, in the plural")
        self.at += 1
        if noun != ANY_SHAPE:
            attributes["shape"] = noun
        return Phrase(**attributes, count=count)

    def _peek(self, ahead: int = 0) -> str:
        """The next word, "" at the end."""
        return self.words[self.at + ahead] if self.at + ahead < len(self.words) else ""

    def _take(self, words: Words) -> bool:
        """Reads on over `words` where they come next."""
        if self.words[self.at : self.at + len(words)] != words:
            return False
        self.at += len(words)
        return True

    def _stop(self, expected: str) -> NoReturn:
        before = " ".join(self.words[: self.at])
        raise DataError(
            f"expected {expected}" + (f" after '{before}'" if before else ""),
            where=f"caption {self.text!r}",
            given=self._peek() or "the end",
        )
