"""Pages, tables and figures of rank correlations, and of the agreement of metrics with people."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from counterfoil.evaluation.rank_correlation import Agreement, RankCorrelation
from counterfoil.evaluation.result import Run
from counterfoil.evaluation.systems import MEASURES, ONE_PERSON, SystemCorrelations
from counterfoil.report import html
from counterfoil.report.figure_style import INK, RIGHT, RULE, aside, extent, matrix, panels
from counterfoil.report.html import drawn, shareable, users
from counterfoil.report.tables import Cell, Column, Style, Table, measure_label, short
from counterfoil.stats import Reals

#: In inches: a heatmap's cell, the height of a bump chart's row, the least way between its columns.
_CELL, _ROW, _STEP = (0.7, 0.42), 0.235, 0.62
#: The longest names of models and columns.
_MODEL, _COLUMN = 30, 38
#: An em space: pages take several plain ones for one.
_WIDE = "\u2003"
#: How far labels over columns lean, in degrees.
_LEAN = 38


def page(
    correlation: RankCorrelation,
    *,
    runs: Sequence[Run] = (),
    title: str = "What rankings say",
    private: bool = False,
) -> str:
    """The page as HTML, naming `runs` as its sources; `private` keeps paths and users of this machine."""
    ranks = drawn(
        "Ranks of the models",
        "Best on top. Equal models share a frame and a rank (“2=”). Dotted: not run in between.",
        "bump",
        bump(correlation),
        alt="The rank of every model by measure",
    )
    # Of each run what it is of, and what of its manifest names it beyond doubt.
    sources = []
    for run in runs:
        command = run.manifest.get("command", "")
        words = [command] if isinstance(command, str) else [str(word) for word in command]
        user_names = set() if private else users(words)
        plain = str if private else lambda text, user_names=user_names: shareable(text, user_names)
        digest = run.manifest.get("digests", {}).get("answers.parquet", "")
        text = " · ".join(filter(None, (" ".join(map(plain, words)), digest and f"answers {digest}")))
        name = f"{plain(run.name)} on {run.benchmark.title}"
        sources.append((name, text or "not recorded"))
    figure = drawn(
        "Rank correlations",
        "Below the diagonal Kendall’s τ-b, above it Spearman’s ρ; small, the interval. Framed and bold: "
        "the interval leaves out 0. Blue is agreement, orange the contrary.",
        "heat",
        heatmap(correlation),
        alt="Rank correlations between measures",
    )
    return html.render(
        "rankings.html",
        title=title,
        contents=[(name, name.capitalize()) for name in ("ranks", "correlations", "method")],
        correlation=correlation,
        lead=lead(correlation),
        bump=ranks,
        heat=figure,
        ranks=ranks_table(correlation),
        agreements=agreements_table(correlation),
        sources=sources,
    )


def lead(correlation: RankCorrelation) -> str:
    """The page's first sentences: which two columns agree most and least, and how sure that is."""
    defined = [pair for pair in correlation.pairs if not np.isnan(pair.tau)]
    if not defined:
        return "No two measures have enough models in common, or vary enough, to say whether they agree."
    name = dict(zip((c.name for c in correlation.columns), labels(correlation), strict=True))

    def described(pair: Agreement) -> str:
        ends = f"{written(pair.tau_low)} to {written(pair.tau_high)}"
        return f"{name[pair.a]} and {name[pair.b]} (τ {written(pair.tau)}, {ends})"

    least, most = (choose(defined, key=lambda pair: pair.tau) for choose in (min, max))
    sure = sum(pair.sure for pair in defined)
    of_them = f"For {sure} of {len(defined)} pairs of measures the interval leaves out 0."
    if len(defined) == 1:
        return f"{described(most)}. {of_them}"
    ends = f"most between {described(most)} and least between {described(least)}"
    return f"The order of models agrees {ends}. {of_them}"


def ranks_table(correlation: RankCorrelation) -> Table:
    """A row per model, for each measure its value in per cent and rank; best first by the leading measure."""
    columns = []
    for column, label in zip(correlation.columns, labels(correlation), strict=True):
        columns += [Column(label, measure=column.measure), Column("rank", measure=column.measure)]
    ranks = correlation.ranks
    order = np.argsort(np.nan_to_num(ranks[:, correlation.lead], nan=np.inf), kind="stable").tolist()
    rows = []
    for i in order:
        cells: list[object] = [correlation.models[i]]
        for j, value in enumerate(correlation.values[i].tolist()):
            cells += [Cell.of(value, int(ranks[i, j]) if ranks[i, j] <= 2 else 0), _rank(ranks[:, j], i)]
        rows.append(cells)
    return Table.of("Values of the models in per cent, and their ranks.", "Model", columns, rows)


def _rank(ranks: Reals, model: int) -> str:
    """The rank of a model, "=" where it is shared; empty where it has none."""
    if np.isnan(ranks[model]):
        return ""
    return f"{ranks[model]:.0f}{'=' if (ranks == ranks[model]).sum() > 1 else ''}"


def agreements_table(correlation: RankCorrelation) -> Table:
    """One row per pair of measures, with intervals; in bold where the interval of tau-b leaves out 0."""
    name = dict(zip((column.name for column in correlation.columns), labels(correlation), strict=True))
    rows = []
    for pair in correlation.pairs:
        cells: list[object] = []
        estimates = (pair.tau, pair.tau_low, pair.tau_high), (pair.rho, pair.rho_low, pair.rho_high)
        for value, low, high in estimates:
            ends = "" if np.isnan(value) else f"{written(low)} to {written(high)}"
            cells += (Cell("–" if np.isnan(value) else written(value), rank=int(pair.sure)), ends)
        rows.append((f"{name[pair.a]} –\n{name[pair.b]}", *cells, str(pair.models)))
    if len(rows) > 3 and len({row[1:] for row in rows}) == 1:
        rows = [(f"all {len(rows)} pairs of measures", *rows[0][1:])]
    heads = ("τ-b", "95 % interval", "ρ", "95 % interval", "models")
    caption = "Kendall’s τ-b and Spearman’s ρ between measures; bold: the interval leaves out 0."
    return Table.of(caption, "Measures", heads, rows)


def agreements(agreed: SystemCorrelations) -> tuple[Table, ...]:
    """A table for each score of people: a row per metric, and what one person has with the others."""
    tables = []
    for human in agreed.humans:
        by_metric = {(c.metric, c.measure): c for c in agreed.correlations if c.human == human}
        best = {}
        for measure in MEASURES:
            values = (by_metric[metric, measure].value for metric in agreed.metrics)
            best[measure] = max((value for value in values if value > -2), default=None)
        rows: list[tuple[object, ...]] = []
        for metric in (*agreed.metrics, *((ONE_PERSON,) if (ONE_PERSON, MEASURES[0]) in by_metric else ())):
            cells: list[object] = []
            for measure in MEASURES:
                one = by_metric[metric, measure]
                first = metric != ONE_PERSON and one.value == best[measure]
                cells += [Cell.of((one.value, one.low, one.high, one.systems), int(first)), one.p]
            rows.append((f"{ONE_PERSON}, with the others" if metric == ONE_PERSON else metric, *cells))
        over = drawn_over(agreed)
        caption = f"Correlation with {human} over systems, x 100, with 95 % intervals over {over}."
        tables.append(Table.of(caption, "metric", _with_p("correlation", "p"), rows))
    return tuple(tables)


def differences(agreed: SystemCorrelations) -> tuple[Table, ...]:
    """A table for each score of people of which two metrics can be compared: a row per pair of metrics."""
    columns = [
        *_with_p("shift", "p (Holm)"),
        Column("p (Williams)", measure_label("pearson"), "p", "pearson"),
    ]
    tables = []
    for human in agreed.humans:
        by_pair = {(d.a, d.b, d.measure): d for d in agreed.differences if d.human == human}
        rows = []
        for a, b in dict.fromkeys((a, b) for a, b, _ in by_pair):
            of = [by_pair[a, b, measure] for measure in MEASURES]
            cells = (cell for one in of for cell in ((one.value, one.low, one.high), one.p_holm))
            rows.append((f"{a} − {b}", *cells, by_pair[a, b, "pearson"].williams))
        caption = f"Differences in correlation with {human}, x 100; drawn and swapped: {drawn_over(agreed)}."
        tables += [Table.of(caption, "metrics", columns, rows)] if rows else []
    return tuple(tables)


def _with_p(style: Style, p: str) -> list[Column]:
    columns = []
    for measure in MEASURES:
        head = measure_label(measure)
        columns += [Column(head, head, style, measure), Column(p, head, "p", measure)]
    return columns


def drawn_over(agreed: SystemCorrelations) -> str:
    """What was drawn, in words: "200 images", "images" where none are known, or "systems"."""
    many = agreed.over == "images" and agreed.images
    return f"{agreed.images:,} images" if many else agreed.over


def labels(correlation: RankCorrelation) -> list[str]:
    """All columns in print: "ECCV Caption · Mean mAP@R"; without the benchmark where it is the only one."""
    alone = len({column.benchmark for column in correlation.columns}) == 1
    prefixes = ["" if alone else f"{column.title} · " for column in correlation.columns]
    names = [measure_label(column.measure) for column in correlation.columns]
    return [f"{prefix}{name}" for prefix, name in zip(prefixes, names, strict=True)]


def heatmap(correlation: RankCorrelation) -> Any:
    """Columns by columns: Kendall's tau-b below the diagonal, Spearman's correlation above."""
    n = len(correlation.columns)
    cells = {(i, i): (0.0, "", "") for i in range(n)}
    framed = set()
    for i, j in np.argwhere(~np.eye(n, dtype=bool)).tolist():
        pair = correlation.pair(correlation.columns[i], correlation.columns[j])
        value = low = high = float("nan")
        if pair is not None and i > j:
            value, low, high = pair.tau, pair.tau_low, pair.tau_high
        elif pair is not None:
            value, low, high = pair.rho, pair.rho_low, pair.rho_high
        if np.isnan(value):
            cells[i, j] = (0.0, "–", "")
            continue
        cells[i, j] = (value, written(value), f"{written(low)} to {written(high)}")
        if low > 0 or high < 0:
            framed.add((i, j))
    # Numbers lead from columns to rows, so that long names stand once.
    rows = [f"{short(name, _COLUMN)}{_WIDE}{i + 1}" for i, name in enumerate(labels(correlation))]
    heads = [str(i + 1) for i in range(n)]
    title = "Lower left: Kendall’s τ-b; upper right: Spearman’s ρ"
    return matrix(
        rows, heads, cells, title=title, framed=framed, width=_CELL[0], height=_CELL[1], longest=_COLUMN + 4
    )


def written(value: float) -> str:
    """A correlation with two decimals, a true minus and no zero before the point.

    >>> written(0.4712), written(-0.06), written(1.0), written(-0.001)
    ('.47', '−.06', '1', '0')
    """
    text = f"{value:.2f}".replace("-", "−")
    if text.lstrip("−") == "0.00":
        return "0"
    return text.replace("1.00", "1") if text.endswith("1.00") else text.replace("0.", ".")


def bump(correlation: RankCorrelation) -> Any:
    """The rank of every model under each column, a line per model."""
    from matplotlib.patches import Rectangle

    ranks = correlation.ranks
    heights = _distinct_ranks(ranks)
    heads = [short(name, _COLUMN) for name in labels(correlation)]
    n, wide = ranks.shape
    step = min(1.5, max(_STEP, 4.2 / max(wide - 1, 1)))
    # What stands beside each model at either end: its rank, "=" where it is shared, and its name.
    ends: list[dict[int, str]] = []
    for column in (0, -1):
        column_ranks = ranks[:, column]
        ends.append({})
        for model in np.flatnonzero(~np.isnan(column_ranks)).tolist():
            rank = _rank(column_ranks, model)
            name = short(correlation.models[model], _MODEL)
            ends[-1][model] = f"{name}{_WIDE}{rank}" if column == 0 else f"{rank}{_WIDE}{name}"
    sides = [max(map(extent, end.values()), default=0.0) + 0.19 for end in ends]
    leaning = np.sin(np.radians(_LEAN)), np.cos(np.radians(_LEAN))
    beyond = [leaning[1] * extent(head) - (wide - 1 - i) * step for i, head in enumerate(heads)]
    top = leaning[0] * max(extent(head) for head in heads) + 0.32
    right = max(sides[1], *beyond)
    size = step * max(wide - 1, 1), _ROW * n
    with panels(size, left=sides[0], right=right, bottom=0.06, top=top) as (figure, (axes,)):
        axes.set(xlim=(0, max(wide - 1, 1)), ylim=(n + 0.5, 0.5))
        for column in range(wide):
            axes.axvline(column, color=RULE, lw=0.6, zorder=0)
            column_ranks = ranks[:, column]
            for rank in np.unique(column_ranks[~np.isnan(column_ranks)]):
                tied = heights[column_ranks == rank, column]
                if len(tied) > 1:
                    # As wide as 0.13 inches.
                    corner = (column - 0.065 / step, tied.min() - 0.32)
                    across, up = 2 * (0.065 / step), float(np.ptp(tied)) + 0.64
                    frame: dict[str, Any] = {"fc": "none", "ec": INK, "lw": 0.9, "zorder": 6}
                    axes.add_patch(Rectangle(corner, across, up, clip_on=False, **frame))
        for model in range(n):
            positions = np.flatnonzero(~np.isnan(heights[model]))
            look = {"color": RIGHT, "alpha": 0.7, "clip_on": False}
            for a, b in pairwise(positions.tolist()):
                dashes = (0, (1, 2)) if b - a > 1 else "-"
                axes.plot([a, b], heights[model, [a, b]], ls=dashes, lw=1.2, zorder=2, **look)
            axes.plot(positions, heights[model, positions], "o", ms=4.2, mec="none", zorder=3, **look)
        for column, end, align in ((0, ends[0], "right"), (wide - 1, ends[1], "left")):
            for model, text in end.items():
                offset = -9 if align == "right" else 9, 0
                look = {"fontsize": 8.5, "annotation_clip": False, "ha": align}
                aside(axes, text, (column, heights[model, column]), offset, **look)
        tilt = {"rotation": _LEAN, "rotation_mode": "anchor", "ha": "left", "va": "bottom"}
        for column, head in enumerate(heads):
            aside(axes, head, (column, 0.5), (0, 7), fontsize=8.5, annotation_clip=False, **tilt)
        axes.set_axis_off()
    return figure


def _distinct_ranks(ranks: Reals) -> Reals:
    """(models, columns) different places from 1; equal ranks keep the order of the column before."""
    positions = np.full(ranks.shape, np.nan)
    last = np.arange(len(ranks), dtype=np.float64)
    for column in range(ranks.shape[1]):
        there = np.flatnonzero(~np.isnan(ranks[:, column]))
        if column == 0 and ranks.shape[1] > 1:
            # The first column has none before it; the one after does as well.
            following = ranks[there, 1]
            order = there[np.lexsort((there, np.nan_to_num(following, nan=np.inf), ranks[there, 0]))]
        else:
            order = there[np.lexsort((last[there], ranks[there, column]))]
        positions[order, column] = np.arange(1, len(order) + 1)
        last[order] = positions[order, column]
    return positions
