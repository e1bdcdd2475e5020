"""Forms in which one of several images, captions or rankings is chosen."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from counterfoil.annotate.forms.base import (
    Cell,
    Option,
    Shown,
    WorkForm,
    WorkItem,
    WorkPage,
    choice_of,
    needed,
)
from counterfoil.errors import DataError, InputError

#: The value of "none of them fits".
NONE = "none"
#: The values: the caption's own image, the other one, both, neither.
OWN, OTHER, BOTH, NEITHER = "image", "negative_image", "both", "neither"
#: The values: which ranking is preferred, or none.
FIRST, SECOND, SAME = "first", "second", "same"


@dataclass(frozen=True)
class BestOfK(WorkForm):
    """One caption and k images; the answer is the place of an image, from 0, or "none".

    Source: BiVLC, section 3, step 3, and appendix H.1.
    """

    name = "best-of-k"
    summary = "the best of several images for a caption, or none"
    columns: ClassVar[Mapping[str, Cell]] = {"caption": "text", "images": "images"}
    main = "best"
    instructions = (
        "Choose an image that shows what the description says. If several do, choose any of them; if none "
        "does, choose **None of them fits**.\n\n"
        "* All that the description says must be in the image.\n"
        "* Flaws of the drawing, such as odd faces, arms or hands, do not matter."
    )
    seconds = 8.0

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
        last = int(self.none)
        best = choice_of("best", "Which image fits the description?", options, last, coarser=coarser)
        return WorkPage((Shown("text", needed(item, "caption"), "Description"),), (best,))


@dataclass(frozen=True)
class WhichImage(WorkForm):
    """A caption, its own image and one made for another caption; a question stays where the own image fits.

    The answer is "image" (the own one), "negative_image" or "both", with the setting `neither` also
    "neither". People do not see which image is which, and sides are drawn (BiVLC section 3, step 4, and
    appendix H.1).
    """

    name = "which-image"
    summary = "which of two images fits the caption better, or both"
    columns: ClassVar[Mapping[str, Cell]] = {"caption": "text", "image": "image", "negative_image": "image"}
    main = "fits"
    instructions = (
        "Choose the image that the description fits better. If it fits both equally well, choose "
        "**Both**.\n\n"
        "* Flaws of the drawing, such as odd faces, arms or hands, do not matter."
    )
    seconds = 6.0

    neither: bool = field(default=False, metadata={"help": "Whether neither of them can be the answer."})

    def page(self, item: WorkItem) -> WorkPage:
        """The caption, both images in an order of each person's own, then "both"."""
        options = [Option(name, images=(needed(item, name),)) for name in (OWN, OTHER)]
        options.append(Option(BOTH, "Both, equally well"))
        if self.neither:
            options.append(Option(NEITHER, "Neither"))
        fits = choice_of("fits", "Which image fits the description better?", options, len(options) - 2)
        return WorkPage((Shown("text", needed(item, "caption"), "Description"),), (fits,))


@dataclass(frozen=True)
class ChooseOne(WorkForm):
    """One image with several captions, or one caption with several images; one of the several is chosen.

    The answer is its place, from 0. Each direction is a question of its own: `kind` says which, and items of
    one `instance` are given to different people (BiVLC section 4 and appendix H.1).
    """

    name = "choose"
    summary = "the caption that fits an image best, or the image that fits a caption best"
    columns: ClassVar[Mapping[str, Cell]] = {"images": "images", "captions": "texts"}
    main = "best"
    instructions = (
        "You see an image and several descriptions, or a description and several images. Choose the one "
        "that fits **best**.\n\n"
        "* Pay close attention to the order of the words.\n"
        "* Flaws of the drawing, such as odd faces, arms or hands, do not matter."
    )
    seconds = 7.0

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
        return WorkPage((shown,), (choice_of("best", prompt, options),))


@dataclass(frozen=True)
class PreferRanking(WorkForm):
    """A query and two rankings, of images (for a caption) or of captions (for an image), side by side.

    The query is `caption` or `image`, or there is none. The rankings are `first_images` and `second_images`,
    or `first_captions` and `second_captions`, each best first; a ranking of one is a plain preference between
    two. `first` and `second` name what made them, which is not shown: votes are about these names
    (Bradley-Terry, `counterfoil preferences`). The answer is "first", "second", and with `same` also "same"
    (ECCV Caption, appendix D.1).
    """

    name = "preference"
    summary = "which of two rankings of images or captions is better"
    columns: ClassVar[Mapping[str, Cell]] = {
        "first": "text",
        "second": "text",
        "caption": "text",
        "image": "image",
        "first_images": "images",
        "second_images": "images",
        "first_captions": "texts",
        "second_captions": "texts",
    }
    main = "better"
    instructions = (
        "Two systems searched for what fits, and each shows its results, the best one first. Choose the "
        "list of results that is better as a whole."
    )
    seconds = 15.0

    same: bool = field(default=False, metadata={"help": "Whether no preference can be the answer."})

    def page(self, item: WorkItem) -> WorkPage:
        """The query, both rankings in an order of each person's own, then "no preference"."""
        options = [self._ranking(item, side) for side in (FIRST, SECOND)]
        if bool(options[0].images) != bool(options[1].images):
            raise DataError("both rankings are of images, or both of captions", where=f"item '{item.id}'")
        for side in (FIRST, SECOND):
            needed(item, side)
        if item.cells[FIRST] == item.cells[SECOND]:
            raise DataError(
                "a preference is between two", where=f"item '{item.id}'", given=f"{item.cells[FIRST]} twice"
            )
        shown = []
        if item.cells.get("caption"):
            shown.append(Shown("text", item.cells["caption"], "Description searched for"))
        if item.cells.get("image"):
            shown.append(Shown("image", item.cells["image"], "Image searched for"))
        if self.same:
            options.append(Option(SAME, "No preference"))
        better = choice_of("better", "Which results are better?", options, int(self.same))
        return WorkPage(tuple(shown), (better,))

    def _ranking(self, item: WorkItem, side: str) -> Option:
        images = item.cells.get(f"{side}_images") or ()
        captions = item.cells.get(f"{side}_captions") or ()
        if bool(images) == bool(captions):
            raise DataError(
                f"the {side} ranking is of images or of captions",
                where=f"item '{item.id}'",
                given="both" if images else "neither",
            )
        return Option(side, images=tuple(images), texts=tuple(captions))
