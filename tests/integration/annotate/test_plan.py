"""Plans of campaigns: what labels, aims and prices come to, by Python and by command line."""

import json

import numpy as np
import pytest

from counterfoil.errors import InputError
from counterfoil.evaluation.agreement import people_agreement
from counterfoil.jobs.annotate_plan import annotate_plan
from faults.command import run
from refusals import refuses


def test_labels_hours_and_cost():
    found = annotate_plan("yes-no", items=3000, labels=3, accuracy=0.85, pay=12, fee=1 / 3)
    assert found.plan.label_accuracy == pytest.approx(0.85**3 + 3 * 0.85**2 * 0.15)
    assert (found.hours, found.cost) == (pytest.approx(10), pytest.approx(160))
    rows = {row["estimate"]: row for row in found.to_arrow().to_pylist()}
    assert rows["score"]["low"] < found.plan.label_accuracy < rows["score"]["high"]
    json.dumps(found.to_json(), allow_nan=False)


def test_an_aim_gives_the_fewest_labels_that_reach_it():
    aim = annotate_plan("yes-no", items=400, accuracy=0.8, half_width=0.03, of="agreement").plan
    fewer = annotate_plan("yes-no", items=400, labels=aim.design.labels - 1, accuracy=0.8).plan
    assert aim.agreement.half_width <= 0.03 < fewer.agreement.half_width
    right = annotate_plan("yes-no", items=400, accuracy=0.85, label_accuracy=0.95)
    assert right.plan.design.labels == 5


def test_labels_are_given_or_worked_out():
    for form, settings, message in (
        ("yes-no", {"labels": 3, "half_width": 0.1}, "labels per item are given or worked out"),
        ("yes-no", {"accuracy": (0.9, 0.8, 0.7)}, "accuracy; given: "),
        ("nothing", {}, "unknown form of work"),
    ):
        refuses(message, annotate_plan, form, error=InputError, items=100, **settings)


def test_the_command_prints_time_and_cost(tmp_path):
    line = "annotate plan best-of-k --items 3000 --labels 3 --accuracy 0.85 --fee 0.333"
    ended = run(line.split(), tmp_path)
    assert ended.code == 0, ended.err
    for words in ("9,000 answers of 8 s are 20.0 hours", "USD 319.92 at 12.00 per hour", "of 5 classes"):
        assert words in ended.out
    odd = run([*line.split()[:5], "--accuracy", "high"], tmp_path)
    assert (odd.code, "--accuracy: not a number; given: high" in odd.err) == (2, True)


def test_of_exchangeable_options_none_is_more_frequent(tmp_path):
    found = annotate_plan("choose", items=40, labels=3, accuracy=0.9)
    assert set(found.estimates) == {"score", "answers", "agreement", "alpha"}
    assert "positive" in annotate_plan("best-of-k", items=40, labels=3).estimates
    # One label has no agreement.
    assert set(annotate_plan("yes-no", items=100, labels=1).estimates) == {"score", "positive", "answers"}
    for words in (
        "choose --share 0.2",
        "preference --accuracy 0.9,0.8",
        "choose --half-width 0.1 --of positive",
    ):
        ended = run(f"annotate plan {words} --items 40".split(), tmp_path)
        assert (ended.code, "not the same thing from item to item" in ended.err) == (2, True)


def test_what_the_plan_promises_for_a_choice_comes_out_though_the_right_one_stands_first():
    plan = annotate_plan("choose", items=400, labels=2, accuracy=0.9).plan
    rng = np.random.default_rng(0)
    item = np.repeat(np.arange(400), 2)
    who = np.argsort(rng.random((400, 20)), axis=1)[:, :2].ravel()
    said = (rng.random(800) > 0.9).astype(int)
    found = people_agreement(item, who, said, alike=np.full(800, 2), draws=100)
    assert found.alpha.value == pytest.approx(plan.alpha.value, abs=2 * plan.alpha.half_width)
    assert found.alpha.high - found.alpha.low == pytest.approx(2 * plan.alpha.half_width, rel=0.3)
