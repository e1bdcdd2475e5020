"""The chapter of a page on one benchmark of captions that people rated, or preferred one to another."""

from dataclasses import dataclass
from typing import ClassVar

from counterfoil.data.benchmark import Benchmark
from counterfoil.evaluation.compare import Comparison
from counterfoil.evaluation.forms import of
from counterfoil.report import drawing, tables
from counterfoil.report.browser_data import richest
from counterfoil.report.judged import figures as judged_figures
from counterfoil.report.judged import notes as judged_notes
from counterfoil.report.notes import Note, lead
from counterfoil.report.page_frame import Drawing, Panels
from counterfoil.report.section import Grouping, dots, group_tables, margins, significance


@dataclass(frozen=True)
class JudgedChapter:
    """What the page says about one benchmark of people's judgements."""

    template: ClassVar[str] = "judged.html"

    anchor: str
    comparison: Comparison
    benchmark: Benchmark
    about: str
    lead: str
    ties: str
    notes: tuple[Note, ...]
    overview: tables.Table
    measures: tuple[Drawing, ...]
    groupings: tuple[Grouping, ...]
    directions: None
    #: The scores at each rating, a panel per scorer; None for preferences.
    spread: Panels | None
    #: How far the preferred caption is ahead, a panel per scorer; empty for ratings.
    margins: tuple[Panels, ...]
    significance: tuple[Drawing, ...]
    differences: tuple[tables.Table, ...]
    pictures: str


def judged_chapter(comparison: Comparison, anchor: str, pictures: str) -> JudgedChapter:
    """The chapter on `comparison`; `anchor` begins every id in it, `pictures` is what is said of them."""
    benchmark = comparison.runs[0].benchmark
    rated = not of(benchmark).values_per_item
    main = tables.main_measures(comparison)
    names = list(dict.fromkeys(name for run in comparison.runs for name in run.result.measures))
    shown = [*main, *(name for name in names if name not in main)]
    reading = "Dot: the value. Bar: its 95 % interval. Dashed: chance."
    tested = comparison.differences
    scored = any(run.answers.has_scores for run in comparison.runs)
    return JudgedChapter(
        anchor=anchor,
        comparison=comparison,
        benchmark=richest(comparison),
        about=judged_notes.about(benchmark),
        lead=lead(comparison),
        ties=judged_notes.ties(comparison),
        notes=tuple(judged_notes.notes(comparison)),
        overview=tables.overview(comparison),
        measures=(dots(comparison, f"{anchor}-measures", "Measures", reading, shown, columns=len(shown)),)
        if shown
        else (),
        groupings=tuple(group_tables(comparison, anchor)) if shown else (),
        directions=None,
        spread=spreads(comparison, f"{anchor}-spread") if rated and scored else None,
        margins=(margins(comparison, f"{anchor}-margins", "accuracy"),) if not rated and scored else (),
        significance=tuple(significance(comparison, f"{anchor}-p-{name}", name) for name in main)
        if tested
        else (),
        differences=tuple(tables.differences(comparison, name) for name in main) if tested else (),
        pictures=pictures,
    )


def spreads(comparison: Comparison, name: str, *, given: str = "rating") -> Panels:
    """The scores at each rating, which is called `given`: a small figure per scorer, best first.

    They wrap as the screen is wide.
    """
    by_name = {run.name: run for run in comparison.runs if run.answers.has_scores}
    order = [scorer for scorer in tables.ranking(comparison) if scorer in by_name]
    return Panels(
        f"Scores at each {given}",
        "",
        tuple(
            drawing.svg(
                judged_figures.spread(by_name[scorer], given=given),
                name=f"{name}-{number}",
                title=f"Scores of {scorer} at each {given}",
            )
            for number, scorer in enumerate(order)
        ),
    )
