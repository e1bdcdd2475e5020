"""The table of judgements: a row per item, person and question, wherever the answers came from.

    item      id of the item that was judged
    person    who judged it: an id that is not a name
    question  which question of the item; items with a single one call it what they like
    answer    the answer as text: the value of the option, the text, or for several options and for spans a
              JSON list (`answer_cell`)
    seconds   how long the item took, the same for all of its questions; null where it is not known
    golden    of a golden item (one whose answer is known) whether it was answered right; null for all others

An item is answered by a person once per question. Further columns are kept and not looked at. In CSV a null
is an empty cell.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from counterfoil import store
from counterfoil.benchmarks.tables import DataTable, booleans, floats, labels, read_table
from counterfoil.errors import DataError
from counterfoil.inputs.columns import ColumnSchema, Schema, check_columns
from counterfoil.inputs.files import parse_json

#: The columns that every table of judgements has.
_KEY = ["item", "person", "question"]
_TEXTS = [pa.field(name, pa.string(), nullable=False) for name in (*_KEY, "answer")]
SCHEMA = pa.schema([*_TEXTS, pa.field("seconds", pa.float64()), pa.field("golden", pa.bool_())])
_CHECKS = Schema(
    {
        **{name: ColumnSchema("text") for name in (*_KEY, "answer")},
        "seconds": ColumnSchema("real", null=True, low=0),
        "golden": ColumnSchema("truth", null=True),
    }
)


def judgement_rows(rows: Sequence[dict[str, Any]], *, where: object) -> pa.Table:
    """The table of rows given as dicts; keys that a row lacks are null."""
    columns = {
        name: pa.array([row.get(name) for row in rows], kind)
        for name, kind in zip(SCHEMA.names, SCHEMA.types, strict=True)
    }
    return check_judgement_table(pa.table(columns), where=where)


def check_judgement_table(table: pa.Table, *, where: object) -> pa.Table:
    """The checked table with columns of the types above; `seconds` and `golden` may be missing."""
    for name in ("seconds", "golden"):
        if name not in table.column_names:
            table = table.append_column(SCHEMA.field(name), pa.nulls(len(table), SCHEMA.field(name).type))
        elif pa.types.is_null(table.schema.field(name).type):
            i = table.column_names.index(name)
            table = table.set_column(i, SCHEMA.field(name), table.column(i).cast(SCHEMA.field(name).type))
    table = check_columns(table, _CHECKS, where=where)
    for name in (*_KEY, "answer"):
        empty = pc.equal(pc.utf8_length(table.column(name)), 0)
        if pc.any(empty).as_py():
            row = int(np.argmax(empty.to_numpy(zero_copy_only=False)))
            hint = "leave rows without an answer out" if name == "answer" else None
            raise DataError("empty", where=f"{where}, column '{name}', row {row + 1}", hint=hint)
    seen = set()
    for row, key in enumerate(zip(*(table.column(name).to_pylist() for name in _KEY), strict=True), 1):
        if key in seen:
            what = "answered before: item {}, person {}, question {}".format(*key)
            hint = "keep one answer of each person to each question of an item"
            raise DataError(what, where=f"{where}, row {row}", hint=hint)
        seen.add(key)
    return table.select([*SCHEMA.names, *(name for name in table.column_names if name not in SCHEMA.names)])


def read_judgement_table(path: str | Path) -> pa.Table:
    """The judgements in a CSV, TSV, JSON, JSON Lines or Parquet file; see the module for its columns."""
    table = read_table(path)
    as_text = store.csv_text if table.kind in ("csv", "tsv") else str
    columns: dict[str, pa.Array] = {}
    for name in _KEY:
        columns[name] = pa.array(map(as_text, labels(table, name)), pa.string())
    # Answers as they are, blanks kept: a text of a person is not ours to trim.
    answers = [answer_cell(cell) if isinstance(cell, list | dict) else cell for cell in table["answer"]]
    for row, cell in enumerate(answers):
        if not isinstance(cell, str | int):
            raise DataError("not an answer", where=table.where(row, "answer"), given=cell or "(empty)")
    columns["answer"] = pa.array([as_text(str(cell)) for cell in answers], pa.string())
    for name in ("seconds", "golden", "counted"):
        if name in table:
            # Numbers, or right and wrong, in cells that may be empty.
            empty = np.array([cell is None or cell == "" for cell in table[name]])
            given = [0 if none else cell for cell, none in zip(table[name], empty, strict=True)]
            if name != "seconds":
                truths = {"right": True, "wrong": False}
                given = [truths.get(str(cell).strip().lower(), cell) for cell in given]
            read = floats if name == "seconds" else booleans
            column = DataTable({name: given}, table.source, table.kind, table.parts)
            columns[name] = pa.array(read(column, name), mask=empty)
    for name in table.columns:
        if name not in columns:
            texts = [None if cell is None else as_text(str(cell)) for cell in table[name]]
            columns[name] = pa.array(texts, pa.string())
    return check_judgement_table(pa.table(columns), where=path)


#: Raises `InputError` where a table of judgements cannot be written under a name.
check_table_kind = partial(store.check_table_kind, allowed=(".csv", ".parquet"))


def write_judgement_table(path: str | Path, table: pa.Table) -> None:
    """Write the table in one piece, as CSV or Parquet by the suffix."""
    path = Path(path)
    check_table_kind(path)
    table = check_judgement_table(table, where=path)
    if path.suffix.lower() == ".csv":
        gold = pc.if_else(table.column("golden"), "right", "wrong")
        table = table.set_column(table.column_names.index("golden"), "golden", gold)
    store.write_table(path, table)


def answer_cell(value: Any) -> str:
    """An answer as the table holds it: a text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, allow_nan=False)


def answer_value(cell: str, answer: str, *, where: object = "the table of judgements") -> Any:
    """The answer in a cell of a question of a kind: a text for "one" and "text", else the list."""
    if answer not in ("many", "spans"):
        return cell
    parts = parse_json(cell, where=where, finite=True)
    inner = str if answer == "many" else dict
    if not isinstance(parts, list) or not all(isinstance(part, inner) for part in parts):
        allowed = 'a JSON list of options, such as ["colour"]' if answer == "many" else "a list of spans"
        raise DataError("not an answer to this question", where=where, given=cell, allowed=allowed)
    return parts


@dataclass(frozen=True, eq=False)
class Submissions:
    """One row per item that a person answered, in the order of the table.

    `item` and `person` are places in `items` and `people`; `right` is 1 or 0 of golden items and -1 of
    others; `counts` is whether the answer goes into labels. What is not known is NaN.
    """

    items: tuple[str, ...]
    people: tuple[str, ...]
    item: NDArray[np.int64]
    person: NDArray[np.int64]
    seconds: NDArray[np.float64]
    submitted: NDArray[np.float64]
    right: NDArray[np.int8]
    counts: NDArray[np.bool_]

    @classmethod
    def of(cls, table: pa.Table) -> "Submissions":
        """From a table of judgements; a wrong golden answer to any question makes the item wrong."""
        items, item = encoded(table.column("item"))
        people, person = encoded(table.column("person"))
        pairs = item * max(1, len(people)) + person
        _, first, group = np.unique(pairs, return_index=True, return_inverse=True)
        group = group.reshape(-1)
        gold = pc.fill_null(pc.cast(table.column("golden"), pa.int8()), 2).to_numpy()
        right = np.full(len(first), 2, dtype=np.int8)
        np.minimum.at(right, group, gold)
        right[right == 2] = -1
        counts = right < 0
        if "role" in table.column_names:
            counts = pc.equal(pc.fill_null(table.column("role"), "work"), "work").to_numpy()[first]
        if "counted" in table.column_names:
            counts = counts & pc.fill_null(table.column("counted"), True).to_numpy()[first]
        order = np.argsort(first, kind="stable")
        rows = first[order]
        seconds, submitted = (numbers_of(table, name)[rows] for name in ("seconds", "submitted"))
        return cls(items, people, item[rows], person[rows], seconds, submitted, right[order], counts[order])

    def __len__(self) -> int:
        return len(self.item)

    @cached_property
    def per_item(self) -> NDArray[np.int64]:
        """How many answers that count each item has."""
        counts: NDArray[np.int64] = np.bincount(self.item[self.counts], minlength=len(self.items))
        return counts

    @cached_property
    def per_person(self) -> NDArray[np.int64]:
        """How many items each person answered, golden ones and those of the test among them."""
        counts: NDArray[np.int64] = np.bincount(self.person, minlength=len(self.people))
        return counts

    @cached_property
    def golden_of(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """How many golden items each person answered right, and how many in all."""
        n = len(self.people)
        return (
            np.bincount(self.person[self.right == 1], minlength=n),
            np.bincount(self.person[self.right >= 0], minlength=n),
        )

    @cached_property
    def median_seconds(self) -> NDArray[np.float64]:
        """The median time per item of each person; NaN of those of whom no time is known."""
        timed = ~np.isnan(self.seconds)
        parts = [self.seconds[timed & (self.person == i)] for i in range(len(self.people))]
        return np.array([np.median(part) if len(part) else np.nan for part in parts], dtype=np.float64)

    def hourly(self, pay_per_item: float) -> NDArray[np.float64]:
        """What each person earned per hour of work, paid by item; NaN of those of whom no time is known."""
        timed = ~np.isnan(self.seconds)
        n = len(self.people)
        spent = np.bincount(self.person[timed], weights=self.seconds[timed], minlength=n)
        done = np.bincount(self.person[timed], minlength=n)
        rates: NDArray[np.float64] = np.divide(
            3600 * pay_per_item * done, spent, out=np.full(n, np.nan), where=spent > 0
        )
        return rates


def encoded(column: pa.ChunkedArray) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """The texts of a column in order of appearance, and the place of each row's text among them."""
    coded = column.combine_chunks().dictionary_encode()
    return tuple(coded.dictionary.to_pylist()), coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)


def numbers_of(table: pa.Table, name: str) -> NDArray[np.float64]:
    """A column of numbers with NaN for null; NaN throughout where there is none or it holds other things."""
    column = table.column(name) if name in table.column_names else pa.nulls(len(table))
    if not (pa.types.is_floating(column.type) or pa.types.is_integer(column.type)):
        return np.full(len(table), np.nan)
    numbers: NDArray[np.float64] = pc.cast(column, pa.float64()).to_numpy(zero_copy_only=False)
    return numbers
