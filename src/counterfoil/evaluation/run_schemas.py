"""Schemas of a run folder: models of its JSON, and the answers that are read from it."""

from typing import Annotated, Any, Literal

import pyarrow as pa
from pydantic import ConfigDict, Field

from counterfoil.data.columns import LARGEST
from counterfoil.errors import DataError
from counterfoil.inputs.columns import ColumnSchema, Schema, check_columns
from counterfoil.inputs.models import Stored

Count = Annotated[int, Field(ge=0)]

#: What columns of answers hold, beside the question's id.
SCORE, RIGHT = ColumnSchema("real", low=-LARGEST, high=LARGEST), ColumnSchema("truth")


class About(Stored):
    """What a run says of its benchmark."""

    source: str = ""
    path: str | None = None


class RunManifest(Stored):
    """`manifest.json`: layout, facts of the questions, digests of all files, and where the run is from."""

    model_config = ConfigDict(populate_by_name=True)

    layout: Annotated[int, Field(alias="schema")]
    questions: dict[str, Any]
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


def check_answers(
    table: pa.Table, columns: dict[str, ColumnSchema], ids: tuple[str, ...], *, where: object
) -> pa.Table:
    """The table of answers, checked, with a row for each of the questions `ids` in their order."""
    schema = Schema({"question": ColumnSchema("text", unique=True), **columns})
    checked = check_columns(table, schema, where=where)
    found = checked["question"].to_pylist()
    if found != list(ids):
        both = enumerate(zip(found, ids, strict=False))
        row = next((at for at, (name, other) in both if name != other), min(len(found), len(ids)))
        raise DataError(
            "the questions are not those of questions.parquet",
            where=f"{where}, row {row + 1}",
            given=found[row] if row < len(found) else f"{len(found)} rows",
            allowed=ids[row] if row < len(ids) else f"{len(ids)} rows",
            hint="was it edited?",
        )
    return checked
