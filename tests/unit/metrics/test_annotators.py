"""Machine annotators: bias, coverage and pools, against ECCV Caption and against sets written out."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy import ndarray

from counterfoil.errors import InputError
from counterfoil.metrics.annotators import bias, by_size, pool, pool_yield, precision_recall, subsets
from counterfoil.metrics.ranks import Qrels
from refusals import refuses

# ECCV Caption Table E.1a, text-to-image recall at 1: a row per model (PVSE, VSRN, PCME, ViLT, CLIP), a column
# per annotator, the last column with all of them.
RECALL = np.array(
    [
        [76.5, 63.6, 67.6, 45.3, 42.0, 76.6],
        [68.0, 80.1, 69.0, 51.1, 47.2, 80.1],
        [67.7, 64.3, 77.3, 46.0, 44.1, 77.4],
        [59.5, 59.8, 58.8, 62.0, 49.3, 72.4],
        [51.7, 51.5, 52.6, 42.8, 49.3, 64.3],
    ]
)


def test_the_examples_of_equation_e6():
    result = bias(RECALL.T, np.vstack([np.eye(5), np.ones(5)]).astype(bool), RECALL[:, 5])
    assert [round(v[0], 1) for v in (result.total, result.own, result.others)] == [9.5, 0.1, 11.8]
    # By hand from the column of CLIP: differences 34.6, 32.9, 33.3, 23.1 and 15.0 to the last column.
    assert result.total[4] == pytest.approx((34.6 + 32.9 + 33.3 + 23.1 + 15.0) / 5)
    assert result.own[4] == pytest.approx(15.0)
    assert result.others[4] == pytest.approx((34.6 + 32.9 + 33.3 + 23.1) / 4)
    # With all annotators there is no bias by definition, and none is left among the others.
    assert result.total[5] == result.own[5] == 0
    assert np.isnan(result.others[5])


@given(st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_bias_is_the_mean_of_both_parts(n, seed):
    rng = np.random.default_rng(seed)
    members = subsets(n)
    assert len(members) == 2**n - 1
    assert (members.sum(axis=1)[1:] >= members.sum(axis=1)[:-1]).all()
    performance, reference = rng.random((len(members), n)), rng.random(n)
    result = bias(performance, members, reference)
    size = members.sum(axis=1)
    assert result.total == pytest.approx((size * result.own + (n - size) * np.nan_to_num(result.others)) / n)
    curve = by_size(result.total, members)
    assert list(curve) == list(range(1, n + 1))
    assert curve[1] == pytest.approx(np.abs(performance[:n] - reference).mean())
    assert curve[n] == pytest.approx(np.abs(performance[-1] - reference).mean())


@st.composite
def judgements(draw):
    items = st.sets(st.integers(0, 7))
    rows = draw(st.lists(st.tuples(items, items, items), min_size=1, max_size=5))
    return [(r, h, t & h) for r, h, t in rows]


@given(judgements())
def test_precision_and_recall_of_sets(rows):
    sets = [Qrels.of([sorted(row[i]) for row in rows]) for i in range(3)]
    precision, recall = precision_recall(*sets)
    for q, (r, h, t) in enumerate(rows):
        kept = r & h
        if kept:
            assert precision[q] == pytest.approx(len(kept & t) / len(kept))
        else:
            assert np.isnan(precision[q])
        if t:
            assert recall[q] == pytest.approx(1 - len(t - kept) / len(t))
        else:
            assert np.isnan(recall[q])


def test_judgements_that_do_not_fit_and_a_pool_without_models():
    one, two = Qrels.of([[1]]), Qrels.of([[1], [2]])
    refuses("given: 2, 1 and 1 queries", precision_recall, two, one, one, error=InputError)
    with pytest.raises(InputError, match="query 1: an accepted pair was never judged; given: item 2"):
        precision_recall(two, Qrels.of([[1], [3]]), two)
    # What the gallery does not hold was neither judged nor missed.
    precision, recall = precision_recall(Qrels.of([[0], [2, -1]]), two, two)
    assert np.isnan(precision[0])
    assert recall.tolist() == [0, 1]
    assert precision[1] == 1
    refuses("no model proposes", pool, [], error=InputError)


@given(st.integers(1, 4), st.integers(1, 3), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_a_pool_is_a_union_of_sets(models, n, k, seed):
    rng = np.random.default_rng(seed)
    tops = [np.stack([rng.permutation(6)[:k] for _ in range(n)]) for _ in range(models)]
    pooled = pool(tops)

    def handed_in(chosen, j):
        return {(q, int(i)) for m in chosen for q in range(n) for i in tops[m][q, :j]}

    pairs = list(zip(pooled.query.tolist(), pooled.item.tolist(), strict=True))
    assert pairs == sorted(handed_in(tuple(range(models)), k))
    for (q, item), places in zip(pairs, pooled.place.tolist(), strict=True):
        for top, place in zip(tops, places, strict=True):
            row: ndarray = top[q]
            assert (row[place - 1] == item) if place else (item not in row)
    curve = pool_yield(pooled, k)
    for m in range(1, models + 1):
        choices = list(combinations(range(models), m))
        for j in range(1, k + 1):
            assert curve[m - 1, j - 1] == pytest.approx(np.mean([len(handed_in(c, j)) for c in choices]))
    for members in subsets(models):
        by_members = (pooled.within(k) & members).any(axis=1)
        taken = [p for p, yes in zip(pairs, by_members, strict=True) if yes]
        assert taken == sorted(handed_in(tuple(np.flatnonzero(members).tolist()), k))
