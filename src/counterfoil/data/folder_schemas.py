"""What the files in the folder of a benchmark hold: the manifest's model, and a schema per table and form."""

from typing import Annotated, Literal

from pydantic import Field

from counterfoil.inputs.columns import Column, Schema
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

_ID = Column("text", unique=True)
_POSITION = Column("whole", low=0)
_GROUPS = {"group:": Column("text")}

CAPTIONS = Schema({"id": _ID, "text": Column("text", null=True)})

_SECONDS = Column("real", null=True, low=0, required=False)
IMAGES = Schema(
    {
        "id": Column("text"),
        "file": Column("text", null=True),
        "digest": Column("text", null=True),
        "crop": Column("wholes", null=True),
        "photo": Column("text", null=True),
        "video": Column("text", null=True, required=False),
        "start": _SECONDS,
        "end": _SECONDS,
        "count": Column("whole", null=True, low=1, required=False),
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
        {"id": _ID, "query": _POSITION, "code": Column("bytes", null=True)},
        _GROUPS,
    ),
    "rated": Schema(
        {
            "id": _ID,
            "caption": _POSITION,
            "image": _POSITION,
            "rating_0": Column("real", null=True, nan=True),
        },
        {"rating_": Column("real", null=True, nan=True), **_GROUPS},
    ),
    "preference": Schema(
        {
            "id": _ID,
            "label": Column("whole", low=0, high=1),
            "votes_0": Column("real", low=0),
            "votes_1": Column("real", low=0),
        },
        _GROUPS,
    ),
}

#: The other tables.
OTHERS: dict[str, Schema] = {
    "members.parquet": Schema(
        {
            "kind": Column("text"),
            "owner": Column("whole", null=True, low=0),
            "part": Column("whole", null=True, low=0),
            "code": Column("bytes", null=True),
        }
    ),
    "positives.parquet": Schema(
        {
            "question": _POSITION,
            "item": Column("whole", null=True, low=0),
            "gain": Column("real", low=0),
        }
    ),
    "candidates.parquet": Schema(
        {
            "question": _POSITION,
            "side": Column("whole", low=0, high=1),
            "caption": _POSITION,
            "image": _POSITION,
        }
    ),
    "references.parquet": Schema({"row": _POSITION, "caption": _POSITION}),
}


def schema_of(name: str, form: str) -> Schema:
    """The schema of a table in the folder of a benchmark of that form."""
    return OTHERS[name] if name in OTHERS else QUESTIONS[form]
