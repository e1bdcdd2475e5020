"""Yes or no: does a caption match an image (Winoground section 4.3 and appendix E)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from counterfoil.annotate.forms.base import Cell, FormField, Option, Shown, WorkItem, WorkPage, needed


@dataclass(frozen=True)
class YesNo:
    """One image and one caption; answers "yes" and "no"."""

    name: ClassVar[str] = "yes-no"
    summary: ClassVar[str] = "does the caption match the image, yes or no"
    version: ClassVar[int] = 1
    columns: ClassVar[Mapping[str, Cell]] = {"image": "image", "caption": "text"}
    main: ClassVar[str] = "match"
    instructions: ClassVar[str] = (
        "Decide whether the caption matches the image. Pay close attention to the order of the words."
    )
    seconds: ClassVar[float] = 4.0

    def page(self, item: WorkItem) -> WorkPage:
        """The image, the caption, and the question whether they match."""
        shown = (
            Shown("image", needed(item, "image"), "Image"),
            Shown("text", needed(item, "caption"), "Caption"),
        )
        options = Option("yes", "Yes"), Option("no", "No")
        return WorkPage(shown, (FormField("match", "Does the caption match the image?", options=options),))

    def check(self, item: WorkItem, answer: Mapping[str, Any]) -> None:
        """Every answer of sound fields is sound."""
