"""A form of work: which of several words fits an image. The page of every form is declared like this."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from counterfoil.annotate.forms.base import AnswerOption, Cell, FormField, Shown, WorkItem, WorkPage, needed
from counterfoil.annotate.forms.registry import WorkFormEntry

ENTRY = WorkFormEntry(
    name="example-mood",
    summary="which word the image makes one think of",
    target="counterfoil_example.mood:Mood",
)


@dataclass(frozen=True)
class Mood:
    """One image; the answer is one of the words."""

    name: ClassVar[str] = "example-mood"
    summary: ClassVar[str] = "which word the image makes one think of"
    version: ClassVar[int] = 1
    columns: ClassVar[Mapping[str, Cell]] = {"image": "image"}
    main: ClassVar[str] = "mood"
    instructions: ClassVar[str] = "Choose the word that comes to your mind first."
    seconds: ClassVar[float] = 3.0

    words: tuple[str, ...] = field(default=("calm", "cheerful", "gloomy"), metadata={"help": "The words."})

    def page(self, item: WorkItem) -> WorkPage:
        """The image, and the words in an order of each person's own."""
        options = tuple(AnswerOption(word, word) for word in self.words)
        mood = FormField("mood", "Which word fits the image?", options=options, shuffled=True)
        return WorkPage((Shown("image", needed(item, "image"), "Image"),), (mood,))

    def check(self, item: WorkItem, answer: Mapping[str, Any]) -> None:
        """Every answer of sound fields is sound."""
