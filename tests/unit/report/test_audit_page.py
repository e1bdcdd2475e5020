"""The page of an audit: closed to the outside, accessible, and it fits a telephone."""

import pytest

import counterfoil as cf


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("audit")
    rows = (f"{at}.jpg,a cat <b> {at},a cat and {at},swap" for at in range(40))
    (folder / "mine.csv").write_text("\n".join(["image,caption,negative_caption,type", *rows]) + "\n")
    found = cf.audit("pairs", data=folder / "mine.csv", draws=100, cache=None, quiet=True)
    assert [each.word for each in found["pairs"].named] == ["and", "b"]
    found.to_html(folder / "audit.html", title="Words & <answers>")
    return (folder / "audit.html").read_text()


def test_it_names_words_and_escapes_captions(page):
    assert "<title>Words &amp; &lt;answers&gt;</title>" in page
    assert "right: a cat &lt;b&gt; 0 – wrong: a cat and 0" in page
    assert "mine.csv" not in page


@pytest.mark.browser
def test_it_fits_every_screen_and_axe_finds_nothing(page, fits):
    fits(page)
