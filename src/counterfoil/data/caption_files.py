"""Captions that systems wrote, and references that people wrote, from the files the field keeps them in.

{"ID": "caption"}                            candidates of CLIPScore; ID: an image's name, file or number
{"ID": ["caption", ...]}                     its references
[{"image_id": ID, "caption": "..."}, ...]    COCO's results; as references an image has several entries
{"annotations": [...], "images": [...]}      COCO's annotations; `images` says which file an id is of
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

from counterfoil.data.columns import shown
from counterfoil.data.tables import parse_json, read_text
from counterfoil.errors import DataError

#: Names under which entries keep what they are of.
_IDS = ("image_id", "video_id", "id", "image", "video", "file_name", "filename", "file")
_TEXTS = ("caption", "text", "sentence")
_LAYOUTS = '{"ID": "caption"}, [{"image_id": ID, "caption": "..."}], or COCO\'s annotations'
#: The number that COCO's file names end with.
_NUMBER = re.compile(r"(?:.*_)?(\d{12})")


@dataclass(frozen=True, eq=False)
class Written:
    """Captions by what they are of, in the order of the file; `files` names images, where the file does."""

    path: Path
    captions: Mapping[str, tuple[str, ...]]
    files: Mapping[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.captions)


def read_candidates(path: Path) -> Written:
    """One caption per image or video, in any layout above.

    Raises `DataError` naming file and entry: no such file, broken JSON, another layout, a caption that is no
    string or is empty, an id that occurs twice.
    """
    found: dict[str, tuple[str, ...]] = {}
    entries, files = _entries(path)
    for where, name, text in entries:
        if name in found:
            raise DataError(
                "a second candidate for one image", where=where, given=f"'{name}'", hint="one each"
            )
        found[name] = (text,)
    return _some(Written(path, found, files))


def read_references(path: Path) -> Written:
    """Any number of captions per image or video, in any layout above; raises `DataError` as candidates do."""
    found: dict[str, list[str]] = {}
    entries, files = _entries(path, several=True)
    for _, name, text in entries:
        found.setdefault(name, []).append(text)
    return _some(Written(path, {name: tuple(texts) for name, texts in found.items()}, files))


def spellings(name: str) -> tuple[str, ...]:
    """How an image's id, file or number may be written, most exact first.

    >>> spellings("val2014/000000000042.jpg")
    ('val2014/000000000042.jpg', '000000000042.jpg', '000000000042', '42')
    >>> spellings("a.b")
    ('a.b', 'a')
    """
    base = PurePath(name).name
    stem = PurePath(base).stem
    number = _NUMBER.fullmatch(stem)
    found = [name, base, stem, *([str(int(number[1]))] if number else [])]
    return tuple(dict.fromkeys(found))


class Named:
    """Names, found whichever way they are written; a spelling that fits two of them finds none.

    >>> known = Named(["COCO_val2014_000000000042.jpg", "dog.jpg", "dog.png"])
    >>> known.find("42"), known.find("dog.png"), known.find("dog"), known.find("cat")
    ('COCO_val2014_000000000042.jpg', 'dog.png', None, None)
    >>> known.several("dog")
    ('dog.jpg', 'dog.png')
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = dict.fromkeys(names)
        self._spelt: dict[str, list[str]] = {}
        for name in self._names:
            for spelling in spellings(name):
                self._spelt.setdefault(spelling, []).append(name)

    def find(self, name: str) -> str | None:
        """How a thing is called here, None where none, or more than one, may be meant."""
        if name in self._names:
            return name
        found = self.several(name)
        return found[0] if len(found) == 1 else None

    def several(self, name: str) -> tuple[str, ...]:
        """All that may be meant by a name."""
        return next((tuple(self._spelt[s]) for s in spellings(name) if s in self._spelt), ())


def _some(written: Written) -> Written:
    if not written.captions:
        raise DataError("no captions", where=written.path)
    return written


def _entries(path: Path, *, several: bool = False) -> tuple[Iterator[tuple[str, str, str]], dict[str, str]]:
    """(where, id, caption) of every entry of a file, and the files that it says ids are of."""
    value = parse_json(read_text(path), where=path)
    if isinstance(value, dict) and isinstance(value.get("annotations"), list):
        return _of_list(path, value["annotations"]), _files(path, value.get("images"))
    if isinstance(value, list):
        return _of_list(path, value), {}
    if isinstance(value, dict):
        return _of_object(path, value, several), {}
    raise DataError("not captions", where=path, given=shown(value), allowed=_LAYOUTS)


def _of_object(path: Path, value: Mapping[str, Any], several: bool) -> Iterator[tuple[str, str, str]]:
    for name, held in value.items():
        where = f"{path}, '{name}'"
        if not isinstance(held, list):
            yield where, name, _text(held, where)
        elif not several:
            raise DataError(
                "a list where one caption is asked for",
                where=where,
                given=shown(held),
                hint="references are named with --references",
            )
        elif not held:
            raise DataError("no references", where=where, given="[]", hint="leave the entry out")
        else:
            for number, text in enumerate(held, start=1):
                each = f"{where}, reference {number}"
                yield each, name, _text(text, each)


def _of_list(path: Path, entries: Sequence[Any]) -> Iterator[tuple[str, str, str]]:
    for number, entry in enumerate(entries, start=1):
        where = f"{path}, entry {number}"
        if not isinstance(entry, dict):
            raise DataError("not an entry", where=where, given=shown(entry), allowed=_LAYOUTS)
        name = next((entry[key] for key in _IDS if key in entry), None)
        key = next((key for key in _TEXTS if key in entry), None)
        if isinstance(name, float | list | dict):
            raise DataError("the id is no name and no whole number", where=where, given=shown(name))
        if isinstance(name, bool) or not isinstance(name, str | int) or name == "":
            raise DataError(
                "no id of an image or video", where=where, given=", ".join(entry) or "{}", allowed=_IDS
            )
        if key is None:
            raise DataError("no caption", where=where, given=", ".join(entry), allowed=_TEXTS)
        yield where, str(name), _text(entry[key], where)


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise DataError("the caption is no string", where=where, given=shown(value))
    if not value.strip():
        raise DataError("the caption is empty", where=where, given=repr(value), hint="leave it out")
    return value


def _files(path: Path, images: Any) -> dict[str, str]:
    """The files that COCO's annotations say the numbers of images are of."""
    found = {}
    for number, image in enumerate(images if isinstance(images, list) else [], start=1):
        if not isinstance(image, dict) or "id" not in image:
            raise DataError("not an image of COCO", where=f"{path}, image {number}", given=shown(image))
        if isinstance(image.get("file_name"), str):
            found[str(image["id"])] = image["file_name"]
    return found
