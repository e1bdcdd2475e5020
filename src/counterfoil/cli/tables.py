"""Results as Rich tables."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

from rich.console import Group
from rich.table import Table
from rich.text import Text

from counterfoil.cli.terminal_tables import printed
from counterfoil.data.benchmark import Benchmark
from counterfoil.evaluation.compare import Comparison
from counterfoil.evaluation.evaluate import main_measures
from counterfoil.evaluation.result import Estimate, Result
from counterfoil.metrics.measure import DIRECTIONS, split_direction
from counterfoil.metrics.measures import find
from counterfoil.report.drawing import short
from counterfoil.report.forms import report_of
from counterfoil.report.labels import measure_label
from counterfoil.report.markup import Cell, Column, Row, number
from counterfoil.report.markup import Table as Report
from counterfoil.report.notes import rests_on
from counterfoil.report.tables import headline, overview, style_of

#: The terminal's width from which the finer measures have room.
_WIDE = 150

#: From this width on each direction of a gallery has its chance beside it.
_DETAILED = 112


class _Layout(NamedTuple):
    """How much there is room for: a chance per direction, digits of intervals, which can stand below."""

    chances: bool
    digits: int
    stacked: bool = False


#: From the widest to the narrowest; the first that fits is taken, so that no name and no number is cut.
_LAYOUTS = (
    _Layout(True, 2),
    _Layout(False, 2),
    _Layout(False, 1),
    _Layout(False, 2, stacked=True),
    _Layout(False, 1, stacked=True),
)


def measures_table(result: Result, benchmark: Benchmark, *, width: int = 80) -> Group:
    """One row per measure: per cent, 95 % interval, chance. Of a gallery all directions side by side.

    Correlations are times 100; what has no value stands below with its reason.
    """
    if benchmark.questions.directed:
        return _gallery_table(result, benchmark, width)
    asked = report_of(benchmark).amount(benchmark)
    heading, table = _table(f"{result.scorer} on {benchmark.card.title or result.benchmark}, {asked}")
    table.add_column("measure", no_wrap=True)
    missing = result.undefined
    table.add_column(_unit([*result.measures, *missing]), justify="right", no_wrap=True)
    table.add_column("95 % interval", justify="center", no_wrap=True)
    table.add_column("chance", justify="right", no_wrap=True, style="dim")
    for name, estimate in result.measures.items():
        value, low, high = (number(v, style_of(name)) for v in (estimate.value, estimate.low, estimate.high))
        chance = "" if estimate.chance is None else number(estimate.chance, style_of(name))
        table.add_row(name, Text(value, style="bold"), Text(f"[{low}, {high}]"), chance)
    for name in missing:
        table.add_row(name, Text("–", style="bold"), "", "")
    return Group(heading, table, *(Text(f"{name}: {why}", style="dim") for name, why in missing.items()))


def _unit(measures: Iterable[str]) -> str:
    """What stands over a column of values: per cent, or times a hundred for correlations."""
    correlations = any(style_of(name) == "correlation" for name in measures)
    return "x 100" if correlations else "%"


def _gallery_table(result: Result, benchmark: Benchmark, width: int) -> Group:
    """A row per measure, main ones first; a column per direction; and below what the numbers are about."""
    rows: dict[str, dict[str, Estimate]] = {}
    for name, estimate in result.measures.items():
        side, base = split_direction(name)
        rows.setdefault(base, {})[side] = estimate
    sides = [side for side in DIRECTIONS if any(side in of for of in rows.values())]
    wanted = _LAYOUTS if width >= _DETAILED else _LAYOUTS[1:]
    shown = [(layout, *_gallery_cells(rows, sides, layout)) for layout in wanted]
    _, heads, cells = next((each for each in shown if _fits(*each[1:], width)), shown[-1])
    title = f"{result.scorer} on {benchmark.card.title or result.benchmark}, per cent with 95 % intervals"
    heading, table = _table(title)
    for head in heads:
        justify: Literal["left", "right"] = "left" if head == "measure" else "right"
        table.add_column(head, justify=justify, no_wrap=True, style="dim" if head == "chance" else "")
    for row in cells:
        table.add_row(*row)
    lines = [Text(line, style="dim") for line in _gallery_lines(result.provenance.get("gallery", {}))]
    return Group(heading, table, *lines)


def _gallery_cells(
    rows: Mapping[str, Mapping[str, Estimate]], sides: Sequence[str], layout: _Layout
) -> tuple[list[str], list[list[Text]]]:
    """The heads and the cells of a gallery's table."""
    heads = ["measure"]
    for side in sides:
        heads.append(DIRECTIONS[side].label if layout.stacked else DIRECTIONS[side].arrow)
        heads += ["chance"] if layout.chances else []
    cells = []
    for base, of in rows.items():
        row = [Text(base)]
        for side in sides:
            found = of.get(side)
            row.append(_with_interval(found, layout) if found else Text())
            if layout.chances:
                row.append(Text(_per_cent(found.chance) if found else ""))
        if not layout.chances:
            row.append(Text(_per_cent(of[next(side for side in reversed(sides) if side in of)].chance)))
        cells.append(row)
    return heads + ([] if layout.chances else ["chance"]), cells


def _fits(heads: Sequence[str], cells: Sequence[Sequence[Text]], width: int) -> bool:
    """Whether columns with two blanks between them have room."""
    widest = [
        max(len(head), *(len(line) for row in cells for line in row[i].plain.split("\n")))
        for i, head in enumerate(heads)
    ]
    return sum(widest) + 2 * (len(widest) - 1) <= width


def _with_interval(estimate: Estimate, layout: _Layout) -> Text:
    """A value with its interval; in a narrow terminal without brackets, and 100 without digits."""
    low, high = 100 * estimate.low, 100 * estimate.high
    if layout.chances:
        return _bold(estimate).append(f" [{low:.2f}, {high:.2f}]", style="not bold")
    ends = [f"{bound:.{layout.digits}f}".replace(f"{100:.{layout.digits}f}", "100") for bound in (low, high)]
    between = "\n" if layout.stacked else " "
    return _bold(estimate).append(f"{between}{ends[0]}–{ends[1]}", style="not bold dim")


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
            some = kind if side["undefined"] > 1 else kind.removesuffix("s")
            lines.append(f"without a right answer, left out: {side['undefined']:,} {some}")
    for what, side in (("captions", i2t), ("images", t2i)):
        if side["outside_gallery"]:
            lines.append(
                f"right answers outside the gallery, never found: {side['outside_gallery']:,} of "
                f"{side['positives']:,} {what}"
            )
    if facts["cut"]:
        depths = [
            f"{DIRECTIONS[side].arrow} {depth:,}" for side, depth in facts["cut"].items() if depth is not None
        ]
        lines.append(f"rankings are cut, the shortest after: {', '.join(depths)}")
    unsupported = (facts.get("unsupported") or {}).items()
    reasons = {name: why for name, why in unsupported if split_direction(name)[0] != "mean"}
    if reasons:
        # They are much alike, and all are in the result.
        first, reason = next(iter(reasons.items()))
        names = dict.fromkeys(split_direction(name)[1] for name in reasons)
        lines.append(f"not measured: {', '.join(names)}; {first}, for one: {reason}")
    return lines


def groups_table(result: Result, benchmark: Benchmark, *, width: int = 80) -> Group | None:
    """One row per group of the groupings the benchmark's authors report by; main measures side by side."""
    wanted = benchmark.card.groupings or tuple(benchmark.questions.groupings)
    labels = {label for name in wanted for label in benchmark.questions.groupings.get(name, ())}
    rows = [label for label, of in result.groups.items() if of and label.rpartition(":")[2] in labels]
    if not rows or len(rows) > 40:
        return None
    names = [name for name in main_measures(benchmark) if name in result.measures]
    columns = tuple(Column(_over(name), style=style_of(name), measure=name) for name in names)
    lines = []
    for label in rows:
        of = result.groups[label]
        cells = (
            Cell(e.value, e.low, e.high) if (e := of.get(name)) else _nothing(benchmark) for name in names
        )
        lines.append(Row(label, (Cell(f"{max(e.n for e in of.values()):,}"), *cells)))
    asked = Column(benchmark.questions.units, style="text")
    return Group(*printed(Report("by group", (asked, *columns), tuple(lines), "group"), width)[:-1])


def _over(measure: str) -> str:
    """What stands over a measure's column: its name, and its unit where that is per cent."""
    return f"{measure} %" if style_of(measure) == "percent" else measure_label(measure)


def _nothing(benchmark: Benchmark) -> Cell:
    """A value that is missing; a direction that a group of a gallery does not ask in is none."""
    return Cell("") if benchmark.questions.directed else Cell()


def ties_line(result: Result) -> str:
    """How ties were counted and how much that matters."""
    ties = result.ties
    if ties.get("questions") is None:
        return f"ties: {ties.get('note', 'not known')}"
    if not ties["questions"]:
        return "ties: none"
    ranges = []
    known = ties["measures"]["strict"]
    # Of a gallery the measure that is reported first, else the main measure that sums the others up.
    first = [name for name in known if split_direction(name)[0]][:3][-1:]
    for name in first or [name for name in known if (measure := find(name)) and measure.main][-1:]:
        low, high = ties["measures"]["strict"][name], ties["measures"]["optimistic"][name]
        ranges.append(f"{name} {100 * low:.2f} if wrong to {100 * high:.2f} if right")
    one, many = ("query", "queries") if first else ("question", "questions")
    what = one if ties["questions"] == 1 else many
    share = f"{ties['questions']:,} {what} ({100 * ties['rate']:.2f} %)"
    return f"ties in {share}, counted {ties['policy']}: {', '.join(ranges)}"


def signature_lines(*lines: str) -> Group:
    """Signatures, a line each however narrow the terminal is."""
    return Group(*(Text(line, style="dim", no_wrap=True, overflow="ignore") for line in lines))


def resting_lines(benchmark: Benchmark, results: Sequence[Result]) -> Group:
    """What the intervals rest on, and warnings where that is little."""
    first, *more = rests_on(benchmark, results)
    return Group(Text(first, style="dim"), *(Text(f"warning: {line}", style="yellow") for line in more))


def comparison_table(comparison: Comparison, *, width: int) -> Group:
    """One row per scorer, every value with its interval; finer measures where the terminal is wide enough."""
    in_gallery = comparison.runs[0].benchmark.questions.directed
    if in_gallery and width >= _WIDE:
        plain = overview(comparison, measures=headline(comparison))
    else:
        plain = overview(comparison, finer=width >= _WIDE)
    if not plain.columns:
        # Of runs with chosen measures there may be no main one.
        plain = overview(comparison)
    asked = "queries" if in_gallery else "questions"
    title = f"{comparison.runs[0].benchmark.card.title}, {len(comparison.runs[0].benchmark):,} {asked}"
    rows = (
        replace(row, name=f"{row.name} (baseline)") if row.name == comparison.baseline else row
        for row in plain.rows
    )
    # The columns have sizes of their own where benchmarks stand side by side, which they do not here.
    columns = tuple(replace(column, size=None) for column in plain.columns)
    corner = _unit(column.measure for column in columns)
    table = Report(title, columns, tuple(rows), corner)

    def label(column: Column) -> str:
        # What stands in a block per direction elsewhere says its direction here.
        return measure_label(column.measure, column.label) if in_gallery else column.label

    return Group(*printed(table, width, label=label)[:-1])


def differences_table(comparison: Comparison, *, width: int = 80) -> Group | None:
    """The tested differences: to the baseline where there is one, else of all pairs.

    In a narrow terminal the two names of a pair stand under one another.
    """
    differences = comparison.against_baseline() if comparison.baseline else comparison.differences
    if not differences:
        return None
    title = f"minus {comparison.baseline}" if comparison.baseline else "differences of all pairs"
    heading, table = _table(f"{comparison.runs[0].benchmark.card.title}, {title}")
    in_gallery = comparison.runs[0].benchmark.questions.directed
    correlations = all(style_of(d.measure) == "correlation" for d in differences)
    lines = []
    for d in differences:
        # As the table above writes it, where names are long.
        measure = measure_label(d.measure) if in_gallery or correlations else d.measure
        value, low, high = (number(v, style_of(d.measure, difference=True)) for v in (d.value, d.low, d.high))
        lines.append((measure, value, f"[{low}, {high}]", _p(d.p_holm)))
    heads = ("measure", "x 100" if correlations else "points", "95 % interval", "p (Holm)")
    taken = sum(2 + max(map(len, column)) for column in zip(heads, *lines, strict=True))
    names = [[d.a] if comparison.baseline else [d.a, f"− {d.b}"] for d in differences]
    stacked = max(len(" ".join(each)) for each in names) + taken > width
    table.add_column("scorer", no_wrap=True)
    table.add_column(heads[0], no_wrap=True)
    table.add_column(heads[1], justify="right", no_wrap=True)
    table.add_column(heads[2], justify="center", no_wrap=True)
    table.add_column(heads[3], justify="right", no_wrap=True)
    for d, name, (measure, value, interval, p) in zip(differences, names, lines, strict=True):
        room = max(12, width - taken)
        text = "\n".join(short(part, room) for part in name) if stacked else " ".join(name)
        points = Text(value, style="bold" if d.p_holm < 0.05 else "")
        table.add_row(Text(text), measure, points, Text(interval), p)
    return Group(heading, table)


def _table(title: str) -> tuple[Text, Table]:
    """A heading, and an empty table to go under it: a table's own title would wrap at the table's width."""
    return Text(title, style="bold"), Table(box=None, pad_edge=False, header_style="dim")


def _bold(estimate: Estimate) -> Text:
    return Text(f"{100 * estimate.value:.2f}", style="bold")


def _per_cent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.2f}"


def _p(value: float) -> str:
    return "< 0.0001" if value < 0.0001 else f"{value:.4f}"
