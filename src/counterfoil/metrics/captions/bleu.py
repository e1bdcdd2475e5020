"""BLEU of captions as the COCO tool kit computes it: n-grams up to 1, 2, 3, 4, per item and of a corpus."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from counterfoil.errors import InputError
from counterfoil.metrics.captions.ngrams import ORDERS, Load, load

#: Which length of reference a candidate is held against: the nearest (of two the shorter), the shortest, or
#: the mean of all.
Length = Literal["closest", "shortest", "average"]

# The tool kit's guards against division by zero; they keep a precision of 0 from making BLEU quite 0.
_SMALL, _TINY = 1e-9, 1e-15


@dataclass(frozen=True, eq=False)
class Bleu:
    """BLEU-1 to BLEU-4 of each item, (items, 4), and of all items as one corpus, (4,)."""

    items: Float[ndarray, "items 4"]
    corpus: Float[ndarray, "4"]


def bleu(
    candidates: Sequence[str], references: Sequence[Sequence[str]], *, length: Length = "closest"
) -> Bleu:
    """BLEU-1 to BLEU-4 of tokenised candidates, each against its references.

        BLEU-N = BP * (p_1 * ... * p_N)^(1/N),  BP = min(1, exp(1 - r/c))

    p_n is the share of the candidate's n-grams that a reference has too, an n-gram counting at most as often
    as in the reference that has it most; c and r are the lengths of the candidate and of its references, see
    `Length`. Of a corpus, n-grams and lengths are summed over items first. Values are from 0 to 1.

    As in the tool kit every p_n is (matches + 1e-15) / (n-grams + 1e-9), which makes a caption that equals
    its reference fall short of 1 by about 1e-9, and one without matches nearly but not quite 0. A candidate
    with fewer than N tokens has no n-gram for BLEU-N and gets next to nothing even when it is right. A
    candidate without tokens gets 0.

    Raises `InputError` as `ngrams.load` does. Source: K. Papineni et al., BLEU, 2002, section 2; the tool
    kit's `bleu_scorer.py`.

    >>> result = bleu(["a dog runs on grass"], [["a dog runs on the grass", "dogs run"]])
    >>> result.items.round(4).tolist()
    [[0.8187, 0.709, 0.6498, 0.5789]]
    """
    return of_load(load(candidates, references), length=length)


def of_load(load: Load, *, length: Length = "closest") -> Bleu:
    """`bleu` of captions whose n-grams are already counted, as for several metrics of one load."""
    sums = counted(load, length=length)
    return Bleu(items=of_sums(sums), corpus=of_sums(sums.sum(axis=0)))


def counted(load: Load, *, length: Length = "closest") -> Float[ndarray, "items 10"]:
    """What adds up to BLEU: of each item its matches and n-grams by order, and both lengths."""
    if length not in get_args(Length):
        raise InputError("unknown length of references", given=length, allowed=get_args(Length))
    own = load.grams.lengths[load.candidates]
    guesses = np.maximum(own[:, None] - np.arange(ORDERS), 0)
    lengths = np.stack([own, _held_against(load, length)], axis=1)
    return np.concatenate([_matches(load), guesses, lengths], axis=1).astype(np.float64)


def of_sums(sums: Float[ndarray, "... 10"]) -> Float[ndarray, "... 4"]:
    """BLEU-1 to BLEU-4 of sums of what `counted` counts."""
    matches, guesses = sums[..., :ORDERS], sums[..., ORDERS : 2 * ORDERS]
    own, held = sums[..., 2 * ORDERS], sums[..., 2 * ORDERS + 1]
    precisions = (matches + _TINY) / (guesses + _SMALL)
    means = np.cumprod(precisions, axis=-1) ** (1 / np.arange(1, ORDERS + 1))
    ratio = (own + _TINY) / (held + _SMALL)
    penalty = np.exp(np.minimum(1 - 1 / ratio, 0))
    return np.asarray(means * penalty[..., None])


def _matches(load: Load) -> Float[ndarray, "items 4"]:
    """How many of each candidate's n-grams are in a reference, none more often than there."""
    counts, empty = load.grams.counts, len(load.texts)
    found = np.empty((len(load), ORDERS))
    for block in load.blocks():
        starts, ends = load.starts[:-1][block], load.starts[1:][block]
        most = counts[load.references[starts]]
        for turn in range(1, int((ends - starts).max())):
            more = starts + turn < ends
            most = most.maximum(
                counts[np.where(more, load.references[np.minimum(starts + turn, ends - 1)], empty)]
            )
        found[block] = load.grams.by_order(counts[load.candidates[block]].minimum(most))
    return found


def _held_against(load: Load, length: Length) -> ndarray:
    """(items,) the length of the references."""
    lengths, starts = load.grams.lengths[load.references], load.starts[:-1]
    if length == "shortest":
        return np.asarray(np.minimum.reduceat(lengths, starts))
    if length == "average":
        return np.add.reduceat(lengths, starts) / np.diff(load.starts)
    # Nearest first, then shortest, as one number whose remainder is the length.
    scale = int(lengths.max()) + 1
    distance = np.abs(lengths - load.grams.lengths[load.against])
    return np.asarray(np.minimum.reduceat(distance * scale + lengths, starts) % scale)
