"""Tables of caption metrics for the terminal."""

from collections.abc import Mapping
from math import isnan
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from counterfoil.cli.caption_values import Value
    from counterfoil.evaluation.judged.systems import SystemCorrelations


_CALLED = {"kendall_tau_b": "Kendall τ-b", "spearman": "Spearman", "pearson": "Pearson"}


def values_table(found: "Mapping[str, Value]", *, title: str) -> list[Any]:
    """A row per metric: its value, and its interval where it is a mean over captions."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("metric", no_wrap=True)
    table.add_column("value", justify="right", no_wrap=True)
    intervals = any(each.low is not None for each in found.values())
    means = any(not each.is_mean for each in found.values())
    if intervals:
        table.add_column("95 % interval", justify="center", no_wrap=True)
    if means:
        table.add_column("mean of captions", justify="right", no_wrap=True, style="dim")
    for name, each in found.items():
        cells: list[Any] = [Text(name), Text(f"{each.value:.4f}", style="bold")]
        if intervals:
            cells.append(Text("" if each.low is None else f"[{each.low:.4f}, {each.high:.4f}]"))
        if means:
            # Of what is no mean over captions the mean stands beside it; it is another number.
            cells.append("" if each.is_mean else f"{each.mean:.4f}")
        table.add_row(*cells)
    lines: list[Any] = [Text(title, style="bold"), table]
    # Each reason once, with the metrics that it concerns.
    reasons: dict[str, list[str]] = {}
    for name, each in found.items():
        if each.no_interval is not None:
            reasons.setdefault(each.no_interval, []).append(name)
    lines += [Text(f"{', '.join(names)}: {why}", style="dim") for why, names in reasons.items()]
    return lines


def systems_table(
    rows: "Mapping[str, Mapping[str, Value]]", people: Mapping[str, Mapping[str, float]] | None, *, title: str
) -> list[Any]:
    """A row per system, a column per metric and per score of people; the best of each metric in bold."""
    metrics = list(next(iter(rows.values())))
    scores = [] if people is None else list(next(iter(people.values())))
    best = {name: max(own[name].value for own in rows.values()) for name in metrics}
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("system", overflow="fold")
    for name in (*metrics, *scores):
        table.add_column(name, justify="right", no_wrap=True)
    for system, own in rows.items():
        cells = [
            Text(f"{own[name].value:.4f}", style="bold" if own[name].value == best[name] else "")
            for name in metrics
        ]
        given = [] if people is None else [f"{people[system][name]:g}" for name in scores]
        table.add_row(Text(system), *cells, *given)
    return [Text(title, style="bold"), table]


def agreement_table(agreed: "SystemCorrelations") -> list[Any]:
    """A row per metric and score of people: correlations over systems."""
    from counterfoil.evaluation.judged.systems import MEASURES

    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("metric", no_wrap=True)
    table.add_column("people", no_wrap=True)
    table.add_column("correlation", no_wrap=True)
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("95 % interval", justify="center", no_wrap=True)
    table.add_column("p", justify="right", no_wrap=True)
    for metric in agreed.metrics:
        for human in agreed.humans:
            for name in MEASURES:
                one = agreed.get(metric, human, name)
                known = not isnan(one.value)
                table.add_row(
                    *((Text(metric), Text(human)) if name == MEASURES[0] else ("", "")),
                    _CALLED[name],
                    Text(f"{one.value:.3f}" if known else "none", style="bold"),
                    Text(f"[{one.low:.2f}, {one.high:.2f}]" if known else ""),
                    f"{one.p:.4f}" if known else "",
                )
    title = Text("correlation with people, over systems", style="bold")
    return [title, table, *([Text(agreed.note, style="dim")] if agreed.note else [])]
