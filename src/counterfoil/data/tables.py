"""Tables that people hand in: CSV, TSV, JSON, JSON Lines, Parquet, one file or a folder of them, as columns.

Cells stay as the file has them (everything in a CSV is text); the parsers of `columns`, offered here too,
turn a column into what a caller needs.
"""

import csv
import json
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from counterfoil.data.columns import Part, Table, booleans, floats, integers, labels, names, shown, texts
from counterfoil.errors import DataError
from counterfoil.store import read_parquet

__all__ = [
    "EXTENSIONS",
    "Part",
    "Table",
    "booleans",
    "floats",
    "integers",
    "labels",
    "names",
    "parse_json",
    "read_table",
    "stack",
    "texts",
]

#: What `read_table` reads, by the end of the file's name.
EXTENSIONS = (".csv", ".tsv", ".json", ".jsonl", ".parquet")


def read_table(path: Path) -> Table:
    """The table in `path`: a CSV, TSV, JSON, JSON Lines or Parquet file, or a folder with one per subset.

    * CSV, TSV: a header, then rows of as many cells; quotes, line breaks within quotes and a byte-order mark
      are understood; cells are strings.
    * JSON: a list of objects, or an object keyed by item id whose values are objects (the key becomes column
      `id`) or single values (columns `id` and `value`). JSON Lines: an object per line, blank lines skipped.
    * Parquet: any table; an image cell is `{"bytes", "path"}`.
    * A folder: the tables of its files in order of their names, below one another, with a column `subset`
      that holds the file's name without its ending.

    Raises `DataError` where there is no such file, the ending is unknown, there are no rows, a row is ragged
    or broken, or a name occurs twice in a header or a JSON object.
    """
    if path.is_dir():
        return _read_folder(path)
    if not path.is_file():
        raise DataError("no such file or folder", where=path, hint="check the path")
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise DataError(
            "unknown kind of table", where=path, given=path.suffix or "no extension", allowed=EXTENSIONS
        )
    try:
        return reader(path)
    except UnicodeDecodeError as error:
        raise DataError(f"not UTF-8 text (byte {error.start})", where=path, hint="save it as UTF-8") from None
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", where=path) from None


def read_text(path: Path) -> str:
    """The text in a UTF-8 file, a mark of byte order left out; raises `DataError` where there is none."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise DataError("no such file", where=path, hint="check the path") from None
    except IsADirectoryError:
        raise DataError("is a folder", where=path, hint="name the file in it") from None
    except UnicodeDecodeError as error:
        raise DataError(f"not UTF-8 text (byte {error.start})", where=path, hint="save it as UTF-8") from None
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", where=path) from None


def parse_json(text: str, *, where: object, without: Collection[str] = ()) -> Any:
    """The JSON value in `text`; raises `DataError` with line and column of what is broken or doubled.

    Keys in `without` are dropped from every object as soon as it is read.
    """
    try:
        return json.loads(text, object_pairs_hook=partial(_once, where, without))
    except json.JSONDecodeError as error:
        raise DataError(
            f"not valid JSON: {error.msg}",
            where=f"{where}, line {error.lineno}, column {error.colno}",
            hint="is the file cut off?",
        ) from None
    except RecursionError:
        raise DataError("JSON nested too deeply", where=where) from None


def _once(where: object, without: Collection[str], pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        double = next(name for name in names if names.count(name) > 1)
        raise DataError("key occurs twice in a JSON object", where=where, given=f"'{double}'")
    for name in without:
        found.pop(name, None)
    return found


def _read_delimited(path: Path) -> Table:
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    with open(path, newline="", encoding="utf-8-sig") as file:
        lines = csv.reader(file, delimiter=delimiter, strict=True)
        rows: list[list[str]] = []
        try:
            header = next(lines, None)
            if not header:
                raise DataError("the table is empty", where=path, hint="the first line must name the columns")
            header = [name.strip() for name in header]
            double = [name for name in header if header.count(name) > 1]
            if double:
                raise DataError("column name occurs twice", where=path, given=f"'{double[0]}'")
            for row in lines:
                # A blank line at the end of a file, or between rows, is nobody's row.
                if not row and len(header) > 1:
                    continue
                if len(row) != len(header):
                    raise DataError(
                        "ragged row",
                        where=f"{path}, row {len(rows) + 1} (line {lines.line_num})",
                        given=f"{len(row)} cells",
                        allowed=f"{len(header)}, as many as the header names",
                    )
                rows.append(row)
        except csv.Error as error:
            raise DataError(
                f"not valid CSV: {error}",
                where=f"{path}, line {lines.line_num}",
                hint="is a quote missing, or the file cut off?",
            ) from None
    columns = dict(zip(header, zip(*rows, strict=True), strict=True)) if rows else {}
    return Table(columns, str(path), path.suffix.lower()[1:], (Part(str(path), len(rows)),))


def _read_json(path: Path) -> Table:
    value = parse_json(path.read_text(encoding="utf-8-sig"), where=path)
    if isinstance(value, list):
        return _from_objects(value, Part(str(path), len(value)), "json")
    if isinstance(value, dict):
        keys = list(value)
        part = Part(str(path), len(keys), "item", keys)
        if all(isinstance(item, dict) for item in value.values()):
            objects = []
            for row, (key, item) in enumerate(value.items()):
                if "id" in item and str(item["id"]) != key:
                    raise DataError("id differs from the key", where=part.where(row), given=item["id"])
                objects.append({"id": key, **item, **({"id": key} if "id" in item else {})})
            return _from_objects(objects, part, "keyed")
        for row, item in enumerate(value.values()):
            if isinstance(item, dict | list):
                raise DataError(
                    "items are of different kinds",
                    where=part.where(row),
                    given=shown(item),
                    allowed="all objects, or all single values",
                )
        return Table({"id": tuple(keys), "value": tuple(value.values())}, str(path), "keyed", (part,))
    raise DataError(
        "not a table",
        where=path,
        given=shown(value),
        allowed="a list of objects, or an object keyed by item id",
    )


def _read_lines(path: Path) -> Table:
    objects, numbers = [], []
    for number, line in enumerate(path.read_text(encoding="utf-8-sig").split("\n"), start=1):
        if line.strip():
            try:
                objects.append(parse_json(line, where=f"{path}, line {number}"))
            except DataError as error:
                # Within one line, JSON's own "line 1" would only mislead.
                raise DataError(str(error).replace(", line 1, column", ", column")) from None
            numbers.append(number)
    return _from_objects(objects, Part(str(path), len(objects), "line", numbers), "jsonl")


def _read_parquet(path: Path) -> Table:
    table = read_parquet(path)
    names = table.column_names
    if len(set(names)) < len(names):
        raise DataError("column name occurs twice", where=path, given=names)
    columns = {name: table.column(name).to_pylist() for name in names}
    return Table(columns, str(path), "parquet", (Part(str(path), table.num_rows),))


_READERS: dict[str, Callable[[Path], Table]] = {
    ".csv": _read_delimited,
    ".tsv": _read_delimited,
    ".json": _read_json,
    ".jsonl": _read_lines,
    ".parquet": _read_parquet,
}


def _read_folder(folder: Path) -> Table:
    files = sorted(
        file
        for file in folder.iterdir()
        if file.is_file() and file.suffix.lower() in _READERS and not file.name.startswith(".")
    )
    if not files:
        raise DataError("no table in this folder", where=folder, allowed=EXTENSIONS)
    stems = [file.stem for file in files]
    double = next((stem for stem in stems if stems.count(stem) > 1), None)
    if double is not None:
        raise DataError("two files for one subset", where=folder, given=double)
    tables = [read_table(file) for file in files]
    return stack(tables, source=str(folder), column="subset", values=stems)


def stack(
    tables: Sequence[Table], *, source: str, column: str | None = None, values: Sequence[str] = ()
) -> Table:
    """Tables below one another; with `column`, a first column of that name says which one a row is of.

    Raises `DataError` naming the table that lacks a column the first one has, or has one more.
    """
    first = tables[0]
    for table in tables:
        odd = set(table.columns).symmetric_difference(first.columns)
        if odd or (column is not None and column in table):
            raise DataError(
                f"columns differ from those of {Path(first.source).name}"
                if odd
                else f"column '{column}' is taken",
                where=table.source,
                given=", ".join(table.columns),
                allowed=first.columns if odd else None,
            )
    columns: dict[str, Sequence[Any]] = {}
    if column is not None:
        columns[column] = tuple(
            value for table, value in zip(tables, values, strict=True) for _ in range(len(table))
        )
    for name in first.columns:
        columns[name] = tuple(cell for table in tables for cell in table[name])
    return Table(columns, source, "folder", tuple(part for table in tables for part in table.parts))


def _from_objects(objects: Sequence[Any], part: Part, kind: str) -> Table:
    names: dict[str, None] = {}
    for row, item in enumerate(objects):
        if not isinstance(item, dict):
            raise DataError(
                "not an object", where=part.where(row), given=shown(item), allowed='{"name": value, ...}'
            )
        names.update(dict.fromkeys(item))
    columns = {name: tuple(item.get(name) for item in objects) for name in names}
    return Table(columns, part.file, kind, (part,))
