"""The page of a build: what it says of rows, reasons, facts and captions."""

import re

from counterfoil.report.build_page import RowExample, StepSection, build_page, counts_table

FACTS = {
    "rows": 12,
    "share": 0.25,
    "nested": {"a": 1, "b": 2},
    "scores": {
        "blind:length": {
            "before": {"value": 0.7, "low": 0.6, "high": 0.8, "n": 12},
            "after": {"value": 0.5, "low": 0.4, "high": 0.6, "n": 8},
        }
    },
    "calibration": {
        "curve": [
            {"threshold": t, "kept": [1 - t, 0, 1], "precision": [p, p - 0.1, p + 0.1], "recall": [1, 1, 1]}
            for t, p in ((0.0, 0.5), (0.5, 0.75))
        ]
    },
    "cost": {"x": [0, 1, 2], "y": [0, 3, 4], "x_label": "judged", "y_label": "found", "title": "Cost"},
}
STEP = StepSection(
    "2-refine",
    "drop rows <b>",
    12,
    8,
    {"too long": 3, "too short": 1},
    {"bins": "50"},
    FACTS,
    kept_rows=(RowExample("a", {"caption": "a cat & a dog"}, {}),),
    dropped_rows=(RowExample("b", {"caption": "a bird"}, {}, "too long"),),
)


def test_the_page_says_what_a_step_did():
    given = {"about": "about it", "command": "build mine"}
    page = build_page("Mine", [STEP], **given)
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))
    assert "12 rows in, 8 out" in text
    assert "too long 3 75.00" in text
    assert "blind:length 70.00 60.0 to 80.0 50.00 40.0 to 60.0" in text
    assert "rows : 12" in text
    assert "nested : a 1, b 2" in text
    assert "a cat &amp; a dog" in page
    assert "drop rows <b>" not in page
    assert page.count("<svg") == 3
    assert page == build_page("Mine", [STEP], **given)


def test_counts_stand_with_their_shares_the_most_frequent_first():
    table = counts_table("c", {"b": 1, "a": 1, "": 2}, corner="x")
    assert [(row.name, row.cells[0].value, row.cells[1].value) for row in table.rows] == [
        ("(none)", "2", 0.5),
        ("a", "1", 0.25),
        ("b", "1", 0.25),
    ]
