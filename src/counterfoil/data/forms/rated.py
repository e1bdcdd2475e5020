"""Captions with human ratings: one correlation over all questions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field

from counterfoil.data.forms.base import CaptionCandidates, Ids, Judged, check_shape
from counterfoil.data.forms.release import (
    FormRelease,
    ReleaseColumn,
    number_column,
    question_table,
    reference_columns,
)
from counterfoil.data.forms.tables import (
    POSITION,
    QUESTIONS,
    REFERENCES,
    REFERENCES_SCHEMA,
    Facts,
    cells,
    numbers,
    questions_schema,
    read_references,
    references_table,
)
from counterfoil.data.references import References, check_references
from counterfoil.errors import DataError
from counterfoil.inputs.columns import ColumnSchema, Schema

_RATING = ColumnSchema("real", null=True, nan=True)


class _RatedFacts(Facts):
    """How raters are taken, and what scores are rounded to."""

    raters: Literal["points", "apart"]
    decimals: Annotated[int, Field(ge=0, le=15)] | None
    references: bool


@dataclass(frozen=True, eq=False)
class Rated(Judged):
    """A caption (the candidate) of an image or a video, and what people gave it.

    `captions` and `images` are (n,) positions, `ratings` is (n, raters) with NaN where one is missing;
    every question has one, at least. `raters` says how several are correlated: "points" makes every rating a
    point of its own (Flickr8k-Expert), "apart" takes the correlation with each rater and averages them
    (VATEX-EVAL). Scores are rounded to `decimals` before they are ranked, where the protocol does so.
    """

    ratings: NDArray[np.float64] = field(kw_only=True)
    raters: Literal["points", "apart"] = field(default="points", kw_only=True)
    decimals: int | None = field(default=None, kw_only=True)

    form: ClassVar[str] = "rated"
    given: ClassVar[tuple[str, ...]] = ("rated_scores",)
    given_as: ClassVar[str] = "a score per question: columns id, score; or image, caption, score"
    row_per_question: ClassVar[bool] = True
    known: ClassVar[type[Facts]] = _RatedFacts
    schemas: ClassVar[Mapping[str, Schema]] = {
        QUESTIONS: questions_schema(
            {"caption": POSITION, "image": POSITION, "rating_0": _RATING}, {"rating_": _RATING}
        ),
        REFERENCES: REFERENCES_SCHEMA,
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        check_shape("captions", self.captions, (len(self.ids),))
        check_shape("images", self.images, (len(self.ids),))
        if self.ratings.ndim != 2 or len(self.ratings) != len(self.ids) or not self.ratings.shape[1]:
            raise DataError("ratings have the wrong shape", given=self.ratings.shape, allowed="(n, raters)")
        if np.isinf(self.ratings).any():
            raise DataError("a rating is infinite", allowed="finite numbers, or none")
        unrated = np.flatnonzero(np.isnan(self.ratings).all(axis=1))
        if len(unrated):
            raise DataError(
                "a question has no rating",
                where=f"question '{self.ids[unrated[0]]}'",
                given=f"{len(unrated)} of {len(self.ids)} without any",
                hint="leave such questions out",
            )
        check_references(self.references, len(self.ids))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of its scores, (n,)."""
        return (len(self),)

    @property
    def rows_of(self) -> Ids:
        """(rows,) the question that each row belongs to: its own."""
        return np.arange(len(self))

    def opinions(self) -> tuple[Literal["votes", "ratings"], NDArray[np.float64]]:
        """The ratings."""
        return "ratings", self.ratings

    def caption_candidates(self) -> CaptionCandidates:
        """The candidate, with its mean rating."""
        rows = np.arange(len(self))
        return CaptionCandidates(rows, self.captions, np.nanmean(self.ratings, axis=1), rows, rated=True)

    def slots(self) -> tuple[Ids, Ids]:
        """The candidate and the image."""
        return self.captions[:, None], self.images[:, None]

    def drawn(self) -> tuple[References, ...]:
        return () if self.references is None else (self.references,)

    def about(self) -> tuple[Ids, Ids]:
        """The image and the candidate."""
        return self.images[:, None], self.captions[:, None]

    def select(self, rows: Ids) -> "Rated":
        """The chosen questions."""
        return replace(self, **self.chosen(rows), **self.rows(rows), ratings=self.ratings[rows])

    def digest_facts(self, texts: Sequence[object], names: Sequence[object]) -> dict[str, object]:
        given = [[None if np.isnan(value) else value for value in row] for row in self.ratings.tolist()]
        return {
            **super().digest_facts(texts, names),
            "ratings": given,
            "raters": self.raters,
            "decimals": self.decimals,
        }

    def release(self) -> FormRelease:
        """A row per candidate with its ratings, a column per rater, and its references where it has some."""
        columns = {
            "image": ReleaseColumn("image", self.images, "The image."),
            "caption": ReleaseColumn("caption", self.captions, "The caption that was rated."),
        }
        raters = self.ratings.shape[1]
        for at in range(raters):
            name = "rating" if raters == 1 else f"rating_{at + 1}"
            columns[name] = number_column(self.ratings[:, at], f"The rating by rater {at + 1}.")
        columns |= reference_columns(self.references, np.arange(len(self)))
        table = question_table(self.ids, columns, self.groupings, about="Captions with ratings.")
        asks = "Each question holds one image, a caption of it, and the ratings that people gave the caption."
        return FormRelease((table,), asks, ("image-to-text",), {"raters": self.raters})

    def columns(self) -> tuple[dict[str, pa.Array], dict[str, Any], dict[str, pa.Table]]:
        columns = {"caption": pa.array(self.captions), "image": pa.array(self.images)}
        facts = {"raters": self.raters, "decimals": self.decimals}
        return (
            columns | cells("rating_", self.ratings),
            {**facts, "references": self.references is not None},
            {REFERENCES: references_table(self.references)},
        )

    @classmethod
    def fields(cls, tables: Mapping[str, pa.Table], facts: Mapping[str, Any]) -> dict[str, Any]:
        table = tables[QUESTIONS]
        return {
            "captions": table.column("caption").to_numpy(),
            "images": table.column("image").to_numpy(),
            "ratings": numbers(table, "rating_"),
            "references": read_references(tables[REFERENCES], len(table), facts),
            "raters": facts["raters"],
            "decimals": facts["decimals"],
        }
