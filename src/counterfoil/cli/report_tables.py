"""The tables of reports in a terminal, as wide as that is: what does not fit is stacked, never left out."""

from collections.abc import Callable, Sequence
from typing import Any

from rich.table import Table as Rich
from rich.text import Text

from counterfoil.report.drawing import short
from counterfoil.report.markup import Cell, Column, Table, written

_SIDES = {"image to text": "I2T ", "text to image": "T2I "}
_STYLES = {1: "bold", 2: "underline"}


def printed(
    table: Table,
    width: int,
    *,
    label: Callable[[Column], str] | None = None,
    counted: str = "queries",
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
