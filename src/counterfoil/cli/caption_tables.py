"""Tables of caption metrics for the terminal."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from counterfoil.tasks.caption_values import Value


def values_table(
    found: "Mapping[str, Value]",
    *,
    title: str,
    over: str = "captions",
    notes: Sequence[str] = (),
) -> list[Any]:
    """A row per metric: its value, and its interval where it is a mean over captions, or over images.

    `notes` stand below the table.
    """
    table = Table(box=None, pad_edge=False, header_style="dim")
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
