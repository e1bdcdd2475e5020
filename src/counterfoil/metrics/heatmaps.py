"""Heatmaps as arrays: upsampling, measures against the true place of a thing, and attention.

A heatmap is a grid of numbers over a picture, higher where something matters more. It is graded against the
mask of the thing that it should point at: does its highest pixel lie there (the pointing game, Zhang et al.,
IJCV 2018), and how far do its highest pixels, as many as the mask has, overlap with it (IoU)? Both have a
chance level in closed form, which the mask's share of the picture decides.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

#: The whole picture, as (left, top, right, bottom) in parts of its sides.
WHOLE = (0.0, 0.0, 1.0, 1.0)

Box = tuple[float, float, float, float]


def upsampled(
    heat: Float[ndarray, "rows columns"], height: int, width: int, *, box: Box = WHOLE
) -> Float[ndarray, "height width"]:
    """The heatmap at every pixel: linear between the middles of neighbouring cells, constant beyond them.

    `box` is the part of the picture that the grid covers; pixels outside of it have the lowest heat, since
    nothing there was looked at. Cells of equal heat give equal pixels, to the last bit.

    >>> upsampled(np.array([[0.0, 1.0]]), 1, 4)
    array([[0.  , 0.25, 0.75, 1.  ]])
    >>> upsampled(np.array([[0.0, 1.0]]), 1, 4, box=(0.0, 0.0, 0.5, 1.0))
    array([[0., 1., 0., 0.]])
    """
    left, top, right, bottom = box
    rows, in_rows = _between(heat.shape[0], height, top, bottom)
    columns, in_columns = _between(heat.shape[1], width, left, right)
    tall = _mixed(heat, rows)
    pixels = _mixed(tall.T, columns).T
    return np.where(in_rows[:, None] & in_columns, pixels, heat.min())


def pointing_game(heat: Float[ndarray, "height width"], mask: Bool[ndarray, "height width"]) -> float:
    """Whether the highest pixel lies in the mask: 1 or 0; of several equal ones the share that does.

    A constant heatmap gets the mask's share of the picture, which is chance (`pointing_chance`).

    Source: Zhang et al. 2018, "Top-down neural attention by excitation backprop", section 4.2, without its
    tolerance of 15 pixels.

    >>> mask = np.array([[True, False], [False, False]])
    >>> pointing_game(np.array([[3.0, 1.0], [2.0, 0.0]]), mask), pointing_game(np.zeros((2, 2)), mask)
    (1.0, 0.25)
    """
    return float(mask[heat == heat.max()].mean())


def area_iou(heat: Float[ndarray, "height width"], mask: Bool[ndarray, "height width"]) -> float:
    """Intersection over union of the mask and as many of the highest pixels as the mask has, in [0, 1].

    Of pixels that tie for the last places each counts as the share of places that are left for them, so that
    a constant heatmap gets `iou_chance`. NaN for an empty mask.

    >>> mask = np.array([[True, True], [False, False]])
    >>> area_iou(np.array([[3.0, 1.0], [2.0, 0.0]]), mask), area_iou(np.zeros((2, 2)), mask)
    (0.3333333333333333, 0.3333333333333333)
    """
    area = int(mask.sum())
    if area == 0:
        return float("nan")
    last = np.partition(heat, heat.size - area, axis=None)[heat.size - area]
    above, level = heat > last, heat == last
    common = mask[above].sum() + (area - above.sum()) * mask[level].mean()
    return float(common / (2 * area - common))


def pointing_chance(mask: Bool[ndarray, "height width"]) -> float:
    """The pointing game of a random point: the mask's share of the picture."""
    return float(mask.mean())


def iou_chance(mask: Bool[ndarray, "height width"]) -> float:
    """`area_iou` of pixels drawn at random, in expectation of their intersection: share / (2 - share).

    >>> iou_chance(np.array([[True, False]]))
    0.3333333333333333
    """
    share = float(mask.mean())
    return share / (2 - share)


def _between(cells: int, pixels: int, start: float, stop: float) -> tuple[ndarray, ndarray]:
    """(pixels,) places along the middles of cells, 0 to cells - 1, and which pixels are in the box."""
    part = ((np.arange(pixels) + 0.5) / pixels - start) / (stop - start)
    return np.clip(part * cells - 0.5, 0, cells - 1), (part >= 0) & (part <= 1)


def _mixed(values: ndarray, places: ndarray) -> ndarray:
    """Rows of `values` at places between them."""
    first = np.minimum(places.astype(int), len(values) - 1)
    second = np.minimum(first + 1, len(values) - 1)
    # Written so that equal rows stay equal.
    return values[first] + (places - first)[:, None] * (values[second] - values[first])


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
