"""Heatmaps as arrays: the attention of a transformer, and the alignment of words with patches."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from numpy import ndarray

#: The whole picture, as (left, top, right, bottom) in parts of its sides.
WHOLE = (0.0, 0.0, 1.0, 1.0)

Box = tuple[float, float, float, float]


def rollout(layers: Sequence[Float[ndarray, "heads tokens tokens"]]) -> Float[ndarray, "tokens tokens"]:
    """How much each token of the last layer takes from each token of the input; rows sum to 1.

    Per layer the heads are averaged, and half of it is the token itself, since a residual adds it; the layers
    are then multiplied.

    Source: Abnar and Zuidema, ACL 2020, equation 1 ("attention rollout").

    >>> one = np.array([[[0.5, 0.5], [0.0, 1.0]]])
    >>> rollout([one])
    array([[0.75, 0.25],
           [0.  , 1.  ]])
    """
    flow = np.eye(layers[0].shape[-1])
    for layer in layers:
        mean = np.asarray(layer, dtype=np.float64).mean(axis=0)
        mixed = mean + np.eye(len(mean))
        flow = mixed / mixed.sum(axis=1, keepdims=True) @ flow
    return flow


def transport(cost: Float[ndarray, "n m"], *, steps: int = 50) -> Float[ndarray, "n m"]:
    """The plan that carries equal weights of n words to equal weights of m patches at little cost.

    The inexact proximal point method (IPOT, Xie et al., UAI 2019, algorithm 1) from the plan of equal parts,
    `steps` of it with one rescaling each and a beta of 0.5, as UNITER and ViLT align words and regions (in 50
    steps). With more steps the plan comes as near to the optimal one as one likes. Rows sum to 1 / n to
    rounding after the last rescaling only in the limit, columns to 1 / m exactly.

    >>> transport(np.array([[0.0, 1.0], [1.0, 0.0]])).round(6)
    array([[0.5, 0. ],
           [0. , 0.5]])
    """
    n, m = cost.shape
    kernel = np.exp(-(np.asarray(cost, dtype=np.float64) - cost.min()) / 0.5)
    plan, column = np.ones((n, m)), np.full(m, 1 / m)
    for _ in range(steps):
        scaled = kernel * plan
        row = 1 / (n * (scaled @ column))
        column = 1 / (m * (row @ scaled))
        plan = row[:, None] * scaled * column
    return plan


def cosine_cost(
    words: Float[ndarray, "n width"], patches: Float[ndarray, "m width"]
) -> Float[ndarray, "n m"]:
    """1 less the cosine of each word with each patch, in [0, 2].

    >>> cosine_cost(np.array([[2.0, 0.0]]), np.array([[1.0, 0.0], [0.0, 3.0], [-1.0, 0.0]]))
    array([[0., 1., 2.]])
    """
    one, other = (
        side.astype(np.float64) / np.linalg.norm(side.astype(np.float64), axis=1, keepdims=True)
        for side in (words, patches)
    )
    return 1 - one @ other.T
