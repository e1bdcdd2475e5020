"""The part of a study's page on caption metrics: who goes with the truth, in tables, dots and claims."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isclose

from counterfoil.evaluation.compare import Comparison
from counterfoil.evaluation.forms import of
from counterfoil.metrics.measures import signed
from counterfoil.report import drawing, figures, tables
from counterfoil.report.forms import rated
from counterfoil.report.labels import listed, measure_label
from counterfoil.report.markup import Table
from counterfoil.report.notes import Note
from counterfoil.report.page_frame import Drawing, Panels

#: What is said of a benchmark under its heading.
_ASKED = {
    ("rated", "image"): "Captions of pictures, right to one of four degrees, and how scores go with those.",
    ("preference", "image"): "Two captions of a picture, and how often the better one scores higher.",
    ("rated", "video"): "Captions of clips, true of the whole, of a part, of nothing.",
}


@dataclass(frozen=True)
class MetricSection:
    """One benchmark: all metrics in a table, as dots, and the scores at each degree."""

    anchor: str
    title: str
    about: str
    notes: tuple[Note, ...]
    table: Table
    dots: Drawing
    spread: Panels | None


@dataclass(frozen=True)
class CaptionPart:
    """All of the part; `known` says what the oracle got, whatever that is."""

    known: str
    judged: tuple[MetricSection, ...]


def caption_part(comparisons: Sequence[Comparison], *, oracle: str = "oracle") -> CaptionPart | None:
    """What the page says about these comparisons, one run of each an oracle; None where there are none."""
    if not comparisons:
        return None
    return CaptionPart(known(comparisons, oracle), tuple(map(_judged, comparisons)))


def known(comparisons: Sequence[Comparison], oracle: str = "oracle") -> str:
    """What the oracle got: everything, or where not and how much."""
    short = []
    for comparison in comparisons:
        for run in comparison.runs:
            if run.name != oracle:
                continue
            short += [
                f"{e.value:.5f} in {measure_label(name)} on {run.benchmark.card.title}"
                for name, e in run.result.measures.items()
                if not isclose(e.value, 1.0, abs_tol=1e-9)
            ]
    if short:
        return (
            "The oracle, which knows what is shown, should get 1.0 everywhere, and does not: it got "
            f"{listed(short)}. So something is wrong with the questions or with a measure."
        )
    return (
        "The oracle, which knows what is shown, has a correlation of 1.0 and an accuracy of 1.0 everywhere, "
        "as it has to."
    )


def _judged(comparison: Comparison) -> MetricSection:
    benchmark = comparison.runs[0].benchmark
    anchor = f"captions-{benchmark.name}"
    measure = tables.leading(comparison)
    label = measure_label(measure)
    wide, narrow = (
        drawing.svg(
            figures.measures(comparison, names, columns=len(names)),
            name=f"{anchor}-dots-{part}",
            title=f"{label} on {benchmark.card.title}",
        )
        for part, names in (("w", _side_by_side(comparison, measure)), ("n", [measure]))
    )
    return MetricSection(
        anchor,
        benchmark.card.title,
        _ASKED.get((benchmark.questions.form, benchmark.card.shows), ""),
        (*rated.undefined(comparison), *_level(comparison)),
        tables.overview(comparison),
        Drawing(label, "Dot: the value. Bar: its 95 % interval. Dashed: chance.", wide, narrow),
        rated.spreads(comparison, f"{anchor}-spread", given="degree")
        if not of(benchmark).values_per_item
        else None,
    )


def _level(comparison: Comparison) -> list[Note]:
    return [] if of(comparison.runs[0].benchmark).values_per_item else rated.level(comparison)


def _side_by_side(comparison: Comparison, measure: str) -> list[str]:
    """The leading measure, and of correlations the one after it, for screens with room."""
    if not signed(measure):
        return [measure]
    names = list(dict.fromkeys(name for run in comparison.runs for name in run.result.measures))
    return [measure, *[name for name in names if name != measure][:1]]
