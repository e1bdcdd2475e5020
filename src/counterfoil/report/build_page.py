"""The page of a build: rows in and out of every step, why rows were dropped, examples, and what was built."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from counterfoil.benchmarks.records import Image
from counterfoil.report import html
from counterfoil.report.figure_style import INK, MUTED, RIGHT, WRONG, extent, panels, plain
from counterfoil.report.html import Drawing, drawn, shareable
from counterfoil.report.tables import Cell, Column, Table
from counterfoil.report.thumbnails import Thumbnails

#: Room for the pictures of a page, in bytes of base64 text.
_ROOM = 3_000_000
#: In inches: the height of a step's bar, and the width of all bars.
_BAR, _WIDTH = 0.26, 4.2


@dataclass(frozen=True)
class RowExample:
    """A row: its texts by column, its images by column, and why it was dropped ("" where it was kept)."""

    name: str
    texts: Mapping[str, str]
    images: Mapping[str, Image]
    reason: str = ""


@dataclass(frozen=True)
class StepSection:
    """What the page says of one step."""

    label: str
    summary: str
    rows_in: int
    rows_out: int
    reasons: Mapping[str, int]
    settings: Mapping[str, str]
    facts: Mapping[str, Any]
    kept_rows: tuple[RowExample, ...] = ()
    dropped_rows: tuple[RowExample, ...] = ()


def funnel(steps: Sequence[StepSection], name: str, *, width: float = _WIDTH) -> Drawing:
    """A bar per step: the rows that came out, and beside it the rows that were dropped."""
    from matplotlib.ticker import MaxNLocator

    names = [step.label for step in steps]
    left = max(map(extent, names)) + 0.15
    height = _BAR * len(steps)
    with panels((width, height), left=left, bottom=0.35, right=1.1) as (figure, (axes,)):
        x = np.arange(len(steps))
        out = np.array([step.rows_out for step in steps], dtype=np.float64)
        gone = np.array([sum(step.reasons.values()) for step in steps], dtype=np.float64)
        axes.barh(x, out, height=0.62, color=RIGHT)
        axes.barh(x, gone, left=out, height=0.62, color=WRONG, alpha=0.55, hatch="///", edgecolor="white")
        largest = float((out + gone).max(initial=1))
        for row, (rows_out, dropped) in enumerate(zip(out, gone, strict=True)):
            label = f"{rows_out:,.0f}" + (f"  (−{dropped:,.0f})" if dropped else "")
            axes.text(rows_out + dropped + largest * 0.015, row, label, va="center", fontsize=8, color=INK)
        axes.set_yticks(x, names)
        axes.invert_yaxis()
        axes.set_xlim(0, largest * 1.02)
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        axes.set_axisbelow(True)
        plain(axes, grid="x", size=8)
    about = "Blue: rows that went on. Hatched: rows that were dropped."
    return drawn("Rows out of every step", about, name, figure)


def curve_figure(curve: Mapping[str, Any]) -> Any:
    """A curve that a step recorded: `x`, `y`, with `low` and `high` where it has them, and labels."""
    with panels((2.8, 1.9), left=0.6, bottom=0.45, right=0.2) as (figure, (axes,)):
        x, y = (np.asarray(curve[name], dtype=np.float64) for name in ("x", "y"))
        if "low" in curve and "high" in curve:
            axes.fill_between(x, curve["low"], curve["high"], color=RIGHT, alpha=0.18, lw=0)
        axes.plot(x, y, color=RIGHT, lw=1.4)
        if "chance" in curve:
            axes.plot(x, curve["chance"], color=MUTED, lw=0.8, ls="--")
        axes.set(xlabel=str(curve.get("x_label", "")), ylabel=str(curve.get("y_label", "")))
        plain(axes, str(curve.get("title", "")), grid="both", size=8)
    return figure


def build_page(
    title: str,
    steps: Sequence[StepSection],
    *,
    about: str = "",
    command: str = "",
    tables: Sequence[Table] = (),
) -> str:
    """The page as HTML, the same for the same rows."""
    thumbnails = Thumbnails(left=_ROOM)
    sections = []
    for number, step in enumerate(steps, start=1):
        dropped = counts_table(f"Rows that {step.label} dropped", step.reasons, corner="reason")
        # Shares that the step measured before and after: facts with a value and an interval for both.
        changed = []
        for fact in step.facts.values():
            for name, its in fact.items() if isinstance(fact, Mapping) else ():
                both = [its.get("before"), its.get("after")] if isinstance(its, Mapping) else [None]
                cells: list[Any] = [cell for cell in both if isinstance(cell, Mapping) and "value" in cell]
                if len(cells) == 2:
                    ends = ("value", "low", "high", "n")
                    changed.append((name, *(Cell(*map(cell.get, ends)) for cell in cells)))
        caption = f"Accuracy without the image, before and after {step.label}; chance is 50 %"
        changes = Table.of(caption, "model", [Column("before"), Column("after")], changed)
        part = {
            "key": f"step-{number}",
            "step": step,
            "reasons": dropped if step.reasons else None,
            "changes": changes if changed else None,
            "settings": [(name, shareable(value)) for name, value in step.settings.items() if value != ""],
            "facts": [(name, shareable(text)) for name, text in _fact_rows(step.facts)],
            "curves": [
                drawn(name, "", f"curve-{number}-{i}", curve_figure(curve))
                for i, (name, curve) in enumerate(_curves(step.facts))
            ],
            "kept": _pictured(step.kept_rows, thumbnails),
            "dropped": _pictured(step.dropped_rows, thumbnails),
        }
        sections.append(part)
    return html.render(
        "build.html",
        styles=("page.css", "build.css"),
        title=title,
        about=about,
        command=shareable(command),
        figures=[funnel(steps, "funnel")],
        sections=sections,
        tables=tables,
    )


def counts_table(caption: str, counts: Mapping[str, int], *, corner: str) -> Table:
    """Numbers of rows by name, the most frequent first, with their share."""
    total = sum(counts.values()) or 1
    frequent = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    rows = ((name or "(none)", f"{n:,}", n / total) for name, n in frequent)
    return Table.of(caption, corner, ["rows", Column("%")], rows)


def _pictured(examples: Sequence[RowExample], thumbnails: Thumbnails) -> list[dict[str, Any]]:
    shown = []
    for example in examples:
        images = list(example.images.values())
        numbers = thumbnails.add(images, [list(range(len(images)))]) if images else {}
        columns = enumerate(example.images)
        pictures = [(column, thumbnails.uris[numbers[i]]) for i, column in columns if i in numbers]
        shown.append({"row": example, "pictures": pictures})
    return shown


def _curves(facts: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Facts that are curves: values under `x` and `y`, and points of a calibration, also one level down."""
    curves = []
    for name, value in facts.items():
        inside = {name: value}
        if isinstance(value, Mapping) and not {"x", "y"} <= set(value):
            inside = {f"{name}: {key}": its for key, its in value.items()}
        for key, its in inside.items():
            if isinstance(its, Mapping) and {"x", "y"} <= set(its):
                curves.append((key.replace("_", " "), its))
            elif isinstance(its, list) and its and isinstance(its[0], Mapping) and "precision" in its[0]:
                # The precision of a filter by the share of rows that it keeps.
                defined = [(i["kept"][0], *i["precision"]) for i in its if None not in i["precision"]]
                ends = zip(*sorted(defined, key=lambda point: point[0]), strict=True)
                labels = {"x_label": "share of rows kept", "y_label": "share of them right"}
                named = dict(zip(("x", "y", "low", "high"), ends, strict=True))
                curves.append((key, {**named, **labels, "title": "Calibration"}))
    return curves


def _fact_rows(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    for name, value in facts.items():
        label = name.replace("_", " ")
        if name == "refusals":
            for reason, refusal in value.items():
                examples = " · ".join(refusal["examples"])
                rows.append((f"{reason}: {refusal['rows']:,} answers, such as", examples))
        elif isinstance(value, Mapping):
            plain_ = {key: its for key, its in value.items() if isinstance(its, int | float | str)}
            if plain_ and len(plain_) == len(value):
                rows.append((label, ", ".join(f"{key} {_number(its)}" for key, its in plain_.items())))
        elif isinstance(value, list):
            if value and len(value) <= 4 and all(isinstance(its, int | float | str) for its in value):
                rows.append((label, ", ".join(_number(its) for its in value)))
        elif value is not None:
            rows.append((label, _number(value)))
    return rows


def _number(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
