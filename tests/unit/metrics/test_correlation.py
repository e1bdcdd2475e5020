"""Correlations and pairwise accuracy against their formulas, scipy and slow loops."""

from itertools import combinations
from math import isnan

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.stats import kendalltau, pearsonr, rankdata, spearmanr

from contracts import forms
from counterfoil.benchmarks.answers import Scores
from counterfoil.errors import InputError
from counterfoil.evaluation.evaluate import evaluate, main_measures, measured_run, of
from counterfoil.metrics import correlation as pairs
from counterfoil.metrics.correlation import (
    kendall_tau_b,
    kendall_tau_c,
    middle_ranks,
    pearson,
    spearman,
    weighted_spearman,
    weighted_tau_b,
)
from counterfoil.metrics.weighted_correlation import WeightedCorrelation, influences
from counterfoil.report.results import RESULTS
from refusals import refuses


def test_pearson_by_hand_and_spearman_which_shares_ranks_of_equals():
    # Deviations (-1, 0, 1) and (-1, 1, 0): covariance 1 over sqrt(2 * 2); t = 0.5 / sqrt(0.75) on one degree
    # of freedom, whose two-sided tail is 1 - 2 * atan(t) / pi = 2 / 3.
    coefficient, p = pearson(np.array([1.0, 2.0, 3.0]), np.array([0.0, 2.0, 1.0]))
    assert coefficient == pytest.approx(0.5)
    assert p == pytest.approx(2 / 3)
    coefficient, _ = spearman(np.array([1.0, 2.0, 2.0, 4.0]), np.array([1.0, 10.0, 100.0, 1000.0]))
    # Ranks (1, 2.5, 2.5, 4) and (1, 2, 3, 4): covariance 4.5 over sqrt(4.5 * 5).
    assert coefficient == pytest.approx(4.5 / (4.5 * 5) ** 0.5)


@pytest.mark.parametrize("correlation", [pearson, spearman])
def test_a_constant_column_is_undefined_and_two_rows_are_refused(correlation):
    assert all(isnan(x) for x in correlation(np.ones(5), np.arange(5.0)))
    refuses("too few rows", correlation, np.arange(2.0), np.arange(2.0), error=InputError)


def test_tau_b_of_the_micro_check_and_by_counting_pairs():
    # FORMATS 0.4, from scipy's source.
    x = np.array([0.1, 0.4, 0.4, 0.3, 0.9, 0.7, 0.2, 0.65])
    y = np.array([1.0, 2.0, 3.0, 1.0, 4.0, 3.0, 2.0, 4.0])
    assert kendall_tau_b(x, y) == pytest.approx(0.7463904913, abs=1e-10)
    # Pairs of (1, 1), (2, 1), (3, 2): two agree, one is tied in the second: 2 / sqrt(3 * 2).
    assert kendall_tau_b(np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0, 2.0])) == pytest.approx(2 / 6**0.5)
    assert kendall_tau_b(np.array([1.0, 2.0]), np.array([5.0, 3.0])) == -1
    for tau in (kendall_tau_b, kendall_tau_c):
        assert isnan(tau(np.ones(4), np.arange(4.0)))
        refuses("too few rows for a correlation; given: 1", tau, np.ones(1), np.ones(1), error=InputError)


@pytest.mark.parametrize(
    ("many", "one"),
    [(weighted_tau_b, kendall_tau_b), (weighted_spearman, lambda x, y: spearman(x, y)[0])],
    ids=["tau", "spearman"],
)
def test_weights_are_copies_of_rows(many, one):
    rng = np.random.default_rng(0)
    values = rng.integers(0, 4, size=(20, 6, 3)).astype(float)
    weights = rng.integers(0, 3, size=(20, 6)).astype(float)
    result = many(values, weights)
    undefined = 0
    for draw in range(20):
        copies = np.repeat(values[draw], weights[draw].astype(int), axis=0)
        for a in range(3):
            for b in range(3):
                if len(copies) < 3:
                    continue
                expected = one(copies[:, a], copies[:, b])
                undefined += isnan(expected)
                assert result[draw, a, b] == pytest.approx(expected, abs=1e-12, nan_ok=True)
    assert undefined > 0


def test_a_weighted_column_that_holds_nan_is_undefined_and_equal_columns_give_exactly_1():
    values = np.random.default_rng(1).random((5, 4, 2))
    values[:, :, 1] = values[:, :, 0]
    assert (weighted_tau_b(values, np.ones((5, 4))) == 1).all()
    values[2, 1, 1] = np.nan
    result = weighted_spearman(values, np.ones((5, 4)))
    assert np.isnan(result[2, 0, 1])
    assert np.isnan(result[2, 1, 1])
    assert result[2, 0, 0] == 1


def test_middle_ranks_are_scipys():
    rng = np.random.default_rng(2)
    for n in (1, 2, 7, 60):
        values = rng.integers(0, 9, n) / 3
        assert middle_ranks(values).tolist() == rankdata(values).tolist()


def _written_out(x, y, clusters, weights):
    rows = np.repeat(np.arange(len(x)), weights[clusters].astype(int))
    x, y = x[rows], y[rows]
    if len(rows) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return [np.nan] * 4
    return [
        kendalltau(x, y).statistic,
        kendalltau(x, y, variant="c").statistic,
        spearmanr(x, y).statistic,
        pearsonr(x, y).statistic,
    ]


@given(st.data())
def test_equal_to_scipy_with_ties_everywhere(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    n = data.draw(st.integers(1, 90))
    x = rng.integers(0, data.draw(st.integers(1, 40)), n) * 0.1
    y = rng.integers(0, data.draw(st.integers(1, 17)), n) / 3
    clusters = np.unique(rng.integers(0, data.draw(st.integers(1, n)), n), return_inverse=True)[1]
    weights = rng.integers(0, 4, (3, clusters.max() + 1))
    points = WeightedCorrelation.of(x, y, clusters)
    expected = np.array([_written_out(x, y, clusters, w) for w in weights.astype(float)])
    assert points.correlations(weights.astype(float)) == pytest.approx(expected, abs=1e-12, nan_ok=True)
    signs = np.sign(np.subtract.outer(x, x)) * np.sign(np.subtract.outer(y, y))
    of_points = weights[:, clusters].astype(float)
    assert points.order(weights).tolist() == np.einsum("di,ij,dj->d", of_points, signs, of_points).tolist()


def test_continuous_ratings_and_many_points_in_several_blocks():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2, 3000))
    clusters = np.arange(3000) // 3
    weights = rng.integers(0, 3, (100, 1000)).astype(float)
    result = WeightedCorrelation.of(x, y, clusters).correlations(weights)
    for row in (0, 57, 99):
        assert result[row] == pytest.approx(_written_out(x, y, clusters, weights[row]), abs=1e-12)
    # Many samples and few have the same bits.
    few = [WeightedCorrelation.of(x, y, clusters).correlations(row[None])[0] for row in weights[::9]]
    assert (result[::9] == np.array(few)).all()


def test_what_agrees_throughout_is_exactly_one():
    grades = np.tile([1.0, 2.0, 3.0, 4.0], 25)
    weights = np.vstack([np.ones(100), np.random.default_rng(0).integers(0, 4, (50, 100))]).astype(float)
    result = WeightedCorrelation.of(grades, grades, np.arange(100)).correlations(weights)
    assert (result[0] == 1).all()
    assert (result[:, [0, 2]] == 1).all()
    # tau-c is 1 only where the four grades are as many.
    assert (result[1:, 1] < 1).any()


def test_points_that_are_no_numbers_and_an_item_alone_are_refused():
    for words, x in (("no points", np.empty(0)), ("finite", np.array([np.nan]))):
        clusters = np.zeros(len(x), np.int64)
        refuses(words, WeightedCorrelation.of, x, np.ones(len(x)), clusters, error=InputError)
    for measure in (pairs.pairwise_accuracy, pairs.fitted_tie):
        refuses("too few items for pairs", measure, np.ones(1), np.ones(1), error=InputError)


@pytest.mark.parametrize("levels", [2, 4, 30])
def test_they_are_derivatives_by_weight(levels):
    rng = np.random.default_rng(levels)
    scores, ratings = np.round(rng.normal(size=30), 1), rng.integers(0, levels, 30).astype(np.float64)
    ratings[:2] = 0, levels - 1
    heavy = np.full((60, 30), 1000.0)
    heavy[np.arange(30), np.arange(30)] += 1
    heavy[30 + np.arange(30), np.arange(30)] -= 1
    result = WeightedCorrelation.of(scores, ratings, np.arange(30)).correlations(heavy)
    np.testing.assert_allclose(influences(scores, ratings), (result[:30] - result[30:]) / 2 * 1000, atol=2e-6)


def test_columns_sum_to_nothing_and_constants_have_none():
    rng = np.random.default_rng(0)
    assert influences(rng.normal(size=50), rng.normal(size=50)).sum(axis=0) == pytest.approx(np.zeros(4))
    assert np.isnan(influences(np.ones(5), np.arange(5.0))).all()


def test_heavy_samples_are_exact():
    rng, clusters = np.random.default_rng(2), 500
    n = 3 * clusters
    x, y = rng.normal(size=n).round(2), rng.integers(0, 300, n).astype(float)
    weights = np.stack([rng.integers(0, 3, clusters), rng.integers(600_000, 900_000, clusters)])
    points = WeightedCorrelation.of(x, y, np.arange(n) % clusters)
    # Half of the ordered pairs, in Python's whole numbers.
    signs = np.sign(np.subtract.outer(x, x)) * np.sign(np.subtract.outer(y, y))
    of_clusters = sum(
        signs[:, start : start + clusters].reshape(3, clusters, clusters).sum(axis=0)
        for start in range(0, n, clusters)
    ).astype(np.int64)
    assert points.order(weights).tolist() == [float(int((row @ of_clusters) @ row)) for row in weights]


def counted(scores, ratings, tie):
    right = 0
    for i, j in combinations(range(len(scores)), 2):
        apart, rated = scores[i] - scores[j], ratings[i] - ratings[j]
        said = 0 if abs(apart) <= tie else 1 if apart > 0 else -1
        right += said == np.sign(rated)
    return right / (len(scores) * (len(scores) - 1) / 2)


@pytest.mark.parametrize("seed", range(6))
def test_the_measure_and_its_threshold_are_those_of_all_pairs(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    ratings = rng.integers(1, 5, 30).astype(np.float64)
    scores = ratings + rng.normal(scale=1.0, size=30)
    scores = np.round(scores, 1) if seed % 2 else scores
    # A few rows at a time.
    monkeypatch.setattr(pairs, "_BLOCK", 100)
    for tie in (0.0, 0.3, 10.0):
        assert pairs.pairwise_accuracy(scores, ratings, tie=tie) == pytest.approx(
            counted(scores, ratings, tie)
        )
    apart = np.unique(np.abs(scores[:, None] - scores))
    result = pairs.fitted_tie(scores, ratings)
    best = max(counted(scores, ratings, tie) for tie in apart)
    assert counted(scores, ratings, result) == pytest.approx(best)
    assert counted(scores, ratings, result) >= counted(scores, ratings, 0.0)
    assert pairs.tied_ratings(ratings) == pytest.approx(counted(0 * scores, ratings, 0.0))


def test_benchmarks_whose_authors_report_it_have_it_with_intervals_and_a_warning():
    names = ("pairwise_accuracy_fitted", "pearson", "pairwise_accuracy")
    grades = forms.grades(120)
    benchmark = forms.rated(grades, per_image=1, groups=2)
    plain = of(benchmark).measure_names(benchmark)
    assert not set(plain) & set(pairs.PAIR_MEASURES)
    card = benchmark.card.model_copy(update={"measures": names})
    benchmark = type(benchmark)(card, benchmark.images, benchmark.captions, benchmark.questions)
    assert set(of(benchmark).measure_names(benchmark)) == {*plain, *pairs.PAIR_MEASURES}
    assert main_measures(benchmark) == ("pearson",)
    scores = grades[:, 0] + np.random.default_rng(0).normal(size=120)
    result = evaluate(benchmark, Scores(scores), model="one", draws=200)
    strict, fitted = (result[name] for name in pairs.PAIR_MEASURES)
    assert strict.value == pytest.approx(counted(scores, grades[:, 0], 0.0))
    assert strict.chance == pytest.approx((1 - counted(0 * scores, grades[:, 0], 0.0)) / 2)
    assert strict.low < strict.value < strict.high
    assert fitted.value == pytest.approx(counted(scores, grades[:, 0], result.provenance["tie_threshold"]))
    assert fitted.chance is None
    # The spread over fresh samples is that which the effective number says.
    rng = np.random.default_rng(1)
    drawn = [
        pairs.pairwise_accuracy(g + rng.normal(size=120), g)
        for g in (rng.permutation(grades[:, 0]) for _ in range(300))
    ]
    expected = (strict.value * (1 - strict.value) / strict.effective) ** 0.5
    assert np.std(drawn) == pytest.approx(expected, rel=0.35)
    run = measured_run(benchmark, Scores(scores), result)
    assert any("flatters" in line for line in RESULTS["rated"].lines(run.result))
    for label, mask in benchmark.questions.groups().items():
        of_group = result.groups[label]["pairwise_accuracy_fitted"].value
        tie = pairs.fitted_tie(scores[mask], grades[mask, 0])
        assert of_group == pytest.approx(counted(scores[mask], grades[mask, 0], tie))
    constant = evaluate(benchmark, Scores(np.ones(120)), model="constant")
    assert (constant.measures, set(constant.undefined)) == ({}, {*plain, *pairs.PAIR_MEASURES})
