"""Ranks of positives: counted two ways, from lists, in blocks, in parts of a gallery."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from counterfoil.errors import InputError, ScoreError
from counterfoil.metrics import ranks as module
from counterfoil.metrics.ranks import Qrels, distinct_pairs, from_counts, join, positive_ranks, tally
from listed_ranks import list_ranks
from refusals import refuses


@st.composite
def tasks(draw):
    """Few levels of scores, so that ties abound; any positives, absent ones among them."""
    n, gallery = draw(st.integers(1, 5)), draw(st.integers(1, 12))
    levels = st.lists(st.integers(0, 4), min_size=gallery, max_size=gallery)
    scores = np.array([draw(levels) for _ in range(n)], dtype=draw(st.sampled_from([float, np.float32, int])))
    items = [draw(st.lists(st.integers(0, gallery - 1), unique=True)) for _ in range(n)]
    items = [[*row, *([-1] * draw(st.integers(0, 2)))] for row in items]
    return scores, items, [[draw(st.sampled_from([0.5, 1.0])) for _ in row] for row in items]


def made(task):
    scores, items, gains = task
    return scores, Qrels.of(items, gains)


def entries(ranks):
    """What is known of each positive, in an order of its own."""
    columns = (ranks.query, ranks.wrong, ranks.tied, ranks.before, ranks.gains)
    return sorted(zip(*(c.tolist() for c in columns), strict=True))


def by_hand(scores, positives):
    """The same, item by item from the meaning of the words."""
    result = []
    for q, row in enumerate(scores.tolist()):
        part = slice(positives.starts[q], positives.starts[q + 1])
        own = [i for i in positives.items[part].tolist() if i >= 0]
        others = [s for i, s in enumerate(row) if i not in own]
        for item, gain in zip(positives.items[part].tolist(), positives.gains[part].tolist(), strict=True):
            if item >= 0:
                wrong, tied = sum(s > row[item] for s in others), sum(s == row[item] for s in others)
                result.append((q, wrong, tied, sum(row[i] > row[item] for i in own), gain))
    return sorted(result)


@pytest.mark.parametrize("sort_from", [100, 3, 1])
@given(tasks())
def test_all_ways_of_counting_count_the_same(sort_from, task):
    scores, positives = made(task)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_SORT_FROM", sort_from)
        ranks = positive_ranks(scores, positives)
        transposed = positive_ranks(np.asfortranarray(scores), positives)
    assert entries(ranks) == entries(transposed) == by_hand(scores, positives)
    assert not ranks.cut.any()
    order = np.lexsort((ranks.before, ranks.query))
    assert (order == np.arange(len(order))).all()


@given(tasks(), st.integers(1, 5))
def test_blocks_of_any_size_are_the_whole(task, size):
    scores, positives = made(task)
    parts = [
        positive_ranks(scores[lo : lo + size], positives.take(slice(lo, lo + size)))
        for lo in range(0, len(scores), size)
    ]
    joined, whole = join(parts), positive_ranks(scores, positives)
    for name in ("query", "wrong", "tied", "before", "gains", "depth"):
        assert (getattr(joined, name) == getattr(whole, name)).all()
    for name in ("starts", "items", "gains"):
        assert (getattr(joined.positives, name) == getattr(positives, name)).all()
    assert joined.gallery == whole.gallery


@given(tasks(), st.integers(0, 2**32 - 1))
def test_lists_are_scores_without_ties(task, seed):
    scores, positives = made(task)
    rng = np.random.default_rng(seed)
    gallery = scores.shape[1]
    lists = [rng.permutation(gallery) for _ in scores]
    untied = np.stack([-np.argsort(ranking) for ranking in lists])
    full = list_ranks(lists, positives, gallery=gallery)
    assert entries(full) == by_hand(untied, positives)
    assert not full.cut.any()
    length = int(rng.integers(0, gallery + 1))
    cut = list_ranks([ranking[:length] for ranking in lists], positives, gallery=gallery)
    kept = [e for e in by_hand(untied, positives) if e[1] + e[3] < length]
    assert entries(cut) == kept
    lost = np.bincount([q for q, *_ in by_hand(untied, positives)], minlength=len(scores))
    lost -= np.bincount([q for q, *_ in kept], minlength=len(scores))
    assert (cut.cut == (lost > 0)).all()


def test_infinite_scores_are_in_order_and_what_is_nan_or_does_not_fit_is_named():
    scores = np.array([[np.inf, 0.0, -np.inf], [1.0, 2.0, 3.0]])
    assert positive_ranks(scores, Qrels.of([[1, 2], [0]])).wrong.tolist() == [1, 1, 2]
    scores[1, 2] = np.nan
    with pytest.raises(ScoreError, match=r"query 1, item 2: a score is not a number; given: NaN"):
        positive_ranks(scores, Qrels.of([[1, 2], [0]]))
    positives = Qrels.of([[0, 3]])
    with pytest.raises(ScoreError, match="1 queries x 3 items; allowed: 1 queries, more than 3 items"):
        positive_ranks(np.zeros((1, 3)), positives)
    refuses("given: 2 queries", positive_ranks, np.zeros((2, 4)), positives, error=ScoreError)


def test_absent_positives_are_counted():
    positives = Qrels.of([[0, -1, -1], [], [-1]])
    assert (positives.absent.tolist(), positives.counts.tolist()) == ([2, 0, 1], [3, 0, 1])
    assert positives.defined.tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("items", "gains", "message"),
    [
        ([[0], [2, 1, 2]], None, "query 1: a positive is listed twice; given: 2"),
        ([[-2]], None, "a positive is no column; given: -2"),
        ([[1, 2]], [[1.0, 0.0]], "a positive's gain is out of range; given: 0.0"),
        ([[1]], [[float("nan")]], "a positive's gain is out of range; given: nan"),
        ([[1, 2]], [[1.0]], "items and gains of positives do not go together"),
    ],
)
def test_positives_that_cannot_be(items, gains, message):
    refuses(message, Qrels.of, items, gains, error=InputError)


@st.composite
def scores_and_items(draw):
    """Scores of few levels (queries x gallery), and two sets of positives, some absent."""
    n, gallery = draw(st.integers(1, 6)), draw(st.integers(1, 12))
    items = st.lists(st.integers(-1, gallery - 1), unique=True)
    row = st.lists(st.integers(0, 4), min_size=gallery, max_size=gallery)
    return tuple(draw(st.lists(kind, min_size=n, max_size=n)) for kind in (row, items, items))


@given(scores_and_items(), st.integers(1, 12), st.sampled_from([1, 5, 1 << 18]))
def test_parts_of_any_size_add_up_to_the_ranks_of_the_whole(task, size, at_once):
    scores = np.array(task[0], dtype=np.float32)
    sets = [Qrels.of(items) for items in task[1:]]
    gallery = scores.shape[1]
    query, item, places = distinct_pairs(sets, gallery)
    above, level = np.zeros(len(query), np.int64), np.zeros(len(query), np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_COUNTED_AT_ONCE", at_once)
        for lo in range(0, gallery, size):
            higher, equal = tally(np.ascontiguousarray(scores.T[lo : lo + size]), query, scores[query, item])
            above, level = above + higher, level + equal
    for positives, at in zip(sets, places, strict=True):
        whole = positive_ranks(scores, positives)
        added = from_counts(positives, above[at], level[at], gallery=gallery)
        for name in ("query", "wrong", "tied", "before", "gains", "depth"):
            assert (getattr(added, name) == getattr(whole, name)).all()


def test_more_rows_than_a_byte_counts():
    scores = np.repeat([[0.0, 1.0], [1.0, 1.0]], [700, 300], axis=0)
    above, level = tally(scores, np.array([0, 0, 1]), np.array([0.0, 0.5, 1.0]))
    assert above.tolist() == [300, 300, 0]
    assert level.tolist() == [700, 0, 1000]
