"""Replacements for a word: from the lists, then from WordNet, then from the user's own captions.

WordNet's files, version 2 or 3: senses of words, what lies above them, antonyms.

A folder has `index.noun`, `data.noun`, `index.adj` and `data.adj` (Debian's package wordnet-base has them in
/usr/share/wordnet; nltk's corpus "wordnet" is such a folder). An entry of a data file is found by its offset
in bytes. Words are in the order in which WordNet lists them, so that all answers are the same everywhere.

Source: the format is described in WordNet's manual, wndb(5WN).
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from counterfoil.build.negation.parse import Parse
from counterfoil.build.negation.word_lists import WordLists, words
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
        return [
            self._sense("adj", other).words[target - 1]
            for symbol, other, source, target in sense.pointers
            if symbol == "!" and (word is None or sense.words[source - 1].lower() == word)
        ]


#: Groups of places, beside which nothing is put by "and".
_PLACES = frozenset({
    "streets", "fields", "hills", "waters", "towns", "rooms", "buildings", "shops", "parks", "courts",
    "skies", "greenery", "weather", "events", "clouds", "games", "counters", "persons", "crowds",
    "hair", "heads", "body", "surroundings",
})  # fmt: skip
_PEOPLE = frozenset(["men", "children", "babies", "persons", "crowds", "roles", "athletes", "players"])
#: What may lie or stand in most pictures.
_EXTRAS = (
    "bicycle", "dog", "cat", "ladder", "bucket", "umbrella", "balloon", "chair", "backpack", "ball", "flag",
    "potted plant", "suitcase", "basket", "guitar", "candle", "hat", "cardboard box", "bottle", "small table",
)  # fmt: skip
#: Groups whose nouns say before others what kind they are.
_KINDS = frozenset(["games", "rooms", "fruits", "vegetables", "meats", "animals", "bird_kinds"])
_SIZES = frozenset({
    "large", "small", "big", "little", "tiny", "huge", "giant", "tall", "short", "long", "wide",
    "narrow", "enormous",
})  # fmt: skip
_AGES = frozenset(
    ["young", "old", "elderly", "new", "older", "younger", "antique", "vintage", "modern", "adult", "baby"]
)
#: Attributes of things about which nothing is known.
_ANY = ("large", "small", "old")


@dataclass(frozen=True)
class Nouns:
    """What may replace a noun, the group it is of ("" where no list has it), and where that is from."""

    options: tuple[str, ...] = ()
    group: str = ""
    mass: bool = False
    tier: int = 0


@dataclass(frozen=True)
class Usage:
    """How captions use nouns: for each the words before its phrases, and how often it comes."""

    nouns: tuple[str, ...] = ()
    #: Unit rows over the words before and after a phrase.
    contexts: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))

    @classmethod
    def of(cls, parses: Iterable[Parse], *, least: int = 3, most: int = 2000) -> "Usage":
        """The use of nouns that come `least` times or more, of the `most` most frequent."""
        counts: Counter[str] = Counter()
        around: dict[str, Counter[str]] = {}
        for parse in parses:
            for phrase in parse.phrases:
                head = parse.tokens[phrase.stop - 1]
                if head.tag not in ("NN", "NNS") or phrase.stop - phrase.noun > 1 or not head.lemma.isalpha():
                    continue
                counts[head.lemma] += 1
                before = parse.tokens[phrase.start - 1].lemma if phrase.start else "^"
                after = parse.tokens[phrase.stop].lemma if phrase.stop < len(parse.tokens) else "$"
                verb = parse.tokens[phrase.start - 2].lemma if phrase.start > 1 else "^"
                context = [f"<{before}", f">{after}", f"<<{verb} {before}", "s" if phrase.plural else "1"]
                around.setdefault(head.lemma, Counter()).update(context)
        nouns = sorted((n for n, c in counts.items() if c >= least), key=lambda n: (-counts[n], n))[:most]
        names = sorted({name for noun in nouns for name in around[noun]})
        place = {name: at for at, name in enumerate(names)}
        table = np.zeros((len(nouns), len(names)))
        for row, noun in enumerate(nouns):
            for name, count in around[noun].items():
                table[row, place[name]] = np.log1p(count)
        norms = np.linalg.norm(table, axis=1, keepdims=True)
        return cls(tuple(nouns), table / np.where(norms, norms, 1))

    def like(self, noun: str, count: int = 12) -> tuple[str, ...]:
        """The nouns that stand in the most similar places, the most similar first; none for a rare noun."""
        if noun not in self.nouns:
            return ()
        row = self.nouns.index(noun)
        near = self.contexts @ self.contexts[row]
        order = np.lexsort((np.arange(len(near)), -near))
        return tuple(self.nouns[at] for at in order if at != row and near[at] > 0.3)[:count]


@dataclass(frozen=True, eq=False)
class Lexicon:
    """Where replacements come from; without WordNet and usage, from the lists alone."""

    wordnet: WordNet | None = None
    usage: Usage = field(default_factory=Usage)
    _known: dict[str, Nouns] = field(default_factory=dict, repr=False)

    extras = _EXTRAS

    @property
    def words(self) -> WordLists:
        return words()

    def nouns_for(self, name: str, lows: Sequence[str]) -> Nouns:
        """What may replace a noun of one or several words: neither it, nor a synonym, nor a kind of it."""
        key = f"{name}|{' '.join(lows)}"
        if key not in self._known:
            self._known[key] = self._nouns_for(name, lows)
        return self._known[key]

    def _nouns_for(self, name: str, lows: Sequence[str]) -> Nouns:
        lists = self.words
        parts = name.split()
        if parts[-1] in lists.nameless or parts[-1] in lists.places:
            return Nouns()
        for start in range(len(parts)):
            for tail in (" ".join(parts[start:]), " ".join(lows[start:])):
                group = lists.homes.get(tail) or (lists.groups_of.get(tail) if start == 0 else None)
                if group is not None:
                    options = tuple(w for w in group.others(tail) if not self.same(tail, w))
                    return Nouns(options, group.name, group.mass)
        if len(parts) > 1 and self.wordnet is None:
            return Nouns()
        if self.wordnet is not None:
            known = set(self.usage.nouns) | set(lists.groups_of)
            options = tuple(w for w in self.wordnet.sisters(name, known) if w not in lists.nameless)
            if options:
                return Nouns(options, "", False, 1)
        like = [w for w in self.usage.like(name) if w not in lists.nameless | lists.places]
        return Nouns(tuple(w for w in like if not self.same(name, w)), "", False, 2)

    def same(self, one: str, two: str) -> bool:
        """Whether WordNet, where it is at hand, has one noun as a synonym or a kind of the other."""
        return self.wordnet is not None and self.wordnet.same(one, two)

    def near(self, word: str) -> frozenset[str]:
        """What the lists know to mean about the same, the word itself with it."""
        synonyms = {word}
        group = self.words.groups_of.get(word)
        if group is not None:
            synonyms.update(*(near for near in group.sets if word in near))
        cls = self.words.attributes.get(word)
        if cls is not None:
            synonyms |= cls.near.get(word, frozenset())
        return frozenset(synonyms)

    def is_person(self, noun: str) -> bool:
        """Whether a noun names people, whose colour is not changed."""
        group = self.words.homes.get(noun)
        return group is not None and group.name in _PEOPLE

    def lives(self, noun: str) -> bool:
        """Whether a noun names people or animals."""
        group = self.words.homes.get(noun)
        return group is not None and group.name in _PEOPLE | {"animals", "bears", "birds", "bird_kinds"}

    def is_place(self, group: str) -> bool:
        """Whether a group is one of places and the like, beside which nothing is put."""
        return group in _PLACES

    def is_attribute(self, word: str) -> bool:
        """Whether a noun before another is an attribute of it: a material, a colour, a flavour."""
        attributes = self.words.attributes.get(word)
        return attributes is not None and attributes.name in ("material", "colour", "flavour", "pattern")

    def attributes_for(self, word: str) -> tuple[tuple[str, ...], int]:
        """What contradicts an attribute, and the tier it is from."""
        if opposite := self.words.opposites.get(word):
            return opposite, 0
        if attributes := self.words.attributes.get(word):
            return attributes.others(word), 0
        if self.wordnet is not None:
            return self.wordnet.antonyms(word), 1
        return (), 1

    def kinds_for(self, word: str) -> tuple[str, ...]:
        """What may stand in a noun's place before another noun: "tennis" for "soccer" players."""
        group = self.words.homes.get(word)
        return group.others(word) if group is not None and group.name in _KINDS else ()

    def adds_for(self, group: str) -> tuple[str, ...]:
        """Attributes that fit any noun of a group, and any noun at all where there is none."""
        if not group:
            return _ANY
        return next(nouns.adds for nouns in self.words.groups if nouns.name == group)

    def excludes(self, one: str, two: str) -> bool:
        """Whether two attributes speak of the same quality, so that a thing has one of them."""
        kinds = self.kind_of(one), self.kind_of(two)
        if kinds[0] == kinds[1] and kinds[0]:
            return True
        opposites = self.words.opposites
        return two in opposites.get(one, ()) or one in opposites.get(two, ())

    def kind_of(self, word: str) -> str:
        """The quality that an attribute is of: "size", "age", "colour", ...; "" where that is not known."""
        if word in _SIZES:
            return "size"
        if word in _AGES:
            return "age"
        attributes = self.words.attributes.get(word)
        return attributes.name if attributes else ""

    def order(self, word: str) -> int:
        """The place of an attribute in a phrase: numbers 0, sizes 1, ages 2, ..., materials 6."""
        if word in _SIZES:
            return 1
        if word in _AGES:
            return 2
        attributes = self.words.attributes.get(word)
        return attributes.order if attributes else 2
