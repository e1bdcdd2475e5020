"""Rated and preferred captions: known answers, official protocols, differences, captions that repeat."""

import json

import numpy as np
import pytest
from scipy.stats import kendalltau, pearsonr, spearmanr

from contracts.forms import grades, preferred, rated
from counterfoil.benchmarks.answers import Outcomes, Scores
from counterfoil.benchmarks.benchmark import Benchmark, Card
from counterfoil.benchmarks.forms import Rated
from counterfoil.benchmarks.records import Caption, Image
from counterfoil.errors import InputError, ScoreError, UnknownNameError
from counterfoil.evaluation.compare import compare
from counterfoil.evaluation.evaluate import chance, evaluate, main_measures, of, per_item
from counterfoil.evaluation.forms import rated as of_ratings
from counterfoil.evaluation.result import Result
from counterfoil.metrics.contrast import preference_accuracy
from counterfoil.metrics.ties import Ties
from counterfoil.metrics.weighted_correlation import MEASURES
from counterfoil.stats.dependence import Dependence
from evaluation.made_runs import evaluated
from refusals import refuses


def test_an_oracle_is_right_throughout():
    benchmark = rated(grades(80))
    result = evaluate(benchmark, Scores(benchmark.judged.ratings[:, 0] / 7), model="oracle", draws=500)
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
    result = evaluate(rated(ratings), Scores(scores), model="s", draws=100)
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
    result = evaluate(rated(ratings, raters="apart", decimals=3), Scores(scores), model="s", draws=100)
    rounded = np.round(scores, 3)
    given = [(column, ~np.isnan(column)) for column in ratings.T]
    taus = [kendalltau(rounded[there], column[there]).statistic for column, there in given]
    assert result.measures["kendall_tau_b"].value == pytest.approx(np.mean(taus))
    assert result.measures["kendall_tau_b"].n == 60
    unrounded = evaluate(rated(ratings, raters="apart"), Scores(scores), model="s", draws=100)
    assert unrounded.measures["kendall_tau_b"].value != result.measures["kendall_tau_b"].value


def test_the_interval_is_of_whole_images():
    """Five copies of a caption under one image: drawn by image they are one caption."""
    ratings, noise = grades(100), np.random.default_rng(2).normal(size=100)
    scores = ratings[:, 0] + 2 * noise
    one = evaluate(rated(ratings, per_image=1), Scores(scores), model="s", draws=2000)
    copies = np.repeat(np.arange(100), 5)
    five = evaluate(rated(ratings[copies], per_image=5), Scores(scores[copies]), model="s", draws=2000)
    for name in MEASURES:
        a, b = one.measures[name], five.measures[name]
        assert b.value == pytest.approx(a.value, abs=0.02)
        assert b.high - b.low == pytest.approx(a.high - a.low, rel=0.05)
    apart = evaluate(rated(ratings[copies], per_image=1), Scores(scores[copies]), model="s", draws=2000)
    assert apart.measures["pearson"].high - apart.measures["pearson"].low == pytest.approx(
        (one.measures["pearson"].high - one.measures["pearson"].low) / 5**0.5, rel=0.1
    )


def test_equal_scores_have_no_correlation_and_a_note_says_so():
    result = evaluate(rated(grades(40), groups=2), Scores(np.ones(40)), model="blind:constant", draws=50)
    assert (result.measures, result.groups) == ({}, {})
    assert result.provenance["undefined"] == dict.fromkeys(MEASURES, "all scores are equal")
    assert (result.ties["rate"], result.ties["questions"]) == (1.0, None)
    assert Result.from_json(json.loads(json.dumps(result.to_json(), allow_nan=False))) == result
    flat = evaluate(rated(np.ones((40, 1))), Scores(np.arange(40.0)), model="s", draws=50)
    assert set(flat.provenance["undefined"].values()) == {"all ratings are equal"}
    ratings = np.hstack([grades(40), np.full((40, 1), 3.0)])
    apart = evaluate(rated(ratings, raters="apart"), Scores(np.arange(40.0)), model="s", draws=50)
    assert set(apart.provenance["undefined"].values()) == {"all ratings of one rater are equal"}
    # One rating of one of them correlates with nothing, and it is no tie of scores.
    ratings[1:, 1] = np.nan
    alone = evaluate(rated(ratings, raters="apart"), Scores(np.arange(40.0)), model="s", draws=50)
    assert set(alone.provenance["undefined"].values()) == {"fewer than two ratings of one rater"}


def test_groups_leave_out_what_is_not_defined_in_them():
    ratings = grades(40)
    benchmark = rated(ratings, groups=2)
    scores = np.random.default_rng(0).normal(size=40)
    scores[np.array(benchmark.questions.groupings["source"]) == "b"] = 0.5
    result = evaluate(benchmark, Scores(scores), model="s", draws=50)
    assert list(result.groups) == ["a"]
    inside = np.array(benchmark.questions.groupings["source"]) == "a"
    assert result.groups["a"]["kendall_tau_b"].value == pytest.approx(
        kendalltau(scores[inside], ratings[inside, 0]).statistic
    )
    assert result.groups["a"]["kendall_tau_b"].n == 20
    json.dumps(result.to_json(), allow_nan=False)


def test_one_image_says_nothing_of_the_spread_and_intervals_know_that_questions_share_one():
    benchmark = rated(grades(8), per_image=8)
    estimate = evaluate(benchmark, Scores(np.arange(8.0)), model="s", draws=50).measures["spearman"]
    assert (estimate.low, estimate.high) == (-1.0, 1.0)
    votes = _votes(40)
    scores = Scores(np.random.default_rng(3).normal(size=(40, 2)))
    results = [evaluate(preferred(votes, per_image=k), scores, model="s", draws=50) for k in (1, 2)]
    assert [result.provenance["interval"]["method"] for result in results] == ["wilson", "clusters"]


def test_the_question_about_ratings_and_the_correlations_that_its_card_names():
    benchmark = rated(grades(8))
    assert of(benchmark).measure_names(benchmark) == main_measures(benchmark) == MEASURES
    assert chance(benchmark) == dict.fromkeys(MEASURES, 0.0)
    assert per_item(benchmark, Scores(np.arange(8.0))) == {}
    of(benchmark).check_measures(benchmark, ["spearman"])
    refuses("spearman", of(benchmark).check_measures, benchmark, ["spearmen"], error=UnknownNameError)
    with pytest.raises(UnknownNameError, match="pearson"):
        evaluate(benchmark, Scores(np.arange(8.0)), model="s", measures=["peerson"])
    only = evaluate(benchmark, Scores(np.arange(8.0)), model="s", measures=["spearman"], draws=20)
    assert list(only.measures) == ["spearman"]
    with pytest.raises(InputError, match="no interval of the kind 'wilson'"):
        evaluate(benchmark, Scores(np.arange(8.0)), model="s", interval="wilson")
    with pytest.raises(ScoreError, match="right and wrong say nothing"):
        evaluate(benchmark, Outcomes({"accuracy": np.ones(8, bool)}), model="s")
    with pytest.raises(ScoreError, match="not a finite number"):
        evaluate(benchmark, Scores(np.full(8, np.nan)), model="s")
    card = benchmark.card.model_copy(update={"measures": ("kendall_tau_c", "made_up")})
    assert main_measures(
        type(benchmark)(card, benchmark.images, benchmark.captions, benchmark.questions)
    ) == ("kendall_tau_c",)


@pytest.mark.slow
@pytest.mark.parametrize("raters", ["points", "apart"])
def test_noise_has_intervals_around_nothing(raters):
    """Of 300 models of noise the intervals of 95 % hold 0, give or take four standard errors."""
    rng = np.random.default_rng(3)
    ratings = np.clip(np.rint(2.5 + rng.normal(size=(60, 1)) + rng.normal(size=(60, 2)) / 2), 1, 4)
    benchmark = rated(ratings.repeat(3, axis=0), per_image=3, raters=raters)
    assert isinstance(benchmark.questions, Rated)
    held = np.zeros(len(MEASURES))
    for _ in range(300):
        # Captions of one image are scored alike.
        scores = rng.normal(size=60).repeat(3) + rng.normal(size=180)
        result = evaluate(benchmark, Scores(scores), model="noise", draws=400)
        held += [result.measures[name].low <= 0 <= result.measures[name].high for name in MEASURES]
    # Percentiles of 60 clusters cover a little less than they say.
    assert (np.abs(held / 300 - 0.94) <= 4 * (0.95 * 0.05 / 300) ** 0.5).all(), held


def _run(name, benchmark, values, ties="strict"):
    return evaluated(name, benchmark, Scores(values), draws=20, ties=ties)


def _people(rng, images, each, raters):
    """How good captions are, some images having better ones than others, and what people gave them."""
    quality = rng.normal(size=images).repeat(each) * 0.6 + rng.normal(size=images * each) * 0.8
    ratings = quality[:, None] + 0.5 * rng.normal(size=(images * each, raters))
    return quality, np.clip(np.rint(2.5 + ratings), 1, 4)


@pytest.mark.parametrize("raters", ["points", "apart"])
def test_a_better_metric_is_found(raters):
    rng = np.random.default_rng(0)
    quality, ratings = _people(rng, 80, 4, 3)
    benchmark = rated(ratings, per_image=4, raters=raters)
    noise = rng.normal(size=(3, len(quality)))
    scores = {"good": noise[0], "poor": 4 * noise[1], "as poor": 4 * noise[2]}
    runs = [_run(name, benchmark, quality + off) for name, off in scores.items()]
    (comparison,) = compare(runs, baseline="poor")
    result = {(d.a, d.b, d.measure): d for d in comparison.differences}
    assert len(result) == 3 * len(MEASURES)
    for measure in MEASURES:
        better, same = result["good", "poor", measure], result["as poor", "poor", measure]
        expected = runs[0].result.measures[measure].value - runs[1].result.measures[measure].value
        assert better.value == pytest.approx(expected, abs=1e-12)
        assert 0 < better.low < better.value < better.high
        assert better.p_holm < 0.02
        assert better.mcnemar is None
        assert same.low < 0 < same.high
        assert same.p_holm > 0.05
    assert {d.a for d in comparison.against_baseline()} == {"good", "as poor"}
    (again,) = compare(runs, baseline="poor")
    assert again.differences == comparison.differences


def test_the_interval_is_of_paired_samples():
    """Two metrics that are nearly the same differ by little, however far either may be off."""
    rng = np.random.default_rng(1)
    quality, ratings = _people(rng, 60, 2, 1)
    noise = rng.normal(size=len(quality))
    benchmark = rated(ratings, per_image=2)
    other = quality + noise + 0.05 * rng.normal(size=len(quality))
    runs = [_run("a", benchmark, quality + noise), _run("b", benchmark, other)]
    (comparison,) = compare(runs)
    for d in comparison.differences:
        own = runs[0].result.measures[d.measure]
        assert d.high - d.low < 0.3 * (own.high - own.low)


def test_models_without_a_correlation_are_left_out_of_the_tests():
    benchmark = rated(grades(40))
    scores = {"blind:constant": np.zeros(40), "a": benchmark.judged.ratings[:, 0]}
    scores["b"] = np.random.default_rng(0).normal(size=40)
    runs = [_run(name, benchmark, of) for name, of in scores.items()]
    (comparison,) = compare(runs)
    assert {(d.a, d.b) for d in comparison.differences} == {("a", "b")}
    assert all(0 < d.p <= d.p_holm <= 1 for d in comparison.differences)
    assert len(comparison.runs) == 3
    (blind,) = compare([runs[0], _run("c", benchmark, np.ones(40))])
    assert blind.differences == ()


def test_other_ratings_cannot_be_paired_and_ties_do_not_matter():
    benchmark, other = rated(grades(40)), rated(grades(40, seed=1))
    scores = np.random.default_rng(0).normal(size=40)
    with pytest.raises(InputError, match="other ratings or votes"):
        compare([_run("a", benchmark, scores), _run("b", other, scores)])
    (comparison,) = compare([_run("a", benchmark, scores), _run("b", benchmark, -scores, ties="half")])
    assert comparison.differences
    votes = np.array([[3.0, 1.0], [1.0, 3.0]] * 5)
    with pytest.raises(InputError, match="other ratings or votes"):
        compare([_run("a", preferred(votes), votes), _run("b", preferred(votes[::-1]), votes)])


def test_preferences_are_compared_question_by_question():
    rng = np.random.default_rng(2)
    first = rng.integers(0, 2, 60).astype(float)
    votes = np.stack([first, 1 - first], axis=1)
    benchmark = preferred(votes, per_image=1)
    scores = {"good": votes + 0.3 * rng.normal(size=(60, 2)), "noise": rng.normal(size=(60, 2))}
    (comparison,) = compare([_run(name, benchmark, of) for name, of in scores.items()])
    (result,) = comparison.differences
    assert (result.measure, result.p < 0.01, result.mcnemar is not None) == ("accuracy", True, True)


@pytest.mark.slow
@pytest.mark.parametrize("raters", ["points", "apart"])
@pytest.mark.parametrize("rounded", [False, True])
def test_size_and_power(raters, rounded):
    """Of 400 pairs of equally good metrics 5 % have p < 0.05, give or take; of unequal ones far more.

    Captions of one image share an error in each metric, so a test that took captions as independent would
    find too much. The interval of the difference holds 0 as often as it should.
    """
    rng = np.random.default_rng(3)
    repetitions = 400
    result, held, power = np.zeros((3, len(MEASURES)))
    for _ in range(repetitions):
        quality, ratings = _people(rng, 80, 4, 2)
        benchmark = rated(ratings, per_image=4, raters=raters)

        def metric(noise, quality=quality, benchmark=benchmark):
            scores = quality + noise * (rng.normal(size=80).repeat(4) + rng.normal(size=320))
            return _run(f"{noise}/{rng.random()}", benchmark, np.rint(scores) if rounded else scores)

        (same,) = compare([metric(1.0), metric(1.0)])
        result += [d.p < 0.05 for d in same.differences]
        held += [d.low <= 0 <= d.high for d in same.differences]
        (other,) = compare([metric(0.6), metric(1.2)])
        power += [d.p < 0.05 for d in other.differences]
    error = 4 * (0.05 * 0.95 / repetitions) ** 0.5
    assert (np.abs(result / repetitions - 0.05) < error).all(), result / repetitions
    assert (np.abs(held / repetitions - 0.95) < error).all(), held / repetitions
    assert (power / repetitions > 0.8).all(), power / repetitions


def judged(images, captions, n, rng):
    """One rating of n captions of a pool, each with some image; captions have a quality of their own."""
    image, caption = np.arange(n) % images, rng.integers(0, captions, n)
    quality = rng.normal(size=captions)[caption] + rng.normal(size=n)
    return Benchmark(
        Card(name="mine", title="Mine", form="rated"),
        tuple(Image(f"i{i}") for i in range(images)),
        tuple(Caption(f"c{i}", f"text {i}") for i in range(captions)),
        Rated(
            tuple(map(str, range(n))), captions=caption, images=image, ratings=np.round(quality, 1)[:, None]
        ),
    )


def scored(benchmark, rng, captions):
    """Scores that lean on captions too, though they have nothing to do with the ratings."""
    questions = benchmark.judged
    return Scores(rng.normal(size=captions)[questions.captions] + rng.normal(size=len(questions)))


def covers(repetitions, interval):
    """How often 0 is in the interval of Pearson's correlation, where that is the truth."""
    inside = 0
    for seed in range(repetitions):
        rng = np.random.default_rng(seed)
        benchmark = judged(150, 25, 300, rng)
        scores = scored(benchmark, rng, 25)
        estimate = evaluate(
            benchmark, scores, model="s", interval=interval, draws=200, measures=("pearson",)
        ).measures["pearson"]
        inside += estimate.low <= 0 <= estimate.high
    return inside / repetitions


@pytest.mark.slow
def test_coverage_of_correlations_over_many_repetitions():
    assert covers(80, "clusters") < 0.8
    # 91.6 % of these thousand seeds, with 25 captions that make half of both scores and ratings: so few items
    # do not tell their own variance. Two standard errors; of images alone it is 66 %.
    assert 0.898 < covers(1000, "auto") < 0.934


def test_units_are_images_and_samples_are_as_before_where_no_caption_repeats():
    benchmark = judged(40, 200, 200, np.random.default_rng(0))
    unique = Dependence(benchmark.dependence.images, np.arange(200)[:, None])
    assert np.array_equal(unique.components, np.arange(200) % 40)
    images = of_ratings.shared_by(benchmark.dependence, of_ratings.IntervalMethod.CLUSTERS, images_alone=True)
    assert np.array_equal(images.units, unique.units)


def test_differences_know_of_captions_too():
    rng = np.random.default_rng(4)
    benchmark = judged(150, 25, 300, rng)
    runs = [evaluated(name, benchmark, scored(benchmark, rng, 25), draws=50) for name in ("a", "b")]
    tested = {kind: compare(runs, interval=kind)[0].differences for kind in ("auto", "clusters")}
    result = {kind: {d.measure: d for d in of_kind} for kind, of_kind in tested.items()}
    for measure in MEASURES:
        wide, narrow = result["auto"][measure], result["clusters"][measure]
        assert wide.value == narrow.value
        assert wide.high - wide.low > 1.2 * (narrow.high - narrow.low)
        assert wide.p > narrow.p


def _votes(n, seed=0):
    first = np.random.default_rng(seed).permutation(np.r_[np.zeros(n // 2), np.ones(n - n // 2)])
    return np.stack([first, 1 - first], axis=1) * 7 + 2


def test_an_oracle_and_its_opposite():
    votes = _votes(40)
    benchmark = preferred(votes, groups=4, macro=True)
    result = evaluate(benchmark, Scores(votes / 9), model="oracle", draws=200)
    assert {name: e.value for name, e in result.measures.items()} == {"accuracy": 1.0, "accuracy_macro": 1.0}
    assert result.measures["accuracy"].low > 0.8
    assert list(result.groups) == ["HC", "HI", "HM", "MM"]
    assert evaluate(benchmark, Scores(-votes), model="no", draws=20).measures["accuracy"].value == 0
    assert main_measures(benchmark) == ("accuracy",)
    assert of(benchmark).measure_names(benchmark) == ("accuracy", "accuracy_macro")
    assert chance(benchmark) == {"accuracy": 0.5, "accuracy_macro": 0.5}
    json.dumps(result.to_json(), allow_nan=False)


def test_ties_by_every_policy_and_by_polos():
    benchmark = preferred(_votes(40))
    result = evaluate(benchmark, Scores(np.ones((40, 2))), model="blind:constant", draws=20)
    assert result.measures["accuracy"].value == 0
    by_policy = {name: by["accuracy"] for name, by in result.ties["measures"].items()}
    assert by_policy == {"strict": 0.0, "half": 0.5, "optimistic": 1.0}
    # Polos takes the second candidate, which is preferred in half of the questions.
    assert result.ties["second"] == {"accuracy": 0.5}
    assert (result.ties["questions"], result.ties["rate"]) == (40, 1.0)
    half = evaluate(benchmark, Scores(np.ones((40, 2))), model="s", ties="half", draws=20)
    assert half.measures["accuracy"].value == 0.5


def test_draws_of_references_are_averaged():
    votes = _votes(12)
    benchmark = preferred(votes, sample=2, draws=3)
    scores = np.random.default_rng(2).integers(0, 3, (12, 2, 3)).astype(float)
    expected = preference_accuracy(scores, (votes[:, 1] > votes[:, 0]).astype(int), ties=Ties.HALF)
    np.testing.assert_array_equal(per_item(benchmark, Scores(scores), ties=Ties.HALF)["accuracy"], expected)
    result = evaluate(benchmark, Scores(scores), model="s", draws=50)
    assert result.ties["rate"] == pytest.approx((scores[:, 0] == scores[:, 1]).mean())
    assert result.ties["questions"] == (scores[:, 0] == scores[:, 1]).any(axis=1).sum()
    assert result.measures["accuracy"].value == pytest.approx(result.ties["measures"]["strict"]["accuracy"])


def test_right_and_wrong_may_be_given():
    benchmark = preferred(_votes(4), per_image=1)
    result = evaluate(benchmark, Outcomes({"accuracy": np.array([1, 1, 0, 1], bool)}), model="s")
    assert result.measures["accuracy"].value == 0.75
    refuses("wrong shape", evaluate, benchmark, Scores(np.ones((4, 3))), error=ScoreError, model="s")
    refuses("no outcomes for 'accuracy'", evaluate, benchmark, Outcomes({}), error=ScoreError, model="s")
