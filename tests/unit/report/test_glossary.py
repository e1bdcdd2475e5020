"""The ten words: the same in the documents and on every page."""

import re
from html import unescape
from pathlib import Path

from counterfoil.report import html
from counterfoil.report.labels import WORDS


def test_documents_and_pages_say_the_same() -> None:
    document = (Path(__file__).parents[3] / "docs" / "glossary.md").read_text(encoding="utf-8")
    assert len(WORDS) == 10
    entries = dict(re.findall(r"\*\*(.+?)\.\*\* (.+?)(?:\n\n|\Z)", document, re.S))
    assert {word: " ".join(said.split()) for word, said in entries.items()} == dict(WORDS)
    page = unescape(html.render("base.html", title="Any page"))
    for word, said in WORDS.items():
        assert f"<dt>{word}</dt><dd>{said}</dd>" in page
