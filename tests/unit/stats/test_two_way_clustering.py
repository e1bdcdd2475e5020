"""What questions share against lists of all pairs, and crossed variances by hand."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.special import ndtr, stdtr, stdtrit

from counterfoil.stats.dependence import Dependence, Shared
from counterfoil.stats.intervals import cluster_interval, wilson
from counterfoil.stats.two_way_clustering import inflation, linear_variance
from paired_columns import difference_interval


def crossed(n, images, captions, seed=0, wide=1):
    rng = np.random.default_rng(seed)
    return Dependence(rng.integers(0, images, (n, wide)), rng.integers(0, captions, (n, wide)))


def pairs_of(shared):
    """The slow twin: for every two questions, whether they have an item in common that is not given."""
    n = len(shared)
    result = np.eye(n, dtype=bool)
    for of, taken in ((shared.images, shared.given_images), (shared.captions, shared.given_captions)):
        for i, j in product(range(n), repeat=2):
            result[i, j] |= any(a == b >= 0 and not taken[a] for a in of[i] for b in of[j])
    return result


@given(st.integers(0, 10**6), st.integers(1, 25), st.integers(1, 12), st.integers(1, 12), st.integers(1, 3))
def test_sums_over_pairs_equal_a_list_of_all_pairs(seed, n, images, captions, wide):
    shared = crossed(n, images, captions, seed, wide)
    alike = pairs_of(shared)
    values = np.random.default_rng(seed).normal(size=(n, 3))
    expected = np.einsum("im,ij,jm->m", values, alike, values)
    assert shared.shared.sums(values) == pytest.approx(expected, abs=1e-9)
    assert shared.shared.partners == pytest.approx(alike.sum(axis=1), abs=1e-9)
    assert shared.shared.n_independent == pytest.approx((1 / alike.sum(axis=1)).sum())
    assert shared.independent == (alike.sum() == n)


def test_where_sets_are_apart_it_is_the_variance_of_the_sets():
    # 40 images of four questions, captions of their own: the textbook variance of cluster means.
    values = np.random.default_rng(0).random((40, 4))
    shared = Dependence(np.repeat(np.arange(40), 4)[:, None], np.arange(160)[:, None])
    variance, freedom = linear_variance(shared, (values.reshape(-1, 1) - values.mean()) / 160)
    assert variance[0] == pytest.approx(values.mean(axis=1).var(ddof=1) / 40)
    assert freedom[0] == pytest.approx(39)
    assert not shared.crossed
    assert shared.shared.n_independent == 40


def test_two_ways_are_both_ways_less_what_is_in_both():
    # Every image with every caption, 12 x 15: Cameron, Gelbach and Miller's sum of three.
    rng = np.random.default_rng(1)
    table = rng.normal(size=(12, 1)) + rng.normal(size=(1, 15)) + rng.normal(size=(12, 15))
    image, caption = np.divmod(np.arange(180), 15)
    moved = (table - table.mean()) / 180
    by_image, by_caption = (moved.sum(axis=axis) ** 2 for axis in (1, 0))
    expected = by_image.sum() * 12 / 11 + by_caption.sum() * 15 / 14 - (moved**2).sum()
    variance, freedom = linear_variance(Dependence(image[:, None], caption[:, None]), moved.reshape(-1, 1))
    assert variance[0] == pytest.approx(expected)
    assert 11 < freedom[0] < 26


# -------------------------------------------------------------------------------- what is taken as given


def test_what_all_questions_share_is_given_and_an_only_image_is_not():
    """159 photographs, each with "a photo of a cat" and "a photo of a dog"; 154 right."""
    shared = Dependence(np.arange(159)[:, None], np.tile([[0, 1]], (159, 1)))
    assert shared.given_captions.tolist() == [True, True]
    assert shared.independent
    assert shared.crossed
    low, high = cluster_interval(np.repeat([[1.0], [0.0]], [154, 5], axis=0), shared)
    assert (low[0], high[0]) == pytest.approx(wilson(154, 159), abs=2e-3)
    beside = Dependence(np.stack([np.arange(30), np.full(30, 30)], axis=1), np.arange(30)[:, None])
    assert np.flatnonzero(beside.given_images).tolist() == [30]
    assert beside.independent
    alone = Dependence(np.zeros((30, 1), int), np.arange(30)[:, None])
    assert not alone.given_images.any()
    low, high = cluster_interval(np.eye(30)[:, :1], alone)
    assert (low[0], high[0]) == pytest.approx(wilson(1 / 30, 1), abs=1e-9)


@pytest.mark.parametrize(
    ("captions", "taken"),
    [
        (np.arange(40), []),
        (np.arange(40) % 5, []),
        (np.arange(40) % 4, []),
        (np.arange(40) % 3, [0, 1, 2]),
        # In 12 of 40, then each other in one: only the first.
        (np.concatenate([np.zeros(12, int), np.arange(1, 29)]), [0]),
        # 16 of 40, 12 of the other 24, 8 of the last 12; four are few.
        (np.repeat([0, 1, 2, 3], [16, 12, 8, 4]), [0, 1, 2]),
        # A quarter of eleven is less than three, and three are few.
        (np.concatenate([np.zeros(3, int), np.arange(1, 9)]), []),
    ],
)
def test_captions_in_more_than_a_quarter_of_what_is_left_are_given(captions, taken):
    shared = Dependence(np.arange(len(captions))[:, None], captions[:, None])
    assert np.flatnonzero(shared.given_captions).tolist() == taken


# ------------------------------------------------------------------------------- all users of the variance


def test_clusters_are_the_same_by_number_and_by_what_is_shared():
    shared = Dependence(np.repeat(np.arange(60), 3)[:, None], np.arange(180)[:, None])
    values = (np.random.default_rng(0).random((180, 2)) < 0.6).astype(np.float64)
    pair = np.array([[0, 1]])
    for by_sharing, by_clusters in (
        (cluster_interval(values, shared), cluster_interval(values, shared.components)),
        (difference_interval(values, shared, pair), difference_interval(values, shared.components, pair)),
    ):
        assert np.array_equal(np.array(by_sharing), np.array(by_clusters))
    # Draws of 60 clusters spread as the sum of squares does, by sqrt(59 / 60), and are normal.
    widened = (60 / 59) ** 0.5 * stdtrit(59, 0.975) / 1.959964
    assert inflation(shared, values - values.mean(axis=0)) == pytest.approx(np.full(2, widened))


def test_the_test_of_crossed_questions_is_that_of_a_student_t():
    """Many images and ten captions that lean one way: the p-value is that of the crossed standard error."""
    rng = np.random.default_rng(3)
    shared = Dependence((np.arange(600) // 2)[:, None], rng.integers(0, 10, 600)[:, None])
    assert shared.crossed
    lean = rng.normal(size=600) + rng.normal(size=10)[shared.captions[:, 0]] + 0.2
    values = np.stack([ndtr(lean), np.full(600, 0.5)], axis=1)
    gaps = values[:, :1] - values[:, 1:]
    p = difference_interval(values, shared, np.array([[0, 1]]))[2][0]
    variance, freedom = linear_variance(shared, (gaps - gaps.mean()) / 600)
    mean, discord = gaps.mean(), np.abs(gaps).mean()
    expected = 2 * stdtr(freedom[0], -abs(mean) / variance[0] ** 0.5 * (1 - mean**2 / discord) ** 0.5)
    assert p == pytest.approx(expected)
    assert freedom[0] < 20
    assert p > 100 * difference_interval(values, np.arange(600), np.array([[0, 1]]))[2][0]


def test_components_are_reached_through_others_and_accounts_of_the_same_questions_joined():
    one = Dependence(np.array([[0], [0], [1]]), np.array([[0], [1], [2]]))
    renamed = Dependence(np.array([[7], [7], [3]]), np.array([[2], [1], [0]]))
    other = Dependence(np.array([[0], [1], [2]]), np.array([[0], [1], [1]]))
    assert Dependence.joined([one, renamed]).images.shape == (3, 1)
    assert Dependence.joined([one, other]).components.tolist() == [0, 0, 0]
    assert Dependence.joined([one]).components.tolist() == [0, 0, 1]
    shared = Dependence(np.array([[0, 1], [2, 3], [3, 4]]), np.array([[0], [1], [2]]))
    assert (shared.components.tolist(), shared.counts) == ([0, 1, 1], (5, 3))


def test_a_hub_caption_costs_no_list_of_pairs():
    """23,937 questions as in ARO: images with several, captions from unique to thousands of repeats."""
    rng = np.random.default_rng(0)
    n = 23_937
    weights = 1 / np.arange(1, 4000)
    first = rng.choice(3999, size=n, p=weights / weights.sum())
    shared = Dependence(rng.integers(0, 5000, (n, 1)), np.stack([first, 4000 + first], axis=1))
    low, high = cluster_interval((rng.random((n, 3)) < 0.5).astype(np.float64), shared)
    assert ((high - low) < 0.05).all()
    assert len(np.unique(shared.components)) < 30
    assert len(Shared.of(n, np.arange(n), np.zeros(n, np.int64)).members) == n
