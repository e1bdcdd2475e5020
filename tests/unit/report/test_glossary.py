"""The ten words: the same in the documents and on every page."""

import re
from html import unescape
from pathlib import Path

from counterfoil.report import html


def test_documents_and_pages_say_the_same():
    document = (Path(__file__).parents[3] / "docs" / "glossary.md").read_text(encoding="utf-8")
    entries = dict(re.findall(r"\*\*(.+?)\.\*\* (.+?)(?:\n\n|\Z)", document, re.S))
    page = unescape(html.render("base.html", title="Any page"))
    words = re.findall("<dt>(.+?)</dt><dd>(.+?)</dd>", page)
    assert len(words) == 10
    assert {word: " ".join(text.split()) for word, text in entries.items()} == dict(words)
