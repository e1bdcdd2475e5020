"""The frame of all pages: closed to the outside, whatever stands in it."""

from counterfoil.report import html
from report.outlines import own_script


def test_a_page_may_run_the_script_of_all_pages_alone() -> None:
    text = html.render("base.html", title="A <title> & more")
    assert "<title>A &lt;title&gt; &amp; more</title>" in text
    assert own_script(text) == html.static("page.js")


def test_several_scripts_are_one_and_the_policy_names_it() -> None:
    text = html.render("base.html", title="Twice", scripts=("pairs.js", "pairs.js"))
    assert own_script(text) == html.static("page.js") + 2 * html.static("pairs.js")


def test_styles_stand_in_the_order_given() -> None:
    text = html.render("base.html", title="Plain", styles=("page.css",))
    assert f"<style>\n{html.static('page.css')}" in text
