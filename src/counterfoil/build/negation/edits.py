"""Edits of a parsed caption, which keep articles, spaces and capitals right, and rules that swap words."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product

from counterfoil.build.negation.lexicon import Lexicon
from counterfoil.build.negation.parse import FINITE, NounPhrase, Parse
from counterfoil.build.negation.word_lists import article, plural, verb_form

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
    for i in range(start, stop):
        token = parse.tokens[i]
        lower = i == 0 and token.text[1:] == token.text[1:].lower() and not token.tag.startswith("NNP")
        plain_words.append(token.text.lower() if lower else token.text)
    return tuple(plain_words)


def rewritten(parse: Parse, edits: Iterable[Edit]) -> str:
    """The caption after edits that do not overlap; articles and the first capital are set right."""
    pieces: list[tuple[str, bool, bool]] = []  # text, space after, changed
    start, changed = 0, False
    for edit in sorted(edits, key=lambda change: (change.start, change.stop)):
        for token in parse.tokens[start : edit.start]:
            pieces.append((token.text, token.space, changed))
            changed = False
        start, changed = edit.stop, True
        if edit.start == edit.stop == 0 and edit.words and parse.tokens:
            # What was the first word no longer begins the caption.
            (low,) = plain(parse, 0, 1)
            pieces += [(word, True, True) for word in edit.words]
            pieces.append((low, parse.tokens[0].space, False))
            start, changed = 1, False
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
    for token in parse.tokens[start:]:
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

VERBS = frozenset({"VBG", "VBZ", "VBP", "VBD", "VB"})
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
    for i in range(phrase.core, phrase.noun):
        if parse.tokens[i].tag not in ("CC", ",", "RB"):
            yield i


def changed(
    parse: Parse, start: int, stop: int, options: Sequence[str], tier: int = 0, tag: str = ""
) -> ChangePlace:
    """Words in the place of others; verbs in the form of the Penn tag `tag`."""

    def change(new: str) -> Change:
        shown = verb_form(new, tag) if tag else new
        return (Edit(start, stop, tuple(shown.split())),), f"{parse.text(start, stop)} > {shown}"

    return ChangePlace(tier, options, change)


def exchanged(parse: Parse, one: tuple[int, int], two: tuple[int, int]) -> tuple[Edit, Edit]:
    return Edit(*one, plain(parse, *two)), Edit(*two, plain(parse, *one))


def inserted(i: int, options: Sequence[str], tier: int = 0) -> ChangePlace:
    return ChangePlace(tier, options, lambda new: ((Edit(i, i, tuple(new.split())),), f"+ {new}"))


def only(tier: int, edits: Sequence[Edit], change: str) -> ChangePlace:
    return ChangePlace(tier, ("",), lambda _: (edits, change))


def _between(parse: Parse, first: NounPhrase, second: NounPhrase) -> str:
    """The words between two phrases that are in no other phrase."""
    inside = {i for p in parse.phrases for i in range(p.start, p.stop)}
    return " ".join(parse.lows[i] for i in range(first.end, second.start) if i not in inside)


def is_symmetric(words: str, lexicon: Lexicon) -> bool:
    """Whether some words say the same of two things in either order, as "sitting next to" does."""
    rest = f" {words} "
    for phrase in sorted(lexicon.words.symmetric, key=len, reverse=True):
        rest = rest.replace(f" {phrase} ", "  ")
    return not rest.replace(",", " ").split()


def swap_obj(parse: Parse, lexicon: Lexicon) -> Iterator[ChangePlace]:
    # Phrases that name something, each with what follows "of" where it measures that.
    units: list[NounPhrase] = []
    for phrase in parse.phrases:
        head = parse.tokens[phrase.stop - 1].lemma
        nameless = head in lexicon.words.nameless and phrase.end == phrase.stop
        # "close": "A close up of".
        if head in lexicon.words.places or nameless or head == "close":
            continue
        if not units or phrase.start >= units[-1].end:
            units.append(phrase)
    for first, second in combinations(units, 2):
        one, two = name_of(parse, first), name_of(parse, second)
        if one == two or two in lexicon.near(one):
            continue
        between = _between(parse, first, second)
        group = lexicon.words.homes.get(one)
        place = group is not None and lexicon.is_place(group.name) and not lexicon.is_person(one)
        if is_symmetric(between, lexicon) and not (between == "with" and place):
            continue
        edits = _exchanged(parse, first, second)
        if edits is not None:
            owned = any(token.tag == "PRP$" for token in parse.tokens)
            tier = (between == "with") + 2 * (parse.text(first.end, second.start) == "of") + owned
            yield only(tier, edits, f"{one} <> {two}")


def _exchanged(parse: Parse, first: NounPhrase, second: NounPhrase) -> tuple[Edit, ...] | None:
    """Two phrases in each other's place, with determiners, or without where one belongs to its place."""
    owned = any(
        parse.tokens[i].tag in ("PRP$", "WDT") for p in (first, second) for i in range(p.start, p.core)
    )
    if owned and (first.plural != second.plural or first.core == first.start or second.core == second.start):
        return None
    one, two = _agreement(parse, first, second.plural), _agreement(parse, second, first.plural)
    if one is None or two is None:
        return None
    starts = (first.core, second.core) if owned else (first.start, second.start)
    return *exchanged(parse, (starts[0], first.end), (starts[1], second.end)), *one, *two


_BE = {"is": "are", "was": "were", "has": "have", "does": "do"}
_SINGULAR = {"are": "is", "were": "was", "have": "has", "do": "does"}


def _agreement(parse: Parse, phrase: NounPhrase, many: bool) -> tuple[Edit, ...] | None:
    """What the verb becomes where a phrase that may be its subject changes number; None: cannot be known."""
    verbs = [i for i, token in enumerate(parse.tokens) if token.tag in FINITE]
    if not verbs or phrase.plural == many:
        return ()
    first = parse.phrases[0]
    there = parse.lows[0] == "there" and len(verbs) == 1
    if not there and (len(verbs) > 1 or verbs[0] < first.stop):
        return None
    if phrase is not first and phrase.start != first.start:
        return ()
    if not phrase.plural and any(parse.lows[i] in _SINGULAR for i in verbs):
        return None  # "A stack of books are": the verb goes with what is counted.
    i = verbs[0]
    token = parse.tokens[i]
    if token.tag == "MD" or (token.tag == "VBD" and token.low not in ("was", "were")):
        return ()
    table = _BE if many else _SINGULAR
    new = table.get(token.low) or verb_form(token.lemma, "VBP" if many else "VBZ")
    return (Edit(i, i + 1, (new,)),)


def swap_att(parse: Parse, lexicon: Lexicon) -> Iterator[ChangePlace]:
    yield from exchanged_attributes(parse, lexicon)
    yield from _exchanged_counts(parse, lexicon)
    yield from _moved_attributes(parse, lexicon)
    # The first nouns of two names of several words: "a computer desk by a street sign".
    for first, second in combinations([p for p in parse.phrases if p.stop - p.noun > 1], 2):
        a, b = parse.lows[first.noun], parse.lows[second.noun]
        if a != b and parse.lows[first.stop - 1] != parse.lows[second.stop - 1]:
            edits = exchanged(parse, (first.noun, first.noun + 1), (second.noun, second.noun + 1))
            yield only(6, edits, f"{a} <> {b}")


def exchanged_attributes(parse: Parse, lexicon: Lexicon) -> Iterator[ChangePlace]:
    for first, second in combinations(parse.phrases, 2):
        same = parse.tokens[first.stop - 1].lemma == parse.tokens[second.stop - 1].lemma
        if same and first.plural == second.plural:
            continue
        for one, two in product(attributes(parse, first), attributes(parse, second)):
            a, b = parse.lows[one], parse.lows[two]
            counted = parse.tokens[one].tag == "CD"
            if a == b or b in lexicon.near(a) or counted != (parse.tokens[two].tag == "CD"):
                continue
            if b in parse.lows[first.core : first.noun] or a in parse.lows[second.core : second.noun]:
                continue
            if counted and first.plural != second.plural:
                continue
            if not _bound(parse, one) and not _bound(parse, two):
                edits = exchanged(parse, (one, one + 1), (two, two + 1))
                yield only(0 if lexicon.excludes(a, b) else 1, edits, f"{a} <> {b}")


def _bound(parse: Parse, i: int) -> bool:
    """Whether an attribute belongs to a word before it ("very large"), or is "other" or "own"."""
    return parse.lows[i] in ("other", "own", "same", "next", "more", "such", "left", "right") or (
        i > 0 and parse.tokens[i - 1].tag == "RB"
    )


_SINGULAR_NOUNS = {"people": "person", "men": "man", "women": "woman", "children": "child"}
_NUMBERS = frozenset({"several", "many", "multiple"})


def _exchanged_counts(parse: Parse, lexicon: Lexicon) -> Iterator[ChangePlace]:
    """How many there are of two things: "two cats and a dog" become "a cat and two dogs"."""
    for several in parse.phrases:
        word = parse.lows[several.start]
        counted = parse.tokens[several.start].tag == "CD" or word in _NUMBERS
        head = parse.tokens[several.stop - 1]
        single_word = _SINGULAR_NOUNS.get(head.low, head.lemma)
        if not counted or not several.plural or single_word == head.low:
            continue
        if head.lemma in lexicon.words.nameless | lexicon.words.quantities:
            continue
        if several.start and parse.lows[several.start - 1] in ("between", "among", "of"):
            continue
        for single in parse.phrases:
            name = parse.tokens[single.stop - 1]
            one = parse.lows[single.start]
            if one not in ("a", "an", "one") or single.plural or counts(parse, single, lexicon):
                continue
            if name.lemma in lexicon.words.nameless or name.tag != "NN" or name.lemma == head.lemma:
                continue
            group = lexicon.words.homes.get(name.lemma)
            if (group is not None and group.mass) or single.end != single.stop:
                continue
            agreed = _agreement(parse, several, False), _agreement(parse, single, True)
            if agreed[0] is None or agreed[1] is None:
                continue
            edits = (
                Edit(several.start, several.start + 1, ("a" if one == "an" else one,)),
                Edit(several.stop - 1, several.stop, (single_word,)),
                Edit(single.start, single.start + 1, plain(parse, several.start, several.start + 1)),
                Edit(single.stop - 1, single.stop, (plural(name.low),)),
                *agreed[0],
                *agreed[1],
            )
            yield only(1, edits, f"{word} <> {one}")


#: Qualities that almost any thing has.
_FITS_MOST = frozenset({"colour", "size", "material", "pattern", "shape", "age"})


def _moved_attributes(parse: Parse, lexicon: Lexicon) -> Iterator[ChangePlace]:
    """An attribute of one thing given to another that has none of its kind."""
    for first in parse.phrases:
        spans = list(_spans(parse, first))
        for second in parse.phrases if spans else ():
            head = parse.tokens[second.stop - 1]
            if first is second or counts(parse, second, lexicon) or head.lemma in lexicon.words.nameless:
                continue
            if head.lemma == parse.tokens[first.stop - 1].lemma:
                continue
            has = [parse.lows[i] for i in attributes(parse, second)]
            for start, stop in spans:
                words = parse.lows[start:stop]
                if any(lexicon.excludes(word, old) or old == word for old in has for word in words):
                    continue
                if any(
                    is_fixed(parse, phrase, word, lexicon) for phrase in (first, second) for word in words
                ):
                    continue
                to = second.core
                while to < second.noun and (parse.tokens[to].tag in ("CD", "RB")):
                    to += 1
                edits = (Edit(start, stop, ()), Edit(to, to, plain(parse, start, stop)))
                kinds = [lexicon.kind_of(word) for word in words if word != "and"]
                if not all(lexicon.attributes_for(word) for word in words if word != "and"):
                    continue  # What no list knows may fit one thing alone: "a corded mouse".
                unusual = 3 * any(kind not in _FITS_MOST for kind in kinds)
                change = f"{' '.join(words)} moved to {name_of(parse, second)}"
                yield only(2 + len(has) + unusual, edits, change)


def _spans(parse: Parse, phrase: NounPhrase) -> Iterator[tuple[int, int]]:
    """The attributes of a phrase, those joined by "and" as one."""
    core = phrase.core
    while core < phrase.noun:
        stop = core + 1
        while stop + 1 < phrase.noun and parse.tokens[stop].tag in ("CC", ","):
            stop += 2
        if parse.tokens[core].tag not in ("CD", "RB", "CC", ",") and not _bound(parse, core):
            yield core, stop
        core = stop


def swap_words(tags: frozenset[str]) -> Rule:
    def rule(parse: Parse, lexicon: Lexicon) -> Iterator[ChangePlace]:
        positions = [
            i
            for i, token in enumerate(parse.tokens)
            if token.tag in tags and token.lemma not in AUXILIARIES and token.low[-1:].isalpha()
        ]
        positions = [i for i in positions if i not in parse.within]
        for one, two in combinations(positions, 2):
            a, b = parse.tokens[one], parse.tokens[two]
            if a.tag == b.tag and a.lemma != b.lemma:
                edits = exchanged(parse, (one, one + 1), (two, two + 1))
                yield only(0, edits, f"{a.low} <> {b.low}")

    return rule


def swap_noun(parse: Parse, lexicon: Lexicon) -> Iterator[ChangePlace]:
    """Two nouns alone; attributes and determiners stay."""
    for first, second in combinations([p for p in parse.phrases if not counts(parse, p, lexicon)], 2):
        one, two = name_of(parse, first), name_of(parse, second)
        bare = first.core == first.noun and second.core == second.noun
        if one == two or two in lexicon.near(one) or first.plural != second.plural:
            continue
        if not bare or not is_symmetric(_between(parse, first, second), lexicon):
            edits = exchanged(parse, (first.noun, first.stop), (second.noun, second.stop))
            yield only(0, edits, f"{one} <> {two}")
