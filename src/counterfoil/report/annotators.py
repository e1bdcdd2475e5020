"""Machine annotators and their bias: tables, figures, and a page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterfoil.evaluation.annotators import AnnotatorBias
from counterfoil.evaluation.judged_pairs import JUDGED, Coverage, Multiplicity
from counterfoil.evaluation.preferences import Preferences
from counterfoil.report import drawing, html
from counterfoil.report.drawing import INK, RIGHT, RULE, WRONG, canvas, extent, name_ends, short, style
from counterfoil.report.html import Drawing
from counterfoil.report.labels import measure_label
from counterfoil.report.tables import Cell, Column, Row, Table

#: A direction's heading over a table.
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


def coverages(sets: Sequence[Coverage]) -> Table:
    """Precision and recall of sets of right answers against judgements (ECCV Caption Table 2)."""
    names = list(dict.fromkeys(coverage.name for coverage in sets))
    ways = [way for way in WAYS if any(coverage.direction == way for coverage in sets)]
    at = {(coverage.name, coverage.direction): coverage for coverage in sets}
    columns, rows = [], []
    for way in ways:
        columns += [Column("precision", WAYS[way]), Column("recall", WAYS[way])]
        columns += [Column("queries", WAYS[way], style="text")]
    for name in names:
        cells = []
        for way in ways:
            coverage = at.get((name, way))
            both = (coverage.precision, coverage.recall) if coverage else ((np.nan,) * 3,) * 2
            cells += [Cell() if np.isnan(ends[0]) else Cell(*ends) for ends in both]
            cells.append(Cell(f"{coverage.queries:,}" if coverage else None))
        rows.append(Row(name, tuple(cells)))
    caption = "Right answers of benchmarks against the judgements, over judged pairs."
    return Table(caption, tuple(columns), tuple(rows), corner="benchmark")


def multiplicities(counts: Sequence[Multiplicity]) -> Table:
    """Right answers per query (ECCV Caption Table 3), as many times those of the first benchmark named."""
    names = list(dict.fromkeys(count.name for count in counts))
    ways = [way for way in WAYS if any(count.direction == way for count in counts)]
    at = {(count.name, count.direction): count for count in counts}
    original = next((name for name in names if name != JUDGED), None)
    heads = ("in all", "mean", "median", "most", *(("times",) if original else ()))
    columns = tuple(Column(head, WAYS[way], style="text") for way in ways for head in heads)
    rows = []
    for name in names:
        cells: list[Cell] = []
        for way in ways:
            count, first = at.get((name, way)), at.get((original or "", way))
            if count is None:
                cells += [Cell()] * len(heads)
                continue
            fold = f"×{count.total / first.total:.2f}" if first and first.total else None
            most = max(count.histogram, default=0)
            numbers = f"{count.total:,}", f"{count.mean:.2f}", f"{count.median:g}", f"{most:,}"
            cells += [*map(Cell, numbers), *((Cell(fold),) if original else ())]
        rows.append(Row(name, tuple(cells)))
    return Table("Right answers per query.", columns, tuple(rows), corner="right according to")


def strengths(preferences: Preferences) -> Any:
    """A dot and a whisker (the interval) per thing, strongest on top, on a logarithmic axis."""
    names = [short(preferences.names[i], 34) for i in preferences.order]
    at = list(preferences.order)
    left = max(extent(name) for name in names) + 0.12
    with style():
        figure, (axes,) = canvas(
            1, 1, (5.6, 0.28 * len(names) + 0.1), left=left, right=0.55, bottom=0.5, top=0.1
        )
        rows = np.arange(len(names))
        axes.hlines(rows, preferences.low[at], preferences.high[at], color=RIGHT, lw=1.4, alpha=0.6)
        axes.plot(preferences.strength[at], rows, "o", ms=5, color=RIGHT, mec="none")
        for row, i in enumerate(at):
            axes.annotate(
                f"{preferences.strength[i]:.2f}",
                (max(preferences.high[i], preferences.strength[i]), row),
                xytext=(6, 0),
                textcoords="offset points",
                va="center",
                fontsize=8,
                color=INK,
            )
        axes.set_xscale("log")
        axes.set_xlim(
            preferences.low.min() / 1.3, max(preferences.high.max(), preferences.strength.max()) * 1.1
        )
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.xaxis.set_minor_formatter(lambda value, _: "")
        axes.set_ylim(len(names) - 0.4, -0.6)
        axes.set_yticks(rows, names)
        axes.set_xlabel("Bradley-Terry strength (sum 100), logarithmic; bar: 95 % interval")
        _plain(axes)
        axes.spines["left"].set_visible(False)
        axes.tick_params(axis="y", length=0)
    return figure


def bias_curves(
    panels: Mapping[str, Mapping[str, Mapping[int, float]]], *, unit: str = "points", columns: int = 2
) -> Any:
    """Mean bias against the number of annotators, a panel per measure: the plot of ECCV Caption Figure E.2.

    `panels` maps a title to curves by name ("bias", "self-bias", "non-self-bias"), each number of models to
    a value in [0, 1], drawn times 100. NaN and what is zero by definition are left to the caller.
    """
    looks = {
        "bias": (INK, "o", "-"),
        "self-bias": (RIGHT, "s", (0, (5, 2))),
        "non-self-bias": (WRONG, "^", (0, (2, 1.5))),
    }
    columns = min(columns, len(panels))
    rows = -(-len(panels) // columns)
    with style():
        figure, grid = canvas(
            rows,
            columns,
            (3.6 if columns > 1 else 2.9, 2.0),
            left=0.6,
            right=1.05,
            bottom=0.45,
            top=0.28,
            gap=(1.35, 0.75),
        )
        for axes, (title, curves) in zip(grid, panels.items(), strict=False):
            ends = []
            for name, curve in curves.items():
                sizes = [n for n, value in curve.items() if np.isfinite(value)]
                values = [100 * curve[n] for n in sizes]
                if not sizes:
                    continue
                colour, marker, line = looks[name]
                axes.plot(sizes, values, marker=marker, ms=4.5, color=colour, ls=line, lw=1.4, clip_on=False)
                ends.append((sizes[-1], values[-1], name, colour))
            axes.set_ylim(bottom=0)
            name_ends(axes, ends)
            axes.set_title(title, loc="left", fontsize=9, fontweight="bold", pad=6)
            most = max((n for curve in curves.values() for n in curve), default=1)
            axes.set_xlim(0.85, most + 0.15)
            axes.set_xticks(range(1, most + 1))
            axes.set_xlabel("models that propose")
            axes.set_ylabel(f"mean bias ({unit})")
            _plain(axes, both=True)
        for axes in grid[len(panels) :]:
            axes.remove()
    return figure


def yield_curves(curve: NDArray[np.float64], *, unit: str = "pairs") -> Any:
    """Pairs to verify against how many each model hands in, a line per number of models."""
    models, k = curve.shape
    with style():
        figure, (axes,) = canvas(1, 1, (4.6, 2.8), left=0.75, right=1.0, bottom=0.48, top=0.15)
        ends = []
        for m in range(models):
            share = 1.0 if models == 1 else m / (models - 1)
            axes.plot(
                range(1, k + 1),
                curve[m],
                "o-",
                ms=3,
                lw=1.3,
                color=RIGHT,
                alpha=0.35 + 0.65 * share,
                clip_on=False,
            )
            ends.append((k, float(curve[m, -1]), f"{m + 1} model{'s' if m else ''}", INK))
        axes.set_xlim(0.8, k + 0.2)
        axes.set_ylim(0, 1.03 * float(curve.max()))
        name_ends(axes, ends)
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.set_xlabel("k: items that each model hands in per query")
        axes.set_ylabel(f"different {unit} to verify")
        _plain(axes, both=True)
    return figure


def multiplicity_bars(
    panels: Sequence[tuple[str, Mapping[int, int], float | None]], *, most: int = 40
) -> Any:
    """How many queries have how many right answers, a panel per direction: ECCV Caption Figure 3a.

    Each panel has a title, the histogram, and the mean number in the original benchmark (drawn dashed) or
    None. What lies beyond `most` right answers is gathered in the last bar.
    """
    with style():
        figure, grid = canvas(
            1, len(panels), (3.9, 1.7), left=0.6, right=0.15, bottom=0.45, top=0.28, gap=(0.7, 0.5)
        )
        for axes, (title, histogram, original) in zip(grid, panels, strict=True):
            counts: dict[int, int] = {}
            for number, queries in histogram.items():
                counts[min(number, most)] = counts.get(min(number, most), 0) + queries
            axes.bar(list(counts), list(counts.values()), width=0.85, color=RIGHT, alpha=0.75)
            last = max(counts)
            axes.set_xlim(-0.6, max(last, original or 0) + 0.8)
            if original is not None:
                # Room for its name above the bars.
                axes.set_ylim(0, 1.22 * max(counts.values()))
                axes.axvline(original, color=WRONG, lw=1.2, ls=(0, (4, 3)))
                right = original < 0.7 * last
                axes.annotate(
                    f"originally {original:.3g}",
                    (original, 1),
                    xycoords=("data", "axes fraction"),
                    xytext=(4 if right else -4, -2),
                    textcoords="offset points",
                    ha="left" if right else "right",
                    va="top",
                    fontsize=8,
                    color=WRONG,
                )
            axes.set_title(title, loc="left", fontsize=9, fontweight="bold", pad=6)
            over = max(histogram) > most
            axes.set_xlabel("right answers per query" + (f" ({most}: that many or more)" if over else ""))
            axes.set_ylabel("queries")
            axes.xaxis.get_major_locator().set_params(integer=True)
            axes.yaxis.get_major_locator().set_params(integer=True)
            _plain(axes, both=True)
    return figure


def _plain(axes: Any, *, both: bool = False) -> None:
    axes.grid(True, axis="both" if both else "x", color=RULE, lw=0.5)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


@dataclass(frozen=True)
class DirectionSection:
    """The page's section on one direction and measure."""

    anchor: str
    title: str
    lead: str
    curves: Drawing
    performance: Table
    alone: Table
    by_number: Table


def bias_page(
    studies: Sequence[AnnotatorBias],
    covered: Sequence[Coverage],
    counts: Sequence[Multiplicity],
    notes: Sequence[str],
    *,
    title: str = "Machine annotators and their bias",
) -> str:
    """The page as HTML, the same for the same studies."""
    models = studies[0].models
    return html.render(
        "bias.html",
        title=title,
        standfirst=f"{len(models)} models: {', '.join(models)}.",
        parts_=tuple(_part(study) for study in studies),
        coverage=coverages(covered) if covered else None,
        multiplicity=multiplicities(counts),
        histograms=_histograms(counts),
        notes=tuple(notes),
    )


def curves(studies: Sequence[AnnotatorBias]) -> Any:
    """Bias by number of annotators, a panel per direction and measure (ECCV Caption Figure E.2)."""
    return bias_curves({heading(study): study.curves() for study in studies})


def lead(study: AnnotatorBias) -> str:
    """The study in a sentence: which model a single annotator favours, and the bias of all others."""
    curves = study.curves()
    own, rest = curves["self-bias"][1], curves["non-self-bias"][1]
    last = max(curves["bias"])
    text = (
        f"A benchmark that one model alone proposed for is off by {100 * curves['bias'][1]:.1f} points: "
        f"by {100 * own:.1f} for the model itself, by {100 * rest:.1f} for the others."
    )
    if last > 1:
        text += f" With {last} of {len(study.models)} models it is off by {100 * curves['bias'][last]:.1f}."
    return text


def _part(study: AnnotatorBias) -> DirectionSection:
    name = study.name.replace("_", "-")
    words = heading(study)
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
        performance=performance(study),
        alone=alone(study),
        by_number=by_number(study),
    )


def _histograms(counts: Sequence[Multiplicity]) -> Drawing:
    panels = []
    for count in counts:
        if count.name != JUDGED:
            continue
        first = next((c.mean for c in counts if c.direction == count.direction and c.name != JUDGED), None)
        panels.append((WAYS[count.direction], count.histogram, first))
    known = any(first is not None for _, _, first in panels)
    caption = "How many queries have how many right answers according to the judgements."
    if known:
        caption += " Dashed: the mean number in the first benchmark named."
    drawn = drawing.svg(multiplicity_bars(panels), name="multiplicity", title="Right answers per query")
    return Drawing("Right answers per query", caption, drawn)
