"""Scorers that answer a question as a whole: all of its images and captions at once, and what they pick.

A generative model that is shown both captions of an image names one of them and gives no score to a pair. The
engine (`counterfoil.engine.run`) hands over the items of questions and turns picks into right and wrong.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from counterfoil.data.records import Caption, Image
from counterfoil.scorers.base import Identified

#: What becomes of questions without an answer, as in `Options.unanswered`.
Unanswered = Literal["refuse", "wrong", "leave-out"]


@dataclass(frozen=True)
class QuestionItems:
    """The images and captions of one question: two of each of a quad; of a choice one and its candidates."""

    images: tuple[Image, ...]
    captions: tuple[Caption, ...]


@dataclass(frozen=True)
class Picks:
    """What was picked in one question: places among its items, -1 where the answer is refused or unread.

    `captions[i]` is the caption picked for image i, empty where there is one caption; `images[c]` the image
    picked for caption c, empty where there is one image.

    >>> Picks((0, 1), (0, -1)).answered
    False
    """

    captions: tuple[int, ...]
    images: tuple[int, ...]

    @property
    def answered(self) -> bool:
        """Whether everything that was asked has an answer."""
        return min((*self.captions, *self.images)) >= 0


@runtime_checkable
class QuestionScorer(Identified, Protocol):
    """Once per question, with its items together. A scorer declares the ability "picks" in `does`."""

    #: What becomes of questions without an answer.
    unanswered: Unanswered

    def pick(self, questions: Sequence[QuestionItems]) -> Iterator[Picks]:
        """What is picked in each question, in order; a position says nothing of which option is right."""
        ...
