"""Statements that are true or false of one image."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from counterfoil.benchmarks.forms.base import CaptionCandidates, Ids, Listed, Mask
from counterfoil.benchmarks.forms.release import FormRelease, ReleaseColumn, number_column, question_table
from counterfoil.benchmarks.forms.tables import QUESTIONS, Facts, StoredField
from counterfoil.errors import DataError
from counterfoil.inputs.columns import ColumnSchema


class _StatementFacts(Facts):
    """Whether some questions only choose the threshold, and whether votes of people are known."""

    calibration: bool
    votes: bool


@dataclass(frozen=True, eq=False)
class Statement(Listed):
    """An image and a caption that is true or false of it.

    `captions` and `images` are (n,) positions, `truth` is (n,): whether the statement is true. `calibration`
    marks the questions of another split, which choose a threshold and count in no measure; None where there
    are none. `votes` is (n, 2): how many people said false, and how many true; None where it is not known.
    """

    captions: Ids = field(kw_only=True)
    images: Ids = field(kw_only=True)
    truth: Mask = field(kw_only=True)
    calibration: Mask | None = field(default=None, kw_only=True)
    votes: NDArray[np.float64] | None = field(default=None, kw_only=True)

    form: ClassVar[str] = "statement"
    row_per_question: ClassVar[bool] = True
    given: ClassVar[tuple[str, ...]] = ("rated_scores", "choice_outcome")
    given_as: ClassVar[str] = (
        "a score per question, or right and wrong per question: columns id, score; or image, caption, score; "
        "or id, correct"
    )
    known: ClassVar[type[Facts]] = _StatementFacts
    stored: ClassVar[Mapping[str, tuple[StoredField, ...]]] = {
        QUESTIONS: (
            StoredField("captions", "caption"),
            StoredField("images", "image"),
            StoredField("truth", "truth", ColumnSchema("truth")),
            StoredField("calibration", "calibration", ColumnSchema("truth"), optional=True),
            StoredField("votes", "votes_", ColumnSchema("real", low=0), width=2, optional=True),
        )
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.calibration is not None and self.calibration.all():
            raise DataError("all questions only choose a threshold", allowed="some that are measured")
        if self.votes is not None and not (np.isfinite(self.votes).all() and (self.votes >= 0).all()):
            raise DataError("votes are not counts", allowed="finite numbers, 0 or more")

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of its scores, (n,)."""
        return (len(self),)

    @property
    def measured(self) -> Mask:
        """(n,) the questions that measures are of: all but those of the split that chooses the threshold."""
        return np.ones(len(self), dtype=bool) if self.calibration is None else ~self.calibration

    def pairs(self) -> tuple[Ids, Ids]:
        """The (caption, image) of every statement, each of shape (n,)."""
        return self.captions, self.images

    def slots(self) -> tuple[Ids, Ids]:
        """The statement and the image."""
        return self.captions[:, None], self.images[:, None]

    def opinions(self) -> tuple[Literal["votes", "ratings"], NDArray[np.float64]] | None:
        """The votes for false and for true."""
        return None if self.votes is None else ("votes", self.votes)

    def caption_candidates(self) -> CaptionCandidates:
        """The statement, with its truth as a rating: there is no other caption to choose."""
        rows = np.arange(len(self))
        return CaptionCandidates(rows, self.captions, self.truth.astype(float), rows, rated=True)

    def select(self, rows: Ids) -> "Statement":
        """The chosen questions; those that only choose a threshold count where no others are left."""
        entries = self.entries(self.per_question, rows)
        calibration = entries["calibration"]
        if calibration is not None and (calibration.all() or not calibration.any()):
            entries["calibration"] = None
        return replace(self, **self.chosen(rows), **entries)

    def training_rows(self, *, where: str) -> tuple[Ids | None, dict[str, Ids]]:
        """Every true statement with every false one of the same image, which is its negative caption.

        Raises `DataError` where no image has both.
        """
        false_of: dict[int, list[int]] = {}
        for question in np.flatnonzero(~self.truth).tolist():
            false_of.setdefault(int(self.images[question]), []).append(question)
        both = [
            (true, false)
            for true in np.flatnonzero(self.truth).tolist()
            for false in false_of.get(int(self.images[true]), ())
        ]
        if not both:
            raise DataError(
                "no image has both a true and a false statement, so there is no negative caption",
                where=where,
                allowed="statements of which two of one image differ in their truth",
            )
        true, false = np.asarray(both, dtype=np.int64).T
        return true, {
            "image": self.images[true],
            "caption": self.captions[true],
            "negative_caption": self.captions[false],
        }

    def release(self) -> FormRelease:
        """A row per statement, with its truth, and the votes where they are known."""
        columns = {
            "image": ReleaseColumn("image", self.images, "The image."),
            "caption": ReleaseColumn("caption", self.captions, "The statement."),
            "truth": ReleaseColumn("value", pa.array(self.truth), "Whether it is true of the image."),
        }
        if self.calibration is not None:
            about = "Whether the statement only chooses the threshold and counts in no measure."
            columns["calibration"] = ReleaseColumn("value", pa.array(self.calibration), about)
        if self.votes is not None:
            for at, answer in enumerate(("false", "true")):
                columns[f"votes_{answer}"] = number_column(
                    self.votes[:, at], f"How many people said {answer}."
                )
        table = question_table(self.ids, columns, self.groupings, about="Statements of images.")
        asks = "Each question holds one image and a statement that is true or false of it."
        return FormRelease((table,), asks, ("visual-question-answering",))
