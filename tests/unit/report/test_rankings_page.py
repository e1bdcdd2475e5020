"""The page of rankings and its figures: complete, legible, and nothing lies over anything else."""

import html as html_of
import re
from dataclasses import replace
from itertools import combinations
from xml.etree import ElementTree

import numpy as np
import pytest

from counterfoil.evaluation.rank_correlation import Agreement, RankColumn, RankCorrelation
from counterfoil.report import figure_style, html
from counterfoil.report.rankings_page import bump, heatmap, labels, lead, page, ranks_table
from report.outlines import closed

LONG = "open-clip:ViT-L-14-quickgelu/laion400m_e32, fine-tuned on COCO for ten epochs"


def correlation(values, taus):
    """Made-up agreements of made-up values; rho is a little more than tau."""
    models, n = values.shape
    rest = (RankColumn("coco-5k", f"mean_recall_at_{i}", "COCO 5K") for i in range(1, n))
    columns = (RankColumn("eccv", "mean_map_at_r", "ECCV Caption"), *rest)
    pairs = tuple(
        Agreement(columns[i].name, columns[j].name, models, *ends, ends[0] + 0.01, ends[1], ends[2])
        for (i, j), ends in taus.items()
    )
    names = tuple(LONG if i == 1 else f"model {i}" for i in range(models))
    return RankCorrelation(names, columns, values, pairs, (), 100, 0, 0.95)


def many(models, columns):
    """Values of a few distinct steps, so that models tie."""
    values = np.random.default_rng(models).integers(0, max(2, models // 2), size=(models, columns)) / 100
    return correlation(values.astype(float), dict.fromkeys(combinations(range(columns), 2), (0.4, -0.1, 0.8)))


def texts(figure):
    svg = figure_style.svg(figure, name="f", title="f")
    return [node.text or "" for node in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


def test_the_heatmap_has_tau_below_and_rho_above_and_frames_what_is_sure():
    taus = {(0, 1): (0.47, 0.12, 0.78), (0, 2): (-0.3, -0.9, 0.4), (1, 2): (float("nan"),) * 3}
    (axes,) = heatmap(correlation(np.zeros((8, 3)), taus)).axes
    said = {(float(t.get_position()[0]), round(float(t.get_position()[1]), 6)): t for t in axes.texts}
    # Row 1, column 0 is tau; row 0, column 1 is rho.
    assert (said[0.5, 1.36].get_text(), said[0.5, 1.72].get_text()) == (".47", ".12 to .78")
    assert (said[1.5, 0.36].get_text(), said[0.5, 1.36].get_fontweight()) == (".48", "bold")
    assert (said[0.5, 2.36].get_text(), said[0.5, 2.36].get_fontweight()) == ("−.30", "normal")
    assert said[1.5, 2.52].get_text() == "–"
    # One framed pair, on both sides of the diagonal.
    assert sum(patch.get_edgecolor()[3] > 0 for patch in axes.patches) == 2
    rows = [label.get_text() for label in axes.get_yticklabels()]
    assert [re.sub(r"\s+", " ", row) for row in rows] == [
        "ECCV Caption · mean mAP@R 1", "COCO 5K · mean R@1 2", "COCO 5K · mean R@2 3"
    ]  # fmt: skip


@pytest.mark.parametrize(("models", "columns"), [(3, 2), (8, 5), (30, 12)])
def test_names_and_lines_of_the_bump_chart_never_overlap(models, columns):
    figure = bump(many(models, columns))
    figure.draw_without_rendering()
    (axes,) = figure.axes
    renderer = figure.canvas.get_renderer()
    ends = [t for t in axes.texts if t.get_va() == "center"]
    assert len(ends) == 2 * models
    page = figure.bbox
    for box in (t.get_window_extent(renderer) for t in axes.texts):
        assert page.x0 <= box.x0 < box.x1 <= page.x1 + 1
        assert page.y0 <= box.y0 < box.y1 <= page.y1 + 1
    assert not any(a.overlaps(b) for a, b in combinations([t.get_window_extent(renderer) for t in ends], 2))
    # Each column has a place for each model.
    dots = [line for line in axes.lines if line.get_marker() == "o"]
    assert len(dots) == models
    for column in range(columns):
        assert sorted(float(line.get_ydata()[column]) for line in dots) == list(range(1, models + 1))


def test_equal_models_share_a_rank_and_a_frame_and_missing_ones_leave_a_gap():
    values = np.array([[0.9, 0.1, 0.3], [0.5, 0.2, 0.3], [0.5, 0.4, 0.1], [0.2, np.nan, 0.9]])
    figure = bump(correlation(values, {}))
    said = [re.sub(r"\s+", " ", text) for text in texts(figure)]
    assert {"model 0 1", "model 2 2=", "model 3 4", "1 model 3", "2= model 0", "4 model 2"} <= set(said)
    (axes,) = figure.axes
    assert len(axes.patches) == 2
    lines = [line for line in axes.lines if line.get_marker() != "o" and len(set(line.get_xdata())) > 1]
    spans = sorted((float(line.get_xdata()[0]), float(line.get_xdata()[-1])) for line in lines)
    # Model 3 goes from the first column to the last at once, the others step by step.
    assert spans == [(0, 1)] * 3 + [(0, 2)] + [(1, 2)] * 3
    (jump,) = [line for line in lines if line.get_xdata()[-1] - line.get_xdata()[0] == 2]
    assert jump.is_dashed()


TAUS = {(0, 1): (0.5, 0.1, 0.8), (0, 2): (-0.25, -0.6, 0.3), (1, 2): (0.9, 0.7, 1.0)}


@pytest.fixture(scope="module")
def report():
    values = np.array([[0.1234, 0.2, 0.3], [0.4, 0.1, 0.3], [0.2, 0.3, np.nan]])
    return page(correlation(values, TAUS), title="Rank & <file>")


def test_it_is_whole_runs_its_own_script_fetches_nothing_and_says_every_number(report):
    assert closed(report) == html.static("page.js")
    assert "<title>Rank &amp; &lt;file&gt;</title>" in report
    body = html_of.unescape(re.sub(r"<[^>]+>", " ", report))
    for text in ("12.34", ".50", ".10 to .80", "−.60 to .30", "open-clip:ViT", "100 draws"):
        assert text in body, text


def test_the_lead_names_the_most_and_the_least_alike():
    assert lead(correlation(np.zeros((5, 3)), TAUS)) == (
        "The order of models agrees most between COCO 5K · mean R@1 and COCO 5K · mean R@2 (τ .90, .70 to 1) "
        "and least between ECCV Caption · mean mAP@R and COCO 5K · mean R@2 (τ −.25, −.60 to .30). "
        "For 2 of 3 pairs of measures the interval leaves out 0."
    )
    nothing = correlation(np.zeros((5, 2)), {(0, 1): (float("nan"),) * 3})
    assert lead(nothing).startswith("No two measures")
    assert "Method" in page(nothing)


def test_ranks_stand_beside_values_and_a_column_alone_needs_no_benchmark():
    table = ranks_table(correlation(np.array([[0.5, 0.25], [0.5, np.nan], [0.75, 0.5]]), {}))
    assert [row.name for row in table.rows] == ["model 2", "model 0", LONG]
    ranks = [[row.cells[i].value for i in (1, 3)] for row in table.rows]
    assert ranks == [["1", "1"], ["2=", "2"], ["2=", ""]]
    assert table.rows[2].cells[2].value is None
    result = correlation(np.zeros((4, 2)), {})
    assert labels(replace(result, columns=result.columns[1:], values=result.values[:, 1:])) == ["mean R@1"]


@pytest.mark.browser
def test_it_fits_every_screen_and_axe_finds_nothing(fits):
    assert fits(page(many(12, 9))).locator("figure svg:visible").count() == 2
