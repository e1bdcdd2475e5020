"""Forms about one image and one caption: whether, how well, and in which words they fit."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from counterfoil.annotate.forms.base import (
    AnswerOption,
    Cell,
    FormField,
    WorkForm,
    WorkItem,
    WorkPage,
    image_and_caption,
    tagged,
)
from counterfoil.errors import InputError
from counterfoil.inputs.fields import setting

#: The four answers, as `data.judgements.gain_of` reads them. There is no middle, so that none can hide there.
FULLY, PARTLY, MOSTLY_NOT, NOT = "100% YES", "Partially YES", "Mostly NO", "100% NO"
#: What is right of a pair that belongs together, and of one that does not.
POSITIVE, NEGATIVE = (FULLY, PARTLY), (MOSTLY_NOT, NOT)
#: Whether all of a caption is right, and the shortcoming of which it is asked what exactly is wrong.
RIGHT, WRONG = "right", "wrong"
_OTHER = "other"
_SHORTCOMINGS = (
    AnswerOption("absent", "It names something that is not in the image."),
    AnswerOption("lacking", "It leaves out the main things in the image."),
    AnswerOption(
        WRONG, "It names the main things but gets them wrong (how many, what colour, what they do, …)."
    ),
    AnswerOption("language", "Its grammar is wrong, or it cannot be understood."),
)
_ERRORS = (
    AnswerOption("quantity", "Quantity"),
    AnswerOption("appearance", "Colour, texture or material"),
    AnswerOption("class", "Species or class of object"),
    AnswerOption("gender", "Gender"),
    AnswerOption("age", "Age"),
    AnswerOption("action", "Action"),
    AnswerOption("emotion", "Emotion"),
    AnswerOption("location", "Location"),
    AnswerOption("orientation", "Orientation"),
    AnswerOption(_OTHER, "Something else"),
)
#: The most steps of a scale that one key each can choose.
_MOST = 9
_OF_FOUR = (
    "It has nothing to do with the image",
    "It fits a few things in the image",
    "It fits the image with some errors",
    "It describes the image without errors",
)
#: What a caption is called beside its image, where words of it are marked.
_CAPTION = "Caption"


@dataclass(frozen=True)
class YesNo(WorkForm):
    """One image and one caption; answers "yes" and "no" (Winoground section 4.3 and appendix E)."""

    name = "yes-no"
    summary = "does the caption match the image, yes or no"
    columns: ClassVar[Mapping[str, Cell]] = {"image": "image", "caption": "text"}
    main = "match"
    instructions = (
        "Decide whether the caption matches the image. Pay close attention to the order of the words."
    )
    seconds = 4.0

    def page(self, item: WorkItem) -> WorkPage:
        """The image, the caption, and the question whether they match."""
        options = AnswerOption("yes", "Yes"), AnswerOption("no", "No")
        match = FormField("match", "Does the caption match the image?", options=options)
        return WorkPage(image_and_caption(item, _CAPTION), (match,))


@dataclass(frozen=True)
class MatchGrade(WorkForm):
    """One image and one caption, and an answer of four; the reasons are asked for where it is in between.

    With `rationale`, the two answers in between open `shortcomings` (one or more), of which "wrong" opens
    `errors` (one or more), of which "other" opens `error` (a text). ECCV Caption (section 3.2 and B.1) left
    these questions out in its second stage, since they were of little use; `rationale` off does so.
    """

    name = "match"
    summary = "how well the caption matches the image, in four answers, and why not"
    columns: ClassVar[Mapping[str, Cell]] = {"image": "image", "caption": "text"}
    main = "match"
    instructions = (
        "Say how well the description matches the image.\n\n"
        "* **100 % yes**: all of it is right.\n"
        "* **Partly yes, but**: it is right on the whole, with a shortcoming.\n"
        "* **Mostly no, because**: some of it is right, and it is wrong on the whole.\n"
        "* **100 % no**: it has nothing to do with the image."
    )
    seconds = 12.0

    rationale: bool = setting(True, "Whether people are asked what falls short.")

    def page(self, item: WorkItem) -> WorkPage:
        """The image, the caption, the four answers, and the questions that some of them open."""
        shown = image_and_caption(item)
        partly, mostly = "Partly yes", "Mostly no"
        if self.rationale:
            partly, mostly = "Partly yes, but …", "Mostly no, because …"
        labels = {FULLY: "100 % yes", PARTLY: partly, MOSTLY_NOT: mostly, NOT: "100 % no"}
        match = FormField(
            "match",
            "Does the description match the image?",
            options=tuple(AnswerOption(value, label) for value, label in labels.items()),
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
            _ERRORS,
            when={"shortcomings": (WRONG,)},
        )
        error = FormField("error", "What else is wrong?", "text", when={"errors": (_OTHER,)}, longest=200)
        return WorkPage(shown, (match, shortcomings, errors, error))


@dataclass(frozen=True)
class RateCaption(WorkForm):
    """One image and one caption, rated from 1 to `levels`; higher is better. Values are these numbers.

    References are not shown, so that ratings depend on the image alone. `labels` stand beside the steps,
    lowest first: one per step, or of the lowest and the highest only; without any, those of four steps are in
    words and others bare numbers. `level` says whether steps count as equally far from each other. Such are
    the ratings of Flickr8k-Expert and Composite (PAC-S section 4.2).
    """

    name = "rating"
    summary = "how well the caption describes the image, from 1 to 4 or another number"
    columns: ClassVar[Mapping[str, Cell]] = {"image": "image", "caption": "text"}
    main = "rating"
    instructions = (
        "Rate how well the description fits the image. Judge what it says, not how long or how elegant it is."
    )
    seconds = 8.0

    levels: int = setting(4, "How many steps the scale has, 2 to 9.")
    labels: tuple[str, ...] = setting(
        (), "What the steps mean, lowest first: all, or the lowest and highest."
    )
    level: Literal["ordinal", "interval"] = setting(
        "ordinal", "Whether steps are ordered only, or equally far apart."
    )

    def __post_init__(self) -> None:
        if not 2 <= self.levels <= _MOST:
            raise InputError("steps of a scale", given=self.levels, allowed=f"2 to {_MOST}")
        if len(self.labels) not in (0, 2, self.levels):
            allowed = f"none, 2 or one per step ({self.levels})"
            raise InputError("labels of a scale", given=len(self.labels), allowed=allowed)

    def page(self, item: WorkItem) -> WorkPage:
        """The image, the caption, and the scale, lowest first."""
        words = ("",) * self.levels
        if len(self.labels) == self.levels:
            words = self.labels
        elif self.labels:
            words = (self.labels[0], *[""] * (self.levels - 2), self.labels[1])
        elif self.levels == len(_OF_FOUR):
            words = _OF_FOUR
        options = tuple(
            AnswerOption(str(at + 1), f"{at + 1}: {word}" if word else str(at + 1))
            for at, word in enumerate(words)
        )
        rating = FormField(
            "rating", "How well does the description fit the image?", options=options, level=self.level
        )
        return WorkPage(image_and_caption(item), (rating,))


@dataclass(frozen=True)
class ErrorSpans(WorkForm):
    """One image and one caption: whether all of it is right, and if not, each wrong part with its kind.

    The answer has `verdict` ("right" or "wrong") and, where it is wrong, `errors`: one span or more,
    which do not overlap. Kinds of error default to what hard negatives change (objects, attributes,
    relations), counts and actions; ECCV Caption's finer list is `match`.
    """

    name = "error-spans"
    summary = "which words of the caption are wrong, and in what way"
    columns: ClassVar[Mapping[str, Cell]] = {"image": "image", "caption": "text"}
    main = "verdict"
    instructions = (
        "Mark every part of the caption that is wrong of the image, as short as you can, and say what kind "
        "of error it is. If all of it is right, say so.\n\n"
        "* What the caption leaves out is no error."
    )
    seconds = 15.0

    kinds: tuple[str, ...] = setting(
        ("object", "attribute", "relation", "count", "action", "other"), "Kinds of error."
    )

    def __post_init__(self) -> None:
        if not self.kinds or len(set(self.kinds)) < len(self.kinds):
            raise InputError("kinds of error", given=", ".join(self.kinds), allowed="one or more, each once")

    def page(self, item: WorkItem) -> WorkPage:
        """The image, the caption, whether it is right, and the spans that are not."""
        verdict = FormField(
            "verdict",
            "Is all of the caption right?",
            options=(AnswerOption(RIGHT, "Yes, no error"), AnswerOption(WRONG, "No, something is wrong")),
        )
        errors = FormField(
            "errors",
            "Mark each part that is wrong.",
            "spans",
            tagged(self.kinds),
            when={"verdict": (WRONG,)},
            text=_CAPTION,
        )
        return WorkPage(image_and_caption(item, _CAPTION), (verdict, errors))
