"""The frame of all pages: closed to the outside, and with the ten words of the documents."""

import re
from html import unescape
from pathlib import Path

from counterfoil.report import html
from report.outlines import own_script


def test_several_scripts_are_one_and_the_policy_names_it():
    text = html.render("base.html", title="Twice", scripts=("pairs.js", "pairs.js"))
    assert own_script(text) == html.static("page.js") + 2 * html.static("pairs.js")


def test_documents_and_pages_say_the_same():
    document = (Path(__file__).parents[3] / "docs" / "glossary.md").read_text(encoding="utf-8")
    entries = dict(re.findall(r"\*\*(.+?)\.\*\* (.+?)(?:\n\n|\Z)", document, re.S))
    page = unescape(html.render("base.html", title="Any page"))
    words = re.findall("<dt>(.+?)</dt><dd>(.+?)</dd>", page)
    assert len(words) == 10
    assert {word: " ".join(text.split()) for word, text in entries.items()} == dict(words)
