"""Heatmaps as arrays: the attention of a transformer."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from numpy import ndarray

#: The whole picture, as (left, top, right, bottom) in parts of its sides.
WHOLE = (0.0, 0.0, 1.0, 1.0)

Box = tuple[float, float, float, float]


def rollout(layers: Sequence[Float[ndarray, "heads tokens tokens"]]) -> Float[ndarray, "tokens tokens"]:
    """How much each token of the last layer takes from each token of the input; rows sum to 1.

    Heads of a layer are averaged and mixed half and half with the token itself; layers are multiplied.
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
