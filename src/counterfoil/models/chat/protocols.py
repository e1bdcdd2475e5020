"""Protocols of questions to generative models: the prompts, the order of options, and what an answer picks.

Papers mean different things by asking a model a benchmark, so each way has a name:

* `yes-no`: one image and one caption at a time, does the image show it? Each pair gets a score.
* `choose`: one image with the letters of k captions, or one caption with the letters of k images; the model
  names one. A quad is four such questions (ColorSwap and VisMin ask so).
* `two-images`: both images and both captions of a quad in one request; the model names the matching.
* `answer`: one image and a question, where the captions of a choice are one question with different answers
  behind it; the first answer in the text counts (NaturalBench).

A prompt is made of texts and images in order; how they travel, and to which model, is decided elsewhere.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from counterfoil.benchmarks.records import Caption, Image
from counterfoil.errors import InputError
from counterfoil.models.base import Picks, QuestionItems, text_of
from counterfoil.models.chat.parsing import first_named, matching, option_letter
from counterfoil.store import digest_value

PROTOCOLS = ("yes-no", "choose", "two-images", "answer")
ORDERS = ("seeded", "balanced", "given")

#: The texts of a prompt, and its images, in order.
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
    """The words of a protocol; each template has one {} for the caption or the list of captions.

    >>> Prompts.of("yes-no", question="Is this {}?", where="chat:URL#MODEL").question
    'Is this {}?'
    """

    protocol: str
    question: str
    #: Of `choose`, where images are the options.
    image_question: str = ""

    @classmethod
    def of(cls, protocol: str, *, question: str = "", image_question: str = "", where: str) -> "Prompts":
        """The protocol's own words where none are given; raises `InputError` for a template without {}."""
        if image_question and protocol != "choose":
            raise InputError(
                "image_question belongs to another protocol", where=where, given=protocol, allowed="choose"
            )
        prompts = cls(
            protocol,
            question or _QUESTION[protocol],
            (image_question or _IMAGE_QUESTION) if protocol == "choose" else "",
        )
        for name, text in (("question", prompts.question), ("image_question", prompts.image_question)):
            if text and text.count("{}") != 1:
                raise InputError(
                    f"{name} needs one {{}} for the caption",
                    where=where,
                    given=text,
                    allowed=_QUESTION[protocol],
                )
        return prompts

    def about_pair(self, image: Image, caption: Caption) -> Parts:
        """One image and the question about one caption."""
        return (image, _filled(self.question, text_of(caption)))

    def among_captions(self, image: Image, captions: Sequence[Caption]) -> Parts:
        """One image and the letters of captions."""
        lines = (
            f"({letter}) {text_of(caption)}" for letter, caption in zip(_LETTERS, captions, strict=False)
        )
        return (image, _filled(self.question, "\n".join(lines)))

    def among_images(self, caption: Caption, images: Sequence[Image]) -> Parts:
        """The letters of images, each in front of its image, and the question about one caption."""
        labelled = [
            part for letter, image in zip(_LETTERS, images, strict=False) for part in (f"({letter})", image)
        ]
        return (*labelled, _filled(self.image_question, text_of(caption)))

    def about_question(self, image: Image, captions: Sequence[Caption]) -> Parts:
        """One image and the question that its captions answer."""
        return (image, _filled(self.question, question_and_answers(captions)[0]))

    def about_both(self, images: Sequence[Image], captions: Sequence[Caption]) -> Parts:
        """Both images and both captions."""
        lines = (
            f"Caption {letter}: {text_of(caption)}"
            for letter, caption in zip(_LETTERS, captions, strict=False)
        )
        return ("Image 1:", images[0], "Image 2:", images[1], _filled(self.question, "\n".join(lines)))


def _filled(template: str, text: str) -> str:
    before, _, after = template.partition("{}")
    return before + text + after


@dataclass(frozen=True, eq=False)
class Turn:
    """One request about a question: its prompt, and the order in which its options stand.

    `target` says what is picked: the caption of image `place`, the image of caption `place`, or both.
    """

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
    """The requests that answer the questions under `choose` or `two-images`, question after question.

    The order of options depends on the options and `seed` alone: both images of a quad see their captions in
    one order, so that always answering A picks one right caption of two. `balanced` turns the order so that
    over these questions each option stands equally often in each place (to one), and `given` keeps the
    benchmark's order, in which the right option stands first. Raises `InputError` for questions that the
    protocol cannot ask.
    """
    for question in questions:
        shape = (len(question.captions), len(question.images))
        if prompts.protocol == "answer" and len(question.images) > 1:
            raise InputError(
                "answer asks about one image",
                given=f"{shape[0]} captions and {shape[1]} images",
                allowed="choices between answers; else the protocols choose and yes-no",
            )
        if prompts.protocol == "two-images" and shape != (2, 2):
            raise InputError(
                "two-images asks about two images and two captions at once",
                given=f"{shape[0]} captions and {shape[1]} images",
                allowed="quads; else the protocols choose and yes-no",
            )
        if max(shape) > len(_LETTERS):
            raise InputError(
                "more options than letters", given=max(shape), allowed=f"at most {len(_LETTERS)}; else yes-no"
            )
    if prompts.protocol == "answer":
        return [
            Turn(
                number,
                "caption",
                0,
                prompts.about_question(question.images[0], question.captions),
                tuple(range(len(question.captions))),
                answers=question_and_answers(question.captions)[1],
            )
            for number, question in enumerate(questions)
        ]
    # The lists of options of a question: its captions, then its images, where there are several.
    lists: list[Sequence[Caption] | Sequence[Image]] = []
    for question in questions:
        if prompts.protocol == "two-images":
            lists.append(question.captions)
        else:
            lists += [items for items in (question.captions, question.images) if len(items) > 1]
    orders = option_orders(
        [[text_of(item) if isinstance(item, Caption) else item.id for item in items] for items in lists],
        order=order,
        seed=seed,
    )
    requests: list[Turn] = []
    at = iter(orders)
    for number, question in enumerate(questions):
        if prompts.protocol == "two-images":
            own = next(at)
            captions = [question.captions[place] for place in own]
            requests.append(Turn(number, "both", 0, prompts.about_both(question.images, captions), own))
            continue
        if len(question.captions) > 1:
            own = next(at)
            captions = [question.captions[place] for place in own]
            shown = tuple(text_of(caption) for caption in captions)
            requests += [
                Turn(number, "caption", place, prompts.among_captions(image, captions), own, shown)
                for place, image in enumerate(question.images)
            ]
        if len(question.images) > 1:
            own = next(at)
            images = [question.images[place] for place in own]
            requests += [
                Turn(number, "image", place, prompts.among_images(caption, images), own)
                for place, caption in enumerate(question.captions)
            ]
    return requests


def question_and_answers(captions: Sequence[Caption]) -> tuple[str, tuple[str, ...]]:
    """The question that captions begin with alike, up to a blank, and the answer behind it of each.

    Raises `InputError` where they begin with no words in common that end as a question or an instruction
    does, or have nothing else.

    >>> question_and_answers([Caption("0", "Is it red? Yes"), Caption("1", "Is it red? No")])
    ('Is it red?', ('Yes', 'No'))
    """
    texts = [text_of(caption) for caption in captions]
    words = [text.split(" ") for text in texts]
    differing = (place for place, column in enumerate(zip(*words, strict=False)) if len(set(column)) > 1)
    first = next(differing, 0)
    alike, answers = " ".join(words[0][:first]), tuple(" ".join(caption[first:]).strip() for caption in words)
    if not alike.strip().endswith(_ENDS) or not all(answers):
        raise InputError(
            "the captions are not one question with different answers",
            given=" | ".join(texts),
            allowed="choices such as those of naturalbench-vqa",
            hint="the protocols yes-no and choose ask about any captions",
        )
    return alike, answers


def picked(question: QuestionItems, answers: Sequence[tuple[Turn, str | None]]) -> Picks:
    """What the answers to a question's turns pick; -1 where a text is None or says nothing."""
    captions = [-1] * (len(question.images) if len(question.captions) > 1 else 0)
    images = [-1] * (len(question.captions) if len(question.images) > 1 else 0)
    for turn, text in answers:
        places = None if text is None else turn.read(text)
        if places is None:
            continue
        if turn.target == "both":
            captions = list(places)
            images = [places.index(caption) for caption in (0, 1)]
        elif turn.target == "caption":
            captions[turn.place] = places[0]
        else:
            images[turn.place] = places[0]
    return Picks(tuple(captions), tuple(images))


def option_orders(options: Sequence[Sequence[str]], *, order: str, seed: int) -> list[tuple[int, ...]]:
    """For each list of options the order in which they are shown: places of the list, first shown first.

    >>> option_orders([("a", "b")] * 2, order="given", seed=0)
    [(0, 1), (0, 1)]
    >>> found = option_orders([(str(i), "x") for i in range(100)], order="balanced", seed=0)
    >>> sum(first == 0 for first, _ in found)
    50
    """
    if order == "given":
        return [tuple(range(len(listed))) for listed in options]
    keys = [digest_value([seed, *listed]) for listed in options]
    if order == "seeded":
        return [
            tuple(np.random.default_rng(int(key, 16)).permutation(len(listed)).tolist())
            for key, listed in zip(keys, options, strict=True)
        ]
    # The same options are turned alike; others one place further than those before them.
    rank: dict[str, int] = {}
    for size in sorted({len(listed) for listed in options}):
        of_size = sorted({key for key, listed in zip(keys, options, strict=True) if len(listed) == size})
        rank |= {key: place % size for place, key in enumerate(of_size)}
    return [
        tuple((place + rank[key]) % len(listed) for place in range(len(listed)))
        for key, listed in zip(keys, options, strict=True)
    ]
