"""The report as one HTML file that needs nothing else: no server, no network, no other file.

Numbers, tables and figures stand in the page itself and can be read without a script; the script is for the
browser of questions alone. A content security policy forbids the page to fetch anything or to run any
script but its own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from counterfoil.data.galleries import Gallery
from counterfoil.errors import InputError, UnknownNameError
from counterfoil.evaluation.compare import Comparison
from counterfoil.report import frame
from counterfoil.report.chapter import Chapter, chapter
from counterfoil.report.gallery_chapter import GalleryChapter, gallery_chapter
from counterfoil.report.gallery_island import gallery_data
from counterfoil.report.island import benchmark_data, to_json
from counterfoil.report.pictures import BUDGET, Album

#: Whose images and captions a page carries along.
PICTURES = ("auto", "always", "never")


@dataclass(frozen=True)
class Browser:
    """A section in which questions can be looked through: its place in the page, and whose questions."""

    place: str
    title: str
    chapters: tuple[Chapter | GalleryChapter, ...]


def page(
    comparisons: Sequence[Comparison],
    *,
    title: str = "Images and captions: which belong together?",
    pictures: str = "auto",
    budget: int = BUDGET,
) -> str:
    """The whole report as HTML, the same for the same comparisons.

    `pictures` is "auto" (images and captions of benchmarks whose licence lets a report carry them),
    "always" (also the others: such a page is for your own eyes) or "never". Images are taken from the
    runs' benchmarks; `run.with_benchmark(...)` gives a loaded run its images back. `budget` bounds the
    pictures in bytes; where it does not last for all questions, the page says for how many it did.

    Raises `InputError` where there is nothing to report, and `UnknownNameError` for another `pictures`.
    """
    if not comparisons:
        raise InputError("nothing to report", hint="give at least one run")
    if pictures not in PICTURES:
        raise UnknownNameError("choice of pictures", pictures, PICTURES)
    album = Album(budget)
    data: dict[str, list[dict[str, Any]]] = {"benchmarks": [], "galleries": []}
    chapters: list[Chapter | GalleryChapter] = []
    for comparison, anchor in zip(comparisons, _anchors(comparisons), strict=True):
        benchmark = comparison.runs[0].benchmark
        may = benchmark.card.redistributable or pictures == "always"
        carries = {"pictures": may and pictures != "never", "captions": may}
        gallery = isinstance(benchmark.questions, Gallery)
        known = (gallery_data if gallery else benchmark_data)(comparison, album, **carries)
        data["galleries" if gallery else "benchmarks"].append({**known, "anchor": anchor})
        said = _about_pictures(known, may, pictures, benchmark.card.licence)
        chapters.append((gallery_chapter if gallery else chapter)(comparison, anchor, said))
    browsers = [
        Browser(place, place.capitalize(), tuple(of for of in chapters if isinstance(of, kind)))
        for place, kind in (("questions", Chapter), ("queries", GalleryChapter))
    ]
    galleries = bool(data["galleries"])
    return frame.render(
        "page.html",
        title=title,
        styles=("page.css", *(["gallery.css"] if galleries else [])),
        scripts=(
            "browser.js",
            *(["pairs.js"] if data["benchmarks"] else []),
            *(["gallery.js"] if galleries else []),
        ),
        chapters=chapters,
        browsers=[browser for browser in browsers if browser.chapters],
        provenance=_provenance(comparisons),
        broken=album.broken,
        data=to_json({**{key: of for key, of in data.items() if of}, "pictures": album.uris}),
    )


def _about_pictures(data: Mapping[str, Any], may: bool, pictures: str, licence: str) -> str:
    """What the page says where questions are missing, or lack their pictures or captions."""
    n, pictured = len(data["ids"]), data["pictured"]
    many = "queries" if data["form"] == "gallery" else "questions"
    sampled = ""
    if data.get("of", n) > n and n:
        sampled = f"Of {data['of']:,} queries with a right answer {n:,} are here, drawn by lot. "
    if not may:
        under = f" ({licence})" if licence else ""
        return (
            f"{sampled}Images and captions are left out: the licence of {data['title']}{under} does not let "
            "a report carry them. With pictures set to “always” the page holds them, for your own eyes."
        )
    if pictures == "never":
        return f"{sampled}Images were left out as asked."
    if not pictured:
        return f"{sampled}The images were not at hand, so the {many} are shown without them."
    if pictured < n:
        return (
            f"{sampled}To keep the file small, {pictured:,} of {n:,} {many} have their pictures: "
            f"some of every {'direction' if many == 'queries' else 'group'} and kind of failure."
        )
    return sampled.strip()


def _provenance(comparisons: Sequence[Comparison]) -> list[tuple[str, str, list[tuple[str, str]]]]:
    """Per run its benchmark, its name, and everything known of how it came about, as flat rows."""
    return [
        (
            run.benchmark.card.title,
            run.name,
            _flat({**run.result.provenance, **{k: v for k, v in run.manifest.items() if k != "card"}}),
        )
        for comparison in comparisons
        for run in comparison.runs
    ]


def _flat(value: object, prefix: str = "") -> list[tuple[str, str]]:
    """Nested values as rows of dotted names: `{"a": {"b": 1}}` is `[("a.b", "1")]`; empty ones go."""
    if isinstance(value, Mapping):
        return [
            row
            for key, inner in value.items()
            for row in _flat(inner, f"{prefix}.{key}" if prefix else str(key))
        ]
    if isinstance(value, list | tuple):
        text = " ".join(str(part) for part in value)
    else:
        text = "" if value is None else str(value)
    return [(prefix, text)] if text else []


def _anchors(comparisons: Sequence[Comparison]) -> list[str]:
    """A short name per benchmark, safe in ids and addresses, none twice."""
    anchors: list[str] = []
    for comparison in comparisons:
        plain = "".join(
            c if c.isascii() and c.isalnum() else "-" for c in comparison.benchmark.lower()
        ).strip("-")
        plain = f"b-{plain or 'benchmark'}"
        anchors.append(plain if plain not in anchors else f"{plain}-{len(anchors)}")
    return anchors
