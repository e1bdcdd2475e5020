"""The layouts of score tables that docs/inputs.md shows are those that are recognised."""

from pathlib import Path

import pytest

from counterfoil.benchmarks.tables import DataTable
from counterfoil.models.score_table_layouts import recognise

PAGE = Path(__file__).resolve().parents[3] / "docs" / "inputs.md"
#: What a table of scores, of right and wrong, and of a row per pair is recognised as, by form.
KINDS = {
    "choice": ("choice_scores", "choice_outcome", "choice_scores"),
    "quad": ("quad_scores", "quad_outcomes", "quad_scores"),
    "paraphrase": ("choice_scores", "choice_outcome", ""),
    "statement, rated": ("rated_scores", "choice_outcome", ""),
    "preference": ("choice_scores", "choice_outcome", "choice_scores"),
}


def shown():
    """The columns of every layout of the page's table, and what it is to be recognised as."""
    text = PAGE.read_text("utf-8").partition("## Scores of one's own")[2].partition("\n## ")[0]
    found = []
    for line in text.splitlines():
        form, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        for cell, kind in zip(cells, KINDS.get(form, ()), strict=False):
            found += [(each, kind) for each in cell.split("; or ") if each]
    return found


@pytest.mark.parametrize(("layout", "kind"), shown())
def test_a_layout_is_recognised(layout, kind):
    plain = layout.replace("`", "").replace(", …, right ones first", "")
    ids = ["17_c0_i1"] if "_i1)" in plain else ["17_c0"] if "_c0" in plain else ["q1"]
    names = [name.partition(" (")[0].strip() for name in plain.split(", ") if not name.startswith("17_")]
    answers = {"correct", "ipos2t", "ineg2t", "tpos2i", "tneg2i"}
    cells = {name: [1] if name in answers or name == "side" else [0.25] for name in names}
    cells |= {name: ["a.jpg"] for name in ("image", "caption") if name in names}
    table = DataTable({**cells, **({"id": ids} if "id" in names else {})}, "own.csv")
    assert recognise(table).kind == kind


def test_every_form_is_shown():
    assert len(shown()) == 15
