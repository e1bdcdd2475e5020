"""A table as named columns, and what its cells may mean: texts, labels, numbers, right and wrong.

Every parser says which file, row and column does not fit.
"""

import math
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import DataError, ScoreError

_TRUE = {"true", "1", "1.0", "yes"}
_FALSE = {"false", "0", "0.0", "no"}

#: The largest score, or other number of a table: squares and sums of a million such are still finite.
LARGEST = 1e100

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

    def __post_init__(self) -> None:
        lengths = {name: len(cells) for name, cells in self.columns.items()}
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
            shown = list(self.columns)[:_SHOWN]
            near = get_close_matches(column, shown, n=1, cutoff=0.6)
            raise DataError(
                f"no column '{column}'",
                where=self.source,
                allowed=[*shown, f"... ({len(self.columns):,} columns)"]
                if len(shown) < len(self.columns)
                else shown,
                hint=f"did you mean '{near[0]}'?" if near else None,
            )
        return self.columns[column]

    def where(self, row: int, column: str | None = None) -> str:
        """File, row and column in words, for messages.

        >>> DataTable({"id": ["a", "b"]}, "scores.csv").where(1, "id")
        "scores.csv, row 2, column 'id'"
        """
        at, offset = f"{self.source}, row {row + 1}", 0
        for part in self.parts:
            if row < offset + part.rows:
                at = part.where(row - offset)
                break
            offset += part.rows
        return at if column is None else f"{at}, column '{column}'"


def texts(table: DataTable, column: str) -> tuple[str, ...]:
    """A column of non-empty strings, blanks at their ends kept; raises `DataError` naming the odd row."""
    for row, cell in enumerate(table[column]):
        if not isinstance(cell, str):
            raise DataError("not a text", where=table.where(row, column), given=shown(cell))
        if not cell.strip():
            raise DataError("empty text", where=table.where(row, column))
    return tuple(table[column])


def labels(table: DataTable, column: str, allowed: Sequence[str] = ()) -> tuple[str, ...]:
    """A column of labels: strings or whole numbers as strings, "" where a row has none.

    With `allowed`, raises `DataError` naming the row whose label is not one of them.
    """
    found = []
    for row, cell in enumerate(table[column]):
        if cell is not None and (isinstance(cell, bool) or not isinstance(cell, str | int)):
            raise DataError("not a label", where=table.where(row, column), given=shown(cell))
        label = "" if cell is None else str(cell).strip()
        if allowed and label not in allowed:
            raise DataError(
                "unknown label", where=table.where(row, column), given=label or "(empty)", allowed=allowed
            )
        found.append(label)
    return tuple(found)


def names(table: DataTable, column: str) -> tuple[str, ...]:
    """A column of ids: labels, none empty and none twice; raises `DataError` naming the row.

    >>> names(DataTable({"id": ["a", 7, "a"]}, "mine.csv"), "id")
    Traceback (most recent call last):
    counterfoil.errors.DataError: mine.csv, row 3, column 'id': id occurs twice; given: a; ids must be unique
    """
    found = labels(table, column)
    seen: set[str] = set()
    for row, name in enumerate(found):
        if not name:
            raise DataError("empty id", where=table.where(row, column))
        if name in seen:
            raise DataError(
                "id occurs twice", where=table.where(row, column), given=name, hint="ids must be unique"
            )
        seen.add(name)
    return found


def floats(table: DataTable, column: str) -> NDArray[np.float64]:
    """A column of finite numbers, (rows,) float64, up to `LARGEST`.

    Raises `ScoreError` naming the row that is not one.

    >>> floats(DataTable({"score": ["0.5", "-1e3"]}, "scores.csv"), "score")
    array([ 5.e-01, -1.e+03])
    >>> floats(DataTable({"score": ["0.5", "nan"]}, "scores.csv"), "score")
    Traceback (most recent call last):
    counterfoil.errors.ScoreError: scores.csv, row 2, column 'score': not a finite number; given: nan
    """
    numbers = np.empty(len(table), dtype=np.float64)
    for row, cell in enumerate(table[column]):
        number = _number(cell)
        if number is None or not math.isfinite(number):
            raise ScoreError(
                "not a number" if number is None else "not a finite number",
                where=table.where(row, column),
                given=shown(cell),
            )
        if abs(number) > LARGEST:
            raise ScoreError(
                "a number out of range",
                where=table.where(row, column),
                given=shown(cell),
                allowed=f"{-LARGEST:g} to {LARGEST:g}",
            )
        numbers[row] = number
    return numbers


def integers(table: DataTable, column: str) -> NDArray[np.int64]:
    """A column of whole numbers, (rows,) int64; raises `DataError` naming the row that is not one."""
    numbers = np.empty(len(table), dtype=np.int64)
    for row, cell in enumerate(table[column]):
        number = _whole(cell)
        if number is None:
            raise DataError("not a whole number", where=table.where(row, column), given=shown(cell))
        if not -(1 << 63) <= number < 1 << 63:
            raise DataError(
                "a whole number out of range",
                where=table.where(row, column),
                given=shown(cell),
                allowed="64 bits with sign",
            )
        numbers[row] = number
    return numbers


def booleans(table: DataTable, column: str) -> NDArray[np.bool_]:
    """A column of right and wrong, (rows,) bool: true/false, yes/no, 1/0 or 1.0/0.0, in any case.

    Raises `ScoreError` naming the row that is none of these.

    >>> booleans(DataTable({"correct": ["True", "0", 1.0, False]}, "outcomes.csv"), "correct")
    array([ True, False,  True, False])
    """
    answers = np.empty(len(table), dtype=np.bool_)
    for row, cell in enumerate(table[column]):
        word = shown(cell).strip().lower() if isinstance(cell, dict | list) else str(cell).strip().lower()
        if word not in _TRUE and word not in _FALSE:
            raise ScoreError(
                "neither true nor false",
                where=table.where(row, column),
                given=shown(cell),
                allowed="true, false, yes, no, 1, 0",
            )
        answers[row] = word in _TRUE
    return answers


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
    """A cell as a message shows it: short, and telling text from number."""
    if cell is None:
        return "nothing"
    shown = _REPR.repr(cell) if not isinstance(cell, str) else cell or "(empty)"
    return shown if len(shown) <= 60 else f"{shown[:57]}..."
