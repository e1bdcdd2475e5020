"""Verified rows: truth of drawn rows, people's answers, and label noise that covers what they let through."""

import json
from math import sqrt
from typing import get_args

import numpy as np
import pyarrow as pa
import pytest

from counterfoil.build.verification import (
    Answers,
    Rule,
    Verified,
    auroc,
    calibrate,
    certified,
    curve,
    fits,
    label_noise,
    quality,
    read_answers,
    read_verified,
    share,
    sound,
)
from counterfoil.errors import CounterfoilError, InputError
from counterfoil.world.captions import matches, text
from counterfoil.world.generator import imagine
from counterfoil.world.people import Annotator, annotate
from counterfoil.world.sample import contrasts, stream
from refusals import refuses

#: People who err at known rates.
CROWD = (
    Annotator("careful", accuracy=0.95),
    Annotator("eager", accuracy=0.85, bias=0.1),
    Annotator("stern", accuracy=0.85, bias=-0.05),
)


def drawn(n, failure):
    """Rows of the world with negative images, of which a share is wrong, and which are right."""
    made = contrasts(n, seed=3, of="contrasts")
    scenes = [
        imagine(item, stream("contrasts", 3, 2, 1 + i), failure=failure)[0] for i, item in enumerate(made)
    ]
    rows = pa.table(
        {
            "id": [f"row-{i}" for i in range(n)],
            "image": ["a.png"] * n,
            "caption": [text(item.captions[0]) for item in made],
            "negative_caption": [text(item.captions[1]) for item in made],
            "negative_image": ["b.png"] * n,
            "scene": [item.scenes[0].to_json() for item in made],
            "negative_scene": [scene.to_json() for scene in scenes],
        }
    )
    pairs = zip(made, scenes, strict=True)
    return rows, [[matches(said, scene) for said in item.captions] == [False, True] for item, scene in pairs]


def test_the_world_knows_which_rows_are_sound():
    rows, right = drawn(80, 0.61)
    result = sound(rows)
    assert result.tolist() == right
    assert 0.2 < result.mean() < 0.6
    # A picture that both captions fit is one of its caption and not a sound one.
    assert (fits(rows, "negative_image", "negative_caption") & ~result).any()
    assert sound(rows.drop_columns(["negative_image"])).all()
    assert sound(rows.drop_columns(["scene"])) is None
    assert fits(rows, "photo", "caption") is None


def covered(crowd, rule, repetitions):
    """How often the interval of label noise holds the share of unsound rows among those kept."""
    inside = 0
    for seed in range(repetitions):
        rng = np.random.default_rng(seed)
        right = rng.random(500) < 0.5
        said = annotate(right, crowd, rng).votes
        answers = Answers(tuple(a.name for a in crowd), said, ~said)
        result = label_noise(answers, rule, np.random.default_rng(seed), draws=600)
        wrong = (~right)[answers.accepted(rule)].mean()
        _, low, high = result["label_noise"]
        inside += low <= wrong <= high
    return inside / repetitions


def test_label_noise_covers_the_truth():
    # 20 repetitions know 95 % to 4.9 points.
    assert covered(CROWD, "majority", 20) > 0.8


@pytest.mark.slow
@pytest.mark.parametrize("rule", get_args(Rule))
@pytest.mark.parametrize(("people", "accuracy"), [(3, None), (5, 0.8), (3, 0.95), (7, 0.7)])
def test_label_noise_covers_the_truth_of_many_crowds(people, accuracy, rule):
    same = tuple(Annotator(f"p{k}", accuracy=accuracy or 1.0) for k in range(people))
    # 200 repetitions know 95 % to 1.5 points.
    assert covered(CROWD if accuracy is None else same, rule, 200) > 0.91


def test_rows_that_are_hard_for_all_make_the_estimate_too_low():
    """The bias that the assumption brings, where it does not hold."""
    rng = np.random.default_rng(0)
    right, hard = rng.random(4000) < 0.5, rng.random(4000) < 0.15
    easy = annotate(right, [Annotator(f"p{k}", accuracy=0.95) for k in range(3)], rng).votes
    # On hard rows people follow a wrong impression together.
    said = np.where(hard, ~right, easy)
    answers = Answers(("a", "b", "c"), said, ~said)
    result = label_noise(answers, "majority", rng)
    assert result["label_noise"][2] < (~right)[answers.accepted()].mean() - 0.05


def test_people_who_were_not_all_asked():
    rng = np.random.default_rng(1)
    right = rng.random(2000) < 0.6
    crowd = [Annotator(f"p{k}", accuracy=0.9 - 0.02 * k) for k in range(6)]
    said, there = annotate(right, crowd, rng).votes, np.zeros((6, 2000), dtype=bool)
    for row in range(2000):
        there[rng.permutation(6)[:3], row] = True
    answers = Answers(tuple(a.name for a in crowd), said & there, ~said & there)
    result = label_noise(answers, "majority", rng)
    for name, so in (("label_noise", (~right)[answers.accepted()].mean()), ("sound_before", right.mean())):
        assert result[name][1] <= so <= result[name][2]
    assert result["hits"]["p0"] == pytest.approx(0.9, abs=0.04)
    assert json.dumps(result)


def test_what_people_do_not_tell():
    said = np.ones((2, 9), dtype=bool)
    assert label_noise(Answers(("a", "b"), said, ~said), "majority", np.random.default_rng(0)) is None
    nothing = Answers(("a", "b", "c"), np.zeros((3, 9), bool), np.ones((3, 9), bool))
    result = label_noise(nothing, "majority", np.random.default_rng(0))
    assert (result["rows_kept"], result["label_noise"]) == (0, [None, 0.0, 1.0])


def test_answers_are_read(tmp_path):
    path = tmp_path / "said.csv"
    path.write_text("id,annotator,answer\na,x,100% YES\na,y,no\nb,x,Partially YES\nz,x,yes\nb,y,\n")
    result, stray = read_answers(path, ["a", "b", "c"])
    assert (result.people, stray) == (("x", "y"), 1)
    assert result.yes.tolist() == [[True, True, False], [False, False, False]]
    assert result.no.tolist() == [[False, False, False], [True, False, False]]
    assert result.accepted("majority").tolist() == [False, True, False]
    assert result.accepted("any").tolist() == [True, True, False]
    unnamed = tmp_path / "unnamed.csv"
    unnamed.write_text("id,gain\na,1\nb,0\na,0\na,0.5\n")
    result, _ = read_answers(unnamed, ["a", "b"])
    assert result.people == ("answer 1", "answer 2", "answer 3")
    assert result.accepted().tolist() == [True, False]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("id,answer\na,perhaps\n", "an answer that cannot be read"),
        ("id,answer\nq,yes\n", "no row has an answer"),
        ("id,annotator,answer\na,x,yes\na,x,no\n", "answered twice"),
        ("id,verdict\na,yes\n", "no column 'answer'"),
        ("id,gain\na,much\n", "gain"),
    ],
)
def test_answers_that_cannot_be_used(content, message, tmp_path):
    path = tmp_path / "said.csv"
    path.write_text(content)
    refuses(message, read_answers, path, ["a", "b"], error=CounterfoilError)


def test_verified_rows_are_read(tmp_path):
    path = tmp_path / "verified.csv"
    path.write_text("id,right,weight\nb,true,2\nz,false,1\na,no,0.5\n")
    at, right, weights = read_verified(path, ["a", "b"])
    assert (at.tolist(), right.tolist(), weights.tolist()) == ([1, 0], [True, False], [2.0, 0.5])
    refuses("none of the verified rows is here", read_verified, path, ["q"])


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
        result = quality(Verified(scores, right), threshold)
        for part, k, n in (
            (result.precision, sum(kept), len(kept)),
            (result.recall, sum(kept), int(right.sum())),
            (result.kept, len(kept), 150),
        ):
            assert part.value == pytest.approx(k / n)
            assert (part.low, part.high) == pytest.approx(slow_wilson(k, n))


def test_what_is_not_defined_is_no_number():
    sample = Verified(np.array([0.1, 0.2]), np.array([False, False]))
    result = quality(sample, 0.5)
    assert np.isnan([result.precision.value, result.recall.value]).all()
    assert (result.precision.low, result.precision.high) == (0.0, 1.0)
    assert (result.to_json()["precision"], result.kept.value) == ([None, 0.0, 1.0], 0.0)
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


def test_the_area_is_the_share_of_pairs_in_order_and_the_curve_goes_from_all_to_least():
    scores, right = rows(60, np.random.default_rng(3), steps=2)
    pairs = [(a, b) for a in scores[right] for b in scores[~right]]
    result = auroc(Verified(scores, right))
    assert result.value == pytest.approx(np.mean([(a > b) + (a == b) / 2 for a, b in pairs]))
    assert auroc(Verified(np.array([0.0, 1.0]), np.array([False, True]))).value == 1.0
    points = curve(Verified(*rows(400, np.random.default_rng(4))), points=30)
    assert (len(points), points[0].kept.value, points[0].recall.value) == (30, 1.0, 1.0)
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
        for i, sample in enumerate(
            (Verified(scores[plain], right[plain]), Verified(scores[drawn], right[drawn], 1 / chance[drawn]))
        ):
            result = quality(sample, threshold)
            for name, value in truth.items():
                part = getattr(result, name)
                inside[name][i] += part.low <= value <= part.high
            whole = auroc(sample)
            inside["area"][i] += whole.low <= area <= whole.high
    # 150 repetitions know 95 % to 1.8 points.
    for name, counts in inside.items():
        assert min(counts) / 150 > 0.9, (name, counts)


def test_a_certified_threshold_misses_its_precision_seldom_though_it_was_chosen():
    scores, right = rows(40_000, np.random.default_rng(6), apart=2.4)
    precision = np.cumsum(right[np.argsort(-scores)]) / np.arange(1, len(right) + 1)
    missed = naive = given = 0
    for seed in range(120):
        drawn = np.random.default_rng(seed).integers(0, len(scores), 400)
        sample = Verified(scores[drawn], right[drawn])

        def true(threshold):
            return float(precision[(scores >= threshold).sum() - 1])

        result = certified(sample, 0.85)
        if result is not None:
            given += 1
            missed += true(result) < 0.85
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
    # Whole ties are kept or dropped together.
    tied = Verified(np.repeat([1.0, 0.0], [200, 200]), np.repeat([True, False], [200, 200]))
    assert certified(tied, 0.9) == 1.0


def test_weighted_targets_are_kept_too():
    scores, right = rows(40_000, np.random.default_rng(8), apart=1.6)
    chance = np.where(scores > 1.5, 0.004, 0.016)
    missed = 0
    for seed in range(100):
        drawn = np.flatnonzero(np.random.default_rng(seed).random(len(scores)) < chance)
        result = certified(Verified(scores[drawn], right[drawn], 1 / chance[drawn]), 0.8)
        missed += result is not None and right[scores >= result].mean() < 0.8
    assert missed / 100 <= 0.06


SAMPLE = Verified(np.array([0.1, 0.4]), np.array([False, True]))


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda rng: Verified(np.array([np.nan]), np.array([True])), "not finite"),
        (lambda rng: Verified(SAMPLE.scores, SAMPLE.right, np.array([1.0, 0.0])), "weight"),
        (lambda rng: calibrate(SAMPLE, rng, precision=0.9), "too few verified rows"),
    ],
)
def test_what_cannot_be(ask, message):
    refuses(message, ask, np.random.default_rng(0), error=InputError)
