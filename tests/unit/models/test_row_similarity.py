"""Rows of several points or of Gaussians: pairs and blocks against slow loops; what probabilities mean."""

import math

import numpy as np
import pytest

from counterfoil.engine.similarity import unit
from counterfoil.models.matching_probability import MostSimilarHeads, Sampled, log_mean_match

WIDTH, HEADS = 6, 3


def rows_of(rng, n, kind, dtype=np.float32):
    if kind == "heads":
        return unit(rng.normal(size=(n * HEADS, WIDTH))).reshape(n, -1).astype(dtype)
    mean = unit(rng.normal(size=(n, WIDTH)))
    return np.concatenate([mean, rng.normal(-3, 1, (n, WIDTH))], axis=1).astype(dtype)


KINDS = {
    "heads": ("heads", MostSimilarHeads(HEADS)),
    "sampled": ("gaussian", Sampled(4.0, 3.0, samples=5, seed=2)),
}


def slow(name, caption, image):
    """One pair, number by number."""
    if name == "heads":
        parts = [[row[k * WIDTH : (k + 1) * WIDTH] for k in range(HEADS)] for row in (caption, image)]
        return max(sum(float(a) * float(b) for a, b in zip(x, y)) for x in parts[0] for y in parts[1])  # noqa: B905
    (mu, s), (nu, t) = ((row[:WIDTH].astype(float), row[WIDTH:].astype(float)) for row in (caption, image))
    noise = [np.random.default_rng([2, side]).standard_normal((5, WIDTH)) for side in (0, 1)]
    chances = []
    for one in noise[0]:
        for other in noise[1]:
            x = [m + math.exp(v) ** 0.5 * e for m, v, e in zip(mu, s, one, strict=True)]
            y = [m + math.exp(v) ** 0.5 * e for m, v, e in zip(nu, t, other, strict=True)]
            d = math.sqrt(sum((a - b) ** 2 for a, b in zip(x, y, strict=True)) + 1e-6)
            chances.append(math.exp(3.0 - 4.0 * d) / (math.exp(3.0 - 4.0 * d) + math.exp(4.0 * d - 3.0)))
    return math.log(sum(chances) / len(chances))


@pytest.mark.parametrize("name", KINDS)
def test_pairs_and_blocks_agree_with_a_slow_loop(name):
    kind, comparison = KINDS[name]
    rng = np.random.default_rng(0)
    captions, images = rows_of(rng, 9, kind), rows_of(rng, 7, kind)
    block = comparison.block(images, captions)
    assert (block.shape, block.dtype) == ((7, 9), np.float32)
    exact = np.array([[slow(name, caption, image) for caption in captions] for image in images])
    np.testing.assert_allclose(block, exact, rtol=2e-5, atol=2e-5)
    i, c = np.divmod(np.arange(63), 9)
    pairs = comparison.pairs(captions[c], images[i])
    assert pairs.dtype == np.float64
    np.testing.assert_allclose(pairs, exact.reshape(-1), rtol=1e-9, atol=1e-9)
    double = comparison.block(images.astype(np.float64), captions.astype(np.float64))
    np.testing.assert_allclose(double, exact, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("name", KINDS)
def test_a_score_depends_on_its_two_rows_alone(name, monkeypatch):
    # In whatever company, order and size of pieces.
    kind, comparison = KINDS[name]
    rng = np.random.default_rng(1)
    captions, images = rows_of(rng, 40, kind, np.float64), rows_of(rng, 11, kind, np.float64)
    whole, pairs = comparison.block(images, captions), comparison.pairs(captions[:11], images)
    np.testing.assert_allclose(pairs, np.diagonal(whole), atol=1e-8)
    monkeypatch.setattr("counterfoil.models.matching_probability._AT_ONCE", 200)
    order = rng.permutation(40)
    np.testing.assert_allclose(
        comparison.block(images[3:5], captions[order]), whole[3:5][:, order], atol=1e-12
    )
    np.testing.assert_array_equal(comparison.pairs(captions[:11], images), pairs)
    assert comparison.block(images[:0], captions).shape == (0, 40)
    assert comparison.block(images, captions[:0]).shape == (11, 0)
    assert comparison.pairs(captions[:0], images[:0]).shape == (0,)


def test_points_without_variance_have_one_probability_however_it_is_computed():
    rng = np.random.default_rng(3)
    captions, images = rows_of(rng, 6, "gaussian", np.float64), rows_of(rng, 6, "gaussian", np.float64)
    captions[:, WIDTH:] = images[:, WIDTH:] = -np.inf
    distance = np.linalg.norm(captions[:, :WIDTH] - images[:, :WIDTH], axis=1)
    exact = 1 / (1 + np.exp(-2 * (3.0 - 4.0 * np.sqrt(distance**2 + 1e-6))))
    np.testing.assert_allclose(np.exp(Sampled(4.0, 3.0).pairs(captions, images)), exact, rtol=1e-12)


def test_samples_are_an_unbiased_estimate_over_seeds():
    rng = np.random.default_rng(5)
    captions, images = rows_of(rng, 4, "gaussian", np.float64), rows_of(rng, 4, "gaussian", np.float64)
    # The probability of each pair from 50,000 draws of its own.
    rng, truth = np.random.default_rng(6), []
    for pair in zip(captions, images, strict=True):
        x, y = (row[:WIDTH] + np.exp(row[WIDTH:] / 2) * rng.standard_normal((50_000, WIDTH)) for row in pair)
        truth.append(np.exp(log_mean_match(np.square(x - y).sum(axis=1), 4.0, 3.0, axis=(0,))))
    truth = np.array(truth)
    seeds = np.array([np.exp(Sampled(4.0, 3.0, seed=seed).pairs(captions, images)) for seed in range(200)])
    assert len(np.unique(seeds[:, 0])) == 200
    # Seeds are independent: their spread says how near their mean must come.
    error = seeds.std(axis=0, ddof=1) / math.sqrt(len(seeds))
    assert (np.abs(seeds.mean(axis=0) - truth) < 5 * error + 0.01 * truth).all()


def test_what_is_nearly_impossible_or_certain_is_in_order_and_means_far_away_lose_little():
    scores = log_mean_match(np.linspace(0, 400, 1000, dtype=np.float32)[:, None], 15.0, 15.0, axis=(1,))
    assert scores.dtype == np.float32
    assert np.isfinite(scores).all()
    assert (np.diff(scores) < 0).all()
    assert scores.max() <= 0
    # Squared distances from products can fall below zero, which a root would not survive.
    same = np.tile(np.concatenate([np.full(64, 0.125), np.full(64, -60.0)]).astype(np.float32), (50, 1))
    result = Sampled(15.0, 15.0).block(same, same)
    assert np.isfinite(result).all()
    np.testing.assert_allclose(np.exp(result), 1, atol=1e-6)


def test_one_head_is_the_cosine():
    rng = np.random.default_rng(2)
    captions, images = (unit(rng.normal(size=(n, 8))) for n in (5, 4))
    np.testing.assert_allclose(MostSimilarHeads(1).block(images, captions), images @ captions.T)
