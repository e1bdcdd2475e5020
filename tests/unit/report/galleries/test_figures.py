"""Figures of retrieval: curves against a count by hand, and what is drawn of them."""

from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterfoil.benchmarks.forms import RetrievalDirection
from counterfoil.evaluation.compare import compare
from counterfoil.metrics.class_rules import Plausible
from counterfoil.metrics.ties import Ties
from counterfoil.report import figure_style, figures
from counterfoil.report.figure_style import spaced
from counterfoil.report.forms.gallery import (
    CHANCE,
    KS,
    NAMED,
    curves,
    recall_curves,
    right_answers,
)
from report_fixtures import gallery_benchmark, gallery_scores, rankings_of, run_of


def recall(scores, search, k):
    """R@K counted from the scores, a tied wrong item before a right one."""
    hits = []
    for row, query in enumerate(search.queries):
        found = search.positives
        own = found.items[found.starts[row] : found.starts[row + 1]]
        if not len(own):
            continue
        wrong = np.delete(scores[query], own[own >= 0])
        hits.append(any((wrong >= scores[query, item]).sum() < k for item in own if item >= 0))
    return float(np.mean(hits))


def test_curves_are_recall_at_every_k(galleries):
    gallery = galleries.runs[0].benchmark.gallery
    tables = gallery_scores()
    found = curves(galleries)
    assert list(found) == ["i2t", "t2i"]
    for side, search in (("i2t", gallery.i2t), ("t2i", gallery.t2i)):
        by_name = {curve.name: curve for curve in found[side]}
        for name, table in tables.items():
            scores = table if side == "i2t" else table.T
            curve = by_name[name]
            assert curve.ks == tuple(k for k in KS if k <= scores.shape[1])
            np.testing.assert_allclose(curve.values, [recall(scores, search, k) for k in curve.ks])
        # The ranking that was cut after 12 says no more, but where all right answers stood above that.
        assert by_name["cut"].ks[: len(KS[:7])] == KS[:7]
        known = by_name["cut"]
        np.testing.assert_allclose(known.values, by_name["good"].values[: len(known.ks)])
        assert max(by_name["cut"].ks) == 10 or recall(tables["good"], gallery.i2t, 12) == 1


def test_chance_is_that_of_a_random_order(galleries):
    gallery = galleries.runs[0].benchmark.gallery
    chance = curves(galleries)["t2i"][-1]
    assert chance.name == CHANCE
    # Of 30 images one or two are right: none of K drawn ones is with chance C(30 - r, K) / C(30, K).
    counts = [r for r in gallery.t2i.positives.counts.tolist() if r]
    expected = [np.mean([1 - comb(30 - r, k) / comb(30, k) for r in counts]) for k in chance.ks]
    np.testing.assert_allclose(chance.values, expected)


def test_in_parts_a_curve_is_the_mean_over_parts():
    benchmark = gallery_benchmark(31, parts=True)
    scores = np.random.default_rng(4).normal(size=(31, 62))
    # What other parts hold is never seen: their scores are the lowest.
    gallery = benchmark.gallery
    seen = gallery.image_parts[:, None] == gallery.caption_parts[None]
    hidden = np.where(seen, scores, scores.min() - 1)
    comparison = compare([run_of(benchmark, "parted", rankings_of(benchmark, scores))])[0]
    curve = curves(comparison)["i2t"][0]
    for k, value in zip(curve.ks, curve.values, strict=True):
        of_parts = []
        for part in (0, 1):
            rows = np.flatnonzero(gallery.image_parts == part)
            of_parts.append(recall(hidden, gallery.i2t.take(rows), k))
        assert value == pytest.approx(np.mean(of_parts))


def test_lines_are_drawn_where_the_curves_are_and_named_at_their_end(galleries):
    found = curves(galleries)
    assert list(found) == ["i2t", "t2i"]
    for side, of in found.items():
        (axes,) = recall_curves(side, of).axes
        drawn = {tuple(np.round(line.get_ydata(), 6)) for line in axes.lines}
        assert {tuple(np.round(100 * curve.values, 6)) for curve in of} == drawn
        assert {text.get_text() for text in axes.texts} >= {curve.name for curve in of}
    one, again = (figure_style.svg(recall_curves("i2t", of), name="c", title="c") for _ in range(2))
    assert one == again


def test_of_many_scorers_the_best_are_named():
    benchmark, scores = gallery_benchmark(12), gallery_scores(12)["good"]
    noise = np.random.default_rng(2).normal(size=scores.shape)
    runs = [
        run_of(benchmark, f"scorer {i}", rankings_of(benchmark, scores + 0.2 * i * noise)) for i in range(10)
    ]
    comparison = compare(runs)[0]
    figure = recall_curves("i2t", curves(comparison)["i2t"])
    named = {text.get_text() for text in figure.axes[0].texts} - {""}
    assert len(named) == NAMED + 1
    assert len(figure.axes[0].lines) == 11


def test_where_right_is_a_rule_there_is_no_curve_but_a_number_of_right_answers():
    rng = np.random.default_rng(6)
    codes, others = rng.random((20, 3)) < 0.5, rng.random((33, 3)) < 0.5
    for threshold in (0, 1):
        search = RetrievalDirection(np.arange(20), Plausible(codes, others, (threshold, 2)))
        expected = [sum((a != b).sum() <= threshold for b in others) for a in codes]
        assert right_answers(search).tolist() == expected


@given(st.lists(st.floats(0, 100), min_size=1, max_size=15))
def test_labels_keep_their_order_and_distance(wanted):
    heights = np.array(wanted)
    placed = spaced(heights, 5.0, 0.0, 100.0)
    order = np.argsort(-heights, kind="stable")
    assert (np.diff(placed[order]) <= -5.0 + 1e-9).all()
    if len(wanted) == 1:
        assert placed[0] == wanted[0]


def test_two_directions_of_any_measure(galleries):
    figure = figures.directions(galleries, ("i2t_map_at_r", "t2i_map_at_r"))
    (axes,) = figure.axes
    assert axes.get_xlabel().startswith("I2T mAP@R: images look for captions")
    points = next(line for line in axes.lines if line.get_marker() == "o")
    np.testing.assert_allclose(
        points.get_xdata(), [100 * run.result.measures["i2t_map_at_r"].value for run in galleries.runs]
    )


def test_curves_follow_the_tie_policy():
    benchmark = gallery_benchmark()
    constant = rankings_of(benchmark, np.zeros((30, 60)))
    values = {}
    for policy in Ties:
        comparison = compare([run_of(benchmark, "constant", constant, ties=policy)])[0]
        curve, chance = curves(comparison)["i2t"]
        values[policy] = curve.values
        if policy is Ties.HALF:
            np.testing.assert_allclose(curve.values, chance.values)
    assert values[Ties.OPTIMISTIC].min() == 1
    assert values[Ties.STRICT][0] == 0
