"""Pairs in the same and in opposite orders, weighed: by clusters, by bits, and by looking at each."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterfoil.metrics import weighted_correlation
from counterfoil.metrics.weighted_correlation import ByBits, ByClusters, WeightedCorrelation


def _every_pair(x, y, clusters, weights):
    signs = np.sign(np.subtract.outer(x, x)) * np.sign(np.subtract.outer(y, y))
    of_points = weights[:, clusters].astype(float)
    return np.einsum("di,ij,dj->d", of_points, signs, of_points)


@given(st.data())
def test_both_ways_count_what_every_pair_says(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    n = data.draw(st.integers(1, 60))
    x = rng.integers(0, data.draw(st.integers(1, 40)), n) * 0.1
    y = rng.integers(0, data.draw(st.integers(1, 17)), n) / 3
    clusters = np.unique(rng.integers(0, data.draw(st.integers(1, n)), n), return_inverse=True)[1]
    entries = WeightedCorrelation.of(x, y, clusters).entries
    weights = rng.integers(0, 4, (4, clusters.max() + 1))
    expected = _every_pair(x, y, clusters, weights)
    assert ByClusters.of(entries).sums(weights).tolist() == expected.tolist()
    assert ByBits.of(entries).sums(weights).tolist() == expected.tolist()


@pytest.mark.parametrize("clusters", [40, 1500])
def test_several_parts_and_heavy_samples_are_exact(clusters: int) -> None:
    rng = np.random.default_rng(2)
    n = 3 * clusters
    x, y = rng.normal(size=n).round(2), rng.integers(0, 300, n).astype(float)
    entries = WeightedCorrelation.of(x, y, np.arange(n) % clusters).entries
    # The second sample is too heavy for whole numbers in float32.
    weights = np.stack([rng.integers(0, 3, clusters), rng.integers(200_000, 300_000, clusters)])
    for sample in weights[:, None]:
        found = ByClusters.of(entries).sums(sample), ByBits.of(entries).sums(sample)
        assert found[0].tolist() == found[1].tolist()


def test_many_samples_and_few_have_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=500).round(1), rng.integers(0, 9, 500).astype(float)
    clusters = np.arange(500) // 4
    weights = rng.integers(0, 4, (80, 125)).astype(float)
    many = WeightedCorrelation.of(x, y, clusters).correlations(weights)
    few = [WeightedCorrelation.of(x, y, clusters).correlations(row[None])[0] for row in weights]
    assert (many == np.array(few)).all()
    # Where the table would be too large, pairs are counted by bits.
    monkeypatch.setattr(weighted_correlation, "_MOST", 124)
    assert not ByClusters.fits(WeightedCorrelation.of(x, y, clusters).entries)
    assert (WeightedCorrelation.of(x, y, clusters).correlations(weights) == many).all()
