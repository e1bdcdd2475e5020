"""Figures of a comparison as matplotlib `Figure`s; no colour carries a meaning alone."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from counterfoil.evaluation.compare import Comparison
from counterfoil.evaluation.result import Estimate, tenths
from counterfoil.report.comparison_tables import estimates_of, groupings, main_measures, ranking
from counterfoil.report.figure_style import (
    INK,
    MUTED,
    RIGHT,
    WRONG,
    extent,
    matrix,
    name_ends,
    panels,
    plain,
    tip,
)
from counterfoil.report.tables import group, measure_label, number, short, style_of
from counterfoil.stats import Reals

#: The height of one model's row, in inches.
_ROW = 0.23
#: In inches of 96 pixels: the width of a panel that fits a telephone, and of a square that it can shrink.
_NARROW, _SQUARE = 3.4, 4.6
#: The question in each direction of a quad.
_ASKS = {"i2t": "images pick their captions", "t2i": "captions pick their images"}


def measures(comparison: Comparison, names: Sequence[str] | None = None, *, columns: int = 3) -> Any:
    """Dots and 95 % intervals per model, a panel per measure, chance dashed; models best first."""
    names = main_measures(comparison) if names is None else names
    titled = [(measure_label(name), estimates_of(comparison, name)) for name in names]
    return dots(titled, ranking(comparison), columns)


def group_heatmap(comparison: Comparison, grouping: str, measure: str) -> Any:
    """Models by groups, each cell its value times a hundred, the deeper the farther from 0."""
    labels = groupings(comparison.runs[0].benchmark.questions)[grouping]
    order = ranking(comparison)
    by_group = [estimates_of(comparison, measure, label) for label in labels]
    sizes = [next((e.n for e in estimates.values() if e is not None), 0) for estimates in by_group]
    cells = {
        (i, j): (e.value, tenths(e.value), "")
        for i, name in enumerate(order)
        for j, estimates in enumerate(by_group)
        if (e := estimates[name]) is not None
    }
    heads = [f"{short(group(label))}\n{size:,}" for label, size in zip(labels, sizes, strict=True)]
    unit = "%" if style_of(measure) == "percent" else "x 100"
    title = f"{measure_label(measure)} ({unit}); questions per group"
    return matrix(order, heads, cells, title=title, width=0.62)


def directions(comparison: Comparison, pair: tuple[str, str] = ("i2t", "t2i")) -> Any:
    """One direction against the other for all models, with intervals, chance and the diagonal."""
    across, up = pair
    models = [
        (run.name, run.result.measures[across], run.result.measures[up])
        for run in comparison.runs
        if across in run.result.measures and up in run.result.measures
    ]
    points = np.asarray([[100 * x.value, 100 * y.value] for _, x, y in models])
    at_chance = (100 * (models[0][1].chance or 0), 100 * (models[0][2].chance or 0))
    ends = [100 * end for _, x, y in models for e in (x, y) for end in (e.low, e.high)]
    low, high = _limits([*ends, *at_chance])
    names = [short(name, 22) for name in [*(name for name, _, _ in models), "chance"]]
    right = max(extent(name, 8) for name in names) + 0.2
    side = _SQUARE - 0.62 - right
    with panels((side, side), left=0.62, right=right, bottom=0.48, top=0.12) as (figure, (axes,)):
        axes.set(xlim=(low, high), ylim=(low, high), aspect="equal")
        axes.plot([low, high], [low, high], color=MUTED, lw=0.8, ls=(0, (1, 2)), zorder=1)
        spans = {"xerr": _whiskers([x for _, x, _ in models]), "yerr": _whiskers([y for _, _, y in models])}
        look = {"fmt": "none", "ecolor": RIGHT, "elinewidth": 0.7, "alpha": 0.45, "zorder": 2}
        axes.errorbar(points[:, 0], points[:, 1], **spans, **look)
        axes.plot(points[:, 0], points[:, 1], "o", ms=5, color=RIGHT, mec="none", zorder=3, clip_on=False)
        for name, x, y in models:
            both = f"{measure_label(across)} {described(x)}, {measure_label(up)} {described(y)}"
            tip(axes, 100 * x.value, 100 * y.value, f"{name}: {both}")
        axes.plot(*at_chance, marker="x", ms=6.5, mew=1.6, color=WRONG, ls="none", zorder=3)
        axes.set_xlabel(f"{measure_label(across)}: {_ASKS.get(across, 'images look for captions')} (%)")
        axes.set_ylabel(f"{measure_label(up)}: {_ASKS.get(up, 'captions look for images')} (%)")
        plain(axes, grid="both")
        named = [(float(x), float(y), name, INK) for (x, y), name in zip(points, names, strict=False)]
        name_ends(axes, [*named, (*at_chance, names[-1], WRONG)])
    return figure


def significance(comparison: Comparison, measure: str) -> Any:
    """Row less column in points, Holm's p below; coloured where p < 0.05, blue where the row is ahead."""
    order = ranking(comparison, measure)
    row_of = {name: i for i, name in enumerate(order)}
    cells: dict[tuple[int, int], tuple[float, str, str]] = {}
    most = max((abs(d.value) for d in comparison.differences if d.measure == measure), default=0.0) or 1.0
    for d in comparison.differences:
        if d.measure != measure:
            continue
        # In a cell's few letters.
        p = "p=1" if d.p_holm >= 0.9995 else f"p={d.p_holm:.3f}".replace("0.", ".")
        p = "p<.001" if d.p_holm < 0.001 else p
        for row, column, value in ((d.a, d.b, d.value), (d.b, d.a, -d.value)):
            sure = d.p_holm < 0.05 and value
            strength = float(np.sign(value) * (0.25 + 0.75 * abs(value) / most)) if sure else 0.0
            cells[row_of[row], row_of[column]] = (strength, tenths(value, signed=True), p)
    unit = "in points" if style_of(measure) == "percent" else "times 100"
    title = f"{measure_label(measure)}: row less column, {unit}; p after Holm's correction"
    return matrix(order, [short(name) for name in order], cells, title=title, width=0.62, height=0.42)


def multiplicity(by_direction: Sequence[tuple[str, Mapping[int, int]]], *, most: int = 40) -> Any:
    """How many queries have how many right answers (ECCV Caption Figure 3a)."""
    count = len(by_direction)
    margin: dict[str, Any] = {"left": 0.6, "right": 0.15, "bottom": 0.45, "top": 0.28}
    with panels((3.9, 1.7), count, count, gap=(0.7, 0.5), **margin) as (figure, grid):
        for axes, (title, histogram) in zip(grid, by_direction, strict=True):
            counts: dict[int, int] = {}
            for number, queries in histogram.items():
                counts[min(number, most)] = counts.get(min(number, most), 0) + queries
            axes.bar(list(counts), list(counts.values()), width=0.85, color=RIGHT, alpha=0.75)
            axes.set_xlim(-0.6, max(counts) + 0.8)
            over = max(histogram) > most
            axes.set_xlabel("right answers per query" + (f" ({most}: that many or more)" if over else ""))
            axes.set_ylabel("queries")
            axes.xaxis.get_major_locator().set_params(integer=True)
            axes.yaxis.get_major_locator().set_params(integer=True)
            plain(axes, title, grid="both", pad=6)
            axes.set_axisbelow(True)
    return figure


def training_curves(curves: Mapping[str, Mapping[int, float]], *, kept_step: int, unit: str) -> Any:
    """Measures of a training over its steps, a panel each; dashed is the step whose weights are kept."""
    margin: dict[str, Any] = {"left": 0.6, "bottom": 0.45, "gap": (0.65, 0.7)}
    with panels((3.0, 1.7), len(curves), 2, **margin) as (figure, grid):
        for axes, (name, curve) in zip(grid, curves.items(), strict=True):
            axes.plot(list(curve), list(curve.values()), color=INK, marker="o", ms=3, lw=1.2)
            axes.axvline(kept_step, color=MUTED, lw=0.8, ls=(0, (4, 3)))
            axes.set_xlabel(unit)
            plain(axes, name, size=8)
    return figure


def described(estimate: Estimate) -> str:
    """A value times a hundred with its interval and chance, as a dot says it where a pointer rests on it.

    >>> described(Estimate(0.7583, 0.7421, 0.7739, 2933, 0.25))
    '75.83 [74.21, 77.39], chance 25.00'
    """
    value, low, high = (number(v, "correlation") for v in (estimate.value, estimate.low, estimate.high))
    chance = "" if estimate.chance is None else f", chance {number(estimate.chance, 'correlation')}"
    return f"{value} [{low}, {high}]{chance}"


def dots(
    titled: Sequence[tuple[str, Mapping[str, Estimate | None]]],
    order: Sequence[str],
    columns: int,
    *,
    width: float = 0.0,
) -> Any:
    """A dot and a whisker per name, in `order`, a panel per title, chance dashed; `width` in inches."""
    columns = max(1, min(columns, len(titled)))
    shown = [e for _, values in titled for e in values.values() if e is not None]
    low, high = _limits([100 * v for e in shown for v in (e.low, e.high, e.value, e.chance) if v is not None])
    names = [short(name, 26) for name in order]
    left = max(extent(name) for name in names) + 0.08
    width = width or (10.4 if columns > 1 else _NARROW)
    across = max((width - left - 0.15 - 0.3 * (columns - 1)) / columns, 0.9)
    panel = across, _ROW * len(order) + 0.05
    margin: dict[str, Any] = {"left": left, "right": 0.15, "top": 0.26}
    with panels(panel, len(titled), columns, sharey=True, **margin) as (figure, grid):
        for number, (axes, (title, values)) in enumerate(zip(grid, titled, strict=True)):
            here = [(i, e) for i, name in enumerate(order) if (e := values.get(name)) is not None]
            rows_at = [i for i, _ in here]
            spans = [[100 * e.low for _, e in here], [100 * e.high for _, e in here]]
            axes.hlines(rows_at, *spans, color=RIGHT, lw=1.3, alpha=0.55, clip_on=False)
            look = {"marker": "o", "ms": 4.6, "mec": "none", "ls": "none", "clip_on": False}
            axes.plot([100 * e.value for _, e in here], rows_at, color=RIGHT, **look)
            for value in {e.chance for _, e in here if e.chance is not None}:
                axes.axvline(100 * value, color=WRONG, lw=1, ls=(0, (4, 3)), zorder=0)
            for i, e in here:
                tip(axes, 100 * e.value, i, f"{order[i]}, {title}: {described(e)}")
            axes.set(xlim=(low, high), ylim=(len(order) - 0.4, -0.6))
            axes.set_yticks(range(len(order)), names)
            plain(axes, title, grid="x", left=False)
            axes.tick_params(axis="y", length=0)
            if number % columns:
                axes.tick_params(axis="y", labelleft=False)
    return figure


def _limits(values: Sequence[float]) -> tuple[float, float]:
    """A little more than the values span, on whole tens, within 0 (-100 where some are negative) and 100."""
    low, high = 10 * np.floor((min(values) - 1) / 10), 10 * np.ceil((max(values) + 1) / 10)
    return float(max(low, -101 if min(values) < 0 else -1)), float(min(high, 101))


def _whiskers(estimates: Sequence[Estimate]) -> Reals:
    # A fold interval can end beyond the value's own range; a whisker cannot have a negative length.
    spans = [[e.value - e.low, e.high - e.value] for e in estimates]
    return np.maximum(100 * np.asarray(spans).T, 0)
