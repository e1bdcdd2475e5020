"""WordNet's files, version 2 or 3: senses of words, what lies above them, antonyms.

A folder has `index.noun`, `data.noun`, `index.adj` and `data.adj` (Debian's package wordnet-base has them in
/usr/share/wordnet; nltk's corpus "wordnet" is such a folder). An entry of a data file is found by its offset
in bytes. Words are in the order in which WordNet lists them, so that all answers are the same everywhere.

Source: the format is described in WordNet's manual, wndb(5WN).
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from counterfoil.errors import DataError

_FILES = ("index.noun", "data.noun", "index.adj", "data.adj")
#: Lexicographers' files of what pictures show: animals, artefacts, bodies, food, objects, people, plants.
_SEEN = frozenset({5, 6, 8, 13, 15, 17, 18, 20})
#: Senses of a word that are looked at: the most frequent ones.
_SENSES = 3


@dataclass(frozen=True, slots=True)
class Sense:
    """An entry: words of one meaning, their file, and pointers (symbol, offset, source, target)."""

    words: tuple[str, ...]
    lexicon: int
    pointers: tuple[tuple[str, int, int, int], ...]


@dataclass(frozen=True, eq=False)
class WordNet:
    """The nouns and adjectives of WordNet in a folder."""

    folder: Path
    _senses: dict[tuple[str, int], Sense] = field(default_factory=dict, repr=False)
    _above: dict[str, frozenset[int]] = field(default_factory=dict, repr=False)

    @classmethod
    def loaded(cls, folder: Path | str) -> "WordNet":
        """WordNet in a folder; raises `DataError` where one of its files is missing or of another format."""
        wordnet = cls(Path(folder))
        for name in _FILES:
            if not (wordnet.folder / name).is_file():
                raise DataError(
                    "no WordNet in the folder",
                    where=folder,
                    given=f"no {name}",
                    hint="Debian's package wordnet-base has it in /usr/share/wordnet",
                )
        if not wordnet._nouns or not wordnet._adjectives:
            raise DataError("not WordNet's format", where=wordnet.folder / "index.noun")
        return wordnet

    @cached_property
    def _nouns(self) -> dict[str, tuple[int, ...]]:
        return self._index("noun")

    @cached_property
    def _adjectives(self) -> dict[str, tuple[int, ...]]:
        return self._index("adj")

    @cached_property
    def _data(self) -> dict[str, bytes]:
        return {part: (self.folder / f"data.{part}").read_bytes() for part in ("noun", "adj")}

    def _index(self, part: str) -> dict[str, tuple[int, ...]]:
        """Of every word the offsets of its senses, the most frequent first."""
        senses_of = {}
        where = self.folder / f"index.{part}"
        for line in where.read_text("latin-1").splitlines():
            if line.startswith(" "):
                continue
            cells = line.split()
            try:
                senses, pointers = int(cells[2]), int(cells[3])
                offsets = tuple(int(cell) for cell in cells[6 + pointers : 6 + pointers + senses])
            except (ValueError, IndexError):
                raise DataError("not WordNet's format", where=where, given=line[:40]) from None
            senses_of[cells[0].replace("_", " ")] = offsets
        return senses_of

    def _sense(self, part: str, offset: int) -> Sense:
        key = part, offset
        if key not in self._senses:
            data = self._data[part]
            line = data[offset : data.find(b"\n", offset)].decode("latin-1").split(" | ")[0].split()
            try:
                count = int(line[3], 16)
                words = tuple(line[4 + 2 * k].partition("(")[0].replace("_", " ") for k in range(count))
                at = 4 + 2 * count
                pointers = tuple(
                    (
                        line[at + 1 + 4 * k],
                        int(line[at + 2 + 4 * k]),
                        int(line[at + 4 + 4 * k][:2], 16),
                        int(line[at + 4 + 4 * k][2:], 16),
                    )
                    for k in range(int(line[at]))
                )
                self._senses[key] = Sense(words, int(line[1]), pointers)
            except (ValueError, IndexError):
                raise DataError(
                    "not WordNet's format", where=self.folder / f"data.{part}", given=f"offset {offset}"
                ) from None
        return self._senses[key]

    def same(self, one: str, two: str) -> bool:
        """Whether a frequent sense of one noun is a sense of the other, or lies above or below one.

        The noun "artifact" is above "table"; a thing is no alternative to what it is a kind of.
        """
        first, second = self._nouns.get(one, ())[:_SENSES], self._nouns.get(two, ())[:_SENSES]
        return not (self.above(one).isdisjoint(second) and self.above(two).isdisjoint(first))

    def above(self, noun: str) -> frozenset[int]:
        """The offsets of a noun's frequent senses and of all that lies above them."""
        if noun not in self._above:
            ancestors: set[int] = set()
            waiting = list(self._nouns.get(noun, ())[:_SENSES])
            while waiting:
                offset = waiting.pop()
                if offset not in ancestors:
                    ancestors.add(offset)
                    waiting += [p[1] for p in self._sense("noun", offset).pointers if p[0] in ("@", "@i")]
            self._above[noun] = frozenset(ancestors)
        return self._above[noun]

    def sisters(self, noun: str, known: Collection[str]) -> tuple[str, ...]:
        """The nouns below the same meaning as the noun's first sense that are `known`, in WordNet's order.

        Nothing where the first sense is no thing that pictures show. What is the same as the noun, above or
        below it is left out. Where nothing lies beside it, what lies below the next meaning above is taken.
        """
        senses = self._nouns.get(noun, ())
        if not senses or self._sense("noun", senses[0]).lexicon not in _SEEN:
            return ()
        at = senses[0]
        for _ in range(2):
            above = [p[1] for p in self._sense("noun", at).pointers if p[0] == "@"]
            if not above:
                return ()
            at = above[0]
            nouns = []
            for pointer in self._sense("noun", at).pointers:
                if pointer[0] != "~":
                    continue
                for word in self._sense("noun", pointer[1]).words:
                    first = self._nouns.get(word, (0,))[0]
                    if word in known and first == pointer[1] and not self.same(noun, word):
                        nouns.append(word)
            if nouns:
                return tuple(dict.fromkeys(nouns))
        return ()

    def antonyms(self, adjective: str) -> tuple[str, ...]:
        """The antonyms of an adjective's most frequent sense, else those of adjectives similar to it."""
        near: list[str] = []
        for offset in self._adjectives.get(adjective, ())[:1]:
            sense = self._sense("adj", offset)
            direct = self._opposed(sense, adjective)
            if direct:
                return tuple(dict.fromkeys(direct))
            for symbol, other, _, _ in sense.pointers:
                if symbol == "&":
                    near += self._opposed(self._sense("adj", other), None)
        return tuple(dict.fromkeys(near))

    def _opposed(self, sense: Sense, word: str | None) -> list[str]:
        antonyms = []
        for symbol, other, source, target in sense.pointers:
            if symbol == "!" and (word is None or sense.words[source - 1].lower() == word):
                antonyms.append(self._sense("adj", other).words[target - 1])
        return antonyms
