"""Which of two rankings is the better one for a query (ECCV Caption appendix D.1)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from counterfoil.annotate.forms.base import Cell, FormField, Option, Shown, WorkItem, WorkPage, needed
from counterfoil.errors import DataError

#: The values: which ranking is preferred, or none.
FIRST, SECOND, SAME = "first", "second", "same"


@dataclass(frozen=True)
class PreferRanking:
    """A query and two rankings, of images (for a caption) or of captions (for an image), side by side.

    The query is `caption` or `image`, or there is none. The rankings are `first_images` and `second_images`,
    or `first_captions` and `second_captions`, each best first; a ranking of one is a plain preference between
    two. `first` and `second` name what made them, which is not shown: votes are about these names
    (Bradley-Terry, `counterfoil preferences`). The answer is "first", "second", and with `same` also "same".
    """

    name: ClassVar[str] = "preference"
    summary: ClassVar[str] = "which of two rankings of images or captions is better"
    version: ClassVar[int] = 1
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
    main: ClassVar[str] = "better"
    instructions: ClassVar[str] = (
        "Two systems searched for what fits, and each shows its results, the best one first. Choose the "
        "list of results that is better as a whole."
    )
    seconds: ClassVar[float] = 15.0

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
        better = FormField(
            "better",
            "Which results are better?",
            options=tuple(options),
            shuffled=True,
            exchangeable=True,
            last=int(self.same),
        )
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

    def check(self, item: WorkItem, answer: Mapping[str, Any]) -> None:
        """Every answer of sound fields is sound."""
