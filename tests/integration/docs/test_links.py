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
#: What a reader who has never seen the code looks for.
_SOUGHT = """
tie policies; mAP@R; the reader of SugarCrepe; QuickGELU's refusal; intervals of means; the cache key;
PAC-S's weight; hard-negative InfoNCE; a step of builds; SugarCrepe's refinement; who gets which item;
taking an answer; Krippendorff's alpha; the page of a gallery; what is before a person;
how items go back to the pool; pay of a campaign; who computes a shard; leases on shards;
what is made once for all ranks; other ways from a picture to its vector;
answers that wait for one transaction; labels of few answers; work on a Ray cluster;
the default of `--draws`; what a value of an option may be;
shards of training data, here and at a URL; files read by ranges; writing to a bucket; GradCache;
the lock on an output; the file that an image cell names; how pictures are opened; the error tree
"""
SOUGHT = set(" ".join(_SOUGHT.split()).split("; "))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_resolve(page: Path) -> None:
    links = (link.partition("#")[0] for link in LINK.findall(page.read_text(encoding="utf-8")))
    inside = (link for link in links if link and not link.startswith(("http", "mailto")))
    broken = [link for link in inside if not (page.parent / link).exists()]
    assert broken == []


def test_what_is_sought_stands_where_the_architecture_says() -> None:
    rows = FOUND.findall((ROOT / "docs" / "architecture.md").read_text(encoding="utf-8"))
    assert {what for what, _, _ in rows} == SOUGHT
    for what, path, name in rows:
        names = set()
        for node in ast.parse((ROOT / path).read_text(encoding="utf-8")).body:
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", node)]
            names |= {getattr(each, "name", getattr(each, "id", None)) for each in targets}
        assert name in names, what
