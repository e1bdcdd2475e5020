"""The page of rankings: complete, closed to the outside, and it fits a telephone."""

import html as html_of
import re

import numpy as np
import pytest

from counterfoil.report import html
from counterfoil.report.rankings_page import lead, page, to_csv
from report.outlines import closed
from report.test_ranking_figures import correlation, lists, many

TAUS = {(0, 1): (0.5, 0.1, 0.8), (0, 2): (-0.25, -0.6, 0.3), (1, 2): (0.9, 0.7, 1.0)}


@pytest.fixture(scope="module")
def report():
    values = np.array([[0.1234, 0.2, 0.3], [0.4, 0.1, 0.3], [0.2, 0.3, np.nan]])
    return page(correlation(values, TAUS), [lists(3)], title="Rank & <file>")


def test_it_is_whole_runs_its_own_script_and_fetches_nothing(report):
    assert closed(report) == html.static("page.js")
    assert "<title>Rank &amp; &lt;file&gt;</title>" in report


def test_it_says_every_number(report):
    body = html_of.unescape(re.sub(r"<[^>]+>", " ", report))
    for text in ("12.34", ".50", ".10 to .80", "−.60 to .30", "open-clip:ViT", "100 draws", "25,000 queries"):
        assert text in body, text


def test_the_lead_names_the_most_and_the_least_alike():
    found = correlation(np.zeros((5, 3)), TAUS)
    assert lead(found) == (
        "The order of models agrees most between COCO 5K · mean R@1 and COCO 5K · mean R@2 (τ .90, .70 to 1) "
        "and least between ECCV Caption · mean mAP@R and COCO 5K · mean R@2 (τ −.25, −.60 to .30). "
        "For 2 of 3 pairs of measures the interval leaves out 0."
    )
    same = {pair: (0.5, low, 0.9) for pair, low in zip(TAUS, (0.1, -0.2, 0.3), strict=True)}
    assert lead(correlation(np.zeros((5, 3)), same)) == (
        "All 3 pairs of measures agree equally on the order of models: τ .50, with intervals within −.20 "
        "to .90. For 2 of 3 pairs of measures the interval leaves out 0."
    )
    nothing = correlation(np.zeros((5, 2)), {(0, 1): (float("nan"),) * 3})
    assert lead(nothing).startswith("No two measures")
    assert "Method" in page(nothing)


def test_csv_has_a_line_per_number():
    lines = to_csv(many(4, 3), [lists(2)]).splitlines()
    assert lines[0] == "what,of,a,b,value,low,high,n"
    # 12 values and ranks, 3 pairs twice, 2 models each way four times.
    assert len(lines) == 1 + 24 + 6 + 8
    assert "tau,,eccv:mean_map_at_r,coco-5k:mean_recall_at_1,0.4,-0.1,0.8,4" in lines
    assert "place,coco-5k:t2i:25,model 0,model 1,4.5,,,25000" in lines


@pytest.mark.browser
def test_it_fits_every_screen_and_axe_finds_nothing(fits):
    view = fits(page(many(12, 9), [lists(12)]))
    assert view.locator("figure svg:visible").count() == 4
