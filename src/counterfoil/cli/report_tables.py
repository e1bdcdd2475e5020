"""The tables of reports in a terminal, as wide as that is."""

from collections.abc import Sequence
from typing import Any

from rich.table import Table as Rich
from rich.text import Text

from counterfoil.report.drawing import short
from counterfoil.report.markup import Table, written


def printed(table: Table, width: int) -> list[Any]:
    """A table for the terminal; intervals where they fit, and several tables where columns do not."""
    called = [short(row.name, max(24, 2 * width // 5)) for row in table.rows]
    names = max(map(len, [table.corner, *called]))
    blocks = list(dict.fromkeys(column.block for column in table.columns))
    over = {"image to text": "I2T ", "text to image": "T2I "} if len(blocks) > 1 else {}
    columns: list[tuple[str, list[str], int]] = []
    for ranged in (True, False):
        columns = []
        for i, column in enumerate(table.columns):
            head = over.get(column.block, "") + short(column.label, 14)
            cells = [
                written(row.cells[i], column, interval=ranged and row.cells[i].low is not None)
                for row in table.rows
            ]
            columns.append((head, cells, 2 + max(map(len, [head, *cells]))))
        if names + sum(room for *_, room in columns) <= width:
            break
    parts: list[Any] = [Text(table.caption.rstrip("."), style="bold")]
    for group in _groups([room for *_, room in columns], [c.block for c in table.columns], width - names):
        rich = Rich(box=None, pad_edge=False, header_style="dim")
        rich.add_column(Text(table.corner), no_wrap=True)
        for i in group:
            rich.add_column(Text(columns[i][0]), justify="right", no_wrap=True)
        for number, row in enumerate(table.rows):
            bold = ["bold" if row.cells[i].rank == 1 else "" for i in group]
            shown = (Text(columns[i][1][number], style=s) for i, s in zip(group, bold, strict=True))
            rich.add_row(Text(called[number]), *shown)
        sizes = [table.columns[i].size for i in group]
        if len({column.size for column in table.columns}) > 1:
            counted = (f"{size:,}" if size is not None else "" for size in sizes)
            rich.add_row(Text("queries"), *counted, style="dim")
        parts.append(rich)
    return [*parts, Text()]


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
