"""Caption metrics of the engine's own tests: cheap, countable, of texts, of embeddings, of parts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from contracts.forms import paragraphs_of, ratings_of
from counterfoil.benchmarks import Benchmark, BytesSource, Caption, Image
from counterfoil.benchmarks.references import References
from counterfoil.models.base import Identity
from counterfoil.models.captions.base import CaptionTokens


@dataclass
class Overlap:
    """Words of the candidate that its references have, over rows: it counts the rows it is given."""

    identity: Identity = field(default_factory=lambda: Identity("metric:overlap", revision="1"))
    needs: tuple[str, ...] = ("captions", "references")
    rows: list[int] = field(default_factory=list)

    def of_texts(self, candidates: Sequence[str], references: Sequence[Sequence[str]]) -> np.ndarray:
        self.rows.append(len(candidates))
        return np.array(
            [
                len(set(candidate.split()) & set(" ".join(others).split())) / len(candidates)
                for candidate, others in zip(candidates, references, strict=True)
            ]
        )

    def of_corpus(self, candidates: Sequence[str], references: Sequence[Sequence[str]]) -> float:
        return float(self.of_texts(candidates, references).mean())


@dataclass
class Cosine:
    """The cosine with the image plus the mean cosine with the references, of what it needs."""

    embedder: object
    needs: tuple[str, ...] = ("images", "captions")
    identity: Identity = field(default_factory=lambda: Identity("metric:cosine", revision="1"))
    blocks: list[int] = field(default_factory=list)

    def of_embeddings(self, candidates, images, references, starts) -> np.ndarray:
        self.blocks.append(len(candidates))
        result = np.zeros(len(candidates))
        if images is not None:
            result += np.einsum("ij,ij->i", candidates.astype(float), images.astype(float))
        if references is not None:
            for row in range(len(candidates)):
                result[row] += (
                    references[starts[row] : starts[row + 1]].astype(float) @ candidates[row]
                ).mean()
        return result


def word_vector(word: str) -> np.ndarray:
    value = np.random.default_rng([ord(letter) for letter in word]).standard_normal(4)
    return (value / np.linalg.norm(value)).astype(np.float32)


@dataclass
class Words:
    """Words are tokens; a picture's frames are as many as its first byte says, from its bytes."""

    identity: Identity = field(default_factory=lambda: Identity("fake:words", revision="1"))
    captions_seen: list[str] = field(default_factory=list)
    images_seen: list[str] = field(default_factory=list)
    #: Raises after so many images.
    stop_after: int | None = None

    def embed_tokens(self, batches: Sequence[Sequence[Caption]]) -> Iterator[list[CaptionTokens]]:
        for batch in batches:
            self.captions_seen += [str(caption.text) for caption in batch]
            yield [self.tokens(str(caption.text)) for caption in batch]

    def tokens(self, text: str) -> CaptionTokens:
        words = text.split()
        vectors = np.stack([word_vector(word) for word in words])
        ids = np.array([len(word) for word in words], dtype=np.int64)
        whole = vectors.mean(axis=0)
        return CaptionTokens(ids, ids, vectors, (whole / np.linalg.norm(whole)).astype(np.float32))

    def embed_frames(
        self, batches: Sequence[Sequence[Image]], *, workers: int = 0
    ) -> Iterator[list[np.ndarray]]:
        for batch in batches:
            if self.stop_after is not None and len(self.images_seen) + len(batch) > self.stop_after:
                raise KeyboardInterrupt
            self.images_seen += [image.id for image in batch]
            yield [frames(image.read()) for image in batch]


def frames(data: bytes) -> np.ndarray:
    value = np.random.default_rng(list(data)).standard_normal((1 + len(data) % 5, 4))
    return (value / np.linalg.norm(value, axis=1, keepdims=True)).astype(np.float32)


@dataclass
class Best:
    """The mean over tokens of the best frame (and of the best token of any reference)."""

    local: Words
    needs: tuple[str, ...] = ("images", "captions")
    identity: Identity = field(default_factory=lambda: Identity("metric:best", revision="1"))

    def of_parts(self, candidates, images, references) -> np.ndarray:
        result = np.zeros(len(candidates))
        for row, tokens in enumerate(candidates):
            if images is not None:
                result[row] += (tokens.vectors @ images[row].T).max(axis=1).mean()
            if references is not None:
                others = np.concatenate([item.vectors for item in references[row]])
                result[row] += (tokens.vectors @ others.T).max(axis=1).mean()
        return result


def rated(n: int) -> Benchmark:
    """`n` candidates of four images; each row has 1 to 3 references; texts repeat."""
    pictures = tuple(Image(f"i{i}", BytesSource(bytes([i] * (i + 1)))) for i in range(4))
    captions = tuple(Caption(f"c{i}", f"a word{i % 3} and more{i % 5}") for i in range(2 * n))
    result = References.of([[n + (row + k) % n for k in range(1 + row % 3)] for row in range(n)])
    return ratings_of(
        np.arange(n, dtype=float)[:, None],
        np.arange(n) % 4, shown=pictures, captions=captions, references=result,
    )  # fmt: skip


def preferred(n: int, *, sentences: int = 1, sample: int | None = None, draws: int = 1) -> Benchmark:
    """`n` questions of two candidates, each of some sentences of images of their own; 4 references."""
    rows = n * 2 * sentences
    pictures = tuple(Image(f"i{i}", BytesSource(bytes([i] * (i + 1)))) for i in range(sentences))
    captions = tuple(Caption(f"c{i}", f"word{i % 11} is on line{i % 7}") for i in range(rows + 4 * n))
    shared = References.of([[rows + 4 * row + k for k in range(4)] for row in range(n)])
    return paragraphs_of(
        n, sentences, np.tile(np.arange(sentences), 2 * n), shown=pictures, captions=captions,
        references=shared.take(np.repeat(np.arange(n), 2 * sentences)), sample=sample, draws=draws,
    )  # fmt: skip
