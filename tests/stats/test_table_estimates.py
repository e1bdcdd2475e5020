"""Intervals of tables against those of their columns one by one, and against the same by hand."""

from typing import Any

import numpy as np
import pytest

from counterfoil.errors import InputError
from counterfoil.stats.estimates import (
    difference_interval,
    macro_interval,
    macro_table_differences,
    table_spread,
    wilson,
)


def _table() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sixty rows in twenty clusters, two columns over different rows and groups of different sizes."""
    rng = np.random.default_rng(2)
    values = np.stack([rng.integers(0, 2, 60).astype(float), rng.random(60)], axis=1)
    rows = np.arange(60)
    groups = np.stack([np.where(rows % 3 == 0, rows % 2, -1), np.where(rows % 3, rows // 40, -1)], axis=1)
    return values, groups, rows // 3


def _ends(*table: np.ndarray, **how: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values and intervals."""
    found = table_spread(*table, **how)
    return found.value, *found.wilson(0.95)


def test_many_columns_at_once_are_as_one_by_one() -> None:
    values, groups, clusters = _table()
    value, low, high = _ends(values, groups, clusters)
    for k in range(2):
        expected = macro_interval(values[:, k], groups[:, k], clusters)
        assert (value[k], low[k], high[k]) == pytest.approx(expected, abs=1e-9)


def test_what_has_no_group_may_be_anything() -> None:
    values, groups, clusters = _table()
    spoilt = np.where(groups < 0, np.nan, values)
    first = _ends(values, groups, clusters)
    second = _ends(spoilt, groups, clusters)
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)


def test_an_average_of_columns_weighs_them_and_not_their_rows() -> None:
    values, groups, clusters = _table()
    averages = np.array([[1.0, 0.5], [0.0, 0.5]])
    value, low, high = _ends(values, groups, clusters, averages=averages)
    means = [np.mean([values[groups[:, k] == g, k].mean() for g in (0, 1)]) for k in (0, 1)]
    assert value == pytest.approx([means[0], np.mean(means)], abs=1e-9)
    assert (low < value).all()
    assert (value < high).all()
    # By hand: its rows are in four groups, two of each column, which weigh a quarter.
    rows = np.where(groups[:, 0] >= 0, groups[:, 0], 2 + groups[:, 1])
    own = np.where(groups[:, 0] >= 0, values[:, 0], values[:, 1])
    by_hand = macro_interval(own, rows, clusters)
    assert (value[1], low[1], high[1]) == pytest.approx(by_hand, abs=1e-9)


def test_differences_of_many_columns_are_as_one_by_one() -> None:
    values, groups, clusters = _table()
    tables = np.stack([values, values[::-1], np.ones_like(values)])
    pairs = np.array([[0, 1], [2, 0], [1, 1]])
    value, low, high, p = macro_table_differences(tables, groups, clusters, pairs)
    for k in range(2):
        expected = difference_interval(tables[:, :, k].T, clusters, pairs, groups=groups[:, k])
        np.testing.assert_allclose((low[:, k], high[:, k], p[:, k]), expected, atol=1e-9)
    assert value[2].tolist() == [0.0, 0.0]
    half = np.full((2, 1), 0.5)
    mean, low, high, _ = macro_table_differences(tables, groups, clusters, pairs, averages=half)
    np.testing.assert_allclose(mean[:, 0], value.mean(axis=1), atol=1e-12)
    assert ((low < mean) & (mean < high)).all()


def test_a_column_that_never_varies_counts_its_own_clusters() -> None:
    values, groups, clusters = np.ones((20, 2)), np.zeros((20, 2), dtype=np.int64), np.arange(20)
    groups[5:, 1] = -1
    _, low, _ = _ends(values, groups, clusters)
    assert low == pytest.approx([wilson(20, 20)[0], wilson(5, 5)[0]])


def test_tables_without_questions_are_refused() -> None:
    with pytest.raises(InputError, match="1 without a value"):
        table_spread(np.ones((2, 2)), np.array([[0, -1], [0, -1]]), np.arange(2))
    with pytest.raises(InputError, match=r"values must be in \[0, 1\]"):
        table_spread(np.full((2, 1), 1.5), np.zeros((2, 1), dtype=np.int64), np.arange(2))
    with pytest.raises(InputError, match="rows in common"):
        table_spread(
            np.ones((2, 2)), np.zeros((2, 2), dtype=np.int64), np.arange(2), averages=np.full((2, 1), 0.5)
        )
