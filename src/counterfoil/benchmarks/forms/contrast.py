"""Contrasts: a right set of pairs against a wrong one, and a value per question (`Quad`, `Choice`).

`Paraphrase` compares captions with each other: two mean the same, and one does not.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

import numpy as np

from counterfoil.benchmarks.forms.base import CaptionCandidates, Facts, Ids, Listed, Mask, first_use
from counterfoil.benchmarks.forms.release import (
    CONTRAST_TASKS,
    FormRelease,
    ReleaseColumn,
    ReleaseKind,
    question_table,
)
from counterfoil.benchmarks.forms.tables import QUESTIONS, Positive, StoredField
from counterfoil.errors import DataError
from counterfoil.inputs.columns import ColumnSchema

#: The most candidates of a choice that count as items that its answer depends on; of more, sets of candidates
#: that any two questions share are too many to go through.
MOST_APART = 10


class _ChoiceFacts(Facts):
    """How many of the candidates are right, and what the query is."""

    correct: Positive
    asks: Literal["image", "caption"]


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
    stored: ClassVar[Mapping[str, tuple[StoredField, ...]]] = {
        QUESTIONS: (StoredField("captions", "caption_", width=2), StoredField("images", "image_", width=2))
    }

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self), 2, 2)

    def pairs(self) -> tuple[Ids, Ids]:
        captions = np.repeat(self.captions[:, :, None], 2, axis=2)
        images = np.repeat(self.images[:, None, :], 2, axis=1)
        return captions, images

    def slots(self) -> tuple[Ids, Ids]:
        return self.captions, self.images

    def caption_candidates(self) -> CaptionCandidates:
        n = len(self)
        return CaptionCandidates(
            question=np.repeat(np.arange(n), 2),
            caption=self.captions.reshape(-1),
            truth=np.tile([1.0, 0.0], n),
            row_of=np.repeat(np.arange(2 * n), 2),
            decides=False,
        )

    def training_rows(self, *, where: str) -> tuple[Ids | None, dict[str, Ids]]:
        return np.arange(len(self)), {
            "image": self.images[:, 0],
            "caption": self.captions[:, 0],
            "negative_image": self.images[:, 1],
            "negative_caption": self.captions[:, 1],
        }

    def release(self) -> FormRelease:
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


@dataclass(frozen=True, eq=False)
class Choice(Listed):
    """One item and k candidates of the other kind, the first `correct` of them right.

    `query` is (n,) and `candidates` (n, k); `asks` says which kind the query is of: "image" (choose among
    captions) or "caption" (choose among images). Where questions have different numbers of candidates, k is
    the most, -1 stands behind the last candidate of each, and the scores there are `NO_CANDIDATE`.
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
    facts_model: ClassVar[type[Facts]] = _ChoiceFacts
    stored: ClassVar[Mapping[str, tuple[StoredField, ...]]] = {
        QUESTIONS: (
            StoredField("query", "query"),
            StoredField("candidates", "candidate_", width=2, more=ColumnSchema("whole", low=0, null=True)),
        )
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.candidates.ndim != 2 or len(self.candidates) != len(self):
            what = "candidates have the wrong shape"
            raise DataError(what, given=self.candidates.shape, allowed=f"({len(self)}, k)")
        there = self.candidates >= 0
        odd = (self.candidates < -1).any(axis=1) | (np.diff(there.astype(np.int8), axis=1) > 0).any(axis=1)
        if odd.any():
            i = int(np.argmax(odd))
            what = "candidates are no positions"
            given = self.candidates[i].tolist()
            allowed = "positions from 0, and -1 behind the last"
            raise DataError(what, where=f"question '{self.ids[i]}'", given=given, allowed=allowed)
        least = int(there.sum(axis=1).min(initial=self.candidates.shape[1]))
        if not 0 < self.correct < least:
            what = "the number of correct candidates does not fit"
            raise DataError(what, given=self.correct, allowed=f"1 to {least - 1}")

    def about(self) -> tuple[Ids, Ids]:
        """The query, and the candidates; of more than `MOST_APART` those that are right.

        Wrong candidates decide too: with none of them counted, intervals of choices among six captions of a
        pool covered 56 to 86 % in simulation where captions matter.
        """
        captions, images = self.slots()
        if self.candidates.shape[1] > MOST_APART:
            right = self.candidates[:, : self.correct]
            return (images, right) if self.asks == "image" else (right, captions)
        return images, captions

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self), self.candidates.shape[1])

    @property
    def counts(self) -> Ids:
        """(n,) how many candidates each question has."""
        per_question: Ids = (self.candidates >= 0).sum(axis=1)
        return per_question

    @property
    def filled(self) -> Mask | None:
        there = self.candidates >= 0
        return None if there.all() else there

    def pairs(self) -> tuple[Ids, Ids]:
        """(caption, image) positions of every score asked for, each of shape (n, k)."""
        query = np.repeat(self.query[:, None], self.candidates.shape[1], axis=1)
        candidates, there = self.candidates, self.candidates >= 0
        if not there.all():
            query, candidates = query[there], candidates[there]
        return (candidates, query) if self.asks == "image" else (query, candidates)

    def digest_facts(self, texts: Sequence[object], names: Sequence[object]) -> dict[str, object]:
        counts = self.counts
        same = (len(self), int(counts[0])) if (counts == counts[0]).all() else counts.tolist()
        return {**super().digest_facts(texts, names), "shape": same}

    def renumber(self, caption_of: Ids, image_of: Ids) -> "Choice":
        of_query, of_candidates = (image_of, caption_of) if self.asks == "image" else (caption_of, image_of)
        candidates = np.where(self.candidates < 0, -1, of_candidates[self.candidates])
        return replace(self, query=of_query[self.query], candidates=candidates)

    def slots(self) -> tuple[Ids, Ids]:
        query = self.query[:, None]
        return (self.candidates, query) if self.asks == "image" else (query, self.candidates)

    def caption_candidates(self) -> CaptionCandidates | None:
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
        """A row per question: the query and its candidates, those that are right first."""
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
            for i in range(k):
                what = "fits" if i < correct else "does not fit"
                columns[f"image_{i}"] = ReleaseColumn("image", candidates[:, i], f"An image that {what}.")
        table = question_table(self.ids, columns, self.groupings, about=f"A choice among {k} {other}s.")
        fit = "the first one fits" if correct == 1 else f"the first {correct} fit"
        sentence = f"Each question holds one {asks} and {k} {other}s, of which {fit}."
        return FormRelease((table,), sentence, CONTRAST_TASKS, {"asks": asks, "correct": correct})


#: The captions of each score: the paraphrases, then each of them with the third caption.
_SIDES = np.array([[0, 0, 1], [1, 2, 2]])


@dataclass(frozen=True, eq=False)
class Paraphrase(Listed):
    """Three captions, the first two of one meaning: are these two more alike than any other two?

    `captions` is (n, 3) positions. `images` is (n,): the image that the captions were written of, which no
    model looks at; questions of one image depend on each other, and pages show it.
    """

    captions: Ids = field(kw_only=True)
    images: Ids = field(kw_only=True)

    form: ClassVar[str] = "paraphrase"
    given: ClassVar[tuple[str, ...]] = ("choice_scores", "choice_outcome")
    given_as: ClassVar[str] = (
        "similarities: columns s0 (of both paraphrases), s1 and s2 (of each with the other caption), or "
        "right and wrong per question"
    )
    stored: ClassVar[Mapping[str, tuple[StoredField, ...]]] = {
        QUESTIONS: (StoredField("images", "image"), StoredField("captions", "caption_", width=3))
    }

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self), 3)

    @property
    def true_captions(self) -> int:
        return 2

    def pairs(self) -> tuple[Ids, Ids]:
        none = np.empty(0, dtype=np.int64)
        return none, none

    def text_pairs(self) -> tuple[Ids, Ids]:
        first, second = self.captions[:, _SIDES[0]], self.captions[:, _SIDES[1]]
        return first, second

    def slots(self) -> tuple[Ids, Ids]:
        return self.captions, self.images[:, None]

    def used(self) -> tuple[Ids, Ids]:
        return first_use(self.captions), np.empty(0, dtype=np.int64)

    def mentioned(self) -> tuple[Ids, Ids]:
        return np.unique(self.captions), np.unique(self.images)

    def at_hand(self, texts: Mask, sources: Mask, *, where: str) -> Mask:
        return np.asarray(texts[self.captions].all(axis=1))

    def digest_facts(self, texts: Sequence[object], names: Sequence[object]) -> dict[str, object]:
        return {
            "captions": [texts[i] for i in self.captions.reshape(-1).tolist()],
            "images": [names[i] for i in self.images.tolist()],
        }

    def training_rows(self, *, where: str) -> tuple[Ids | None, dict[str, Ids]]:
        raise self.no_training_set("captions that are compared with each other", where)
