"""Plans against exact sums by hand, against simulation, and against the intervals that results get."""

from itertools import product

import numpy as np
import pytest

from counterfoil.errors import InputError
from counterfoil.evaluation.agreement import people_agreement
from counterfoil.stats.dawid_skene import Patterns, drawn_so
from counterfoil.stats.label_planning import (
    LabelDesign,
    accuracy_needed,
    answer_ways,
    labelling_cost,
    labelling_hours,
    labels_needed,
    plan_labels,
)
from counterfoil.stats.score_intervals import wilson
from refusals import refuses


def noise_held(hard, repeats=12):
    """How often the interval of wrong labels, told from answers alone, holds where people guess on some."""
    rng, yes = np.random.default_rng(0), np.array(list(product((False, True), repeat=3)))
    held = 0
    for _ in range(repeats):
        truth, guessed = rng.random(500) < 0.5, rng.random(500) < hard
        right = rng.random((500, 3)) < np.where(guessed, 0.5, 0.9)[:, None]
        said = np.where(right, truth[:, None], ~truth[:, None])
        counts = np.bincount(said @ np.array([4, 2, 1]), minlength=8)
        there, majority = counts > 0, yes.sum(axis=1) > 1
        so = drawn_so(Patterns(yes[there], ~yes[there], counts[there]), rng, draws=200)
        share = np.where(majority[there], counts[there] - so, so).sum(axis=1) / 500
        low, high = np.quantile(share, [0.025, 0.975])
        held += low <= float((majority[said @ np.array([4, 2, 1])] != truth).mean()) <= high
    return held / repeats


def test_hard_items_hide_wrong_labels_from_answers_alone():
    assert noise_held(0.0) > 0.85
    assert noise_held(0.1) < 0.6


def drawn(design, rng):
    """Truth, people and answers (items, labels) of a design."""
    k, people = design.n_classes, design.people or design.labels
    truth = rng.choice(k, design.items, p=design.shares)
    # Each person is asked about equally often.
    who = np.argsort(rng.random((design.items, people)), axis=1)[:, : design.labels]
    better = np.clip(rng.normal(0, design.spread, people), -0.2, 0.2) if design.spread else np.zeros(people)
    right = np.clip(np.diag(design.confusion())[truth][:, None] + better[who], 0, 1)
    wrong = (truth[:, None] + rng.integers(1, k, who.shape)) % k
    return truth, who, np.where(rng.random(who.shape) < right, truth[:, None], wrong)


def by_hand(design):
    """Label accuracy and pairs that agree, going through all sequences of answers."""
    confusion, k = design.confusion(), design.n_classes
    accuracy = agreement = 0.0
    for truth in range(k):
        for answers in product(range(k), repeat=design.labels):
            chance = design.shares[truth] * np.prod(confusion[truth, list(answers)])
            votes = np.bincount(answers, minlength=k)
            top = np.flatnonzero(votes == votes.max())
            accuracy += chance * (truth in top) / len(top)
            agreement += (
                chance * sum(v * (v - 1) for v in votes) / max(design.labels * (design.labels - 1), 1)
            )
    return accuracy, agreement


@pytest.mark.parametrize(
    "design",
    [
        LabelDesign(items=50, labels=3, accuracy=0.85),
        LabelDesign(items=50, labels=4, accuracy=(0.9, 0.7), share=0.2),
        LabelDesign(items=50, labels=5, accuracy=0.6, n_classes=3),
        LabelDesign(items=50, labels=2, accuracy=0.7, n_classes=4, share=(0.1, 0.2, 0.3, 0.4)),
        LabelDesign(items=50, labels=3, accuracy=1.0),
        LabelDesign(items=50, labels=1, accuracy=0.8, n_classes=5),
    ],
)
def test_plans_are_sums_over_all_answers(design):
    plan = plan_labels(design)
    accuracy, agreement = by_hand(design)
    assert plan.label_accuracy == pytest.approx(accuracy, abs=1e-12)
    if design.labels > 1:
        assert plan.agreement.value == pytest.approx(agreement, abs=1e-12)
    else:
        assert np.isnan(plan.agreement.value)
        assert np.isnan(plan.alpha.half_width)


def test_ways_that_are_drawn_agree_with_ways_gone_through(monkeypatch):
    # 3,003 ways for 10 answers of 6 classes.
    design = LabelDesign(items=500, labels=10, accuracy=0.4, n_classes=6)
    exact = plan_labels(design)
    assert len(answer_ways(10, design.confusion())[0]) == 3003
    monkeypatch.setattr("counterfoil.stats.label_planning._EXACT", 3000)
    drawn_ways = plan_labels(design)
    assert drawn_ways == plan_labels(design)
    assert drawn_ways != exact
    for name in ("score", "positive", "answers", "agreement", "alpha"):
        here, there = getattr(drawn_ways, name), getattr(exact, name)
        assert here.value == pytest.approx(there.value, abs=0.03), name
        assert here.half_width == pytest.approx(there.half_width, rel=0.1), name


@pytest.mark.parametrize(
    "design",
    [
        LabelDesign(items=300, labels=3, accuracy=(0.9, 0.75), share=0.3),
        LabelDesign(items=200, labels=4, accuracy=0.7, n_classes=4),
    ],
)
def test_half_widths_are_two_standard_errors_of_what_comes_out(design):
    plan, rng = plan_labels(design), np.random.default_rng(0)
    drawn_values = []
    for _ in range(300):
        truth, _, said = drawn(design, rng)
        votes = (said[:, :, None] == np.arange(design.n_classes)).sum(axis=1)
        top = (votes == votes.max(axis=1, keepdims=True)) * (1 + 0.01 * rng.random(votes.shape))
        label = top.argmax(axis=1)
        right, positive = (label == truth).mean(), (label == design.n_classes - 1).mean()
        raw = (votes * (votes - 1)).sum(axis=1).mean() / (design.labels * (design.labels - 1))
        apart = 1 - ((votes.sum(axis=0) / votes.sum()) ** 2).sum()
        drawn_values.append([right, positive, (said == truth[:, None]).mean(), raw, 1 - (1 - raw) / apart])
    planned = (plan.score, plan.positive, plan.answers, plan.agreement, plan.alpha)
    spreads = np.std(drawn_values, axis=0)
    for estimate, mean, spread in zip(planned, np.mean(drawn_values, axis=0), spreads, strict=True):
        assert estimate.value == pytest.approx(mean, abs=4 * spread / 300**0.5 + 1e-3)
        # 300 repetitions know a standard deviation to 4 %.
        assert estimate.half_width == pytest.approx(1.96 * spread, rel=0.15)


@pytest.mark.parametrize(
    "design",
    [
        LabelDesign(items=400, labels=3, accuracy=0.8, n_classes=3, people=40),
        LabelDesign(items=400, labels=3, accuracy=0.8, n_classes=3, people=40, spread=0.1),
        LabelDesign(items=1000, labels=2, accuracy=0.85, people=25, spread=0.08),
    ],
)
def test_the_promised_interval_is_the_one_that_results_get(design):
    plan, rng = plan_labels(design), np.random.default_rng(1)
    raws, alphas = [], []
    for seed in range(6):
        _, who, said = drawn(design, rng)
        item = np.repeat(np.arange(design.items), design.labels)
        found = people_agreement(item, who.ravel(), said.ravel(), draws=200, seed=seed)
        raws.append((found.raw.high - found.raw.low) / 2)
        alphas.append((found.alpha.high - found.alpha.low) / 2)
    assert plan.agreement.half_width == pytest.approx(np.mean(raws), rel=0.25)
    assert plan.alpha.half_width == pytest.approx(np.mean(alphas), rel=0.25)


def test_a_score_gets_wilsons_interval():
    plan = plan_labels(LabelDesign(items=100, labels=1, accuracy=0.8))
    low, high = wilson(80, 100)
    # Student's quantile for 99 degrees of freedom.
    assert plan.score.half_width == pytest.approx((high - low) / 2, rel=0.02)
    assert plan_labels(LabelDesign(items=100, labels=3, accuracy=1.0)).score.half_width > 0.01


def test_people_who_differ_widen_intervals_and_more_people_narrow_them():
    alike = plan_labels(LabelDesign(items=2000, labels=3, accuracy=0.8))
    ten = plan_labels(LabelDesign(items=2000, labels=3, accuracy=0.8, people=10, spread=0.1))
    hundred = plan_labels(LabelDesign(items=2000, labels=3, accuracy=0.8, people=100, spread=0.1))
    assert alike.alpha.half_width < hundred.alpha.half_width < ten.alpha.half_width
    assert ten.alpha.half_width > 3 * alike.alpha.half_width
    assert ten.alpha.value == alike.alpha.value


def test_the_fewest_labels_are_those_that_just_suffice():
    design = LabelDesign(items=500, labels=1, accuracy=0.75)
    plan = labels_needed(design, 0.03, of="agreement")
    assert plan.agreement.half_width <= 0.03
    fewer = plan_labels(LabelDesign(items=500, labels=plan.design.labels - 1, accuracy=0.75))
    assert fewer.agreement.half_width > 0.03
    accurate = accuracy_needed(design, 0.9)
    assert accurate.design.labels == 7
    assert plan_labels(LabelDesign(items=500, labels=6, accuracy=0.75)).label_accuracy < 0.9


def test_what_labels_cannot_do_is_refused_with_what_they_can():
    design = LabelDesign(items=50, labels=1, accuracy=0.75)
    for width, of, message in (
        (0.001, "agreement", r"agreement so narrow; given: \+- 0.001; .*plan more items"),
        (0.1, "kappa", "unknown estimate"),
        (0.0, "alpha", "above 0"),
    ):
        refuses(message, labels_needed, design, width, error=InputError, of=of)
    with pytest.raises(InputError, match=r"up to 0\.5000"):
        accuracy_needed(LabelDesign(items=50, labels=1, accuracy=0.5), 0.9)


def test_hours_and_cost():
    assert labelling_hours(500, 1, 36) == 5
    assert labelling_cost(5, 9.0) == 45
    assert labelling_cost(5, 9.0, fee=0.4) == pytest.approx(63)
    for price, wrong in (
        (labelling_hours, (-1, 3, 4)),
        (labelling_hours, (1, 3, 0)),
        (labelling_cost, (1, -1)),
    ):
        refuses("", price, *wrong, error=InputError)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"items": 1}, "items to label"),
        ({"labels": 0}, "labels per item"),
        ({"accuracy": 1.2}, "accuracy; given: 1.2; allowed: 0 to 1"),
        ({"accuracy": (0.9, 0.8), "n_classes": 3}, "one, or two of two classes"),
        ({"share": 0.0}, "shares of classes"),
        ({"share": (0.5, 0.4)}, "shares of classes"),
        ({"people": 2}, "at least the labels per item"),
        ({"spread": 0.1}, "give people"),
    ],
)
def test_refuses_designs_that_are_none(settings, message):
    with pytest.raises(InputError, match=message):
        LabelDesign(**{"items": 100, "labels": 3, "accuracy": 0.8, **settings})
