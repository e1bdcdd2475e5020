"""CLIP-S and PAC-S: the released formulae on plain numbers, and what they give where those break down."""

import itertools

import numpy as np
import pytest

from counterfoil.errors import DataError
from counterfoil.metrics.captions.clip_score import (
    CLIP_WEIGHT,
    PAC_WEIGHT,
    best_cosines,
    clip_s,
    harmonic_mean,
    ref_clip_s,
)
from refusals import refuses


def rows(n, width=6, seed=0):
    return np.random.default_rng(seed).normal(size=(n, width))


def slow_cosine(first, second):
    dot = sum(float(a) * float(b) for a, b in zip(first, second, strict=True))
    lengths = [sum(float(a) ** 2 for a in item) ** 0.5 for item in (first, second)]
    return dot / (lengths[0] * lengths[1])


def slow_reference_score(candidate, image, own, weight, paper):
    """PAC-S equations 1, 5 and 6, one row at a time."""
    a = weight * max(slow_cosine(candidate, image), 0)
    b = max(slow_cosine(candidate, reference) for reference in own)
    b = max(b, 0) if paper else b
    return 0.0 if a + b == 0 else 2 * a * b / (a + b)


def test_equals_the_formula_row_by_row():
    candidates, images = rows(40), rows(40, seed=1)
    starts = np.concatenate([[0], np.cumsum(np.random.default_rng(3).integers(1, 5, 40))])
    references = rows(int(starts[-1]), seed=2)
    cosines = [slow_cosine(c, i) for c, i in zip(candidates, images, strict=True)]
    assert min(cosines) < 0 < max(cosines)
    np.testing.assert_allclose(clip_s(candidates, images), [2.5 * max(c, 0) for c in cosines], atol=1e-12)
    np.testing.assert_allclose(clip_s(candidates, images, weight=1, clip=False), cosines, atol=1e-12)
    for weight in (CLIP_WEIGHT, PAC_WEIGHT):
        for negative in ("released", "paper"):
            result = ref_clip_s(candidates, images, references, starts, weight=weight, negative=negative)
            expected = [
                slow_reference_score(
                    candidates[i], images[i], references[a:b], weight, paper=negative == "paper"
                )
                for i, (a, b) in enumerate(itertools.pairwise(starts))
            ]
            np.testing.assert_allclose(result, expected, atol=1e-12)


def test_the_harmonic_mean_is_always_a_number():
    values = [0.0, -0.0, 1e-320, 1e-9, 0.3, 1.0, 2.5, -1e-320, -0.3, -1.0, np.nextafter(-1.0, 0)]
    first, second = (np.array(item) for item in zip(*itertools.product(values, values), strict=True))
    with np.errstate(all="raise", under="ignore"):
        result = harmonic_mean(first, second)
    assert np.isfinite(result).all()
    assert (result[(first + second) == 0] == 0).all()
    assert (result[(first == 0) | (second == 0)] == 0).all()
    np.testing.assert_array_equal(result, harmonic_mean(second, first))
    above = (first > 1e-300) & (second > 1e-300)
    assert (result[above] >= np.minimum(first, second)[above] * (1 - 1e-12)).all()
    assert (result[above] <= np.maximum(first, second)[above] * (1 + 1e-12)).all()


def test_a_candidate_with_nothing_in_common_gets_zero_and_not_a_nan():
    # a = 0 and b = 0: the released formula divides 0 by 0.
    up, right = np.array([[0.0, 1.0]]), np.array([[1.0, 0.0]])
    for negative in ("released", "paper"):
        assert ref_clip_s(up, right, right, np.array([0, 1]), negative=negative).tolist() == [0.0]
    nothing = np.zeros((1, 2))
    assert clip_s(nothing, right).tolist() == [0.0]
    assert ref_clip_s(nothing, right, right, np.array([0, 1])).tolist() == [0.0]


def test_rows_without_references_are_named():
    with pytest.raises(DataError, match=r"row 1: a candidate has no references; given: 1 of 3 rows"):
        ref_clip_s(rows(3), rows(3), rows(2), np.array([0, 1, 1, 2]))
    refuses("do not fit the candidates", best_cosines, rows(3), rows(2), np.array([0, 1, 2]))
    refuses("do not fit the candidates", best_cosines, rows(2), rows(3), np.array([0, 1, 2]))
    assert best_cosines(rows(0), rows(0), np.array([0])).shape == (0,)


def test_half_precision_is_that_of_the_released_code_on_a_gpu():
    candidates, images, references = rows(300, 64), rows(300, 64, seed=1), rows(600, 64, seed=2)
    starts = np.arange(0, 601, 2)
    # As clipscore.py writes it for NumPy from 1.21, on features that stayed float16.
    left, right, others = (item.astype(np.float16) for item in (candidates, images, references))
    left, right, others = (
        item / np.sqrt(np.sum(item**2, axis=1, keepdims=True)) for item in (left, right, others)
    )
    expected = 2.5 * np.clip(np.sum(left * right, axis=1), 0, None)
    assert expected.dtype == np.float16
    result = clip_s(candidates, images, arithmetic="half")
    assert result.dtype == np.float64
    np.testing.assert_array_equal(result, expected)
    # Half precision ties where exact numbers do not, and is not far away.
    exact = clip_s(candidates, images)
    assert len(np.unique(result)) < len(np.unique(exact))
    assert abs(result - exact).max() < 0.01
    # The released code multiplies matrices here, whose order of sums is the library's affair.
    dots = [max(left[i].dot(others[a:b].T)) for i, (a, b) in enumerate(itertools.pairwise(starts))]
    best = best_cosines(candidates, references, starts, arithmetic="half")
    np.testing.assert_allclose(best, np.array(dots, dtype=np.float64), atol=2e-3)
