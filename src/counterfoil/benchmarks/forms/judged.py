"""Captions that people judged: with ratings (`Rated`), or two with votes for each (`Preference`).

`Statement` has captions that are true or false of one image.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar, Literal

import numpy as np
import pyarrow as pa
from numpy import ndarray
from numpy.typing import NDArray
from pydantic import Field

from counterfoil.benchmarks.forms.base import CaptionCandidates, Facts, Ids, Judged, Listed, Mask, check_shape
from counterfoil.benchmarks.forms.release import (
    FormRelease,
    ReleaseColumn,
    number_column,
    question_table,
    reference_columns,
)
from counterfoil.benchmarks.forms.tables import CANDIDATES, QUESTIONS, Count, Positive, StoredField
from counterfoil.benchmarks.references import References
from counterfoil.errors import DataError
from counterfoil.inputs.columns import ColumnSchema

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
    facts_model: ClassVar[type[Facts]] = _RatedFacts
    stored: ClassVar[Mapping[str, tuple[StoredField, ...]]] = {
        QUESTIONS: (
            StoredField("captions", "caption"),
            StoredField("images", "image"),
            StoredField("ratings", "rating_", _RATING, width=1, more=_RATING),
        )
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.ratings.ndim != 2 or len(self.ratings) != len(self.ids) or not self.ratings.shape[1]:
            raise DataError("ratings have the wrong shape", given=self.ratings.shape, allowed="(n, raters)")
        if np.isinf(self.ratings).any():
            raise DataError("a rating is infinite", allowed="finite numbers, or none")
        unrated = np.flatnonzero(np.isnan(self.ratings).all(axis=1))
        if len(unrated):
            what = "a question has no rating"
            given = f"{len(unrated)} of {len(self.ids)} without any"
            hint = "leave such questions out"
            raise DataError(what, where=f"question '{self.ids[unrated[0]]}'", given=given, hint=hint)

    @property
    def rows_of(self) -> Ids:
        return np.arange(len(self))

    def opinions(self) -> tuple[Literal["votes", "ratings"], NDArray[np.float64]]:
        return "ratings", self.ratings

    def caption_candidates(self) -> CaptionCandidates:
        rows = np.arange(len(self))
        return CaptionCandidates(rows, self.captions, np.nanmean(self.ratings, axis=1), rows, rated=True)

    def digest_facts(self, texts: Sequence[object], names: Sequence[object]) -> dict[str, object]:
        facts = super().digest_facts(texts, names)
        return {**facts, "raters": self.raters, "decimals": self.decimals}

    def release(self) -> FormRelease:
        columns = {
            "image": ReleaseColumn("image", self.images, "The image."),
            "caption": ReleaseColumn("caption", self.captions, "The caption that was rated."),
        }
        raters = self.ratings.shape[1]
        for i in range(raters):
            name = "rating" if raters == 1 else f"rating_{i + 1}"
            columns[name] = number_column(self.ratings[:, i], f"The rating by rater {i + 1}.")
        columns |= reference_columns(self.references, np.arange(len(self)))
        table = question_table(self.ids, columns, self.groupings, about="Captions with ratings.")
        asks = "Each question holds one image, a caption of it, and the ratings that people gave the caption."
        return FormRelease((table,), asks, ("image-to-text",), {"raters": self.raters})


_SIDE = ColumnSchema("whole", low=0, high=1)


class _PreferenceFacts(Facts):
    """How references are drawn."""

    sample: Positive | None
    draws: Annotated[int, Field(ge=1, le=10_000)]
    seed: Count
    references: bool


@dataclass(frozen=True, eq=False)
class Preference(Judged):
    """Two candidates for one image or video, and how many people preferred each.

    `votes` is (n, 2), not negative. Each candidate is one caption or several sentences, each of its own image
    (a segment of the video): `captions` and `images` are (rows,) positions, row r belongs to candidate
    `sides[r]` (0 or 1) of question `owners[r]`, and a candidate's score is the mean over its rows. Rows lie
    in the order of questions and sides. `references` has an entry per row.

    `label` is the preferred one, (n,) 0 or 1: that of more votes; where both have as many it was drawn, once,
    when the benchmark was read. With `sample`, metrics that read references get that many of each row, in
    `draws` draws from `seed`, and a measure is the mean over the draws (Pascal-50S: 5 of 48, 5 times).
    """

    owners: Ids = field(kw_only=True)
    sides: Ids = field(kw_only=True)
    votes: NDArray[np.float64] = field(kw_only=True)
    label: Ids = field(kw_only=True)
    sample: int | None = field(default=None, kw_only=True)
    draws: int = field(default=1, kw_only=True)
    seed: int = field(default=0, kw_only=True)

    form: ClassVar[str] = "preference"
    given: ClassVar[tuple[str, ...]] = ("choice_scores", "drawn_scores", "choice_outcome")
    given_as: ClassVar[str] = (
        "the scores of two candidates: columns s0 and s1 (a and b), or rows of id, side (0 or 1) "
        "and score; or right and wrong per question"
    )
    facts_model: ClassVar[type[Facts]] = _PreferenceFacts
    stored: ClassVar[Mapping[str, tuple[StoredField, ...]]] = {
        QUESTIONS: (
            StoredField("label", "label", _SIDE, plural="labels"),
            StoredField("votes", "votes_", ColumnSchema("real", low=0), width=2),
        ),
        CANDIDATES: (
            StoredField("owners", "question"),
            StoredField("sides", "side", _SIDE),
            StoredField("captions", "caption"),
            StoredField("images", "image"),
        ),
    }

    @classmethod
    def between(
        cls,
        ids: tuple[str, ...],
        captions: Ids,
        images: Ids,
        votes: NDArray[np.float64],
        label: Ids,
        **more: object,
    ) -> "Preference":
        """Questions whose candidates are single captions of one image: `captions` (n, 2), `images` (n,)."""
        n = len(ids)
        check_shape("captions", captions, (n, 2))
        references, owners = more.pop("references", None), np.repeat(np.arange(n), 2)
        return cls(
            ids,
            captions=captions.reshape(-1),
            images=np.repeat(images, 2),
            owners=owners,
            sides=np.tile(np.array([0, 1]), n),
            votes=votes,
            label=label,
            references=references.take(owners) if isinstance(references, References) else None,
            **more,  # type: ignore[arg-type]
        )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (np.isfinite(self.votes).all() and (self.votes >= 0).all()):
            raise DataError("votes are not counts", allowed="finite numbers, 0 or more")
        ahead = np.sign(self.votes[:, 1] - self.votes[:, 0])
        wrong = np.flatnonzero(((ahead > 0) & (self.label != 1)) | ((ahead < 0) & (self.label != 0)))
        if len(wrong):
            raise DataError("the label is not that of more votes", where=f"question '{self.ids[wrong[0]]}'")
        place = self.owners * 2 + self.sides
        if np.any(np.diff(place) < 0) or not np.array_equal(np.unique(place), np.arange(2 * len(self))):
            what = "the rows of the candidates are not in order, or a candidate has none"
            raise DataError(what, allowed="every question's first candidate, then its second")

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self), 2)

    def opinions(self) -> tuple[Literal["votes", "ratings"], NDArray[np.float64]]:
        return "votes", self.votes

    def caption_candidates(self) -> CaptionCandidates:
        return CaptionCandidates(
            question=self.owners,
            caption=self.captions,
            truth=(self.sides == self.label[self.owners]).astype(float),
            row_of=np.arange(len(self.owners)),
        )

    def has_shape(self, shape: tuple[int, ...]) -> bool:
        return (shape[:2] if len(shape) == 3 else shape) == self.shape

    @property
    def rows_of(self) -> Ids:
        return self.owners

    def at_hand(
        self, texts: NDArray[np.bool_], sources: NDArray[np.bool_], *, where: str
    ) -> NDArray[np.bool_]:
        lacking = ~(texts[self.captions] & sources[self.images])
        complete: Mask = np.bincount(self.owners, weights=lacking, minlength=len(self)) == 0
        return complete

    def caption_means(self, values: NDArray[np.float64], *, where: str) -> NDArray[np.float64]:
        sums = np.bincount(self.owners, weights=values[self.captions], minlength=len(self))
        return sums / np.bincount(self.owners, minlength=len(self))

    def collect(self, values: ndarray) -> ndarray:
        place = self.owners * 2 + self.sides
        sums = np.bincount(place, weights=values, minlength=2 * len(self))
        return (sums / np.bincount(place, minlength=2 * len(self))).reshape(len(self), 2)

    @property
    def loads(self) -> Ids:
        return self.sides

    def collect_draws(self, values: Sequence[ndarray]) -> ndarray:
        draws = [self.collect(scores) for scores in values]
        return draws[0] if self.sample is None else np.stack(draws, axis=2)

    def drawn(self) -> tuple[References, ...]:
        if self.references is None or self.sample is None:
            return super().drawn()
        # Both candidates of a question see the same references, so questions draw and not rows.
        first = np.flatnonzero(np.diff(self.owners, prepend=-1))
        rng = np.random.default_rng(self.seed)
        if np.any(self.references.counts != self.references.counts[first][self.owners]):
            raise DataError("references are drawn where both candidates share them")
        first_references = self.references.take(first)
        return tuple(first_references.sample(self.sample, rng).take(self.owners) for _ in range(self.draws))

    @property
    def single(self) -> bool:
        return len(self.captions) == 2 * len(self)

    def captions_of(self, question: int) -> list[int]:
        return []

    def slots(self) -> tuple[Ids, Ids]:
        nth = np.arange(len(self.owners)) - np.searchsorted(self.owners, self.owners)
        both = np.full((2, len(self), int(nth.max()) + 1), -1, dtype=np.int64)
        both[:, self.owners, nth] = self.captions, self.images
        return both[0], both[1]

    def select(self, rows: Ids) -> "Preference":
        starts = np.searchsorted(self.owners, np.arange(len(self) + 1))
        of_rows = [np.arange(starts[row], starts[row + 1]) for row in rows]
        chosen_rows = np.concatenate([*of_rows, np.empty(0, np.int64)])
        return replace(
            self,
            **self.chosen(rows),
            **self.entries(("captions", "images", "references", "sides"), chosen_rows),
            **self.entries(("votes", "label"), rows),
            owners=np.repeat(np.arange(len(rows)), [len(part) for part in of_rows]),
        )

    def digest_facts(self, texts: Sequence[object], names: Sequence[object]) -> dict[str, object]:
        return {**super().digest_facts(texts, names), "draws": [self.sample, self.draws, self.seed]}

    def release(self) -> FormRelease:
        """A row per pair of captions with the votes for each."""
        if not self.single:
            what = "candidates of several sentences cannot be published"
            raise DataError(what, allowed="preferences between two captions of one image")
        sides = self.captions.reshape(-1, 2)
        columns = {
            "image": ReleaseColumn("image", self.images[::2], "The image."),
            "caption_a": ReleaseColumn("caption", sides[:, 0], "The first caption."),
            "caption_b": ReleaseColumn("caption", sides[:, 1], "The second caption."),
            "votes_a": number_column(self.votes[:, 0], "How many people preferred the first."),
            "votes_b": number_column(self.votes[:, 1], "How many people preferred the second."),
        }
        columns |= reference_columns(self.references, np.arange(0, 2 * len(self), 2))
        table = question_table(self.ids, columns, self.groupings, about="Two captions with votes.")
        asks = "Each question holds two captions of one image, and how many people preferred each."
        return FormRelease((table,), asks, ("image-to-text",))


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
    facts_model: ClassVar[type[Facts]] = _StatementFacts
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
    def measured(self) -> Mask:
        return np.ones(len(self), dtype=bool) if self.calibration is None else ~self.calibration

    def pairs(self) -> tuple[Ids, Ids]:
        return self.captions, self.images

    def opinions(self) -> tuple[Literal["votes", "ratings"], NDArray[np.float64]] | None:
        return None if self.votes is None else ("votes", self.votes)

    def caption_candidates(self) -> CaptionCandidates:
        rows = np.arange(len(self))
        return CaptionCandidates(rows, self.captions, self.truth.astype(float), rows, rated=True)

    def select(self, rows: Ids) -> "Statement":
        entries = self.entries(self.per_question, rows)
        calibration = entries["calibration"]
        if calibration is not None and (calibration.all() or not calibration.any()):
            entries["calibration"] = None
        return replace(self, **self.chosen(rows), **entries)

    def training_rows(self, *, where: str) -> tuple[Ids | None, dict[str, Ids]]:
        """Every true statement with every false one of the same image, which is its negative caption."""
        false_of: dict[int, list[int]] = {}
        for question in np.flatnonzero(~self.truth).tolist():
            false_of.setdefault(int(self.images[question]), []).append(question)
        both = [
            (true, false)
            for true in np.flatnonzero(self.truth).tolist()
            for false in false_of.get(int(self.images[true]), ())
        ]
        if not both:
            what = "no image has both a true and a false statement, so there is no negative caption"
            allowed = "statements of which two of one image differ in their truth"
            raise DataError(what, where=where, allowed=allowed)
        true, false = np.asarray(both, dtype=np.int64).T
        return true, {
            "image": self.images[true],
            "caption": self.captions[true],
            "negative_caption": self.captions[false],
        }

    def release(self) -> FormRelease:
        columns = {
            "image": ReleaseColumn("image", self.images, "The image."),
            "caption": ReleaseColumn("caption", self.captions, "The statement."),
            "truth": ReleaseColumn("value", pa.array(self.truth), "Whether it is true of the image."),
        }
        if self.calibration is not None:
            about = "Whether the statement only chooses the threshold and counts in no measure."
            columns["calibration"] = ReleaseColumn("value", pa.array(self.calibration), about)
        if self.votes is not None:
            for i, answer in enumerate(("false", "true")):
                columns[f"votes_{answer}"] = number_column(
                    self.votes[:, i], f"How many people said {answer}."
                )
        table = question_table(self.ids, columns, self.groupings, about="Statements of images.")
        asks = "Each question holds one image and a statement that is true or false of it."
        return FormRelease((table,), asks, ("visual-question-answering",))
