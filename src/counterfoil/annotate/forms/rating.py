"""How well a caption describes an image, on a scale (Flickr8k-Expert, Composite; PAC-S section 4.2)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from counterfoil.annotate.forms.base import Cell, FormField, Option, Shown, WorkItem, WorkPage, needed
from counterfoil.errors import InputError

#: The most steps of a scale that one key each can choose.
_MOST = 9
_OF_FOUR = (
    "It has nothing to do with the image",
    "It fits a few things in the image",
    "It fits the image with some errors",
    "It describes the image without errors",
)


@dataclass(frozen=True)
class RateCaption:
    """One image and one caption, rated from 1 to `levels`; higher is better. Values are these numbers.

    References are not shown, so that ratings depend on the image alone. `labels` stand beside the steps,
    lowest first: one per step, or of the lowest and the highest only; without any, those of four steps are in
    words and others bare numbers. `level` says whether steps count as equally far from each other.
    """

    name: ClassVar[str] = "rating"
    summary: ClassVar[str] = "how well the caption describes the image, from 1 to 4 or another number"
    version: ClassVar[int] = 1
    columns: ClassVar[Mapping[str, Cell]] = {"image": "image", "caption": "text"}
    main: ClassVar[str] = "rating"
    instructions: ClassVar[str] = (
        "Rate how well the description fits the image. Judge what it says, not how long or how elegant it is."
    )
    seconds: ClassVar[float] = 8.0

    levels: int = field(default=4, metadata={"help": "How many steps the scale has, 2 to 9."})
    labels: tuple[str, ...] = field(
        default=(), metadata={"help": "What the steps mean, lowest first: all, or the lowest and highest."}
    )
    level: Literal["ordinal", "interval"] = field(
        default="ordinal", metadata={"help": "Whether steps are ordered only, or equally far apart."}
    )

    def __post_init__(self) -> None:
        if not 2 <= self.levels <= _MOST:
            raise InputError("steps of a scale", given=self.levels, allowed=f"2 to {_MOST}")
        if len(self.labels) not in (0, 2, self.levels):
            raise InputError(
                "labels of a scale",
                given=len(self.labels),
                allowed=f"none, 2 or one per step ({self.levels})",
            )

    def page(self, item: WorkItem) -> WorkPage:
        """The image, the caption, and the scale, lowest first."""
        shown = (
            Shown("image", needed(item, "image"), "Image"),
            Shown("text", needed(item, "caption"), "Description"),
        )
        options = tuple(
            Option(str(at + 1), f"{at + 1}: {word}" if word else str(at + 1))
            for at, word in enumerate(self._words)
        )
        rating = FormField(
            "rating", "How well does the description fit the image?", options=options, level=self.level
        )
        return WorkPage(shown, (rating,))

    @property
    def _words(self) -> tuple[str, ...]:
        if len(self.labels) == self.levels:
            return self.labels
        if self.labels:
            return (self.labels[0], *[""] * (self.levels - 2), self.labels[1])
        return _OF_FOUR if self.levels == len(_OF_FOUR) else ("",) * self.levels

    def check(self, item: WorkItem, answer: Mapping[str, Any]) -> None:
        """Every answer of sound fields is sound."""
