"""Measures of true and false statements against plain counting over pairs, resampling and closed forms."""

import itertools

import numpy as np
import pytest

from counterfoil.errors import InputError
from counterfoil.metrics import statements
from counterfoil.metrics.agreement import fleiss_kappa
from counterfoil.metrics.statements import WeightedStatements
from counterfoil.metrics.ties import Ties
from refusals import refuses

WORTH = {Ties.STRICT: 0.0, Ties.HALF: 0.5, Ties.OPTIMISTIC: 1.0}


def sample(seed, n=40, levels=8):
    rng = np.random.default_rng(seed)
    truth = rng.permutation(np.arange(n) < 3 * n // 8)
    return rng.integers(0, levels, n) / (levels - 1) + 0.0 * truth, truth


def pair(above, below, ties):
    return WORTH[ties] if above == below else float(above > below)


def counted(scores, truth, ties):
    true = [s for s, t in zip(scores, truth, strict=True) if t]
    false = [s for s, t in zip(scores, truth, strict=True) if not t]
    return sum(pair(a, b, ties) for a in true for b in false) / (len(true) * len(false))


def accuracies(scores, truth, at, ties):
    right = [pair(s, a, ties) if t else pair(a, s, ties) for s, t, a in zip(scores, truth, at, strict=True)]
    true = [r for r, t in zip(right, truth, strict=True) if t]
    false = [r for r, t in zip(right, truth, strict=True) if not t]
    return sum(right) / len(right), (sum(true) / len(true) + sum(false) / len(false)) / 2


@pytest.mark.parametrize("ties", Ties)
@pytest.mark.parametrize("seed", range(5))
def test_measures_are_those_counted_pair_by_pair(ties, seed):
    scores, truth = sample(seed)
    at = np.random.default_rng(seed).choice([0.4, 3 / 7], len(scores))
    # A tie is one half in AUROC, whatever the policy.
    assert statements.auroc(scores, truth) == pytest.approx(counted(scores, truth, Ties.HALF))
    plain, balanced = accuracies(scores, truth, at, ties)
    assert statements.accuracy(scores, truth, at, ties=ties) == pytest.approx(plain)
    assert statements.balanced_accuracy(scores, truth, at, ties=ties) == pytest.approx(balanced)
    # Everything turned around is as far on the other side of one half.
    assert statements.auroc(scores, ~truth) == pytest.approx(1 - counted(scores, truth, Ties.HALF))


@pytest.mark.parametrize("ties", Ties)
def test_weights_are_repetitions(ties):
    scores, truth = sample(3)
    clusters = np.arange(len(scores)) // 4
    right = np.stack([statements.correct_at(scores, truth, i, ties=ties) for i in (0.5, 0.3)], axis=1)
    ready = WeightedStatements(scores, truth, right, clusters, 10)
    weights = np.random.default_rng(0).integers(0, 4, (6, 10)).astype(np.float32)
    for row, result in zip(weights.astype(int), ready.measures(weights), strict=True):
        chosen = np.repeat(np.arange(len(scores)), row[clusters])
        s, t = scores[chosen], truth[chosen]
        at_half, fitted = (accuracies(s, t, np.full(len(s), i), ties) for i in (0.5, 0.3))
        np.testing.assert_allclose(result, [counted(s, t, Ties.HALF), *at_half, *fitted], atol=1e-12)
    np.testing.assert_array_equal(ready.values(), ready.measures(np.ones((2, 10)))[1])


@pytest.mark.parametrize("ties", Ties)
def test_influences_are_derivatives_by_the_weights(ties):
    scores, truth = sample(1)
    n = len(scores)
    right = np.stack([statements.correct_at(scores, truth, i, ties=ties) for i in (0.5, 0.3)], axis=1)
    ready = WeightedStatements(scores, truth, right, np.arange(n), n)
    result = ready.influences()
    np.testing.assert_allclose(result.sum(axis=0), 0, atol=1e-12)
    step = 1e-6
    nudged = ready.measures(np.ones((n, n)) + step * np.eye(n)) - ready.values()
    np.testing.assert_allclose(result, nudged / step, atol=1e-5)


def test_the_variance_of_auroc_is_delongs():
    scores, truth = sample(2, levels=1000)
    ready = WeightedStatements(scores, truth, np.full((40, 2), np.nan), np.arange(40), 40)
    true, false = scores[truth], scores[~truth]
    of_true = [np.mean([pair(a, b, Ties.HALF) for b in false]) for a in true]
    of_false = [np.mean([pair(a, b, Ties.HALF) for a in true]) for b in false]
    # DeLong with n in place of n - 1, as influences have it.
    expected = np.var(of_true) / len(true) + np.var(of_false) / len(false)
    assert (ready.influences()[:, 0] ** 2).sum() == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(6))
def test_a_threshold_is_the_best_of_all_middles(seed):
    scores, truth = sample(seed, n=24, levels=30)
    result = statements.threshold(scores, truth)
    middles = [(a + b) / 2 for a, b in itertools.pairwise(sorted(set(scores.tolist())))]
    worth = {m: accuracies(scores, truth, np.full(24, m), Ties.STRICT)[1] for m in middles}
    best = [m for m in middles if worth[m] == pytest.approx(max(worth.values()))]
    assert min(abs(result - m) for m in best) < 1e-12
    assert statements.threshold(np.full(4, 7.0), np.array([True, False] * 2)) == 7


def test_a_statement_has_no_part_in_its_own_threshold():
    scores, truth = sample(4, n=30)
    folds = np.arange(30) % 3
    before = statements.cross_fitted(scores, truth, folds)
    changed = np.where(folds == 1, np.random.default_rng(0).normal(size=30), scores)
    after = statements.cross_fitted(changed, truth, folds)
    np.testing.assert_array_equal(before[folds == 1], after[folds == 1])
    assert (before[folds != 1] != after[folds != 1]).any()
    # Fitted to noise, a threshold beats chance on its own questions, and not on others.
    rng = np.random.default_rng(5)
    own, other = [], []
    for _ in range(150):
        s, t = rng.normal(size=40), rng.permutation(np.arange(40) < 20)
        own.append(statements.balanced_accuracy(s, t, statements.threshold(s, t)))
        other.append(statements.balanced_accuracy(s, t, statements.cross_fitted(s, t, np.arange(40) % 10)))
    assert np.mean(own) > 0.56
    assert abs(np.mean(other) - 0.5) < 0.025


def test_one_kind_of_statement_has_no_auroc_and_no_threshold():
    scores, truth = np.array([0.1, 0.9]), np.array([True, True])
    for measure in (statements.auroc, statements.balanced_accuracy, statements.threshold):
        refuses("not both true and false", measure, scores, truth, error=InputError)
    with pytest.raises(InputError, match="no other fold"):
        statements.cross_fitted(scores, np.array([True, False]), np.zeros(2, dtype=np.int64))
    assert np.isnan(statements.placements(scores, truth)).all()


def test_fleiss_kappa_of_published_and_plain_examples():
    # The worked example of Fleiss's measure in common use: 10 subjects, 14 raters, 5 categories.
    rows = "0 0 0 0 14; 0 2 6 4 2; 0 0 3 5 6; 0 3 9 2 0; 2 2 8 1 1; 7 7 0 0 0; 3 2 6 3 0; 2 5 3 2 2; "
    table = np.array([row.split() for row in f"{rows}6 5 2 1 0; 0 2 2 3 7".split(";")], dtype=int)
    assert fleiss_kappa(table) == pytest.approx(0.20993, abs=1e-5)
    first, second = np.array([0, 0, 1, 1, 1, 0]), np.array([0, 1, 1, 1, 0, 0])
    votes = np.stack([(first == k).astype(int) + (second == k) for k in (0, 1)], axis=1)
    # Two raters of the same habits: Cohen's kappa.
    assert fleiss_kappa(votes) == pytest.approx(
        pytest.importorskip("sklearn.metrics").cohen_kappa_score(first, second)
    )
    # An item of a single vote says nothing of agreement.
    assert fleiss_kappa(np.vstack([votes, [[1, 0]]])) == fleiss_kappa(votes)
    assert np.isnan(fleiss_kappa(np.array([[3, 0], [2, 0]])))
    assert np.isnan(fleiss_kappa(np.array([[1, 0]])))
