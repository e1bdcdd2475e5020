"""Released files: the one that is meant in a folder, rows that are lists, pictures by their paths."""

import os
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from counterfoil.benchmarks.benchmark import Card
from counterfoil.benchmarks.records import FileSource, Photos
from counterfoil.benchmarks.tables import DataTable, TablePart, objects_table, shown
from counterfoil.errors import DataError
from counterfoil.inputs.files import parse_json, read_json, read_text


def no_data(card: Card) -> DataError:
    """The error of a benchmark whose data are not here, which says where to get them."""
    from counterfoil.benchmarks.fetching import serving

    if serving(card.name) is not None:
        hint = f"get it with 'counterfoil benchmarks fetch {card.name}', or name its folder with --data"
    elif card.homepage:
        hint = f"get it from {card.homepage} and name its folder with --data"
    else:
        hint = "give it with --data"
    named = os.environ.get("COUNTERFOIL_DATA")
    given = f"COUNTERFOIL_DATA={named}, which is no folder" if named and not Path(named).is_dir() else None
    return DataError(f"no data of {card.title}", where=card.name, given=given, hint=hint)


def released_file(card: Card, data: Path | None, names: Sequence[str], *, hint: str | None = None) -> Path:
    """The file that `data` is, or the first of `names` that lies in the folder `data`."""
    if data is None:
        raise no_data(card)
    if data.is_file():
        return data
    if not data.is_dir():
        raise DataError("no such file or folder", where=data, hint="check the path given with --data")
    path = next((data / name for name in names if (data / name).is_file()), None)
    if path is None:
        raise DataError(f"no file of '{card.title}' in this folder", where=data, allowed=names, hint=hint)
    return path


def released_set(
    card: Card, data: Path | None, names: Sequence[str], *, hint: str | None = None
) -> list[Path]:
    """The files of these names in the folder `data`; raises `DataError` naming those that are missing."""
    if data is None:
        raise no_data(card)
    if not data.is_dir():
        raise DataError("no such folder", where=data, hint="check the path given with --data")
    missing = [name for name in names if not (data / name).is_file()]
    if missing:
        many = "s" if len(missing) > 1 else ""
        raise DataError(f"file{many} missing: {', '.join(missing)}", where=data, hint=hint)
    return [data / name for name in names]


def list_of(value: Any, *, where: object) -> list[Any]:
    """The items of a list, tuple or array, if there are some; raises `DataError`."""
    items = value.tolist() if isinstance(value, np.ndarray) else value
    if not isinstance(items, list | tuple) or not items:
        what = "not a list of rows"
        raise DataError(what, where=where, given=shown(value), allowed="a list with a row for each item")
    return list(items)


def listed_rows(path: Path, columns: Sequence[str]) -> DataTable:
    """The rows of a JSON file whose rows are lists, a cell for each of `columns`."""
    rows = list_of(read_json(path), where=path)
    part = TablePart(str(path), len(rows))
    cells: list[list[object]] = []
    for number, row in enumerate(rows):
        if not isinstance(row, list) or len(row) != len(columns):
            what, allowed = "not a row of this layout", f"a list of {', '.join(columns)}"
            raise DataError(what, where=part.where(number), given=shown(row), allowed=allowed)
        cells.append(row)
    return DataTable(dict(zip(columns, zip(*cells, strict=True), strict=True)), str(path), "json", (part,))


def object_tables(path: Path, *keys: str, without: Collection[str] = ()) -> list[DataTable]:
    """The lists of objects under some keys of a JSON file as tables; `without` some columns."""
    value = parse_json(read_text(path), where=path, without=without)
    if not isinstance(value, dict) or not all(isinstance(value.get(key), list) for key in keys):
        given = ", ".join(value) if isinstance(value, dict) else shown(value)
        allowed = f"an object with the lists {' and '.join(keys)}"
        raise DataError("not a file of this layout", where=path, given=given, allowed=allowed)
    return [
        objects_table(value[key], TablePart(f"{path}, {key}", len(value[key]), "entry"), "json")
        for key in keys
    ]


def pictures_of(
    names: Iterable[str], data: Path | None, images: Path | None, *, suffixes: Sequence[str] = ()
) -> dict[str, FileSource | None]:
    """The file of each picture by the path that the release calls it, None where it is not at hand."""
    distinct = tuple(dict.fromkeys(names))
    parts = {name: name.split("/") for name in distinct}
    root = data if data is None or data.is_dir() else data.parent
    folders = [images] if images is not None else [] if root is None else [root, root / "images"]
    for folder in folders:
        if not folder.is_dir():
            continue
        photos = Photos(folder)
        for cut in range(max(map(len, parts.values()))):
            tails = {name: "/".join(of[min(cut, len(of) - 1) :]) for name, of in parts.items()}
            if len(set(tails.values())) < len(distinct):
                break
            source_of = {name: photos.first(tail, suffixes) for name, tail in tails.items()}
            if any(source_of.values()):
                return source_of
    # A bucket is no folder of this machine.
    return dict.fromkeys(distinct) if images is None else Photos(images).sources(distinct)
