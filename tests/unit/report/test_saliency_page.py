"""The page of heatmaps: whole, closed to the outside, legible on a telephone, and true to its licence."""

import re
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from counterfoil.engine.explain import ExplainedPair, ExplainedQuestion, Heat, PairToExplain, words_of
from counterfoil.report.html import static
from counterfoil.report.saliency_page import page
from counterfoil.world.sample import quads
from report.outlines import closed


@pytest.fixture(scope="module")
def made():
    benchmark = quads(1, size=48)
    pairs = {}
    for at, image in product((0, 1), repeat=2):
        caption, rng = benchmark.captions[at], np.random.default_rng(10 * at + image)
        asked = PairToExplain(benchmark.images[image], caption, words_of(caption.text or ""))
        parts = rng.normal(size=(len(asked.spans), 4, 4))
        parts[0] = 0.0
        box = (0.1, 0.0, 0.9, 1.0)
        heats = (
            Heat("occlusion", rng.normal(size=(4, 4)), parts),
            Heat("patches", rng.random((3, 3)), rng.random((len(parts), 3, 3)), box),
        )
        drops = np.linspace(-0.5, 1, len(parts))
        pairs[at, image] = ExplainedPair(asked, 0.25, drops, heats)
    return benchmark, [ExplainedQuestion(benchmark.questions.ids[0], pairs)]


def test_it_is_whole_and_fetches_nothing(made):
    text = page("open-clip:<x>", *made, notes=["one & two"])
    assert closed(text) == static("page.js")
    assert "open-clip:&lt;x&gt;" in text
    assert "one &amp; two" in text
    # Each photograph is there once, under forty heatmaps and more.
    assert text.count("data:image/webp") == 2
    assert text.count("<figure>") > 40
    assert text.count("The same everywhere:") == 4


def test_a_licence_that_forbids_it_leaves_photographs_and_captions_out(made):
    benchmark, questions = made
    card = benchmark.card.model_copy(update={"redistributable": False, "licence": "no copies"})
    closed = replace(benchmark, card=card)
    closed_page = page("model", closed, questions)
    assert "data:image/webp" not in closed_page
    assert "(no copies)" in closed_page
    text = benchmark.captions[0].text or ""
    for word in (each for each in re.findall(r"\w+", text) if len(each) > 3):
        assert f">{word}<" not in closed_page
    assert ">word 1<" in closed_page
    assert page("model", closed, questions, pictures="always").count("data:image/webp") == 2
    assert "data:image/webp" not in page("model", benchmark, questions, budget=100)


@pytest.mark.browser
def test_heatmaps_lie_over_their_pictures(made, fits):
    shown = fits(page("model", *made))
    boxes = shown.evaluate(
        """[...document.querySelectorAll('.heats .canvas')].map(each => {
            const [a, b] = [each.getBoundingClientRect(), each.querySelector('img').getBoundingClientRect()];
            const below = getComputedStyle(each.querySelector('.below')).backgroundImage;
            return [(b.left - a.left) / a.width, b.width / a.width, b.height / a.height, below.slice(0, 9)];
        })"""
    )
    assert {below for *_, below in boxes} == {'url("data'}
    places = {tuple(round(part, 2) for part in parts) for *parts, _ in boxes}
    assert places == {(0.0, 1.0, 1.0), (0.1, 0.8, 1.0)}
    lefts = shown.evaluate(
        "[...document.querySelector('.heats').children].map(one => one.getBoundingClientRect().left)"
    )
    assert len({round(left) for left in lefts}) == min(len(lefts), 2)
