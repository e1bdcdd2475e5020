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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field

from counterfoil.benchmarks.references import References, bounds
from counterfoil.errors import DataError
from counterfoil.inputs.columns import ColumnSchema, Schema

QUESTIONS, REFERENCES = "questions.parquet", "references.parquet"
MEMBERS, POSITIVES, CANDIDATES = "members.parquet", "positives.parquet", "candidates.parquet"
#: What the folder of every benchmark holds besides, its items and its card.
ITEM_FILES = ("card.json", "captions.parquet", "images.parquet")
#: Every table of questions that one of counterfoil's own forms has.
TABLES = (QUESTIONS, MEMBERS, POSITIVES, CANDIDATES, REFERENCES)
GROUP = "group:"

Positive = Annotated[int, Field(ge=1)]
Count = Annotated[int, Field(ge=0)]

POSITION = ColumnSchema("whole", low=0)
REFERENCES_SCHEMA = Schema({"row": POSITION, "caption": POSITION})


@dataclass(frozen=True)
class StoredField:
    """A field of questions as columns of a table: one called `name`; of a matrix `name`0, `name`1, ...

    A matrix has `width` columns; with `more` there may be further ones, of positions null behind the last of
    a row. An `optional` field may be None, which the manifest says: a matrix then has no columns.
    """

    field: str
    name: str
    schema: ColumnSchema = POSITION
    width: int | None = None
    more: ColumnSchema | None = None
    optional: bool = False
    #: What messages call it, in the plural, where not by its field.
    plural: str = ""

    def columns(self, values: NDArray[Any] | None, rows: int) -> dict[str, pa.Array]:
        if self.width is None:
            return {self.name: pa.array(np.zeros(rows, dtype=bool) if values is None else values)}
        if values is None:
            return {}
        lacking = values < 0 if self.schema.kind == "whole" else np.zeros(values.shape, dtype=bool)
        return {
            f"{self.name}{i}": pa.array(values[:, i], mask=lacking[:, i] if lacking[:, i].any() else None)
            for i in range(values.shape[1])
        }

    def read(self, table: pa.Table) -> NDArray[Any]:
        """The values of the field."""
        names = [self.name]
        if self.width is not None:
            names = [name for name in table.column_names if name.startswith(self.name)]
        columns = [table.column(name) for name in names]
        if self.more is not None and self.schema.kind == "whole":
            columns = [column.fill_null(-1) for column in columns]
        arrays = [column.to_numpy(zero_copy_only=False) for column in columns]
        kind = {"whole": np.int64, "truth": np.bool_}.get(self.schema.kind, np.float64)
        return (arrays[0] if self.width is None else np.stack(arrays, axis=1)).astype(kind, copy=False)


def questions_schema(columns: Mapping[str, ColumnSchema]) -> Schema:
    """The schema of the table of questions of a form with these columns."""
    return Schema({"id": ColumnSchema("text", unique=True), **columns}, {GROUP: ColumnSchema("text")})


def stored_schema(file: str, fields: Sequence[StoredField]) -> Schema:
    """The schema of a table with these fields."""
    columns: dict[str, ColumnSchema] = {}
    prefixes: dict[str, ColumnSchema] = {}
    for stored in fields:
        names = [stored.name] if stored.width is None else [f"{stored.name}{i}" for i in range(stored.width)]
        if stored.width is not None and (stored.more or stored.optional):
            prefixes[stored.name] = stored.more or stored.schema
        if stored.width is None or not stored.optional:
            columns |= dict.fromkeys(names, stored.schema)
    schema = questions_schema(columns) if file == QUESTIONS else Schema(columns)
    return Schema(schema.columns, {**prefixes, **schema.prefixes})


def read_references(table: pa.Table, rows: int, facts: Mapping[str, Any]) -> References | None:
    """The references of `rows` rows; None where the manifest says that there are none."""
    if not facts["references"]:
        return None
    of_row = table.column("row").to_numpy()
    check_order("rows of references", of_row, rows)
    counts = np.bincount(of_row, minlength=rows)
    return References(bounds(counts), table.column("caption").to_numpy())


def unpacked(rows: list[bytes | None], classes: int) -> NDArray[np.bool_]:
    """Codes of classes, (rows, classes); raises `DataError` for one that is missing or of others."""
    width = -(-classes // 8)
    odd = next((i for i, row in enumerate(rows) if row is None or len(row) != width), None)
    if odd is not None:
        what = "a code is not of as many classes as the rule"
        raise DataError(what, where=f"code {odd + 1}", allowed=str(classes))
    packed = np.frombuffer(b"".join(row for row in rows if row), dtype=np.uint8).reshape(len(rows), width)
    return np.unpackbits(packed, axis=1, count=classes).astype(bool)


def check_order(what: str, owners: NDArray[np.int64], n: int) -> None:
    """Raise `DataError` unless the rows that owners have are in the owners' order, of which there are `n`."""
    out = (owners < 0) | (owners >= n)
    if out.any():
        given, allowed = f"{int(owners[out][0])} in row {int(np.argmax(out)) + 1}", f"0 to {n - 1}"
        raise DataError(f"{what} are not those of the table of questions", given=given, allowed=allowed)
    back = np.flatnonzero(np.diff(owners) < 0)
    if len(back):
        i = int(back[0])
        raise DataError(f"{what} are not in order", given=f"{owners[i + 1]} after {owners[i]}")
