"""Two metrics' correlations with ratings: found where they differ, and not more often than luck has it."""

import numpy as np
import pytest

from contracts.forms import grades, preferred, rated
from counterfoil.benchmarks.answers import Scores
from counterfoil.errors import InputError
from counterfoil.evaluation.compare import compare
from counterfoil.metrics.weighted_correlation import MEASURES
from evaluation.made_runs import evaluated


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
    runs = [
        _run("good", benchmark, quality + noise[0]),
        _run("poor", benchmark, quality + 4 * noise[1]),
        _run("as poor", benchmark, quality + 4 * noise[2]),
    ]
    (comparison,) = compare(runs, baseline="poor")
    found = {(d.a, d.b, d.measure): d for d in comparison.differences}
    assert len(found) == 3 * len(MEASURES)
    for measure in MEASURES:
        better, same = found["good", "poor", measure], found["as poor", "poor", measure]
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
    runs = [
        _run("a", benchmark, quality + noise),
        _run("b", benchmark, quality + noise + 0.05 * rng.normal(size=len(quality))),
    ]
    (comparison,) = compare(runs)
    for d in comparison.differences:
        own = runs[0].result.measures[d.measure]
        assert d.high - d.low < 0.3 * (own.high - own.low)


def test_scorers_without_a_correlation_are_left_out_of_the_tests():
    benchmark = rated(grades(40))
    runs = [
        _run("blind:constant", benchmark, np.zeros(40)),
        _run("a", benchmark, benchmark.judged.ratings[:, 0]),
        _run("b", benchmark, np.random.default_rng(0).normal(size=40)),
    ]
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
    runs = [
        _run("good", benchmark, votes + 0.3 * rng.normal(size=(60, 2))),
        _run("noise", benchmark, rng.normal(size=(60, 2))),
    ]
    (comparison,) = compare(runs)
    (found,) = comparison.differences
    assert (found.measure, found.p < 0.01, found.mcnemar is not None) == ("accuracy", True, True)


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
    found, held, power = np.zeros((3, len(MEASURES)))
    for _ in range(repetitions):
        quality, ratings = _people(rng, 80, 4, 2)
        benchmark = rated(ratings, per_image=4, raters=raters)

        def metric(noise, quality=quality, benchmark=benchmark):
            own = rng.normal(size=80).repeat(4) + rng.normal(size=320)
            scores = quality + noise * own
            return _run(f"{noise}/{rng.random()}", benchmark, np.rint(scores) if rounded else scores)

        (same,) = compare([metric(1.0), metric(1.0)])
        found += [d.p < 0.05 for d in same.differences]
        held += [d.low <= 0 <= d.high for d in same.differences]
        (other,) = compare([metric(0.6), metric(1.2)])
        power += [d.p < 0.05 for d in other.differences]
    error = 4 * (0.05 * 0.95 / repetitions) ** 0.5
    assert (np.abs(found / repetitions - 0.05) < error).all(), found / repetitions
    assert (np.abs(held / repetitions - 0.95) < error).all(), held / repetitions
    assert (power / repetitions > 0.8).all(), power / repetitions
