"""Results as Rich tables."""

from collections.abc import Mapping
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from counterfoil.data.benchmark import Benchmark
from counterfoil.data.questions import Gallery
from counterfoil.evaluation.compare import Comparison
from counterfoil.evaluation.evaluate import main_measures
from counterfoil.evaluation.result import Estimate, Result
from counterfoil.report.markup import written
from counterfoil.report.naming import LABELS, parted
from counterfoil.report.tables import headline, overview

#: Terminal widths from which intervals, and the finer measures, have room.
_MEDIUM, _WIDE = 90, 150

#: The same for the three directions of a gallery: digits of intervals, and a chance for each.
_DETAILED = 112
_SHORT_NAME = 14

_DIRECTIONS = {"i2t": "image → text", "t2i": "text → image", "mean": "mean"}


def measures_table(result: Result, benchmark: Benchmark, *, width: int = 80) -> Group:
    """One row per measure: per cent, 95 % interval, chance. Of a gallery all directions side by side."""
    if benchmark.questions.form == Gallery.form:
        return _gallery_table(result, benchmark, width)
    heading, table = _table(
        f"{result.scorer} on {benchmark.card.title or result.benchmark}, {len(benchmark):,} questions"
    )
    table.add_column("measure", no_wrap=True)
    table.add_column("%", justify="right", no_wrap=True)
    table.add_column("95 % interval", justify="center", no_wrap=True)
    table.add_column("chance", justify="right", no_wrap=True, style="dim")
    for name, estimate in result.measures.items():
        table.add_row(name, _bold(estimate), _interval(estimate), _per_cent(estimate.chance))
    return Group(heading, table)


def _gallery_table(result: Result, benchmark: Benchmark, width: int) -> Group:
    """A row per measure, main ones first; a column per direction; and below what the numbers are about."""
    detailed = width >= _DETAILED
    heading, table = _table(
        f"{result.scorer} on {benchmark.card.title or result.benchmark}, per cent with 95 % intervals"
    )
    rows: dict[str, dict[str, Estimate]] = {}
    for name, estimate in result.measures.items():
        side, base = parted(name)
        rows.setdefault(base, {})[side] = estimate
    sides = [side for side in _DIRECTIONS if any(side in of for of in rows.values())]
    table.add_column("measure", overflow="fold")
    for side in sides:
        table.add_column(_DIRECTIONS[side], justify="right", no_wrap=True)
        if detailed:
            table.add_column("chance", justify="right", no_wrap=True, style="dim")
    if not detailed:
        table.add_column("chance", justify="right", no_wrap=True, style="dim")
    # In eighty columns there is room for whole names, and a second digit only beside short ones.
    digits = 2 if max(map(len, rows), default=0) <= _SHORT_NAME else 1
    for base, of in rows.items():
        cells: list[Text | str] = []
        for side in sides:
            found = of.get(side)
            cells.append(_with_interval(found, detailed=detailed, digits=digits) if found else "")
            if detailed:
                cells.append(_per_cent(found.chance) if found else "")
        if not detailed:
            cells.append(_per_cent(of[next(side for side in reversed(sides) if side in of)].chance))
        table.add_row(base, *cells)
    lines = [Text(line, style="dim") for line in _gallery_lines(result.provenance.get("gallery", {}))]
    return Group(heading, table, *lines)


def _with_interval(estimate: Estimate, *, detailed: bool, digits: int = 2) -> Text:
    """A value with its interval; in a narrow terminal without brackets, and 100 without digits."""
    low, high = 100 * estimate.low, 100 * estimate.high
    if detailed:
        return _bold(estimate).append(f" [{low:.2f}, {high:.2f}]", style="not bold")
    short = [f"{bound:.{digits}f}".replace(f"{100:.{digits}f}", "100") for bound in (low, high)]
    return _bold(estimate).append(f" {short[0]}–{short[1]}", style="not bold dim")


def _gallery_lines(facts: Mapping[str, Any]) -> list[str]:
    """What was asked, what has no right answer or one outside the gallery, and what could not be measured."""
    if not facts:
        return []
    i2t, t2i = facts["i2t"], facts["t2i"]
    parts = f", the mean over {facts['parts']} parts" if facts["parts"] > 1 else ""
    lines = [
        f"{i2t['queries']:,} of {facts['images']:,} images and {t2i['queries']:,} of "
        f"{facts['captions']:,} captions are queries{parts}"
    ]
    for kind, side in (("images", i2t), ("captions", t2i)):
        if side["undefined"]:
            lines.append(f"without a right answer, left out: {side['undefined']:,} {kind}")
    for what, side in (("captions", i2t), ("images", t2i)):
        if side["outside_gallery"]:
            lines.append(
                f"right answers outside the gallery, never found: {side['outside_gallery']:,} of "
                f"{side['positives']:,} {what}"
            )
    if facts["cut"]:
        depths = [
            f"{_DIRECTIONS[side]} {depth:,}" for side, depth in facts["cut"].items() if depth is not None
        ]
        lines.append(f"rankings are cut, the shortest after: {', '.join(depths)}")
    if facts.get("unsupported"):
        reasons: dict[str, list[str]] = {}
        for name, reason in facts["unsupported"].items():
            if not name.startswith("mean_"):
                reasons.setdefault(reason, []).append(name)
        lines += [f"not measured: {', '.join(names)}: {reason}" for reason, names in reasons.items()]
    return lines


def groups_table(result: Result, benchmark: Benchmark) -> Group | None:
    """One row per group of the groupings the benchmark's authors report by; main measures side by side."""
    wanted = benchmark.card.groupings or tuple(benchmark.questions.groupings)
    labels = {label for name in wanted for label in benchmark.questions.groupings.get(name, ())}
    rows = [label for label, of in result.groups.items() if of and label.rpartition(":")[2] in labels]
    if not rows or len(rows) > 40:
        return None
    names = [name for name in main_measures(benchmark) if name in result.measures]
    heading, table = _table("by group")
    table.add_column("group", no_wrap=True)
    table.add_column("questions", justify="right")
    for name in names:
        table.add_column(f"{name} %", justify="right", no_wrap=True)
    for label in rows:
        estimates = result.groups[label]
        count = max(estimate.n for estimate in estimates.values())
        table.add_row(
            Text(label),
            f"{count:,}",
            *(_short(estimates[name]) if name in estimates else "" for name in names),
        )
    return Group(heading, table)


def ties_line(result: Result) -> str:
    """How ties were counted and how much that matters."""
    ties = result.ties
    if ties.get("questions") is None:
        return f"ties: {ties.get('note', 'not known')}"
    if not ties["questions"]:
        return "ties: none"
    ranges = []
    known = ties["measures"]["strict"]
    # Of a gallery the measure that is reported first.
    first = [name for name in known if parted(name)[0]][:3][-1:]
    for name in ("group", "accuracy", *first):
        if name in known:
            low, high = ties["measures"]["strict"][name], ties["measures"]["optimistic"][name]
            ranges.append(f"{name} {100 * low:.2f} if wrong to {100 * high:.2f} if right")
    what = "queries" if first else "questions"
    share = f"{ties['questions']:,} {what} ({100 * ties['rate']:.2f} %)"
    return f"ties in {share}, counted {ties['policy']}: {', '.join(ranges)}"


def comparison_table(comparison: Comparison, *, width: int) -> Group:
    """One row per scorer: main measures with intervals, the finer ones where the terminal is wide enough."""
    in_gallery = comparison.runs[0].benchmark.questions.form == Gallery.form
    if in_gallery and width >= _WIDE:
        plain = overview(comparison, measures=headline(comparison))
    else:
        plain = overview(comparison, finer=width >= _WIDE)
    heading, table = _table(
        f"{comparison.runs[0].benchmark.card.title}, {len(comparison.runs[0].benchmark):,} questions"
    )
    table.add_column("%", overflow="fold")
    main = main_measures(comparison.runs[0].benchmark)
    for column in plain.columns:
        # What stands in a block per direction elsewhere says its direction here.
        label = LABELS.get(column.measure, column.label) if in_gallery else column.label
        table.add_column(label, justify="right", no_wrap=True)
    for row in plain.rows:
        cells = []
        for cell, column in zip(row.cells, plain.columns, strict=True):
            interval = column.measure in main and width >= _MEDIUM
            style = {1: "bold", 2: "underline"}.get(cell.rank, "")
            cells.append(Text(written(cell, column, interval=interval), style=style))
        name = row.name + (" (baseline)" if row.name == comparison.baseline else "")
        table.add_row(Text(name), *cells, style="dim" if row.kind == "chance" else "")
    return Group(heading, table)


def differences_table(comparison: Comparison) -> Group | None:
    """The tested differences: to the baseline where there is one, else of all pairs."""
    differences = comparison.against_baseline() if comparison.baseline else comparison.differences
    if not differences:
        return None
    title = f"minus {comparison.baseline}" if comparison.baseline else "differences of all pairs"
    heading, table = _table(f"{comparison.runs[0].benchmark.card.title}, {title}")
    table.add_column("scorer", overflow="fold")
    table.add_column("measure", no_wrap=True)
    table.add_column("points", justify="right", no_wrap=True)
    table.add_column("95 % interval", justify="center", no_wrap=True)
    table.add_column("p (Holm)", justify="right", no_wrap=True)
    for d in differences:
        name = d.a if comparison.baseline else f"{d.a} − {d.b}"
        points = Text(f"{100 * d.value:+.2f}", style="bold" if d.p_holm < 0.05 else "")
        interval = f"[{100 * d.low:+.2f}, {100 * d.high:+.2f}]"
        table.add_row(Text(name), d.measure, points, Text(interval), _p(d.p_holm))
    return Group(heading, table)


def _table(title: str) -> tuple[Text, Table]:
    """A heading, and an empty table to go under it: a table's own title would wrap at the table's width."""
    return Text(title, style="bold"), Table(box=None, pad_edge=False, header_style="dim")


def _bold(estimate: Estimate) -> Text:
    return Text(f"{100 * estimate.value:.2f}", style="bold")


def _short(estimate: Estimate) -> str:
    return f"{100 * estimate.value:.2f}"


def _interval(estimate: Estimate) -> Text:
    return Text(f"[{100 * estimate.low:.2f}, {100 * estimate.high:.2f}]")


def _per_cent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.2f}"


def _p(value: float) -> str:
    return "< 0.0001" if value < 0.0001 else f"{value:.4f}"
