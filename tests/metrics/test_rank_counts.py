"""Counts that add up over the parts of a gallery are the ranks of the whole."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterfoil.metrics import ranks as module
from counterfoil.metrics.ranks import Positives, distinct_pairs, from_counts, positive_ranks, tally


@st.composite
def scores_and_items(draw: st.DrawFn) -> tuple[list[list[int]], list[list[int]], list[list[int]]]:
    """Scores of few levels (queries x gallery), and two sets of positives, some absent."""
    n, gallery = draw(st.integers(1, 6)), draw(st.integers(1, 12))
    items = st.lists(st.integers(-1, gallery - 1), unique=True)
    row = st.lists(st.integers(0, 4), min_size=gallery, max_size=gallery)
    return tuple(draw(st.lists(kind, min_size=n, max_size=n)) for kind in (row, items, items))


@given(scores_and_items(), st.integers(1, 12), st.sampled_from([1, 5, 1 << 18]))
def test_parts_of_any_size_add_up_to_the_ranks_of_the_whole(
    task: tuple[list[list[int]], list[list[int]], list[list[int]]], size: int, at_once: int
) -> None:
    scores = np.array(task[0], dtype=np.float32)
    sets = [Positives.of(items) for items in task[1:]]
    gallery = scores.shape[1]
    query, item, places = distinct_pairs(sets, gallery)
    above, level = np.zeros(len(query), np.int64), np.zeros(len(query), np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_AT_ONCE", at_once)
        for lo in range(0, gallery, size):
            part = np.ascontiguousarray(scores.T[lo : lo + size])
            higher, equal = tally(part, query, scores[query, item])
            above, level = above + higher, level + equal
    for positives, at in zip(sets, places, strict=True):
        whole = positive_ranks(scores, positives)
        added = from_counts(positives, above[at], level[at], gallery=gallery)
        for name in ("query", "wrong", "tied", "before", "gains", "depth"):
            assert (getattr(added, name) == getattr(whole, name)).all()


def test_more_rows_than_a_byte_counts() -> None:
    scores = np.repeat([[0.0, 1.0], [1.0, 1.0]], [700, 300], axis=0)
    above, level = tally(scores, np.array([0, 0, 1]), np.array([0.0, 0.5, 1.0]))
    assert above.tolist() == [300, 300, 0]
    assert level.tolist() == [700, 0, 1000]
