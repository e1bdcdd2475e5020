"""Correlations with ratings: scorers of known answers, official protocols, what is not defined."""

import json

import numpy as np
import pytest
from scipy.stats import kendalltau, pearsonr, spearmanr

from contracts.forms import grades, rated
from counterfoil.benchmarks.answers import Outcomes, Scores
from counterfoil.benchmarks.forms import Rated
from counterfoil.errors import InputError, ScoreError, UnknownNameError
from counterfoil.evaluation.evaluate import chance, evaluate, main_measures, of, per_item
from counterfoil.evaluation.result import Result
from counterfoil.metrics.weighted_correlation import MEASURES
from refusals import refuses


def test_an_oracle_is_right_throughout():
    benchmark = rated(grades(80))
    result = evaluate(benchmark, Scores(benchmark.judged.ratings[:, 0] / 7), scorer="oracle", draws=500)
    assert tuple(result.measures) == MEASURES
    for name, estimate in result.measures.items():
        assert estimate.value == pytest.approx(1.0, abs=1e-12), name
        assert estimate.low <= estimate.value <= estimate.high
        assert (estimate.n, estimate.chance) == (80, 0.0)
    # In other samples the grades are not as many of each, and tau-c is below 1.
    assert result.measures["kendall_tau_b"].low == 1.0
    assert result.measures["kendall_tau_c"].low < 1.0


def test_every_rating_is_a_point():
    rng = np.random.default_rng(0)
    ratings = grades(60, raters=3)
    ratings[rng.random(ratings.shape) < 0.3] = np.nan
    ratings[np.isnan(ratings).all(axis=1), 0] = 2.0
    scores = np.round(np.nanmean(ratings, axis=1) + rng.normal(size=60), 1)
    result = evaluate(rated(ratings), Scores(scores), scorer="s", draws=100)
    given = ~np.isnan(ratings)
    x, y = np.repeat(scores[:, None], 3, axis=1)[given], ratings[given]
    expected = {
        "kendall_tau_b": kendalltau(x, y).statistic,
        "kendall_tau_c": kendalltau(x, y, variant="c").statistic,
        "spearman": spearmanr(x, y).statistic,
        "pearson": pearsonr(x, y).statistic,
    }
    assert {name: e.value for name, e in result.measures.items()} == pytest.approx(expected, abs=1e-12)
    assert result.measures["pearson"].n == given.sum()


def test_raters_apart_are_averaged_and_scores_rounded_first():
    rng = np.random.default_rng(1)
    ratings = grades(60, raters=3)
    ratings[:7, 1] = np.nan
    scores = ratings[:, 0] * 1e-3 + rng.normal(size=60) * 1e-3
    benchmark = rated(ratings, raters="apart", decimals=3)
    result = evaluate(benchmark, Scores(scores), scorer="s", draws=100)
    rounded = np.round(scores, 3)
    taus = [
        kendalltau(rounded[given], column[given]).statistic
        for column in ratings.T
        for given in [~np.isnan(column)]
    ]
    assert result.measures["kendall_tau_b"].value == pytest.approx(np.mean(taus))
    assert result.measures["kendall_tau_b"].n == 60
    unrounded = evaluate(rated(ratings, raters="apart"), Scores(scores), scorer="s", draws=100)
    assert unrounded.measures["kendall_tau_b"].value != result.measures["kendall_tau_b"].value


def test_the_interval_is_of_whole_images():
    """Five copies of a caption under one image: drawn by image they are one caption."""
    rng = np.random.default_rng(2)
    ratings, noise = grades(100), rng.normal(size=100)
    scores = ratings[:, 0] + 2 * noise
    one = evaluate(rated(ratings, per_image=1), Scores(scores), scorer="s", draws=2000)
    copies = np.repeat(np.arange(100), 5)
    five = evaluate(rated(ratings[copies], per_image=5), Scores(scores[copies]), scorer="s", draws=2000)
    for name in MEASURES:
        a, b = one.measures[name], five.measures[name]
        assert b.value == pytest.approx(a.value, abs=0.02)
        assert b.high - b.low == pytest.approx(a.high - a.low, rel=0.05)
    apart = evaluate(rated(ratings[copies], per_image=1), Scores(scores[copies]), scorer="s", draws=2000)
    assert apart.measures["pearson"].high - apart.measures["pearson"].low == pytest.approx(
        (one.measures["pearson"].high - one.measures["pearson"].low) / 5**0.5, rel=0.1
    )


def test_equal_scores_have_no_correlation_and_a_note_says_so():
    benchmark = rated(grades(40), groups=2)
    result = evaluate(benchmark, Scores(np.ones(40)), scorer="blind:constant", draws=50)
    assert result.measures == {}
    assert result.groups == {}
    assert result.provenance["undefined"] == dict.fromkeys(MEASURES, "all scores are equal")
    assert (result.ties["rate"], result.ties["questions"]) == (1.0, None)
    assert Result.from_json(json.loads(json.dumps(result.to_json(), allow_nan=False))) == result
    flat = evaluate(rated(np.ones((40, 1))), Scores(np.arange(40.0)), scorer="s", draws=50)
    assert set(flat.provenance["undefined"].values()) == {"all ratings are equal"}
    ratings = np.hstack([grades(40), np.full((40, 1), 3.0)])
    apart = evaluate(rated(ratings, raters="apart"), Scores(np.arange(40.0)), scorer="s", draws=50)
    assert set(apart.provenance["undefined"].values()) == {"all ratings of one rater are equal"}
    # One rating of one of them correlates with nothing, and it is no tie of scores.
    ratings[1:, 1] = np.nan
    alone = evaluate(rated(ratings, raters="apart"), Scores(np.arange(40.0)), scorer="s", draws=50)
    assert set(alone.provenance["undefined"].values()) == {"fewer than two ratings of one rater"}


def test_groups_leave_out_what_is_not_defined_in_them():
    ratings = grades(40)
    benchmark = rated(ratings, groups=2)
    scores = np.random.default_rng(0).normal(size=40)
    scores[np.array(benchmark.questions.groupings["source"]) == "b"] = 0.5
    result = evaluate(benchmark, Scores(scores), scorer="s", draws=50)
    assert list(result.groups) == ["a"]
    inside = np.array(benchmark.questions.groupings["source"]) == "a"
    assert result.groups["a"]["kendall_tau_b"].value == pytest.approx(
        kendalltau(scores[inside], ratings[inside, 0]).statistic
    )
    assert result.groups["a"]["kendall_tau_b"].n == 20
    json.dumps(result.to_json(), allow_nan=False)


def test_one_image_says_nothing_of_the_spread():
    benchmark = rated(grades(8), per_image=8)
    estimate = evaluate(benchmark, Scores(np.arange(8.0)), scorer="s", draws=50).measures["spearman"]
    assert (estimate.low, estimate.high) == (-1.0, 1.0)


def test_the_question_about_ratings():
    benchmark = rated(grades(8))
    assert of(benchmark).measure_names(benchmark) == main_measures(benchmark) == MEASURES
    assert chance(benchmark) == dict.fromkeys(MEASURES, 0.0)
    assert per_item(benchmark, Scores(np.arange(8.0))) == {}
    of(benchmark).check_measures(benchmark, ["spearman"])
    refuses("spearman", of(benchmark).check_measures, benchmark, ["spearmen"], error=UnknownNameError)
    with pytest.raises(UnknownNameError, match="pearson"):
        evaluate(benchmark, Scores(np.arange(8.0)), scorer="s", measures=["peerson"])
    only = evaluate(benchmark, Scores(np.arange(8.0)), scorer="s", measures=["spearman"], draws=20)
    assert list(only.measures) == ["spearman"]
    for interval in ("wilson", "folds"):
        with pytest.raises(InputError, match=f"no interval of the kind '{interval}'"):
            evaluate(benchmark, Scores(np.arange(8.0)), scorer="s", interval=interval)
    with pytest.raises(ScoreError, match="right and wrong say nothing"):
        evaluate(benchmark, Outcomes({"accuracy": np.ones(8, bool)}), scorer="s")
    with pytest.raises(ScoreError, match="not a finite number"):
        evaluate(benchmark, Scores(np.full(8, np.nan)), scorer="s")


def test_the_card_says_which_correlations_are_compared():
    benchmark = rated(grades(8))
    card = benchmark.card.model_copy(update={"measures": ("kendall_tau_c", "made_up")})
    assert main_measures(
        type(benchmark)(card, benchmark.images, benchmark.captions, benchmark.questions)
    ) == ("kendall_tau_c",)


@pytest.mark.slow
@pytest.mark.parametrize("raters", ["points", "apart"])
def test_noise_has_intervals_around_nothing(raters):
    """Of 300 scorers of noise the intervals of 95 % hold 0, give or take four standard errors."""
    rng = np.random.default_rng(3)
    ratings = np.clip(np.rint(2.5 + rng.normal(size=(60, 1)) + rng.normal(size=(60, 2)) / 2), 1, 4)
    benchmark = rated(ratings.repeat(3, axis=0), per_image=3, raters=raters)
    assert isinstance(benchmark.questions, Rated)
    held = np.zeros(len(MEASURES))
    for _ in range(300):
        # Captions of one image are scored alike.
        scores = rng.normal(size=60).repeat(3) + rng.normal(size=180)
        result = evaluate(benchmark, Scores(scores), scorer="noise", draws=400)
        held += [result.measures[name].low <= 0 <= result.measures[name].high for name in MEASURES]
    # Percentiles of 60 clusters cover a little less than they say.
    assert (np.abs(held / 300 - 0.94) <= 4 * (0.95 * 0.05 / 300) ** 0.5).all(), held
