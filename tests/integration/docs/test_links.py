"""Links of README, CONTRIBUTING and docs resolve, and names beside links to modules are in those modules."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").glob("*.md")),
]
LINK = re.compile(r"\]\(([^)\s]+)\)")
FOUND = re.compile(r"^\| ([^|]+) \| \[[^\]]+\]\(\.\./(src/[^)]+\.py)\) `(\w+)` \|$", re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_resolve(page):
    links = (link.partition("#")[0] for link in LINK.findall(page.read_text(encoding="utf-8")))
    inside = (link for link in links if link and not link.startswith(("http", "mailto")))
    broken = [link for link in inside if not (page.parent / link).exists()]
    assert broken == []


def test_what_is_sought_stands_where_the_architecture_says():
    rows = FOUND.findall((ROOT / "docs" / "architecture.md").read_text(encoding="utf-8"))
    assert len(rows) > 10
    for what, path, name in rows:
        names = set()
        for node in ast.parse((ROOT / path).read_text(encoding="utf-8")).body:
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", node)]
            names |= {getattr(each, "name", getattr(each, "id", None)) for each in targets}
        assert name in names, what
