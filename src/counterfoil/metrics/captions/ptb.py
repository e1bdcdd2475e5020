"""Captions cut into the tokens that the COCO tool kit scores, without Java.

BLEU, ROUGE and CIDEr compare tokens, so their published numbers hold for one tokenizer only: the tool kit's,
which is the Penn Treebank tokenizer of Stanford CoreNLP 3.4.1 (run with `-preserveLines -lowerCase`), after
which marks of punctuation are dropped. The same tokens come out here.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache, partial

from counterfoil.errors import InputError
from counterfoil.metrics.captions.ptb_rules import rules

#: What the tool kit drops. It means to drop round and curly brackets too, but looks for "-LRB-" where lower
#: case has already made "-lrb-" of it, so brackets stay.
PUNCTUATION = frozenset(["''", "'", "``", "`", ".", "?", "!", ",", ":", "-", "--", "...", ";"])

#: Where the cut of a word can depend on the next: marks of markup, a number after a number or abbreviation,
#: initials before a capital, dots with blanks between them, and blanks of odd kinds.
_DEPENDS = re.compile(
    r"<[A-Za-z/!?][^>]*[ \t][^>]*>|[^\S \t]|[\d)][ \t]+\d|[A-Za-z.]\.[ \t]+[\d.]"
    r"|(?<![A-Za-z])[A-Za-z]\.[ \t]+[A-Z<]|\.[ \t]+[Ll][TtIi]"
)
#: Words of nothing but letters that are more than one token.
_SPLIT = frozenset(["cannot", "gonna", "gotta", "lemme", "gimme", "wanna"])

_BRACKETS = {"(": "-LRB-", ")": "-RRB-", "[": "-LSB-", "]": "-RSB-", "{": "-LCB-", "}": "-RCB-"}
_FRACTIONS = {"\u00bc": "1/4", "\u00bd": "1/2", "\u00be": "3/4", "\u2153": "1/3", "\u2154": "2/3"}
_MONEY = {"\u00a2": "cents", "\u00a3": "#", "\x80": "$", "\u00a4": "$", "\u20a0": "$", "\u20ac": "$"}
_MAPPED = _BRACKETS | _FRACTIONS | _MONEY
_QUOTES = (
    (re.compile("&apos;", re.IGNORECASE), "'"),
    (re.compile('"|&quot;', re.IGNORECASE), "''"),
    (re.compile("[\x91\u2018\u201b\u2039]"), "`"),
    (re.compile("[\x92\u2019\u203a]"), "'"),
    (re.compile("[\x93\u201c\u00ab]"), "``"),
    (re.compile("[\x94\u201d\u00bb]"), "''"),
)


def _quote(token: str) -> str:
    for pattern, plain in _QUOTES:
        token = pattern.sub(plain, token)
    return token


def _parentheses(token: str) -> str:
    return token.replace("(", "-LRB-").replace(")", "-RRB-")


#: What becomes of a token's letters, by the action of its rule; actions not named leave them alone.
_WRITTEN: Mapping[str, Callable[[str], str]] = {
    "join": lambda token: token.replace(" ", "\u00a0"),
    "phone": lambda token: _parentheses(token.replace(" ", "\u00a0")),
    "dash": lambda token: "--",
    "dashes": lambda token: "--" if 3 <= len(token) <= 4 else token,
    "dots": lambda token: "...",
    "less": lambda token: "<",
    "more": lambda token: ">",
    "ampersand": partial(re.compile("&amp;", re.IGNORECASE).sub, "&"),
    "soft": lambda token: token.replace("\u00ad", "") or "-",
    "map": lambda token: _MAPPED.get(token, token),
    "bracket": lambda token: _MAPPED.get(token) or _parentheses(token),
    "quote": _quote,
}


@cache
def _scanner() -> tuple[re.Pattern[str], tuple[str, ...]]:
    """A pattern that tries every rule at one place, with two groups for each, and the rules' actions.

    The first group of a rule is the token, the second ends where what must follow ends. `re` has no way to
    ask for the longest of alternatives, so all of them look ahead from one place, and the caller compares.
    """
    listed = rules()
    tries = (f"(?:(?=({token})(?:{follows})())|)" for _, token, follows in listed)
    return re.compile("".join(tries)), tuple(action for action, _, _ in listed)


def _scan(text: str, after: str) -> list[str]:
    """All tokens of a text that `after` follows, punctuation too, letters as they are."""
    pattern, actions = _scanner()
    place, length, tokens = 0, len(text), []
    text += after
    while place < length:
        found = pattern.match(text, place)
        spans = found.regs[1:] if found else ()
        farthest, rule = max((spans[2 * i + 1][1], -i) for i in range(len(actions)))
        if farthest < 0:
            place += 1  # a character that no rule knows is dropped, and parts what stands around it
            continue
        action, (start, place) = actions[-rule], spans[-2 * rule]
        token = text[start:place]
        if action.startswith("split"):
            back = int(action[-1])
            token, place = token[:-back], place - back
        elif action in ("again", "acronym"):
            place -= 1  # the point ends the sentence as well, and comes again
            token = token[:-1] if action == "acronym" and len(token) == 2 else token
        if action != "drop":
            tokens.append(_WRITTEN[action](token) if action in _WRITTEN else token)
    return tokens


def _kept(tokens: Sequence[str]) -> str:
    return " ".join(token for token in map(str.lower, tokens) if token not in PUNCTUATION)


@lru_cache(maxsize=1 << 16)
def _word(word: str) -> str:
    """The tokens of what stands between two blanks, where they do not depend on what stands around it."""
    plain = word.removesuffix(",").lower()
    if plain.isascii() and plain.isalpha() and plain not in _SPLIT:
        return plain
    return _kept(_scan(word, " x q"))


def tokenize(text: str) -> str:
    """The tokens of a caption, joined by one blank; a caption of nothing but punctuation gives "".

    >>> tokenize("A man's dog can't jump (high), at 5 p.m. on the U.S. coast...")
    "a man 's dog ca n't jump -lrb- high -rrb- at 5 p.m. on the u.s. coast"

    All white space that breaks lines counts as a blank. The same tokens as the tool kit's come out for any
    caption given to it on its own followed by a line that begins with a small letter. Known differences:

    * The tool kit reads all captions as one text, so the end of a caption can depend on the start of the
      next: "plan V." gives "v" before "The dog" and "v." before "a dog", and "page no." keeps its point only
      where the next caption begins with a digit. Here a caption depends on itself alone: "v." and "no".
    * Other line breaks than "\\n" (as "\\r") split a caption in the tool kit, after which its captions and
      their tokens no longer belong together. Here they are blanks.
    * Letters that Unicode gained after its version 6 are dropped there and kept here.
    * A capital sigma beside a digit is one or the other small sigma; an address of a single emoji is none.
    """
    text = text.translate(_LINE_BREAKS)
    if _DEPENDS.search(text):
        return _kept(_scan(text, "\nx q"))
    return " ".join(filter(None, map(_word, text.split())))


_LINE_BREAKS = {ord(sign): " " for sign in "\n\r\u2028\u2029\x0b\x0c"}


def tokenize_all(texts: Sequence[object]) -> list[str]:
    """The tokens of each caption (as `tokenize`), equal captions being looked at once.

    Raises `InputError` naming the first caption that is not a string.

    >>> tokenize_all(["A dog.", "Two dogs!", "A dog."])
    ['a dog', 'two dogs', 'a dog']
    """
    known: dict[object, str] = {}
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(
                "a caption is not a text", where=f"caption {row}", given=repr(text), allowed="a string"
            )
        if text not in known:
            known[text] = tokenize(text)
    return [known[text] for text in texts]
