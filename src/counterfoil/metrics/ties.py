"""Tie policies.

A correct item that scores exactly as high as a wrong one is neither right nor wrong, and how it is
counted can be worth 100 points: two widely used harnesses give a scorer that returns a constant
100 % on SugarCrepe, because argmax breaks ties towards the correct caption. So the policy has a name:

* `strict` -- a tie is wrong (the default, and what BiVLC, Winoground and SugarCrepe do)
* `half` -- the expected value over random orders of the tied scores
* `optimistic` -- a tie is right
"""

from enum import StrEnum
from math import comb

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray


class Ties(StrEnum):
    """How a tie between a correct and a wrong item is counted."""

    STRICT = "strict"
    HALF = "half"
    OPTIMISTIC = "optimistic"


def all_above(
    right: Float[ndarray, "n m"], wrong: Float[ndarray, "n k"], *, ties: Ties
) -> Float[ndarray, "n"]:
    """Whether every right score is above every wrong one, per row.

    Returns values in [0, 1]: 1 where the lowest right score is above the highest wrong one, 0 where it is
    below. Where the two are equal, `strict` gives 0, `optimistic` 1, and `half` the chance that a random
    order of the tied scores puts the `a` tied right ones before the `b` tied wrong ones, `a! b! / (a + b)!`.

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
