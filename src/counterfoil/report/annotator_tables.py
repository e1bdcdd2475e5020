"""Tables of machine annotators: ECCV Tables E.1, 2 and 3, and Figure E.2 in numbers."""

from collections.abc import Sequence

import numpy as np

from counterfoil.evaluation.annotation_recall import JUDGED, Coverage, Multiplicity
from counterfoil.evaluation.annotators import AnnotatorBias
from counterfoil.report.labels import measure_label
from counterfoil.report.markup import Cell, Column, Row, Table

#: How a direction is written over a table.
WAYS = {"i2t": "image to text", "t2i": "text to image"}


def heading(study: AnnotatorBias) -> str:
    """Direction and measure in words: "text to image, graded R@1"."""
    return f"{WAYS[study.direction]}, {measure_label(study.measure)}"


def performance(study: AnnotatorBias) -> Table:
    """Models down, annotators across, all together last; the best of each has rank 1 (ECCV Table E.1)."""
    shown = study.shown
    columns = tuple(
        Column(name, "annotated by", size=int(study.queries[at]))
        for at, name in zip(shown, [*study.models, "all"], strict=True)
    )
    best = [np.nanmax(study.performance[at]) if study.queries[at] else np.nan for at in shown]
    rows = []
    for m, name in enumerate(study.models):
        cells = []
        for row, (at, most) in enumerate(zip(shown, best, strict=True)):
            value = float(study.performance[at, m])
            ends = float(study.ends.low[row, m]), float(study.ends.high[row, m])
            cells.append(Cell() if np.isnan(value) else Cell(value, *ends, rank=int(value == most)))
        rows.append(Row(name, tuple(cells)))
    return Table(f"Performance by annotators: {heading(study)}.", columns, tuple(rows), corner="measured")


def alone(study: AnnotatorBias) -> Table:
    """The bias of each annotator alone, with intervals."""
    kinds = {"bias": "total", "self-bias": "own", "non-self-bias": "others"}
    values = {"total": study.bias.total, "own": study.bias.own, "others": study.bias.others}
    rows = []
    for m, name in enumerate(study.models):
        cells = []
        for kind in kinds.values():
            value, ends = float(values[kind][m]), study.single[kind]
            missing = np.isnan(value)
            cells.append(Cell() if missing else Cell(value, float(ends.low[m]), float(ends.high[m])))
        rows.append(Row(f"only {name}", tuple(cells)))
    caption = f"Bias of each annotator alone, in points: {heading(study)}."
    return Table(caption, tuple(Column(kind) for kind in kinds), tuple(rows), corner="annotated by")


def biases(study: AnnotatorBias) -> Table:
    """Each annotator alone, then the means by number of annotators, in one table: for a terminal."""
    first, then = alone(study), by_number(study)
    caption = f"Bias in points: {heading(study)}."
    return Table(caption, first.columns, (*first.rows, *then.rows), corner="annotated by")


def by_number(study: AnnotatorBias) -> Table:
    """Mean bias by how many annotators there are (ECCV Figure E.2); with all it is 0 by definition."""
    curves = study.curves()
    sizes = study.annotators.sum(axis=1)
    rows = []
    for size in sorted({size for curve in curves.values() for size in curve}):
        cells = tuple(
            Cell()
            if np.isnan(curve[size])
            else Cell(curve[size], *study.by_number[name][size], int((sizes == size).sum()))
            for name, curve in curves.items()
        )
        rows.append(Row(f"any {size} of {len(study.models)} ({(sizes == size).sum():,} sets)", cells))
    caption = f"Mean bias by number of annotators, in points: {heading(study)}."
    return Table(caption, tuple(Column(kind) for kind in curves), tuple(rows), corner="annotators")


def coverages(found: Sequence[Coverage]) -> Table:
    """Precision and recall of sets of right answers against judgements (ECCV Caption Table 2)."""
    names = list(dict.fromkeys(each.name for each in found))
    ways = [way for way in WAYS if any(each.direction == way for each in found)]
    at = {(each.name, each.direction): each for each in found}
    columns, rows = [], []
    for way in ways:
        columns += [Column("precision", WAYS[way]), Column("recall", WAYS[way])]
        columns += [Column("queries", WAYS[way], style="text")]
    for name in names:
        cells = []
        for way in ways:
            each = at.get((name, way))
            both = (each.precision, each.recall) if each else ((np.nan,) * 3,) * 2
            cells += [Cell() if np.isnan(ends[0]) else Cell(*ends) for ends in both]
            cells.append(Cell(f"{each.queries:,}" if each else None))
        rows.append(Row(name, tuple(cells)))
    caption = "Right answers of benchmarks against the judgements, over judged pairs."
    return Table(caption, tuple(columns), tuple(rows), corner="benchmark")


def multiplicities(found: Sequence[Multiplicity]) -> Table:
    """Right answers per query (ECCV Caption Table 3), as many times those of the first benchmark named."""
    names = list(dict.fromkeys(each.name for each in found))
    ways = [way for way in WAYS if any(each.direction == way for each in found)]
    at = {(each.name, each.direction): each for each in found}
    original = next((name for name in names if name != JUDGED), None)
    heads = ("in all", "mean", "median", "most", *(("times",) if original else ()))
    columns = tuple(Column(head, WAYS[way], style="text") for way in ways for head in heads)
    rows = []
    for name in names:
        cells: list[Cell] = []
        for way in ways:
            each, first = at.get((name, way)), at.get((original or "", way))
            if each is None:
                cells += [Cell()] * len(heads)
                continue
            fold = f"×{each.total / first.total:.2f}" if first and first.total else None
            most = max(each.histogram, default=0)
            numbers = f"{each.total:,}", f"{each.mean:.2f}", f"{each.median:g}", f"{most:,}"
            cells += [*map(Cell, numbers), *((Cell(fold),) if original else ())]
        rows.append(Row(name, tuple(cells)))
    return Table("Right answers per query.", columns, tuple(rows), corner="right according to")
