"""Heatmap arithmetic against slow twins: pixel by pixel, and over all orders of ties."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog

from counterfoil.metrics.heatmaps import (
    cosine_cost,
    rollout,
    transport,
)


def test_rollout_is_the_sum_over_all_paths():
    rng = np.random.default_rng(0)
    layers = [rng.random((2, 3, 3)) for _ in range(3)]
    layers = [layer / layer.sum(axis=2, keepdims=True) for layer in layers]
    steps = [0.5 * layer.mean(axis=0) + 0.5 * np.eye(3) for layer in layers]
    found = np.zeros((3, 3))
    for last, third, second, first in product(range(3), repeat=4):
        found[last, first] += steps[2][last, third] * steps[1][third, second] * steps[0][second, first]
    np.testing.assert_allclose(rollout(layers), found)
    np.testing.assert_allclose(rollout(layers).sum(axis=1), 1)


def exact(cost):
    """The least cost by a linear program."""
    n, m = cost.shape
    rows = np.kron(np.eye(n), np.ones(m))
    columns = np.kron(np.ones(n), np.eye(m))
    weights = np.concatenate([np.full(n, 1 / n), np.full(m, 1 / m)])
    return float(linprog(cost.ravel(), A_eq=np.concatenate([rows, columns]), b_eq=weights).fun)


@pytest.mark.parametrize("seed", range(5))
def test_transport_comes_near_the_linear_program(seed):
    rng = np.random.default_rng(seed)
    cost = cosine_cost(rng.normal(size=(3, 6)), rng.normal(size=(7, 6)))
    least = exact(cost)
    plan = transport(cost, steps=5000)
    np.testing.assert_allclose(plan.sum(axis=0), 1 / 7)
    np.testing.assert_allclose(plan.sum(axis=1), 1 / 3, atol=1e-4)
    assert (plan * cost).sum() == pytest.approx(least, abs=1e-3)
    # The papers' fifty steps are on the way there, from equal parts.
    few = float((transport(cost) * cost).sum())
    assert least - 1e-3 < few < cost.mean()


def test_transport_does_not_leave_the_range_of_floats():
    rng = np.random.default_rng(1)
    plan = transport(cosine_cost(rng.normal(size=(20, 4)), rng.normal(size=(240, 4))), steps=2000)
    assert np.isfinite(plan).all()
    assert plan.sum() == pytest.approx(1)
