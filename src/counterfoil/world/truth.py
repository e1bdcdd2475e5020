"""The truth of captions: English read back to its meaning, and which captions are true of which scenes.

What is read is the grammar of `captions.text`, and a little wider: "a" or "an", attributes in any order, any
case.

    caption   := [opening] what [closing] "."
    what      := phrase ["is" | "are"] relation phrase ["; there is also" list] | list
    list      := phrase {"," phrase} ["and" phrase]
    phrase    := ("a" | "an" | numeral) {size | texture | colour} shape
"""

import re
from collections.abc import Sequence
from difflib import get_close_matches
from functools import cache, lru_cache
from itertools import chain
from typing import Literal, NoReturn

import numpy as np
from jaxtyping import Bool
from numpy import ndarray
from numpy.typing import NDArray

from counterfoil.errors import DataError
from counterfoil.world import captions
from counterfoil.world.captions import ANY_SHAPE, CLOSINGS, NUMERALS, OPENINGS, Meaning, Phrase, plural
from counterfoil.world.scenes import ATTRIBUTES, CONTAINERS, RELATIONS, SHAPES, Scene


def table(meanings: Sequence[Meaning], scenes: Sequence[Scene]) -> Bool[ndarray, "captions scenes"]:
    """Which meanings are true of which scenes: `captions.matches` of each pair, for all scenes at once."""
    sizes = np.asarray([len(scene.things) for scene in scenes], dtype=np.int64)
    things = [thing for scene in scenes for thing in scene.things]
    scene_of = np.repeat(np.arange(len(scenes)), sizes)
    values = {name: np.asarray([getattr(t, name) for t in things], str) for name in ("shape", *ATTRIBUTES)}

    @cache
    def fitting(attributes: tuple[tuple[str, str], ...]) -> NDArray[np.int64]:
        fits = np.ones(len(things), dtype=bool)
        for name, value in attributes:
            fits &= values[name] == value
        return np.bincount(scene_of[fits], minlength=len(scenes))

    answer = np.ones((len(meanings), len(scenes)), dtype=np.bool_)
    for row, meaning in zip(answer, meanings, strict=True):
        # "A star" is at least one, a numeral is exact.
        for phrase in meaning.phrases:
            count = fitting(phrase.attributes)
            row &= count == phrase.count if phrase.count > 1 else count > 0
        if meaning.closed == "things":
            row &= sizes == sum(phrase.count for phrase in meaning.phrases)
        if len(meaning.phrases) > 1:
            positions = np.flatnonzero(row)
            row[positions] = [captions.matches(meaning, scenes[number]) for number in positions.tolist()]
    return answer


_TOKEN = re.compile(r"[^\s,;.]+|[,;.]")
_NOUNS = {noun: noun for noun in (*SHAPES, *CONTAINERS, ANY_SHAPE)}
_PLURALS = {plural(noun): noun for noun in _NOUNS}
_ATTRIBUTE_OF = {value: name for name, values in ATTRIBUTES.items() for value in values}
_COUNTS = {"a": 1, "an": 1} | {word: count for count, word in enumerate(NUMERALS, 1) if count > 1}

Words = tuple[str, ...]


def _words(text: str) -> Words:
    return tuple(_TOKEN.findall(text.lower()))


_FORMS = {_words(form) for start in OPENINGS[1:] for form in (start, re.sub(r"\bis $", "are ", start))}
# The longest first, so that none is taken for the beginning of another.
_OPENINGS = sorted(_FORMS, key=len, reverse=True)
_CLOSING = _words(CLOSINGS["things"])
_RELATIONS = {_words(relation): relation for relation in RELATIONS}
_ALSO = (_words("; there is also"), _words("; there are also"))

#: Every word that a caption may use.
VOCABULARY = frozenset(
    chain(*_OPENINGS, _CLOSING, *_RELATIONS, *_ALSO, _NOUNS, _PLURALS, _ATTRIBUTE_OF, _COUNTS)
) | {"is", "are", "and", "."}


@lru_cache(maxsize=1 << 16)
def read(text: str) -> Meaning:
    """What the sentence claims: the inverse of `captions.text`, up to the opening.

    Raises `DataError` where the sentence cannot be read, naming the word it stumbled over.

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
    """As `read`; None where it cannot be read."""
    try:
        return read(text)
    except DataError:
        return None


def matches(caption: Meaning | str, scene: Scene) -> bool:
    """Whether the caption, or the sentence, is true of the scene; `DataError` where it cannot be read."""
    return captions.matches(_meaning(caption), scene)


def positives(captions: Sequence[Meaning | str], scenes: Sequence[Scene]) -> Bool[ndarray, "captions scenes"]:
    """Which captions are true of which scenes: what `matches` says of each pair, for all pairs at once."""
    return table([_meaning(caption) for caption in captions], scenes)


def _meaning(caption: Meaning | str) -> Meaning:
    return read(caption) if isinstance(caption, str) else caption


class _Reader:
    """The words of one sentence and how far it has been read."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.words = _words(text)
        self.position = 0

    def caption(self) -> Meaning:
        for word in self.words:
            if word not in VOCABULARY:
                near = get_close_matches(word, sorted(VOCABULARY), n=1, cutoff=0.6)
                where, hint = f"caption {self.text!r}", f"did you mean '{near[0]}'?" if near else None
                raise DataError("no caption says this word", where=where, given=word, hint=hint)
        opened = any(self._take(opening) for opening in _OPENINGS)
        first = self._phrase()
        verb = not opened and (self._take(("is",)) or self._take(("are",)))
        relation = next((name for words, name in _RELATIONS.items() if self._take(words)), None)
        if relation is not None:
            phrases = [first, self._phrase()]
            if any(self._take(also) for also in _ALSO):
                phrases += self._list(self._phrase())
        elif verb:
            self._stop(f"one of {', '.join(RELATIONS)}")
        else:
            phrases = self._list(first)
        closed: Literal["", "things"] = "things" if self._take(_CLOSING) else ""
        if not self._take((".",)) or self.position < len(self.words):
            self._stop("a full stop at the end")
        return Meaning(tuple(phrases), relation, closed)

    def _list(self, first: Phrase) -> list[Phrase]:
        """The rest of a list that begins with `first`."""
        phrases = [first]
        # ", and" begins the closing.
        while self._peek() == "," and self._peek(1) in _COUNTS:
            self.position += 1
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
        self.position += 1
        attributes: dict[str, str] = {}
        while (name := _ATTRIBUTE_OF.get(self._peek())) is not None:
            if name in attributes:
                self._stop(f"one {name} for a thing")
            attributes[name] = self._peek()
            self.position += 1
        noun = (_NOUNS if count == 1 else _PLURALS).get(self._peek())
        if noun is None:
            self._stop("the name of a shape" if count == 1 else "the name of a shape, in the plural")
        self.position += 1
        if noun != ANY_SHAPE:
            attributes["shape"] = noun
        return Phrase(**attributes, count=count)

    def _peek(self, ahead: int = 0) -> str:
        """The next word, "" at the end."""
        return self.words[self.position + ahead] if self.position + ahead < len(self.words) else ""

    def _take(self, words: Words) -> bool:
        if self.words[self.position : self.position + len(words)] != words:
            return False
        self.position += len(words)
        return True

    def _stop(self, expected: str) -> NoReturn:
        before = " ".join(self.words[: self.position])
        what = f"expected {expected}" + (f" after '{before}'" if before else "")
        raise DataError(what, where=f"caption {self.text!r}", given=self._peek() or "the end")
