"""Measures of two captions and two images: which goes with which.

`scores[q, i, j]` is the score of caption i with image j of question q; caption i belongs to image i.
The measures are those of Winoground (equations 1-3) under the names of BiVLC (appendix D):
text score = `i2t`, image score = `t2i`, and the four single directions of BiVLC Table 3.
"""

from collections.abc import Mapping

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from counterfoil.metrics.measure import Measure, by_name
from counterfoil.metrics.ties import Ties, all_above, any_tied


def ipos2t(scores: Float[ndarray, "n 2 2"], *, ties: Ties = Ties.STRICT) -> Float[ndarray, "n"]:
    """Image 0 picks its caption: s(C0, I0) > s(C1, I0). Values in [0, 1], chance 1/2. BiVLC, Table 3."""
    return all_above(scores[:, 0, [0]], scores[:, 1, [0]], ties=ties)


def ineg2t(scores: Float[ndarray, "n 2 2"], *, ties: Ties = Ties.STRICT) -> Float[ndarray, "n"]:
    """Image 1 picks its caption: s(C1, I1) > s(C0, I1). Values in [0, 1], chance 1/2. BiVLC, Table 3."""
    return all_above(scores[:, 1, [1]], scores[:, 0, [1]], ties=ties)


def tpos2i(scores: Float[ndarray, "n 2 2"], *, ties: Ties = Ties.STRICT) -> Float[ndarray, "n"]:
    """Caption 0 picks its image: s(C0, I0) > s(C0, I1). Values in [0, 1], chance 1/2. BiVLC, Table 3."""
    return all_above(scores[:, 0, [0]], scores[:, 0, [1]], ties=ties)


def tneg2i(scores: Float[ndarray, "n 2 2"], *, ties: Ties = Ties.STRICT) -> Float[ndarray, "n"]:
    """Caption 1 picks its image: s(C1, I1) > s(C1, I0). Values in [0, 1], chance 1/2. BiVLC, Table 3."""
    return all_above(scores[:, 1, [1]], scores[:, 1, [0]], ties=ties)


def i2t(scores: Float[ndarray, "n 2 2"], *, ties: Ties = Ties.STRICT) -> Float[ndarray, "n"]:
    """Both images pick their captions (Winoground's text score). Values in [0, 1], chance 1/4.

    Winoground equation 1, BiVLC equation 1. The two comparisons share no score, so under `half` the expected
    value is their product.

    >>> i2t(np.array([[[0.3, 0.2], [0.1, 0.4]], [[0.3, 0.9], [0.1, 0.4]]]))
    array([1., 0.])
    """
    return ipos2t(scores, ties=ties) * ineg2t(scores, ties=ties)


def t2i(scores: Float[ndarray, "n 2 2"], *, ties: Ties = Ties.STRICT) -> Float[ndarray, "n"]:
    """Both captions pick their images (Winoground's image score). Values in [0, 1], chance 1/4.

    Winoground equation 2, BiVLC equation 2.
    """
    return tpos2i(scores, ties=ties) * tneg2i(scores, ties=ties)


def group(scores: Float[ndarray, "n 2 2"], *, ties: Ties = Ties.STRICT) -> Float[ndarray, "n"]:
    """Both directions right: each true pair scores above each false one. Values in [0, 1], chance 1/6.

    Winoground equation 3, BiVLC equation 3. The four comparisons share their scores: a random order of four
    scores puts the two true pairs first in 2! 2! / 4! of the cases, which is what `half` gives a constant.

    >>> group(np.zeros((1, 2, 2)), ties=Ties.HALF)
    array([0.16666667])
    """
    return all_above(_diagonal(scores), _off_diagonal(scores), ties=ties)


def group_match(scores: Float[ndarray, "n 2 2"], *, ties: Ties = Ties.STRICT) -> Float[ndarray, "n"]:
    """The right matching has the larger sum: s00 + s11 > s01 + s10. Values in [0, 1], chance 1/2.

    The score of the best one-to-one assignment: what a system gets that knows each caption has one image.
    """
    right = _diagonal(scores).sum(axis=1, keepdims=True)
    wrong = _off_diagonal(scores).sum(axis=1, keepdims=True)
    return all_above(right, wrong, ties=ties)


#: The measures by name, in the order of reports.
MEASURES: Mapping[str, Measure] = by_name(
    Measure(
        *("i2t", "quad", "I2T", "both images pick their own caption (Winoground's text score)", "1/4", i2t),
        main=True,
    ),
    Measure(
        *("t2i", "quad", "T2I", "both captions pick their own image (Winoground's image score)", "1/4", t2i),
        main=True,
    ),
    Measure("group", "quad", "Group", "both directions are right", "1/6", group, main=True),
    # The names of BiVLC Table 3.
    Measure("ipos2t", "quad", "Ipos2T", "the first image picks its caption", "1/2", ipos2t),
    Measure("ineg2t", "quad", "Ineg2T", "the second image picks its caption", "1/2", ineg2t),
    Measure("tpos2i", "quad", "Tpos2I", "the first caption picks its image", "1/2", tpos2i),
    Measure("tneg2i", "quad", "Tneg2I", "the second caption picks its image", "1/2", tneg2i),
    Measure(
        "group_match",
        "quad",
        "Group match",
        "the right matching has the larger sum of scores: s00 + s11 > s01 + s10",
        "1/2",
        group_match,
    ),
)


def from_directions(
    directions: Mapping[str, Bool[ndarray, "n"]],
) -> dict[str, Float[ndarray, "n"]]:
    """All measures that follow from the four single outcomes, where no scores are at hand.

    `directions` maps `ipos2t`, `ineg2t`, `tpos2i`, `tneg2i` to true and false per question. Group match
    needs scores and is left out.

    >>> one = np.array([True, True])
    >>> from_directions({"ipos2t": one, "ineg2t": one, "tpos2i": one, "tneg2i": ~one})["group"]
    array([0., 0.])
    """
    values = {
        name: np.asarray(directions[name], dtype=np.float64)
        for name in ("ipos2t", "ineg2t", "tpos2i", "tneg2i")
    }
    both_ways = {"i2t": values["ipos2t"] * values["ineg2t"], "t2i": values["tpos2i"] * values["tneg2i"]}
    return {**both_ways, "group": both_ways["i2t"] * both_ways["t2i"], **values}


def margins(scores: Float[ndarray, "n 2 2"]) -> dict[str, Float[ndarray, "n"]]:
    """How far each question is from flipping: the smallest gap between a right and a wrong score.

    Positive where the strict measure of the same name is 1, zero at a tie, negative where it is wrong; in
    the unit of the scores.

    >>> margins(np.array([[[3.0, 1.0], [2.0, 5.0]]]))["group"]
    array([1.])
    """
    s00, s01, s10, s11 = scores[:, 0, 0], scores[:, 0, 1], scores[:, 1, 0], scores[:, 1, 1]
    return {
        "i2t": np.minimum(s00 - s10, s11 - s01),
        "t2i": np.minimum(s00 - s01, s11 - s10),
        "group": _diagonal(scores).min(axis=1) - _off_diagonal(scores).max(axis=1),
        "ipos2t": s00 - s10,
        "ineg2t": s11 - s01,
        "tpos2i": s00 - s01,
        "tneg2i": s11 - s10,
        # The same two sums that the measure compares: only then do the signs agree whatever the rounding.
        "group_match": (s00 + s11) - (s01 + s10),
    }


def tied(scores: Float[ndarray, "n 2 2"]) -> Bool[ndarray, "n"]:
    """Whether some true pair of the question scores exactly as high as some false one."""
    return any_tied(_diagonal(scores), _off_diagonal(scores))


def _diagonal(scores: Float[ndarray, "n 2 2"]) -> Float[ndarray, "n 2"]:
    return scores[:, [0, 1], [0, 1]]


def _off_diagonal(scores: Float[ndarray, "n 2 2"]) -> Float[ndarray, "n 2"]:
    return scores[:, [0, 1], [1, 0]]
