"""Protocols of questions to generative models: the prompts, the order of options, and what an answer picks.

* `yes-no`: one image and one caption at a time; each pair gets a score.
* `choose`: an image with the letters of k captions, or a caption with those of k images (a quad: four turns).
* `two-images`: both images and both captions of a quad in one request; the model names the matching.
* `answer`: an image and the one question that a choice's captions begin with (NaturalBench).
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from counterfoil.benchmarks.records import Caption, Image
from counterfoil.errors import InputError
from counterfoil.inputs.files import digest_value
from counterfoil.models.base import Picks, QuestionItems, check_template, filled, text_of

Parts = tuple[str | Image, ...]

#: What a question, or the instruction behind it, ends with.
_ENDS = ("?", ".", "!", ":", ";")
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

#: What each protocol asks where no other words are given; {} is the caption, or the list of captions.
_QUESTION: Mapping[str, str] = {
    "yes-no": 'Does this image show "{}"? Answer with one word, yes or no.',
    "choose": "Which caption describes this image?\n{}\nAnswer with the letter alone.",
    "answer": "{}",
    "two-images": "{}\nWhich caption belongs to which image? Answer 1A 2B or 1B 2A, and nothing else.",
}
_IMAGE_QUESTION = 'Which of these images does the caption "{}" describe? Answer with the letter alone.'


@dataclass(frozen=True)
class Prompts:
    """The words of a protocol; each template has one {} for the caption or the list of captions."""

    protocol: str
    question: str
    image_question: str = ""

    @classmethod
    def of(cls, protocol: str, *, question: str = "", image_question: str = "", where: str) -> "Prompts":
        if image_question and protocol != "choose":
            problem = "image_question belongs to another protocol"
            raise InputError(problem, where=where, given=protocol, allowed="choose")
        allowed = _QUESTION[protocol]
        question = check_template(question or allowed, "question", where=where, allowed=allowed)
        if protocol == "choose":
            image_question = image_question or _IMAGE_QUESTION
            check_template(image_question, "image_question", where=where, allowed=allowed)
        return cls(protocol, question, image_question)


@dataclass(frozen=True, eq=False)
class Turn:
    """One request; `target` is picked: the caption of image `place`, the image of that caption, or both."""

    question: int
    target: Literal["caption", "image", "both"]
    place: int
    parts: Parts
    order: tuple[int, ...]
    #: The options as texts, in the order shown; empty for images.
    shown: tuple[str, ...] = field(default=(), repr=False)
    #: The answers to a question, where the first of them in the text counts.
    answers: tuple[str, ...] = ()

    def read(self, text: str) -> tuple[int, ...] | None:
        """The places picked, in the question's own order ("both": of either image); None if not readable."""
        if self.target == "both":
            pair = matching(text)
            return None if pair is None else tuple(self.order[letter] for letter in pair)
        if self.answers:
            named = first_named(text, self.answers)
            return None if named is None else (named,)
        letter = option_letter(text, self.shown or ("",) * len(self.order))
        return None if letter is None else (self.order[letter],)


def turns(questions: Sequence[QuestionItems], prompts: Prompts, *, order: str, seed: int) -> list[Turn]:
    """The requests that answer the questions, question after question.

    The order of options depends on them and `seed` alone, so that always answering A picks one right caption
    of a quad's two. `balanced` puts each option equally often in each place, `given` keeps the right one
    first.
    """
    protocol = prompts.protocol
    for question in questions:
        shape = (len(question.captions), len(question.images))
        given = f"{shape[0]} captions and {shape[1]} images"
        if protocol == "answer" and shape[1] > 1:
            allowed = "choices between answers; else the protocols choose and yes-no"
            raise InputError("answer asks about one image", given=given, allowed=allowed)
        if protocol == "two-images" and shape != (2, 2):
            problem = "two-images asks about two images and two captions at once"
            raise InputError(problem, given=given, allowed="quads; else the protocols choose and yes-no")
        if max(shape) > len(_LETTERS):
            allowed = f"at most {len(_LETTERS)}; else yes-no"
            raise InputError("more options than letters", given=max(shape), allowed=allowed)
    requests: list[Turn] = []
    if protocol == "answer":
        for number, question in enumerate(questions):
            words, answers = question_and_answers(question.captions)
            parts: Parts = (question.images[0], filled(prompts.question, words))
            requests.append(Turn(number, "caption", 0, parts, tuple(range(len(answers))), answers=answers))
        return requests
    # The lists of options of a question: its captions, then its images, where there are several.
    lists: list[tuple[int, Sequence[Any]]] = [
        (number, items)
        for number, question in enumerate(questions)
        for items in (question.captions, question.images)
        if len(items) > 1 and (protocol == "choose" or items is question.captions)
    ]
    options_of = [[text_of(i) if isinstance(i, Caption) else i.id for i in items] for _, items in lists]
    orders = option_orders(options_of, order=order, seed=seed)
    for (number, items), sequence in zip(lists, orders, strict=True):
        question, options = questions[number], [items[place] for place in sequence]
        lettered = list(zip(_LETTERS, options, strict=False))
        if protocol == "two-images":
            lines = "\n".join(f"Caption {letter}: {text_of(caption)}" for letter, caption in lettered)
            first, second = question.images
            parts = ("Image 1:", first, "Image 2:", second, filled(prompts.question, lines))
            requests.append(Turn(number, "both", 0, parts, sequence))
        elif items is question.captions:
            shown = tuple(map(text_of, options))
            lines = "\n".join(f"({letter}) {text_of(caption)}" for letter, caption in lettered)
            words = filled(prompts.question, lines)
            for place, image in enumerate(question.images):
                requests.append(Turn(number, "caption", place, (image, words), sequence, shown))
        else:
            # Each letter stands in front of its image.
            labelled = [part for letter, image in lettered for part in (f"({letter})", image)]
            for place, caption in enumerate(question.captions):
                parts = (*labelled, filled(prompts.image_question, text_of(caption)))
                requests.append(Turn(number, "image", place, parts, sequence))
    return requests


def question_and_answers(captions: Sequence[Caption]) -> tuple[str, tuple[str, ...]]:
    """The question that captions begin with alike, up to a blank, and the answer behind it of each."""
    texts = [text_of(caption) for caption in captions]
    words = [text.split(" ") for text in texts]
    differing = (place for place, column in enumerate(zip(*words, strict=False)) if len(set(column)) > 1)
    first = next(differing, 0)
    alike, answers = " ".join(words[0][:first]), tuple(" ".join(caption[first:]).strip() for caption in words)
    if not alike.strip().endswith(_ENDS) or not all(answers):
        problem = "the captions are not one question with different answers"
        given = " | ".join(texts)
        hint = "the protocols yes-no and choose ask about any captions"
        raise InputError(problem, given=given, allowed="choices such as those of naturalbench-vqa", hint=hint)
    return alike, answers


def picked(question: QuestionItems, answers: Sequence[tuple[Turn, str | None]]) -> Picks:
    """What the answers to a question's turns pick; -1 where a text is None or says nothing."""
    captions = [-1] * (len(question.images) if len(question.captions) > 1 else 0)
    images = [-1] * (len(question.captions) if len(question.images) > 1 else 0)
    for turn, text in answers:
        positions = None if text is None else turn.read(text)
        if positions is None:
            continue
        if turn.target == "both":
            captions = list(positions)
            images = [positions.index(caption) for caption in (0, 1)]
        elif turn.target == "caption":
            captions[turn.place] = positions[0]
        else:
            images[turn.place] = positions[0]
    return Picks(tuple(captions), tuple(images))


def option_orders(options: Sequence[Sequence[str]], *, order: str, seed: int) -> list[tuple[int, ...]]:
    """For each list of options the order in which they are shown: places of the list, first shown first.

    >>> option_orders([("a", "b")] * 2, order="given", seed=0)
    [(0, 1), (0, 1)]
    >>> found = option_orders([(str(i), "x") for i in range(100)], order="balanced", seed=0)
    >>> sum(first == 0 for first, _ in found)
    50
    """
    sizes = list(map(len, options))
    if order == "given":
        return [tuple(range(size)) for size in sizes]
    keyed = list(zip([digest_value([seed, *listed]) for listed in options], sizes, strict=True))
    if order == "seeded":
        drawn = (np.random.default_rng(int(key, 16)).permutation(size) for key, size in keyed)
        return [tuple(positions.tolist()) for positions in drawn]
    # The same options are turned alike; others one place further than those before them.
    rank: dict[str, int] = {}
    for size in sorted(set(sizes)):
        of_size = sorted({key for key, other in keyed if other == size})
        rank |= {key: place % size for place, key in enumerate(of_size)}
    return [tuple((place + rank[key]) % size for place in range(size)) for key, size in keyed]


# Readings of answers: None for a text that does not say, which is counted and never guessed.
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
    """What a reasoning model says behind its thinking; "" where that has no end.

    >>> [after_thinking(text) for text in ("<think>Yes, a cat? No.</think> No.", "<think>Yes", "Yes")]
    ['No.', '', 'Yes']
    """
    marks = list(_THINKING.finditer(text))
    if not marks:
        return text
    return text[marks[-1].end() :].strip() if marks[-1][1] else ""


def yes_or_no(text: str) -> bool | None:
    """The first word of the text that is yes or no, in any case (NaturalBench, `naturalbench_vqa.py`).

    >>> yes_or_no("Yes, no doubt."), yes_or_no("NO"), yes_or_no("I cannot tell; nothing is known.")
    (True, False, None)
    """
    position = first_named(text, ("yes", "no"))
    return None if position is None else position == 0


def first_named(text: str, answers: Sequence[str]) -> int | None:
    """The place of the answer named first, in any case; "a" counts as "A" (`naturalbench_vqa.py`)."""
    words = "|".join(re.escape(answer) for answer in answers)
    match = re.search(rf"(?<!\w)({words})(?!\w)", text, re.IGNORECASE)
    return None if match is None else [answer.lower() for answer in answers].index(match.group(1).lower())


def option_letter(text: str, options: Sequence[str]) -> int | None:
    r"""The place of the option that an answer names; None where it names none, or several alike.

    The last letter that is given as the answer counts first ("\boxed{B}", "I think it's A"), then one that
    opens the text, then the only marked one, then the text of an option. The article "A" at the start is no
    letter.

    >>> two = ["a cat on a mat", "a mat on a cat"]
    >>> [option_letter(text, two) for text in ("B", "(A) a cat", "It shows (B).", "A mat on a cat.")]
    [1, 0, 1, 1]
    >>> [option_letter(text, two) for text in ("I think it's A", r"So \boxed{B}", "(A) is odd. Answer: B")]
    [0, 1, 1]
    >>> [option_letter(text, two) for text in ("(A) or (B)?", "A dog", "C", "Both (A) and (B)")]
    [None, None, None, None]
    """
    plain = text.replace("*", "").replace("`", "").strip()
    letters = _LETTERS[: len(options)]
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

    All spellings of each are summed. A side that is not listed gets the least listed log-probability, an
    upper bound of its own. None where neither is listed.

    >>> yes, no = yes_no_logprobs([("Yes", math.log(0.5)), (" yes", math.log(0.25)), ("No", math.log(0.2))])
    >>> round(math.exp(yes), 6), round(math.exp(no), 6)
    (0.75, 0.2)
    >>> yes_no_logprobs([("The", -0.1), ("A", -3.0)]) is None
    True
    """
    named = [(token.strip().strip("Ġ▁").lower(), logprob) for token, logprob in top]
    both = [[logprob for word, logprob in named if word == wanted] for wanted in ("yes", "no")]
    if not any(both):
        return None
    least = min(logprob for _, logprob in top)
    yes, no = (_log_sum(values) if values else least for values in both)
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
