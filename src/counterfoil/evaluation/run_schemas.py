"""Schemas of a run folder: models of its JSON, and of the tables that all runs have."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

import pyarrow as pa
from pydantic import ConfigDict, Field

from counterfoil.data.columns import LARGEST
from counterfoil.errors import DataError, InputError
from counterfoil.inputs.columns import ColumnSchema, Schema, check_columns
from counterfoil.inputs.models import Stored

Count = Annotated[int, Field(ge=0)]

#: The columns of `items.parquet` that all forms have.
QUESTION = {"question": ColumnSchema("text", unique=True)}
SCORE = ColumnSchema("real", low=-LARGEST, high=LARGEST)
PREFIXES = {"group:": ColumnSchema("text"), "measure:": ColumnSchema("real", null=True, nan=True)}


class About(Stored):
    """What a run says of its benchmark."""

    source: str = ""
    path: str | None = None


class RunManifest(Stored):
    """`manifest.json`: the layout, the card, the digest of every file, and where the run came from."""

    model_config = ConfigDict(populate_by_name=True)

    layout: Annotated[int, Field(alias="schema")]
    card: dict[str, Any]
    digests: dict[str, str]
    benchmark: About = About()
    command: str | list[str] | None = None


class EstimateModel(Stored):
    """One number with its interval, and those that tell it apart from chance."""

    value: float
    low: float
    high: float
    n: Count
    chance: float | None
    effective: Annotated[float, Field(ge=0)] | None = None


class TiesModel(Stored):
    """How ties were counted, and what the other policies give."""

    policy: Literal["strict", "half", "optimistic"]
    questions: Count | None = None
    rate: Annotated[float, Field(ge=0, le=1)] | None = None
    measures: dict[str, dict[str, float | None]] = Field(default_factory=dict)


class ResultModel(Stored):
    """`result.json`."""

    benchmark: str
    scorer: str
    measures: dict[str, EstimateModel]
    groups: dict[str, dict[str, EstimateModel]] = Field(default_factory=dict)
    ties: TiesModel
    provenance: dict[str, Any] = Field(default_factory=dict)


def answers_schema(table: pa.Table, names: Mapping[str, Any] | list[str], *, where: object) -> Schema:
    """The schema of `scores.parquet` of questions that list their pairs: numbers, or right and wrong.

    `names` are the columns that numbers have. Raises `DataError` where the columns are neither those nor all
    true and false.
    """
    given = [name for name in table.column_names if name != "question"]
    if given and all(pa.types.is_boolean(table.schema.field(name).type) for name in given):
        return Schema({**QUESTION, **{name: ColumnSchema("truth") for name in given}})
    if given != list(names):
        raise DataError(
            "not the scores of these questions",
            where=where,
            given=", ".join(given[:12]) or "no column",
            allowed=list(names)[:12],
        )
    return Schema({**QUESTION, **dict.fromkeys(names, SCORE)})


def check_answers(
    table: pa.Table, names: Mapping[str, Any] | list[str], ids: tuple[str, ...], *, where: object
) -> pa.Table:
    """The table of answers, checked, with a row for each of the questions `ids` in their order."""
    checked = check_columns(table, answers_schema(table, names, where=where), where=where)
    check_questions(checked, ids, where=where)
    return checked


def check_questions(table: pa.Table, ids: tuple[str, ...], *, where: object) -> None:
    """Raise `DataError` where a table's questions are not those of `items.parquet`, in that order."""
    found = table["question"].to_pylist()
    if found != list(ids):
        both = enumerate(zip(found, ids, strict=False))
        row = next((at for at, (name, other) in both if name != other), min(len(found), len(ids)))
        raise DataError(
            "the questions are not those of items.parquet",
            where=f"{where}, row {row + 1}",
            given=found[row] if row < len(found) else f"{len(found)} rows",
            allowed=ids[row] if row < len(ids) else f"{len(ids)} rows",
            hint="was it edited?",
        )


def check_crops(table: pa.Table, *names: str, where: object) -> None:
    """Raise `DataError` where a crop (in the columns `names`, else in `crop`) is not of four numbers."""
    for name in names or ("crop",):
        lengths = table[name].combine_chunks().value_lengths()
        odd = [at for at, length in enumerate(lengths.to_pylist()) if length not in (None, 0, 4)]
        if odd:
            raise DataError(
                "a crop is not of four numbers",
                where=f"{where}, column '{name}', row {odd[0] + 1}",
                hint="was it edited?",
            )


@contextmanager
def misfits(folder: Path) -> Iterator[None]:
    """Name the folder in the errors of questions that are made of its tables."""
    try:
        yield
    except InputError as error:
        said = str(error)
        if str(folder) in said:
            raise
        raise DataError(f"the tables do not fit each other: {said}", where=folder) from None
