"""Contrasts: a right set of pairs against a wrong one, and a value per question.

`Quad` and `Choice` ask about pairs that their makers know to be right, `Preference` about two captions of
which people preferred one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from numpy import ndarray
from numpy.typing import NDArray
from pydantic import Field

from counterfoil.data.forms.base import CaptionCandidates, Ids, Judged, Listed, Mask, check_shape
from counterfoil.data.forms.release import (
    CONTRAST_TASKS,
    FormRelease,
    ReleaseColumn,
    ReleaseKind,
    number_column,
    question_table,
    reference_columns,
)
from counterfoil.data.forms.tables import (
    POSITION,
    QUESTIONS,
    REFERENCES,
    REFERENCES_SCHEMA,
    Count,
    Facts,
    Positive,
    cells,
    numbers,
    positions,
    questions_schema,
    read_references,
    references_table,
)
from counterfoil.data.references import References, check_references
from counterfoil.errors import DataError
from counterfoil.inputs.columns import ColumnSchema, Schema

#: Up to so many candidates of a choice count as items that its answer depends on; of more, sets of candidates
#: that any two questions share are too many to go through.
MOST_APART = 10

_CANDIDATES = "candidates.parquet"


class _ChoiceFacts(Facts):
    """How many of the candidates are right, and what the query is."""

    correct: Positive
    asks: Literal["image", "caption"]


class _PreferenceFacts(Facts):
    """How references are drawn."""

    sample: Positive | None
    draws: Annotated[int, Field(ge=1, le=10_000)]
    seed: Count
    references: bool


@dataclass(frozen=True, eq=False)
class Quad(Listed):
    """Two captions and two images; caption 0 belongs to image 0, caption 1 to image 1.

    `captions` and `images` are (n, 2) positions into the benchmark's items.
    """

    captions: Ids = field(kw_only=True)
    images: Ids = field(kw_only=True)

    form: ClassVar[str] = "quad"
    given: ClassVar[tuple[str, ...]] = ("quad_scores", "quad_outcomes")
    given_as: ClassVar[str] = (
        "scores or outcomes of quads (2 captions x 2 images): columns id, c0_i0, c0_i1, c1_i0, c1_i1; or "
        "id, ipos2t, ineg2t, tpos2i, tneg2i; or rows of id and score with ids like '17_c0_i1'"
    )
    schemas: ClassVar[Mapping[str, Schema]] = {
        QUESTIONS: questions_schema(
            {f"{kind}_{at}": POSITION for kind in ("caption", "image") for at in (0, 1)}
        )
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        check_shape("captions", self.captions, (len(self), 2))
        check_shape("images", self.images, (len(self), 2))

    def about(self) -> tuple[Ids, Ids]:
        """Both images and both captions."""
        return self.images, self.captions

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of its scores, (n, 2, 2)."""
        return (len(self), 2, 2)

    def pairs(self) -> tuple[Ids, Ids]:
        """(caption, image) positions of every score asked for, each of shape (n, 2, 2)."""
        captions = np.repeat(self.captions[:, :, None], 2, axis=2)
        images = np.repeat(self.images[:, None, :], 2, axis=1)
        return captions, images

    def select(self, rows: Ids) -> "Quad":
        """The chosen questions."""
        return replace(self, **self.chosen(rows), captions=self.captions[rows], images=self.images[rows])

    def renumber(self, caption_of: Ids, image_of: Ids) -> "Quad":
        """The same questions where caption c and image i are now at `caption_of[c]` and `image_of[i]`."""
        return replace(self, captions=caption_of[self.captions], images=image_of[self.images])

    def slots(self) -> tuple[Ids, Ids]:
        """Both captions and both images."""
        return self.captions, self.images

    def caption_candidates(self) -> CaptionCandidates:
        """Both captions; caption 0 stands for the right one, although each is right of its image."""
        n = len(self)
        return CaptionCandidates(
            question=np.repeat(np.arange(n), 2),
            caption=self.captions.reshape(-1),
            truth=np.tile([1.0, 0.0], n),
            row_of=np.repeat(np.arange(2 * n), 2),
            decides=False,
        )

    def training_rows(self, *, where: str) -> tuple[Ids | None, dict[str, Ids]]:
        """A row per quad, of all four roles; image 0 and caption 0 are the positive pair."""
        return np.arange(len(self)), {
            "image": self.images[:, 0],
            "caption": self.captions[:, 0],
            "negative_image": self.images[:, 1],
            "negative_caption": self.captions[:, 1],
        }

    def release(self) -> FormRelease:
        """A row per quad: image and caption, negative caption and negative image."""
        images, captions = self.images, self.captions
        columns = {
            "image": ReleaseColumn("image", images[:, 0], "The first image."),
            "caption": ReleaseColumn("caption", captions[:, 0], "The caption of the first image."),
            "negative_caption": ReleaseColumn("caption", captions[:, 1], "The caption of the second image."),
            "negative_image": ReleaseColumn("image", images[:, 1], "The second image."),
        }
        table = question_table(self.ids, columns, self.groupings, about="Two images, two captions.")
        asks = (
            "Each question holds two images and two captions: `caption` is right of `image` and wrong of "
            "`negative_image`, `negative_caption` the other way round."
        )
        return FormRelease((table,), asks, CONTRAST_TASKS)

    def columns(self) -> tuple[dict[str, pa.Array], dict[str, Any], dict[str, pa.Table]]:
        return cells("caption_", self.captions) | cells("image_", self.images), {}, {}

    @classmethod
    def fields(cls, tables: Mapping[str, pa.Table], facts: Mapping[str, Any]) -> dict[str, Any]:
        table = tables[QUESTIONS]
        return {"captions": positions(table, "caption_"), "images": positions(table, "image_")}


@dataclass(frozen=True, eq=False)
class Choice(Listed):
    """One item and k candidates of the other kind, the first `correct` of them right.

    `query` is (n,) and `candidates` (n, k); `asks` says which kind the query is of: "image" (choose among
    captions) or "caption" (choose among images). Where questions have different numbers of candidates, k is
    the most, -1 stands behind the last candidate of each, and the scores there are `NO_CANDIDATE`.

    >>> found = Choice(("a", "b"), query=np.array([0, 1]), candidates=np.array([[0, 1, 2], [3, 4, -1]]))
    >>> found.counts, found.collect(np.array([0.9, 0.2, 0.1, 0.4, 0.5]))
    (array([3, 2]), array([[ 0.9,  0.2,  0.1],
           [ 0.4,  0.5, -inf]]))
    """

    query: Ids = field(kw_only=True)
    candidates: Ids = field(kw_only=True)
    correct: int = field(default=1, kw_only=True)
    asks: Literal["image", "caption"] = field(default="image", kw_only=True)

    form: ClassVar[str] = "choice"
    given: ClassVar[tuple[str, ...]] = ("choice_scores", "choice_outcome")
    given_as: ClassVar[str] = (
        "scores of candidates, or right and wrong per question: columns id, positive_score, negative_score; "
        "or id, s0, s1, ...; or id, correct; or rows of id and score with ids like '17_c0'"
    )
    known: ClassVar[type[Facts]] = _ChoiceFacts
    schemas: ClassVar[Mapping[str, Schema]] = {
        QUESTIONS: questions_schema(
            dict.fromkeys(("query", "candidate_0", "candidate_1"), POSITION),
            {"candidate_": ColumnSchema("whole", low=0, null=True)},
        )
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        check_shape("query", self.query, (len(self),))
        if self.candidates.ndim != 2 or len(self.candidates) != len(self):
            raise DataError(
                "candidates have the wrong shape", given=self.candidates.shape, allowed=f"({len(self)}, k)"
            )
        there = self.candidates >= 0
        odd = (self.candidates < -1).any(axis=1) | (np.diff(there.astype(np.int8), axis=1) > 0).any(axis=1)
        if odd.any():
            at = int(np.argmax(odd))
            raise DataError(
                "candidates are no positions",
                where=f"question '{self.ids[at]}'",
                given=self.candidates[at].tolist(),
                allowed="positions from 0, and -1 behind the last",
            )
        least = int(there.sum(axis=1).min(initial=self.candidates.shape[1]))
        if not 0 < self.correct < least:
            raise DataError(
                "the number of correct candidates does not fit",
                given=self.correct,
                allowed=f"1 to {least - 1}",
            )

    def about(self) -> tuple[Ids, Ids]:
        """The query, and the candidates; of more than `MOST_APART` those that are right.

        Wrong candidates decide too: with none of them counted, intervals of choices among six captions of a
        pool covered 56 to 86 % in simulation where captions matter.
        """
        apart = self.candidates.shape[1] <= MOST_APART
        candidates, query = (
            self.candidates if apart else self.candidates[:, : self.correct],
            self.query[:, None],
        )
        return (query, candidates) if self.asks == "image" else (candidates, query)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of its scores, (n, k)."""
        return (len(self), self.candidates.shape[1])

    @property
    def counts(self) -> Ids:
        """(n,) how many candidates each question has."""
        found: Ids = (self.candidates >= 0).sum(axis=1)
        return found

    @property
    def filled(self) -> Mask | None:
        there = self.candidates >= 0
        return None if there.all() else there

    def pairs(self) -> tuple[Ids, Ids]:
        """(caption, image) positions of every score asked for, each of shape (n, k).

        Where questions have different numbers of candidates of shape (pairs,), question after question.
        """
        query = np.repeat(self.query[:, None], self.candidates.shape[1], axis=1)
        candidates, filled = self.candidates, self.filled
        if filled is not None:
            query, candidates = query[filled], candidates[filled]
        return (candidates, query) if self.asks == "image" else (query, candidates)

    def digest_facts(self, texts: Sequence[object], names: Sequence[object]) -> dict[str, object]:
        """Places behind the last candidate of all questions change nothing."""
        counts = self.counts
        same = (len(self), int(counts[0])) if (counts == counts[0]).all() else counts.tolist()
        return {**super().digest_facts(texts, names), "shape": same}

    def select(self, rows: Ids) -> "Choice":
        """The chosen questions."""
        return replace(self, **self.chosen(rows), query=self.query[rows], candidates=self.candidates[rows])

    def renumber(self, caption_of: Ids, image_of: Ids) -> "Choice":
        """The same questions where caption c and image i are now at `caption_of[c]` and `image_of[i]`."""
        of_query, of_candidates = (image_of, caption_of) if self.asks == "image" else (caption_of, image_of)
        candidates = np.where(self.candidates < 0, -1, of_candidates[self.candidates])
        return replace(self, query=of_query[self.query], candidates=candidates)

    def slots(self) -> tuple[Ids, Ids]:
        """The query and all candidates, -1 behind the last."""
        query = self.query[:, None]
        return (self.candidates, query) if self.asks == "image" else (query, self.candidates)

    def caption_candidates(self) -> CaptionCandidates | None:
        """The captions of each image; none where images are chosen."""
        if self.asks == "caption":
            return None
        question, place = np.nonzero(self.candidates >= 0)
        return CaptionCandidates(
            question=question,
            caption=self.candidates[question, place],
            truth=(place < self.correct).astype(float),
            row_of=np.arange(len(question)),
        )

    def training_rows(self, *, where: str) -> tuple[Ids | None, dict[str, Ids]]:
        """Every right candidate with every wrong one, question after question."""
        n, k = self.candidates.shape
        source = np.repeat(np.arange(n), self.correct * (k - self.correct))
        right = np.repeat(self.candidates[:, : self.correct], k - self.correct, axis=1).reshape(-1)
        wrong = np.tile(self.candidates[:, self.correct :], (1, self.correct)).reshape(-1)
        source, right, wrong = source[wrong >= 0], right[wrong >= 0], wrong[wrong >= 0]
        query = self.query[source]
        if self.asks == "image":
            return source, {"image": query, "caption": right, "negative_caption": wrong}
        return source, {"image": right, "caption": query, "negative_image": wrong}

    def release(self) -> FormRelease:
        """A row per question: the query and its candidates, those that are right first.

        Two candidates are `caption` and `negative_caption` (or images); of more, captions are a list and
        images a column each.
        """
        asks: str = self.asks
        candidates, correct = self.candidates, self.correct
        k, other = candidates.shape[1], "caption" if asks == "image" else "image"
        kinds: dict[str, ReleaseKind] = {"image": "image", "caption": "caption"}
        columns = {asks: ReleaseColumn(kinds[asks], self.query, f"The {asks} that is asked about.")}
        if k == 2:
            columns[other] = ReleaseColumn(kinds[other], candidates[:, 0], f"The {other} that fits.")
            columns[f"negative_{other}"] = ReleaseColumn(
                kinds[other], candidates[:, 1], f"The {other} that does not fit."
            )
        elif other == "caption":
            columns["captions"] = ReleaseColumn("captions", candidates, "The candidates, right ones first.")
        else:
            for at in range(k):
                what = "fits" if at < correct else "does not fit"
                columns[f"image_{at}"] = ReleaseColumn("image", candidates[:, at], f"An image that {what}.")
        table = question_table(self.ids, columns, self.groupings, about=f"A choice among {k} {other}s.")
        fit = "the first one fits" if correct == 1 else f"the first {correct} fit"
        said = f"Each question holds one {asks} and {k} {other}s, of which {fit}."
        return FormRelease((table,), said, CONTRAST_TASKS, {"asks": asks, "correct": correct})

    def columns(self) -> tuple[dict[str, pa.Array], dict[str, Any], dict[str, pa.Table]]:
        columns = {"query": pa.array(self.query)} | cells("candidate_", self.candidates, filled=self.filled)
        return columns, {"correct": self.correct, "asks": self.asks}, {}

    @classmethod
    def fields(cls, tables: Mapping[str, pa.Table], facts: Mapping[str, Any]) -> dict[str, Any]:
        table = tables[QUESTIONS]
        return {
            "query": table.column("query").to_numpy(),
            "candidates": positions(table, "candidate_", none=-1),
            "correct": facts["correct"],
            "asks": facts["asks"],
        }


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
    known: ClassVar[type[Facts]] = _PreferenceFacts
    schemas: ClassVar[Mapping[str, Schema]] = {
        QUESTIONS: questions_schema(
            {
                "label": ColumnSchema("whole", low=0, high=1),
                "votes_0": ColumnSchema("real", low=0),
                "votes_1": ColumnSchema("real", low=0),
            }
        ),
        _CANDIDATES: Schema(
            {
                "question": POSITION,
                "side": ColumnSchema("whole", low=0, high=1),
                "caption": POSITION,
                "image": POSITION,
            }
        ),
        REFERENCES: REFERENCES_SCHEMA,
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
        """Questions whose candidates are single captions of one image: `captions` (n, 2), `images` (n,).

        References, where given, have an entry per question, shared by both candidates.
        """
        n = len(ids)
        check_shape("captions", captions, (n, 2))
        found = more.pop("references", None)
        return cls(
            ids,
            captions=captions.reshape(-1),
            images=np.repeat(images, 2),
            owners=np.repeat(np.arange(n), 2),
            sides=np.tile(np.array([0, 1]), n),
            votes=votes,
            label=label,
            references=found.take(np.repeat(np.arange(n), 2)) if isinstance(found, References) else None,
            **more,  # type: ignore[arg-type]
        )

    def __post_init__(self) -> None:
        super().__post_init__()
        n, rows = len(self.ids), len(self.captions)
        check_shape("votes", self.votes, (n, 2))
        check_shape("labels", self.label, (n,))
        for name, column in (("images", self.images), ("owners", self.owners), ("sides", self.sides)):
            check_shape(name, column, (rows,))
        if not (np.isfinite(self.votes).all() and (self.votes >= 0).all()):
            raise DataError("votes are not counts", allowed="finite numbers, 0 or more")
        ahead = np.sign(self.votes[:, 1] - self.votes[:, 0])
        wrong = np.flatnonzero(((ahead > 0) & (self.label != 1)) | ((ahead < 0) & (self.label != 0)))
        if len(wrong):
            raise DataError("the label is not that of more votes", where=f"question '{self.ids[wrong[0]]}'")
        place = self.owners * 2 + self.sides
        if np.any(np.diff(place) < 0) or not np.array_equal(np.unique(place), np.arange(2 * n)):
            raise DataError(
                "the rows of the candidates are not in order, or a candidate has none",
                allowed="every question's first candidate, then its second",
            )
        check_references(self.references, rows)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of its scores, (n, 2); a metric that draws references gives (n, 2, draws)."""
        return (len(self), 2)

    def opinions(self) -> tuple[Literal["votes", "ratings"], NDArray[np.float64]]:
        """The votes for each candidate."""
        return "votes", self.votes

    def caption_candidates(self) -> CaptionCandidates:
        """Both candidates; of several sentences each is a row."""
        return CaptionCandidates(
            question=self.owners,
            caption=self.captions,
            truth=(self.sides == self.label[self.owners]).astype(float),
            row_of=np.arange(len(self.owners)),
        )

    def has_shape(self, shape: tuple[int, ...]) -> bool:
        """Whether scores of this shape answer the questions, once or once per draw of references."""
        return (shape[:2] if len(shape) == 3 else shape) == self.shape

    @property
    def rows_of(self) -> Ids:
        """(rows,) the question that each row belongs to."""
        return self.owners

    def at_hand(
        self, texts: NDArray[np.bool_], sources: NDArray[np.bool_], *, where: str
    ) -> NDArray[np.bool_]:
        lacking = ~(texts[self.captions] & sources[self.images])
        found: Mask = np.bincount(self.owners, weights=lacking, minlength=len(self)) == 0
        return found

    def caption_means(self, values: NDArray[np.float64], *, where: str) -> NDArray[np.float64]:
        sums = np.bincount(self.owners, weights=values[self.captions], minlength=len(self))
        return sums / np.bincount(self.owners, minlength=len(self))

    def collect(self, values: ndarray) -> ndarray:
        """Scores of rows, (rows,), as those of candidates, (n, 2): the mean over a candidate's sentences."""
        place = self.owners * 2 + self.sides
        sums = np.bincount(place, weights=values, minlength=2 * len(self))
        return (sums / np.bincount(place, minlength=2 * len(self))).reshape(len(self), 2)

    @property
    def loads(self) -> Ids:
        """The side of each row: no document of the other candidate counts."""
        return self.sides

    def collect_draws(self, values: Sequence[ndarray]) -> ndarray:
        """As `collect`; where references are drawn (n, 2, draws)."""
        found = [self.collect(each) for each in values]
        return found[0] if self.sample is None else np.stack(found, axis=2)

    def drawn(self) -> tuple[References, ...]:
        if self.references is None:
            return ()
        if self.sample is None:
            return (self.references,)
        # Both candidates of a question see the same references, so questions draw and not rows.
        first = np.flatnonzero(np.diff(self.owners, prepend=-1))
        rng = np.random.default_rng(self.seed)
        if np.any(self.references.counts != self.references.counts[first][self.owners]):
            raise DataError("references are drawn where both candidates share them")
        own = self.references.take(first)
        return tuple(own.sample(self.sample, rng).take(self.owners) for _ in range(self.draws))

    def slots(self) -> tuple[Ids, Ids]:
        """The sentences of both candidates and their images, -1 behind the last."""
        images, captions = self.about()
        return captions, images

    @property
    def single(self) -> bool:
        """Whether every candidate is one caption."""
        return len(self.captions) == 2 * len(self)

    def captions_of(self, question: int) -> list[int]:
        """None: the captions alone do not say which candidate is preferred."""
        return []

    def about(self) -> tuple[Ids, Ids]:
        """The images and the captions of both candidates."""
        nth = np.arange(len(self.owners)) - np.searchsorted(self.owners, self.owners)
        both = np.full((2, len(self), int(nth.max()) + 1), -1, dtype=np.int64)
        both[:, self.owners, nth] = self.images, self.captions
        return both[0], both[1]

    def select(self, rows: Ids) -> "Preference":
        """The chosen questions."""
        starts = np.searchsorted(self.owners, np.arange(len(self) + 1))
        of_rows = [np.arange(starts[row], starts[row + 1]) for row in rows]
        kept = np.concatenate([*of_rows, np.empty(0, np.int64)])
        return replace(
            self,
            **self.chosen(rows),
            **self.rows(kept),
            owners=np.repeat(np.arange(len(rows)), [len(part) for part in of_rows]),
            sides=self.sides[kept],
            votes=self.votes[rows],
            label=self.label[rows],
        )

    def digest_facts(self, texts: Sequence[object], names: Sequence[object]) -> dict[str, object]:
        return {
            **super().digest_facts(texts, names),
            "owners": self.owners.tolist(),
            "sides": self.sides.tolist(),
            "votes": self.votes.tolist(),
            "label": self.label.tolist(),
            "draws": [self.sample, self.draws, self.seed],
        }

    def release(self) -> FormRelease:
        """A row per pair of captions with the votes for each.

        Raises `DataError` for candidates of several sentences.
        """
        if not self.single:
            raise DataError(
                "candidates of several sentences cannot be published",
                allowed="preferences between two captions of one image",
            )
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

    def columns(self) -> tuple[dict[str, pa.Array], dict[str, Any], dict[str, pa.Table]]:
        rows = {
            "question": pa.array(self.owners),
            "side": pa.array(self.sides),
            "caption": pa.array(self.captions),
            "image": pa.array(self.images),
        }
        facts = {"sample": self.sample, "draws": self.draws, "seed": self.seed}
        return (
            {"label": pa.array(self.label)} | cells("votes_", self.votes),
            {**facts, "references": self.references is not None},
            {_CANDIDATES: pa.table(rows), REFERENCES: references_table(self.references)},
        )

    @classmethod
    def fields(cls, tables: Mapping[str, pa.Table], facts: Mapping[str, Any]) -> dict[str, Any]:
        table, rows = tables[QUESTIONS], tables[_CANDIDATES]
        return {
            "captions": rows.column("caption").to_numpy(),
            "images": rows.column("image").to_numpy(),
            "owners": rows.column("question").to_numpy(),
            "sides": rows.column("side").to_numpy(),
            "votes": numbers(table, "votes_"),
            "label": table.column("label").to_numpy(),
            "references": read_references(tables[REFERENCES], len(rows), facts),
            **{name: facts[name] for name in ("sample", "draws", "seed")},
        }
