"""Tables of caption metrics for the terminal."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from counterfoil.report.labels import amount
from counterfoil.report.markup import Cell, Column, Row
from counterfoil.report.markup import Table as Report

if TYPE_CHECKING:
    from counterfoil.cli.caption_values import Value


def title(candidates: str, captions: int, images: int, per_image: str) -> str:
    """What a table of values is of, and what images of several candidates count in it.

    >>> title("c.json", 1_200, 400, "best")
    'c.json, 1,200 captions of 400 images, the best of each'
    """
    said = f"{candidates}, {amount(captions, 'caption')}"
    if images == captions:
        return said
    return f"{said} of {amount(images, 'image')}, the {per_image} of each"


def values_table(
    found: "Mapping[str, Value]",
    *,
    title: str,
    over: str = "captions",
    titles: Mapping[str, str] | None = None,
) -> list[Any]:
    """A row per metric: its value, and its interval where it is a mean over captions, or over images.

    `titles` are what metrics are where their names would say too much; each stands below the table.
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
    return [Text(title, style="bold"), table, *_reasons({"": found}), *titles_lines(titles or {})]


def _reasons(rows: "Mapping[str, Mapping[str, Value]]") -> list[Any]:
    """Why some metrics have no interval, each reason once; with the systems, where it is not of all."""
    found: dict[str, dict[str, list[str]]] = {}
    for system, own in rows.items():
        for name, each in own.items():
            if each.no_interval is not None:
                found.setdefault(each.no_interval, {}).setdefault(name, []).append(system)
    lines = []
    for why, metrics in found.items():
        of = (
            name if len(systems) == len(rows) else f"{name} of {', '.join(systems)}"
            for name, systems in metrics.items()
        )
        lines.append(Text(f"{', '.join(of)}: {why}", style="dim"))
    return lines


def titles_lines(titles: Mapping[str, str]) -> list[Any]:
    """A line for each metric whose name would say too much: what it is."""
    return [Text(f"{name}: {title}", style="dim") for name, title in titles.items()]


def systems_report(
    rows: "Mapping[str, Mapping[str, Value]]",
    people: Mapping[str, Mapping[str, float]] | None,
    *,
    title: str,
) -> Report:
    """A row per system, a column per metric with its intervals and per score of people; the best in bold."""
    metrics = list(next(iter(rows.values())))
    scores = [] if people is None else list(next(iter(people.values())))
    best = {name: max(own[name].value for own in rows.values()) for name in metrics}
    lines = []
    for system, own in rows.items():
        cells = [
            Cell(each.value, each.low, each.high, each.n, rank=int(each.value == best[name]))
            for name, each in own.items()
        ]
        given = [] if people is None else [Cell(f"{people[system][name]:g}") for name in scores]
        lines.append(Row(system, (*cells, *given)))
    columns = (
        *(Column(name, style="score") for name in metrics),
        *(Column(name, style="text") for name in scores),
    )
    return Report(title, columns, tuple(lines), "system")


def reasons(rows: "Mapping[str, Mapping[str, Value]]") -> list[str]:
    """Why some metrics of systems have no interval, each reason once."""
    return [line.plain for line in _reasons(rows)]
