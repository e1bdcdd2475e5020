import numpy as np
import pytest
from scipy import stats

from counterfoil.errors import InputError
from counterfoil.stats.intervals import FEWEST, mean_intervals


@pytest.mark.parametrize("n", [10, 40, 300])
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_as_scipy_has_it_at_the_widened_level(n, level):
    values = np.random.default_rng(n).exponential(size=n) * 3 + 1
    widened = 1 - 2 * stats.norm.cdf(-np.sqrt(n / (n - 1)) * stats.t.ppf((1 + level) / 2, n - 1))
    expected = stats.bootstrap(
        (values,), np.mean, n_resamples=20_000, confidence_level=widened, method="BCa", rng=1
    ).confidence_interval
    low, high = mean_intervals(values[:, None], level=level, draws=20_000)
    near = 0.05 * (expected.high - expected.low)
    assert abs(low[0] - expected.low) < near
    assert abs(high[0] - expected.high) < near


def test_the_mean_is_covered_nearly_as_often_as_it_says():
    rng = np.random.default_rng(0)
    low, high = mean_intervals(rng.exponential(size=(40, 2000)))
    assert 0.92 < np.mean((low <= 1) & (high >= 1)) < 0.97


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


def test_few_numbers_have_no_interval():
    with pytest.raises(InputError, match="no interval for the mean; given: 9 numbers; allowed: 10 or more"):
        mean_intervals(np.ones((FEWEST - 1, 1)))
