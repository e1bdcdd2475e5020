"""Forms about two images and two captions: written by one person, held to the images by another."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from counterfoil.annotate.forms.base import (
    Cell,
    FormField,
    Option,
    Shown,
    WorkForm,
    WorkItem,
    WorkPage,
    choice_of,
    needed,
)
from counterfoil.benchmarks.records import same_words
from counterfoil.errors import DataError, InputError

#: The longest caption that an author may write, in characters.
_LONGEST = 300
#: The values: the first caption, the second, both or none of them as well as the other.
FIRST, SECOND, EQUAL = "first", "second", "equal"


@dataclass(frozen=True)
class AuthorQuad(WorkForm):
    """Candidate images, a topic, or both; the author picks two of the images and writes a caption for each.

    Answers are `first_image` and `second_image` (places of candidates, from 0; there are none where an item
    has only a topic, and images are made from the captions later), `first_caption`, `second_caption`, and
    tags: `swap`, what the order of words exchanges, `predicates`, how many main verbs a caption has, and
    `visual`, what it takes beyond seeing. With `same_words` both captions must have the same words, as often,
    in another order, which is Winoground's second condition; its first, that each caption fits its own image
    better, is what `quad-validation` asks of another person (section 3).
    """

    name = "quad-authoring"
    summary = "pick two images and write two captions that fit one each, with tags"
    columns: ClassVar[Mapping[str, Cell]] = {"images": "images", "topic": "text"}
    main = "swap"
    instructions = (
        "Write two captions of **the same words in another order** that mean different things, and pick an "
        "image for each.\n\n"
        "* The first caption must fit the first image clearly better than the second image, and the second "
        "caption the second image.\n"
        "* Write both captions with every word the other has, as often.\n"
        "* Be inventive: exchange things, properties, or what is done to whom."
    )
    seconds = 300.0

    same_words: bool = field(
        default=True, metadata={"help": "Both captions must have the same words, in another order."}
    )
    swaps: tuple[str, ...] = field(
        default=("object", "relation", "both"), metadata={"help": "Tags of what is exchanged."}
    )
    visual: tuple[str, ...] = field(
        default=("symbolic", "series", "pragmatics"),
        metadata={"help": "Tags of what it takes beyond seeing; an author may choose none."},
    )

    def __post_init__(self) -> None:
        if not self.swaps:
            raise InputError("tags of what is exchanged", given="none", allowed="one or more")

    def page(self, item: WorkItem) -> WorkPage:
        """The topic, then the first image and its caption, the second ones, and the tags."""
        topic, images = item.cells.get("topic"), item.cells.get("images") or ()
        if not images and not topic:
            raise DataError("neither images nor a topic", where=f"item '{item.id}'")
        if len(images) == 1:
            raise DataError(
                "an author picks two images", where=f"item '{item.id}'", given=1, allowed="none, or 2 or more"
            )
        fields: list[FormField] = []
        for which in ("first", "second"):
            if images:
                options = tuple(Option(str(at), images=(image,)) for at, image in enumerate(images))
                fields.append(
                    FormField(f"{which}_image", f"The {which} image", options=options, exchangeable=True)
                )
            fields.append(FormField(f"{which}_caption", f"The {which} caption", "text", longest=_LONGEST))
        fields += [
            FormField("swap", "What is exchanged?", options=tuple(Option(tag, tag) for tag in self.swaps)),
            FormField(
                "predicates",
                "How many main verbs does a caption have?",
                options=(Option("1", "One"), Option("2", "Two or more")),
                level="ordinal",
            ),
            FormField(
                "visual",
                "Does it take more than seeing? Choose all that apply, or none.",
                "many",
                tuple(Option(tag, tag) for tag in self.visual),
                required=False,
            ),
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
            raise InputError(
                "the captions must have the same words, as often, in another order",
                given=f"{first} | {second}",
            )


@dataclass(frozen=True)
class ValidateQuad(WorkForm):
    """Two images with the same two captions each; for both, which caption fits better.

    A quad holds where `first_image` is answered by "first" and `second_image` by "second". `author` is the
    hash of the person who wrote it, which is not shown; that person does not get the item.
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
    instructions = (
        "For each of two images, choose the caption that fits it **better**. The captions differ in the "
        "order of their words, so read them with care. If neither fits better, say so."
    )
    seconds = 15.0

    def page(self, item: WorkItem) -> WorkPage:
        """Both images, and of each the question which caption fits better."""
        options = (
            Option(FIRST, texts=(needed(item, "first_caption"),)),
            Option(SECOND, texts=(needed(item, "second_caption"),)),
            Option(EQUAL, "Neither fits better"),
        )
        shown = (
            Shown("image", needed(item, "first_image"), "Image A"),
            Shown("image", needed(item, "second_image"), "Image B"),
        )
        fields = [
            choice_of(name, f"Which caption fits image {letter} better?", options, last=1)
            for name, letter in (("first_image", "A"), ("second_image", "B"))
        ]
        return WorkPage(shown, tuple(fields))
