"""CIDEr of captions: how alike the n-grams of a candidate and of its references are, rare ones counting more.

The **plain** formula (Vedantam et al. 2015, section 4) is the cosine of tf-idf vectors. **CIDEr-D** (section
6) clips counts to the reference's, punishes other lengths by a Gaussian and is ten times as large. What the
COCO tool kit and every table call "CIDEr" is CIDEr-D, so the metrics `cider` and `cider-d` are one number;
the plain formula is `variant="plain"`. Words are not stemmed, as in the tool kit.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray
from scipy import sparse

from counterfoil.errors import InputError
from counterfoil.metrics.captions.ngrams import Grams, Load, load

Variant = Literal["d", "plain"]

#: How far lengths may differ, in tokens, before CIDEr-D's Gaussian penalty matters.
SIGMA = 6.0


@dataclass(frozen=True)
class DocumentFrequencies:
    """In how many documents (the references of one image) each n-gram stands, and how many there are."""

    counts: Mapping[tuple[str, ...], float]
    documents: int

    def __post_init__(self) -> None:
        if self.documents < 2:
            problem = "document frequencies of fewer than 2 documents give every n-gram the weight log 1 = 0"
            given = f"{self.documents} documents"
            raise InputError(problem, given=given, hint="take them from the references of a larger set")


def document_frequencies(references: Sequence[Sequence[str]]) -> DocumentFrequencies:
    """What to weigh n-grams by, from the tokenised references of each image of a corpus; once for an image.

    Raises `InputError` for fewer than two images, of which every weight would be 0.

    >>> corpus = document_frequencies([["a dog", "a big dog"], ["a cat"]])
    >>> corpus.documents, corpus.counts["a",], corpus.counts["dog",]
    (2, 2, 1)
    """
    pairs = load([""] * len(references), references)
    frequencies = _frequencies(pairs, np.arange(len(pairs)))
    there = np.flatnonzero(frequencies)
    names = pairs.grams.names()
    return DocumentFrequencies({names[g]: int(frequencies[g]) for g in there}, len(references))


def cider(
    load: Load,
    *,
    frequencies: DocumentFrequencies | None = None,
    variant: Variant = "d",
    sigma: float = SIGMA,
    documents: Int[ndarray, "documents"] | None = None,
) -> Float[ndarray, "items"]:
    """(items,) CIDEr of tokenised candidates, each against its references.

        CIDEr-D = 10 * mean_n mean_j exp(-(l_c - l_j)^2 / (2 sigma^2)) * min(g_n(c), g_n(s_j)) . g_n(s_j)
                                     / (|g_n(c)| |g_n(s_j)|)
        plain   = mean_n mean_j g_n(c) . g_n(s_j) / (|g_n(c)| |g_n(s_j)|)

    over n = 1 to 4 and the references s_j; g_n has for each n-gram its count times log(documents / those that
    have it), at least one. l is the length less 1, as in the tool kit. CIDEr-D is from 0 to 10, plain CIDEr
    from 0 to 1; a caption that equals its reference has the most, less a quarter for each n without a weighty
    n-gram. A candidate without tokens gets 0.

    `frequencies` are those of a named corpus; without them the documents are the references of the items
    `documents` (positions, one item of each image), else of every item. Values then depend on the whole load.
    Raises `InputError` for a single document, and as `ngrams.load` does.

    Source: R. Vedantam et al., CIDEr, 2015, sections 4 and 6; the tool kit's `cider_scorer.py`.

    >>> cider(load(["a dog", "a cat"], [["a dog", "one dog"], ["the cat"]])).round(4).tolist()
    [3.125, 1.25]
    """
    if variant not in get_args(Variant):
        raise InputError("unknown variant of CIDEr", given=variant, allowed=get_args(Variant))
    counted = np.arange(len(load)) if documents is None else documents
    if frequencies is None and len(counted) < 2:
        raise InputError(
            "CIDEr of a single image is always 0: its references are the only document, so every n-gram has "
            "the weight log(1/1) = 0",
            hint="score it together with others, or name a corpus of document frequencies",
        )
    grams, counts = load.grams, load.grams.counts
    # log(documents / documents with the n-gram), squared.
    if frequencies is None:
        total, having = len(counted), np.maximum(_frequencies(load, counted), 1)
    else:
        total = frequencies.documents
        having = np.maximum([frequencies.counts.get(name, 0.0) for name in grams.names()], 1.0)
    weights = (np.log(total) - np.log(having)) ** 2
    squares = counts.copy()
    squares.data = squares.data**2
    norms = np.sqrt(grams.by_order(squares, weights))
    spans = np.maximum(grams.lengths - 1, 0)
    sums = np.empty(len(load))
    for block in load.blocks():
        pairs = slice(load.starts[block.start], load.starts[block.stop])
        of_candidates, other = load.against[pairs], load.references[pairs]
        candidates = counts[of_candidates].minimum(counts[other]) if variant == "d" else counts[of_candidates]
        products = candidates.multiply(counts[other]).tocsr()
        scale = norms[of_candidates] * norms[other]
        alike = np.divide(grams.by_order(products, weights), scale, out=np.zeros_like(scale), where=scale > 0)
        value = alike.mean(axis=1)
        if variant == "d":
            value *= 10 * np.exp(-((spans[of_candidates] - spans[other]) ** 2) / (2 * sigma**2))
        sums[block] = np.add.reduceat(value, load.starts[:-1][block] - pairs.start)
    return sums / np.diff(load.starts)


def _frequencies(load: Load, documents: Int[ndarray, "documents"]) -> Int[ndarray, "grams"]:
    """In the references of how many of the items `documents` each n-gram of the load stands."""
    grams: Grams = load.grams
    frequencies = np.zeros(len(grams.orders), dtype=np.int64)
    counted = np.zeros(len(load), dtype=bool)
    counted[documents] = True
    for block in load.blocks():
        starts = load.starts[block.start : block.stop + 1]
        texts = load.references[starts[0] : starts[-1]]
        has = sparse.csr_matrix(
            (np.ones(len(texts), np.int32), texts, starts - starts[0]), (len(starts) - 1, len(grams.lengths))
        )
        frequencies += np.bincount((has[counted[block]] @ grams.counts).indices, minlength=len(frequencies))
    return frequencies
