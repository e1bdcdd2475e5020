"""Inputs of the report's tests: small drawn benchmarks, and the real released answers where they are."""

import io
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import PIL.Image
import pytest

from contracts import forms
from counterfoil.benchmarks.answers import Outcomes, Rankings, Scores
from counterfoil.benchmarks.benchmark import Benchmark, Card
from counterfoil.benchmarks.forms import Quad
from counterfoil.benchmarks.records import BytesSource, Caption, Image
from counterfoil.evaluation.compare import compare
from counterfoil.evaluation.evaluate import evaluate, per_item
from counterfoil.evaluation.result import Run
from counterfoil.metrics.ranks import Qrels
from counterfoil.metrics.ties import Ties
from counterfoil.report import figure_style, figures
from counterfoil.report.page import page
from small_galleries import cut_after

#: A caption that would end the data island, or run, if anything on the page forgot to escape it.
NASTY = (
    "A </script><script>window.hacked = 1</script> & a <img src=x onerror='window.hacked = 2'> \u2028 caption"
)
N_QUADS, N_CHOICES, N_GALLERY = 40, 15, 30


def picture(colour, size=(300, 200)):
    out = io.BytesIO()
    PIL.Image.new("RGB", size, colour).save(out, "PNG")
    return out.getvalue()


def run_of(benchmark, name, answers, *, ties=Ties.STRICT):
    facts = {"weights": f"digest-of-{name}", "precision": "fp32"}
    result = evaluate(benchmark, answers, model=name, ties=ties, draws=100, provenance=facts)
    manifest = {"command": ["counterfoil", "evaluate", name], "seed": 7}
    return Run(name, benchmark, answers, per_item(benchmark, answers, ties=ties), result, manifest)


def quad_benchmark(n=N_QUADS, **card):
    """`n` quads over drawn pictures: one broken, one caption hostile, neighbours sharing an image."""
    # Questions 2k and 2k + 1 share image 3k + 1.
    images = [
        Image(f"image-{i}", BytesSource(picture((i * 4 % 256, 90, 200 - i)), f"drawn {i}"))
        for i in range(n * 3 // 2)
    ]
    images[3] = Image("image-3", BytesSource(b"this is no picture", "drawn 3"))
    captions = [
        Caption(f"caption-{i}", f"thing {i // 2} is {'left' if i % 2 else 'right'} of a box")
        for i in range(2 * n)
    ]
    captions[4] = Caption("caption-4", NASTY)
    index = np.arange(n)
    first = index // 2 * 3 + index % 2
    questions = Quad(
        tuple(f"q{i}" for i in range(n)),
        captions=np.stack([2 * index, 2 * index + 1], axis=1),
        images=np.stack([first, first + 1], axis=1),
        groupings={
            "type": tuple(("swap", "add", "replace")[i % 3] for i in range(n)),
            "tag": tuple(f"tag <{i % 11}>" if i % 4 else "" for i in range(n)),
        },
    )
    facts = {"name": "drawn", "title": "Drawn & written", "licence": "CC0", "groupings": ("type",), **card}
    shown = Card(form="quad", **facts)
    return Benchmark(shown, tuple(images), tuple(captions), questions, source="drawn in a test")


def quad_answers(n=N_QUADS):
    """Scores of a good and of a poor model (with ties, on another scale), and outcomes without scores."""
    rng = np.random.default_rng(11)
    good = rng.normal(0.25, 0.05, (n, 2, 2)) + 0.06 * np.eye(2)
    poor = np.round(rng.normal(20, 3, (n, 2, 2)))
    right = {name: rng.random(n) < 0.7 for name in ("ipos2t", "ineg2t", "tpos2i", "tneg2i")}
    return {"good": Scores(good), "poor & <tied>": Scores(poor), "outcomes": Outcomes(right)}


def choice_benchmark(n=N_CHOICES, **card):
    """`n` images with three captions each, the first of them right."""
    images = tuple(Image(f"photo-{i}", BytesSource(picture((10, i * 9, 90)))) for i in range(n))
    captions = tuple(Caption(f"text-{i}", f"caption number {i}") for i in range(3 * n))
    labels = {"kind": tuple("even" if i % 2 == 0 else "odd" for i in range(n))}
    facts = {"name": "choices", "title": "Choices", "macro": "kind", "pitfalls": ("Mind the gap.",), **card}
    return forms.choices_of(images, captions, ids=[f"c{i}" for i in range(n)], labels=labels, **facts)


def gallery_benchmark(n=N_GALLERY, *, parts=False, **card):
    """`n` images with two captions each, the own ones right and the next image's first in part.

    One right caption of image 0 is outside the gallery, and image 1 has no right answer at all. With
    `parts`, even and odd images (with their captions) are two galleries, and only own captions are right.
    """
    images = tuple(Image(f"photo-{i}", BytesSource(picture((9, i * 8 % 256, 250 - i)))) for i in range(n))
    captions = [Caption(f"text-{i}", f"sentence {i} about photo {i // 2}") for i in range(2 * n)]
    captions[4] = Caption("text-4", NASTY)
    owners = np.repeat(np.arange(n), 2)
    rows = [[2 * i, 2 * i + 1] + ([] if parts else [2 * ((i + 1) % n)]) for i in range(n)]
    gains = [[1.0, 1.0] + ([] if parts else [0.5]) for _ in range(n)]
    if not parts:
        rows[0].append(-1)
        gains[0].append(1.0)
        rows[1], gains[1] = [], []
    of_captions = [[] for _ in captions]
    worth = [[] for _ in captions]
    for i, (row, gain) in enumerate(zip(rows, gains, strict=True)):
        for caption, value in zip(row, gain, strict=True):
            if caption >= 0:
                of_captions[caption].append(i)
                worth[caption].append(value)
    facts = {"name": "drawn-gallery", "title": "Drawn gallery", "measures": ("map_at_r", "recall_at_1")}
    return forms.gallery_of(
        images,
        captions,
        (Qrels.of(rows, gains), Qrels.of(of_captions, worth)),
        parts=(np.arange(n) % 2, owners % 2) if parts else (None, None),
        source="drawn in a test",
        **{**facts, **card},
    )


def rankings_of(benchmark, scores, *, top=10, cut=0):
    """What `scores` (images x captions) make of a gallery; `cut` ends its lists, which are orders alone."""
    result = forms.rankings(benchmark, scores, top=top)
    if not cut:
        return result
    sides = (
        replace(side, top_scores=np.full_like(side.top_scores, np.nan)) for side in (result.i2t, result.t2i)
    )
    return cut_after(Rankings(*sides), cut)


def gallery_scores(n=N_GALLERY):
    """Scores of all pairs: of a good model, and of a poor one that rounds, so that many are tied."""
    rng = np.random.default_rng(23)
    own = np.arange(n)[:, None] == np.repeat(np.arange(n), 2)
    return {
        "good": 0.3 * rng.normal(size=own.shape) + 0.9 * own,
        "poor & <tied>": np.round(rng.normal(size=own.shape) + 0.8 * own),
    }


def compared(benchmark, answers, **more):
    return compare([run_of(benchmark, name, given) for name, given in answers.items()], **more)[0]


@pytest.fixture(scope="session")
def galleries():
    """Three models on the drawn gallery: good, tied, and cut after 12 items."""
    benchmark, scores = gallery_benchmark(), gallery_scores()
    answers = {name: rankings_of(benchmark, table) for name, table in scores.items()}
    return compared(benchmark, {**answers, "cut": rankings_of(benchmark, scores["good"] * 0.5, cut=12)})


@pytest.fixture(scope="session")
def quads():
    return compared(quad_benchmark(), quad_answers(), baseline="poor & <tied>")


@pytest.fixture(scope="session")
def choices():
    rng = np.random.default_rng(5)
    scores, right = rng.normal(size=(N_CHOICES, 3)), rng.random(N_CHOICES) < 0.5
    answers = {"scored": Scores(scores), "only right": Outcomes({"accuracy": right})}
    return compared(choice_benchmark(), answers)


@pytest.fixture(scope="session")
def rated():
    """Four models of rated captions: an oracle, a good one, one against people, one that says nothing."""
    from report.judgements import rated_benchmark, rated_scores

    benchmark = rated_benchmark()
    return compared(benchmark, rated_scores(benchmark))


@pytest.fixture(scope="session")
def preferred():
    """Three models of preferences: an oracle, one with ties, one asked in three draws."""
    from report.judgements import preference_benchmark, preference_scores

    benchmark = preference_benchmark()
    return compared(benchmark, preference_scores(benchmark))


@pytest.fixture(scope="session")
def everything(quads, choices, galleries, rated, preferred):
    """A comparison of every form that has a browser of its own."""
    return [quads, choices, galleries, rated, preferred]


@pytest.fixture(scope="session")
def report(everything):
    return page(everything, title="A <test> & report")


@pytest.fixture
def undrawn(monkeypatch):
    """Pages without their figures, which take most of the time."""
    monkeypatch.setattr(figure_style, "svg", lambda figure, **names: "")
    for name in ("measures", "group_heatmap", "directions", "significance"):
        monkeypatch.setattr(figures, name, lambda *values, **options: None)


@contextmanager
def opening(chromium, folder):
    """Opens HTML text from a file; at the end, the page must have asked for and complained of nothing."""
    contexts, troubles = [], []

    def open_page(text, *, place="", width=1280):
        path = folder / "report.html"
        path.write_text(text, encoding="utf-8")
        context = chromium.new_context(viewport={"width": width, "height": 900})
        contexts.append(context)
        view = context.new_page()

        def note_request(request):
            if not request.url.startswith(("data:", path.as_uri())):
                troubles.append(f"request: {request.url}")

        view.on("request", note_request)
        view.on("console", lambda message: troubles.append(f"console: {message.text}"))
        view.on("pageerror", lambda error: troubles.append(f"error: {error}"))
        view.goto(path.as_uri() + place)
        return view

    yield open_page
    for context in contexts:
        context.close()
    assert troubles == []


@pytest.fixture
def opened(chromium, tmp_path):
    with opening(chromium, tmp_path) as open_page:
        yield open_page


@pytest.fixture
def fits(opened, violations):
    """Opens a page: on a telephone and on a desk nothing spills over the side, and axe finds nothing."""

    def look(text):
        view = opened(text)
        for width in (1440, 360):
            view.set_viewport_size({"width": width, "height": 900})
            assert view.evaluate("document.documentElement.scrollWidth") <= width
            # The colours of an element are those of its scheme, whatever the width.
            assert violations(view, colours=width == 1440) == []
            # With all details open.
            assert view.evaluate("document.documentElement.scrollWidth") <= width
        return view

    return look
