"""Intervals against slow twins, printed values, and the edges where formulas break."""

import os
import random
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.special import stdtr, stdtrit

from counterfoil.errors import InputError
from counterfoil.stats.dependence import Dependence
from counterfoil.stats.intervals import (
    cluster_interval,
    differences,
    macro_weights,
    spread,
    t_over_folds,
    tango_score,
    wilson,
    wilson_score,
)
from paired_columns import difference_interval
from refusals import refuses


def example(n=60, m=3, n_clusters=15, seed=0):
    """Values with ties in them and clusters of unequal sizes, every cluster in use."""
    rng = np.random.default_rng(seed)
    clusters = np.concatenate([np.arange(n_clusters), rng.integers(0, n_clusters, n - n_clusters)])
    leaning = rng.random((n_clusters, 1))[clusters]
    values = (rng.random((n, m)) < leaning).astype(np.float64)
    values[rng.random((n, m)) < 0.1] = 1 / 6
    return values, clusters


def by_the_matrices(values, clusters, weights, groups):
    """The slow twin: CR2 and its degrees of freedom as Bell and McCaffrey write them, with all matrices.

    The regression is on indicators of the groups, and the estimate the weighted sum of their coefficients.
    """
    x = (groups[:, None] == np.unique(groups)).astype(float)
    hat = x @ np.linalg.inv(x.T @ x) @ x.T
    residuals, variance, vectors = (np.eye(len(x)) - hat) @ values, np.zeros(values.shape[1]), []
    for cluster in np.unique(clusters):
        rows = np.flatnonzero(clusters == cluster)
        root, basis = np.linalg.eigh(np.eye(len(rows)) - hat[np.ix_(rows, rows)])
        inverse = np.where(root > 1e-9, 1 / np.sqrt(np.maximum(root, 1e-9)), 0.0)
        one = np.zeros(len(x))
        one[rows] = basis @ np.diag(inverse) @ basis.T @ weights[rows]
        variance += (one @ residuals) ** 2
        vectors.append((np.eye(len(x)) - hat) @ one)
    gram = np.array(vectors) @ np.array(vectors).T
    return variance, float(np.trace(gram) ** 2 / (gram**2).sum())


# ---------------------------------------------------------------------------------------------- Wilson


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [
        # z**2 = 3.841459; 0 of n: (0, z**2 / (n + z**2)); n of n: (n / (n + z**2), 1).
        (0, 10, 0.0, 3.841459 / 13.841459),
        (10, 10, 10 / 13.841459, 1.0),
        # Half: centre 1/2, half width sqrt(z**2 / (n + z**2)) / 2.
        (5, 10, 0.5 - (3.841459 / 13.841459) ** 0.5 / 2, 0.5 + (3.841459 / 13.841459) ** 0.5 / 2),
        # Newcombe 1998, table I, method 3: 81 of 263 and 15 of 148.
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
    ],
)
def test_wilson_by_hand_and_as_published(successes, n, low, high):
    assert wilson(successes, n) == pytest.approx((low, high), abs=5e-5)


def test_wilson_takes_half_points():
    low, high = wilson(7.5, 10)
    assert wilson(7, 10)[0] < low < wilson(8, 10)[0] < 0.75 < high


@pytest.mark.parametrize(("successes", "n"), [(0, 0), (-1, 5), (6, 5), (float("nan"), 5)])
def test_wilson_refuses_what_is_no_proportion(successes, n):
    refuses("no proportion", wilson, successes, n, error=InputError)


# ----------------------------------------------------------------------------------- clustered intervals


def test_a_cluster_interval_equals_a_slow_twin():
    values, clusters = example()
    low, high = cluster_interval(values, clusters)
    p = values.mean(axis=0)
    variance, freedom = by_the_matrices(values, clusters, np.full(60, 1 / 60), np.zeros(60, dtype=int))
    assert freedom < 14
    expected = wilson_score(p, p * (1 - p) / variance, np.full(3, stdtrit(freedom, 0.975)))
    assert low == pytest.approx(expected[0], abs=1e-9)
    assert high == pytest.approx(expected[1], abs=1e-9)


def test_one_cluster_of_most_questions_leaves_few_degrees_of_freedom():
    """What percentiles and sums of squares miss: 40 of 58 questions are one image's."""
    clusters = np.repeat(np.arange(19), [40] + [1] * 18)
    values = (np.random.default_rng(0).random((58, 1)) < 0.7).astype(np.float64)
    assert spread(values, clusters).freedom[0] < 3


@pytest.mark.parametrize("constant", [0.0, 1.0, 0.5, 1 / 6, 0.123])
def test_a_column_that_does_not_vary_never_claims_certainty(constant):
    # 30 questions in 10 clusters: as sure as 10 independent questions make one.
    low, high = cluster_interval(np.full((30, 1), constant), np.arange(30) % 10)
    assert (low[0], high[0]) == pytest.approx(wilson(10 * constant, 10))
    # One of the two questions of every cluster is right: drawing clusters always gives one half.
    mirrored = cluster_interval(np.array([[1.0], [0.0]] * 10), np.repeat(np.arange(10), 2))
    assert (mirrored[0][0], mirrored[1][0]) == pytest.approx(wilson(5, 10))


@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(1, 40))
def test_intervals_are_in_range_and_contain_the_mean(seed, n_clusters, n):
    rng = np.random.default_rng(seed)
    values = rng.choice([0, 1, 0.5, 1 / 6], size=(n, 4), p=[0.1, 0.7, 0.1, 0.1])
    low, high = cluster_interval(values, rng.integers(0, n_clusters, n))
    assert ((low >= 0) & (low < high) & (high <= 1)).all()
    assert ((low <= values.mean(axis=0) + 1e-12) & (values.mean(axis=0) <= high + 1e-12)).all()


def test_numbers_of_clusters_and_other_columns_decide_nothing():
    values, clusters = example()
    first = cluster_interval(values, clusters)
    # Other numbers in the same order, and one column alone: the same bits.
    again = cluster_interval(values[:, [1]], clusters * 7 - 3)
    assert (first[0][1], first[1][1]) == (again[0][0], again[1][0])


@pytest.mark.parametrize(
    ("values", "what"),
    [
        (np.zeros((0, 1)), "no questions"),
        (np.array([[1.5]]), "in \\[0, 1\\]"),
        (np.array([[np.nan]]), "in \\[0, 1\\]"),
    ],
)
def test_refuses_no_questions_and_values_out_of_range(values, what):
    refuses(what, cluster_interval, values, np.zeros(len(values), dtype=int), error=InputError)


BITS = """
import numpy as np
from counterfoil.stats.intervals import cluster_interval, differences
rng = np.random.default_rng(0)
values, clusters = rng.random((3000, 12)), rng.integers(0, 700, 3000)
values[:, :6] = values[:, :6] < 0.7
pairs = np.array([(a, b) for a in range(12) for b in range(a)])
found = [*cluster_interval(values, clusters)]
found += [*differences(values.T[:, :, None], clusters, pairs)[:, :, 0]]
print(np.concatenate(found).tobytes().hex())
"""


def test_the_same_bits_at_any_number_of_threads(capsys):
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    command, environment = [sys.executable, "-c", BITS], {**os.environ, **dict.fromkeys(names, "3")}
    three = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    # This process has one.
    exec(BITS, {})
    assert three.stdout == capsys.readouterr().out != ""


# ------------------------------------------------------------------------------------------------ macro


@pytest.mark.parametrize("shares", [None, np.array([0.5, 0.3, 0.2])])
def test_macro_intervals_equal_a_slow_twin(shares):
    values, clusters = example(m=2)
    groups = np.arange(60) % 3
    result = spread(values, clusters, groups=groups, shares=shares)
    means = np.array([values[groups == g].mean(axis=0) for g in range(3)])
    assert result.value == pytest.approx((np.full(3, 1 / 3) if shares is None else shares) @ means)
    variance, freedom = by_the_matrices(values, clusters, macro_weights(groups, shares), groups)
    assert result.variance == pytest.approx(variance)
    assert result.freedom == pytest.approx(freedom)
    if shares is None:
        low, high = result.wilson()
        own = (result.value * (1 - result.value) / variance)[:1]
        expected = wilson_score(result.value[:1], own, np.array([stdtrit(freedom, 0.975)]))
        assert (low[0], high[0]) == pytest.approx((expected[0][0], expected[1][0]))


def test_a_group_in_one_cluster_varies_as_far_as_it_is_from_the_mean():
    # Group 1 is one question: nothing in it says how its mean varies.
    values, groups = np.array([[1.0]] * 6 + [[0.0]] * 3 + [[1.0]]), np.array([0] * 9 + [1])
    result = spread(values, np.arange(10), groups=groups)
    assert result.value[0] == pytest.approx(5 / 6)
    assert result.variance[0] == pytest.approx(0.25 / 4 / 9 + (1 / 6) ** 2 / 4 * 2)
    # Groups of one question each are the plain mean of so many questions.
    alone, plain = (spread(values, np.arange(10), groups=item) for item in (np.arange(10), None))
    assert (alone.variance[0], alone.freedom[0]) == pytest.approx((plain.variance[0], plain.freedom[0]))


def test_macro_over_one_group_is_micro_and_negative_groups_do_not_count():
    values, clusters = example(m=1)
    result = spread(values, clusters, groups=np.where(np.arange(60) < 50, 3, -1))
    low, high = result.wilson()
    inside = cluster_interval(values[:50], clusters[:50])
    assert result.value[0] == pytest.approx(values[:50].mean())
    assert (low[0], high[0]) == (inside[0][0], inside[1][0])


# ------------------------------------------------------------------------------------------ differences


@pytest.mark.parametrize("groups", [None, np.arange(60) % 3 - (np.arange(60) == 7) * 9])
def test_difference_interval_equals_a_slow_twin(groups):
    values, clusters = example(m=4)
    low, high, p = difference_interval(values, clusters, np.array([[0, 1], [2, 0]]), groups=groups)
    of_group = np.zeros(60, dtype=int) if groups is None else groups
    inside = of_group >= 0
    gap = (values[:, [0, 2]] - values[:, [1, 0]])[inside]
    weights = macro_weights(of_group)[inside]
    d, discord = weights @ gap, weights @ np.abs(gap)
    variance, freedom = by_the_matrices(gap, clusters[inside], weights, of_group[inside])
    effective = (discord - d * d) / variance
    expected = tango_score(d, discord, effective, np.full(2, stdtrit(freedom, 0.975)))
    assert low == pytest.approx(expected[0], abs=1e-9)
    assert high == pytest.approx(expected[1], abs=1e-9)
    assert p == pytest.approx(2 * stdtr(freedom, -np.abs(d) * np.sqrt(effective / discord)))


def test_a_column_against_itself_is_as_sure_as_its_clusters_without_a_difference():
    values, clusters = example(m=4)
    low, high, p = difference_interval(values, clusters, np.array([[3, 3]]))
    # Fifteen clusters: +- z**2 / (n + z**2).
    assert (low[0], high[0]) == pytest.approx((-3.841459 / 18.841459, 3.841459 / 18.841459), abs=1e-6)
    assert p[0] == 1


@given(st.integers(0, 10**6), st.integers(1, 20), st.integers(1, 60), st.sampled_from([0.0, 0.3, 0.8]))
def test_p_is_below_5_percent_exactly_where_the_interval_leaves_0_out(seed, n_clusters, n, lean):
    """Clusters of unequal sizes, groups, images and captions as crossed factors: never a contradiction."""
    rng = np.random.default_rng(seed)
    clusters = np.minimum(rng.geometric(0.2, n), n_clusters)
    values = rng.choice([0, 1, 0.5, 1 / 6], size=(n, 6), p=[0.2, 0.6, 0.1, 0.1])
    values[:, 1] = np.where(rng.random(n) < lean, 1.0, values[:, 1])
    values[:, 3] = np.where(rng.random(n) < lean, values[:, 2], values[:, 3])
    captions = rng.integers(0, max(n // 3, 1), (n, 1))
    pairs = np.array([[0, 1], [2, 3], [4, 5], [1, 0], [0, 0]])
    for shared in (clusters, Dependence(clusters[:, None], captions, always_crossed=True)):
        for groups in (None, rng.integers(0, 4, n)):
            low, high, p = difference_interval(values, shared, pairs, groups=groups)
            assert ((p < 0.05) == ((low > 0) | (high < 0))).all()


# ---------------------------------------------------------------------------------------- t over folds


def test_t_over_folds_by_hand():
    # Eight questions in shuffled quarters of two; with three degrees of freedom the quantile is 3.182446.
    values = np.array([1.0, 1, 0, 1, 1, 0, 0, 1])
    order = list(range(8))
    random.Random(0).shuffle(order)
    means = np.array([(values[order[2 * i]] + values[order[2 * i + 1]]) / 2 for i in range(4)])
    half = 3.182446 * means.std(ddof=1) / 2
    assert t_over_folds(values) == pytest.approx((max(0, 0.625 - half), min(1, 0.625 + half)), abs=1e-6)
    # Folds that do not divide the questions.
    for folds in range(2, 8):
        low, high = t_over_folds(values[:7], folds=folds)
        assert 0 <= low <= values[:7].mean() <= high <= 1


@pytest.mark.parametrize(("n", "folds"), [(3, 4), (10, 1), (0, 4)])
def test_too_few_questions_for_the_folds(n, folds):
    refuses("cut into folds", t_over_folds, np.ones(n), folds=folds, error=InputError)


def _table():
    """Sixty rows in twenty clusters, two columns over different rows and groups of different sizes."""
    rng = np.random.default_rng(2)
    values = np.stack([rng.integers(0, 2, 60).astype(float), rng.random(60)], axis=1)
    rows = np.arange(60)
    groups = np.stack([np.where(rows % 3 == 0, rows % 2, -1), np.where(rows % 3, rows // 40, -1)], axis=1)
    return values, groups, rows // 3


def _ends(values, groups, clusters, **how):
    result = spread(values, clusters, groups=groups, **how)
    return result.value, *result.wilson()


@pytest.mark.parametrize("crossed", [False, True])
def test_many_columns_at_once_are_as_one_by_one(crossed):
    values, groups, clusters = _table()
    captions = np.arange(60)[:, None] % 7
    shared = Dependence(clusters[:, None], captions, always_crossed=True) if crossed else clusters
    # What has no group may be anything.
    value, low, high = _ends(np.where(groups < 0, np.nan, values), groups, shared)
    for k in range(2):
        alone = spread(values[:, [k]], shared, groups=groups[:, k])
        expected = [alone.value[0], *np.ravel(alone.wilson())]
        assert [value[k], low[k], high[k]] == pytest.approx(expected, abs=1e-9)


def test_an_average_of_columns_weighs_them_and_not_their_rows():
    values, groups, clusters = _table()
    value, low, high = _ends(values, groups, clusters, averages=np.array([[1.0, 0.5], [0.0, 0.5]]))
    means = [np.mean([values[groups[:, k] == g, k].mean() for g in (0, 1)]) for k in (0, 1)]
    assert value == pytest.approx([means[0], np.mean(means)], abs=1e-9)
    assert (low < value).all()
    assert (value < high).all()
    # By hand: its rows are in four groups, two of each column, which weigh a quarter.
    rows = np.where(groups[:, 0] >= 0, groups[:, 0], 2 + groups[:, 1])
    own = np.where(groups[:, 0] >= 0, values[:, 0], values[:, 1])
    by_hand = spread(own[:, None], clusters, groups=rows)
    expected = [by_hand.value[0], *np.ravel(by_hand.wilson())]
    assert [value[1], low[1], high[1]] == pytest.approx(expected, abs=1e-9)


def test_differences_of_many_columns_are_as_one_by_one():
    values, groups, clusters = _table()
    tables = np.stack([values, values[::-1], np.ones_like(values)])
    pairs = np.array([[0, 1], [2, 0], [1, 1]])
    value, low, high, p = differences(tables, clusters, pairs, groups=groups)
    for k in range(2):
        expected = difference_interval(tables[:, :, k].T, clusters, pairs, groups=groups[:, k])
        np.testing.assert_allclose((low[:, k], high[:, k], p[:, k]), expected, atol=1e-9)
    assert value[2].tolist() == [0.0, 0.0]
    mean, low, high, _ = differences(tables, clusters, pairs, groups=groups, averages=np.full((2, 1), 0.5))
    np.testing.assert_allclose(mean[:, 0], value.mean(axis=1), atol=1e-12)
    assert ((low < mean) & (mean < high)).all()


def test_a_column_that_never_varies_counts_its_own_clusters():
    values, groups, clusters = np.ones((20, 2)), np.zeros((20, 2), dtype=np.int64), np.arange(20)
    groups[5:, 1] = -1
    _, low, _ = _ends(values, groups, clusters)
    assert low == pytest.approx([wilson(20, 20)[0], wilson(5, 5)[0]])


def test_tables_without_questions_are_refused():
    with pytest.raises(InputError, match="1 without a value"):
        spread(np.ones((2, 2)), np.arange(2), groups=np.array([[0, -1], [0, -1]]))
    refuses(r"values must be in \[0, 1\]", spread, np.full((2, 1), 1.5), np.arange(2), error=InputError)
    with pytest.raises(InputError, match="rows in common"):
        spread(np.ones((2, 2)), np.arange(2), averages=np.full((2, 1), 0.5))
