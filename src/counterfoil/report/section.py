"""The chapter of a page on one benchmark of quads or choices: what it says, as values for the template."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from counterfoil.data.benchmark import Benchmark
from counterfoil.data.forms import Quad
from counterfoil.evaluation.compare import Comparison
from counterfoil.report import drawing, figures, tables
from counterfoil.report import labels as label_of
from counterfoil.report.browser_data import richest
from counterfoil.report.notes import Note, lead, notes, ties
from counterfoil.report.page_frame import Drawing, Panels

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

    template: ClassVar[str] = "pairs.html"

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


def chapter(comparison: Comparison, anchor: str, pictures: str) -> Chapter:
    """The chapter on `comparison`; `anchor` begins every id in it, `pictures` is what is said of them."""
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
    measures = [dots(comparison, f"{anchor}-measures", "Main measures", reading, main)]
    if finer and quad:
        measures.append(dots(comparison, f"{anchor}-finer", "Finer measures", "", finer, columns=len(finer)))
    return Chapter(
        anchor=anchor,
        comparison=comparison,
        benchmark=richest(comparison),
        lead=lead(comparison),
        ties=ties(comparison),
        notes=tuple(notes(comparison)),
        overview=tables.overview(comparison),
        measures=tuple(measures),
        groupings=tuple(group_tables(comparison, anchor)),
        directions=_directions(comparison, anchor) if quad else None,
        margins=tuple(
            margins(comparison, f"{anchor}-margins-{name}", name) for name in main if name != "group"
        )
        if scored
        else (),
        significance=tuple(significance(comparison, f"{anchor}-p-{name}", name) for name in reversed(main))
        if comparison.differences
        else (),
        differences=tuple(tables.differences(comparison, name) for name in main)
        if comparison.differences
        else (),
        pictures=pictures,
    )


def dots(
    comparison: Comparison, name: str, title: str, caption: str, measures: Sequence[str], *, columns: int = 3
) -> Drawing:
    wide = drawing.svg(figures.measures(comparison, measures, columns=columns), name=name, title=title)
    narrow = drawing.svg(figures.measures(comparison, measures, columns=1), name=f"{name}-n", title=title)
    return Drawing(title, caption, wide, narrow)


def group_tables(comparison: Comparison, anchor: str) -> list[Grouping]:
    """Every grouping with its tables; those that the benchmark's authors report by with figures too."""
    benchmark = comparison.runs[0].benchmark
    labels = tables.groupings(benchmark.questions)
    official = [name for name in benchmark.card.groupings if name in labels] or list(labels)[:1]
    found = []
    for number, name in enumerate([*official, *(name for name in labels if name not in official)]):
        main = tables.grouped_measures(comparison)
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
        found.append(Grouping(label_of.grouping(name), name in official, tuple(drawings), of_groups))
    return found


def _group_drawings(
    comparison: Comparison, grouping: str, name: str, measures: Sequence[str]
) -> list[Drawing]:
    groups = len(tables.groupings(comparison.runs[0].benchmark.questions)[grouping])
    labels = [label_of.measure_label(measure) for measure in measures]
    heats = [
        drawing.svg(
            figures.heat(comparison, grouping, measure),
            name=f"{name}-{measure}",
            title=f"{label} by {label_of.grouping(grouping)}",
        )
        for measure, label in zip(measures, labels, strict=True)
    ]
    if groups <= _DOTS_GROUPS and len(comparison.runs) <= _DOTS_RUNS:
        dots = figures.groups(comparison, grouping, measures)
        wide = drawing.svg(dots, name=name, title=f"Measures by {label_of.grouping(grouping)}")
        return [Drawing(f"By {label_of.grouping(grouping)}", "", wide, "".join(heats))]
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


def margins(comparison: Comparison, name: str, measure: str) -> Panels:
    """One small figure per scorer, which wrap as the screen is wide."""
    label = label_of.measure_label(measure)
    shown = [run.name for run in comparison.runs if figures.margin_values(run, measure) is not None]
    order = [scorer for scorer in tables.ranking(comparison) if scorer in shown]
    return Panels(
        f"Margins of {label}",
        label_of.measure_meaning(measure, comparison.runs[0].benchmark.questions.form),
        tuple(
            drawing.svg(
                figures.margins(comparison, measure, names=[scorer]),
                name=f"{name}-{number}",
                title=f"Margins of {label}: {scorer}",
            )
            for number, scorer in enumerate(order)
        ),
    )


def significance(comparison: Comparison, name: str, measure: str) -> Drawing:
    title = f"Differences in {label_of.measure_label(measure)}"
    return Drawing(title, "", drawing.svg(figures.significance(comparison, measure), name=name, title=title))
