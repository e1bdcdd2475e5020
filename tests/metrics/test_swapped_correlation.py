"""What points add to the difference of two correlations, against swapping scores and correlating again."""

import numpy as np
import pytest
from scipy.stats import kendalltau, pearsonr, rankdata, spearmanr

from counterfoil.metrics.correlation_influence import contributions


def _four(ranks, standardised, ratings):
    return np.array(
        [
            kendalltau(ranks, ratings).statistic,
            kendalltau(ranks, ratings, variant="c").statistic,
            spearmanr(ranks, ratings).statistic,
            pearsonr(standardised, ratings).statistic,
        ]
    )


def _made(n: int, tied: bool, seed: int = 0):
    rng = np.random.default_rng(seed)
    ratings = rng.integers(1, 5, n).astype(float)
    first, second = ratings + rng.normal(size=n), ratings + 2 * rng.normal(size=n)
    return (np.rint(first), np.rint(second), ratings) if tied else (first, second, ratings)


@pytest.mark.parametrize("tied", [False, True])
def test_they_sum_to_the_difference(tied: bool) -> None:
    first, second, ratings = _made(120, tied)
    expected = _four(first, first, ratings) - _four(second, second, ratings)
    found = contributions(first, second, ratings).sum(axis=0)
    # Ties enter tau-b and Spearman to first order.
    assert found == pytest.approx(expected, abs=1e-3 if tied else 1e-12)
    assert found[[1, 3]] == pytest.approx(expected[[1, 3]], abs=1e-12)
    assert contributions(second, first, ratings) == pytest.approx(-contributions(first, second, ratings))


@pytest.mark.parametrize("tied", [False, True])
def test_swapping_clusters_is_changing_signs(tied: bool) -> None:
    first, second, ratings = _made(150, tied)
    terms = contributions(first, second, ratings)
    ranks = rankdata(first), rankdata(second)
    standard = tuple((column - column.mean()) / column.std() for column in (first, second))
    rng = np.random.default_rng(1)
    found, expected = [], []
    for _ in range(200):
        # Whole clusters of three.
        swap = rng.random(50).repeat(3) < 0.5
        mixed = [[np.where(swap, b, a), np.where(swap, a, b)] for a, b in (ranks, standard)]
        expected.append(_four(mixed[0][0], mixed[1][0], ratings) - _four(mixed[0][1], mixed[1][1], ratings))
        found.append(np.where(swap, -1, 1) @ terms)
    found, expected = np.array(found), np.array(expected)
    assert found[:, 1] == pytest.approx(expected[:, 1], abs=1e-12)
    spread = expected.std(axis=0)
    assert (spread > 0.02).all()
    # The other three are linear to first order: they move together with what they stand for.
    assert (np.abs(found - expected).max(axis=0) < (0.35 if tied else 0.1) * spread).all()
    for k in range(4):
        assert np.corrcoef(found[:, k], expected[:, k])[0, 1] > 0.98


def test_a_constant_column_has_none() -> None:
    first, second, ratings = _made(10, False)
    for columns in (
        (np.ones(10), second, ratings),
        (first, np.ones(10), ratings),
        (first, second, np.ones(10)),
    ):
        assert np.isnan(contributions(*columns)).all()
    assert (contributions(first, first, ratings) == 0).all()
