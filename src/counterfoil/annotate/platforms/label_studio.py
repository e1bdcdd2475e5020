"""Label Studio: labelling configurations and tasks made of a campaign's pages, and configurations read.

A configuration names objects (an image, a text) and controls (choices, a rating, a pairwise choice, a text,
spans of a text). Label Studio stores what a control's option is called by its `alias`, so options carry the
value that tables hold as alias, and the label that people read.

Source: labelstud.io, tags and task format.
"""

import base64
import mimetypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

from counterfoil.annotate.forms.base import FormField, WorkPage
from counterfoil.errors import DataError, InputError
from counterfoil.inputs.xml import Element, parse_xml

ControlKind = Literal["one", "many", "rating", "pairwise", "text", "spans"]
#: The tag of each kind of control, and that of its options.
_TAGS: Mapping[ControlKind, tuple[str, str]] = {
    "one": ("Choices", "Choice"),
    "many": ("Choices", "Choice"),
    "rating": ("Rating", ""),
    "pairwise": ("Pairwise", ""),
    "text": ("TextArea", ""),
    "spans": ("Labels", "Label"),
}
_OBJECTS: Mapping[str, Literal["image", "text"]] = {"Image": "image", "Text": "text"}
#: The key of a task's data that holds the item's id.
ITEM = "item"
#: Where Label Studio serves files of the machine it runs on.
_LOCAL = "/data/local-files/?d="


@dataclass(frozen=True)
class LabelledObject:
    """An image or a text of a task; `key` is that of the task's data that holds it."""

    name: str
    kind: Literal["image", "text"]
    label: str = ""
    key: str = ""


@dataclass(frozen=True)
class LabellingControl:
    """What people fill in: `options` are (value, label), `to` the objects that it is about.

    A rating has `most` stars; `when` names another control and the values of it with which this one is shown.
    """

    name: str
    kind: ControlKind
    to: tuple[str, ...]
    prompt: str = ""
    options: tuple[tuple[str, str], ...] = ()
    required: bool = True
    most: int = 0
    when: tuple[str, tuple[str, ...]] | None = None


@dataclass(frozen=True)
class LabellingConfig:
    """A labelling configuration: objects and controls in the order of the page."""

    objects: tuple[LabelledObject, ...]
    controls: tuple[LabellingControl, ...]

    def control(self, name: str, *, where: object) -> LabellingControl:
        """The control of a name; raises `DataError` where the configuration has none."""
        found = next((each for each in self.controls if each.name == name), None)
        if found is None:
            raise DataError(
                "no such control in the labelling configuration",
                where=where,
                given=name,
                allowed=[each.name for each in self.controls],
            )
        return found

    def xml(self) -> str:
        """The configuration, to be pasted into a project's settings.

        >>> shown = LabelledObject("caption", "text", key="caption")
        >>> control = LabellingControl("match", "one", ("caption",), "Does it match?", (("y", "Yes"),))
        >>> print(LabellingConfig((shown,), (control,)).xml())
        <View>
          <Text name="caption" value="$caption"/>
          <Header value="Does it match?"/>
          <Choices name="match" toName="caption" required="true" choice="single">
            <Choice value="Yes" alias="y"/>
          </Choices>
        </View>
        <BLANKLINE>
        """
        lines = ["<View>"]
        for each in self.objects:
            if each.label:
                lines.append(f"  <Header value={quoteattr(each.label)}/>")
            tag = "Image" if each.kind == "image" else "Text"
            lines.append(f"  <{tag} name={quoteattr(each.name)} value={quoteattr('$' + each.key)}/>")
        for control in self.controls:
            lines += _lines(control)
        return "\n".join([*lines, "</View>"]) + "\n"


def read_config(text: str | bytes, *, where: object = "the labelling configuration") -> LabellingConfig:
    """The objects and controls of a labelling configuration, ours or another.

    Tags that only arrange the page are passed over. Raises `DataError` for a text that is no XML, and for
    controls that no table of judgements has a place for, such as boxes and brushes.
    """
    objects: list[LabelledObject] = []
    controls: list[LabellingControl] = []
    header, tags = "", {tag for tag, _ in _TAGS.values()}
    for element in parse_xml(text, where=where).walk():
        if element.name == "Header":
            header = element.attributes.get("value", "")
        elif element.name in _OBJECTS:
            name, value = (element.attributes.get(key, "") for key in ("name", "value"))
            objects.append(LabelledObject(name, _OBJECTS[element.name], header, value.removeprefix("$")))
            header = ""
        elif element.name in tags:
            controls.append(_control(element, header, where))
            header = ""
        elif "toName" in element.attributes:
            raise DataError(
                "a control that is not supported", where=where, given=element.name, allowed=sorted(tags)
            )
    if not controls:
        raise DataError("no controls", where=where, allowed=sorted(tags))
    return LabellingConfig(tuple(objects), tuple(controls))


def config_of(page: WorkPage) -> LabellingConfig:
    """The configuration for pages like this one: an object for each thing shown, a control for each field.

    Images that are options to choose from become objects with the option's value as their label. A field that
    opens only with certain answers to one other field does so there too, unless one of these has a comma,
    which Label Studio takes for the end of a value; then, and where it depends on several fields, it is
    always shown, and not required.
    """
    parts = _parts(page)
    controls = (_of_field(each, page, [shown for shown, _ in parts]) for each in page.fields)
    return LabellingConfig(tuple(shown for shown, _ in parts), tuple(controls))


def task_of(item: str, page: WorkPage, image: Callable[[str], str]) -> dict[str, Any]:
    """A task: the item's id, and what is shown of it by object; `image` gives the address of an image."""
    shown = {part.key: image(content) if part.kind == "image" else content for part, content in _parts(page)}
    return {"data": {ITEM: item, **shown}}


def tasks_of(
    pages: Sequence[tuple[str, WorkPage]], image: Callable[[str], str]
) -> tuple[LabellingConfig, list[dict[str, Any]]]:
    """The configuration that all pages share, and a task for each (item id, page).

    Raises `InputError` naming the first item whose page has other objects or fields than the first one.
    """
    if not pages:
        raise InputError("no items to make tasks of")
    config = config_of(pages[0][1])
    for item, page in pages:
        if config_of(page) != config:
            raise InputError(
                f"its page has other parts than that of item '{pages[0][0]}'",
                where=f"item '{item}'",
                hint="one labelling configuration serves all tasks: give items of one shape",
            )
    return config, [task_of(item, page, image) for item, page in pages]


def local_file(path: Path, root: Path) -> str:
    """The address at which Label Studio serves a file below its document root.

    It does so with LABEL_STUDIO_LOCAL_FILES_SERVING_ENABLED=true. Raises `InputError` for other files.

    >>> local_file(Path("/srv/campaign/images/a b.png"), Path("/srv"))
    '/data/local-files/?d=campaign/images/a%20b.png'
    """
    try:
        below = path.absolute().relative_to(root.absolute())
    except ValueError:
        raise InputError("not below Label Studio's document root", where=path, given=str(root)) from None
    return _LOCAL + quote(below.as_posix())


def embedded(path: Path) -> str:
    """A file as a data address, for a Label Studio that cannot see it."""
    kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return f"data:{kind};base64,{base64.b64encode(path.read_bytes()).decode()}"


def _lines(control: LabellingControl) -> list[str]:
    tag, option_tag = _TAGS[control.kind]
    given = {"name": control.name, "toName": ",".join(control.to)}
    given["required"] = "true" if control.required else "false"
    if control.kind in ("one", "many"):
        given["choice"] = "single" if control.kind == "one" else "multiple"
    if control.kind == "rating":
        given["maxRating"] = str(control.most)
    if control.kind == "text":
        given["maxSubmissions"] = "1"
    if control.when is not None:
        name, values = control.when
        given |= {"visibleWhen": "choice-selected", "whenTagName": name, "whenChoiceValue": ",".join(values)}
    attributes = " ".join(f"{name}={quoteattr(value)}" for name, value in given.items())
    head = [f"  <Header value={quoteattr(control.prompt)}/>"] if control.prompt else []
    if not option_tag:
        return [*head, f"  <{tag} {attributes}/>"]
    options = [
        f"    <{option_tag} value={quoteattr(label)} alias={quoteattr(value)}/>"
        for value, label in control.options
    ]
    return [*head, f"  <{tag} {attributes}>", *options, f"  </{tag}>"]


def _control(element: Element, prompt: str, where: object) -> LabellingControl:
    given = element.attributes
    name = given.get("name", "")
    if not name or not given.get("toName"):
        raise DataError("a control without name or toName", where=where, given=element.name)
    kind: ControlKind = next(kind for kind, (tag, _) in _TAGS.items() if tag == element.name)
    if element.name == "Choices":
        kind = "many" if given.get("choice") == "multiple" else "one"
    stars = given.get("maxRating", "5")
    if kind == "rating" and not (stars.isascii() and stars.isdigit()):
        raise DataError("maxRating is no number", where=where, given=stars)
    inner = [each.attributes for each in element.walk() if each.name == _TAGS[kind][1]]
    options = tuple((each.get("alias") or each.get("value", ""), each.get("value", "")) for each in inner)
    when = None
    if given.get("visibleWhen") == "choice-selected" and given.get("whenTagName"):
        when = given["whenTagName"], tuple(given.get("whenChoiceValue", "").split(","))
    return LabellingControl(
        name,
        kind,
        tuple(part.strip() for part in given["toName"].split(",")),
        prompt,
        options,
        given.get("required") == "true",
        int(stars) if kind == "rating" else 0,
        when,
    )


def _parts(page: WorkPage) -> list[tuple[LabelledObject, str]]:
    """The objects of a page with what they show: things shown, then what options show; names are unique."""
    wanted: list[tuple[str, Literal["image", "text"], str, str]] = [
        (each.label or "shown", each.kind, each.label, each.content) for each in page.shown
    ]
    for field in page.fields:
        for option in field.options:
            name, label = f"{field.name} {option.value}", option.label or option.value
            wanted += [(name, "image", label, content) for content in option.images]
            wanted += [(name, "text", label, content) for content in option.texts]
    made: list[tuple[LabelledObject, str]] = []
    taken = {ITEM, *(field.name for field in page.fields)}
    for words, kind, label, content in wanted:
        letters = "".join(c if c.isalnum() and c.isascii() else " " for c in words.lower())
        name = "_".join(letters.split()) or "shown"
        key = next(each for n in count(1) if (each := name if n == 1 else f"{name}_{n}") not in taken)
        taken.add(key)
        made.append((LabelledObject(key, kind, label, key), content))
    return made


def _of_field(each: FormField, page: WorkPage, objects: Sequence[LabelledObject]) -> LabellingControl:
    text = next((s for s in page.shown if s.kind == "text" and s.label == each.text), None)
    about = objects[page.shown.index(text)] if each.kind == "spans" and text is not None else objects[0]
    labels = {option.value: option.label or option.value for option in each.options}
    when = None
    if len(each.when) == 1:
        ((name, values),) = each.when.items()
        # Compared with aliases, by every version of Label Studio.
        if not any("," in value for value in values):
            when = name, values
    return LabellingControl(
        each.name,
        each.kind,
        (about.name,),
        each.prompt,
        tuple(labels.items()),
        each.required and not (each.when and when is None),
        when=when,
    )
