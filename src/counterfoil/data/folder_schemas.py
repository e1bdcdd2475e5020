"""Schemas of a benchmark folder: the manifest's model, and one schema per table and form."""

from typing import Annotated, Literal

from pydantic import Field

from counterfoil.inputs.columns import ColumnSchema, Schema
from counterfoil.inputs.models import Stored

Positive = Annotated[int, Field(ge=1)]
Count = Annotated[int, Field(ge=0)]


class Manifest(Stored):
    """What every manifest says; each form adds facts of its own."""

    format: Literal["counterfoil benchmark"]
    schema_version: Positive
    form: Literal["quad", "choice", "gallery", "rated", "preference"]
    groupings: list[str]
    files: dict[str, str]
    #: Whether metrics count documents in captions of its own, which may not have been at hand.
    corpus: bool = False


class ChoiceManifest(Manifest):
    """How many of the candidates are right, and what the query is."""

    correct: Positive
    asks: Literal["image", "caption"]


class RatedManifest(Manifest):
    """How raters are taken, and what scores are rounded to."""

    raters: Literal["points", "apart"]
    decimals: Annotated[int, Field(ge=0, le=15)] | None
    references: bool


class PreferenceManifest(Manifest):
    """How references are drawn."""

    sample: Positive | None
    draws: Annotated[int, Field(ge=1, le=10_000)]
    seed: Count
    references: bool


class Rule(Stored):
    """Right answers by rule (`Plausible`)."""

    classes: Annotated[int, Field(ge=1, le=1 << 20)]
    thresholds: Annotated[list[Count], Field(min_length=1)]
    cap: Positive | None


class Direction(Stored):
    """One direction of a gallery: its queries, and the rule where right is what a rule says."""

    queries: Count
    plausible: Rule | None = None


class GalleryManifest(Manifest):
    """Both directions."""

    i2t: Direction
    t2i: Direction


#: The model of each form's manifest.
MANIFESTS: dict[str, type[Manifest]] = {
    "quad": Manifest,
    "choice": ChoiceManifest,
    "gallery": GalleryManifest,
    "rated": RatedManifest,
    "preference": PreferenceManifest,
}

_ID = ColumnSchema("text", unique=True)
_POSITION = ColumnSchema("whole", low=0)
_GROUPS = {"group:": ColumnSchema("text")}

CAPTIONS = Schema({"id": _ID, "text": ColumnSchema("text", null=True)})

_SECONDS = ColumnSchema("real", null=True, low=0, required=False)
IMAGES = Schema(
    {
        "id": ColumnSchema("text"),
        "file": ColumnSchema("text", null=True),
        "digest": ColumnSchema("text", null=True),
        "crop": ColumnSchema("wholes", null=True),
        "photo": ColumnSchema("text", null=True),
        "video": ColumnSchema("text", null=True, required=False),
        "start": _SECONDS,
        "end": _SECONDS,
        "count": ColumnSchema("whole", null=True, low=1, required=False),
        "rate": _SECONDS,
        "duration": _SECONDS,
        "frame_rate": _SECONDS,
    }
)

#: The questions of each form.
QUESTIONS: dict[str, Schema] = {
    "quad": Schema(
        {"id": _ID, **{f"{kind}_{at}": _POSITION for kind in ("caption", "image") for at in (0, 1)}}, _GROUPS
    ),
    "choice": Schema(
        {"id": _ID, "query": _POSITION, "candidate_0": _POSITION, "candidate_1": _POSITION},
        {"candidate_": _POSITION, **_GROUPS},
    ),
    "gallery": Schema(
        {"id": _ID, "query": _POSITION, "code": ColumnSchema("bytes", null=True)},
        _GROUPS,
    ),
    "rated": Schema(
        {
            "id": _ID,
            "caption": _POSITION,
            "image": _POSITION,
            "rating_0": ColumnSchema("real", null=True, nan=True),
        },
        {"rating_": ColumnSchema("real", null=True, nan=True), **_GROUPS},
    ),
    "preference": Schema(
        {
            "id": _ID,
            "label": ColumnSchema("whole", low=0, high=1),
            "votes_0": ColumnSchema("real", low=0),
            "votes_1": ColumnSchema("real", low=0),
        },
        _GROUPS,
    ),
}

#: The other tables.
OTHERS: dict[str, Schema] = {
    "members.parquet": Schema(
        {
            "kind": ColumnSchema("text"),
            "owner": ColumnSchema("whole", null=True, low=0),
            "part": ColumnSchema("whole", null=True, low=0),
            "code": ColumnSchema("bytes", null=True),
        }
    ),
    "positives.parquet": Schema(
        {
            "question": _POSITION,
            "item": ColumnSchema("whole", null=True, low=0),
            "gain": ColumnSchema("real", low=0),
        }
    ),
    "candidates.parquet": Schema(
        {
            "question": _POSITION,
            "side": ColumnSchema("whole", low=0, high=1),
            "caption": _POSITION,
            "image": _POSITION,
        }
    ),
    "references.parquet": Schema({"row": _POSITION, "caption": _POSITION}),
}


def schema_of(name: str, form: str) -> Schema:
    """The schema of a table in the folder of a benchmark of that form."""
    return OTHERS[name] if name in OTHERS else QUESTIONS[form]
