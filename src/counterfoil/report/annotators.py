"""Machine annotators and their bias: tables and figures."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from counterfoil.evaluation.annotators import KINDS, AnnotatorBias
from counterfoil.evaluation.judged_pairs import JUDGED, Coverage, Multiplicity
from counterfoil.evaluation.preferences import Preferences
from counterfoil.report.figure_style import INK, RIGHT, WRONG, aside, extent, name_ends, panels, plain
from counterfoil.report.tables import Cell, Column, Table, measure_label, short
from counterfoil.stats import Reals

#: A direction's heading over a table.
WAYS = {"i2t": "image to text", "t2i": "text to image"}


def heading(study: AnnotatorBias) -> str:
    """Direction and measure in words: "text to image, graded R@1"."""
    return f"{WAYS[study.direction]}, {measure_label(study.measure)}"


def performance(study: AnnotatorBias) -> Table:
    """Models down, annotators across, all together last; the best of each has rank 1 (ECCV Table E.1)."""
    heads = zip(study.shown, [*study.models, "all"], strict=True)
    columns = [Column(name, "annotated by", size=int(study.queries[position])) for position, name in heads]
    best = [
        np.nanmax(study.performance[position]) if study.queries[position] else np.nan
        for position in study.shown
    ]
    rows = []
    for m, name in enumerate(study.models):
        cells = []
        for row, (position, most) in enumerate(zip(study.shown, best, strict=True)):
            value = float(study.performance[position, m])
            ends = float(study.ends.low[row, m]), float(study.ends.high[row, m])
            cells.append(Cell.of((value, *ends), rank=int(value == most)))
        rows.append((name, *cells))
    return Table.of(f"Performance by annotators: {heading(study)}.", "measured", columns, rows)


def alone(study: AnnotatorBias) -> Table:
    """The bias of each annotator alone, with intervals."""
    rows = []
    for m, name in enumerate(study.models):
        of_kinds = ((getattr(study.bias, kind), study.single[kind]) for kind in KINDS.values())
        cells = ((float(values[m]), float(e.low[m]), float(e.high[m])) for values, e in of_kinds)
        rows.append((f"only {name}", *cells))
    caption = f"Bias of each annotator alone, in points: {heading(study)}."
    return Table.of(caption, "annotated by", map(Column, KINDS), rows)


def by_number(study: AnnotatorBias) -> Table:
    """Mean bias by how many annotators there are (ECCV Figure E.2); with all it is 0 by definition."""
    curves = study.curves()
    sizes = study.annotators.sum(axis=1)
    rows = []
    for size in sorted({size for curve in curves.values() for size in curve}):
        count = int((sizes == size).sum())
        ends = ((curve[size], *study.by_number[name][size], count) for name, curve in curves.items())
        rows.append((f"any {size} of {len(study.models)} ({count:,} sets)", *ends))
    caption = f"Mean bias by number of annotators, in points: {heading(study)}."
    return Table.of(caption, "annotators", map(Column, curves), rows)


def coverages(sets: Sequence[Coverage]) -> Table:
    """Precision and recall of sets of right answers against judgements (ECCV Caption Table 2)."""
    caption = "Right answers of benchmarks against the judgements, over judged pairs."
    heads = ("precision", "recall", "queries")
    rows = [(one, (one.precision, one.recall, f"{one.queries:,}")) for one in sets]
    return _by_direction(caption, "benchmark", heads, rows)


def multiplicities(counts: Sequence[Multiplicity]) -> Table:
    """Right answers per query (ECCV Caption Table 3), as many times those of the first benchmark named."""
    original = next((count.name for count in counts if count.name != JUDGED), None)
    firsts = {count.direction: count.total for count in counts if count.name == original}
    heads = ("in all", "mean", "median", "most", *(("times",) if original else ()))
    rows = []
    for count in counts:
        fold = f"×{count.total / first:.2f}" if (first := firsts.get(count.direction)) else None
        most = f"{max(count.histogram, default=0):,}"
        cells = (f"{count.total:,}", f"{count.mean:.2f}", f"{count.median:g}", most, fold)
        rows.append((count, cells[: len(heads)]))
    return _by_direction("Right answers per query.", "right according to", heads, rows)


def _by_direction(
    caption: str, corner: str, heads: Sequence[str], records: Sequence[tuple[Any, Sequence[object]]]
) -> Table:
    """A row per name of the records, and the same columns for each direction that one of them is of."""
    cells_of = {(record.name, record.direction): cells for record, cells in records}
    ways = [way for way in WAYS if any(direction == way for _, direction in cells_of)]
    nothing = [None] * len(heads)
    names = dict.fromkeys(name for name, _ in cells_of)
    rows = ((name, *(cell for way in ways for cell in cells_of.get((name, way), nothing))) for name in names)
    columns = [Column(head, WAYS[way]) for way in ways for head in heads]
    return Table.of(caption, corner, columns, rows)


def strengths(preferences: Preferences) -> Any:
    """A dot and a whisker (the interval) per thing, strongest on top, on a logarithmic axis."""
    names = [short(preferences.names[i], 34) for i in preferences.order]
    order = list(preferences.order)
    left = max(extent(name) for name in names) + 0.12
    size = 5.6, 0.28 * len(names) + 0.1
    with panels(size, left=left, right=0.55, bottom=0.5, top=0.1) as (figure, (axes,)):
        rows = np.arange(len(names))
        axes.hlines(rows, preferences.low[order], preferences.high[order], color=RIGHT, lw=1.4, alpha=0.6)
        axes.plot(preferences.strength[order], rows, "o", ms=5, color=RIGHT, mec="none")
        for row, i in enumerate(order):
            end = max(preferences.high[i], preferences.strength[i])
            aside(axes, f"{preferences.strength[i]:.2f}", (end, row), (6, 0))
        axes.set_xscale("log")
        right = max(preferences.high.max(), preferences.strength.max()) * 1.1
        axes.set_xlim(preferences.low.min() / 1.3, right)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.xaxis.set_minor_formatter(lambda value, _: "")
        axes.set_ylim(len(names) - 0.4, -0.6)
        axes.set_yticks(rows, names)
        axes.set_xlabel("Bradley-Terry strength (sum 100), logarithmic; bar: 95 % interval")
        plain(axes, grid="x", left=False)
        axes.set_axisbelow(True)
        axes.tick_params(axis="y", length=0)
    return figure


def curves(studies: Sequence[AnnotatorBias]) -> Any:
    """Bias by number of annotators, a panel per direction and measure (ECCV Caption Figure E.2)."""
    styles = (INK, "o", "-"), (RIGHT, "s", (0, (5, 2))), (WRONG, "^", (0, (2, 1.5)))
    looks: dict[str, tuple[str, str, Any]] = dict(zip(KINDS, styles, strict=True))
    panel = (3.6 if len(studies) > 1 else 2.9, 2.0)
    margin: dict[str, Any] = {"left": 0.6, "right": 1.05, "bottom": 0.45, "top": 0.28}
    with panels(panel, len(studies), 2, gap=(1.35, 0.75), **margin) as (figure, grid):
        for axes, study in zip(grid, studies, strict=True):
            by_name, ends = study.curves(), []
            for name, curve in by_name.items():
                sizes = [n for n, value in curve.items() if np.isfinite(value)]
                values = [100 * curve[n] for n in sizes]
                if not sizes:
                    continue
                colour, marker, line = looks[name]
                axes.plot(sizes, values, marker=marker, ms=4.5, color=colour, ls=line, lw=1.4, clip_on=False)
                ends.append((sizes[-1], values[-1], name, colour))
            axes.set_ylim(bottom=0)
            name_ends(axes, ends)
            most = max((n for curve in by_name.values() for n in curve), default=1)
            axes.set_xlim(0.85, most + 0.15)
            axes.set_xticks(range(1, most + 1))
            axes.set(xlabel="models that propose", ylabel="mean bias (points)")
            plain(axes, heading(study), grid="both", pad=6)
            axes.set_axisbelow(True)
    return figure


def yield_curves(curve: Reals) -> Any:
    """Pairs to verify against how many each model hands in, a line per number of models."""
    models, k = curve.shape
    with panels((4.6, 2.8), left=0.75, right=1.0, bottom=0.48, top=0.15) as (figure, (axes,)):
        ends = []
        for m in range(models):
            look = {"color": RIGHT, "alpha": 0.35 + 0.65 * (1.0 if models == 1 else m / (models - 1))}
            axes.plot(range(1, k + 1), curve[m], "o-", ms=3, lw=1.3, clip_on=False, **look)
            ends.append((k, float(curve[m, -1]), f"{m + 1} model{'s' if m else ''}", INK))
        axes.set(xlim=(0.8, k + 0.2), ylim=(0, 1.03 * float(curve.max())))
        name_ends(axes, ends)
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.set(xlabel="k: items that each model hands in per query", ylabel="different pairs to verify")
        plain(axes, grid="both")
        axes.set_axisbelow(True)
    return figure
