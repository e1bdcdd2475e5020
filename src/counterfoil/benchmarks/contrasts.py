"""Contrasts: the captions among which a benchmark's questions choose, and what can be seen without images."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray

from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.records import distinct, words
from counterfoil.errors import DataError
from counterfoil.inputs.files import digest

#: Parts that clusters are dealt into.
FOLDS = 10


@dataclass(frozen=True, eq=False)
class Contrasts:
    """The captions among which questions choose: a row per caption.

    `truth` is 1 for right captions and 0 for wrong ones, or the mean rating where `rated`; `clusters` gives a
    number to each question, and questions of one number depend on each other.
    """

    texts: Sequence[str]
    question: Int[ndarray, "rows"]
    truth: Float[ndarray, "rows"]
    clusters: Int[ndarray, "n"]
    rated: bool = False
    #: Whether telling the captions apart answers questions (not in quads, each of whose captions is right).
    decides: bool = True

    @classmethod
    def of(cls, benchmark: Benchmark) -> "Contrasts":
        """Those of a benchmark; clusters are questions that share items, directly or through others."""
        candidates = benchmark.questions.caption_candidates()
        if candidates is None:
            what = "its questions choose among no captions"
            given = f"a benchmark of form '{benchmark.questions.form}'"
            allowed = "quads, choices among captions, preferences and rated captions"
            raise DataError(what, where=benchmark.name, given=given, allowed=allowed)
        texts = [benchmark.captions[i].text for i in candidates.caption.tolist()]
        if any(text is None for text in texts):
            hint = "give them with --data"
            raise DataError("captions have no text", where=benchmark.source or benchmark.name, hint=hint)
        dependence = benchmark.dependence
        clusters = dependence.components
        if len(clusters) > 1 and np.bincount(clusters).max() > len(clusters) / 2:
            clusters = dependence.units
        of_rows = [text or "" for text in texts], candidates.question, candidates.truth
        return cls(*of_rows, clusters, candidates.rated, candidates.decides)

    def __len__(self) -> int:
        return len(self.clusters)

    @cached_property
    def tokens(self) -> list[list[str]]:
        """The words of each row."""
        cached: dict[str, list[str]] = {}
        return [cached.setdefault(text, words(text)) for text in self.texts]

    @cached_property
    def keys(self) -> list[str]:
        """A digest of each row's text, by which rows are ordered whatever order they come in."""
        return [digest(text.encode("utf-8", "surrogatepass")) for text in self.texts]

    @cached_property
    def pairs(self) -> Int[ndarray, "pairs 2"]:
        """A right and a wrong row of each question, in the order of their texts; none of rated captions.

        Of several right ones, or wrong ones, the first by a digest of it among all captions of its question:
        a draw that its words do not decide. By a digest of the caption alone, the same captions
        would be drawn wherever they are among several, so that their words would lean to that side.
        """
        others: dict[int, list[str]] = {}
        for question, key in zip(self.question.tolist(), self.keys, strict=True):
            others.setdefault(question, []).append(key)
        together = {question: " ".join(sorted(keys)) for question, keys in others.items()}
        order = [
            digest(f"{key} {together[question]}".encode())
            for question, key in zip(self.question.tolist(), self.keys, strict=True)
        ]
        chosen: dict[tuple[int, bool], int] = {}
        for row, (question, truth) in enumerate(zip(self.question.tolist(), self.truth, strict=True)):
            place = (question, bool(truth > 0.5))
            if place not in chosen or order[row] < order[chosen[place]]:
                chosen[place] = row
        both = [
            (chosen[question, True], row)
            for (question, right), row in chosen.items()
            if not right and (question, True) in chosen
        ]
        both.sort(key=lambda pair: (self.keys[pair[0]], self.keys[pair[1]], self.question[pair[0]]))
        return np.array(both if not self.rated else [], dtype=np.int64).reshape(-1, 2)

    @cached_property
    def same_words(self) -> Bool[ndarray, "n"]:
        """Which questions have a right and a wrong caption of the same words, each as often."""
        same = np.zeros(len(self), dtype=bool)
        bags: dict[tuple[int, bool], set[tuple[str, ...]]] = {}
        for question, truth, tokens in zip(self.question.tolist(), self.truth, self.tokens, strict=True):
            bags.setdefault((question, bool(truth > 0.5)), set()).add(tuple(sorted(tokens)))
        for (question, right), bag in bags.items():
            same[question] |= right and bool(bag & bags.get((question, False), set()))
        return same & (not self.rated)

    @cached_property
    def folds(self) -> Int[ndarray, "n"]:
        """The fold of each question; whole clusters, the largest first, go where fewest questions are."""
        least: dict[int, str] = {}
        for question, key in zip(self.question.tolist(), self.keys, strict=True):
            cluster = int(self.clusters[question])
            least[cluster] = min(least.get(cluster, key), key)
        numbers, sizes = np.unique(self.clusters, return_counts=True)
        size = dict(zip(numbers.tolist(), sizes.tolist(), strict=True))
        held, fold = [0] * FOLDS, {}
        for cluster in sorted(size, key=lambda cluster_id: (-size[cluster_id], least.get(cluster_id, ""))):
            fold[cluster] = int(np.argmin(held))
            held[fold[cluster]] += size[cluster]
        return np.array([fold[cluster] for cluster in self.clusters.tolist()], dtype=np.int64)

    def splits(self) -> Iterator[tuple[Bool[ndarray, "rows"], Bool[ndarray, "rows"]]]:
        """For each fold its rows, and those to learn from: of questions that share no caption with it."""
        text = distinct(map(" ".join, self.tokens))[1]
        for fold in np.unique(self.folds):
            tested = (self.folds == fold)[self.question]
            shared = np.isin(text, text[tested])
            barred = np.isin(self.question, self.question[shared])
            yield tested, ~barred
