"""Attention rollout against a sum over all paths."""

from itertools import product

import numpy as np

from counterfoil.metrics.heatmaps import rollout


def test_rollout_is_the_sum_over_all_paths():
    rng = np.random.default_rng(0)
    layers = [rng.random((2, 3, 3)) for _ in range(3)]
    layers = [layer / layer.sum(axis=2, keepdims=True) for layer in layers]
    steps = [0.5 * layer.mean(axis=0) + 0.5 * np.eye(3) for layer in layers]
    result = np.zeros((3, 3))
    for last, third, second, first in product(range(3), repeat=4):
        result[last, first] += steps[2][last, third] * steps[1][third, second] * steps[0][second, first]
    np.testing.assert_allclose(rollout(layers), result)
    np.testing.assert_allclose(rollout(layers).sum(axis=1), 1)
