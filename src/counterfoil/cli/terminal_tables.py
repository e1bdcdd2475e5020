"""Tables in a terminal, as wide as that is: what does not fit is stacked or split, never left out."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.padding import Padding
from rich.table import Table as Rich
from rich.text import Text

from counterfoil.metrics.measure import DIRECTIONS
from counterfoil.report.drawing import short
from counterfoil.report.markup import Cell, Column, Table, written

if TYPE_CHECKING:
    from counterfoil.evaluation.list_overlap import Diversity
    from counterfoil.evaluation.rank_correlation import RankCorrelation
    from counterfoil.tasks.caption_values import Value

_SIDES = {"image to text": "I2T ", "text to image": "T2I "}
_STYLES = {1: "bold", 2: "underline"}


def printed(
    table: Table, width: int, *, label: Callable[[Column], str] | None = None, counted: str = "queries"
) -> list[Any]:
    """A table for the terminal, every value with its interval.

    Intervals stand beside their values where the whole table fits in `width` columns, else below them; where
    that is still too wide the columns go into several tables under one another. `label` says what stands over
    a column; `counted` is what the sizes of columns count.
    """
    called = [short(row.name, max(24, 2 * width // 5)) for row in table.rows]
    names = max(map(len, [table.corner, *called]))
    heads = [label(column) if label else _head(table, column) for column in table.columns]
    blocks = [column.block for column in table.columns]
    for stacked in (False, True):
        cells = [[_cell(row.cells[i], c, stacked) for row in table.rows] for i, c in enumerate(table.columns)]
        rooms = [
            2 + max(len(line) for text in [head, *of] for line in text.split("\n"))
            for head, of in zip(heads, cells, strict=True)
        ]
        if names + sum(rooms) <= width:
            break
    parts: list[Any] = [Text(table.caption.rstrip("."), style="bold")]
    for group in _groups(rooms, blocks, width - names):
        rich = Rich(box=None, pad_edge=False, header_style="dim")
        rich.add_column(Text(table.corner), no_wrap=True)
        for i in group:
            rich.add_column(Text(heads[i]), justify="right", no_wrap=True)
        for number, row in enumerate(table.rows):
            shown = (Text(cells[i][number], style=_STYLES.get(row.cells[i].rank, "")) for i in group)
            rich.add_row(Text(called[number]), *shown, style="dim" if row.kind == "chance" else "")
        sizes = [table.columns[i].size for i in group]
        if len({column.size for column in table.columns}) > 1:
            rich.add_row(
                Text(counted), *(f"{size:,}" if size is not None else "" for size in sizes), style="dim"
            )
        parts.append(rich)
    return [*parts, Text()]


def _head(table: Table, column: Column) -> str:
    several = len({each.block for each in table.columns}) > 1
    return (_SIDES.get(column.block, "") if several else "") + short(column.label, 14)


def _cell(cell: Cell, column: Column, stacked: bool) -> str:
    text = written(cell, column, interval=True)
    return text.replace(" [", "\n[", 1) if stacked and cell.low is not None else text


def _groups(rooms: Sequence[int], blocks: Sequence[str], width: int) -> list[list[int]]:
    """Columns that stand beside each other: all where there is room, else by block and as many as fit."""
    if sum(rooms) <= width:
        return [list(range(len(rooms)))]
    groups: list[list[int]] = []
    for i, (room, block) in enumerate(zip(rooms, blocks, strict=True)):
        if groups and block == blocks[groups[-1][0]] and sum(rooms[j] for j in groups[-1]) + room <= width:
            groups[-1].append(i)
        else:
            groups.append([i])
    return groups


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[Any]:
    """A row per entry, its name first; where columns would break words, a paragraph per entry.

    Cells are shown as they are, so they hold no markup.
    """
    columns = list(zip(header, *rows, strict=True))
    names = max(map(len, columns[0]))
    least = [max(len(word) for cell in column for word in [*cell.split(), ""]) for column in columns[1:]]
    if names + sum(2 + each for each in least) <= width:
        table = Rich(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
        table.add_column(header[0], no_wrap=True)
        for head, wide in zip(header[1:], least, strict=True):
            table.add_column(head, min_width=wide)
        for row in rows:
            table.add_row(*(Text(cell) for cell in row))
        return [table]
    parts: list[Any] = []
    for name, *cells in rows:
        parts.append(Text(name, style="bold"))
        said = (f"{head}: {cell}" for head, cell in zip(header[1:], cells, strict=True) if cell)
        parts.append(Padding(Text("; ".join(said)), (0, 0, 0, 4)))
    return parts


def values_table(
    found: "Mapping[str, Value]", *, title: str, over: str = "captions", notes: Sequence[str] = ()
) -> list[Any]:
    """A row per metric: its value, and its interval where it is a mean over captions, or over images.

    `notes` stand below the table.
    """
    table = Rich(box=None, pad_edge=False, header_style="dim")
    table.add_column("metric", no_wrap=True)
    table.add_column("value", justify="right", no_wrap=True)
    intervals = any(each.low is not None for each in found.values())
    means = any(not each.is_mean for each in found.values())
    if intervals:
        table.add_column("95 % interval", justify="center", no_wrap=True)
    if means:
        table.add_column(f"mean of {over}", justify="right", no_wrap=True, style="dim")
    for name, each in found.items():
        cells: list[Any] = [Text(name), Text(f"{each.value:.4f}", style="bold")]
        if intervals:
            cells.append(Text("" if each.low is None else f"[{each.low:.4f}, {each.high:.4f}]"))
        if means:
            # Of what is no mean the mean over captions stands beside it; it is another number.
            cells.append("" if each.is_mean else f"{each.mean:.4f}")
        table.add_row(*cells)
    return [Text(title, style="bold"), table, *(Text(line, style="dim") for line in notes)]


#: Between columns, and the share of the terminal that names of rows may take.
_GAP, _NAMES = 2, 0.5
#: So many pairs of measures are listed with their intervals.
_FEW_PAIRS = 15
#: Of so many models, places are shown with how often there is none.
_FEW_MODELS = 10

Part = Rich | Text


def correlation_tables(found: "RankCorrelation", *, width: int) -> list[Part]:
    """Kendall's tau-b of all pairs of columns; the intervals too where there are few of them."""
    from counterfoil.report.ranking_figures import labels
    from counterfoil.report.ranking_figures import written as tau

    names = labels(found)
    cells = {}
    at = {column.name: i for i, column in enumerate(found.columns)}
    for pair in found.pairs:
        mark = "*" if pair.sure else ""
        cells[at[pair.b], at[pair.a]] = Text(tau(pair.tau) + mark, style="bold" if mark else "")
        if np.isnan(pair.tau):
            cells[at[pair.b], at[pair.a]] = Text("–")
    heading = f"Kendall's tau-b between measures, {len(found.models)} models"
    # The first row and the last column of the lower triangle are empty.
    rows = {i: names[i] for i in range(len(names))}
    parts = _matrix(heading, rows, {i: str(i + 1) for i in range(len(names) - 1)}, cells, width)
    parts.append(Text("* the 95 % interval leaves out 0", style="dim"))
    if 0 < len(found.pairs) <= _FEW_PAIRS:
        table = _table()
        for head in ("pair", "tau-b", "95 % interval", "Spearman", "95 % interval", "models"):
            table.add_column(head, justify="left" if head == "pair" else "right", no_wrap=True)
        for pair in found.pairs:
            ends = [
                ("–", "") if np.isnan(value) else (tau(value), f"[{tau(low)}, {tau(high)}]")
                for value, low, high in (
                    (pair.tau, pair.tau_low, pair.tau_high),
                    (pair.rho, pair.rho_low, pair.rho_high),
                )
            ]
            numbers = f"{at[pair.a] + 1} – {at[pair.b] + 1}"
            table.add_row(numbers, *(Text(text) for end in ends for text in end), str(pair.models))
        parts += [Text(""), table]
    return parts


def rank_tables(found: "RankCorrelation", *, width: int) -> list[Part]:
    """The rank of each model under each measure, "=" where it is shared, with values where there is room."""
    ranks = found.ranks
    order = np.argsort(np.nan_to_num(ranks[:, 0], nan=np.inf), kind="stable").tolist()
    n = len(found.columns)
    shared = [[(ranks[:, j] == ranks[i, j]).sum() > 1 for j in range(n)] for i in range(len(ranks))]
    plain = {
        (i, j): f"{ranks[i, j]:.0f}{'=' if shared[i][j] else ''}"
        for i in order
        for j in range(n)
        if not np.isnan(ranks[i, j])
    }
    full = {(i, j): f"{100 * found.values[i, j]:.2f} {text:>3}" for (i, j), text in plain.items()}
    rows = {i: found.models[i] for i in order}
    heads = {j: str(j + 1) for j in range(n)}
    longest = min(max(map(len, rows.values())) + 3, int(_NAMES * width))
    roomy = longest + n * (_GAP + max(map(len, full.values()))) <= width
    cells = {
        at: Text(full[at] if roomy else text, style="bold" if ranks[at] == 1 else "")
        for at, text in plain.items()
    }
    heading = f"{'Values in % and ranks' if roomy else 'Ranks'} of {len(found.models)} models"
    return _matrix(heading, rows, heads, cells, width, numbered=False)


def diversity_tables(found: "Diversity", *, width: int) -> list[Part]:
    """How alike the first items of models are, and where one's first choice stands with another."""
    from counterfoil.report.ranking_figures import written as tau

    n = len(found.models)
    rows = dict(enumerate(found.models))
    heads = {i: str(i + 1) for i in range(n)}
    off = [(i, j) for i in range(n) for j in range(n) if i != j]
    few = n <= _FEW_MODELS
    taus = {
        at: Text("–")
        if np.isnan(found.tau[at])
        else Text(tau(float(found.tau[at])) + (f" {100 * found.common[at]:3.0f} %" if few else ""))
        for at in off
    }
    places = {
        at: Text("–")
        if np.isnan(found.place[at])
        else Text(
            f"{found.place[at]:.2f} {100 * found.beyond[at]:3.0f} %" if few else f"{found.place[at]:.1f}"
        )
        for at in off
    }
    where = f"{found.title}, {DIRECTIONS[found.direction].title.lower()}, {found.queries:,} queries"
    alike = f"Kendall's tau-b of the first {found.k}{', and the share of common ones' if few else ''}"
    average = "Average place of the row's first choice with the column"
    if few:
        average += f", and how often not in its first {found.k}"
    return [
        Text(where, style="bold underline"),
        *_matrix(alike, rows, heads, taus, width),
        Text(""),
        *_matrix(average, rows, heads, places, width),
    ]


def _matrix(
    heading: str,
    rows: Mapping[int, str],
    heads: Mapping[int, str],
    cells: Mapping[tuple[int, int], Text],
    width: int,
    *,
    numbered: bool = True,
) -> list[Part]:
    """Tables of as many columns as there is room for, one below the other, without rows that stay empty."""
    longest = max(map(len, rows.values()))
    number = len(str(len(rows))) + 2 if numbered else 0
    names = min(longest, max(8, int(_NAMES * width) - number))
    wide = max([*map(len, cells.values()), *map(len, heads.values())], default=1) + _GAP
    at_once = max(1, (width - names - number) // wide)
    parts: list[Part] = [Text(heading, style="bold")]
    columns = list(heads)
    for lo in range(0, len(columns), at_once):
        chosen = columns[lo : lo + at_once]
        table = _table()
        if numbered:
            table.add_column("", justify="right", no_wrap=True, style="dim")
        table.add_column("", no_wrap=True, overflow="ellipsis", max_width=names)
        for column in chosen:
            table.add_column(heads[column], justify="right", no_wrap=True, min_width=wide - _GAP)
        for row, name in rows.items():
            if lo == 0 or any((row, column) in cells for column in chosen):
                shown = [cells.get((row, column), Text("")) for column in chosen]
                table.add_row(*([str(row + 1)] if numbered else []), short(name, names), *shown)
        parts.append(table)
    return parts


def _table() -> Rich:
    return Rich(box=None, pad_edge=False, header_style="dim", padding=(0, _GAP, 0, 0))
