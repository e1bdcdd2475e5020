"""The frame of all pages: closed to the outside, whatever stands in it."""

import base64
import hashlib
import html
import re

from counterfoil.report import frame


def test_a_page_without_a_script_may_run_none() -> None:
    text = frame.render("base.html", title="A <title> & more")
    assert "<title>A &lt;title&gt; &amp; more</title>" in text
    assert "<script" not in text
    rules = html.unescape(re.search(r'Content-Security-Policy" content="([^"]*)"', text).group(1))
    assert rules.startswith("default-src 'none'; ")
    assert "script-src" not in rules


def test_several_scripts_are_one_and_the_policy_names_it() -> None:
    text = frame.render("base.html", title="Twice", scripts=("pairs.js", "pairs.js"))
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.S)
    assert script == 2 * frame.static("pairs.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in html.unescape(text)


def test_styles_stand_in_the_order_given() -> None:
    text = frame.render("base.html", title="Plain", styles=("page.css",))
    assert f"<style>\n{frame.static('page.css')}" in text
