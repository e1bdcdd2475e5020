"""Refinement keeps the rows of a row-by-row account of SugarCrepe's rule, and what it promises is exact."""

from collections import Counter

import numpy as np
import pytest

from counterfoil.build.rating import accuracies
from counterfoil.build.steps.refine import largest_gaps, refine
from counterfoil.errors import ScoreError
from official_refinement import refined
from refusals import refuses


def gaps_of(n, d, seed):
    """Gaps in hundredths with all edges and many zeros; the right caption scores higher more often."""
    rng = np.random.default_rng(seed)
    gaps = np.clip(np.round(rng.normal(0.15, 0.5, (n, d)), 2), -1, 1)
    gaps[rng.random((n, d)) < 0.1] = 0
    return gaps


@pytest.mark.parametrize("seed", range(5))
def test_two_scores_keep_the_rows_of_the_official_rule_on_the_same_choices(seed):
    gaps = gaps_of(5_000, 2, seed)
    assert (np.abs(gaps) == 1).any(axis=0).all()
    assert ((gaps == 0).sum(axis=1) == 1).any()
    order = np.random.default_rng(seed).permutation(len(gaps))
    place = np.argsort(order)
    expected = refined(*gaps.T.tolist(), lambda rows, k: sorted(rows, key=lambda row: place[row])[:k])
    assert Counter(np.flatnonzero(refine(gaps, order)).tolist()) == Counter(expected)


@pytest.mark.parametrize(
    ("d", "bins", "edge_bins"), [(1, 50, 10), (2, 50, 10), (3, 3, 2), (4, 2, 5), (12, 50, 10)]
)
def test_every_mirrored_cell_holds_equally_many(d, bins, edge_bins):
    scales = tuple(np.arange(1.0, d + 1).tolist())
    gaps = gaps_of(3_000, d, seed=d) * scales
    if d == 12:  # as many scores as this leave next to nothing, unless gaps repeat
        gaps = np.where(np.random.default_rng(1).random((3_000, 1)) < 0.4, 1, -1) * gaps[:40].repeat(
            75, axis=0
        )
    kept = refine(gaps, np.arange(len(gaps)), scales=scales, bins=bins, edge_bins=edge_bins)

    def cell(row):
        b = edge_bins if (row == 0).any() else bins
        return tuple(
            int(np.sign(g)) * (min(int(abs(g) / s * b), b - 1) + 1) for g, s in zip(row, scales, strict=True)
        )

    before, after = (Counter(map(cell, rows)) for rows in (gaps, gaps[kept]))
    for key, count in before.items():
        mirror = tuple(-item for item in key)
        assert after[key] == (count if key == mirror else min(count, before[mirror]))
    assert 0 < kept.sum() < len(gaps)
    assert (accuracies(gaps[kept]).mean(axis=0) == 0.5).all()


def test_groups_are_balanced_each_for_itself_and_scales_change_no_rows():
    gaps, groups = gaps_of(3_000, 2, seed=4), np.random.default_rng(0).integers(-3, 4, 3_000)
    order = np.random.default_rng(1).permutation(3_000)
    kept = refine(gaps, order, groups=groups)
    for group in range(-3, 4):
        rows = np.flatnonzero(groups == group)
        assert refine(gaps[rows], np.argsort(np.argsort(order)[rows])).tolist() == kept[rows].tolist()
    assert (refine(gaps * [4, 8], order, groups=groups, scales=(4, 8)) == kept).all()
    assert largest_gaps(gaps * [1, 8]) == (1.0, 8.0)


def test_each_of_the_surplus_is_kept_equally_often():
    gaps = np.array([0.501, 0.505, 0.509, 0.51, -0.505, -0.507])[:, None]
    drawn = [refine(gaps, np.random.default_rng(seed).permutation(6)) for seed in range(2_000)]
    often = np.mean(drawn, axis=0)
    assert (often[4:] == 1).all()
    assert np.abs(often[:4] - 0.5).max() < 4 * (0.25 / 2_000) ** 0.5


def test_empty_tables_are_empty_and_bad_input_is_refused():
    assert refine(np.zeros((0, 2)), np.arange(0)).tolist() == []
    refuses("row 2", refine, np.array([[0.0], [np.nan]]), np.arange(2), error=ScoreError)
