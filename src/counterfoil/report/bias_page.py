"""The study of machine annotators as one HTML page that needs nothing else."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from counterfoil.evaluation.annotation_recall import JUDGED, Coverage, Multiplicity
from counterfoil.evaluation.annotators import AnnotatorBias
from counterfoil.report import annotator_figures as figures
from counterfoil.report import annotator_tables as tables
from counterfoil.report import drawing, page_frame
from counterfoil.report.markup import Table
from counterfoil.report.page_frame import Drawing


@dataclass(frozen=True)
class DirectionSection:
    """What the page says about one direction and measure."""

    anchor: str
    title: str
    lead: str
    curves: Drawing
    performance: Table
    alone: Table
    by_number: Table


def bias_page(
    studies: Sequence[AnnotatorBias],
    coverages: Sequence[Coverage],
    counts: Sequence[Multiplicity],
    notes: Sequence[str],
    *,
    title: str = "Machine annotators and their bias",
) -> str:
    """The page as HTML, the same for the same studies."""
    models = studies[0].models
    return page_frame.render(
        "bias.html",
        title=title,
        standfirst=f"{len(models)} models: {', '.join(models)}.",
        parts_=tuple(_part(study) for study in studies),
        coverage=tables.coverages(coverages) if coverages else None,
        multiplicity=tables.multiplicities(counts),
        histograms=_histograms(counts),
        notes=tuple(notes),
    )


def curves(studies: Sequence[AnnotatorBias]) -> Any:
    """Bias by number of annotators, a panel per direction and measure (ECCV Caption Figure E.2)."""
    return figures.bias_curves({tables.heading(study): study.curves() for study in studies})


def lead(study: AnnotatorBias) -> str:
    """The study in a sentence: whom one annotator alone favours, and how far all others are off."""
    found = study.curves()
    own, rest = found["self-bias"][1], found["non-self-bias"][1]
    last = max(found["bias"])
    text = (
        f"A benchmark that one model alone proposed for is off by {100 * found['bias'][1]:.1f} points: "
        f"by {100 * own:.1f} for the model itself, by {100 * rest:.1f} for the others."
    )
    if last > 1:
        text += f" With {last} of {len(study.models)} models it is off by {100 * found['bias'][last]:.1f}."
    return text


def _part(study: AnnotatorBias) -> DirectionSection:
    name = study.name.replace("_", "-")
    words = tables.heading(study)
    title = words[0].upper() + words[1:]
    drawn = drawing.svg(curves([study]), name=name, title=f"Bias by number of annotators, {words}")
    return DirectionSection(
        anchor=name,
        title=title,
        lead=lead(study),
        curves=Drawing(
            f"Bias by number of annotators, {words}",
            "The mean over all sets of so many annotators. With all of them there is none by definition.",
            drawn,
        ),
        performance=tables.performance(study),
        alone=tables.alone(study),
        by_number=tables.by_number(study),
    )


def _histograms(counts: Sequence[Multiplicity]) -> Drawing:
    panels = []
    for each in counts:
        if each.name != JUDGED:
            continue
        first = next((c.mean for c in counts if c.direction == each.direction and c.name != JUDGED), None)
        panels.append((tables.WAYS[each.direction], each.histogram, first))
    known = any(first is not None for _, _, first in panels)
    caption = "How many queries have how many right answers according to the judgements."
    if known:
        caption += " Dashed: the mean number in the first benchmark named."
    drawn = drawing.svg(
        figures.multiplicity_bars(panels), name="multiplicity", title="Right answers per query"
    )
    return Drawing("Right answers per query", caption, drawn)
