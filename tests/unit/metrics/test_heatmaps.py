"""Heatmap arithmetic against slow twins: pixel by pixel, and over all orders of ties."""

from itertools import combinations, product

import numpy as np
import pytest

from counterfoil.metrics.heatmaps import (
    area_iou,
    iou_chance,
    pointing_chance,
    pointing_game,
    rollout,
    upsampled,
)


def slow_upsampled(heat, height, width, box):
    """Linear between the middles of cells, one pixel at a time."""
    found = np.full((height, width), heat.min())
    rows, columns = heat.shape
    for row in range(height):
        for column in range(width):
            y = ((row + 0.5) / height - box[1]) / (box[3] - box[1])
            x = ((column + 0.5) / width - box[0]) / (box[2] - box[0])
            if not (0 <= y <= 1 and 0 <= x <= 1):
                continue
            down = np.interp(y * rows - 0.5, np.arange(rows), np.arange(rows))
            across = np.interp(x * columns - 0.5, np.arange(columns), np.arange(columns))
            lines = [np.interp(across, np.arange(columns), line) for line in heat]
            found[row, column] = np.interp(down, np.arange(rows), lines)
    return found


@pytest.mark.parametrize("box", [(0.0, 0.0, 1.0, 1.0), (0.25, 0.0, 0.75, 1.0), (0.0, 0.1, 1.0, 0.9)])
def test_upsampling_is_linear_between_the_middles_of_cells(box):
    heat = np.random.default_rng(0).normal(size=(3, 5))
    np.testing.assert_allclose(upsampled(heat, 13, 11, box=box), slow_upsampled(heat, 13, 11, box))


def test_equal_cells_give_equal_pixels():
    assert len(np.unique(upsampled(np.full((7, 7), 0.1), 100, 90))) == 1


def slow_iou(heat, mask):
    """The IoU of the expected intersection over all sets of highest pixels, each as likely as any other."""
    area = int(mask.sum())
    values, true = heat.ravel().tolist(), mask.ravel().tolist()
    least = sum(sorted(values)[-area:])
    common = [
        sum(true[i] for i in chosen)
        for chosen in combinations(range(len(values)), area)
        if abs(sum(values[i] for i in chosen) - least) < 1e-9
    ]
    mean = sum(common) / len(common)
    return mean / (2 * area - mean)


@pytest.mark.parametrize("seed", range(12))
def test_both_measures_are_those_of_all_orders_of_ties(seed):
    rng = np.random.default_rng(seed)
    # Few levels, so that many pixels tie.
    heat = rng.integers(0, 3, size=(3, 3)).astype(float)
    mask = rng.permutation(9).reshape(3, 3) < rng.integers(1, 6)
    assert area_iou(heat, mask) == pytest.approx(slow_iou(heat, mask))
    best = [at for at in np.ndindex(3, 3) if heat[at] == heat.max()]
    assert pointing_game(heat, mask) == pytest.approx(sum(mask[at] for at in best) / len(best))


def test_what_points_nowhere_is_at_chance():
    mask = np.random.default_rng(1).random((20, 30)) < 0.3
    assert pointing_game(np.zeros(mask.shape), mask) == pytest.approx(pointing_chance(mask))
    assert area_iou(np.zeros(mask.shape), mask) == pytest.approx(iou_chance(mask))


def test_the_mask_itself_is_found_whole():
    mask = np.random.default_rng(1).random((20, 30)) < 0.3
    assert (pointing_game(mask.astype(float), mask), area_iou(mask.astype(float), mask)) == (1.0, 1.0)
    assert np.isnan(area_iou(mask.astype(float), np.zeros_like(mask)))


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
