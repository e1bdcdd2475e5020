"""Figures of machine annotators and of votes: bias curves, yield of a pool, multiplicity, strengths.

As those of `figures`: no window, no global state, and no colour carries a meaning alone.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterfoil.evaluation.votes import Preferences
from counterfoil.report.drawing import INK, RIGHT, RULE, WRONG, canvas, extent, short, style


def strengths(found: Preferences) -> Any:
    """A dot and a whisker (the interval) per thing, strongest on top, on a logarithmic axis."""
    names = [short(found.names[i], 34) for i in found.order]
    at = list(found.order)
    left = max(extent(name) for name in names) + 0.12
    with style():
        figure, (axes,) = canvas(
            1, 1, (5.6, 0.28 * len(names) + 0.1), left=left, right=0.55, bottom=0.5, top=0.1
        )
        rows = np.arange(len(names))
        axes.hlines(rows, found.low[at], found.high[at], color=RIGHT, lw=1.4, alpha=0.6)
        axes.plot(found.strength[at], rows, "o", ms=5, color=RIGHT, mec="none")
        for row, i in enumerate(at):
            axes.annotate(
                f"{found.strength[i]:.2f}",
                (max(found.high[i], found.strength[i]), row),
                xytext=(6, 0),
                textcoords="offset points",
                va="center",
                fontsize=8,
                color=INK,
            )
        axes.set_xscale("log")
        axes.set_xlim(found.low.min() / 1.3, max(found.high.max(), found.strength.max()) * 1.1)
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
                ends.append((values[-1], sizes[-1], name, colour))
            axes.set_ylim(bottom=0)
            _label_ends(axes, ends)
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
            ends.append((float(curve[m, -1]), k, f"{m + 1} model{'s' if m else ''}", INK))
        axes.set_xlim(0.8, k + 0.2)
        axes.set_ylim(0, 1.03 * float(curve.max()))
        _label_ends(axes, ends)
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


def _label_ends(axes: Any, ends: Sequence[tuple[float, float, str, str]]) -> None:
    """Names at the ends of lines, moved apart where they would stand on one another."""
    from matplotlib.transforms import ScaledTranslation

    if not ends:
        return
    aside = ScaledTranslation(8 / 72, 0, axes.figure.dpi_scale_trans)
    low, high = axes.get_ylim()
    high = max(high, max(value for value, *_ in ends))
    room = 0.075 * (high - min(low, 0))
    # Not on the axis itself.
    place = low - 0.4 * room
    for value, x, name, colour in sorted(ends):
        place = max(value, place + room)
        axes.text(
            x, place, name, transform=axes.transData + aside, ha="left", va="center", fontsize=8, color=colour
        )
    axes.set_ylim(low, high)
