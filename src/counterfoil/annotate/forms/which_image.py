"""Which of two images fits a caption, or both (BiVLC section 3, step 4, and appendix H.1)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from counterfoil.annotate.forms.base import Cell, FormField, Option, Shown, WorkItem, WorkPage, needed

#: The values: the caption's own image, the other one, both, neither.
OWN, OTHER, BOTH, NEITHER = "image", "negative_image", "both", "neither"


@dataclass(frozen=True)
class WhichImage:
    """A caption, its own image and one made for another caption; a question stays where the own image fits.

    The answer is "image" (the own one), "negative_image" or "both", with the setting `neither` also
    "neither". People do not see which image is which, and sides are drawn.
    """

    name: ClassVar[str] = "which-image"
    summary: ClassVar[str] = "which of two images fits the caption better, or both"
    version: ClassVar[int] = 1
    columns: ClassVar[Mapping[str, Cell]] = {"caption": "text", "image": "image", "negative_image": "image"}
    main: ClassVar[str] = "fits"
    instructions: ClassVar[str] = (
        "Choose the image that the description fits better. If it fits both equally well, choose "
        "**Both**.\n\n"
        "* Flaws of the drawing, such as odd faces, arms or hands, do not matter."
    )
    seconds: ClassVar[float] = 6.0

    neither: bool = field(default=False, metadata={"help": "Whether neither of them can be the answer."})

    def page(self, item: WorkItem) -> WorkPage:
        """The caption, both images in an order of each person's own, then "both"."""
        options = [Option(name, images=(needed(item, name),)) for name in (OWN, OTHER)]
        options.append(Option(BOTH, "Both, equally well"))
        if self.neither:
            options.append(Option(NEITHER, "Neither"))
        fits = FormField(
            "fits",
            "Which image fits the description better?",
            options=tuple(options),
            shuffled=True,
            exchangeable=True,
            last=len(options) - 2,
        )
        return WorkPage((Shown("text", needed(item, "caption"), "Description"),), (fits,))

    def check(self, item: WorkItem, answer: Mapping[str, Any]) -> None:
        """Every answer of sound fields is sound."""
