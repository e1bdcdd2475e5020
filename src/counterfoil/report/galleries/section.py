"""The chapter of a page on one gallery: what it says, as values for the template."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from counterfoil.data.benchmark import Benchmark
from counterfoil.evaluation.compare import Comparison
from counterfoil.metrics.measure import DIRECTIONS, split_direction
from counterfoil.report import drawing, figures, tables
from counterfoil.report.browser_data import richest
from counterfoil.report.galleries import figures as gallery_figures
from counterfoil.report.galleries import notes as gallery_notes
from counterfoil.report.labels import measure_label, measure_meaning
from counterfoil.report.notes import Note, lead
from counterfoil.report.page_frame import Drawing
from counterfoil.report.section import dots, significance


@dataclass(frozen=True)
class GalleryChapter:
    """What the page says about one gallery."""

    template: ClassVar[str] = "gallery.html"

    anchor: str
    comparison: Comparison
    benchmark: Benchmark
    about: str
    lead: str
    ties: str
    notes: tuple[Note, ...]
    overview: tables.Table
    #: All measures, where the overview shows only those that the benchmark's authors report.
    everything: tables.Table | None
    #: (label, what it asks) of every measure, without its direction.
    meanings: tuple[tuple[str, str], ...]
    measures: tuple[Drawing, ...]
    finer: tuple[Drawing, ...]
    curves: Drawing | None
    directions: Drawing | None
    #: None where all queries of a direction have as many right answers; `about` says how many.
    multiplicity: Drawing | None
    #: The main measures by group, a table per grouping.
    groups: tuple[tables.Table, ...]
    significance: tuple[Drawing, ...]
    differences: tuple[tables.Table, ...]
    pictures: str


def gallery_chapter(comparison: Comparison, anchor: str, pictures: str) -> GalleryChapter:
    """The chapter on `comparison`; `anchor` begins every id in it, `pictures` is what is said of them."""
    first = comparison.runs[0].benchmark
    main, headline = tables.main_measures(comparison), tables.headline(comparison)
    names = list(dict.fromkeys(name for run in comparison.runs for name in run.result.measures))
    bases = list(dict.fromkeys(split_direction(name)[1] for name in [*headline, *names]))
    main_bases = [base for base in bases if any(split_direction(name)[1] == base for name in main)]
    reading = "Dot: the value. Bar: its 95 % interval. Dashed: chance."
    tested = comparison.differences
    return GalleryChapter(
        anchor=anchor,
        comparison=comparison,
        benchmark=richest(comparison),
        about=gallery_notes.about(first.gallery),
        lead=lead(comparison),
        ties=gallery_notes.ties(comparison),
        notes=tuple(gallery_notes.notes(comparison)),
        overview=tables.overview(comparison, measures=headline or main),
        everything=tables.overview(comparison) if set(names) > set(headline or main) else None,
        meanings=tuple((measure_label(base), said) for base in bases if (said := measure_meaning(base))),
        measures=tuple(_dots(comparison, f"{anchor}-{base}", base, names, reading) for base in main_bases),
        finer=tuple(
            _dots(comparison, f"{anchor}-{base}", base, names, "") for base in bases if base not in main_bases
        ),
        curves=_curves(comparison, f"{anchor}-curves"),
        directions=_directions(comparison, f"{anchor}-directions", main),
        multiplicity=_multiplicity(comparison, f"{anchor}-multiplicity"),
        groups=tuple(
            tables.by_group(comparison, grouping=grouping) for grouping in tables.groupings(first.questions)
        ),
        significance=tuple(significance(comparison, f"{anchor}-p-{name}", name) for name in reversed(main))
        if tested
        else (),
        differences=tuple(tables.differences(comparison, name) for name in main) if tested else (),
        pictures=pictures,
    )


def _dots(comparison: Comparison, name: str, base: str, names: Sequence[str], caption: str) -> Drawing:
    """One measure in its directions, side by side."""
    shown = [measure for side in DIRECTIONS if (measure := f"{side}_{base}") in names]
    return dots(comparison, name, measure_label(base), caption, shown)


def _curves(comparison: Comparison, name: str) -> Drawing | None:
    found = gallery_figures.curves(comparison)
    if not found:
        return None
    title = "R@K against K"
    caption = "The share of queries with a right answer among the first K, and what chance gives."
    if len(comparison.runs) > gallery_figures.NAMED:
        caption += f" The best {gallery_figures.NAMED} scorers are named; the others are thin and grey."
    wide = drawing.svg(gallery_figures.recall_curves(found), name=name, title=title)
    narrow = drawing.svg(gallery_figures.recall_curves(found, columns=1), name=f"{name}-n", title=title)
    return Drawing(title, caption, wide, narrow)


def _directions(comparison: Comparison, name: str, main: Sequence[str]) -> Drawing | None:
    by_side = {split_direction(measure)[0]: measure for measure in main}
    if not {"i2t", "t2i"} <= set(by_side):
        return None
    pair = by_side["i2t"], by_side["t2i"]
    if not any(set(pair) <= set(run.result.measures) for run in comparison.runs):
        return None
    title = f"{measure_label(pair[0])} against {measure_label(pair[1])}"
    caption = "Below the dotted line, images do better at finding captions than captions at finding images."
    wide = drawing.svg(figures.directions(comparison, pair), name=name, title=title)
    narrow = drawing.svg(figures.directions(comparison, pair, size=3.9), name=f"{name}-n", title=title)
    return Drawing(title, caption, wide, narrow)


def _multiplicity(comparison: Comparison, name: str) -> Drawing | None:
    """How many right answers queries have, unless all of a direction have as many."""
    questions = comparison.runs[0].benchmark.gallery
    if not gallery_figures.varied(questions):
        return None
    title = "How many right answers queries have"
    wide = drawing.svg(gallery_figures.multiplicity(questions), name=name, title=title)
    narrow = drawing.svg(gallery_figures.multiplicity(questions, columns=1), name=f"{name}-n", title=title)
    return Drawing(title, "", wide, narrow)
