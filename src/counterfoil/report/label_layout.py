"""Layout of labels beside their points without overlap. Pure geometry, no drawing."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Box(NamedTuple):
    """A rectangle: left, bottom, right, top."""

    left: float
    bottom: float
    right: float
    top: float


#: Room kept free around a point, and between a point and a label that touches nothing.
_POINT, _GAP = 4.5, 6.0
#: How far a label may move away, and the directions tried at each distance: right first, then left, up, down.
_DISTANCES = (0.0, 8.0, 16.0, 26.0, 38.0, 52.0, 70.0, 90.0)
_TURNS = (0, 8, 4, 12, 2, 14, 6, 10, 1, 15, 7, 9, 3, 13, 5, 11)
_SPOTS = np.repeat(_DISTANCES, len(_TURNS))
_DIRECTIONS = np.round(
    np.tile([(np.cos(turn * np.pi / 8), np.sin(turn * np.pi / 8)) for turn in _TURNS], (len(_DISTANCES), 1)),
    9,
)


def place(
    anchors: NDArray[np.float64],
    sizes: Sequence[tuple[float, float]],
    frame: Box,
    *,
    avoid: Sequence[Box] = (),
) -> tuple[list[tuple[float, float]], list[bool]]:
    """The centre of each label relative to its point, and whether it moved so far as to need a line.

    `anchors` are (n, 2) points and `sizes` the width and height of each label, all in one unit. Labels are
    placed greedily, the most crowded point first, at the nearest spot that overlaps neither a point nor a
    label already placed and lies within `frame`; where there is none, at the one that overlaps least.
    What is in `avoid` (whiskers, a line's own label) is covered only where moving away would cost more.

    >>> offsets, far = place(np.array([[50.0, 50.0]]), [(20.0, 8.0)], Box(0, 0, 100, 100))
    >>> offsets, far
    ([(16.0, 0.0)], [False])
    """
    points = np.column_stack([anchors - _POINT, anchors + _POINT])
    soft = np.asarray(avoid, dtype=np.float64).reshape(-1, 4)
    spread = np.linalg.norm(anchors[:, None] - anchors[None], axis=2)
    crowded = np.argsort(-(spread < 40).sum(axis=1), kind="stable")
    taken = np.zeros((0, 4))
    offsets: list[tuple[float, float]] = [(0.0, 0.0)] * len(anchors)
    far = [False] * len(anchors)
    for i in crowded:
        half = np.asarray(sizes[i], dtype=np.float64) / 2
        # (spots, 2) centres: the near edge of the label is the gap and the distance away from the point.
        steps = _DIRECTIONS * (_SPOTS[:, None] + _GAP + half)
        boxes = np.column_stack([anchors[i] + steps - half, anchors[i] + steps + half])
        hard = np.vstack([np.delete(points, i, axis=0), taken])
        beyond = 4 * half.prod() - _covered(boxes, np.asarray([frame], dtype=np.float64))
        cost = 10 * (_covered(boxes, hard) + beyond) + 0.15 * _covered(boxes, soft) + 0.4 * _SPOTS
        # The first of equals, and what differs by rounding alone is equal.
        best = int(np.flatnonzero(cost <= cost.min() + 1e-9)[0])
        taken = np.vstack([taken, boxes[best]])
        offsets[i] = (round(float(steps[best, 0]), 2), round(float(steps[best, 1]), 2))
        far[i] = bool(_SPOTS[best] > 8)
    return offsets, far


def _covered(boxes: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.float64]:
    """How much of each box the others cover, summed over them."""
    near = np.maximum(boxes[:, None, :2], others[None, :, :2])
    away = np.minimum(boxes[:, None, 2:], others[None, :, 2:])
    return np.maximum(away - near, 0).prod(axis=2).sum(axis=1)
