"""The forms of work: about one image and one caption, several of them, rankings, or written quads."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from counterfoil.annotate.forms.base import (
    AnswerOption,
    Cell,
    FormField,
    Shown,
    WorkForm,
    WorkItem,
    WorkPage,
    choice_of,
    image_and_caption,
    labelled,
    needed,
    numbered,
    tagged,
)
from counterfoil.annotate.languages import package_text
from counterfoil.benchmarks.records import same_words
from counterfoil.errors import DataError, InputError
from counterfoil.inputs.fields import setting

#: The four answers, as `data.judgements.gain_of` reads them. There is no middle, so that none can hide there.
FULLY, PARTLY, MOSTLY_NOT, NOT = "100% YES", "Partially YES", "Mostly NO", "100% NO"
#: What is right of a pair that belongs together, and of one that does not.
POSITIVE, NEGATIVE = (FULLY, PARTLY), (MOSTLY_NOT, NOT)
#: Whether all of a caption is right, and the shortcoming of which it is asked what exactly is wrong.
RIGHT, WRONG = "right", "wrong"
_SHORTCOMINGS = {
    "absent": "It names something that is not in the image.",
    "lacking": "It leaves out the main things in the image.",
    WRONG: "It names the main things but gets them wrong (how many, what colour, what they do, …).",
    "language": "Its grammar is wrong, or it cannot be understood.",
}
#: What exactly can be wrong, by value.
_ERRORS = {
    "quantity": "Quantity",
    "appearance": "Colour, texture or material",
    "class": "Species or class of object",
    "gender": "Gender",
    "age": "Age",
    "action": "Action",
    "emotion": "Emotion",
    "location": "Location",
    "orientation": "Orientation",
    "other": "Something else",
}
#: What falls short in a caption of which some is right, each opened by an answer to the one before.
_WHY = (
    FormField(
        "shortcomings",
        "What falls short in the description? Choose all that apply.",
        "many",
        labelled(_SHORTCOMINGS),
        when={"match": (PARTLY, MOSTLY_NOT)},
    ),
    FormField(
        "errors",
        "What is wrong? Choose all that apply.",
        "many",
        labelled(_ERRORS),
        when={"shortcomings": (WRONG,)},
    ),
    FormField("error", "What else is wrong?", "text", when={"errors": ("other",)}, longest=200),
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
#: The value of "none of them fits".
NONE = "none"
#: The values: the caption's own image, and the other one.
OWN, OTHER = "image", "negative_image"
#: The values: which of two rankings is preferred, or which of two captions fits better, or none.
FIRST, SECOND, SAME, EQUAL = "first", "second", "same", "equal"
#: The longest caption that an author may write, in characters.
_LONGEST = 300


def instructions_of(form: str) -> str:
    """What people read before they begin, in Markdown: the file of the form in `instructions`."""
    return package_text("forms", "instructions", f"{form}.md")


@dataclass(frozen=True)
class YesNo(WorkForm):
    """One image and one caption; answers "yes" and "no" (Winoground section 4.3 and appendix E)."""

    name = "yes-no"
    summary = "does the caption match the image, yes or no"
    columns: ClassVar[Mapping[str, Cell]] = {"image": "image", "caption": "text"}
    main = "match"
    instructions = instructions_of(name)
    seconds = 4.0

    def page(self, item: WorkItem) -> WorkPage:
        options = labelled({"yes": "Yes", "no": "No"})
        match = FormField("match", "Does the caption match the image?", options=options)
        return WorkPage(image_and_caption(item, _CAPTION), (match,))


@dataclass(frozen=True)
class MatchGrade(WorkForm):
    """One image and one caption, and an answer of four; `rationale` asks for the reasons of those in between.

    ECCV Caption (section 3.2 and B.1) left the reasons out in its second stage: they were of little use.
    """

    name = "match"
    summary = "how well the caption matches the image, in four answers, and why not"
    columns: ClassVar[Mapping[str, Cell]] = {"image": "image", "caption": "text"}
    main = "match"
    instructions = instructions_of(name)
    seconds = 12.0

    rationale: bool = setting(True, "Whether people are asked what falls short.")

    def page(self, item: WorkItem) -> WorkPage:
        partly, mostly = "Partly yes", "Mostly no"
        if self.rationale:
            partly, mostly = "Partly yes, but …", "Mostly no, because …"
        labels = {FULLY: "100 % yes", PARTLY: partly, MOSTLY_NOT: mostly, NOT: "100 % no"}
        prompt, options = "Does the description match the image?", labelled(labels)
        coarser = {"yes or no": dict.fromkeys(POSITIVE, "yes") | dict.fromkeys(NEGATIVE, "no")}
        match = FormField("match", prompt, options=options, level="ordinal", coarser=coarser)
        return WorkPage(image_and_caption(item), (match, *(_WHY if self.rationale else ())))


@dataclass(frozen=True)
class RateCaption(WorkForm):
    """One image and one caption, rated from 1 to `levels`, higher is better; no references are shown.

    Such are the ratings of Flickr8k-Expert and Composite (PAC-S section 4.2).
    """

    name = "rating"
    summary = "how well the caption describes the image, from 1 to 4 or another number"
    columns: ClassVar[Mapping[str, Cell]] = {"image": "image", "caption": "text"}
    main = "rating"
    instructions = instructions_of(name)
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
        words = self.labels or (_OF_FOUR if self.levels == len(_OF_FOUR) else ("", ""))
        if len(words) < self.levels:
            words = (words[0], *[""] * (self.levels - 2), words[1])
        steps = {str(step): f"{step}: {word}" if word else str(step) for step, word in enumerate(words, 1)}
        prompt = "How well does the description fit the image?"
        rating = FormField("rating", prompt, options=labelled(steps), level=self.level)
        return WorkPage(image_and_caption(item), (rating,))


@dataclass(frozen=True)
class ErrorSpans(WorkForm):
    """One image and one caption: whether all of it is right, and if not, each wrong part with its kind."""

    name = "error-spans"
    summary = "which words of the caption are wrong, and in what way"
    columns: ClassVar[Mapping[str, Cell]] = {"image": "image", "caption": "text"}
    main = "verdict"
    instructions = instructions_of(name)
    seconds = 15.0

    kinds: tuple[str, ...] = setting(
        ("object", "attribute", "relation", "count", "action", "other"), "Kinds of error."
    )

    def __post_init__(self) -> None:
        if not self.kinds or len(set(self.kinds)) < len(self.kinds):
            raise InputError("kinds of error", given=", ".join(self.kinds), allowed="one or more, each once")

    def page(self, item: WorkItem) -> WorkPage:
        options = labelled({RIGHT: "Yes, no error", WRONG: "No, something is wrong"})
        verdict = FormField("verdict", "Is all of the caption right?", options=options)
        where: Any = {"when": {"verdict": (WRONG,)}, "text": _CAPTION}
        prompt = "Mark each part that is wrong."
        errors = FormField("errors", prompt, "spans", tagged(self.kinds), **where)
        return WorkPage(image_and_caption(item, _CAPTION), (verdict, errors))


@dataclass(frozen=True)
class BestOfK(WorkForm):
    """One caption and k images; the answer is the place of an image, from 0, or "none" (BiVLC, section 3,
    step 3, and appendix H.1).
    """

    name = "best-of-k"
    summary = "the best of several images for a caption, or none"
    columns: ClassVar[Mapping[str, Cell]] = {"caption": "text", "images": "images"}
    main = "best"
    instructions = instructions_of(name)
    seconds = 8.0

    none: bool = setting(True, "Whether none of them can be the answer.")

    def page(self, item: WorkItem) -> WorkPage:
        """The caption, then the images in an order of each person's own, then "none"."""
        images = needed(item, "images")
        if (n := len(images)) < 2:
            raise InputError("a choice needs images", where=f"item '{item.id}'", given=n, allowed="2 or more")
        options = numbered(images=images)
        coarser: dict[str, dict[str, str]] = {}
        if self.none:
            # Several images may fit, so that people can choose another one and agree (BiVLC, appendix H.3).
            coarser["any or none"] = {**{option.value: "any" for option in options}, NONE: NONE}
            options = (*options, AnswerOption(NONE, "None of them fits"))
        last = int(self.none)
        best = choice_of("best", "Which image fits the description?", options, last, coarser=coarser)
        return WorkPage((Shown("text", needed(item, "caption"), "Description"),), (best,))


@dataclass(frozen=True)
class WhichImage(WorkForm):
    """A caption, its own image and one made for another caption; a question stays where the own image fits
    (BiVLC section 3, step 4, and appendix H.1).
    """

    name = "which-image"
    summary = "which of two images fits the caption better, or both"
    columns: ClassVar[Mapping[str, Cell]] = {"caption": "text", "image": "image", "negative_image": "image"}
    main = "fits"
    instructions = instructions_of(name)
    seconds = 6.0

    neither: bool = setting(False, "Whether neither of them can be the answer.")

    def page(self, item: WorkItem) -> WorkPage:
        """The caption, both images in an order of each person's own, then "both"."""
        options = [AnswerOption(name, images=(needed(item, name),)) for name in (OWN, OTHER)]
        options += labelled({"both": "Both, equally well"} | ({"neither": "Neither"} if self.neither else {}))
        fits = choice_of("fits", "Which image fits the description better?", options, len(options) - 2)
        return WorkPage((Shown("text", needed(item, "caption"), "Description"),), (fits,))


@dataclass(frozen=True)
class ChooseOne(WorkForm):
    """One image with several captions, or one caption with several images; the answer is a place, from 0
    (BiVLC section 4 and appendix H.1).
    """

    name = "choose"
    summary = "which caption or image fits best"
    columns: ClassVar[Mapping[str, Cell]] = {"images": "images", "captions": "texts"}
    main = "best"
    instructions = instructions_of(name)
    #: Those where every item has one image.
    instructions_captions = instructions_of("choose-captions")
    seconds = 7.0

    def page(self, item: WorkItem) -> WorkPage:
        images, captions = needed(item, "images"), needed(item, "captions")
        if (len(images) == 1) == (len(captions) == 1):
            what = "a choice has one image with several captions, or one caption with several images"
            given = f"{len(images)} images, {len(captions)} captions"
            raise InputError(what, where=f"item '{item.id}'", given=given)
        if len(images) == 1:
            shown = Shown("image", images[0], "Image")
            best = choice_of("best", "Which description fits the image best?", numbered(texts=captions))
        else:
            shown = Shown("text", captions[0], "Description")
            best = choice_of("best", "Which image fits the description best?", numbered(images=images))
        return WorkPage((shown,), (best,))


@dataclass(frozen=True)
class PreferRanking(WorkForm):
    """A query (`caption` or `image`, or none) and two rankings of images or captions, best first.

    `first` and `second` name what made them, which is not shown: votes are about these names. A ranking of
    one is a plain preference (ECCV Caption, appendix D.1).
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
    instructions = instructions_of(name)
    seconds = 15.0

    same: bool = setting(False, "Whether no preference can be the answer.")

    def page(self, item: WorkItem) -> WorkPage:
        """The query, both rankings in an order of each person's own, then "no preference"."""
        options, where = [], f"item '{item.id}'"
        for side in (FIRST, SECOND):
            images, captions = (item.cells.get(f"{side}_{kind}") or () for kind in ("images", "captions"))
            if bool(images) == bool(captions):
                what = f"the {side} ranking is of images or of captions"
                raise DataError(what, where=where, given="both" if images else "neither")
            options.append(AnswerOption(side, images=tuple(images), texts=tuple(captions)))
        if bool(options[0].images) != bool(options[1].images):
            raise DataError("both rankings are of images, or both of captions", where=where)
        first, second = needed(item, FIRST), needed(item, SECOND)
        if first == second:
            raise DataError("a preference is between two", where=where, given=f"{first} twice")
        shown = []
        if caption := item.cells.get("caption"):
            shown.append(Shown("text", caption, "Description searched for"))
        if image := item.cells.get("image"):
            shown.append(Shown("image", image, "Image searched for"))
        if self.same:
            options += labelled({SAME: "No preference"})
        better = choice_of("better", "Which results are better?", options, int(self.same))
        return WorkPage(tuple(shown), (better,))


@dataclass(frozen=True)
class AuthorQuad(WorkForm):
    """Candidate images, a topic, or both; the author picks two of the images and writes a caption for each.

    With `same_words` both captions have the same words in another order, Winoground's second condition; its
    first, that each caption fits its own image better, is asked by `quad-validation` (section 3).
    """

    name = "quad-authoring"
    summary = "pick two images and write two captions that fit one each, with tags"
    columns: ClassVar[Mapping[str, Cell]] = {"images": "images", "topic": "text"}
    main = "swap"
    instructions = instructions_of(name)
    seconds = 300.0

    same_words: bool = setting(True, "Both captions must have the same words, in another order.")
    swaps: tuple[str, ...] = setting(("object", "relation", "both"), "Tags of what is exchanged.")
    visual: tuple[str, ...] = setting(
        ("symbolic", "series", "pragmatics"),
        "Tags of what it takes beyond seeing; an author may choose none.",
    )

    def __post_init__(self) -> None:
        if not self.swaps:
            raise InputError("tags of what is exchanged", given="none", allowed="one or more")

    def page(self, item: WorkItem) -> WorkPage:
        topic, images, where = item.cells.get("topic"), item.cells.get("images") or (), f"item '{item.id}'"
        if not images and not topic:
            raise DataError("neither images nor a topic", where=where)
        if len(images) == 1:
            raise DataError("an author picks two images", where=where, given=1, allowed="none, or 2 or more")
        fields: list[FormField] = []
        picked: Any = {"options": numbered(images=images), "exchangeable": True}
        for which in (FIRST, SECOND):
            if images:
                fields.append(FormField(f"{which}_image", f"The {which} image", **picked))
            fields.append(FormField(f"{which}_caption", f"The {which} caption", "text", longest=_LONGEST))
        verbs, numbers = "How many main verbs does a caption have?", {"1": "One", "2": "Two or more"}
        more = "Does it take more than seeing? Choose all that apply, or none."
        fields += [
            FormField("swap", "What is exchanged?", options=tagged(self.swaps)),
            FormField("predicates", verbs, options=labelled(numbers), level="ordinal"),
            FormField("visual", more, "many", tagged(self.visual), required=False),
        ]
        shown = (Shown("text", topic, "Topic"),) if topic else ()
        return WorkPage(shown, tuple(fields))

    def check(self, item: WorkItem, answer: Mapping[str, Any]) -> None:
        """Raise `InputError` for one image twice, equal captions, and where asked for other words."""
        if "first_image" in answer and answer["first_image"] == answer["second_image"]:
            raise InputError("both images are the same one", hint="pick two images")
        first, second = answer["first_caption"], answer["second_caption"]
        if first.casefold() == second.casefold():
            raise InputError("both captions are the same", given=first, hint="write two captions")
        if self.same_words and not same_words(first, second):
            what = "the captions must have the same words, as often, in another order"
            raise InputError(what, given=f"{first} | {second}")


@dataclass(frozen=True)
class ValidateQuad(WorkForm):
    """Two images with the same two captions each; for both, which caption fits better.

    A quad holds where `first_image` is answered by "first" and `second_image` by "second". Its `author` does
    not get the item.
    """

    name = "quad-validation"
    summary = "which of two captions fits each of two images, asked of another than the author"
    columns: ClassVar[Mapping[str, Cell]] = {
        "first_image": "image",
        "second_image": "image",
        "first_caption": "text",
        "second_caption": "text",
        "author": "text",
    }
    main = "first_image"
    instructions = instructions_of(name)
    seconds = 15.0

    def page(self, item: WorkItem) -> WorkPage:
        options = [
            AnswerOption(which, texts=(needed(item, f"{which}_caption"),)) for which in (FIRST, SECOND)
        ]
        options.append(AnswerOption(EQUAL, "Neither fits better"))
        images = (("first_image", "A"), ("second_image", "B"))
        shown = [Shown("image", needed(item, name), f"Image {letter}") for name, letter in images]
        fields = [
            choice_of(name, f"Which caption fits image {letter} better?", options, last=1)
            for name, letter in images
        ]
        return WorkPage(tuple(shown), tuple(fields))


#: All of them, in the order in which they are listed.
FORMS: tuple[type[WorkForm], ...] = (
    *(BestOfK, WhichImage, ChooseOne, MatchGrade, YesNo),
    *(PreferRanking, RateCaption, AuthorQuad, ValidateQuad, ErrorSpans),
)
