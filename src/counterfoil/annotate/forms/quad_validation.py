"""Validation of a quad by another person than its author (Winoground section 3, first condition)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from counterfoil.annotate.forms.base import Cell, FormField, Option, Shown, WorkItem, WorkPage, needed

#: The values: the first caption, the second, both or none of them as well as the other.
FIRST, SECOND, EQUAL = "first", "second", "equal"


@dataclass(frozen=True)
class ValidateQuad:
    """Two images with the same two captions each; for both, which caption fits better.

    A quad holds where `first_image` is answered by "first" and `second_image` by "second". `author` is the
    hash of the person who wrote it, which is not shown; that person does not get the item.
    """

    name: ClassVar[str] = "quad-validation"
    summary: ClassVar[str] = "which of two captions fits each of two images, asked of another than the author"
    version: ClassVar[int] = 1
    columns: ClassVar[Mapping[str, Cell]] = {
        "first_image": "image",
        "second_image": "image",
        "first_caption": "text",
        "second_caption": "text",
        "author": "text",
    }
    main: ClassVar[str] = "first_image"
    instructions: ClassVar[str] = (
        "For each of two images, choose the caption that fits it **better**. The captions differ in the "
        "order of their words, so read them with care. If neither fits better, say so."
    )
    seconds: ClassVar[float] = 15.0

    def page(self, item: WorkItem) -> WorkPage:
        """Both images, and of each the question which caption fits better."""
        options = (
            Option(FIRST, texts=(needed(item, "first_caption"),)),
            Option(SECOND, texts=(needed(item, "second_caption"),)),
            Option(EQUAL, "Neither fits better"),
        )
        shown = (
            Shown("image", needed(item, "first_image"), "Image A"),
            Shown("image", needed(item, "second_image"), "Image B"),
        )
        fields = [
            FormField(
                name,
                f"Which caption fits image {letter} better?",
                options=options,
                shuffled=True,
                exchangeable=True,
                last=1,
            )
            for name, letter in (("first_image", "A"), ("second_image", "B"))
        ]
        return WorkPage(shown, tuple(fields))

    def check(self, item: WorkItem, answer: Mapping[str, Any]) -> None:
        """Every answer of sound fields is sound: people may find one caption better for both images."""
