"""Where labels go beside their points, so that none lies over another. Pure geometry, no drawing."""

from collections.abc import Sequence
from math import cos, pi, sin
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Box(NamedTuple):
    """A rectangle: left, bottom, right, top."""

    left: float
    bottom: float
    right: float
    top: float

    def overlap(self, other: "Box") -> float:
        """The area both cover.

        >>> Box(0, 0, 2, 2).overlap(Box(1, 1, 5, 5)), Box(0, 0, 1, 1).overlap(Box(2, 2, 3, 3))
        (1, 0)
        """
        width = min(self.right, other.right) - max(self.left, other.left)
        height = min(self.top, other.top) - max(self.bottom, other.bottom)
        return width * height if width > 0 and height > 0 else 0

    def outside(self, frame: "Box") -> float:
        """The area that lies beyond `frame`."""
        return (self.right - self.left) * (self.top - self.bottom) - self.overlap(frame)


#: Room kept free around a point, and between a point and a label that touches nothing.
_POINT, _GAP = 4.5, 6.0
#: How far a label may move away, and the directions tried at each distance: right first, then left, up, down.
_DISTANCES = (0.0, 8.0, 16.0, 26.0, 38.0, 52.0, 70.0, 90.0)
_TURNS = (0, 8, 4, 12, 2, 14, 6, 10, 1, 15, 7, 9, 3, 13, 5, 11)


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
    points = [Box(x - _POINT, y - _POINT, x + _POINT, y + _POINT) for x, y in anchors]
    spread = np.linalg.norm(anchors[:, None] - anchors[None], axis=2)
    crowded = np.argsort(-(spread < 40).sum(axis=1), kind="stable")
    taken: list[Box] = []
    offsets: list[tuple[float, float]] = [(0.0, 0.0)] * len(anchors)
    far = [False] * len(anchors)
    for i in crowded:
        (x, y), (width, height) = anchors[i], sizes[i]
        best: tuple[float, tuple[float, float], float, Box] | None = None
        for distance in _DISTANCES:
            for turn in _TURNS:
                dx, dy = _offset(turn * pi / 8, distance + _GAP, width, height)
                box = Box(x + dx - width / 2, y + dy - height / 2, x + dx + width / 2, y + dy + height / 2)
                others = [point for j, point in enumerate(points) if j != i]
                hard = sum(box.overlap(other) for other in others + taken) + box.outside(frame)
                soft = sum(box.overlap(other) for other in avoid)
                cost = 10 * hard + 0.15 * soft + 0.4 * distance
                if best is None or cost < best[0] - 1e-9:
                    best = (cost, (dx, dy), distance, box)
        assert best is not None
        taken.append(best[3])
        offsets[i] = (round(best[1][0], 2), round(best[1][1], 2))
        far[i] = best[2] > 8
    return offsets, far


def _offset(angle: float, gap: float, width: float, height: float) -> tuple[float, float]:
    """The centre of a label whose near edge is `gap` away from the point in the direction `angle`."""
    c, s = cos(angle), sin(angle)
    return c * (gap + width / 2) if abs(c) > 1e-9 else 0.0, s * (gap + height / 2) if abs(s) > 1e-9 else 0.0
