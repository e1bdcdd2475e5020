"""The protocols of caption metrics: a score of a candidate from its image, its references, or both."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int64
from numpy import ndarray

from counterfoil.models.base import CaptionBatches, Embedder, Identified, ImageBatches


@runtime_checkable
class TextMetric(Identified, Protocol):
    """Reads candidates and references as they are written: BLEU, CIDEr, METEOR, SPICE, the length."""

    #: ("captions",) or ("captions", "references"); never images.
    needs: tuple[str, ...]

    def of_texts(
        self,
        candidates: Sequence[str],
        references: Sequence[Sequence[str]],
        documents: Int64[ndarray, "documents"] | None = None,
    ) -> Float[ndarray, "rows"]:
        """One number per row; `references` is empty where the metric needs none.

        What depends on the load (the document frequencies of CIDEr) is taken over the references of these
        rows, or of those among them that `documents` names: one of each image, where several rows are of one.
        """

    def of_corpus(self, candidates: Sequence[str], references: Sequence[Sequence[str]]) -> float:
        """One number for the whole load, as the field reports it: corpus BLEU, else the mean over rows."""


@runtime_checkable
class EmbeddingMetric(Identified, Protocol):
    """Compares one embedding per item: CLIP-S, PAC-S and the same with references."""

    #: ("images", "captions"), ("images", "captions", "references") or ("captions", "references").
    needs: tuple[str, ...]
    embedder: Embedder

    def of_embeddings(
        self,
        candidates: Float[ndarray, "rows width"],
        images: Float[ndarray, "rows width"] | None,
        references: Float[ndarray, "references width"] | None,
        starts: Int64[ndarray, "rows_and_one"] | None,
    ) -> Float[ndarray, "rows"]:
        """One number per row; the references of row i are `references[starts[i]:starts[i + 1]]`."""


@dataclass(frozen=True, eq=False)
class CaptionTokens:
    """A caption token by token, as a model sees it.

    `ids` are all ids that the tokenizer gave, padding included where the model has it (EMScore counts
    documents over them); `vectors` (tokens, width) are unit vectors of the tokens from the mark of begin to
    that of the end, inclusive; `used` (tokens,) their ids; `whole` (width,) the unit embedding of it all.
    """

    ids: Int64[ndarray, "padded"]
    used: Int64[ndarray, "tokens"]
    vectors: Float[ndarray, "tokens width"]
    whole: Float[ndarray, "width"]

    @classmethod
    def of(cls, ids: ndarray, states: ndarray, *, used: int, whole: int) -> "CaptionTokens":
        """From the states of tokens, of which as many mean something as are `used`."""
        # A copy: a view of three tokens would keep the whole batch in memory.
        vectors = states[:used].copy()
        return cls(ids, ids[:used], vectors, vectors[whole])


BatchTokens = Iterator[list[CaptionTokens]]
BatchFrames = Iterator[list[Float[np.ndarray, "frames width"]]]


@runtime_checkable
class LocalEmbedder(Identified, Protocol):
    """Once per part: the tokens of captions, the frames of videos (a picture is a video of one frame)."""

    def embed_tokens(self, batches: CaptionBatches) -> BatchTokens:
        """For each batch of captions their tokens.

        Captions longer than the model reads are cut off as its tokenizer does. Raises `DataError` where a
        text is not at hand.
        """

    def embed_frames(self, batches: ImageBatches, *, workers: int = 0) -> BatchFrames:
        """For each batch of videos (or images) the unit vectors of their frames, decoded as a stream."""


#: The unit vectors of each row's frames, the tokens of its references, and rows whose references are counted.
Frames = Sequence[Float[ndarray, "_ width"]]
TokenGroups = Sequence[Sequence[CaptionTokens]]
Documents = Int64[ndarray, "documents"]


@runtime_checkable
class LocalMetric(Identified, Protocol):
    """Compares items part by part: EMScore and the same with references; token matching between captions."""

    needs: tuple[str, ...]
    local: LocalEmbedder

    def of_parts(
        self,
        candidates: Sequence[CaptionTokens],
        images: Frames | None,
        references: TokenGroups | None,
        documents: Documents | None = None,
    ) -> Float[ndarray, "rows"]:
        """One number per row; references are counted over these rows, or over `documents`."""


CaptionMetric = TextMetric | EmbeddingMetric | LocalMetric
