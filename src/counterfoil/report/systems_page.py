"""Agreement of metrics with people on the order of systems: tables and their page."""

from collections.abc import Sequence

import numpy as np

from counterfoil.evaluation.system_scores import MEASURES
from counterfoil.evaluation.systems import ONE_PERSON, SystemCorrelations
from counterfoil.report import html
from counterfoil.report.labels import measure_label
from counterfoil.report.tables import Cell, Column, Row, Table


def agreements(agreed: SystemCorrelations) -> tuple[Table, ...]:
    """A table for each score of people: a row per metric, and what one person has with the others."""
    return tuple(_agreement(agreed, human) for human in agreed.humans)


def _agreement(agreed: SystemCorrelations, human: str) -> Table:
    correlations = {
        (correlation.metric, correlation.measure): correlation
        for correlation in agreed.correlations
        if correlation.human == human
    }
    columns, rows = [], []
    for measure in MEASURES:
        head = measure_label(measure)
        columns += [Column(head, head, "correlation", measure), Column("p", head, "p", measure)]
    best = {
        measure: max(
            (
                correlations[metric, measure].value
                for metric in agreed.metrics
                if correlations[metric, measure].value > -2
            ),
            default=None,
        )
        for measure in MEASURES
    }
    for metric in (*agreed.metrics, *((ONE_PERSON,) if (ONE_PERSON, MEASURES[0]) in correlations else ())):
        cells = []
        for measure in MEASURES:
            one = correlations[metric, measure]
            first = metric != ONE_PERSON and one.value == best[measure]
            cells += [_cell(one.value, one.low, one.high, one.systems, int(first)), _cell(one.p)]
        rows.append(Row(f"{ONE_PERSON}, with the others" if metric == ONE_PERSON else metric, tuple(cells)))
    caption = f"Correlation with {human} over systems, x 100, with 95 % intervals over {drawn(agreed)}."
    return Table(caption, tuple(columns), tuple(rows), corner="metric")


def differences(agreed: SystemCorrelations) -> tuple[Table, ...]:
    """A table for each score of people of which two metrics can be compared: a row per pair of metrics."""
    tables = []
    for human in agreed.humans:
        by_pair = {(d.a, d.b, d.measure): d for d in agreed.differences if d.human == human}
        pairs = dict.fromkeys((a, b) for a, b, _ in by_pair)
        if not pairs:
            continue
        columns = []
        for measure in MEASURES:
            head = measure_label(measure)
            columns += [Column(head, head, "shift", measure), Column("p (Holm)", head, "p", measure)]
        columns.append(Column("p (Williams)", measure_label("pearson"), "p", "pearson"))
        rows = []
        for a, b in pairs:
            cells = []
            for measure in MEASURES:
                one = by_pair[a, b, measure]
                cells += [_cell(one.value, one.low, one.high), _cell(one.p_holm)]
            rows.append(Row(f"{a} − {b}", (*cells, _cell(by_pair[a, b, "pearson"].williams))))
        caption = f"Differences in correlation with {human}, x 100; drawn and swapped: {drawn(agreed)}."
        tables.append(Table(caption, tuple(columns), tuple(rows), corner="metrics"))
    return tuple(tables)


def drawn(agreed: SystemCorrelations) -> str:
    """What was drawn, in words: "200 images", "images" where none are known, or "systems"."""
    many = agreed.over == "images" and agreed.images
    return f"{agreed.images:,} images" if many else agreed.over


def _cell(
    value: float, low: float = np.nan, high: float = np.nan, n: int | None = None, rank: int = 0
) -> Cell:
    if np.isnan(value):
        return Cell()
    if np.isnan(low) or np.isnan(high):
        return Cell(value, n=n, rank=rank)
    return Cell(value, low, high, n, rank)


def systems_page(
    systems: Table,
    agreement: Sequence[Table],
    differences: Sequence[Table],
    notes: Sequence[str],
    *,
    title: str = "Captioning systems, metrics and people",
) -> str:
    """The page as HTML, the same for the same tables."""
    return html.render(
        "systems.html",
        title=title,
        systems=systems,
        agreement=tuple(agreement),
        differences=tuple(differences),
        notes=tuple(notes),
    )
