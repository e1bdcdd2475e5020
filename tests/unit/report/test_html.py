"""The frame of all pages: closed to the outside, whatever stands in it."""

from counterfoil.report import html
from report.outlines import own_script


def test_several_scripts_are_one_and_the_policy_names_it():
    text = html.render("base.html", title="Twice", scripts=("pairs.js", "pairs.js"))
    assert own_script(text) == html.static("page.js") + 2 * html.static("pairs.js")
