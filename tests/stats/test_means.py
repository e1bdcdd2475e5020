import numpy as np
import pytest
from scipy import stats

from counterfoil.errors import InputError
from counterfoil.stats.means import student


@pytest.mark.parametrize("n", [2, 7, 300])
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_as_scipy_has_it(n, level):
    values = np.random.default_rng(n).standard_normal(n) * 3 + 1
    expected = stats.t.interval(level, n - 1, loc=values.mean(), scale=stats.sem(values))
    np.testing.assert_allclose(student(values, level=level), expected)


def test_the_mean_is_covered_as_often_as_it_says():
    rng = np.random.default_rng(0)
    intervals = [student(rng.exponential(size=40)) for _ in range(2000)]
    covered = np.mean([low <= 1 <= high for low, high in intervals])
    assert 0.90 < covered < 0.97


def test_one_number_has_no_interval():
    with pytest.raises(InputError, match="no interval for the mean; given: 1 numbers; allowed: 2 or more"):
        student(np.array([1.0]))
