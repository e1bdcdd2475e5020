"""Edits of a parsed caption and the places where rules make them; articles, spaces, capitals stay right."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from counterfoil.build.negation.lexicon import Lexicon
from counterfoil.build.negation.parse import NounPhrase, Parse
from counterfoil.build.negation.word_lists import article, verb_form

_INDEFINITE = frozenset({"a", "an"})
#: Marks that no space stands before.
_MARKS = frozenset(",.;:!?")


@dataclass(frozen=True, slots=True)
class Edit:
    """The tokens from `start` to before `stop` become `words`; where these are equal, words are added."""

    start: int
    stop: int
    words: tuple[str, ...]


def plain(parse: Parse, start: int, stop: int) -> tuple[str, ...]:
    """The words there, the caption's first in lower case where it is no name, so that they fit elsewhere."""
    plain_words = []
    for at in range(start, stop):
        token = parse.tokens[at]
        lower = at == 0 and token.text[1:] == token.text[1:].lower() and not token.tag.startswith("NNP")
        plain_words.append(token.text.lower() if lower else token.text)
    return tuple(plain_words)


def rewritten(parse: Parse, edits: Iterable[Edit]) -> str:
    """The caption after edits that do not overlap; articles and the first capital are set right."""
    pieces: list[tuple[str, bool, bool]] = []  # text, space after, changed
    at, changed = 0, False
    for edit in sorted(edits, key=lambda change: (change.start, change.stop)):
        for token in parse.tokens[at : edit.start]:
            pieces.append((token.text, token.space, changed))
            changed = False
        at, changed = edit.stop, True
        if edit.start == edit.stop == 0 and edit.words and parse.tokens:
            # What was the first word no longer begins the caption.
            (low,) = plain(parse, 0, 1)
            pieces += [(word, True, True) for word in edit.words]
            pieces.append((low, parse.tokens[0].space, False))
            at, changed = 1, False
            continue
        space = parse.tokens[edit.stop - 1].space if edit.stop else True
        if edit.words:
            if pieces and edit.start == edit.stop:
                text, _, was = pieces[-1]
                pieces[-1] = (text, True, was)
            pieces += [(word, True, True) for word in edit.words[:-1]]
            pieces.append((edit.words[-1], space, True))
        elif pieces and edit.stop > edit.start:
            text, _, was = pieces[-1]
            pieces[-1] = (text, space, was)
    for token in parse.tokens[at:]:
        pieces.append((token.text, token.space, changed))
        changed = False
    for k, (word, _, new) in enumerate(pieces[1:]):
        if new and word in _MARKS:
            pieces[k] = (pieces[k][0], False, pieces[k][2])
    for k, (word, space, was) in enumerate(pieces[:-1]):
        following, _, new = pieces[k + 1]
        if word.lower() in _INDEFINITE and (new or was) and following[:1].isalnum():
            right = article(following.lower() if following[1:].islower() else following)
            pieces[k] = (right.capitalize() if word[0].isupper() else right, space, was)
    text = "".join(word + " " * space for word, space, _ in pieces).strip()
    first = parse.tokens[0].text[:1] if parse.tokens else ""
    if parse.shouted:
        return text.upper()
    return text[:1].upper() + text[1:] if first.isupper() else text


#: Edits and what they change into what ("dog > cat").
Change = tuple[Sequence[Edit], str]

ADJECTIVES = frozenset({"JJ", "JJR", "JJS"})
VERBS = frozenset({"VBG", "VBZ", "VBP", "VBD", "VB"})
FINITE = frozenset({"VBZ", "VBP", "VBD", "MD"})
#: Verbs that help others, and that describe nothing.
AUXILIARIES = frozenset({"be", "have", "do", "get", "go", "take", "make"})


@dataclass(frozen=True, slots=True)
class ChangePlace:
    """Somewhere a caption can change, by one of `options`; places of the lowest `tier` are tried first."""

    tier: int
    options: Sequence[str]
    change: Callable[[str], Change]


Rule = Callable[[Parse, Lexicon], Iterator[ChangePlace]]


def name_of(parse: Parse, phrase: NounPhrase) -> str:
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
    def change(new: str) -> Change:
        return (Edit(start, stop, tuple(new.split())),), f"{parse.text(start, stop)} > {new}"

    return ChangePlace(tier, options, change)


def conjugated(parse: Parse, at: int, options: Sequence[str], tier: int = 0, length: int = 1) -> ChangePlace:
    tag = parse.tokens[at].tag

    def change(new: str) -> Change:
        shown = verb_form(new, tag)
        return (Edit(at, at + length, tuple(shown.split())),), f"{parse.text(at, at + length)} > {shown}"

    return ChangePlace(tier, options, change)


def exchanged(parse: Parse, one: tuple[int, int], two: tuple[int, int]) -> tuple[Edit, Edit]:
    return Edit(*one, plain(parse, *two)), Edit(*two, plain(parse, *one))


def inserted(at: int, options: Sequence[str], tier: int = 0) -> ChangePlace:
    return ChangePlace(tier, options, lambda new: ((Edit(at, at, tuple(new.split())),), f"+ {new}"))


def only(tier: int, edits: Sequence[Edit], change: str) -> ChangePlace:
    return ChangePlace(tier, ("",), lambda _: (edits, change))
