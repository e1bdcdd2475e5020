"""Places in a caption where a rule changes something, and what rules look at to find them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from counterfoil.build.negation.lexicon import Lexicon
from counterfoil.build.negation.parse import NounPhrase, Parse
from counterfoil.build.negation.rewriting import Edit
from counterfoil.build.negation.words import verb_form

#: Edits and what they change into what ("dog > cat").
Change = tuple[Sequence[Edit], str]

ADJECTIVES = frozenset({"JJ", "JJR", "JJS"})
VERBS = frozenset({"VBG", "VBZ", "VBP", "VBD", "VB"})
FINITE = frozenset({"VBZ", "VBP", "VBD", "MD"})
#: Verbs that help others, and that describe nothing.
AUXILIARIES = frozenset({"be", "have", "do", "get", "go", "take", "make"})


@dataclass(frozen=True, slots=True)
class ChangePlace:
    """Somewhere a caption can be changed, in as many ways as there are `options`.

    The lowest `tier` is tried first; `change` is given one of the options.
    """

    tier: int
    options: Sequence[str]
    change: Callable[[str], Change]


Rule = Callable[[Parse, Lexicon], Iterator[ChangePlace]]


def name_of(parse: Parse, phrase: NounPhrase) -> str:
    """The nouns of a phrase in the singular."""
    head = parse.tokens[phrase.stop - 1]
    return " ".join((*parse.lows[phrase.noun : phrase.stop - 1], head.lemma))


def counts(parse: Parse, phrase: NounPhrase, lexicon: Lexicon) -> bool:
    """Whether a phrase only counts or places what follows "of"."""
    head = parse.tokens[phrase.stop - 1].lemma
    of = phrase.stop < len(parse.tokens) and parse.lows[phrase.stop] == "of"
    return head in lexicon.words.places or (of and head in lexicon.words.quantities)


def has_article(parse: Parse, phrase: NounPhrase) -> bool:
    return phrase.core > phrase.start and parse.lows[phrase.start] in ("a", "an")


#: People who are young or old by their name.
_AGED = frozenset({"boy", "girl", "child", "kid", "baby", "toddler", "infant", "lady"})


def is_fixed(parse: Parse, phrase: NounPhrase, word: str, lexicon: Lexicon) -> bool:
    """Whether an attribute says nothing of a thing or is left alone: colours of people, ages of children."""
    head = parse.tokens[phrase.stop - 1].lemma
    kind = lexicon.kind_of(word)
    if head in lexicon.words.redundant.get(word, ()):
        return True
    return (kind == "colour" and lexicon.is_person(head)) or (kind == "age" and head in _AGED)


def attributes(parse: Parse, phrase: NounPhrase) -> Iterator[int]:
    """The positions of a phrase's attributes, and of nouns before its head that are of some material."""
    for at in range(phrase.core, phrase.noun):
        if parse.tokens[at].tag not in ("CC", ",", "RB"):
            yield at


def verb_positions(parse: Parse, *, but: frozenset[str] = AUXILIARIES) -> Iterator[int]:
    for at, token in enumerate(parse.tokens):
        if token.tag in VERBS and token.lemma not in but and at not in parse.within:
            yield at


def object_follows(parse: Parse, at: int) -> bool:
    return parse.phrase_at(at + 1) is not None


def changed(parse: Parse, start: int, stop: int, options: Sequence[str], tier: int = 0) -> ChangePlace:
    """A place where some words become one of the options."""

    def change(new: str) -> Change:
        return (Edit(start, stop, tuple(new.split())),), f"{parse.text(start, stop)} > {new}"

    return ChangePlace(tier, options, change)


def conjugated(parse: Parse, at: int, options: Sequence[str], tier: int = 0, length: int = 1) -> ChangePlace:
    """A place where a verb becomes one of the options in its form."""
    tag = parse.tokens[at].tag

    def change(new: str) -> Change:
        shown = verb_form(new, tag)
        return (Edit(at, at + length, tuple(shown.split())),), f"{parse.text(at, at + length)} > {shown}"

    return ChangePlace(tier, options, change)


def only(tier: int, edits: Sequence[Edit], change: str) -> ChangePlace:
    """A place with one way to change it."""
    return ChangePlace(tier, ("",), lambda _: (edits, change))
