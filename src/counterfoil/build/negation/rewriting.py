"""Edits of a parsed caption: words replaced, added, taken away; articles, spaces and capitals kept right."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from counterfoil.build.negation.parse import Parse
from counterfoil.build.negation.words import article

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
    found = []
    for at in range(start, stop):
        token = parse.tokens[at]
        lower = at == 0 and token.text[1:] == token.text[1:].lower() and not token.tag.startswith("NNP")
        found.append(token.text.lower() if lower else token.text)
    return tuple(found)


def rewritten(parse: Parse, edits: Iterable[Edit]) -> str:
    """The caption after edits that do not overlap.

    "a" and "an" before a changed word become what the word takes. The first letter is a capital where it was.

    >>> from counterfoil.build.negation.parse import parse_of
    >>> tagged = [("A", "DT", "a"), ("dog", "NN", "dog"), ("sits", "VBZ", "sit"), (".", ".", ".")]
    >>> parse = parse_of("A dog sits.", tagged)
    >>> rewritten(parse, [Edit(1, 2, ("elephant",)), Edit(3, 3, ("on", "grass"))])
    'An elephant sits on grass.'
    """
    pieces: list[tuple[str, bool, bool]] = []  # text, space after, changed
    at, changed = 0, False
    for edit in sorted(edits, key=lambda each: (each.start, each.stop)):
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
    text = "".join(word + " " * space for word, space, _ in _with_articles(pieces)).strip()
    first = parse.tokens[0].text[:1] if parse.tokens else ""
    if parse.shouted:
        return text.upper()
    return text[:1].upper() + text[1:] if first.isupper() else text


def _with_articles(pieces: Sequence[tuple[str, bool, bool]]) -> list[tuple[str, bool, bool]]:
    found = list(pieces)
    for k, (word, space, changed) in enumerate(pieces[:-1]):
        following, _, new = pieces[k + 1]
        if word.lower() in _INDEFINITE and (new or changed) and following[:1].isalnum():
            right = article(following.lower() if following[1:].islower() else following)
            found[k] = (right.capitalize() if word[0].isupper() else right, space, changed)
    return found
