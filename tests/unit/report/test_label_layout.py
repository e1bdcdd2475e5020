"""Labels beside points: none over another where there is room, none outside its frame."""

from itertools import combinations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from counterfoil.report.drawing import Box, place

FRAME = Box(0, 0, 400, 400)


def overlap(one: Box, other: Box) -> float:
    width = min(one.right, other.right) - max(one.left, other.left)
    height = min(one.top, other.top) - max(one.bottom, other.bottom)
    return max(width, 0) * max(height, 0)


def boxes(
    anchors: np.ndarray, sizes: list[tuple[float, float]], offsets: list[tuple[float, float]]
) -> list[Box]:
    return [
        Box(x + dx - w / 2, y + dy - h / 2, x + dx + w / 2, y + dy + h / 2)
        for (x, y), (w, h), (dx, dy) in zip(anchors, sizes, offsets, strict=True)
    ]


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 400), st.integers(0, 400)), min_size=1, max_size=9, unique=True),
    st.integers(20, 60),
)
def test_labels_overlap_neither_each_other_nor_points_nor_the_frame(
    points: list[tuple[int, int]], width: int
) -> None:
    anchors = np.asarray(points, dtype=np.float64)
    sizes = [(float(width), 8.0)] * len(points)
    offsets, _ = place(anchors, sizes, FRAME)
    placed = boxes(anchors, sizes, offsets)
    assert all(overlap(a, b) < 0.5 for a, b in combinations(placed, 2))
    assert all(8 * width - overlap(box, FRAME) < 0.5 for box in placed)
    for i, box in enumerate(placed):
        assert all(
            not (box.left < x < box.right and box.bottom < y < box.top) for x, y in np.delete(anchors, i, 0)
        )


def test_a_lone_label_stands_right_of_its_point_and_turns_at_the_edge() -> None:
    # Gap 6 and half of 20 to the right; at the right edge to the left instead.
    assert place(np.array([[200.0, 200.0]]), [(20.0, 8.0)], FRAME) == ([(16.0, 0.0)], [False])
    assert place(np.array([[395.0, 200.0]]), [(20.0, 8.0)], FRAME) == ([(-16.0, 0.0)], [False])


def test_what_is_to_be_avoided_is_left_free_where_that_is_cheap() -> None:
    anchors, sizes = np.array([[200.0, 200.0]]), [(40.0, 8.0)]
    whisker = Box(180, 199.5, 240, 200.5)
    offsets, _ = place(anchors, sizes, FRAME, avoid=[whisker])
    assert overlap(boxes(anchors, sizes, offsets)[0], whisker) == 0
