import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats
from scipy.optimize import minimize_scalar

from counterfoil.errors import InputError
from counterfoil.stats.bootstrap import FEWEST, mean_intervals
from counterfoil.stats.intervals import tango_score, wilson_score


@pytest.mark.parametrize("n", [10, 40, 300])
def test_as_scipy_has_it_at_the_widened_level(n):
    values = np.random.default_rng(n).exponential(size=n) * 3 + 1
    widened = 1 - 2 * stats.norm.cdf(-np.sqrt(n / (n - 1)) * stats.t.ppf(0.975, n - 1))
    expected = stats.bootstrap(
        (values,), np.mean, n_resamples=20_000, confidence_level=widened, method="BCa", rng=1
    ).confidence_interval
    low, high = mean_intervals(values[:, None], draws=20_000)
    near = 0.05 * (expected.high - expected.low)
    assert abs(low[0] - expected.low) < near
    assert abs(high[0] - expected.high) < near


def test_the_mean_is_covered_nearly_as_often_as_it_says_and_of_few_numbers_there_is_none():
    low, high = mean_intervals(np.random.default_rng(0).exponential(size=(40, 2000)))
    assert 0.92 < np.mean((low <= 1) & (high >= 1)) < 0.97
    with pytest.raises(InputError, match="no interval for the mean; given: 9 numbers; allowed: 10 or more"):
        mean_intervals(np.ones((FEWEST - 1, 1)))


@pytest.mark.parametrize("n", [10, 200])
def test_numbers_that_are_nearly_all_at_the_end_of_their_range(n):
    values = np.zeros((n, 3))
    values[0, 0] = 1
    values[:, 1] = 1 - values[:, 0]
    values[:, 2] = 0.25
    low, high = mean_intervals(values)
    means = values.mean(axis=0)
    assert ((low >= 0) & (high <= 1)).all()
    assert low[0] < means[0] < high[0]
    assert low[1] < means[1] < high[1]
    assert low[2] == high[2] == 0.25


def test_a_column_alone_has_the_same_bits():
    values = np.random.default_rng(2).normal(size=(25, 4))
    together = mean_intervals(values, seed=5)
    for k in range(4):
        alone = mean_intervals(values[:, k : k + 1], seed=5)
        assert (alone[0][0], alone[1][0]) == pytest.approx((together[0][k], together[1][k]), rel=1e-12)
    assert np.array_equal(together, mean_intervals(values, seed=5))
    assert not np.array_equal(together, mean_intervals(values, seed=6))


@given(st.integers(1, 500), st.floats(0, 1), st.floats(0.5, 13))
def test_wilson_ends_are_where_the_score_test_turns(n, p, z):
    low, high = (float(x[0]) for x in wilson_score(np.array([p]), np.array([float(n)]), np.array([z])))
    assert 0 <= low <= p <= high <= 1
    for end in (low, high):
        # (p - end)**2 = z**2 end (1 - end) / n, but where the interval was cut to [0, 1].
        if 1e-6 < end < 1 - 1e-6:
            assert (p - end) ** 2 == pytest.approx(z * z * end * (1 - end) / n, rel=1e-6, abs=1e-12)


def loglikelihood(second_only, d, b, c, n):
    """Multinomial log-likelihood of b questions only the first, c only the second gets right, given d."""
    cells = np.array([second_only + d, second_only, 1 - 2 * second_only - d])
    counts = np.array([b, c, n - b - c])
    if (cells < -1e-12).any():
        return -np.inf
    return float(np.sum(counts * np.log(np.maximum(cells, 1e-300))))


@pytest.mark.parametrize(
    ("b", "c", "n"), [(5, 2, 20), (0, 0, 30), (9, 0, 12), (1, 8, 50), (12, 12, 24), (40, 1, 400)]
)
def test_tango_ends_are_where_the_score_test_turns(b, c, n):
    """The nuisance share is maximised numerically here, and in closed form there."""
    z = 1.959964
    difference = (b - c) / n
    low, high = tango_score(
        np.array([difference]), np.array([(b + c) / n]), np.array([float(n)]), np.array([z])
    )
    for end in (float(low[0]), float(high[0])):
        if abs(end) > 1 - 1e-9:
            continue
        best = minimize_scalar(
            lambda q, end=end: -loglikelihood(q, end, b, c, n),
            bounds=(max(0.0, -end), (1 - end) / 2),
            method="bounded",
            options={"xatol": 1e-12},
        )
        spread = np.sqrt((2 * best.x + end - end * end) / n)
        assert abs(difference - end) / spread == pytest.approx(z, rel=1e-3)
    assert low[0] <= difference <= high[0]


@given(st.floats(0, 1), st.floats(0, 1), st.floats(1, 1000), st.floats(0.5, 13))
def test_tango_turns_round_when_the_two_are_swapped(discord, share, n, z):
    difference = discord * (2 * share - 1)
    rows = [np.array([x, y]) for x, y in ((difference, -difference), (discord, discord), (n, n), (z, z))]
    low, high = tango_score(*rows)
    assert -1 <= low[0] <= difference <= high[0] <= 1
    assert low[0] == pytest.approx(-high[1], abs=1e-9)
