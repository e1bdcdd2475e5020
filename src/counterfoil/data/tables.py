"""Tables that people hand in: CSV, TSV, JSON, JSON Lines, Parquet, one file or a folder of them, as columns.

Cells stay as the file has them (everything in a CSV is text); the parsers of `columns`, offered here too,
turn a column into what a caller needs.
"""

import csv
import io
import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from pathlib import Path
from typing import Any

from counterfoil.data.columns import (
    DataTable,
    TablePart,
    booleans,
    floats,
    integers,
    labels,
    names,
    shown,
    texts,
)
from counterfoil.errors import DataError
from counterfoil.inputs.columns import read_parquet, values
from counterfoil.inputs.files import decoded, parse_json, read_bytes, read_text, regular, unreadable
from counterfoil.inputs.memory import check_room

__all__ = [
    "EXTENSIONS",
    "DataTable",
    "TablePart",
    "booleans",
    "floats",
    "integers",
    "labels",
    "names",
    "read_table",
    "stack",
    "texts",
]

#: What `read_table` reads, by the end of the file's name.
EXTENSIONS = (".csv", ".tsv", ".json", ".jsonl", ".parquet")


def read_table(path: str | Path) -> DataTable:
    """The table in `path`: a CSV, TSV, JSON, JSON Lines or Parquet file, or a folder with one per subset.

    * CSV, TSV: a header, then rows of as many cells; quotes, line breaks within quotes, a byte-order mark and
      semicolons in place of commas are understood; cells are strings.
    * JSON: a list of objects, or an object keyed by item id whose values are objects (the key becomes column
      `id`; an item that is null or NaN is a row with nothing else) or single values (columns `id` and
      `value`). JSON Lines: an object per line, blank lines skipped.
    * Parquet: any table; an image cell is `{"bytes", "path"}`.
    * A folder: the tables of its files in order of their names, below one another, with a column `subset`
      that holds the file's name without its ending.

    Raises `DataError` where there is no such file, the ending is unknown, there are no rows, a row is ragged
    or broken, or a name occurs twice in a header or a JSON object.
    """
    path = Path(path)
    try:
        if path.is_dir():
            return _read_folder(path)
    except OSError as error:
        raise unreadable(path, error) from None
    regular(path, missing="no such file or folder")
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise DataError(
            "unknown kind of table", where=path, given=path.suffix or "no extension", allowed=EXTENSIONS
        )
    return reader(path)


def _read_delimited(path: Path) -> DataTable:
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    with io.StringIO(decoded(read_bytes(path), where=path), newline="") as file:
        lines = csv.reader(file, delimiter=delimiter, strict=True)
        rows: list[list[str]] = []
        try:
            header = next(lines, None)
            if header is not None and len(header) == 1 and ";" in header[0]:
                # As spreadsheets write it where the comma is in numbers.
                file.seek(0)
                lines = csv.reader(file, delimiter=";", strict=True)
                header = next(lines)
            if not header:
                raise DataError("the table is empty", where=path, hint="the first line must name the columns")
            header = [name.strip() for name in header]
            double = first_double(header)
            if double is not None:
                raise DataError("column name occurs twice", where=path, given=f"'{double}'")
            for row in lines:
                # A blank line at the end of a file, or between rows, is no row.
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
    return DataTable(columns, str(path), path.suffix.lower()[1:], (TablePart(str(path), len(rows)),))


def _read_json(path: Path) -> DataTable:
    value = parse_json(read_text(path), where=path)
    if isinstance(value, list):
        return _from_objects(value, TablePart(str(path), len(value)), "json")
    if isinstance(value, dict):
        keys = list(value)
        part = TablePart(str(path), len(keys), "item", keys)
        kinds = {isinstance(item, dict) for item in value.values() if not _nothing(item)}
        if kinds == {True}:
            objects = []
            for row, (key, given) in enumerate(value.items()):
                item = {} if _nothing(given) else given
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
        return DataTable({"id": tuple(keys), "value": tuple(value.values())}, str(path), "keyed", (part,))
    raise DataError(
        "not a table",
        where=path,
        given=shown(value),
        allowed="a list of objects, or an object keyed by item id",
    )


def _nothing(item: object) -> bool:
    """Whether an item is null or NaN: a question that a released file holds no answer to."""
    return item is None or (isinstance(item, float) and math.isnan(item))


def _read_lines(path: Path) -> DataTable:
    objects, numbers = [], []
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if line.strip():
            try:
                objects.append(parse_json(line, where=f"{path}, line {number}"))
            except DataError as error:
                # Within one line, JSON's own "line 1" would only mislead.
                raise DataError(str(error).replace(", line 1, column", ", column")) from None
            numbers.append(number)
    return _from_objects(objects, TablePart(str(path), len(objects), "line", numbers), "jsonl")


def _read_parquet(path: Path) -> DataTable:
    table = read_parquet(path)
    names = table.column_names
    double = first_double(names)
    if double is not None:
        raise DataError("column name occurs twice", where=path, given=f"'{double}'")
    columns = {name: values(table, name, where=path) for name in names}
    return DataTable(columns, str(path), "parquet", (TablePart(str(path), table.num_rows),))


_READERS: dict[str, Callable[[Path], DataTable]] = {
    ".csv": _read_delimited,
    ".tsv": _read_delimited,
    ".json": _read_json,
    ".jsonl": _read_lines,
    ".parquet": _read_parquet,
}


def _read_folder(folder: Path) -> DataTable:
    files = sorted(
        file
        for file in folder.iterdir()
        if file.is_file() and file.suffix.lower() in _READERS and not file.name.startswith(".")
    )
    if not files:
        raise DataError("no table in this folder", where=folder, allowed=EXTENSIONS)
    stems = [file.stem for file in files]
    double = first_double(stems)
    if double is not None:
        raise DataError("two files for one subset", where=folder, given=double)
    tables = [read_table(file) for file in files]
    return stack(tables, source=str(folder), column="subset", values=stems)


def first_double(values: Iterable[Hashable]) -> Any:
    """The first value that was there before, None where all differ.

    >>> first_double(["a", "b", "a"])
    'a'
    """
    seen: set[Hashable] = set()
    for value in values:
        if value in seen:
            return value
        seen.add(value)
    return None


def stack(
    tables: Sequence[DataTable], *, source: str, column: str | None = None, values: Sequence[str] = ()
) -> DataTable:
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
    return DataTable(columns, source, "folder", tuple(part for table in tables for part in table.parts))


def _from_objects(objects: Sequence[Any], part: TablePart, kind: str) -> DataTable:
    names: dict[str, None] = {}
    for row, item in enumerate(objects):
        if not isinstance(item, dict):
            raise DataError(
                "not an object", where=part.where(row), given=shown(item), allowed='{"name": value, ...}'
            )
        names.update(dict.fromkeys(item))
    # Where every row has keys of its own there are as many columns as cells, and a table of nothing else.
    check_room(8 * len(names) * len(objects), where=part.file, what=f"a table of {len(names):,} columns")
    columns = {name: tuple(item.get(name) for item in objects) for name in names}
    return DataTable(columns, part.file, kind, (part,))
