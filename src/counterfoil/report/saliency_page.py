"""The page of heatmaps: which words of a caption count for a score, and where in the picture they point."""

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
import PIL.Image
from jaxtyping import Float
from numpy import ndarray
from PIL import ImageColor

from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.engine.explain import METHODS, ExplainedPair, ExplainedQuestion
from counterfoil.report import html
from counterfoil.report.figure_style import RIGHT, WRONG
from counterfoil.report.html import shareable
from counterfoil.report.thumbnails import BUDGET, Thumbnails, carried, data_uri

#: How much of the photograph the strongest cell covers.
_COVER = 0.8


def page(
    model: str,
    benchmark: Benchmark,
    questions: Sequence[ExplainedQuestion],
    *,
    notes: Sequence[str] = (),
    title: str = "Which words count, and where",
    pictures: str = "auto",
    budget: int = BUDGET,
    private: bool = False,
) -> str:
    """The page as HTML; `pictures`, `budget` and `private` as in `counterfoil.report.page.page`."""
    captions, images, why = carried(benchmark, pictures)
    thumbnails = Thumbnails(budget)
    shown: dict[int, int] = {}
    if images:
        wanted = [[*dict.fromkeys(image for _, image in question.pairs)] for question in questions]
        shown = thumbnails.add(benchmark.images, wanted)
    sections = [
        (
            question.id,
            [
                pair_card(pair, shown.get(image, -1), captioned=captions)
                for (_, image), pair in question.pairs.items()
            ],
        )
        for question in questions
    ]
    about = why or ("" if shown else "The images did not fit into the page.")
    return html.render(
        "explain.html",
        title=title,
        styles=("page.css", "explain.css"),
        contents=[
            *((f"q-{number}", name) for number, (name, _) in enumerate(sections)),
            ("method", "Method"),
        ],
        model=model if private else shareable(model),
        benchmark=benchmark.title,
        sections=sections,
        photographs=thumbnails.uris,
        about=about,
        notes=notes,
    )


def pair_card(pair: ExplainedPair, picture: int, *, captioned: bool) -> dict[str, Any]:
    """One image with one caption: score, marked words, heatmaps by method; `picture` -1 is none."""
    words = pair.words if captioned else [f"word {number}" for number in range(1, len(pair.words) + 1)]
    size = (4, 3) if pair.item.image.source is None else pair.item.image.decode().size
    # The caption in parts: texts, each with how it is tinted and what the score loses without the word.
    text, position = pair.item.caption.text or "", 0
    strongest = float(np.abs(pair.drops).max(initial=0.0))
    marks = []
    for (start, end), word, drop in zip(pair.item.spans, words, pair.drops.tolist(), strict=True):
        marks.append((text[position:start] if captioned else " ", "", ""))
        position = end
        colour = "var(--right)" if drop > 0 else "var(--wrong)"
        part = round(60 * abs(drop) / strongest) if strongest else 0
        style = f"background: color-mix(in srgb, {colour} {part}%, transparent)" if part else ""
        marks.append((word, style, _number(drop, signed=True)))
    marks.append((text[position:] if captioned else "", "", ""))
    methods = []
    for heatmap in pair.heats:
        method = METHODS[heatmap.method]
        left, top, right, bottom = (100 * end for end in heatmap.box)
        place = f"left: {left:.4g}%; top: {top:.4g}%; width: {right - left:.4g}%; height: {bottom - top:.4g}%"
        pictures, even = [], []
        for grid, label in zip([heatmap.whole, *heatmap.parts], ["whole caption", *words], strict=True):
            low, high = float(grid.min()), float(grid.max())
            extent = _number(high) if low == high else f"{_number(low)} to {_number(high)}"
            if uri := _overlay(grid, signed=method.signed):
                pictures.append({"label": label, "extent": extent, "uri": uri, "style": place})
            else:
                even.append(label)
        of_method = {"title": method.title, "unit": method.unit, "pictures": pictures, "even": even}
        methods.append(of_method)
    return {
        "image": pair.item.image.id,
        "picture": picture,
        "proportion": f"{size[0]} / {size[1]}",
        "score": _number(pair.score),
        "words": marks,
        "methods": methods,
    }


def _overlay(grid: Float[ndarray, "rows columns"], *, signed: bool) -> str:
    """A PNG with a pixel per cell as a data address; empty where all cells are equal."""
    values = grid if signed else grid - grid.min()
    strongest = float(np.abs(values).max())
    if strongest == 0:
        return ""
    pixels = np.empty((*grid.shape, 4), dtype=np.uint8)
    pixels[..., :3] = np.where((values >= 0)[..., None], *map(ImageColor.getrgb, (RIGHT, WRONG)))
    pixels[..., 3] = np.round(255 * _COVER * np.abs(values) / strongest)
    out = io.BytesIO()
    PIL.Image.fromarray(pixels).save(out, "PNG", optimize=True)
    return data_uri(out.getvalue())


def _number(value: float, *, signed: bool = False) -> str:
    """Three significant digits, with a true minus."""
    return f"{value:{'+' if signed and value else ''}.3g}".replace("-", "−")
