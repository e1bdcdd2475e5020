"""Filters on verified samples: against loops, and intervals against how often they hold the truth."""

from math import sqrt

import numpy as np
import pytest

from counterfoil.build.calibration import Verified, auroc, calibrate, certified, curve, quality, share
from counterfoil.errors import InputError
from refusals import refuses


def rows(n, rng, *, share=0.39, apart=1.2, steps=0):
    """Scores and truth of n rows; with `steps` the scores are coarse and tie."""
    right = rng.random(n) < share
    scores = apart * right + rng.normal(size=n)
    return (np.round(steps * scores) / steps if steps else scores), right


def slow_wilson(k, n):
    z = 1.959963984540054
    middle = (k + z * z / 2) / (n + z * z)
    half = z / (n + z * z) * sqrt(k * (n - k) / n + z * z / 4)
    return middle - half, middle + half


def test_quality_is_that_of_counting():
    scores, right = rows(150, np.random.default_rng(0), steps=3)
    for threshold in (-0.5, 0.0, 1.0, 2.0):
        kept = [t for s, t in zip(scores, right, strict=True) if s >= threshold]
        found = quality(Verified(scores, right), threshold)
        for part, k, n in (
            (found.precision, sum(kept), len(kept)),
            (found.recall, sum(kept), int(right.sum())),
            (found.kept, len(kept), 150),
        ):
            assert part.value == pytest.approx(k / n)
            assert (part.low, part.high) == pytest.approx(slow_wilson(k, n))


def test_what_is_not_defined_is_no_number():
    sample = Verified(np.array([0.1, 0.2]), np.array([False, False]))
    found = quality(sample, 0.5)
    assert np.isnan([found.precision.value, found.recall.value]).all()
    assert (found.precision.low, found.precision.high) == (0.0, 1.0)
    assert found.to_json()["precision"] == [None, 0.0, 1.0]
    assert found.kept.value == 0.0
    assert np.isnan(auroc(sample).value)
    assert np.isnan(share(sample.right, np.zeros(2, dtype=bool), np.ones(2)).value)
    assert certified(sample, 0.9) is None


def test_weights_are_copies_of_rows():
    """A row of weight 3 counts as much as three rows; the interval knows that it is one."""
    scores, right = rows(90, np.random.default_rng(1))
    weights = np.random.default_rng(2).integers(1, 4, 90)
    thin = Verified(scores, right, weights.astype(float))
    copied = Verified(np.repeat(scores, weights), np.repeat(right, weights))
    for threshold in (0.0, 1.0):
        one, many = quality(thin, threshold), quality(copied, threshold)
        for name in ("precision", "recall", "kept"):
            a, b = getattr(one, name), getattr(many, name)
            assert a.value == pytest.approx(b.value)
            assert a.high - a.low > b.high - b.low
    assert auroc(thin).value == pytest.approx(auroc(copied).value)
    assert quality(Verified(scores, right, np.full(90, 7.0)), 0.5).precision.low == pytest.approx(
        quality(Verified(scores, right), 0.5).precision.low
    )


def test_the_area_is_the_share_of_pairs_in_order():
    scores, right = rows(60, np.random.default_rng(3), steps=2)
    pairs = [(a, b) for a in scores[right] for b in scores[~right]]
    found = auroc(Verified(scores, right))
    assert found.value == pytest.approx(np.mean([(a > b) + (a == b) / 2 for a, b in pairs]))
    assert auroc(Verified(np.array([0.0, 1.0]), np.array([False, True]))).value == 1.0


def test_curve_goes_from_all_to_least():
    sample = Verified(*rows(400, np.random.default_rng(4)))
    points = curve(sample, points=30)
    assert len(points) == 30
    assert points[0].kept.value == 1.0
    assert points[0].recall.value == 1.0
    assert [p.recall.value for p in points] == sorted((p.recall.value for p in points), reverse=True)


def test_intervals_hold_the_truth_as_often_as_they_claim():
    # A population of which samples are drawn: its own precision and recall are the truth.
    scores, right = rows(40_000, np.random.default_rng(5))
    threshold = 1.0
    kept = scores >= threshold
    truth = {"precision": right[kept].mean(), "recall": kept[right].mean(), "kept": kept.mean()}
    area = auroc(Verified(scores, right)).value
    # Rows near the threshold are drawn four times as often, and weigh a quarter.
    chance = np.where(np.abs(scores - threshold) < 0.5, 0.012, 0.003)
    inside = {name: [0, 0] for name in (*truth, "area")}
    for seed in range(150):
        rng = np.random.default_rng(seed)
        plain = rng.integers(0, len(scores), 200)
        drawn = np.flatnonzero(rng.random(len(scores)) < chance)
        for at, sample in enumerate(
            (Verified(scores[plain], right[plain]), Verified(scores[drawn], right[drawn], 1 / chance[drawn]))
        ):
            found = quality(sample, threshold)
            for name, value in truth.items():
                part = getattr(found, name)
                inside[name][at] += part.low <= value <= part.high
            whole = auroc(sample)
            inside["area"][at] += whole.low <= area <= whole.high
    # 150 repetitions know 95 % to 1.8 points.
    for name, counts in inside.items():
        assert min(counts) / 150 > 0.9, (name, counts)


def test_a_certified_threshold_misses_its_precision_seldom_though_it_was_chosen():
    rng = np.random.default_rng(6)
    scores, right = rows(40_000, rng, apart=2.4)
    order = np.argsort(-scores)
    precision = np.cumsum(right[order]) / np.arange(1, len(right) + 1)
    missed = naive = given = 0
    for seed in range(120):
        drawn = np.random.default_rng(seed).integers(0, len(scores), 400)
        sample = Verified(scores[drawn], right[drawn])

        def true(threshold):
            return float(precision[(scores >= threshold).sum() - 1])

        found = certified(sample, 0.85)
        if found is not None:
            given += 1
            missed += true(found) < 0.85
        ranked = np.argsort(-sample.scores)
        seen = np.cumsum(sample.right[ranked]) / np.arange(1, 401)
        peeked = float(sample.scores[ranked][np.flatnonzero(seen >= 0.85)[-1]])
        naive += true(peeked) < 0.85
    assert given > 100
    assert missed / 120 <= 0.05
    # The lowest threshold that looks good enough on the sample is not good enough far more often.
    assert naive / 120 > 0.3


def test_a_target_that_is_not_to_be_had():
    rng = np.random.default_rng(7)
    right = rng.random(300) < 0.4
    assert certified(Verified(rng.normal(size=300), right), 0.9) is None
    threshold, known = calibrate(Verified(rng.normal(size=300), right), rng, precision=0.9)
    assert threshold is known["threshold"] is known["quality"] is None
    assert known["per_1000_rows"]["kept"] == 0.0
    # Whole ties are kept or dropped together.
    tied = Verified(np.repeat([1.0, 0.0], [200, 200]), np.repeat([True, False], [200, 200]))
    assert certified(tied, 0.9) == 1.0


def test_weighted_targets_are_kept_too():
    scores, right = rows(40_000, np.random.default_rng(8), apart=1.6)
    chance = np.where(scores > 1.5, 0.004, 0.016)
    missed = 0
    for seed in range(100):
        drawn = np.flatnonzero(np.random.default_rng(seed).random(len(scores)) < chance)
        found = certified(Verified(scores[drawn], right[drawn], 1 / chance[drawn]), 0.8)
        missed += found is not None and right[scores >= found].mean() < 0.8
    assert missed / 100 <= 0.06


SAMPLE = Verified(np.array([0.1, 0.4]), np.array([False, True]))


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda rng: Verified(np.array([np.nan]), np.array([True])), "not finite"),
        (lambda rng: Verified(np.zeros(2), np.zeros(3, dtype=bool)), "a score and a truth"),
        (lambda rng: Verified(SAMPLE.scores, SAMPLE.right, np.array([1.0, 0.0])), "weight"),
        (lambda rng: certified(SAMPLE, 1.0), "precision to reach"),
        (lambda rng: calibrate(SAMPLE, rng), "neither"),
        (lambda rng: calibrate(SAMPLE, rng, precision=0.9), "too few verified rows"),
    ],
)
def test_what_cannot_be(ask, message):
    refuses(message, ask, np.random.default_rng(0), error=InputError)
