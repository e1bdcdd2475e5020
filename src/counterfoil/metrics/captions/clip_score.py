"""CLIP-S, PAC-S and their kin with references: from one embedding per item to one number per row.

A weight times the cosine of caption and image, not below 0: 2.5 for CLIP-S, 2 for PAC-S. With references the
harmonic mean of that and of the largest cosine of the candidate with a reference.

Sources: J. Hessel et al., CLIPScore: a reference-free evaluation metric for image captioning, EMNLP 2021;
PAC-S equations 1, 5 and 6 and section 3.1.
"""

from typing import Literal

import numpy as np
from jaxtyping import Float, Int64
from numpy import ndarray

from counterfoil.errors import DataError

#: What becomes of a candidate whose cosine is below 0 with all references. "released": nothing, as in the
#: code that gave the published numbers; "paper": it counts as 0, as both papers write.
Negative = Literal["released", "paper"]
#: In which numbers cosines are summed. "exact": float64; "half": as CLIPScore's code on a GPU, which keeps
#: 11 bits of embeddings, products and scores, so that many rows tie.
Arithmetic = Literal["exact", "half"]

#: An embedding of each row, and of each reference; those of row i begin at `starts[i]`.
Rows = Float[ndarray, "rows width"]
ReferenceRows = Float[ndarray, "references width"]
Starts = Int64[ndarray, "rows_and_one"]

CLIP_WEIGHT = 2.5
PAC_WEIGHT = 2.0


def clip_s(
    candidates: Rows,
    images: Rows,
    *,
    weight: float = CLIP_WEIGHT,
    clip: bool = True,
    arithmetic: Arithmetic = "exact",
) -> Float[ndarray, "rows"]:
    """CLIP-S of each candidate: `weight` times its cosine with the image, 0 where that is negative.

    In [0, weight], or [-weight, weight] without `clip`; higher is better. Embeddings may have any length; one
    of length 0 has a cosine of 0. Hessel et al., section 3; PAC-S equation 1.

    >>> clip_s(np.array([[3.0, 4.0], [-1.0, 0.0]]), np.array([[1.0, 0.0], [1.0, 0.0]]))
    array([1.5, 0. ])
    """
    left, right = _unit(candidates, arithmetic), _unit(images, arithmetic)
    cosines = np.sum(left * right, axis=1)
    clipped = np.clip(cosines, 0, None) if clip else cosines
    # A Python number does not widen half-precision ones, and neither does the released code.
    return (weight * clipped).astype(np.float64)


def ref_clip_s(
    candidates: Rows,
    images: Rows,
    references: ReferenceRows,
    starts: Starts,
    *,
    weight: float = CLIP_WEIGHT,
    negative: Negative = "released",
    arithmetic: Arithmetic = "exact",
) -> Float[ndarray, "rows"]:
    """RefCLIP-S: the harmonic mean of CLIP-S and of the largest cosine with a reference.

    The references of row i are `references[starts[i]:starts[i + 1]]`. In [0, 2 weight / (1 + weight)] where
    nothing is negative, 0 wherever CLIP-S is; `negative` says what becomes of a candidate that all references
    contradict. Raises `DataError` naming the first row without references. PAC-S equations 5 and 6.

    >>> image, reference = np.array([[1.0, 0.0]]), np.array([[0.0, 1.0], [0.8, 0.6]])
    >>> ref_clip_s(np.array([[1.0, 0.0]]), image, reference, np.array([0, 2])).round(4)
    array([1.2121])
    """
    image_score = clip_s(candidates, images, weight=weight, arithmetic=arithmetic)
    best = best_cosines(candidates, references, starts, arithmetic=arithmetic)
    if negative == "paper":
        best = np.clip(best, 0, None)
    return harmonic_mean(image_score, best)


def best_cosines(
    candidates: Rows, references: ReferenceRows, starts: Starts, *, arithmetic: Arithmetic = "exact"
) -> Float[ndarray, "rows"]:
    """The largest cosine of each candidate with one of its references, in [-1, 1].

    Raises `DataError` naming the first row without references.

    >>> best_cosines(np.array([[1.0, 0.0]]), np.array([[0.0, 2.0], [3.0, 4.0]]), np.array([0, 2]))
    array([0.6])
    """
    counts = np.diff(starts)
    if not len(starts) or len(counts) != len(candidates) or starts[0] != 0 or starts[-1] != len(references):
        raise DataError(
            "references do not fit the candidates",
            given=f"{len(references)} references for {len(counts)} rows, {len(candidates)} candidates",
        )
    if (counts < 1).any():
        given = f"{int((counts < 1).sum())} of {len(counts)} rows have none"
        raise without_references(int(np.argmax(counts < 1)), given)
    if not len(candidates):
        return np.zeros(0)
    left, right = _unit(candidates, arithmetic), _unit(references, arithmetic)
    cosines = np.sum(np.repeat(left, counts, axis=0) * right, axis=1)
    return np.maximum.reduceat(cosines, starts[:-1]).astype(np.float64)


def without_references(row: int, given: str | None = None) -> DataError:
    hint = "leave such rows out, or take the metric without references"
    return DataError("a candidate has no references", where=f"row {row}", given=given, hint=hint)


def harmonic_mean(first: Float[ndarray, "rows"], second: Float[ndarray, "rows"]) -> Float[ndarray, "rows"]:
    """2ab / (a + b), and 0 where a + b is 0: never a NaN, never infinite.

    Where one is negative it is what the formula gives, as in the released codes, and has no bound.

    >>> harmonic_mean(np.array([1.0, 0.0, 0.0, 0.5]), np.array([0.5, 0.7, 0.0, -0.5])).round(4)
    array([0.6667, 0.    , 0.    , 0.    ])
    """
    total = first + second
    return 2 * np.divide(first * second, total, out=np.zeros_like(total), where=total != 0)


def _unit(rows: Float[ndarray, "rows width"], arithmetic: Arithmetic) -> ndarray:
    """Rows of length 1 (0 where they are 0), in the numbers that `arithmetic` names."""
    vectors = rows.astype(np.float16 if arithmetic == "half" else np.float64)
    lengths = np.sqrt(np.sum(vectors**2, axis=1, keepdims=True))
    return np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
