"""Ids to positions and pairs to searches, against dictionaries."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterfoil.benchmarks.readers.questions import IdPositions, own, search
from refusals import refuses

IDS = st.lists(st.integers(0, 50), max_size=20)


@given(st.lists(st.integers(0, 50), unique=True, max_size=20), IDS)
def test_places_are_those_of_a_dictionary(ids, asked):
    place = {each: at for at, each in enumerate(ids)}
    found = IdPositions(np.array(ids, dtype=np.int64), "image", "x").of(np.array(asked, dtype=np.int64))
    assert found.tolist() == [place.get(each, -1) for each in asked]


def test_an_id_twice():
    refuses("x: image id occurs twice; given: 7", IdPositions, np.array([7, 3, 7]), "image", "x")


@given(st.lists(st.integers(-1, 4), min_size=1, max_size=20))
def test_own_pairs(owners):
    i2t, t2i = own(np.array(owners, dtype=np.int64), 5)
    for search_, right in (
        (i2t, [[c for c, owner in enumerate(owners) if owner == image] for image in range(5)]),
        (t2i, [[owner] if owner >= 0 else [] for owner in owners]),
    ):
        starts, items = search_.positives.starts, search_.positives.items
        assert [items[a:b].tolist() for a, b in pairwise(starts.tolist())] == right
        assert len(search_) == len(right)


PAIRS = st.sets(st.tuples(st.integers(0, 3), st.integers(0, 6)), min_size=1)


@given(PAIRS, st.randoms(use_true_random=False))
def test_pairs_in_any_order(pairs, random):
    """Gains go with their pairs; the queries of some rows keep theirs."""
    listed = list(pairs)
    random.shuffle(listed)
    query, item = (np.array(each, dtype=np.int64) for each in zip(*listed, strict=True))
    gains = (query * 7 + item + 1) / 100
    queries = np.array([9, 8, 5, 2])
    found = search(queries, (query, item), gains, names="abcd", where="x")
    rows = np.repeat(np.arange(4), found.positives.counts)
    assert list(zip(rows.tolist(), found.positives.items.tolist(), strict=True)) == sorted(pairs)
    np.testing.assert_array_equal(found.positives.gains, (rows * 7 + found.positives.items + 1) / 100)
    last = found.take(np.array([3]))
    assert last.queries.tolist() == [2]
    assert last.positives.items.tolist() == sorted(i for q, i in pairs if q == 3)


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([], "x: no query has a right answer"),
        ([(1, 4), (0, 2), (1, 4)], "x, query 'b': a right answer is listed twice"),
        ([(0, 2), (1, -1)], "x, query 'b': the gallery holds none of a query's right answers"),
        ([(0, -1), (0, -1), (1, -1)], "x, query 'a': 2 queries have right answers, none of which is in"),
    ],
)
def test_pairs_that_make_no_search(pairs, message):
    columns = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    refuses(message, search, np.array([0, 1]), (columns[0], columns[1]), names="ab", where="x")
    # Two that are absent are two, not one listed twice.
    kept = search(np.array([0]), (np.zeros(3, np.int64), np.array([-1, 3, -1])), names="a", where="x")
    assert kept.positives.absent.tolist() == [2]
