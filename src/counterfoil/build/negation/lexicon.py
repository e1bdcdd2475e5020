"""Replacements for a word: from the lists, then from the user's own captions."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache, cached_property

import numpy as np

from counterfoil.build.negation.parse import Parse
from counterfoil.build.negation.word_lists import WordLists, words

#: Groups of places, beside which nothing is put by "and".
_PLACES = frozenset({
    "streets", "fields", "hills", "waters", "towns", "rooms", "buildings", "shops", "parks", "courts",
    "skies", "greenery", "weather", "events", "clouds", "games", "counters", "persons", "crowds",
    "hair", "heads", "body", "surroundings",
})  # fmt: skip
_PEOPLE = frozenset(["men", "children", "babies", "persons", "crowds", "roles", "athletes", "players"])
#: What may lie or stand in most pictures.
EXTRAS = (
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
        place = {name: i for i, name in enumerate(names)}
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
        return tuple(self.nouns[i] for i in order if i != row and near[i] > 0.3)[:count]


@dataclass(frozen=True, eq=False)
class Lexicon:
    """Where replacements come from; without usage, from the lists alone."""

    usage: Usage = field(default_factory=Usage)
    words: WordLists = field(default_factory=words, repr=False)

    @cached_property
    def nouns_for(self) -> Callable[[str, tuple[str, ...]], Nouns]:
        """What may replace a noun of one or several words: neither it, nor a synonym, nor a kind of it."""
        return cache(self._nouns_for)

    def _nouns_for(self, name: str, lows: tuple[str, ...]) -> Nouns:
        lists = self.words
        parts = name.split()
        if parts[-1] in lists.nameless or parts[-1] in lists.places:
            return Nouns()
        for start in range(len(parts)):
            for tail in (" ".join(parts[start:]), " ".join(lows[start:])):
                group = lists.homes.get(tail) or (lists.groups_of.get(tail) if start == 0 else None)
                if group is not None:
                    return Nouns(tuple(group.others(tail)), group.name, group.mass)
        if len(parts) > 1:
            return Nouns()
        like = [w for w in self.usage.like(name) if w not in lists.nameless | lists.places]
        return Nouns(tuple(like), "", False, 2)

    def near(self, word: str) -> frozenset[str]:
        """What the lists know to mean about the same, the word itself with it."""
        group, attributes = self.words.groups_of.get(word), self.words.attributes.get(word)
        near = [] if group is None else [nouns for nouns in group.sets if word in nouns]
        return frozenset({word}).union(*near, () if attributes is None else attributes.near.get(word, ()))

    def is_person(self, noun: str) -> bool:
        return self._group(noun) in _PEOPLE

    def lives(self, noun: str) -> bool:
        return self._group(noun) in _PEOPLE | {"animals", "bears", "birds", "bird_kinds"}

    def _group(self, noun: str) -> str:
        group = self.words.homes.get(noun)
        return "" if group is None else group.name

    def is_place(self, group: str) -> bool:
        """Whether a group is one of places and the like, beside which nothing is put."""
        return group in _PLACES

    def is_attribute(self, word: str) -> bool:
        """Whether a noun before another is an attribute of it: a material, a colour, a flavour."""
        attributes = self.words.attributes.get(word)
        return attributes is not None and attributes.name in ("material", "colour", "flavour", "pattern")

    def attributes_for(self, word: str) -> tuple[str, ...]:
        attributes = self.words.attributes.get(word)
        return self.words.opposites.get(word) or (() if attributes is None else attributes.others(word))

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
        opposites, same = self.words.opposites, self.kind_of(one) == self.kind_of(two) != ""
        return same or two in opposites.get(one, ()) or one in opposites.get(two, ())

    def kind_of(self, word: str) -> str:
        """The quality that an attribute is of: "size", "age", "colour", ...; "" where that is not known."""
        return self._quality(word)[0]

    def order(self, word: str) -> int:
        """The place of an attribute in a phrase: numbers 0, sizes 1, ages 2, ..., materials 6."""
        return self._quality(word)[1]

    def _quality(self, word: str) -> tuple[str, int]:
        attributes = self.words.attributes.get(word)
        listed = ("", 2) if attributes is None else (attributes.name, attributes.order)
        return ("size", 1) if word in _SIZES else ("age", 2) if word in _AGES else listed
