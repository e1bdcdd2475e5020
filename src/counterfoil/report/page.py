"""The report as one HTML file that needs nothing else: no server, no network, no other file.

Numbers, tables and figures stand in the page itself and can be read without a script; the script is for the
browser of questions alone. A content security policy forbids the page to fetch anything or to run any
script but its own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from counterfoil.data.benchmark import Benchmark
from counterfoil.data.questions import Quad
from counterfoil.errors import InputError, UnknownNameError
from counterfoil.evaluation.compare import Comparison
from counterfoil.report import drawing, figures, frame, tables
from counterfoil.report.frame import Drawing, Panels
from counterfoil.report.island import benchmark_data, richest, to_json
from counterfoil.report.notes import Note, lead, notes, ties
from counterfoil.report.pictures import BUDGET, Album

#: Whose images and captions a page carries along.
PICTURES = ("auto", "always", "never")

#: A grouping of more groups than this gets a table of its own kind, a row per group.
MANY_GROUPS = 8
#: More scorers or groups than this, and dots would need more room than a screen has.
_DOTS_GROUPS, _DOTS_RUNS = 4, 6


@dataclass(frozen=True)
class Grouping:
    """One way to divide a benchmark's questions, as tables (one per measure where there are many groups)."""

    name: str
    official: bool
    drawings: tuple[Drawing, ...]
    tables: tuple[tables.Table, ...]


@dataclass(frozen=True)
class Chapter:
    """What the page says about one benchmark."""

    anchor: str
    comparison: Comparison
    benchmark: Benchmark
    lead: str
    ties: str
    notes: tuple[Note, ...]
    overview: tables.Table
    measures: tuple[Drawing, ...]
    groupings: tuple[Grouping, ...]
    directions: Drawing | None
    margins: tuple[Panels, ...]
    significance: tuple[Drawing, ...]
    differences: tuple[tables.Table, ...]
    pictures: str


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
    data, chapters = [], []
    anchors = _anchors(comparisons)
    for comparison, anchor in zip(comparisons, anchors, strict=True):
        card = comparison.runs[0].benchmark.card
        may = card.redistributable or pictures == "always"
        benchmark = benchmark_data(comparison, album, pictures=may and pictures != "never", captions=may)
        data.append({**benchmark, "anchor": anchor})
        chapters.append(_chapter(comparison, anchor, _about_pictures(benchmark, may, pictures, card.licence)))
    return frame.render(
        "page.html",
        title=title,
        scripts=("browser.js", "pairs.js"),
        chapters=chapters,
        provenance=_provenance(comparisons),
        broken=album.broken,
        data=to_json({"benchmarks": data, "pictures": album.uris}),
    )


def _chapter(comparison: Comparison, anchor: str, pictures: str) -> Chapter:
    benchmark = comparison.runs[0].benchmark
    main = tables.main_measures(comparison)
    finer = [
        name
        for name in dict.fromkeys(n for run in comparison.runs for n in run.result.measures)
        if name not in main
    ]
    quad = isinstance(benchmark.questions, Quad)
    scored = any(figures.margin_values(run, main[0]) is not None for run in comparison.runs)
    reading = "Dot: the value. Bar: its 95 % interval. Dashed: chance."
    measures = [_dots(comparison, f"{anchor}-measures", "Main measures", reading, main)]
    if finer and quad:
        measures.append(_dots(comparison, f"{anchor}-finer", "Finer measures", "", finer, columns=len(finer)))
    return Chapter(
        anchor=anchor,
        comparison=comparison,
        benchmark=richest(comparison),
        lead=lead(comparison),
        ties=ties(comparison),
        notes=tuple(notes(comparison)),
        overview=tables.overview(comparison),
        measures=tuple(measures),
        groupings=tuple(_groupings(comparison, anchor)),
        directions=_directions(comparison, anchor) if quad else None,
        margins=tuple(
            _margins(comparison, f"{anchor}-margins-{name}", name) for name in main if name != "group"
        )
        if scored
        else (),
        significance=tuple(_significance(comparison, f"{anchor}-p-{name}", name) for name in reversed(main))
        if comparison.differences
        else (),
        differences=tuple(tables.differences(comparison, name) for name in main)
        if comparison.differences
        else (),
        pictures=pictures,
    )


def _dots(
    comparison: Comparison, name: str, title: str, caption: str, measures: Sequence[str], *, columns: int = 3
) -> Drawing:
    wide = drawing.svg(figures.measures(comparison, measures, columns=columns), name=name, title=title)
    narrow = drawing.svg(figures.measures(comparison, measures, columns=1), name=f"{name}-n", title=title)
    return Drawing(title, caption, wide, narrow)


def _groupings(comparison: Comparison, anchor: str) -> list[Grouping]:
    benchmark = comparison.runs[0].benchmark
    labels = tables.groupings(benchmark.questions)
    official = [name for name in benchmark.card.groupings if name in labels] or list(labels)[:1]
    found = []
    for number, name in enumerate([*official, *(name for name in labels if name not in official)]):
        main = tables.main_measures(comparison)
        many = len(labels[name]) > MANY_GROUPS
        drawings: list[Drawing] = []
        if name in official and not many:
            # The first grouping in full; of the others the one number that sums the rest up.
            shown = main if name == official[0] else main[-1:]
            drawings = _group_drawings(comparison, name, f"{anchor}-by-{number}", shown)
        of_groups = (
            tuple(tables.group_rows(comparison, measure, grouping=name) for measure in main)
            if many
            else (tables.by_group(comparison, grouping=name),)
        )
        found.append(Grouping(name, name in official, tuple(drawings), of_groups))
    return found


def _group_drawings(
    comparison: Comparison, grouping: str, name: str, measures: Sequence[str]
) -> list[Drawing]:
    groups = len(tables.groupings(comparison.runs[0].benchmark.questions)[grouping])
    labels = [tables.LABELS.get(measure, measure) for measure in measures]
    heats = [
        drawing.svg(
            figures.heat(comparison, grouping, measure),
            name=f"{name}-{measure}",
            title=f"{label} by {grouping}",
        )
        for measure, label in zip(measures, labels, strict=True)
    ]
    if groups <= _DOTS_GROUPS and len(comparison.runs) <= _DOTS_RUNS:
        dots = figures.groups(comparison, grouping, measures)
        wide = drawing.svg(dots, name=name, title=f"Measures by {grouping}")
        return [Drawing(f"By {grouping}", "", wide, "".join(heats))]
    return [Drawing(label, "", heat) for label, heat in zip(labels, heats, strict=True)]


def _directions(comparison: Comparison, anchor: str) -> Drawing | None:
    if not any({"i2t", "t2i"} <= set(run.result.measures) for run in comparison.runs):
        return None
    name = f"{anchor}-directions"
    title = "I2T against T2I"
    caption = "Below the dotted line, images find their captions more often than captions find their images."
    wide = drawing.svg(figures.directions(comparison), name=name, title=title)
    return Drawing(
        title,
        caption,
        wide,
        drawing.svg(figures.directions(comparison, size=3.9), name=f"{name}-n", title=title),
    )


def _margins(comparison: Comparison, name: str, measure: str) -> Panels:
    """One small figure per scorer, which wrap as the screen is wide."""
    label = tables.LABELS.get(measure, measure)
    shown = [run.name for run in comparison.runs if figures.margin_values(run, measure) is not None]
    order = [scorer for scorer in tables.ranking(comparison) if scorer in shown]
    return Panels(
        f"Margins of {label}",
        tables.MEANINGS.get(measure, ""),
        tuple(
            drawing.svg(
                figures.margins(comparison, measure, names=[scorer]),
                name=f"{name}-{number}",
                title=f"Margins of {label}: {scorer}",
            )
            for number, scorer in enumerate(order)
        ),
    )


def _significance(comparison: Comparison, name: str, measure: str) -> Drawing:
    title = f"Differences in {tables.LABELS.get(measure, measure)}"
    return Drawing(title, "", drawing.svg(figures.significance(comparison, measure), name=name, title=title))


def _about_pictures(data: Mapping[str, Any], may: bool, pictures: str, licence: str) -> str:
    """What the page says where questions lack their pictures or captions."""
    n, pictured = len(data["ids"]), data["pictured"]
    if not may:
        under = f" ({licence})" if licence else ""
        return (
            f"Images and captions are left out: the licence of {data['title']}{under} does not let a report "
            "carry them. With pictures set to “always” the page holds them, for your own eyes."
        )
    if pictures == "never":
        return "Images were left out as asked."
    if not pictured:
        return "The images were not at hand, so the questions are shown without them."
    if pictured < n:
        return (
            f"To keep the file small, {pictured:,} of {n:,} questions have their pictures: "
            "some of every group and kind of failure."
        )
    return ""


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
