"""The outlines of the shapes, as polygons around (0, 0) that look equally large; y runs down."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.float64]


def _ring(
    corners: int, *, radius: float = 1.0, start: float = -90.0, at: tuple[float, float] = (0, 0)
) -> Points:
    """The corners of a regular polygon, the first at `start` degrees (-90 is up)."""
    angles = np.deg2rad(start + 360.0 / corners * np.arange(corners))
    return radius * np.stack([np.cos(angles), np.sin(angles)], axis=1) + np.asarray(at)


def _moved(points: Points, *, right: float = 0.0, down: float = 0.0) -> Points:
    return points + np.array([right, down])


def _star() -> Points:
    outer, inner = _ring(5, radius=1.15), _ring(5, radius=0.56, start=-54.0)
    return _moved(np.stack([outer, inner], axis=1).reshape(10, 2), down=0.06)


def _heart() -> Points:
    t = np.linspace(0, 2 * np.pi, 96, endpoint=False)
    x = 16 * np.sin(t) ** 3
    y = -(13 * np.cos(t) - 5 * np.cos(2 * t) - 2 * np.cos(3 * t) - np.cos(4 * t))
    return np.stack([x, y - 2.5], axis=1) / 16.5


def _moon() -> Points:
    """A crescent open to the right: an outer arc there and an inner one back."""
    outer = np.deg2rad(np.linspace(-52, -308, 64))
    inner = np.deg2rad(np.linspace(-263, -97, 64))
    far = np.stack([np.cos(outer), np.sin(outer)], axis=1)
    near = _moved(0.795 * np.stack([np.cos(inner), np.sin(inner)], axis=1), right=0.713)
    return _moved(np.concatenate([far, near]), right=0.22) * 1.1


def _flower() -> list[Points]:
    petals = [_ring(40, radius=0.43, at=(float(x), float(y))) for x, y in _ring(5, radius=0.62)]
    return [*petals, _ring(40, radius=0.5)]


#: The polygons whose union is the shape.
OUTLINES: Mapping[str, tuple[Points, ...]] = {
    "circle": (_ring(72, radius=0.93),),
    "square": (_ring(4, radius=1.16, start=45.0),),
    "triangle": (_moved(_ring(3, radius=1.18), down=0.2),),
    "star": (_star(),),
    "heart": (_heart(),),
    "diamond": (_ring(4, radius=1.12) * [0.76, 1.03],),
    "moon": (_moon(),),
    "flower": tuple(_flower()),
    "ring": (_ring(96, radius=1.06),),
    "box": (_ring(4, radius=1.0 * 2**0.5, start=45.0),),
}

#: What is cut out of the containers again: a small thing fits in with clear air on all sides.
HOLES: Mapping[str, Points] = {
    "ring": _ring(96, radius=0.86),
    "box": _ring(4, radius=0.8 * 2**0.5, start=45.0),
}
