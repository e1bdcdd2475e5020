"""The caption that fits an image, or the image that fits a caption (BiVLC section 4 and appendix H.1)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from counterfoil.annotate.forms.base import Cell, FormField, Option, Shown, WorkItem, WorkPage, needed
from counterfoil.errors import InputError


@dataclass(frozen=True)
class ChooseOne:
    """One image with several captions, or one caption with several images; one of the several is chosen.

    The answer is its place, from 0. Each direction is a question of its own: `kind` says which, and items of
    one `instance` are given to different people.
    """

    name: ClassVar[str] = "choose"
    summary: ClassVar[str] = "the caption that fits an image best, or the image that fits a caption best"
    version: ClassVar[int] = 1
    columns: ClassVar[Mapping[str, Cell]] = {"images": "images", "captions": "texts"}
    main: ClassVar[str] = "best"
    instructions: ClassVar[str] = (
        "You see an image and several descriptions, or a description and several images. Choose the one "
        "that fits **best**.\n\n"
        "* Pay close attention to the order of the words.\n"
        "* Flaws of the drawing, such as odd faces, arms or hands, do not matter."
    )
    seconds: ClassVar[float] = 7.0

    def page(self, item: WorkItem) -> WorkPage:
        """What there is one of, then what there are several of, in an order of each person's own."""
        images, captions = needed(item, "images"), needed(item, "captions")
        if (len(images) == 1) == (len(captions) == 1):
            raise InputError(
                "a choice has one image with several captions, or one caption with several images",
                where=f"item '{item.id}'",
                given=f"{len(images)} images, {len(captions)} captions",
            )
        if len(images) == 1:
            shown = Shown("image", images[0], "Image")
            prompt = "Which description fits the image best?"
            options = tuple(Option(str(at), texts=(text,)) for at, text in enumerate(captions))
        else:
            shown = Shown("text", captions[0], "Description")
            prompt = "Which image fits the description best?"
            options = tuple(Option(str(at), images=(image,)) for at, image in enumerate(images))
        return WorkPage(
            (shown,), (FormField("best", prompt, options=options, shuffled=True, exchangeable=True),)
        )

    def check(self, item: WorkItem, answer: Mapping[str, Any]) -> None:
        """Every answer of sound fields is sound."""
