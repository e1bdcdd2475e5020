"""Tables that people hand in: CSV, TSV, JSON, JSON Lines, Parquet, one file or a folder of them, as columns.

Cells stay as the file has them (everything in a CSV is text); parsers turn a column into texts, labels,
numbers, or right and wrong, and say which file, row and column does not fit. A table in memory (a frame, an
Arrow table, records, columns) is made one by `memory_table`.
"""

import csv
import io
import math
import reprlib
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import accumulate, groupby
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from counterfoil.benchmarks.records import CellSource, file_age, one_reader, parquet_file
from counterfoil.errors import DataError, InputError, ScoreError
from counterfoil.inputs.columns import broken, check_size, read_parquet, values
from counterfoil.inputs.files import decoded, parse_json, read_bytes, read_text, regular, unreadable
from counterfoil.inputs.limits import check_room

_TRUE = {"true", "1", "1.0", "yes"}
_FALSE = {"false", "0", "0.0", "no"}

#: The largest score, or other number of a table: squares and sums of a million such are still finite.
LARGEST = 1e100

#: The column of the numbers of rows, from 0.
ROW = "#"

#: Columns that an error lists, at most.
_SHOWN = 50

#: Lists and objects in messages: not deep, not long.
_REPR = reprlib.Repr()
_REPR.maxlevel, _REPR.maxstring, _REPR.maxother, _REPR.maxlong = 3, 60, 60, 40


@dataclass(frozen=True)
class TablePart:
    """One file of a table and how its rows are named in messages: "row 3", "line 3" or "item '17'"."""

    file: str
    rows: int
    unit: str = "row"
    marks: Sequence[object] | None = None

    def where(self, row: int) -> str:
        """File and row; rows count from 1, and a header is not a row."""
        mark = self.marks[row] if self.marks is not None else row + 1
        return f"{self.file}, {self.unit} {mark!r}"


@dataclass(frozen=True, eq=False)
class DataTable:
    """Named columns of equal length.

    `source` is the file or folder, `kind` its layout: "csv", "tsv", "json" (a list), "keyed" (a JSON object
    keyed by item id), "jsonl", "parquet", or "folder". A cell that its row does not have is None.
    """

    columns: Mapping[str, Sequence[Any]]
    source: str
    kind: str = "table"
    parts: tuple[TablePart, ...] = ()
    #: Numbers among the objects of keyed files, such as their accuracy: the file and the key of each.
    passed_over: tuple[str, ...] = ()
    #: What a reader left out or drew, in words, for the source of the benchmark.
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        lengths = dict(zip(self.columns, map(len, self.columns.values()), strict=True))
        if not lengths or not max(lengths.values()):
            raise DataError("the table has no rows", where=self.source)
        if len(set(lengths.values())) > 1:
            raise DataError("columns have different lengths", where=self.source, given=lengths)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __contains__(self, column: str) -> bool:
        return column in self.columns

    def __getitem__(self, column: str) -> Sequence[Any]:
        """The cells of a column; raises `DataError` with the columns there are."""
        if column not in self.columns:
            shown = [name for name in self.columns if name != ROW][:_SHOWN]
            near = get_close_matches(column, shown, n=1, cutoff=0.6)
            more = [f"... ({len(self.columns):,} columns)"] if len(shown) < len(self.columns) else []
            what, hint = f"no column '{column}'", f"did you mean '{near[0]}'?" if near else None
            raise DataError(what, where=self.source, given=", ".join([*shown, *more]), hint=hint)
        return self.columns[column]

    def where(self, row: int, column: str | None = None) -> str:
        """File, row and column in words, for messages."""
        place, offset = f"{self.source}, row {row + 1}", 0
        for part in self.parts:
            if row < offset + part.rows:
                place = part.where(row - offset)
                break
            offset += part.rows
        return place if column is None else f"{place}, column '{column}'"

    def with_columns(self, columns: Mapping[str, Sequence[Any]]) -> "DataTable":
        """The table with these columns, which replace those of their names."""
        return replace(self, columns={**self.columns, **columns})

    def take(self, rows: Sequence[int]) -> "DataTable":
        """The table of some rows, which messages still call by their places; `ROW` is the number of each."""
        columns = {ROW: row_numbers(self), **self.columns}
        of_part = [number for number, part in enumerate(self.parts) for _ in range(part.rows)]
        starts = list(accumulate((part.rows for part in self.parts), initial=0))
        parts = []
        for number, run in groupby(rows, key=lambda row: of_part[row]) if of_part else ():
            part = self.parts[number]
            positions = [row - starts[number] for row in run]
            marks = [place + 1 if part.marks is None else part.marks[place] for place in positions]
            parts.append(replace(part, rows=len(marks), marks=marks))
        taken = {name: tuple(cells[row] for row in rows) for name, cells in columns.items()}
        return replace(self, columns=taken, parts=tuple(parts))


def row_numbers(table: DataTable) -> Sequence[int]:
    """The number of each row from 0, in its file where the table has a column of those."""
    return table[ROW] if ROW in table else range(len(table))


def texts(table: DataTable, column: str) -> tuple[str, ...]:
    """A column of non-empty strings, blanks at their ends kept; raises `DataError` naming the odd row."""
    cells = table[column]
    if {*map(type, cells)} == {str} and all(map(str.strip, cells)):
        return tuple(cells)
    check_cells(table, column, lambda cell: isinstance(cell, str), "not a text")
    empty = next((row for row, cell in enumerate(cells) if not cell.strip()), None)
    if empty is not None:
        raise DataError("empty text", where=table.where(empty, column))
    return tuple(map(str, cells))


def labels(table: DataTable, column: str, allowed: Sequence[str] = ()) -> tuple[str, ...]:
    """A column of labels: strings or whole numbers as strings, "" where a row has none.

    With `allowed`, raises `DataError` naming the row whose label is not one of them.
    """
    cells = table[column]
    if {*map(type, cells)} == {str} and not allowed:
        return tuple(map(str.strip, cells))
    labels_read = []
    for row, cell in enumerate(cells):
        if cell is not None and (isinstance(cell, bool) or not isinstance(cell, str | int)):
            raise DataError("not a label", where=table.where(row, column), given=shown(cell))
        label = "" if cell is None else str(cell).strip()
        if allowed and label not in allowed:
            what = "unknown label"
            raise DataError(what, where=table.where(row, column), given=label or "(empty)", allowed=allowed)
        labels_read.append(label)
    return tuple(labels_read)


def names(table: DataTable, column: str) -> tuple[str, ...]:
    """A column of ids: labels, none empty and none twice."""
    names_read = labels(table, column)
    seen: set[str] = set()
    for row, name in enumerate(names_read):
        if not name:
            raise DataError("empty id", where=table.where(row, column))
        if name in seen:
            what = "id occurs twice"
            raise DataError(what, where=table.where(row, column), given=name, hint="ids must be unique")
        seen.add(name)
    return names_read


def check_cells(
    table: DataTable, column: str, fits: Callable[[Any], object], what: str, allowed: str | None = None
) -> Sequence[Any]:
    """The cells of a column; raises `DataError` naming the row of the first that does not fit."""
    for row, cell in enumerate(table[column]):
        if not fits(cell):
            raise DataError(what, where=table.where(row, column), given=shown(cell), allowed=allowed)
    return table[column]


def check_numbers(
    table: DataTable,
    column: str | None,
    numbers: NDArray[Any],
    odd: NDArray[np.bool_],
    what: str,
    allowed: str,
) -> None:
    """Raise `DataError` naming the first row of `numbers` that is odd."""
    if odd.any():
        row = int(np.argmax(odd))
        raise DataError(what, where=table.where(row, column), given=numbers[row].tolist(), allowed=allowed)


def floats(table: DataTable, column: str) -> NDArray[np.float64]:
    """A column of finite numbers, (rows,) float64, up to `LARGEST`."""
    numbers = np.empty(len(table), dtype=np.float64)
    for row, cell in enumerate(table[column]):
        number = _number(cell)
        # Written so that NaN is refused, too.
        if number is None or not abs(number) <= LARGEST:
            finite = number is not None and math.isfinite(number)
            what = "a number out of range" if finite else "not a finite number"
            raise ScoreError(
                what if number is not None else "not a number",
                where=table.where(row, column),
                given=shown(cell),
                allowed=f"{-LARGEST:g} to {LARGEST:g}" if finite else None,
            )
        numbers[row] = number
    return numbers


def integers(table: DataTable, column: str) -> NDArray[np.int64]:
    """A column of whole numbers, (rows,) int64; raises `DataError` naming the row that is not one."""
    cells = table[column]
    if {*map(type, cells)} == {int} and -(1 << 63) <= min(cells) <= max(cells) < 1 << 63:
        return np.array(cells, dtype=np.int64)
    numbers = np.empty(len(table), dtype=np.int64)
    for row, cell in enumerate(cells):
        number = _whole(cell)
        if number is None or not -(1 << 63) <= number < 1 << 63:
            what = "not a whole number" if number is None else "a whole number out of range"
            allowed = None if number is None else "64 bits with sign"
            raise DataError(what, where=table.where(row, column), given=shown(cell), allowed=allowed)
        numbers[row] = number
    return numbers


def booleans(table: DataTable, column: str) -> NDArray[np.bool_]:
    """A column of right and wrong, (rows,) bool: true/false, yes/no, 1/0 or 1.0/0.0, in any case."""
    answers = np.empty(len(table), dtype=np.bool_)
    for row, cell in enumerate(table[column]):
        word = (shown(cell) if isinstance(cell, dict | list) else str(cell)).strip().lower()
        if word not in _TRUE and word not in _FALSE:
            where, allowed = table.where(row, column), "true, false, yes, no, 1, 0"
            raise ScoreError("neither true nor false", where=where, given=shown(cell), allowed=allowed)
        answers[row] = word in _TRUE
    return answers


def shares_right(table: DataTable, column: str) -> NDArray[Any]:
    """A column of right and wrong as `booleans`; (rows,) float where a cell is a share of several answers."""
    numbers = [_number(cell) for cell in table[column]]
    parts = {row: number for row, number in enumerate(numbers) if number is not None and 0 < number < 1}
    cells = [row in parts or cell for row, cell in enumerate(table[column])]
    whole = booleans(DataTable({column: cells}, table.source, table.kind, table.parts), column)
    if not parts:
        return whole
    return np.array([parts.get(row, float(right)) for row, right in enumerate(whole)])


def _number(cell: object) -> float | None:
    if isinstance(cell, bool) or not isinstance(cell, int | float | str):
        return None
    try:
        return float(cell)
    except (ValueError, OverflowError):
        return None


def _whole(cell: object) -> int | None:
    """A whole number as it is written: a large one does not go through a float, which would round it."""
    if isinstance(cell, str):
        try:
            return int(cell)
        except ValueError:
            pass
    elif isinstance(cell, int) and not isinstance(cell, bool):
        return cell
    number = _number(cell)
    return int(number) if number is not None and math.isfinite(number) and number == int(number) else None


def shown(cell: object) -> str:
    """A cell as messages show it: short, with texts in quotes."""
    if cell is None:
        return "nothing"
    shown = _REPR.repr(cell) if not isinstance(cell, str) else cell or "(empty)"
    return shown if len(shown) <= 60 else f"{shown[:57]}..."


#: What `read_table` reads, by the end of the file's name.
EXTENSIONS = (".csv", ".tsv", ".json", ".jsonl", ".parquet")


def read_table(path: str | Path, *, summaries: bool = False) -> DataTable:
    """The table in `path`: a CSV, TSV, JSON, JSON Lines or Parquet file, or a folder with one per subset.

    Cells of CSV are strings. JSON is a list of objects, or an object keyed by item id whose values are
    objects (the key becomes column `id`; an item that is null or NaN is a row with nothing else; with
    `summaries` a number, such as the accuracy that a released file ends with, is passed over) or single
    values (columns `id` and `value`). Of a folder the column `subset` holds the file's name without its
    ending; a .txt is a column `caption`, without empty lines.
    """
    path = Path(path)
    if path.is_dir():
        try:
            entries = [file for file in sorted(path.iterdir()) if file.is_file() and file.name[0] != "."]
        except OSError as error:
            raise unreadable(path, error) from None
        files = [file for file in entries if file.suffix.lower() in _READERS]
        if not files:
            raise DataError("no table in this folder", where=path, allowed=EXTENSIONS)
        stems = [file.stem for file in files]
        double = first_double(stems)
        if double is not None:
            raise DataError("two files for one subset", where=path, given=double)
        tables = [read_table(file, summaries=summaries) for file in files]
        return stack(tables, source=str(path), column="subset", values=stems)
    regular(path, missing="no such file or folder")
    reader = _READERS.get(path.suffix.lower())
    if path.suffix.lower() == ".txt":
        lines = [line.strip() for line in read_text(path).splitlines() if line.strip()]
        return DataTable({"caption": lines}, str(path), "txt", (TablePart(str(path), len(lines)),))
    if reader is None:
        given = path.suffix or "no extension"
        raise DataError("unknown kind of table", where=path, given=given, allowed=EXTENSIONS)
    return _read_json(path, summaries) if reader is _read_json else reader(path)


def _read_delimited(path: Path) -> DataTable:
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    with io.StringIO(decoded(read_bytes(path), where=path), newline="") as file:
        lines = csv.reader(file, delimiter=delimiter, strict=True)
        rows: list[list[str]] = []
        try:
            header = next(lines, None)
            # Semicolons, as spreadsheets write where the comma is in numbers, or tabs.
            if header and len(header) == 1 and (other := next((c for c in ";\t" if c in header[0]), "")):
                file.seek(0)
                lines = csv.reader(file, delimiter=other, strict=True)
                header = next(lines)
            if not header:
                raise DataError("the table is empty", where=path, hint="the first line must name the columns")
            header = [name.strip() for name in header]
            check_header(header, path)
            for row in lines:
                # A blank line at the end of a file, or between rows, is no row.
                if not row and len(header) > 1:
                    continue
                if len(row) != len(header):
                    where = f"{path}, row {len(rows) + 1} (line {lines.line_num})"
                    allowed = f"{len(header)}, as many as the header names"
                    raise DataError("ragged row", where=where, given=f"{len(row)} cells", allowed=allowed)
                rows.append(row)
        except csv.Error as error:
            what, hint = f"not valid CSV: {error}", "is a quote missing, or the file cut off?"
            raise DataError(what, where=f"{path}, line {lines.line_num}", hint=hint) from None
    columns = dict(zip(header, zip(*rows, strict=True), strict=True)) if rows else {}
    return DataTable(columns, str(path), path.suffix.lower()[1:], (TablePart(str(path), len(rows)),))


def _read_json(path: Path, summaries: bool = False) -> DataTable:
    value = parse_json(read_text(path), where=path)
    if isinstance(value, list):
        return objects_table(value, TablePart(str(path), len(value)), "json")
    if isinstance(value, dict):
        extra = summary_keys(value) if summaries else []
        value = {key: item for key, item in value.items() if key not in extra}
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
            passed_over = tuple(f"'{key}' of {path.name}" for key in extra)
            return replace(objects_table(objects, part, "keyed"), passed_over=passed_over)
        for row, item in enumerate(value.values()):
            if isinstance(item, dict | list):
                what, allowed = "items are of different kinds", "all objects, or all single values"
                raise DataError(what, where=part.where(row), given=shown(item), allowed=allowed)
        return DataTable({"id": tuple(keys), "value": tuple(value.values())}, str(path), "keyed", (part,))
    allowed = "a list of objects, or an object keyed by item id"
    raise DataError("not a table", where=path, given=shown(value), allowed=allowed)


def summary_keys(items: Mapping[str, object]) -> list[str]:
    """The keys that hold numbers where others hold objects: sums of a file, such as its accuracy."""
    if not any(isinstance(item, dict) for item in items.values()):
        return []
    numbers = (key for key, item in items.items() if isinstance(item, int | float) and not _nothing(item))
    return [key for key in numbers if not isinstance(items[key], bool)]


def _nothing(item: object) -> bool:
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
    return objects_table(objects, TablePart(str(path), len(objects), "line", numbers), "jsonl")


def _read_parquet(path: Path) -> DataTable:
    table = read_parquet(path)
    names = table.column_names
    check_header(names, path)
    columns = {name: values(table, name, where=path) for name in names}
    return DataTable(columns, str(path), "parquet", (TablePart(str(path), table.num_rows),))


_READERS: dict[str, Callable[[Path], DataTable]] = {
    ".csv": _read_delimited,
    ".tsv": _read_delimited,
    ".json": _read_json,
    ".jsonl": _read_lines,
    ".jsonlines": _read_lines,
    ".parquet": _read_parquet,
}


def first_double(values: Iterable[Hashable]) -> Any:
    """The first value that was there before, None where all differ."""
    seen: set[Hashable] = set()
    for value in values:
        if value in seen:
            return value
        seen.add(value)
    return None


def check_header(names: Sequence[str], file: Path) -> None:
    """Raise `DataError` where two columns of a file have one name."""
    double = first_double(names)
    if double is not None:
        raise DataError("column name occurs twice", where=file, given=f"'{double}'")


def stack(
    tables: Sequence[DataTable], *, source: str, column: str | None = None, values: Sequence[str] = ()
) -> DataTable:
    """Tables below one another; with `column`, a first column of that name says which one a row is of."""
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
    columns = {name: tuple(cell for table in tables for cell in table[name]) for name in first.columns}
    if column is not None:
        of_row = tuple(value for table, value in zip(tables, values, strict=True) for _ in range(len(table)))
        columns = {column: of_row, **columns}
    parts = tuple(part for table in tables for part in table.parts)
    passed_over = tuple(key for table in tables for key in table.passed_over)
    return DataTable(columns, source, "folder", parts, passed_over)


def objects_table(objects: Sequence[Any], part: TablePart, kind: str) -> DataTable:
    """A row of each object; raises `DataError` naming what is none."""
    names: dict[str, None] = {}
    for row, item in enumerate(objects):
        if not isinstance(item, dict):
            what = "not an object"
            raise DataError(what, where=part.where(row), given=shown(item), allowed='{"name": value, ...}')
        names.update(dict.fromkeys(item))
    # Where every row has keys of its own there are as many columns as cells, and a table of nothing else.
    check_room(8 * len(names) * len(objects), where=part.file, what=f"a table of {len(names):,} columns")
    columns = {name: tuple(item.get(name) for item in objects) for name in names}
    return DataTable(columns, part.file, kind, (part,))


#: What messages call such a table.
_IN_MEMORY = "data in memory"
_MEMORY_KINDS = "a path, a pandas or polars frame, a pyarrow table, a list of dicts, or a dict of columns"


def memory_table(data: Any) -> DataTable:
    """The table that `data` holds: a frame, an Arrow table, a dict of columns, or records (dicts)."""
    if isinstance(data, DataTable):
        return data
    try:
        columns = _memory_columns(data)
    except (pa.ArrowException, TypeError, ValueError) as error:
        words = " ".join(str(error).split())
        raise InputError(f"not a table: {words}", where=_IN_MEMORY, allowed=_MEMORY_KINDS) from None
    if not columns:
        raise DataError("the table has no rows", where=_IN_MEMORY)
    return DataTable(columns, _IN_MEMORY)


def _memory_columns(data: Any) -> dict[str, list[Any]]:
    # A frame of pandas, whose cells may be pictures, which Arrow does not hold.
    if hasattr(data, "notna") and hasattr(data, "columns"):
        if not data.columns.is_unique:
            raise ValueError("a column name occurs twice")
        return {str(k): v for k, v in data.astype(object).where(data.notna(), None).to_dict("list").items()}
    if hasattr(data, "__arrow_c_stream__"):
        table = pa.table(data)
        return {name: values(table, name, where=_IN_MEMORY) for name in table.column_names}
    if isinstance(data, Mapping):
        return {str(name): list(cells) for name, cells in data.items()}
    records = list(data) if isinstance(data, Iterable) else [data]
    for record in records:
        if not isinstance(record, Mapping):
            raise TypeError(f"a {type(record).__name__} is no row")
    names = dict.fromkeys(name for record in records for name in record)
    return {str(name): [record.get(name) for record in records] for name in names}


def open_rows(
    path: Path, images: Sequence[str], *, split: str = "", names: Sequence[str] = (), subsets: bool = False
) -> DataTable:
    """The rows in `path`: a Parquet file, any file that `read_table` reads, or a folder.

    In a folder the first of these counts: the Parquet files in it or in its `data/` (those of `split` where
    there are several splits); a table called one of `names`; the only table; with `subsets` all tables, a
    column `subset` telling them apart.
    """
    if not path.is_dir():
        return rows_of_files([path], images) if path.suffix.lower() == ".parquet" else read_table(path)
    if (path / "dataset_dict.json").is_file() or (path / "state.json").is_file():
        hint = "write each split with its to_parquet, and name that file or folder"
        raise DataError("a data set saved by the library datasets", where=path, hint=hint)
    for place in (path, path / "data"):
        parquet = sorted(place.glob("*.parquet"))
        of_split = [file for file in parquet if split and file.name.startswith((f"{split}-", f"{split}."))]
        if of_split or parquet:
            return rows_of_files(of_split or parquet, images, source=str(path))
    for name in names:
        if (path / name).is_file():
            return read_table(path / name)
    tables = sorted(file for file in path.iterdir() if file.suffix.lower() in EXTENSIONS)
    if len(tables) > 1 and subsets:
        return read_table(path)
    if len(tables) != 1:
        raise DataError(
            "no data set in this folder" if not tables else "several tables in this folder",
            where=path,
            given=", ".join(file.name for file in tables[:8]) or "nothing that can be read",
            allowed=("Parquet files", *names),
            hint="name the file itself" if tables else None,
        )
    return read_table(tables[0])


def rows_of_files(files: Sequence[Path], images: Sequence[str], *, source: str | None = None) -> DataTable:
    """The rows of Parquet files that make one data set, in order."""
    tables = []
    for file in files:
        regular(file)
        try:
            # Images are read from the same Parquet file, by any thread.
            with one_reader:
                opened = parquet_file(file.resolve(), file_age(file))
                schema = opened.schema_arrow
                check_header(schema.names, file)
                # Columns whose cells hold bytes rather than paths.
                lazy = [
                    name for name in images if name in schema.names and holds_bytes(schema.field(name).type)
                ]
                plain = [name for name in schema.names if name not in lazy]
                check_size(opened.metadata, where=file, columns=plain)
                table, rows = opened.read(columns=plain), opened.metadata.num_rows
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise broken(file, error, "Parquet") from None
        columns: dict[str, Sequence[Any]] = {name: values(table, name, where=file) for name in plain}
        for name in lazy:
            columns[name] = tuple(CellSource(file, name, row) for row in range(rows))
        tables.append(DataTable(columns, str(file), "parquet", (TablePart(str(file), rows),)))
    place = files[0] if len(files) == 1 else files[0].parent
    return replace(stack(tables, source=source or str(place)), kind="parquet")


def holds_bytes(kind: pa.DataType) -> bool:
    """Whether a column's cells hold pictures."""
    if pa.types.is_struct(kind):
        return any(field.name == "bytes" for field in kind)
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))
