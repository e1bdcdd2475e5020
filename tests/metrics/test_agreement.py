"""Cohen's kappa against the textbook's example and a slow twin."""

from math import isnan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterfoil.errors import InputError
from counterfoil.metrics.annotators import cohen_kappa


def twin(first: list[str], second: list[str]) -> float:
    n = len(first)
    observed = sum(a == b for a, b in zip(first, second, strict=True)) / n
    expected = sum(first.count(c) / n * second.count(c) / n for c in set(first) | set(second))
    return (observed - expected) / (1 - expected) if expected < 1 else float("nan")


RATINGS = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=1, max_size=30)


@given(RATINGS)
def test_equals_a_slow_twin(rows: list[tuple[str, str]]) -> None:
    first, second = [a for a, _ in rows], [b for _, b in rows]
    kappa = cohen_kappa(np.array(first), np.array(second))
    assert kappa == pytest.approx(twin(first, second), abs=1e-12, nan_ok=True)


def test_two_raters_of_fifty_grants() -> None:
    # 20 yes-yes, 5 yes-no, 10 no-yes, 15 no-no: p_o = 35/50 = 0.7, p_e = 0.5 * 0.6 + 0.5 * 0.4 = 0.5.
    first = np.array([1] * 25 + [0] * 25)
    second = np.array([1] * 20 + [0] * 5 + [1] * 10 + [0] * 15)
    assert cohen_kappa(first, second) == pytest.approx(0.4, abs=1e-12)


@given(RATINGS)
def test_who_is_first_and_what_labels_are_called_does_not_matter(rows: list[tuple[str, str]]) -> None:
    first, second = np.array([a for a, _ in rows]), np.array([b for _, b in rows])
    kappa = cohen_kappa(first, second)
    as_numbers = [np.array([{"a": 7, "b": -1, "c": 3}[x] for x in column]) for column in (first, second)]
    for other in (cohen_kappa(second, first), cohen_kappa(*as_numbers)):
        assert other == pytest.approx(kappa, nan_ok=True)
    assert isnan(kappa) or kappa <= 1


def test_agreement_throughout_is_one_and_one_single_category_is_undefined() -> None:
    assert cohen_kappa(np.array([1, 2, 1]), np.array([1, 2, 1])) == 1
    assert isnan(cohen_kappa(np.array([1, 1]), np.array([1, 1])))
    # Both use one category, but not the same: nothing agreed, nothing expected.
    assert cohen_kappa(np.array([1, 1]), np.array([2, 2])) == 0


@pytest.mark.parametrize(("n", "m"), [(0, 0), (2, 3)])
def test_refuses_ratings_of_different_items(n: int, m: int) -> None:
    with pytest.raises(InputError, match="the same items"):
        cohen_kappa(np.zeros(n), np.zeros(m))
