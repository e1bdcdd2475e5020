"""Tables of questions in a benchmark folder: their names, schemas, and the columns that several forms have.

    questions.parquet   id, positions into captions and images, a column `group:NAME` per grouping; for a
                        gallery `query` (the image, or the caption, that asks) and `code`; of choices
                        `candidate_K` is null behind the last candidate of a question with fewer
    members.parquet     of a gallery: its images, then its captions: owner (of captions), part, code
    positives.parquet   of a gallery: question, item (null where the gallery does not hold it), gain
    candidates.parquet  of preferences: question, side, positions of caption and image; a row per sentence
    references.parquet  of ratings and preferences: row (of the questions, or of the candidates), caption

A code is the classes of object of `Plausible`, a bit each, packed into bytes; null where right answers are
listed. Which direction has which, and how many of the questions ask for captions, is in the facts.
"""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field

from counterfoil.benchmarks.forms.registry import FormName
from counterfoil.benchmarks.references import References, bounds
from counterfoil.errors import DataError
from counterfoil.inputs.columns import ColumnSchema, Schema
from counterfoil.inputs.files import Stored

QUESTIONS, REFERENCES = "questions.parquet", "references.parquet"
GROUP = "group:"

Positive = Annotated[int, Field(ge=1)]
Count = Annotated[int, Field(ge=0)]

POSITION = ColumnSchema("whole", low=0)
REFERENCES_SCHEMA = Schema({"row": POSITION, "caption": POSITION})


class Facts(Stored):
    """What a manifest says of the questions; each form adds facts of its own."""

    form: FormName
    groupings: list[str]


def questions_schema(
    columns: Mapping[str, ColumnSchema], prefixes: Mapping[str, ColumnSchema] | None = None
) -> Schema:
    """The schema of the table of questions of a form with these columns."""
    columns = {"id": ColumnSchema("text", unique=True), **columns}
    return Schema(columns, {**(prefixes or {}), GROUP: ColumnSchema("text")})


def cells(
    prefix: str,
    values: NDArray[np.int64] | NDArray[np.float64],
    *,
    filled: NDArray[np.bool_] | None = None,
) -> dict[str, pa.Array]:
    """The columns of a matrix, called by the prefix and their number; null where it is not `filled`."""
    lacking = np.zeros(values.shape, dtype=bool) if filled is None else ~filled
    return {
        f"{prefix}{i}": pa.array(values[:, i], mask=lacking[:, i] if lacking[:, i].any() else None)
        for i in range(values.shape[1])
    }


def positions(table: pa.Table, prefix: str, *, none: int | None = None) -> NDArray[np.int64]:
    """The matrix of the columns with a prefix, as it is; `none` in place of null."""
    names = [name for name in table.column_names if name.startswith(prefix)]
    columns = [table.column(name) for name in names]
    filled = columns if none is None else [column.fill_null(none) for column in columns]
    return np.stack([column.to_numpy() for column in filled], axis=1)


def numbers(table: pa.Table, prefix: str) -> NDArray[np.float64]:
    """The matrix of the columns with a prefix, as float64."""
    names = [name for name in table.column_names if name.startswith(prefix)]
    return np.stack([table.column(name).to_numpy().astype(np.float64) for name in names], axis=1)


def references_table(references: References | None) -> pa.Table:
    """References, a row for each."""
    listed = references or References.of([])
    return pa.table({"row": pa.array(listed.rows), "caption": pa.array(listed.captions)})


def read_references(table: pa.Table, rows: int, facts: Mapping[str, Any]) -> References | None:
    """The references of so many rows; None where the manifest says that there are none."""
    if not facts["references"]:
        return None
    of_row = table.column("row").to_numpy()
    check_order("rows of references", of_row, rows)
    counts = np.bincount(of_row, minlength=rows)
    return References(bounds(counts), table.column("caption").to_numpy())


def unpacked(rows: list[bytes | None], classes: int) -> NDArray[np.bool_]:
    """Codes of so many classes, (rows, classes); raises `DataError` for one that is missing or of others."""
    width = -(-classes // 8)
    odd = next((at for at, row in enumerate(rows) if row is None or len(row) != width), None)
    if odd is not None:
        raise DataError(
            "a code is not of as many classes as the rule", where=f"code {odd + 1}", allowed=str(classes)
        )
    packed = np.frombuffer(b"".join(row for row in rows if row), dtype=np.uint8).reshape(len(rows), width)
    return np.unpackbits(packed, axis=1, count=classes).astype(bool)


def check_order(what: str, owners: NDArray[np.int64], n: int) -> None:
    """Raise `DataError` unless the rows that owners have are in the owners' order, of which there are `n`.

    >>> check_order("right answers", np.array([0, 2, 1]), 3)
    Traceback (most recent call last):
    counterfoil.errors.DataError: right answers are not in order; given: 1 after 2
    """
    out = (owners < 0) | (owners >= n)
    if out.any():
        raise DataError(
            f"{what} are not those of the table of questions",
            given=f"{int(owners[out][0])} in row {int(np.argmax(out)) + 1}",
            allowed=f"0 to {n - 1}",
        )
    back = np.flatnonzero(np.diff(owners) < 0)
    if len(back):
        at = int(back[0])
        raise DataError(f"{what} are not in order", given=f"{owners[at + 1]} after {owners[at]}")
