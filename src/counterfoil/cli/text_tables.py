"""Tables of words for a terminal, in which no word is broken however narrow that is."""

from collections.abc import Sequence
from typing import Any

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

_GAP = 2


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[Any]:
    """A row per entry, its name first; where columns would break words, a paragraph per entry.

    Cells are shown as they are, so they hold no markup.
    """
    columns = list(zip(header, *rows, strict=True))
    names = max(map(len, columns[0]))
    least = [max(len(word) for cell in column for word in [*cell.split(), ""]) for column in columns[1:]]
    if names + sum(_GAP + each for each in least) <= width:
        table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, _GAP, 0, 0))
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
