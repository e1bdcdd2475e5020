"""Captions that systems wrote, and references that people wrote, from the files the field keeps them in.

{"ID": "caption"}                            candidates of CLIPScore; ID: an image's name, file or number
{"ID": ["caption", ...]}                     its references, or several candidates per image
[{"image_id": ID, "caption": "..."}, ...]    COCO's results; an image of several captions has several entries
{"annotations": [...], "images": [...]}      COCO's annotations; `images` says which file an id is of
a table (CSV, TSV, JSON Lines, Parquet)      columns image_id and caption, or what else entries may call these

The caption of an entry may be a list of them, as Parquet has it; then it is the image's only entry. A whole
number under `candidate`, as `captions score --out` writes it, says which of the image's captions one is.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any, Literal

from counterfoil.benchmarks.tables import read_table, shown
from counterfoil.errors import DataError
from counterfoil.inputs.files import parse_json, read_text

#: Names under which entries keep what they are of.
_IDS = ("image_id", "video_id", "id", "image", "video", "file_name", "filename", "file")
_TEXTS = ("caption", "text", "sentence")
#: Ends of the names of tables.
_TABLES = (".csv", ".tsv", ".jsonl", ".parquet")
#: The columns of a training table that may name images.
_IMAGE_COLUMNS = ("image", "filename", "file_name", "image_id", "image_path", "filepath")
_LAYOUTS = '{"ID": "caption"}, {"ID": ["caption"]}, [{"image_id": ID, "caption": "..."}], COCO\'s annotations'
#: The number that COCO's file names end with.
_NUMBER = re.compile(r"(?:.*_)?(\d{12})")


@dataclass(frozen=True, eq=False)
class Written:
    """Captions by what they are of, in the order of the file; `files` names images, where the file does."""

    path: Path
    captions: Mapping[str, tuple[str, ...]]
    files: Mapping[str, str] = field(default_factory=dict)
    #: Of candidates: which of its image's captions each one is, counted from 0 as the file has them.
    numbers: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    #: How many captions were empty and left out, and of how many images that was all there were.
    left_out: int = 0
    images_left_out: int = 0

    def __len__(self) -> int:
        return len(self.captions)


def read_candidates(
    path: Path, *, several: bool = False, empty: Literal["refuse", "leave-out"] = "refuse"
) -> Written:
    """One caption per image or video, or with `several` one or more, in any layout above."""
    captions_of: dict[str, dict[int, str]] = {}
    entries, files = _entries(path, "candidate", several=several)
    left_out = 0
    of_image: dict[str, set[int]] = {}
    for where, name, held, stated_number in entries:
        taken = of_image.setdefault(name, set())
        if taken and not several:
            what = "a second candidate for one image"
            raise DataError(what, where=where, given=f"'{name}'", hint="one each")
        number = len(taken) if stated_number is None else stated_number
        if number in taken:
            what = "two candidates of one image have one number"
            hint = "number all of an image's candidates from 0, or none"
            raise DataError(what, where=where, given=f"'{name}', candidate {number}", hint=hint)
        taken.add(number)
        if empty == "leave-out" and isinstance(held, str) and not held.strip():
            left_out += 1
            continue
        captions_of.setdefault(name, {})[number] = _text(held, where)
    captions = {name: tuple(texts[number] for number in sorted(texts)) for name, texts in captions_of.items()}
    numbers = {name: tuple(sorted(texts)) for name, texts in captions_of.items()}
    return _some(Written(path, captions, files, numbers, left_out, len(of_image) - len(captions_of)))


def read_references(path: Path) -> Written:
    """Any number of captions per image or video, in any layout above; raises `DataError` as candidates do."""
    texts_of: dict[str, list[str]] = {}
    entries, files = _entries(path, "reference", several=True)
    for where, name, held, _ in entries:
        texts_of.setdefault(name, []).append(_text(held, where))
    return _some(Written(path, {name: tuple(texts) for name, texts in texts_of.items()}, files))


#: Columns of tables that hold captions, right and wrong ones.
_KIND = "true|false|positive|negative|neg|caption|text"
_TEXT_COLUMN = re.compile(rf"(({_KIND})_)?(caption|text|sentence|foil|raw)(_?\w{{1,8}})?")


def read_texts(path: Path) -> tuple[str, ...]:
    """All captions in a file: lines of a text (.txt), columns of captions in a table, or any layout above."""
    if path.suffix.lower() in (*_TABLES, ".txt"):
        table = read_table(path)
        columns = [name for name in table.columns if _TEXT_COLUMN.fullmatch(name.strip().lower())]
        if not columns:
            what, allowed = "no column of captions", "caption, text or sentence, as in negative_caption"
            raise DataError(what, where=path, given=", ".join(table.columns), allowed=allowed)
        lines = [cell.strip() for name in columns for cell in table[name] if isinstance(cell, str)]
    else:
        lines = [text for texts in read_references(path).captions.values() for text in texts]
    texts = tuple(text for text in lines if text)
    if not texts:
        raise DataError("no captions", where=path)
    return texts


def read_image_names(path: Path) -> tuple[str, ...]:
    """The images that a table names in a column called image, filename or the like; () of others."""
    if path.suffix.lower() not in _TABLES:
        return ()
    table = read_table(path)
    columns = [name for name in table.columns if name.strip().lower() in _IMAGE_COLUMNS]
    return tuple(cell for name in columns for cell in table[name] if isinstance(cell, str))


def spellings(name: str) -> tuple[str, ...]:
    """How an image's id, file or number may be written, most exact first."""
    base = PurePath(name).name
    stem = PurePath(base).stem
    number = _NUMBER.fullmatch(stem)
    written = [name, base, stem, *([str(int(number[1]))] if number else [])]
    return tuple(dict.fromkeys(written))


class Named:
    """Names, found whichever way they are written; a spelling that fits two of them finds none."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = dict.fromkeys(names)
        self._spelt: dict[str, list[str]] = {}
        for name in self._names:
            for spelling in spellings(name):
                self._spelt.setdefault(spelling, []).append(name)

    def find(self, name: str) -> str | None:
        """How a thing is called here, None where no name, or more than one, fits."""
        if name in self._names:
            return name
        names = self.several(name)
        return names[0] if len(names) == 1 else None

    def several(self, name: str) -> tuple[str, ...]:
        """All names that fit."""
        return next((tuple(self._spelt[s]) for s in spellings(name) if s in self._spelt), ())


def _some(written: Written) -> Written:
    if not written.captions:
        raise DataError("no captions", where=written.path)
    return written


#: Where a caption stands, the id of what it is of, itself, and which of several it is where that is said.
Entry = tuple[str, str, Any, int | None]


def _entries(path: Path, kind: str, *, several: bool) -> tuple[Iterator[Entry], dict[str, str]]:
    """Every caption of a file, and the files that it says ids are of."""
    files: dict[str, str] = {}
    if path.suffix.lower() in _TABLES:
        table = read_table(path)
        columns = {name.strip().lower(): cells for name, cells in table.columns.items()}
        rows = [{name: cells[row] for name, cells in columns.items()} for row in range(len(table))]
        entries = _of_list([table.where(row) for row in range(len(table))], rows)
    else:
        value = parse_json(read_text(path), where=path)
        if isinstance(value, dict) and isinstance(value.get("annotations"), list):
            images = value.get("images")
            for number, image in enumerate(images if isinstance(images, list) else [], start=1):
                if not isinstance(image, dict) or "id" not in image:
                    what = "not an image of COCO"
                    raise DataError(what, where=f"{path}, image {number}", given=shown(image))
                if isinstance(image.get("file_name"), str):
                    files[str(image["id"])] = image["file_name"]
            value = value["annotations"]
        if isinstance(value, list):
            entries = _of_list([f"{path}, entry {number}" for number in range(1, len(value) + 1)], value)
        elif isinstance(value, dict):
            entries = ((f"{path}, '{name}'", name, held, None) for name, held in value.items())
        else:
            raise DataError("not captions", where=path, given=shown(value), allowed=_LAYOUTS)
    return _one_by_one(entries, kind, several=several), files


def _one_by_one(entries: Iterable[Entry], kind: str, *, several: bool) -> Iterator[Entry]:
    """Lists of captions taken apart; raises `DataError` for an image with a list and another entry."""
    is_listed: dict[str, bool] = {}
    for where, name, held, candidate in entries:
        listed = isinstance(held, list | tuple)
        if is_listed.get(name) or (listed and name in is_listed):
            what, given = "captions of one image in a list and in another entry", f"'{name}'"
            raise DataError(what, where=where, given=given, allowed="one list, or an entry for each caption")
        is_listed[name] = listed
        if not listed:
            yield where, name, held, candidate
        elif not several:
            what, given = "a list where one caption is asked for", shown(held)
            raise DataError(what, where=where, given=given, hint="references are named with --references")
        elif not held:
            raise DataError(f"no {kind}s", where=where, given="[]", hint="leave the entry out")
        else:
            for number, text in enumerate(held, start=1):
                yield f"{where}, {kind} {number}", name, text, None


def _of_list(positions: Sequence[str], entries: Sequence[Any]) -> Iterator[Entry]:
    for where, entry in zip(positions, entries, strict=True):
        if not isinstance(entry, dict):
            raise DataError("not an entry", where=where, given=shown(entry), allowed=_LAYOUTS)
        name = next((entry[key] for key in _IDS if key in entry), None)
        key = next((key for key in _TEXTS if key in entry), None)
        if isinstance(name, float | list | dict):
            raise DataError("the id is no name and no whole number", where=where, given=shown(name))
        if isinstance(name, bool) or not isinstance(name, str | int) or name == "":
            what = "no id of an image or video"
            raise DataError(what, where=where, given=", ".join(entry) or "{}", allowed=_IDS)
        if key is None:
            raise DataError("no caption", where=where, given=", ".join(entry), allowed=_TEXTS)
        number = entry.get("candidate")
        if isinstance(number, str) and number.isascii() and number.isdigit() and len(number) < 10:
            number = int(number)
        whole = isinstance(number, int) and not isinstance(number, bool) and number >= 0
        yield where, str(name), entry[key], number if whole else None


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise DataError("the caption is no string", where=where, given=shown(value))
    if not value.strip():
        raise DataError("the caption is empty", where=where, given=repr(value), hint="leave it out")
    return value
