"""ROUGE-L of captions as the COCO tool kit computes it: the longest common subsequence of tokens."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

from counterfoil.metrics.captions.ngrams import Load, load

#: How much more recall counts than precision, as the tool kit has it.
BETA = 1.2


def rouge_l(
    candidates: Sequence[str], references: Sequence[Sequence[str]], *, beta: float = BETA
) -> Float[ndarray, "items"]:
    """(items,) ROUGE-L of tokenised candidates, each against its references.

        P = max_j lcs(c, s_j) / |c|,  R = max_j lcs(c, s_j) / |s_j|,  F = (1 + b^2) P R / (R + b^2 P)

    with lcs the length of the longest common subsequence of tokens. The best precision and the best recall
    may come from different references. Values are from 0 to 1; 1 where the candidate equals a reference; 0
    where no token is shared, so also for a candidate without tokens, unless a reference has none either: the
    tool kit sees one empty token in both and gives 1.

    Raises `InputError` as `ngrams.load` does. Source: C.-Y. Lin, ROUGE, 2004, section 3.1; the tool kit's
    `rouge.py`.

    >>> rouge_l(["a dog runs"], [["a big dog", "the dog runs fast"]]).round(4).tolist()
    [0.6667]
    """
    return of_load(load(candidates, references), beta=beta)


def of_load(load: Load, *, beta: float = BETA) -> Float[ndarray, "items"]:
    """`rouge_l` of captions that are already paired."""
    numbers: dict[str, int] = {}
    # One blank parts tokens here, where BLEU and CIDEr take any white space: so does the tool kit.
    texts = [[numbers.setdefault(token, len(numbers)) for token in text.split(" ")] for text in load.texts]
    lengths = np.array([len(text) for text in texts])
    common = _common(texts, load.against, load.references)
    precision = load.best(common / lengths[load.against])
    recall = load.best(common / lengths[load.references])
    with np.errstate(invalid="ignore"):
        score = (1 + beta**2) * precision * recall / (recall + beta**2 * precision)
    return np.where((precision > 0) & (recall > 0), score, 0.0)


def _common(
    texts: Sequence[Sequence[int]], left: Int[ndarray, "pairs"], right: Int[ndarray, "pairs"]
) -> Int[ndarray, "pairs"]:
    """The length of the longest common subsequence of each pair of texts; each two texts are compared once.

    A row of the table that is filled in to find it changes from column to column by 0 or 1. With these steps
    as the bits of one number, a row follows from the one above by four operations (M. Crochemore et al., A
    fast and practical bit-vector algorithm for the longest common subsequence problem, 2001).
    """
    low, high = np.minimum(left, right), np.maximum(left, right)
    keys, which = np.unique(low * len(texts) + high, return_inverse=True)
    found = np.empty(len(keys), dtype=np.int64)
    current, size, full = -1, 0, 0
    places: dict[int, int] = {}
    for row, (one, other) in enumerate(
        zip((keys // len(texts)).tolist(), (keys % len(texts)).tolist(), strict=True)
    ):
        if one != current:
            current, size, places = one, len(texts[one]), {}
            for place, token in enumerate(texts[one]):
                places[token] = places.get(token, 0) | 1 << place
            full = (1 << size) - 1
        steps = full
        for token in texts[other]:
            at = places.get(token)
            if at is not None:
                kept = steps & at
                steps = (steps + kept) | (steps - kept)
        found[row] = size - (steps & full).bit_count()
    return np.asarray(found[which.reshape(-1)])
