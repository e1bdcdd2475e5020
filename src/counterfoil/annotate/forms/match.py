"""How well a caption matches an image, in four answers, and why not (ECCV Caption section 3.2 and B.1)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from counterfoil.annotate.forms.base import Cell, FormField, Option, Shown, WorkItem, WorkPage, needed

#: The four answers, as `data.judgements.gain_of` reads them. There is no middle, so that none can hide there.
FULLY, PARTLY, MOSTLY_NOT, NOT = "100% YES", "Partially YES", "Mostly NO", "100% NO"
#: What is right of a pair that belongs together, and of one that does not.
POSITIVE, NEGATIVE = (FULLY, PARTLY), (MOSTLY_NOT, NOT)
#: The shortcoming of which it is asked what exactly is wrong.
WRONG = "wrong"
_OTHER = "other"
_SHORTCOMINGS = (
    Option("absent", "It names something that is not in the image."),
    Option("lacking", "It leaves out the main things in the image."),
    Option(WRONG, "It names the main things but gets them wrong (how many, what colour, what they do, …)."),
    Option("language", "Its grammar is wrong, or it cannot be understood."),
)
_ERRORS = (
    ("quantity", "Quantity"),
    ("appearance", "Colour, texture or material"),
    ("class", "Species or class of object"),
    ("gender", "Gender"),
    ("age", "Age"),
    ("action", "Action"),
    ("emotion", "Emotion"),
    ("location", "Location"),
    ("orientation", "Orientation"),
    (_OTHER, "Something else"),
)


@dataclass(frozen=True)
class MatchGrade:
    """One image and one caption, and an answer of four; the reasons are asked for where it is in between.

    With `rationale`, the two answers in between open `shortcomings` (one or more), of which "wrong" opens
    `errors` (one or more), of which "other" opens `error` (a text). ECCV Caption left these questions out in
    its second stage, since they were of little use; `rationale` off does so.
    """

    name: ClassVar[str] = "match"
    summary: ClassVar[str] = "how well the caption matches the image, in four answers, and why not"
    version: ClassVar[int] = 1
    columns: ClassVar[Mapping[str, Cell]] = {"image": "image", "caption": "text"}
    main: ClassVar[str] = "match"
    instructions: ClassVar[str] = (
        "Say how well the description matches the image.\n\n"
        "* **100 % yes**: all of it is right.\n"
        "* **Partly yes, but**: it is right on the whole, with a shortcoming.\n"
        "* **Mostly no, because**: some of it is right, and it is wrong on the whole.\n"
        "* **100 % no**: it has nothing to do with the image."
    )
    seconds: ClassVar[float] = 12.0

    rationale: bool = field(default=True, metadata={"help": "Whether people are asked what falls short."})

    def page(self, item: WorkItem) -> WorkPage:
        """The image, the caption, the four answers, and the questions that some of them open."""
        shown = (
            Shown("image", needed(item, "image"), "Image"),
            Shown("text", needed(item, "caption"), "Description"),
        )
        partly, mostly = ("Partly yes, but …", "Mostly no, because …") if self.rationale else _PLAIN
        options = (
            Option(FULLY, "100 % yes"),
            Option(PARTLY, partly),
            Option(MOSTLY_NOT, mostly),
            Option(NOT, "100 % no"),
        )
        match = FormField(
            "match",
            "Does the description match the image?",
            options=options,
            level="ordinal",
            coarser={"yes or no": dict.fromkeys(POSITIVE, "yes") | dict.fromkeys(NEGATIVE, "no")},
        )
        if not self.rationale:
            return WorkPage(shown, (match,))
        shortcomings = FormField(
            "shortcomings",
            "What falls short in the description? Choose all that apply.",
            "many",
            _SHORTCOMINGS,
            when={"match": (PARTLY, MOSTLY_NOT)},
        )
        errors = FormField(
            "errors",
            "What is wrong? Choose all that apply.",
            "many",
            tuple(Option(value, label) for value, label in _ERRORS),
            when={"shortcomings": (WRONG,)},
        )
        error = FormField("error", "What else is wrong?", "text", when={"errors": (_OTHER,)}, longest=200)
        return WorkPage(shown, (match, shortcomings, errors, error))

    def check(self, item: WorkItem, answer: Mapping[str, Any]) -> None:
        """Every answer of sound fields is sound."""


_PLAIN = ("Partly yes", "Mostly no")
