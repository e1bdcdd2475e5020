"""Draws that are what they say, the same every time, and sums without rounding."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from counterfoil.errors import InputError
from counterfoil.stats.bootstrap import cluster_draws, cluster_sums, exact_sums, share_draws, sign_draws
from refusals import refuses

#: Enough clusters that a block holds fewer than the 1,024 rows it may.
MANY = 5000


@pytest.mark.parametrize("draw", [cluster_draws, sign_draws])
def test_the_seed_decides_and_more_draws_begin_with_fewer(draw):
    few, many, other = (
        np.concatenate(list(draw(MANY, draws, seed=seed))) for draws, seed in ((500, 3), (900, 3), (500, 4))
    )
    assert few.shape == (500, MANY)
    assert (few == many[:500]).all()
    assert not (few == other).all()


@pytest.mark.parametrize("draw", [cluster_draws, sign_draws])
@pytest.mark.parametrize(("n_clusters", "draws"), [(1, 1), (7, 1), (3, 2500), (MANY, 1000), (3_000_000, 2)])
def test_blocks_are_bounded_and_add_up(draw, n_clusters, draws):
    shapes = [block.shape for block in draw(n_clusters, draws, seed=0)]
    assert sum(rows for rows, _ in shapes) == draws
    assert all(width == n_clusters for _, width in shapes)
    assert all(rows == 1 or rows * width <= 1 << 21 for rows, width in shapes)


@pytest.mark.parametrize(("draws", "seed"), [(0, 0), (-1, 0), (10, -1)])
def test_refuses_no_draws_and_negative_seeds(draws, seed):
    refuses("out of range; given", list, cluster_draws(5, draws, seed=seed), error=InputError)


def test_counts_are_multinomial_signs_fair_and_both_of_streams_of_their_own():
    # Each count is binomial(5, 1/5): mean 1, variance 4/5, covariance of two -1/5. With 40,000 draws the mean
    # is known to 0.0045, the second moments to about 0.01.
    counts = np.concatenate(list(cluster_draws(5, 40_000, seed=1)))
    assert (counts.sum(axis=1) == 5).all()
    assert counts.mean(axis=0) == pytest.approx(np.ones(5), abs=0.02)
    assert np.cov(counts.T) == pytest.approx(np.eye(5) - 1 / 5, abs=0.04)
    # Means and products of two signs have a standard deviation of 0.005 over as many draws.
    signs = np.concatenate(list(sign_draws(9, 40_000, seed=1)))
    assert (np.abs(signs) == 1).all()
    assert (signs.T @ signs) / len(signs) == pytest.approx(np.eye(9), abs=0.025)
    assert signs.mean(axis=0) == pytest.approx(np.zeros(9), abs=0.025)
    counts = next(iter(cluster_draws(64, 1, seed=5)))[0]
    assert abs(np.corrcoef(counts, next(iter(sign_draws(64, 1, seed=5)))[0])[0, 1]) < 0.5


POINTS = st.sampled_from(
    [0, 1, Fraction(1, 2), Fraction(1, 4), Fraction(1, 6), Fraction(1, 5), Fraction(1, 252)]
)


@given(st.lists(st.tuples(POINTS, st.integers(0, 4)), min_size=1, max_size=30), st.data())
def test_sums_of_points_for_ties_are_exact(rows, data):
    clusters = sorted({cluster for _, cluster in rows})
    weights = data.draw(st.lists(st.integers(0, 9), min_size=len(clusters), max_size=len(clusters)))
    values = np.array([[float(value)] for value, _ in rows])
    made = exact_sums(values, np.array([cluster for _, cluster in rows]), repeats=9)
    exact = sum(value * weights[clusters.index(cluster)] for value, cluster in rows)
    result = made.weighted(np.array([weights], dtype=np.float32))[0, 0]
    assert result == int(result)
    assert Fraction(result) / Fraction(made.scale) == exact


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=40))
def test_other_numbers_are_rounded_to_a_fine_grid(values):
    made = exact_sums(np.array(values)[:, None], np.arange(len(values)))
    result = made.weighted(np.ones((1, len(values)), dtype=np.float32))[0, 0]
    assert result == int(result)
    assert abs(result / made.scale - float(sum(Fraction(value) for value in values))) <= 2e-9


def test_cluster_sums_take_any_numbers_in_any_order_and_large_ones_leave_float32():
    # 2**25 + 1 is not a float32; halves of it force a scale of 2.
    made = exact_sums(np.full((3, 1), 2.0**25 + 0.5), np.array([0, 1, 1]))
    assert made.numbers.dtype == np.float64
    assert made.weighted(np.array([[1.0, -1.0]], dtype=np.float32))[0, 0] == -(2.0**26 + 1)
    assert exact_sums(np.ones((3, 1)), np.arange(3)).numbers.dtype == np.float32
    sums = cluster_sums(np.arange(12.0).reshape(6, 2), np.array([9, -1, 9, 4, 4, 9]))
    # Clusters -1, 4 and 9 hold rows {1}, {3, 4} and {0, 2, 5}.
    assert sums.tolist() == [[2, 3], [14, 16], [14, 17]]


def test_products_do_not_depend_on_how_the_columns_are_split():
    rng = np.random.default_rng(0)
    values, clusters = rng.random((300, 40)), rng.integers(0, 60, 300)
    made = exact_sums(values, clusters, repeats=60)
    weights = next(iter(cluster_draws(len(np.unique(clusters)), 64, seed=0)))
    together = made.weighted(weights)
    shuffled = rng.permutation(made.numbers.shape[0])
    # Another order of summing, another order of columns, a row at a time: the same bits.
    again = np.stack([row[shuffled].astype(np.float64) @ made.numbers[shuffled][:, ::-1] for row in weights])
    assert (together == again[:, ::-1]).all()


def test_shares_are_drawn_around_what_was_found():
    parts, wholes = np.array([30, 0, 7, 0]), np.array([40, 5, 7, 0])
    rows = np.concatenate(list(share_draws(parts, wholes, 4000, seed=3)))
    assert rows.shape == (4000, 4)
    assert (rows[:, 1:] == [0, 7, 0]).all()
    # A binomial of 40 trials at 3/4: mean 30, variance 7.5; four standard errors of the mean of 4,000.
    assert abs(rows[:, 0].mean() - 30) < 4 * (7.5 / 4000) ** 0.5
    assert rows[:, 0].var() == pytest.approx(7.5, rel=0.1)
    assert (np.concatenate(list(share_draws(parts, wholes, 100, seed=3))) == rows[:100]).all()
