"""The best of several images for a caption, or none (BiVLC section 3, step 3, and appendix H.1)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from counterfoil.annotate.forms.base import Cell, FormField, Option, Shown, WorkItem, WorkPage, needed
from counterfoil.errors import InputError

#: The value of "none of them fits".
NONE = "none"


@dataclass(frozen=True)
class BestOfK:
    """One caption and k images; the answer is the place of an image, from 0, or "none"."""

    name: ClassVar[str] = "best-of-k"
    summary: ClassVar[str] = "the best of several images for a caption, or none"
    version: ClassVar[int] = 1
    columns: ClassVar[Mapping[str, Cell]] = {"caption": "text", "images": "images"}
    main: ClassVar[str] = "best"
    instructions: ClassVar[str] = (
        "Choose an image that shows what the description says. If several do, choose any of them; if none "
        "does, choose **None of them fits**.\n\n"
        "* All that the description says must be in the image.\n"
        "* Flaws of the drawing, such as odd faces, arms or hands, do not matter."
    )
    seconds: ClassVar[float] = 8.0

    none: bool = field(default=True, metadata={"help": "Whether none of them can be the answer."})

    def page(self, item: WorkItem) -> WorkPage:
        """The caption, then the images in an order of each person's own, then "none"."""
        images = needed(item, "images")
        if len(images) < 2:
            raise InputError(
                "a choice needs images", where=f"item '{item.id}'", given=len(images), allowed="2 or more"
            )
        options = tuple(Option(str(at), images=(image,)) for at, image in enumerate(images))
        coarser: dict[str, dict[str, str]] = {}
        if self.none:
            # Several images may fit, so that people can choose another one and agree (BiVLC, appendix H.3).
            coarser["any or none"] = {**{option.value: "any" for option in options}, NONE: NONE}
            options = (*options, Option(NONE, "None of them fits"))
        best = FormField(
            "best",
            "Which image fits the description?",
            options=options,
            shuffled=True,
            exchangeable=True,
            last=int(self.none),
            coarser=coarser,
        )
        return WorkPage((Shown("text", needed(item, "caption"), "Description"),), (best,))

    def check(self, item: WorkItem, answer: Mapping[str, Any]) -> None:
        """Every answer of sound fields is sound."""
