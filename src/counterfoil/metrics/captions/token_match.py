"""Captions compared token by token (BERTScore), and with videos (EMScore).

Precision asks of every token of the candidate how near the nearest token of the other side is; recall the
same of the other side. Tokens are unit vectors; weights say how much each counts, such as inverse document
frequencies.

EMScore is the mean of coarse, the cosine of the caption with the mean of a video's frames, and fine, the F1
of tokens matched with frames. A picture is a video of one frame. What its released code does and no paper
says: the mark of the begin has weight 0 and still may be found; the mark of the end weighs the mean of all
weights (`Frequencies.with_end`); of several references the largest P, R, F1 and coarse are taken each on its
own (`best`); padding is a token whose cosine is 0 (`padding`).

Sources: T. Zhang et al., BERTScore: evaluating text generation with BERT, ICLR 2020; Y. Shi et al., EMScore:
evaluating video captioning via coarse-grained and fine-grained embedding matching, CVPR 2022, section 3;
PAC-S section 3.2, equations 7 and 8.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float, Int64
from numpy import ndarray

from counterfoil.errors import DataError
from counterfoil.metrics.captions.clip_score import harmonic_mean, without_references


@dataclass(frozen=True, eq=False)
class TokenizedCaption:
    """A caption token by token, from the mark of its begin to that of its end.

    `vectors` are unit vectors, `weights` 0 or more, `whole` the unit embedding of the caption.
    """

    vectors: Float[ndarray, "tokens width"]
    weights: Float[ndarray, "tokens"]
    whole: Float[ndarray, "width"]

    @property
    def shares(self) -> Float[ndarray, "tokens"]:
        """The weights over their sum; where all are 0 every token counts alike.

        >>> TokenizedCaption(np.eye(2), np.array([1.0, 3.0]), np.ones(2)).shares
        array([0.25, 0.75])
        """
        weights = self.weights.astype(np.float64)
        total = weights.sum()
        return weights / total if total > 0 else np.full(len(weights), 1 / max(1, len(weights)))


@dataclass(frozen=True)
class Frequencies:
    """How rare the tokens of a corpus are: ln((N + 1) / (df + 1)), df of N documents hold the token.

    `ids` are sorted; a token that no document holds has `unseen`, ln(N + 1).
    """

    ids: Int64[ndarray, "known"]
    values: Float[ndarray, "known"]
    unseen: float

    @classmethod
    def of(cls, documents: Sequence[Int64[ndarray, "_"]]) -> "Frequencies":
        """Those of a corpus; a document is all ids of a text, each counted once. Zhang et al., section 3.

        >>> found = Frequencies.of([np.array([1, 5, 5, 9]), np.array([1, 7, 9])])
        >>> found.ids.tolist(), found.values.round(3).tolist(), round(found.unseen, 3)
        ([1, 5, 7, 9], [0.0, 0.405, 0.405, 0.0], 1.099)
        """
        if not len(documents):
            raise DataError("a corpus without captions has no document frequencies")
        counts: Counter[int] = Counter()
        for document in documents:
            counts.update(set(document.tolist()))
        ids = np.array(sorted(counts), dtype=np.int64)
        held = np.array([counts[token] for token in ids.tolist()], dtype=np.float64)
        n = len(documents)
        return cls(ids, np.log((n + 1) / (held + 1)), float(np.log(n + 1)))

    def with_end(self) -> "Frequencies":
        """The same, but the highest id (CLIP's mark of the end) has the mean of all values, as in EMScore.

        >>> found = Frequencies.of([np.array([1, 5, 9]), np.array([1, 7, 9])]).with_end()
        >>> found.values.round(4).tolist()
        [0.0, 0.4055, 0.4055, 0.2027]
        """
        if not len(self.ids):
            return self
        return Frequencies(self.ids, np.append(self.values[:-1], self.values.mean()), self.unseen)

    def weights(self, ids: Int64[ndarray, "tokens"]) -> Float[ndarray, "tokens"]:
        """(tokens,) what each of these tokens weighs."""
        if not len(self.ids):
            return np.full(len(ids), self.unseen)
        positions = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        return np.where(self.ids[positions] == ids, self.values[positions], self.unseen)


@dataclass(frozen=True, eq=False)
class Matched:
    """What matching gave, (rows,) each, in [-1, 1] where vectors have length 1; higher is better."""

    precision: Float[ndarray, "rows"]
    recall: Float[ndarray, "rows"]
    #: The harmonic mean of the two; of several references the largest such mean.
    f1: Float[ndarray, "rows"]


def token_match(
    candidates: Sequence[TokenizedCaption], references: Sequence[Sequence[TokenizedCaption]]
) -> Matched:
    """Each candidate against its references; of P, R and F1 the largest over them, each on its own.

    A caption without words has 0 with everything. Raises `DataError` naming the first row without references.
    Zhang et al., section 3.

    >>> cat = TokenizedCaption(np.eye(3), np.array([0.0, 1.0, 0.0]), np.ones(3))
    >>> dog = TokenizedCaption(np.eye(3)[[0, 2, 2]], np.array([0.0, 1.0, 0.0]), np.ones(3))
    >>> token_match([cat, cat], [[dog], [dog, cat]]).f1
    array([0., 1.])
    """
    rows = np.zeros((len(candidates), 3))
    for row, (candidate, own_references) in enumerate(zip(candidates, references, strict=True)):
        if not len(own_references):
            raise without_references(row)
        matched = greedy(candidate, own_references)
        words = np.array([len(other.vectors) > 2 for other in own_references]) & (len(candidate.vectors) > 2)
        parts = np.stack([matched.precision, matched.recall, matched.f1])
        rows[row] = np.where(words, parts, 0).max(axis=1)
    return Matched(rows[:, 0], rows[:, 1], rows[:, 2])


def greedy(
    candidate: TokenizedCaption,
    others: Sequence[TokenizedCaption],
    *,
    floored: tuple[Bool[ndarray, "others"], Bool[ndarray, "others"]] | None = None,
) -> Matched:
    """A candidate against each of several others: P = Σ w_t max_r cos(t, r), R = Σ w_r max_t cos(t, r).

    Each w is its share of the sum over its side. `floored` says of each other whether the largest cosine is
    not below 0, in P and in R (`padding`). Raises `DataError` where a side has no tokens. Zhang et al.,
    section 3.

    >>> two, one = (TokenizedCaption(np.eye(2)[:n], np.ones(n), np.ones(2)) for n in (2, 1))
    >>> found = greedy(two, [one])
    >>> found.precision, found.recall, found.f1.round(4)
    (array([0.5]), array([1.]), array([0.6667]))
    """
    counts = np.array([len(other.vectors) for other in others], dtype=np.int64)
    if not len(candidate.vectors) or not len(others) or (counts < 1).any():
        problem = "matching needs tokens on both sides"
        raise DataError(problem, given=f"{len(candidate.vectors)} and {counts.tolist()}")
    stacked = np.concatenate([other.vectors for other in others])
    cosines = candidate.vectors.astype(np.float64) @ stacked.astype(np.float64).T
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    nearest, nearest_token = np.maximum.reduceat(cosines, starts, axis=1), cosines.max(axis=0)
    if floored is not None:
        nearest = np.where(floored[0], np.maximum(nearest, 0), nearest)
        nearest_token = np.where(np.repeat(floored[1], counts), np.maximum(nearest_token, 0), nearest_token)
    precision = candidate.shares @ nearest
    recall = np.add.reduceat(nearest_token * np.concatenate([other.shares for other in others]), starts)
    return Matched(precision, recall, harmonic_mean(precision, recall))


#: Of several references: the largest of each part, as released, or that of the largest score (PAC-S eq. 8).
Best = Literal["component", "whole"]
#: Whether padding takes part. The released code fills a batch up to its longest with cosines of 0, so that no
#: largest cosine is below 0 for all that are shorter: a row's score then depends on the rows beside it.
Padding = Literal["none", "released"]

#: Rows that the released code computes, and pads, together.
RELEASED_BATCH = 64


@dataclass(frozen=True, eq=False)
class EMScore(Matched):
    """The parts of EMScore, (rows,) each, in [-1, 1]; higher is better."""

    coarse: Float[ndarray, "rows"]

    @property
    def full(self) -> Float[ndarray, "rows"]:
        """The score that is reported: the mean of fine F1 and coarse. PAC-S equation 7."""
        return (self.f1 + self.coarse) / 2


def with_videos(
    captions: Sequence[TokenizedCaption],
    videos: Sequence[Float[ndarray, "_ width"]],
    *,
    padding: Padding = "none",
    batch: int = RELEASED_BATCH,
) -> EMScore:
    """EMScore(X, V) of each caption with its video, (frames, width) unit vectors, all frames alike.

    F1 is 0 where P + R is 0. `batch` matters to `padding` "released" alone. Raises `DataError` for a video
    without frames and for vectors of another width.

    >>> caption = TokenizedCaption(np.eye(2), np.array([0.0, 1.0]), np.array([0.0, 1.0]))
    >>> with_videos([caption], [np.array([[0.6, 0.8]])]).full
    array([0.8])
    """
    rows = np.zeros((len(captions), 4))
    floors = _floors(
        [len(caption.vectors) for caption in captions], [len(frames) for frames in videos], padding, batch
    )
    for row, (caption, frames) in enumerate(zip(captions, videos, strict=True)):
        if not len(frames):
            raise DataError("a video has no frames", where=f"row {row}")
        if frames.shape[1] != caption.vectors.shape[1]:
            what = "frames and captions were embedded by different models"
            given = f"{frames.shape[1]} and {caption.vectors.shape[1]} numbers each"
            raise DataError(what, where=f"row {row}", given=given)
        whole = video_whole(frames)
        film = TokenizedCaption(frames, np.ones(len(frames)), whole)
        matched = greedy(caption, [film], floored=(floors[0][[row]], floors[1][[row]]))
        coarse = caption.whole.astype(np.float64) @ whole
        rows[row] = matched.precision[0], matched.recall[0], matched.f1[0], coarse
    return EMScore(*rows.T)


def with_references(
    captions: Sequence[TokenizedCaption],
    references: Sequence[Sequence[TokenizedCaption]],
    *,
    best: Best = "component",
    padding: Padding = "none",
    batch: int = RELEASED_BATCH,
) -> EMScore:
    """EMScore(X, X*) of each caption with its references, of which there may be any number.

    With `best` "whole" the parts are those of the reference with the largest score (PAC-S's max); with
    "component" each part is the largest. Raises `DataError` naming the first row without references.
    """
    counts = [len(own_references) for own_references in references]
    pairs = [len(caption.vectors) for caption, n in zip(captions, counts, strict=True) for _ in range(n)]
    others = [len(other.vectors) for own_references in references for other in own_references]
    floors = _floors(pairs, others, padding, batch)
    rows, first = np.zeros((len(captions), 4)), 0
    for row, (caption, own_references) in enumerate(zip(captions, references, strict=True)):
        if not len(own_references):
            raise without_references(row)
        here = slice(first, first + len(own_references))
        first = here.stop
        matched = greedy(caption, own_references, floored=(floors[0][here], floors[1][here]))
        wholes = np.stack([other.whole for other in own_references]).astype(np.float64)
        coarse = wholes @ caption.whole.astype(np.float64)
        parts = np.stack([matched.precision, matched.recall, matched.f1, coarse])
        chosen = int(np.argmax(matched.f1 + coarse))
        rows[row] = parts.max(axis=1) if best == "component" else parts[:, chosen]
    return EMScore(*rows.T)


def mean_of(first: EMScore, second: EMScore) -> EMScore:
    """EMScore(X, V, X*): part by part the mean of the two, so its `full` is theirs. PAC-S equation 8.

    >>> one = EMScore(*np.ones((4, 1)))
    >>> none = EMScore(*np.zeros((4, 1)))
    >>> mean_of(one, none).full
    array([0.5])
    """
    parts = ("precision", "recall", "f1", "coarse")
    return EMScore(*((getattr(first, name) + getattr(second, name)) / 2 for name in parts))


def video_whole(frames: Float[ndarray, "frames width"]) -> Float[ndarray, "width"]:
    """The unit vector of a video: the mean of its frames; 0 where these cancel out. PAC-S section 3.2.

    >>> video_whole(np.array([[1.0, 0.0], [0.0, 1.0]])).round(4)
    array([0.7071, 0.7071])
    """
    mean = frames.astype(np.float64).mean(axis=0)
    length = float(np.linalg.norm(mean))
    return mean / length if length > 0 else mean


def _floors(
    captions: Sequence[int], others: Sequence[int], padding: Padding, batch: int
) -> tuple[ndarray, ndarray]:
    """For each pair whether the other side, and the caption, are padded: a longer one is in the batch."""
    shorter = np.zeros((2, len(captions)), dtype=bool)
    if padding == "released":
        for flags, lengths in zip(shorter, (np.asarray(others), np.asarray(captions)), strict=True):
            for start in range(0, len(lengths), batch):
                part = lengths[start : start + batch]
                flags[start : start + batch] = part < part.max()
    return shorter[0], shorter[1]
