"""Readings of what generative models answer: yes or no, the letter of an option, a matching.

Each reading gives None for a text that does not say, so that such answers are counted and never guessed.
"""

import math
import re
from collections.abc import Sequence

#: How far below one the probabilities of a list may sum before it is no list of probabilities.
_SLACK = 1e-3

#: A letter that opens the answer: alone, or set off from what follows ("B) a cat", "A: ...", "(C)").
_OPENING = re.compile(r"^\W*(?:(?:option|answer|caption|image|choice)\W*)?([A-Z])(?=\W*$|\s*[).:,\]])")
#: A letter that is marked as one anywhere in it ("the image shows (B) a cat", "option A").
_MARKED = re.compile(
    r"[(\[]([A-Z])[)\]]|\b(?:[Oo]ption|[Aa]nswer is|[Aa]nswer:|[Cc]hoice|[Cc]aption|[Ii]mage)\s+([A-Z])\b"
)
#: Both letters at once, which answers nothing ("(A) or (B)?").
_BOTH = re.compile(r"^\W*[A-Z]\W*\s(?:or|and)\s\W*[A-Z]\b")
#: The letter that is given as the answer behind words that may name several.
_FINAL = re.compile(
    r"\\boxed\{\W*(?:\\text\{)?\W*([A-Z])\W*\}"
    r"|\b[Aa]nswer(?:\s+is)?\s*:?\W*\b([A-Z])(?=\W*(?:\n|$)|[.;])"
    r"|\b(?:[Ii]s|[Ii]t'?s|[Bb]e|[Cc]hoose|[Pp]ick|[Ss]elect)\W+([A-Z])(?=\W*$)"
)
#: Where a reasoning model's thinking begins and ends; some servers send the end alone.
_THINKING = re.compile(r"<(/?)(?:think|thinking|thought|reasoning)>", re.IGNORECASE)
_MATCH = re.compile(r"\b([12])\W{0,3}([AB])\b", re.IGNORECASE)


def after_thinking(text: str) -> str:
    """What a reasoning model says behind its thinking; "" where that has no end, the text where it has none.

    >>> [after_thinking(text) for text in ("<think>Yes, a cat? No.</think> No.", "<think>Yes", "Yes")]
    ['No.', '', 'Yes']
    """
    marks = list(_THINKING.finditer(text))
    if not marks:
        return text
    return text[marks[-1].end() :].strip() if marks[-1][1] else ""


def yes_or_no(text: str) -> bool | None:
    """The first word of the text that is yes or no, in any case; None where there is neither.

    Source: NaturalBench, `naturalbench_vqa.py`.

    >>> yes_or_no("Yes, no doubt."), yes_or_no("NO"), yes_or_no("I cannot tell; nothing is known.")
    (True, False, None)
    """
    position = first_named(text, ("yes", "no"))
    return None if position is None else position == 0


def first_named(text: str, answers: Sequence[str]) -> int | None:
    """The place of the answer that the text names first, as a word and in any case; None where it names none.

    The article "a" counts as the answer "A", as it does in the official code; `option_letter` is stricter.
    Source: NaturalBench, `naturalbench_vqa.py`.

    >>> [first_named(text, ("A", "B")) for text in ("B", "It is a B.", "neither")]
    [1, 0, None]
    """
    words = "|".join(re.escape(answer) for answer in answers)
    match = re.search(rf"(?<!\w)({words})(?!\w)", text, re.IGNORECASE)
    return None if match is None else [answer.lower() for answer in answers].index(match.group(1).lower())


def option_letter(text: str, options: Sequence[str]) -> int | None:
    r"""The place of the option that an answer names; None where it names none, or several alike.

    The last letter that is given as the answer counts first ("\boxed{B}", "the answer is B", "I think it's
    A"), then one that opens the text, then one that is marked as a letter and the only one of its kind, then
    the text of an option written out. The article "A" at the start is no letter.

    >>> two = ["a cat on a mat", "a mat on a cat"]
    >>> [option_letter(text, two) for text in ("B", "(A) a cat", "It shows (B).", "A mat on a cat.")]
    [1, 0, 1, 1]
    >>> [option_letter(text, two) for text in ("I think it's A", r"So \boxed{B}", "(A) is odd. Answer: B")]
    [0, 1, 1]
    >>> [option_letter(text, two) for text in ("(A) or (B)?", "A dog", "C", "Both (A) and (B)")]
    [None, None, None, None]
    """
    plain = text.replace("*", "").replace("`", "").strip()
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[: len(options)]
    final = [next(filter(None, groups)) for groups in _FINAL.findall(plain)]
    if final:
        return letters.index(final[-1]) if final[-1] in letters else None
    short = plain.strip("()[].: \n")
    opening = _OPENING.match(short.upper() if len(short) == 1 else plain)
    if _BOTH.match(plain):
        return None
    if opening is not None and opening.group(1) in letters:
        return letters.index(opening.group(1))
    marked = {one or other for one, other in _MARKED.findall(plain)}
    if marked:
        (letter, *more) = marked
        return letters.index(letter) if not more and letter in letters else None
    words = _words(plain)
    named = [place for place, option in enumerate(options) if _words(option) and _words(option) in words]
    # An option that is part of another ("a cat", "a cat on a mat") is not named by naming the other.
    longest = [
        place
        for place in named
        if not any(_words(options[place]) in _words(options[other]) for other in named if other != place)
    ]
    return longest[0] if len(longest) == 1 else None


def matching(text: str) -> tuple[int, int] | None:
    """The caption of each of two images in "1A 2B" or "1B 2A"; None for what is no matching of both.

    >>> matching("1B 2A"), matching("1: A, 2: B."), matching("1A 2A"), matching("1A")
    ((1, 0), (0, 1), None, None)
    """
    pairs = {(int(image) - 1, "AB".index(letter.upper())) for image, letter in _MATCH.findall(text)}
    if pairs == {(0, 0), (1, 1)}:
        return (0, 1)
    return (1, 0) if pairs == {(0, 1), (1, 0)} else None


def yes_no_logprobs(top: Sequence[tuple[str, float]]) -> tuple[float, float] | None:
    """The log-probabilities of yes and of no among the likeliest first tokens, natural logarithms.

    All spellings of each ("Yes", " yes", "YES") are summed. A side that is not listed gets the least listed
    log-probability, an upper bound of its own. None where neither is listed.

    >>> yes, no = yes_no_logprobs([("Yes", math.log(0.5)), (" yes", math.log(0.25)), ("No", math.log(0.2))])
    >>> round(math.exp(yes), 6), round(math.exp(no), 6)
    (0.75, 0.2)
    >>> yes_no_logprobs([("The", -0.1), ("A", -3.0)]) is None
    True
    """
    logprobs = {
        word: [logprob for token, logprob in top if token.strip().strip("Ġ▁").lower() == word]
        for word in ("yes", "no")
    }
    if not any(logprobs.values()):
        return None
    least = min(logprob for _, logprob in top)
    yes, no = (_log_sum(values) if values else least for values in logprobs.values())
    return yes, no


def are_logprobs(top: Sequence[tuple[str, float]]) -> bool:
    """Whether numbers can be log-probabilities of different tokens: none above 0, their sum at most 1.

    >>> are_logprobs([("a", -0.7), ("b", -0.7)]), are_logprobs([("a", 0.4)]), are_logprobs([])
    (True, False, False)
    """
    values = [value for _, value in top]
    return bool(values) and all(value <= _SLACK for value in values) and _log_sum(values) <= _SLACK


def _log_sum(values: Sequence[float]) -> float:
    most = max(values)
    if math.isinf(most):
        return most
    return most + math.log(sum(math.exp(value - most) for value in values))


def _words(text: str) -> str:
    words = re.findall(r"[^\W_]+", text.lower())
    return f" {' '.join(words)} " if words else ""
