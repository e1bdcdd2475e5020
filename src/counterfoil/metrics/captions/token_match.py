"""Captions compared token by token: each token matched to the most similar one (BERTScore).

Precision asks of every token of the candidate how near the nearest token of the other side is; recall asks
the same of every token of the other side. Tokens are unit vectors of any text encoder; weights say how much
each counts, such as inverse document frequencies.

Source: T. Zhang et al., BERTScore: evaluating text generation with BERT, ICLR 2020.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int64
from numpy import ndarray

from counterfoil.errors import DataError
from counterfoil.metrics.captions.clip_score import harmonic_mean


@dataclass(frozen=True, eq=False)
class TokenizedCaption:
    """A caption token by token, from the mark of its begin to that of its end.

    `vectors` (tokens, width) are unit vectors; `weights` (tokens,) are 0 or more and need not sum to 1;
    `whole` (width,) is the unit embedding of the caption.
    """

    vectors: Float[ndarray, "tokens width"]
    weights: Float[ndarray, "tokens"]
    whole: Float[ndarray, "width"]

    @property
    def shares(self) -> Float[ndarray, "tokens"]:
        """(tokens,) the weights over their sum; where all are 0 every token counts alike.

        >>> TokenizedCaption(np.eye(2), np.array([1.0, 3.0]), np.ones(2)).shares
        array([0.25, 0.75])
        >>> TokenizedCaption(np.eye(2), np.zeros(2), np.ones(2)).shares
        array([0.5, 0.5])
        """
        weights = self.weights.astype(np.float64)
        total = weights.sum()
        return weights / total if total > 0 else np.full(len(weights), 1 / max(1, len(weights)))


@dataclass(frozen=True)
class Frequencies:
    """How rare the tokens of a corpus are: ln((N + 1) / (df + 1)), df of N documents hold the token.

    `ids` are sorted, `values` are theirs; a token that no document holds has `unseen`, ln(N + 1).
    """

    ids: Int64[ndarray, "known"]
    values: Float[ndarray, "known"]
    unseen: float

    @classmethod
    def of(cls, documents: Sequence[Int64[ndarray, "_"]]) -> "Frequencies":
        """Those of a corpus; a document is all ids that the tokenizer gave, each counted once.

        Raises `DataError` for a corpus without documents. Zhang et al., section 3.

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
        """The same, but the token of the highest id (CLIP's mark of the end) has the mean of all values.

        The mean is taken before that one changes, as EMScore's code does it: the mark stands for the whole
        caption and would have 0.

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
        places = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        return np.where(self.ids[places] == ids, self.values[places], self.unseen)


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

    A caption without words (nothing between its two marks) has 0 with everything, as in BERTScore's code.
    Raises `DataError` naming the first row without references. Zhang et al., section 3.

    >>> cat = TokenizedCaption(np.eye(3), np.array([0.0, 1.0, 0.0]), np.ones(3))
    >>> dog = TokenizedCaption(np.eye(3)[[0, 2, 2]], np.array([0.0, 1.0, 0.0]), np.ones(3))
    >>> token_match([cat, cat], [[dog], [dog, cat]]).f1
    array([0., 1.])
    """
    rows = np.zeros((len(candidates), 3))
    for row, (candidate, own) in enumerate(zip(candidates, references, strict=True)):
        if not len(own):
            raise without_references(row)
        matched = greedy(candidate, own)
        words = np.array([len(other.vectors) > 2 for other in own]) & (len(candidate.vectors) > 2)
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

    Each weight w is its share of the sum over its own side. `floored` says, for each other, whether the
    largest cosine is not below 0, in P and in R: what padding does in released codes (see `em_score`). Raises
    `DataError` where a side has no tokens at all. Zhang et al., section 3.

    >>> two, one = (TokenizedCaption(np.eye(2)[:n], np.ones(n), np.ones(2)) for n in (2, 1))
    >>> found = greedy(two, [one])
    >>> found.precision, found.recall, found.f1.round(4)
    (array([0.5]), array([1.]), array([0.6667]))
    """
    counts = np.array([len(other.vectors) for other in others], dtype=np.int64)
    if not len(candidate.vectors) or not len(others) or (counts < 1).any():
        raise DataError(
            "matching needs tokens on both sides", given=f"{len(candidate.vectors)} and {counts.tolist()}"
        )
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


def without_references(row: int) -> DataError:
    """The error for a row without references."""
    return DataError(
        "a candidate has no references",
        where=f"row {row}",
        hint="leave such rows out, or take the metric without references",
    )
