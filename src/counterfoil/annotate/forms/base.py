"""A form of work: items in, a page to show, and the fields of an answer.

A form is declared, not drawn: its page is a list of what is shown and of fields to fill in, which one
renderer shows for every form. An answer maps the names of fields to values: of `one` an option's value, of
`many` a list of them, of `text` a text, of `spans` a list of `{"start", "end", "label"}` with places in the
text shown.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

from counterfoil.errors import DataError, InputError

#: Work that counts, work whose right answer is known, and the test before the work.
Role = Literal["work", "golden", "onboarding"]
ROLES: tuple[Role, ...] = ("work", "golden", "onboarding")
#: Which answers a field takes, and how near two of its answers are.
Kind = Literal["one", "many", "text", "spans"]
Level = Literal["nominal", "ordinal", "interval"]
#: What a column of items holds: the name of an image file, or several, a text, or several.
Cell = Literal["image", "images", "text", "texts"]

#: In place of an answer where the person could not see the item: no answer to the question, nor wrong.
NOT_VISIBLE = "no answer: not visible"
#: Characters of a text, spans of an answer: more is refused before it is read.
LONGEST_TEXT = 2_000
MOST_SPANS = 100


@dataclass(frozen=True)
class WorkItem:
    """One item of a campaign: the cells of the form's columns, and what is not shown.

    `golden` maps fields to the values that are right there. Items of one `instance` would give each other
    away, so that a person judges one of them at most. `kind` groups items in reports. `truth` is the right
    answer where a simulation knows it; neither it nor `golden` is ever sent to a page.
    """

    id: str
    cells: Mapping[str, Any]
    role: Role = "work"
    golden: Mapping[str, Sequence[str]] = field(default_factory=dict)
    instance: str = ""
    kind: str = ""
    truth: str = ""

    @property
    def exclusion_group(self) -> str:
        """What keeps items apart that would give each other away: its instance, else the item itself."""
        return self.instance or self.id


@dataclass(frozen=True)
class AnswerOption:
    """One answer to choose: its value in tables, its label, and what it shows (images, texts)."""

    value: str
    label: str = ""
    images: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Shown:
    """Something that is shown above the fields: an image or a text with a label."""

    kind: Literal["image", "text"]
    content: str
    label: str = ""


@dataclass(frozen=True)
class FormField:
    """One field of an answer.

    Where `shuffled`, each person sees the options in an order of their own, except those that stand `last`.
    `exchangeable` options are not the same thing from item to item: labels and agreement treat them alike;
    `alike_in` is how many each item has, of a field joined over items. The field is open where, for each
    field in `when`, the answer has one of the values there. `level` says how near two answers are. `coarser`
    names readings that join options, for agreement. `text` names the text of spans.
    """

    name: str
    prompt: str
    kind: Kind = "one"
    options: tuple[AnswerOption, ...] = ()
    shuffled: bool = False
    exchangeable: bool = False
    last: int = 0
    required: bool = True
    when: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    level: Level = "nominal"
    coarser: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    longest: int = LONGEST_TEXT
    text: str = ""
    alike_in: Mapping[str, int] = field(default_factory=dict)

    @property
    def exchangeable_values(self) -> tuple[str, ...]:
        """The values of the exchangeable options, in order."""
        return self.values[: len(self.options) - self.last] if self.exchangeable else ()

    def alike(self, items: Sequence[str]) -> list[int]:
        """How many exchangeable options each of these items has; 0 of all where no option is."""
        return [self.alike_in.get(item, len(self.exchangeable_values)) for item in items]

    @property
    def values(self) -> tuple[str, ...]:
        """The values of the options, in order."""
        return tuple(option.value for option in self.options)

    def is_open(self, answer: Mapping[str, Any]) -> bool:
        """Whether the field is to be filled in, given the fields before it."""
        for name, values in self.when.items():
            chosen = answer.get(name)
            if not any(value in values for value in (chosen if isinstance(chosen, list) else [chosen])):
                return False
        return True

    def ordered(self, order: Sequence[int]) -> "FormField":
        """The field with its options in another order; `order` holds their places."""
        return replace(self, options=tuple(self.options[i] for i in order))


@dataclass(frozen=True)
class WorkPage:
    """What a person sees of one item: things shown, then fields in order."""

    shown: tuple[Shown, ...]
    fields: tuple[FormField, ...]

    @property
    def images(self) -> tuple[str, ...]:
        """All images on the page, each once, in order."""
        names = [shown.content for shown in self.shown if shown.kind == "image"]
        names += [image for field in self.fields for option in field.options for image in option.images]
        return tuple(dict.fromkeys(names))


@runtime_checkable
class WorkForm(Protocol):
    """A frozen dataclass of settings, each with a default and a `help` in its metadata, and these.

    A cell that a form can do without is None, or an empty list; `page` takes the others by `needed`. A form
    that inherits from this has the version 1, and every answer of sound fields is sound.
    """

    #: What campaigns call the form, a line about it, and a number that is raised when its answers change.
    name: ClassVar[str]
    summary: ClassVar[str]
    version: ClassVar[int] = 1
    #: What an item has, by column.
    columns: ClassVar[Mapping[str, Cell]]
    #: The field whose answers are aggregated into the label of an item.
    main: ClassVar[str]
    #: What people read before they begin, in Markdown.
    instructions: ClassVar[str]
    #: Seconds that an item takes, for pay and plans before there are measured ones.
    seconds: ClassVar[float]

    def page(self, item: WorkItem) -> WorkPage:
        """What a person sees of an item, options in the form's own order.

        Raises `InputError` for an item that the form cannot show.
        """
        ...

    def check(self, item: WorkItem, answer: Mapping[str, Any]) -> None:
        """Raise `InputError` for an answer whose fields are sound one by one but not together; none is."""


def needed(item: WorkItem, column: str) -> Any:
    """The cell of an item; raises `DataError` where it is empty."""
    cell = item.cells.get(column)
    if not cell:
        raise DataError(f"no {column.replace('_', ' ')}", where=f"item '{item.id}'")
    return cell


def image_and_caption(item: WorkItem, label: str = "Description") -> tuple[Shown, Shown]:
    """The image of an item, then its caption under a label."""
    return Shown("image", needed(item, "image"), "Image"), Shown("text", needed(item, "caption"), label)


def numbered(**contents: Sequence[str]) -> tuple[AnswerOption, ...]:
    """An option for each of several images or texts, whose value is its place, from 0."""
    ((kind, several),) = contents.items()
    shown: list[dict[str, Any]] = [{kind: (one,)} for one in several]
    return tuple(AnswerOption(str(i), **option) for i, option in enumerate(shown))


def labelled(labels: Mapping[str, str]) -> tuple[AnswerOption, ...]:
    """An option for each of several labels, by its value."""
    return tuple(AnswerOption(value, label) for value, label in labels.items())


def tagged(tags: Sequence[str]) -> tuple[AnswerOption, ...]:
    """An option for each of several words, which is its value and its label."""
    return tuple(AnswerOption(tag, tag) for tag in tags)


def choice_of(
    name: str, prompt: str, options: Sequence[AnswerOption], last: int = 0, **more: Any
) -> FormField:
    """A field of one option, these in an order of each person's own, except those that stand `last`."""
    more |= {"options": tuple(options), "last": last}
    return FormField(name, prompt, shuffled=True, exchangeable=True, **more)


def check_answer(page: WorkPage, raw: Mapping[str, Any]) -> dict[str, Any]:
    """An answer with its fields checked, without closed ones; `raw` has options as places on the page, of the
    types of `AnswerIn`.
    """
    names = {question.name for question in page.fields}
    if odd := [name for name in raw if name not in names]:
        raise InputError("unknown field", given=odd[0], allowed=sorted(names))
    answer: dict[str, Any] = {}
    for question in page.fields:
        where = f"field '{question.name}'"
        value = raw.get(question.name)
        empty = value is None or value in ("", [])
        if not question.is_open(answer):
            if not empty:
                raise InputError("this field is not open with these answers", where=where, given=str(value))
        elif not empty:
            answer[question.name] = _value(question, page, value, where)
        elif question.required:
            raise InputError("no answer", where=where, hint=question.prompt)
        elif question.kind in ("many", "spans"):
            answer[question.name] = []
    return answer


def _value(field: FormField, page: WorkPage, value: Any, where: str) -> Any:
    if field.kind == "one":
        return _option(field, value, where)
    if field.kind == "many":
        if not isinstance(value, list) or len(value) > len(field.options):
            raise InputError("several options are a list", where=where, given=str(value))
        options = {_option(field, entry, where) for entry in value}
        if len(options) < len(value):
            raise InputError("an option is given twice", where=where, given=str(value))
        return [option for option in sorted(field.values) if option in options]
    if field.kind == "text":
        if not isinstance(value, str) or len(value) > field.longest:
            given = f"{len(value):,} characters" if isinstance(value, str) else type(value).__name__
            allowed = f"1 to {field.longest:,}"
            raise InputError("no text of this length", where=where, given=given, allowed=allowed)
        text = " ".join(value.split())
        if not text:
            raise InputError("no answer", where=where, hint=field.prompt)
        return text
    text = next((s.content for s in page.shown if s.kind == "text" and s.label == field.text), "")
    if not isinstance(value, list) or len(value) > MOST_SPANS:
        raise InputError("spans are a list", where=where, given=str(value), allowed=f"at most {MOST_SPANS}")
    spans = []
    for span in value:
        if not isinstance(span, Mapping):
            raise InputError("a span has start, end and label", where=where, given=str(span))
        start, end = span["start"], span["end"]
        if not 0 <= start < end <= len(text):
            given, allowed = f"{start} to {end}", f"0 to {len(text)}"
            raise InputError("no such span", where=where, given=given, allowed=allowed)
        spans.append({"start": start, "end": end, "label": _option(field, span["label"], where)})
    spans.sort(key=lambda span: (span["start"], span["end"]))
    for first, second in pairwise(spans):
        if second["start"] < first["end"]:
            raise InputError("spans overlap", where=where, given=f"{first} and {second}")
    return spans


def _option(field: FormField, value: Any, where: str) -> str:
    if not isinstance(value, int) or not 0 <= value < len(field.options):
        allowed = f"0 to {len(field.options) - 1}"
        raise InputError("no such option", where=where, given=str(value), allowed=allowed)
    return field.options[value].value
