"""Pairwise accuracy and its fitted threshold of ties against counting every pair at every threshold."""

from itertools import combinations

import numpy as np
import pytest

from contracts import forms
from counterfoil.benchmarks.answers import Scores
from counterfoil.errors import InputError
from counterfoil.evaluation.evaluate import evaluate, main_measures, measured_run, of
from counterfoil.metrics import correlation as pairs
from counterfoil.report.results import RESULTS
from refusals import refuses


def counted(scores, ratings, tie):
    """Pair by pair."""
    right = 0
    for i, j in combinations(range(len(scores)), 2):
        apart, rated = scores[i] - scores[j], ratings[i] - ratings[j]
        said = 0 if abs(apart) <= tie else 1 if apart > 0 else -1
        right += said == np.sign(rated)
    return right / (len(scores) * (len(scores) - 1) / 2)


def sample(seed, n=30):
    rng = np.random.default_rng(seed)
    ratings = rng.integers(1, 5, n).astype(np.float64)
    scores = ratings + rng.normal(scale=1.0, size=n)
    return (np.round(scores, 1) if seed % 2 else scores), ratings


@pytest.mark.parametrize("seed", range(6))
def test_the_measure_and_its_threshold_are_those_of_all_pairs(seed, monkeypatch):
    scores, ratings = sample(seed)
    # A few rows at a time.
    monkeypatch.setattr(pairs, "_BLOCK", 100)
    for tie in (0.0, 0.3, 10.0):
        assert pairs.pairwise_accuracy(scores, ratings, tie=tie) == pytest.approx(
            counted(scores, ratings, tie)
        )
    apart = np.unique(np.abs(scores[:, None] - scores))
    found = pairs.fitted_tie(scores, ratings)
    best = max(counted(scores, ratings, tie) for tie in apart)
    assert counted(scores, ratings, found) == pytest.approx(best)
    assert counted(scores, ratings, found) >= counted(scores, ratings, 0.0)
    assert pairs.tied_ratings(ratings) == pytest.approx(counted(0 * scores, ratings, 0.0))


def test_an_item_alone_has_no_pairs():
    for measure in (pairs.pairwise_accuracy, pairs.fitted_tie):
        refuses("too few items for pairs", measure, np.ones(1), np.ones(1), error=InputError)


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
    result = evaluate(benchmark, Scores(scores), scorer="one", draws=200)
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
    constant = evaluate(benchmark, Scores(np.ones(120)), scorer="constant")
    assert constant.measures == {}
    assert set(constant.undefined) == {*plain, *pairs.PAIR_MEASURES}
