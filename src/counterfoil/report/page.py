"""The report as one HTML file that needs nothing else: no server, no network, no other file.

Numbers, tables and figures stand in the page itself and can be read without a script; the script is for the
browser of questions alone. A content security policy forbids the page to fetch anything or to run any
script but its own.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from counterfoil.data.benchmark import Benchmark
from counterfoil.data.forms import FORMS
from counterfoil.errors import InputError, UnknownNameError
from counterfoil.evaluation.compare import Comparison
from counterfoil.report import page_frame
from counterfoil.report.browser_data import benchmark_data, to_json
from counterfoil.report.galleries.browser_data import gallery_data
from counterfoil.report.galleries.section import GalleryChapter, gallery_chapter
from counterfoil.report.judged.browser_data import judged_data
from counterfoil.report.judged.section import JudgedChapter, judged_chapter
from counterfoil.report.models import ScorerSection, models
from counterfoil.report.page_frame import shareable, shared
from counterfoil.report.pictures import BUDGET, Album
from counterfoil.report.section import Chapter, chapter
from counterfoil.report.tables import ranking

#: Whose images and captions a page carries along.
PICTURES = ("auto", "always", "never")


AnyChapter = Chapter | GalleryChapter | JudgedChapter


class _Kind(NamedTuple):
    """What a page does with benchmarks of one kind."""

    key: str
    place: str
    chapter: Callable[[Comparison, str, str], AnyChapter]
    made: type
    data: Callable[..., dict[str, Any]]
    script: str
    style: str


_PAIRS = _Kind("benchmarks", "questions", chapter, Chapter, benchmark_data, "pairs.js", "")
_GALLERIES = _Kind(
    "galleries", "queries", gallery_chapter, GalleryChapter, gallery_data, "gallery.js", "gallery.css"
)
_JUDGED = _Kind("judged", "judgements", judged_chapter, JudgedChapter, judged_data, "judged.js", "judged.css")
_KINDS = (_PAIRS, _GALLERIES, _JUDGED)
#: The kind of section of every form.
_KIND_OF = {"quad": _PAIRS, "choice": _PAIRS, "gallery": _GALLERIES, "rated": _JUDGED, "preference": _JUDGED}


@dataclass(frozen=True)
class Browser:
    """A section in which questions can be looked through: its place in the page, and whose questions."""

    place: str
    title: str
    chapters: tuple["AnyChapter", ...]


def page(
    comparisons: Sequence[Comparison],
    *,
    title: str = "Images and captions: which belong together?",
    pictures: str = "auto",
    budget: int = BUDGET,
    private: bool = False,
) -> str:
    """The whole report as HTML, the same for the same comparisons.

    `pictures` is "auto" (images and captions of benchmarks whose licence lets a report carry them),
    "always" (also the others: such a page is for your own eyes) or "never". Images are taken from the
    runs' benchmarks; `run.with_benchmark(...)` gives a loaded run its images back. `budget` bounds the
    pictures in bytes; where it does not last for all questions, the page says for how many it did. A page is
    made to be passed on, so it says nothing of where files lie on this machine and who uses it; `private`
    keeps that.

    Raises `InputError` where there is nothing to report, and `UnknownNameError` for another `pictures`.
    """
    if not comparisons:
        raise InputError("nothing to report", hint="give at least one run")
    if pictures not in PICTURES:
        raise UnknownNameError("choice of pictures", pictures, PICTURES)
    album = Album(budget)
    data: dict[str, list[dict[str, Any]]] = {}
    chapters: list[AnyChapter] = []
    scorers: dict[str, tuple[ScorerSection, ...]] = {}
    comparisons = [_in_order(each if private else shared(each)) for each in comparisons]
    for comparison, anchor in zip(comparisons, _anchors(comparisons), strict=True):
        benchmark = comparison.runs[0].benchmark
        kind = _kind(benchmark)
        may = benchmark.card.redistributable or pictures == "always"
        known = kind.data(comparison, album, pictures=may and pictures != "never", captions=may)
        data.setdefault(kind.key, []).append({**known, "anchor": anchor})
        said = _about_pictures(known, may, pictures, benchmark.card.licence)
        chapters.append(kind.chapter(comparison, anchor, said))
        scorers[anchor] = models(comparison, anchor, kind.place, captions=may)
    shown = [kind for kind in _KINDS if kind.key in data]
    return page_frame.render(
        "page.html",
        title=title,
        styles=("page.css", *(kind.style for kind in shown if kind.style)),
        scripts=("browser.js", *(kind.script for kind in shown)),
        chapters=chapters,
        models=scorers,
        links={anchor: {model.name: model.anchor for model in of} for anchor, of in scorers.items()},
        browsers=[
            Browser(kind.place, kind.place.capitalize(), tuple(c for c in chapters if type(c) is kind.made))
            for kind in shown
        ],
        provenance=_provenance(comparisons),
        broken=album.broken
        if private
        else {shareable(name): shareable(why) for name, why in album.broken.items()},
        data=to_json({**data, "pictures": album.uris}),
    )


def _in_order(comparison: Comparison) -> Comparison:
    """The comparison with its runs best first, so that tables stand in the order of the figures."""
    order = ranking(comparison)
    return replace(comparison, runs=tuple(sorted(comparison.runs, key=lambda run: order.index(run.name))))


def _kind(benchmark: Benchmark) -> _Kind:
    return _KIND_OF[benchmark.questions.form]


def _about_pictures(data: Mapping[str, Any], may: bool, pictures: str, licence: str) -> str:
    """What the page says where questions are missing, or lack their pictures or captions."""
    n, pictured = len(data["ids"]), data["pictured"]
    many = FORMS[data["form"]].units
    sampled = ""
    if data.get("of", n) > n and n:
        drawn = (
            "queries with a right answer {} are here, drawn by lot"
            if many == "queries"
            else ("questions {} are here, some of every group and kind of disagreement")
        )
        sampled = f"Of {data['of']:,} {drawn.format(f'{n:,}')}. "
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
            _flat(
                {
                    "signature": run.result.signature(),
                    **run.result.provenance,
                    **{k: v for k, v in run.manifest.items() if k != "questions"},
                }
            ),
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
