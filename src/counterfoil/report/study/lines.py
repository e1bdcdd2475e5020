"""Figures of a study over a number: how training went, and what a dial does.

Lines differ by colour and by dashes, so no colour carries a meaning alone.
"""

from collections.abc import Mapping, Sequence
from itertools import cycle, pairwise
from typing import Any

import numpy as np

from counterfoil.evaluation.studies.sweeps import Sweep
from counterfoil.report.drawing import INK, MUTED, RIGHT, RULE, WRONG, canvas, extent, plain, short, style
from counterfoil.report.labels import measure_label
from counterfoil.report.study.figures import WIDE

#: What tells lines apart, whatever their colours: the colour and the dashes.
_LINES = ((MUTED, (0, (1, 1.5))), (INK, (0, (5, 2))), (WRONG, (0, (5, 1.5, 1, 1.5))), (RIGHT, "-"))


def curves(
    histories: Mapping[str, Sequence[Mapping[str, float]]], measure: str, *, width: float = WIDE
) -> Any:
    """One column of the journals over steps, a line per model, named at its end.

    Shares, which never leave [0, 1], are shown in per cent, and everything else as it is.
    """
    every = [row[measure] for history in histories.values() for row in history if has(row, measure)]
    scale = 100.0 if "loss" not in measure and all(0 <= value <= 1 for value in every) else 1.0
    found = {
        name: [(row["step"], scale * row[measure]) for row in history if has(row, measure)]
        for name, history in histories.items()
    }
    found = {name: points for name, points in found.items() if points}
    right = max(extent(short(name, 20), 8) for name in found) + 0.18
    with style():
        figure, (axes,) = canvas(
            1, 1, (width - 0.5 - right, 1.9), left=0.5, right=right, bottom=0.42, top=0.28
        )
        ends = []
        for (name, points), (colour, dashes) in zip(found.items(), cycle(_LINES), strict=False):
            x, y = np.array(points).T
            axes.plot(x, y, color=colour, ls=dashes, lw=1.4, marker="o" if len(x) < 8 else None, ms=3)
            ends.append((float(y[-1]), name, colour, float(x[-1])))
        low, high = axes.get_ylim()
        for spot, (_, name, colour, _) in zip(_spread([e[0] for e in ends], low, high), ends, strict=True):
            axes.annotate(
                short(name, 20),
                (1, spot),
                xycoords=("axes fraction", "data"),
                xytext=(5, 0),
                textcoords="offset points",
                va="center",
                fontsize=8,
                color=colour,
            )
        axes.set_ylim(low, high)
        plain(axes, f"{column(measure)}{'' if scale == 1 else ' (%)'}")
        axes.set_xlabel("step", fontsize=8, color=MUTED)
        axes.grid(True, axis="y", color=RULE, lw=0.5)
    return figure


def dial(sweep: Sweep, *, width: float = WIDE) -> Any:
    """The measures over the number on the dial, a line per series; chance dashed."""
    panels = len(sweep.measures)
    side_by_side = width > 5
    columns = panels if side_by_side else 1
    series = list(dict.fromkeys(each.series for each in sweep.settings))
    across = (width - 0.5 - 0.15 - 0.5 * (columns - 1)) / columns
    with style():
        figure, grid = canvas(
            -(-panels // columns),
            columns,
            (across, 1.9),
            left=0.5,
            right=0.15,
            bottom=0.62,
            top=0.3,
            gap=(0.5, 0.95),
        )
        for axes, measure in zip(grid, sweep.measures, strict=False):
            for name, (colour, dashes) in zip(series, reversed(_LINES), strict=False):
                of = sorted(
                    (s for s in sweep.settings if s.series == name),
                    key=lambda s: s.x if s.x is not None else 0.0,
                )
                x = [100 * (s.x or 0.0) for s in of]
                levels = [s.levels[measure] for s in of]
                y = [100 * level.value for level in levels]
                spans = [
                    [100 * (e.value - e.low) for e in levels],
                    [100 * (e.high - e.value) for e in levels],
                ]
                axes.errorbar(
                    x,
                    y,
                    yerr=spans,
                    color=colour,
                    ls=dashes,
                    lw=1.4,
                    marker="o",
                    ms=4.5,
                    elinewidth=1.0,
                    label=name or None,
                    clip_on=False,
                )
            for value in {s.levels[measure].chance for s in sweep.settings}:
                if value is not None:
                    axes.axhline(100 * value, color=WRONG, lw=1, ls=(0, (4, 3)), zorder=0)
            plain(axes, f"{measure_label(measure)} (%)")
            axes.set_xlabel(f"{sweep.axis} (%)", fontsize=8, color=MUTED)
            axes.grid(True, axis="y", color=RULE, lw=0.5)
            axes.margins(x=0.08)
        if len(series) > 1:
            grid[0].legend(
                loc="upper left",
                bbox_to_anchor=(0, -0.24),
                ncols=len(series),
                frameon=False,
                fontsize=8,
                borderaxespad=0,
                handlelength=2.4,
            )
    return figure


def column(name: str) -> str:
    """What a column of a journal is called in print.

    >>> column("loss"), column("validation_group"), column("val/i2t")
    ('Loss', 'Validation group', 'Val i2t')
    """
    words = measure_label(name, name.replace("_", " ").replace("/", " "))
    return words[:1].upper() + words[1:]


def has(row: Mapping[str, float], name: str) -> bool:
    """Whether a row of a journal has a finite number of that name."""
    return name in row and bool(np.isfinite(row[name]))


def _spread(values: Sequence[float], low: float, high: float) -> list[float]:
    """Places for labels at `values`, moved apart so that they do not lie over one another."""
    room = 0.11 * (high - low)
    order = np.argsort(values, kind="stable")
    places = np.array(values, dtype=float)
    for before, after in pairwise(order):
        places[after] = max(places[after], places[before] + room)
    over = places.max() - (high + 0.02 * (high - low)) if len(places) else 0.0
    if over > 0:
        places -= over / 2
    return [float(place) for place in places]
