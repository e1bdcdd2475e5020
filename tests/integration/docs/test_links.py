"""What the documents say is so: links resolve; names, layouts and limits are those of the code."""

import ast
import re
from pathlib import Path

import pytest

from counterfoil.benchmarks.records import MAX_PIXELS
from counterfoil.benchmarks.tables import LARGEST, DataTable
from counterfoil.inputs.files import MAX_DEPTH
from counterfoil.models.score_table_layouts import recognise

ROOT = Path(__file__).resolve().parents[3]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted(ROOT.glob("docs/*.md"))]
INPUTS = (ROOT / "docs" / "inputs.md").read_text("utf-8")
LINK = re.compile(r"\]\(([^)\s]+)\)")
FOUND = re.compile(r"^\| ([^|]+) \| \[[^\]]+\]\(\.\./(src/[^)]+\.py)\) `(\w+)` \|$", re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_resolve(page):
    links = (link.partition("#")[0] for link in LINK.findall(page.read_text(encoding="utf-8")))
    inside = (link for link in links if link and not link.startswith(("http", "mailto")))
    assert [link for link in inside if not (page.parent / link).exists()] == []


def test_what_is_sought_stands_where_the_architecture_says():
    rows = FOUND.findall((ROOT / "docs" / "architecture.md").read_text(encoding="utf-8"))
    assert len(rows) > 10
    for what, path, name in rows:
        names = set()
        for node in ast.parse((ROOT / path).read_text(encoding="utf-8")).body:
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", node)]
            names |= {getattr(item, "name", getattr(item, "id", None)) for item in targets}
        assert name in names, what


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
    text = INPUTS.partition("## Scores of your own")[2].partition("\n## ")[0]
    result = []
    for line in text.splitlines():
        form, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        for cell, kind in zip(cells, KINDS.get(form, ()), strict=False):
            result += [(item, kind) for item in cell.split("; or ") if item]
    return result


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


def test_other_limits():
    assert f"nested {MAX_DEPTH} deep" in INPUTS
    assert f"{MAX_PIXELS // 10**6} million pixels" in INPUTS
    assert f"{LARGEST:g}".replace("+", "") in INPUTS
