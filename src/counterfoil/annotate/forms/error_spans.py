"""Which words of a caption are wrong of an image, and in what way; or that none is."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from counterfoil.annotate.forms.base import Cell, FormField, Option, Shown, WorkItem, WorkPage, needed
from counterfoil.errors import InputError

#: The values of the first question.
RIGHT, WRONG = "right", "wrong"
_CAPTION = "Caption"


@dataclass(frozen=True)
class ErrorSpans:
    """One image and one caption: whether all of it is right, and if not, each wrong part with its kind.

    The answer has `verdict` ("right" or "wrong") and, where it is wrong, `errors`: one span or more,
    which do not overlap. Kinds of error default to what hard negatives change (objects, attributes,
    relations), counts and actions; ECCV Caption's finer list is `match`.
    """

    name: ClassVar[str] = "error-spans"
    summary: ClassVar[str] = "which words of the caption are wrong, and in what way"
    version: ClassVar[int] = 1
    columns: ClassVar[Mapping[str, Cell]] = {"image": "image", "caption": "text"}
    main: ClassVar[str] = "verdict"
    instructions: ClassVar[str] = (
        "Mark every part of the caption that is wrong of the image, as short as you can, and say what kind "
        "of error it is. If all of it is right, say so.\n\n"
        "* What the caption leaves out is no error."
    )
    seconds: ClassVar[float] = 15.0

    kinds: tuple[str, ...] = field(
        default=("object", "attribute", "relation", "count", "action", "other"),
        metadata={"help": "Kinds of error."},
    )

    def __post_init__(self) -> None:
        if not self.kinds or len(set(self.kinds)) < len(self.kinds):
            raise InputError("kinds of error", given=", ".join(self.kinds), allowed="one or more, each once")

    def page(self, item: WorkItem) -> WorkPage:
        """The image, the caption, whether it is right, and the spans that are not."""
        shown = (
            Shown("image", needed(item, "image"), "Image"),
            Shown("text", needed(item, "caption"), _CAPTION),
        )
        verdict = FormField(
            "verdict",
            "Is all of the caption right?",
            options=(Option(RIGHT, "Yes, no error"), Option(WRONG, "No, something is wrong")),
        )
        errors = FormField(
            "errors",
            "Mark each part that is wrong.",
            "spans",
            tuple(Option(kind, kind) for kind in self.kinds),
            when={"verdict": (WRONG,)},
            text=_CAPTION,
        )
        return WorkPage(shown, (verdict, errors))

    def check(self, item: WorkItem, answer: Mapping[str, Any]) -> None:
        """Every answer of sound fields is sound."""
