"""Words that exclude each other (`word_lists.toml`), and their forms: plurals, forms of verbs, articles."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any


@dataclass(frozen=True, slots=True)
class Token:
    """A word or a mark: its text, its Penn tag, its lemma in lower case, and whether a space follows."""

    text: str
    tag: str
    lemma: str
    space: bool = True

    @property
    def low(self) -> str:
        return self.text.lower()


@dataclass(frozen=True)
class NounGroup:
    """Nouns of which none names another, in sets of like meaning; `adds` are attributes of any of them."""

    name: str
    sets: tuple[frozenset[str], ...]
    usual: tuple[str, ...]
    adds: tuple[str, ...]
    mass: bool

    def others(self, noun: str) -> tuple[str, ...]:
        return tuple(
            word
            for word, near in zip(self.usual, self.sets, strict=True)
            if noun not in near and word != noun
        )


@dataclass(frozen=True)
class AttributeClass:
    """Attributes that exclude each other; `near` are the words that mean about the same as one."""

    name: str
    order: int
    usual: tuple[str, ...]
    near: Mapping[str, frozenset[str]]

    def others(self, word: str) -> tuple[str, ...]:
        same = self.near.get(word, frozenset({word}))
        return tuple(
            other
            for other in self.usual
            if other not in same and word not in self.near.get(other, frozenset())
        )


@dataclass(frozen=True)
class WordLists:
    """All the lists of `word_lists.toml`."""

    groups: tuple[NounGroup, ...]
    #: Of a noun the group that it is replaced from; of all nouns, guests too, any group.
    homes: Mapping[str, NounGroup]
    groups_of: Mapping[str, NounGroup]
    attributes: Mapping[str, AttributeClass]
    opposites: Mapping[str, tuple[str, ...]]
    #: Of an attribute the nouns to which it is not given: they have it anyway, or never.
    redundant: Mapping[str, tuple[str, ...]]
    relations: Mapping[str, tuple[str, ...]]
    with_object: Mapping[str, tuple[str, ...]]
    alone: Mapping[str, tuple[str, ...]]
    done: Mapping[str, tuple[str, ...]]
    symmetric: frozenset[str]
    quantities: frozenset[str]
    containers: frozenset[str]
    places: frozenset[str]
    #: Nouns that are not replaced, and nouns whose relations are not.
    nameless: frozenset[str]
    fixed: frozenset[str]
    worn: frozenset[str]
    colours: frozenset[str]
    plurals: frozenset[str]
    #: Irregular plurals, words that are plurals already, past and participle, verbs that double a letter.
    plural_of: Mapping[str, str]
    many: frozenset[str]
    past: Mapping[str, tuple[str, ...]]
    doubled: frozenset[str]
    #: The names of several words by their first, as tuples of words, longest first.
    names: Mapping[str, tuple[tuple[str, ...], ...]] = field(repr=False, default_factory=dict)

    def starts_name(self, tokens: Sequence[Token], start: int) -> int:
        """How many tokens a listed name takes from there ("hot dog" two); 0 where none begins."""
        for name in self.names.get(tokens[start].low, ()):
            last = start + len(name) - 1
            if last < len(tokens) and (
                all(tokens[start + k].low == word for k, word in enumerate(name[:-1]))
                and name[-1] in (tokens[last].low, tokens[last].lemma)
            ):
                return len(name)
        return 0


@cache
def words() -> WordLists:
    lists = tomllib.loads((files("counterfoil.build.negation") / "word_lists.toml").read_text("utf-8"))
    groups: dict[str, NounGroup] = {}
    homes: dict[str, NounGroup] = {}
    everywhere: dict[str, NounGroup] = {}
    for name, group in lists["groups"].items():
        parts = _parts(group["nouns"])
        sets = [part.lstrip("~").split("=") for part in parts]
        groups[name] = NounGroup(
            name,
            tuple(map(frozenset, sets)),
            tuple(words[0] for words in sets),
            _parts(group["adds"]),
            bool(group.get("mass", False)),
        )
        for part, words in zip(parts, sets, strict=True):
            for word in words:
                everywhere.setdefault(word, groups[name])
                if not part.startswith("~"):
                    homes.setdefault(word, groups[name])
    attributes: dict[str, AttributeClass] = {}
    for name, attribute_class in lists["attributes"].items():
        near: dict[str, set[str]] = {}
        for part in (*_parts(attribute_class["words"]), *_parts(attribute_class.get("knows", ""))):
            for word in (same := part.split("=")):
                near.setdefault(word, set()).update(same)
        usual = tuple(part.split("=")[0] for part in _parts(attribute_class["words"]))
        alike = {word: frozenset(words) for word, words in near.items()}
        exclusive = AttributeClass(name, attribute_class["order"], usual, alike)
        for word in near:
            attributes.setdefault(word, exclusive)
    # The words after each ">" by the word before it.
    pairs: dict[str, Any] = {}
    for name, text in lists["pairs"].items():
        entries = (part.split(">") for part in _parts(text, ";"))
        pairs[name] = {word.replace("_", " "): _words(others) for word, others in entries}
    word_sets: dict[str, Any] = {name: frozenset(_words(text)) for name, text in lists["sets"].items()}
    word_sets["worn"] = frozenset(
        word for name in word_sets["worn"] for near in groups[name].sets for word in near
    )
    past = [forms.split("/") for forms in lists["forms"]["past"].split()]
    names: dict[str, list[tuple[str, ...]]] = {}
    for noun in everywhere:
        if " " in noun:
            names.setdefault(noun.split()[0], []).append(tuple(noun.split()))
    return WordLists(
        groups=tuple(groups.values()),
        homes=homes,
        groups_of=everywhere,
        attributes=attributes,
        colours=frozenset(attributes and [w for w, c in attributes.items() if c.name == "colour"]),
        plural_of=dict(pair.split("/") for pair in lists["forms"]["plurals"].split()),
        past={verb: tuple(forms) for verb, *forms in past},
        names={first: tuple(sorted(all_, key=len, reverse=True)) for first, all_ in names.items()},
        **pairs,
        **word_sets,
    )


def _parts(text: str, mark: str = ",") -> tuple[str, ...]:
    return tuple(part for part in (" ".join(part_text.split()) for part_text in text.split(mark)) if part)


def _words(text: str) -> tuple[str, ...]:
    """The words of a text, of which _ joins those that are one."""
    return tuple(word.replace("_", " ") for word in text.split())


@lru_cache(1 << 16)
def plural(noun: str) -> str:
    """The plural of a noun, of its last word where it has several.

    >>> plural("hot dog"), plural("person"), plural("scissors"), plural("fireman"), plural("berry")
    ('hot dogs', 'people', 'scissors', 'firemen', 'berries')
    """
    if " " in noun:
        first, _, last = noun.rpartition(" ")
        return f"{first} {plural(last)}"
    if noun in words().many:
        return noun
    if noun in words().plural_of:
        return words().plural_of[noun]
    if noun.endswith("man") and noun not in ("human", "woman"):
        return noun[:-2] + "en"
    if noun.endswith("y") and noun[-2:-1] not in tuple("aeiou"):
        return noun[:-1] + "ies"
    return noun + ("es" if noun.endswith(("s", "x", "z", "ch", "sh")) else "s")


#: Beginnings whose first letter is no guide to the sound: those that take "an", and those that take "a".
_AN = ("hour", "honest", "heir", "honor", "honour")
_A = (
    "uni", "use", "usual", "eu", "ewe", "one", "once", "ukulele", "utensil", "utility", "ufo", "urinal",
    "ubiquit",
)  # fmt: skip
_NOT_A = ("unin", "unim", "unid", "unil")
#: Letters whose names begin with a vowel's sound, as words in capitals are read: "an SUV".
_SPELT = frozenset("AEFHILMNORSX")


@lru_cache(1 << 16)
def article(word: str) -> str:
    """ "a" or "an", as the word that follows takes it.

    >>> article("umbrella"), article("uniform"), article("hour"), article("SUV"), article("TV")
    ('an', 'a', 'an', 'an', 'a')
    """
    low = word.lower()
    if len(word) in (2, 3) and word.isupper():
        return "an" if word[0] in _SPELT else "a"
    if low.startswith(_AN) or low.startswith(_NOT_A) or low[:2] in ("8", "11", "18") or low.startswith("8"):
        return "an"
    return "an" if low[:1] in tuple("aeiou") and not low.startswith(_A) else "a"


_PRESENT = {"have": "has", "be": "is", "do": "does", "go": "goes"}


@lru_cache(1 << 16)
def verb_form(verb: str, tag: str) -> str:
    """A verb in the form of a Penn tag; of several words the first is changed.

    >>> verb_form("reach for", "VBG"), verb_form("throw", "VBN"), verb_form("carry", "VBZ")
    ('reaching for', 'thrown', 'carries')
    """
    if " " in verb:
        first, _, rest = verb.partition(" ")
        return f"{verb_form(first, tag)} {rest}"
    ends_in_y = verb.endswith("y") and verb[-2:-1] not in tuple("aeiou")
    stem = verb + verb[-1] if verb in words().doubled else verb
    if tag == "VBZ":
        if verb in _PRESENT:
            return _PRESENT[verb]
        if ends_in_y:
            return verb[:-1] + "ies"
        return verb + ("es" if verb.endswith(("s", "x", "z", "ch", "sh", "o")) else "s")
    if tag == "VBG":
        if verb.endswith("ie"):
            return verb[:-2] + "ying"
        return (verb[:-1] if verb.endswith("e") and not verb.endswith(("ee", "oe", "ye")) else stem) + "ing"
    if tag in ("VBD", "VBN"):
        if verb in words().past:
            return words().past[verb][tag == "VBN"]
        if ends_in_y:
            return verb[:-1] + "ied"
        return verb + "d" if verb.endswith("e") else stem + "ed"
    return verb
