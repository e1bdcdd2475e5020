"""Measures of contrasts: a right set of scores against a wrong set, a value per question.

* **Quad**: `scores[q, i, j]` is the score of caption i with image j; caption i belongs to image i. Measures
  of Winoground (equations 1-3) under the names of BiVLC (appendix D): text score `i2t`, image score `t2i`.
* **Choice**: `scores[q, c]`, the first m of k candidates correct. SugarCrepe has k = 2, m = 1; ARO's order
  sets k = 5, m = 1; SugarCrepe++ k = 3, m = 2. Minus infinity stands behind the last candidate of questions
  with fewer: it beats and ties nothing.
* **Paraphrase**: three captions, the first two of one meaning. `scores[q]` are the similarities of captions 0
  and 1, 0 and 2, 1 and 2; the first is the right candidate (SugarCrepe++'s text-only task).
* **Preference**: `scores[q, c]` of two candidates, or `scores[q, c, d]` with one score per draw of
  references; `label[q]` is the preferred one. A value is the mean over draws.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import comb

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped
from numpy import ndarray
from numpy.typing import NDArray

from counterfoil.metrics.measures import Measure, by_name
from counterfoil.metrics.ties import Ties


def all_above(
    right: Float[ndarray, "n m"], wrong: Float[ndarray, "n k"], *, ties: Ties
) -> Float[ndarray, "n"]:
    """Whether every right score is above every wrong one, per row, in [0, 1].

    Where the lowest right score equals the highest wrong one, `strict` gives 0, `optimistic` 1, and `half`
    the chance that a random order puts the `a` tied right ones before the `b` tied wrong ones, `a! b! / (a +
    b)!`.

    >>> right, wrong = np.array([[2.0], [1.0]]), np.array([[1.0], [1.0]])
    >>> all_above(right, wrong, ties=Ties.STRICT)
    array([1., 0.])
    >>> all_above(right, wrong, ties=Ties.HALF)
    array([1. , 0.5])
    """
    lowest, highest = right.min(axis=1), wrong.max(axis=1)
    won = (lowest > highest).astype(np.float64)
    tied = lowest == highest
    if ties == Ties.STRICT or not tied.any():
        return won
    if ties == Ties.OPTIMISTIC:
        return won + tied
    level = highest[tied, None]
    a = (right[tied] == level).sum(axis=1)
    b = (wrong[tied] == level).sum(axis=1)
    sizes, of_row = np.unique(np.stack([a, b], axis=1), axis=0, return_inverse=True)
    worth = np.array([1 / comb(int(i + j), int(i)) for i, j in sizes])
    won[tied] = worth[of_row.reshape(-1)]
    return won


def any_tied(right: Float[ndarray, "n m"], wrong: Float[ndarray, "n k"]) -> Bool[ndarray, "n"]:
    """Whether some right score equals some wrong one, per row.

    >>> any_tied(np.array([[2.0, 3.0], [1.0, 2.0]]), np.array([[3.0], [0.0]]))
    array([ True, False])
    """
    return (right[:, :, None] == wrong[:, None, :]).any(axis=(1, 2))


#: The single directions of BiVLC, Table 3: the cells (caption, image) of the right pair and of the wrong one.
_DIRECTIONS = {
    "ipos2t": ((0, 0), (1, 0)),
    "ineg2t": ((1, 1), (0, 1)),
    "tpos2i": ((0, 0), (0, 1)),
    "tneg2i": ((1, 1), (1, 0)),
}


def _macro(form: str, chance: str, of: str = "accuracy", label: str = "Accuracy") -> Measure:
    """The mean of a measure over groups; in sentences only abbreviations keep their capitals."""
    word = label if label.isupper() else label.lower()
    meaning = f"{word} averaged over groups, each counting the same"
    return Measure(f"{of}_macro", form, f"{label} (macro)", meaning, chance, macro_of=of)


def _accuracy(
    form: str, chance: str, meaning: str, arithmetic: Callable[..., Float[ndarray, "n"]]
) -> tuple[Measure, Measure]:
    """The accuracy of a form, which is its main measure, and its mean over groups."""
    measure = Measure("accuracy", form, "Accuracy", meaning, chance, arithmetic, main=True)
    return measure, _macro(form, chance)


def picks(
    scores: Float[ndarray, "n 2 2"], *, direction: str, ties: Ties = Ties.STRICT
) -> Float[ndarray, "n"]:
    """Whether one image picks its caption, or one caption its image. Values in [0, 1], chance 1/2.

    `direction` is one of BiVLC's Table 3: `ipos2t` is image 0 picks its caption, s(C0, I0) > s(C1, I0).

    >>> picks(np.array([[[0.3, 0.2], [0.1, 0.4]]]), direction="ipos2t")
    array([1.])
    """
    right, wrong = _DIRECTIONS[direction]
    return all_above(scores[:, right[0], [right[1]]], scores[:, wrong[0], [wrong[1]]], ties=ties)


def i2t(scores: Float[ndarray, "n 2 2"], *, ties: Ties = Ties.STRICT) -> Float[ndarray, "n"]:
    """Both images pick their captions (Winoground's text score). Values in [0, 1], chance 1/4.

    Under `half` the product of both chances. Winoground equation 1, BiVLC equation 1.

    >>> i2t(np.array([[[0.3, 0.2], [0.1, 0.4]], [[0.3, 0.9], [0.1, 0.4]]]))
    array([1., 0.])
    """
    return picks(scores, direction="ipos2t", ties=ties) * picks(scores, direction="ineg2t", ties=ties)


def t2i(scores: Float[ndarray, "n 2 2"], *, ties: Ties = Ties.STRICT) -> Float[ndarray, "n"]:
    """Both captions pick their images (Winoground's image score). Values in [0, 1], chance 1/4.

    Winoground equation 2, BiVLC equation 2.
    """
    return picks(scores, direction="tpos2i", ties=ties) * picks(scores, direction="tneg2i", ties=ties)


def group(scores: Float[ndarray, "n 2 2"], *, ties: Ties = Ties.STRICT) -> Float[ndarray, "n"]:
    """Both directions right: each true pair scores above each false one. Values in [0, 1], chance 1/6.

    Chance, and `half` for a constant, is 2! 2! / 4!: the four comparisons share their scores. Winoground
    equation 3, BiVLC equation 3.

    >>> group(np.zeros((1, 2, 2)), ties=Ties.HALF)
    array([0.16666667])
    """
    return all_above(_diagonal(scores), _off_diagonal(scores), ties=ties)


def group_match(scores: Float[ndarray, "n 2 2"], *, ties: Ties = Ties.STRICT) -> Float[ndarray, "n"]:
    """The right matching has the larger sum: s00 + s11 > s01 + s10. Values in [0, 1], chance 1/2."""
    right = _diagonal(scores).sum(axis=1, keepdims=True)
    wrong = _off_diagonal(scores).sum(axis=1, keepdims=True)
    return all_above(right, wrong, ties=ties)


#: The measures of quads by name, in the order of reports; single directions under the names of BiVLC Table 3.
QUAD: Mapping[str, Measure] = by_name(
    *(
        Measure(name, "quad", label, meaning, chance, arithmetic, main=True)
        for name, label, chance, arithmetic, meaning in (
            ("i2t", "I2T", "1/4", i2t, "both images pick their own caption (Winoground's text score)"),
            ("t2i", "T2I", "1/4", t2i, "both captions pick their own image (Winoground's image score)"),
            ("group", "Group", "1/6", group, "both directions are right"),
        )
    ),
    *(
        Measure(name, "quad", label, f"the {picking} its {other}", "1/2", partial(picks, direction=name))
        for name, label, picking, other in (
            ("ipos2t", "Ipos2T", "first image picks", "caption"),
            ("ineg2t", "Ineg2T", "second image picks", "caption"),
            ("tpos2i", "Tpos2I", "first caption picks", "image"),
            ("tneg2i", "Tneg2I", "second caption picks", "image"),
        )
    ),
    Measure(
        *("group_match", "quad", "Group match"),
        "the right matching has the larger sum of scores: s00 + s11 > s01 + s10",
        *("1/2", group_match),
    ),
    _macro("quad", "1/4", "i2t", "I2T"),
    _macro("quad", "1/4", "t2i", "T2I"),
    _macro("quad", "1/6", "group", "Group"),
)


def from_directions(
    directions: Mapping[str, Bool[ndarray, "n"] | Float[ndarray, "n"]],
) -> dict[str, Float[ndarray, "n"]]:
    """All measures that follow from the four single outcomes, where there are no scores; no group match.

    `directions` maps `ipos2t`, `ineg2t`, `tpos2i`, `tneg2i`, or the two of one side, to outcomes per
    question, or to the share of right ones of several answers.

    >>> one = np.array([True, True])
    >>> from_directions({"ipos2t": one, "ineg2t": one, "tpos2i": one, "tneg2i": ~one})["group"]
    array([0., 0.])
    """
    values = {
        name: np.asarray(directions[name], dtype=np.float64) for name in _DIRECTIONS if name in directions
    }
    both_ways = {
        name: values[one] * values[other]
        for name, (one, other) in {"i2t": ("ipos2t", "ineg2t"), "t2i": ("tpos2i", "tneg2i")}.items()
        if one in values and other in values
    }
    group = {"group": both_ways["i2t"] * both_ways["t2i"]} if len(both_ways) == 2 else {}
    return {**both_ways, **group, **values}


def quad_margin(scores: Float[ndarray, "n 2 2"]) -> Float[ndarray, "n"]:
    """The smallest gap between a right and a wrong score, in the unit of the scores.

    >>> quad_margin(np.array([[[3.0, 1.0], [2.0, 5.0]]]))
    array([1.])
    """
    return _diagonal(scores).min(axis=1) - _off_diagonal(scores).max(axis=1)


def quad_tied(scores: Float[ndarray, "n 2 2"]) -> Bool[ndarray, "n"]:
    """Whether some true pair of the question scores exactly as high as some false one."""
    return any_tied(_diagonal(scores), _off_diagonal(scores))


def t2i_ties_to_second(scores: Float[ndarray, "n 2 2"]) -> Float[ndarray, "n"]:
    """`t2i` where equal scores choose the second image, as in the official code of MMVP-VLM.

    >>> t2i_ties_to_second(np.array([[[2.0, 1.0], [3.0, 3.0]], [[2.0, 2.0], [1.0, 3.0]]]))
    array([1., 0.])
    """
    first, second = scores[:, 0, 0] > scores[:, 0, 1], scores[:, 1, 1] >= scores[:, 1, 0]
    return (first & second).astype(np.float64)


def _diagonal(scores: Float[ndarray, "n 2 2"]) -> Float[ndarray, "n 2"]:
    return scores[:, [0, 1], [0, 1]]


def _off_diagonal(scores: Float[ndarray, "n 2 2"]) -> Float[ndarray, "n 2"]:
    return scores[:, [0, 1], [1, 0]]


def choice_accuracy(
    scores: Float[ndarray, "n k"], *, correct: int = 1, ties: Ties = Ties.STRICT
) -> Float[ndarray, "n"]:
    """Whether the first `correct` candidates all score above all the others, in [0, 1] per question.

    Chance is `m! (k - m)! / k!`, 1/2 for a pair. A tie is wrong under `strict`; under `half` it is worth its
    chance in a random order. Source: SugarCrepe's evaluation (strict).

    >>> choice_accuracy(np.array([[0.3, 0.1], [0.2, 0.2], [0.1, 0.5]]))
    array([1., 0., 0.])
    >>> choice_accuracy(np.array([[0.2, 0.2, 0.2, 0.2], [0.2, 0.2, -np.inf, -np.inf]]), ties=Ties.HALF)
    array([0.25, 0.5 ])
    """
    return all_above(scores[:, :correct], scores[:, correct:], ties=ties)


_PAIR = "both questions of a pair are right (What'sUp: opposite relations of two objects)"
_SET = "all four questions of a set are right (What'sUp: all relations of two objects)"
_Q_ACC = "a question is answered right about both images (NaturalBench)"
_I_ACC = "both questions are answered right about an image (NaturalBench)"
_G_ACC = "both questions are answered right about both images (NaturalBench)"
_OF_SEVERAL: tuple[tuple[str, str, str, tuple[str, int], str], ...] = (
    ("pairs", "Pairs", "1/k^2", ("pair", 2), _PAIR),
    ("sets", "Sets", "1/k^4", ("set", 4), _SET),
    ("q_acc", "Q_Acc", "1/k^2", ("same_question", 2), _Q_ACC),
    ("i_acc", "I_Acc", "1/k^2", ("same_image", 2), _I_ACC),
    ("g_acc", "G_Acc", "1/k^4", ("quartet", 4), _G_ACC),
)
#: The measures of choices by name; the last ones are of several questions each.
CHOICE: Mapping[str, Measure] = by_name(
    *_accuracy("choice", "m!(k-m)!/k!", "the right candidates score above all others", choice_accuracy),
    *(
        Measure(name, "choice", label, meaning, chance, choice_accuracy, within=within)
        for name, label, chance, within, meaning in _OF_SEVERAL
    ),
)

_ALIKE = "the two captions of one meaning are more alike than either is to the third"
#: The measures of paraphrases by name.
PARAPHRASE: Mapping[str, Measure] = by_name(*_accuracy("paraphrase", "1/3", _ALIKE, choice_accuracy))


def together(values: Float[ndarray, "n"], labels: Sequence[str], members: int) -> Float[ndarray, "n"]:
    """The product of the values of each question's group; 0 where it has not `members` questions, or none.

    Their mean is what the official code of What'sUp counts.

    >>> together(np.array([1.0, 1.0, 1.0, 0.0, 1.0]), ["a", "a", "b", "b", ""], 2)
    array([1., 1., 0., 0., 0.])
    """
    names, group, counts = np.unique(np.asarray(labels, dtype=str), return_inverse=True, return_counts=True)
    products = np.ones(len(names))
    np.multiply.at(products, group, values)
    products[(counts != members) | (names == "")] = 0.0
    return np.asarray(products[group])


def choice_margin(scores: Float[ndarray, "n k"], *, correct: int = 1) -> Float[ndarray, "n"]:
    """The lowest correct score less the highest wrong one, in the unit of the scores.

    >>> choice_margin(np.array([[3.0, 1.0, 2.5]]))
    array([0.5])
    """
    return scores[:, :correct].min(axis=1) - scores[:, correct:].max(axis=1)


def choice_tied(scores: Float[ndarray, "n k"], *, correct: int = 1) -> Bool[ndarray, "n"]:
    """Whether the tie policy decides the question: the lowest correct score equals the highest wrong one.

    >>> choice_tied(np.array([[0.2, 0.2, 0.1], [0.2, 0.2, 0.9]]))  # the second is lost under every policy
    array([ True, False])
    """
    return scores[:, :correct].min(axis=1) == scores[:, correct:].max(axis=1)


def preference_accuracy(
    scores: Shaped[ndarray, "n 2 *draws"], label: Int[ndarray, "n"], *, ties: Ties = Ties.STRICT
) -> Float[ndarray, "n"]:
    """How often the preferred candidate scores higher, in [0, 1] per question.

    A tie is wrong under `strict`, a half under `half`, right under `optimistic`. Source: PAC-S section 4.3
    (Pascal-50S: mean of five draws of references) and 4.4 (FOIL: strict).

    >>> preference_accuracy(np.array([[0.3, 0.1], [0.2, 0.2], [0.1, 0.5]]), np.array([0, 0, 1]))
    array([1., 0., 1.])
    >>> preference_accuracy(np.array([[[0.3, 0.3], [0.1, 0.3]]]), np.array([0]))  # a win and a tie
    array([0.5])
    """
    preferred, other = _sides(scores, label)
    draws = [all_above(a[:, None], b[:, None], ties=ties) for a, b in zip(preferred.T, other.T, strict=True)]
    return np.asarray(np.mean(draws, axis=0))


#: The measures of preferences by name.
PREFERENCE: Mapping[str, Measure] = by_name(
    *_accuracy("preference", "1/2", "the preferred caption scores above the other", preference_accuracy)
)


def preference_tied(scores: Shaped[ndarray, "n 2 *draws"], label: Int[ndarray, "n"]) -> Float[ndarray, "n"]:
    """The share of draws in which both candidates score the same, per question.

    >>> preference_tied(np.array([[0.3, 0.1], [0.2, 0.2]]), np.array([0, 0]))
    array([0., 1.])
    """
    preferred, other = _sides(scores, label)
    return np.asarray((preferred == other).mean(axis=1))


def ties_to_second(scores: Shaped[ndarray, "n 2 *draws"], label: Int[ndarray, "n"]) -> Float[ndarray, "n"]:
    """`preference_accuracy` where equal scores are votes for the second candidate, as in Polos' Pascal-50S.

    >>> ties_to_second(np.array([[0.2, 0.2], [0.2, 0.2]]), np.array([0, 1]))
    array([0., 1.])
    """
    both = scores.reshape(*scores.shape[:2], -1)
    second = both[:, 1] >= both[:, 0]
    return np.asarray((second == (label == 1)[:, None]).mean(axis=1))


def _sides(
    scores: NDArray[np.float64], label: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Scores of the preferred and of the other candidate, each (n, draws)."""
    both = scores.reshape(*scores.shape[:2], -1)
    rows = np.arange(len(both))
    return both[rows, label], both[rows, 1 - label]
