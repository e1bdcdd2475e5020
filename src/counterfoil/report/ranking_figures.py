"""Figures of rankings: a heatmap of rank correlations, a bump chart, and how different lists are.

Each returns a matplotlib `Figure`; `drawing.svg` and `drawing.save` write it. No colour carries a meaning
alone: numbers, frames, weight and words say it too.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterfoil.evaluation.list_overlap import Diversity
from counterfoil.evaluation.rank_correlation import Agreement, RankColumn, RankCorrelation
from counterfoil.report.drawing import INK, MUTED, RIGHT, RULE, WRONG, aside, extent, matrix, panels, short
from counterfoil.report.labels import measure_label

#: In inches: a heatmap's cell, the height of a bump chart's row, the least way between its columns.
_CELL, _ROW, _STEP = (0.7, 0.42), 0.235, 0.62
#: Of more columns than this a heatmap's cells have no room for intervals, and are smaller.
_MANY, _BARE = 24, (0.38, 0.26)
#: The longest names of models and columns.
_MODEL, _COLUMN = 30, 38
#: An em space: pages take several plain ones for one.
_WIDE = "\u2003"
#: How far labels over columns lean, in degrees.
_LEAN = 38
#: How many models that move most stand out in a bump chart.
_MOVERS = 3
#: Of so many models, places are shown with how often there is none.
_FEW = 12


def label(column: RankColumn, *, alone: bool = False) -> str:
    """A column in print: "ECCV Caption · Mean mAP@R"; without the benchmark where it is the only one."""
    measure = measure_label(column.measure)
    return measure if alone else f"{column.title} · {measure}"


def labels(correlation: RankCorrelation) -> list[str]:
    """All columns in print."""
    alone = len({column.benchmark for column in correlation.columns}) == 1
    return [label(column, alone=alone) for column in correlation.columns]


def heatmap(correlation: RankCorrelation) -> Any:
    """Columns by columns: Kendall's tau-b below the diagonal, Spearman's correlation above.

    Each cell has the value and below it the interval; the deeper the colour the farther from 0, blue above
    and vermilion below. Framed and in bold where the interval leaves out 0. A dash where fewer than three
    models have both columns, or one does not vary. Of more than two dozen columns the intervals are left out.
    """
    from matplotlib.patches import Rectangle

    names = [short(name, _COLUMN) for name in labels(correlation)]
    n = len(names)
    # Numbers lead from columns to rows, so that long names stand once.
    rows = [f"{name}{_WIDE}{i + 1}" for i, name in enumerate(names)]
    left = max(extent(row) for row in rows) + 0.12
    roomy = n <= _MANY
    width, height = _CELL if roomy else _BARE
    title = "Lower left: Kendall’s τ-b; upper right: Spearman’s ρ"
    right = max(0.06, extent(title, 8) - width * n)
    size = width * n, height * n
    with panels(size, left=left, right=right, bottom=0.08, top=0.58) as (figure, (axes,)):
        for i in range(n):
            axes.add_patch(Rectangle((i + 0.02, i + 0.03), 0.96, 0.94, fc=RULE, ec="none", alpha=0.5))
            for j in range(n):
                if i != j:
                    pair = correlation.pair(correlation.columns[i], correlation.columns[j])
                    _cell(axes, i, j, pair, roomy=roomy)
        axes.set(xlim=(0, n), ylim=(n, 0))
        axes.set_yticks(np.arange(n) + 0.5, rows)
        axes.xaxis.tick_top()
        axes.set_xticks(np.arange(n) + 0.5, [str(i + 1) for i in range(n)])
        axes.tick_params(length=0, colors=INK)
        axes.spines[:].set_visible(False)
        aside(axes, title, (0, 0), (0, 22), color=MUTED, va="bottom", annotation_clip=False)
    return figure


def _cell(axes: Any, i: int, j: int, pair: Agreement | None, *, roomy: bool) -> None:
    from matplotlib.patches import Rectangle

    value = low = high = float("nan")
    if pair is not None:
        taus, rhos = (pair.tau, pair.tau_low, pair.tau_high), (pair.rho, pair.rho_low, pair.rho_high)
        value, low, high = taus if i > j else rhos
    says = {"ha": "center", "va": "center"}
    if np.isnan(value):
        axes.text(j + 0.5, i + 0.5, "–", fontsize=8, color=MUTED, **says)
        return
    sure = low > 0 or high < 0
    colour = RIGHT if value >= 0 else WRONG
    axes.add_patch(Rectangle((j + 0.02, i + 0.03), 0.96, 0.94, fc=colour, ec="none", alpha=0.42 * abs(value)))
    if sure:
        axes.add_patch(Rectangle((j + 0.03, i + 0.045), 0.94, 0.91, fc="none", ec=colour, lw=0.9))
    bold = {"fontweight": "bold"} if sure else {}
    axes.text(j + 0.5, i + (0.36 if roomy else 0.52), written(value), fontsize=8, color=INK, **bold, **says)
    if roomy:
        axes.text(j + 0.5, i + 0.72, f"{written(low)} to {written(high)}", fontsize=6.2, color=INK, **says)


def written(value: float) -> str:
    """A correlation: two decimals, a true minus, no zero before the point and no sign of nothing.

    >>> written(0.4712), written(-0.06), written(1.0), written(-0.001)
    ('.47', '−.06', '1', '0')
    """
    text = f"{value:.2f}".replace("-", "−")
    if text.lstrip("−") == "0.00":
        return "0"
    return text.replace("1.00", "1") if text.endswith("1.00") else text.replace("0.", ".")


def bump(correlation: RankCorrelation, *, columns: Sequence[int] | None = None) -> Any:
    """The rank of every model under each column, one line per model, names and ranks at both ends.

    Each model has a place of its own in every column, so no line or name lies over another at the ends; equal
    models stand next to each other in a common frame and share their rank ("2="). The models that move most
    between the columns stand out in bold, in blue where they rise from the first column to the last, in
    vermilion and dashed where they fall. Where a model was not run its line is dotted.
    """
    chosen = list(range(len(correlation.columns))) if columns is None else list(columns)
    ranks = correlation.ranks[:, chosen]
    places = _places(ranks)
    names = labels(correlation)
    heads = [short(names[i], _COLUMN) for i in chosen]
    n, wide = ranks.shape
    step = min(1.5, max(_STEP, 4.2 / max(wide - 1, 1)))
    ends = [_end(correlation.models, ranks, column) for column in (0, -1)]
    moved = _movers(ranks)
    # Bold letters are about an eighth wider.
    widths = [[extent(text) * (1.13 if m in moved else 1) for m, text in end.items()] for end in ends]
    sides = [max(of_end, default=0.0) + 0.19 for of_end in widths]
    leaning = np.sin(np.radians(_LEAN)), np.cos(np.radians(_LEAN))
    beyond = [leaning[1] * extent(head) - (wide - 1 - i) * step for i, head in enumerate(heads)]
    top = leaning[0] * max(extent(head) for head in heads) + 0.32
    right = max(sides[1], *beyond)
    size = step * max(wide - 1, 1), _ROW * n
    with panels(size, left=sides[0], right=right, bottom=0.06, top=top) as (figure, (axes,)):
        axes.set(xlim=(0, max(wide - 1, 1)), ylim=(n + 0.5, 0.5))
        for column in range(wide):
            axes.axvline(column, color=RULE, lw=0.6, zorder=0)
            _frames(axes, column, ranks[:, column], places[:, column], step)
        for model in range(n):
            _line(axes, places[model], moved.get(model))
        for column, end, align in ((0, ends[0], "right"), (wide - 1, ends[1], "left")):
            for model, text in end.items():
                offset = -9 if align == "right" else 9, 0
                weight = "bold" if model in moved else "normal"
                look = {"fontsize": 8.5, "annotation_clip": False, "ha": align, "fontweight": weight}
                aside(axes, text, (column, places[model, column]), offset, **look)
        tilt = {"rotation": _LEAN, "rotation_mode": "anchor", "ha": "left", "va": "bottom"}
        for column, head in enumerate(heads):
            aside(axes, head, (column, 0.5), (0, 7), fontsize=8.5, annotation_clip=False, **tilt)
        axes.set_axis_off()
    return figure


def _places(ranks: NDArray[np.float64]) -> NDArray[np.float64]:
    """(models, columns) from 1, all different within a column; NaN where there is no rank.

    Equal ranks stand in the order they have in the column before, so that few lines cross for nothing.
    """
    places = np.full(ranks.shape, np.nan)
    last = np.arange(len(ranks), dtype=np.float64)
    for column in range(ranks.shape[1]):
        there = np.flatnonzero(~np.isnan(ranks[:, column]))
        if column == 0 and ranks.shape[1] > 1:
            # The first column has none before it; the one after does as well.
            following = ranks[there, 1]
            order = there[np.lexsort((there, np.nan_to_num(following, nan=np.inf), ranks[there, 0]))]
        else:
            order = there[np.lexsort((last[there], ranks[there, column]))]
        places[order, column] = np.arange(1, len(order) + 1)
        last[order] = places[order, column]
    return places


def _end(models: Sequence[str], ranks: NDArray[np.float64], column: int) -> dict[int, str]:
    """What stands beside each model at one end: its rank, "=" where it is shared, and its name."""
    own = ranks[:, column]
    names = {}
    for model in np.flatnonzero(~np.isnan(own)).tolist():
        rank = f"{own[model]:.0f}{'=' if (own == own[model]).sum() > 1 else ''}"
        name = short(models[model], _MODEL)
        names[model] = f"{name}{_WIDE}{rank}" if column == 0 else f"{rank}{_WIDE}{name}"
    return names


def _movers(ranks: NDArray[np.float64]) -> dict[int, int]:
    """The models whose ranks differ most between columns, and the sign of their way from first to last.

    Only those that move by more than a fifth of the models; of many equally far, the first.
    """
    with np.errstate(invalid="ignore"):
        low, high = (np.nan_to_num(end(ranks, axis=1)) for end in (np.fmin.reduce, np.fmax.reduce))
    span = high - low
    order = np.argsort(-span, kind="stable")[:_MOVERS]
    signs = {}
    for model in order.tolist():
        if span[model] >= max(2.0, len(ranks) / 5):
            own = ranks[model][~np.isnan(ranks[model])]
            signs[model] = int(np.sign(own[0] - own[-1]))
    return signs


def _line(axes: Any, places: NDArray[np.float64], sign: int | None) -> None:
    """One model's line, dotted across columns that lack it; thin where it has no sign."""
    at = np.flatnonzero(~np.isnan(places))
    colour = MUTED if sign is None else {1: RIGHT, 0: INK, -1: WRONG}[sign]
    width, alpha, size, front = (0.9, 0.7, 3.6, 2) if sign is None else (1.9, 1.0, 4.6, 4)
    for a, b in zip(at[:-1].tolist(), at[1:].tolist(), strict=True):
        dashes = (0, (1, 2)) if b - a > 1 else (0, (4, 1.5)) if sign == -1 else "-"
        ends = [places[a], places[b]]
        axes.plot([a, b], ends, ls=dashes, color=colour, lw=width, alpha=alpha, zorder=front, clip_on=False)
    look = {"mec": "none", "color": colour, "alpha": alpha, "zorder": front + 1}
    axes.plot(at, places[at], "o", ms=size, clip_on=False, **look)


def _frames(
    axes: Any, column: int, ranks: NDArray[np.float64], places: NDArray[np.float64], step: float
) -> None:
    """A frame around the places of equal models, as wide as 0.13 inches."""
    from matplotlib.patches import Rectangle

    half = 0.065 / step
    for rank in np.unique(ranks[~np.isnan(ranks)]):
        tied = places[ranks == rank]
        if len(tied) > 1:
            corner = (column - half, tied.min() - 0.32)
            look: dict[str, Any] = {"fc": "none", "ec": INK, "lw": 0.9, "clip_on": False, "zorder": 6}
            axes.add_patch(Rectangle(corner, 2 * half, float(np.ptp(tied)) + 0.64, **look))


def list_tau(diversity: Diversity) -> Any:
    """Models by models: the mean tau-b of their first items, blue above 0 and vermilion below.

    For a dozen models or fewer also how much of their lists they have in common.
    """
    title = f"Kendall’s τ-b of the first {diversity.k}, mean over {diversity.queries:,} queries"
    below = "how much is in both lists"
    return _of_pairs(diversity, diversity.tau, diversity.tau, written, diversity.common, "in", title, below)


def first_choice(diversity: Diversity) -> Any:
    """Models by models: the column's average place of the row's first choice, deeper the nearer to 1.

    For a dozen models or fewer also how often it is not in the column's list at all.
    """
    title = "Average place of the row’s first choice in the column’s list"
    below = f"how often it is not among the first {diversity.k}"
    strength = 1 - (diversity.place - 1) / diversity.k
    return _of_pairs(
        diversity, strength, diversity.place, "{:.2f}".format, diversity.beyond, "out", title, below
    )


def _of_pairs(
    diversity: Diversity,
    strength: NDArray[np.float64],
    values: NDArray[np.float64],
    text: Callable[[float], str],
    shares: NDArray[np.float64],
    word: str,
    title: str,
    below: str,
) -> Any:
    """Models by models: a value in each cell, and a share with a word below it where models are few."""
    names = [short(name, _MODEL) for name in diversity.models]
    few = len(names) <= _FEW
    cells = {
        (i, j): (
            float(strength[i, j]),
            text(float(values[i, j])),
            f"{100 * shares[i, j]:.0f} % {word}" if few else "",
        )
        for i in range(len(names))
        for j in range(len(names))
        if i != j and not np.isnan(values[i, j])
    }
    title += f"; below, {below}" if few else ""
    return matrix(names, names, cells, title=title, width=0.5, height=0.36 if few else 0.27)
