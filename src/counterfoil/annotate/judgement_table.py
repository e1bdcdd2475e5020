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
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from counterfoil.benchmarks.tables import DataTable, booleans, floats, labels, read_table
from counterfoil.errors import DataError, InputError
from counterfoil.inputs.columns import ColumnSchema, Schema, check_columns
from counterfoil.inputs.files import parse_json
from counterfoil.store import csv_text, write_csv, write_parquet

#: The columns that every table of judgements has.
SCHEMA = pa.schema(
    [
        pa.field("item", pa.string(), nullable=False),
        pa.field("person", pa.string(), nullable=False),
        pa.field("question", pa.string(), nullable=False),
        pa.field("answer", pa.string(), nullable=False),
        pa.field("seconds", pa.float64()),
        pa.field("golden", pa.bool_()),
    ]
)
_KEY = ["item", "person", "question"]
_CHECKS = Schema(
    {
        **{name: ColumnSchema("text") for name in (*_KEY, "answer")},
        "seconds": ColumnSchema("real", null=True, low=0),
        "golden": ColumnSchema("truth", null=True),
    }
)


def judgement_rows(rows: Sequence[dict[str, Any]], *, where: object) -> pa.Table:
    """The table of rows given as dicts; keys that a row lacks are null. Raises as `check_judgement_table`.

    >>> row = {"item": "a", "person": "p", "question": "match", "answer": "yes"}
    >>> judgement_rows([row], where="answers").num_rows
    1
    """
    columns = {
        name: pa.array([row.get(name) for row in rows], kind)
        for name, kind in zip(SCHEMA.names, SCHEMA.types, strict=True)
    }
    return check_judgement_table(pa.table(columns), where=where)


def check_judgement_table(table: pa.Table, *, where: object) -> pa.Table:
    """The table with its columns of the types above, those six first.

    Columns `seconds` and `golden` may be missing, and are null then. Raises `DataError` naming column and row
    for a cell that is empty or out of range, and for a question that a person answered twice of one item.

    >>> made = pa.table({"item": ["a", "a"], "person": ["p", "p"], "question": ["q", "q"],
    ...                  "answer": ["yes", "no"]})
    >>> check_judgement_table(made, where="answers.csv")
    Traceback (most recent call last):
    counterfoil.errors.DataError: answers.csv, row 2: answered before: item a, person p, question q; ...
    """
    for name in ("seconds", "golden"):
        if name not in table.column_names:
            table = table.append_column(SCHEMA.field(name), pa.nulls(len(table), SCHEMA.field(name).type))
        elif pa.types.is_null(table.schema.field(name).type):
            at = table.column_names.index(name)
            table = table.set_column(at, SCHEMA.field(name), table.column(at).cast(SCHEMA.field(name).type))
    table = check_columns(table, _CHECKS, where=where)
    for name in (*_KEY, "answer"):
        empty = pc.equal(pc.utf8_length(table.column(name)), 0)
        if pc.any(empty).as_py():
            row = int(np.argmax(empty.to_numpy(zero_copy_only=False)))
            hint = "leave rows without an answer out" if name == "answer" else None
            raise DataError("empty", where=f"{where}, column '{name}', row {row + 1}", hint=hint)
    seen = set()
    for row, key in enumerate(zip(*(table.column(name).to_pylist() for name in _KEY), strict=True)):
        if key in seen:
            item, person, question = key
            raise DataError(
                f"answered before: item {item}, person {person}, question {question}",
                where=f"{where}, row {row + 1}",
                hint="keep one answer of each person to each question of an item",
            )
        seen.add(key)
    return table.select([*SCHEMA.names, *(name for name in table.column_names if name not in SCHEMA.names)])


def read_judgement_table(path: str | Path) -> pa.Table:
    """The judgements in a CSV, TSV, JSON, JSON Lines or Parquet file; see the module for its columns.

    `golden` is right or wrong (also true, yes, 1 and their opposites), or empty; so is `counted`, of answers
    that were set aside wrong. Raises `DataError` or
    `ScoreError` naming the row and column that is not as it should be.
    """
    table = read_table(path)
    as_text = csv_text if table.kind in ("csv", "tsv") else str
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


def check_table_kind(path: Path) -> None:
    """Raise `InputError` where a table of judgements cannot be written under this name."""
    if path.suffix.lower() not in (".csv", ".parquet"):
        raise InputError(
            "unknown kind of table", where=path, given=path.suffix or "(no suffix)", allowed=".csv, .parquet"
        )


def write_judgement_table(path: str | Path, table: pa.Table) -> None:
    """Write the table in one piece, as CSV or Parquet by the suffix; raises `InputError` for another one."""
    path = Path(path)
    check_table_kind(path)
    table = check_judgement_table(table, where=path)
    if path.suffix.lower() == ".parquet":
        write_parquet(path, table)
    else:
        golden = pc.if_else(table.column("golden"), "right", "wrong")
        write_csv(path, table.set_column(table.column_names.index("golden"), "golden", golden))


def answer_cell(value: Any) -> str:
    """An answer as the table holds it: a text as it is, anything else as JSON.

    >>> answer_cell("yes"), answer_cell(["colour", "quantity"])
    ('yes', '["colour", "quantity"]')
    """
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, allow_nan=False)


def answer_value(cell: str, answer: str, *, where: object = "the table of judgements") -> Any:
    """The answer in a cell of a question of a kind: a text for "one" and "text", else the list.

    Raises `DataError` for a cell that is not a list of options ("many") or of spans ("spans").

    >>> answer_value('["colour"]', "many"), answer_value("yes", "one")
    (['colour'], 'yes')
    """
    if answer not in ("many", "spans"):
        return cell
    parts = parse_json(cell, where=where, finite=True)
    inner = str if answer == "many" else dict
    if not isinstance(parts, list) or not all(isinstance(part, inner) for part in parts):
        raise DataError(
            "not an answer to this question",
            where=where,
            given=cell,
            allowed='a JSON list of options, such as ["colour"]' if answer == "many" else "a list of spans",
        )
    return parts
