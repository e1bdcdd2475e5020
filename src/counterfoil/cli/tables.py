"""Results as Rich tables."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from rich.console import Group
from rich.table import Table
from rich.text import Text

from counterfoil.cli.amounts import amount
from counterfoil.data.benchmark import Benchmark
from counterfoil.data.galleries import Gallery
from counterfoil.data.ratings import Rated
from counterfoil.evaluation.compare import Comparison
from counterfoil.evaluation.evaluate import main_measures
from counterfoil.evaluation.result import Estimate, Result
from counterfoil.report.judged.notes import reasons
from counterfoil.report.markup import number, written
from counterfoil.report.naming import LABELS, parted
from counterfoil.report.tables import headline, overview, style_of

#: Terminal widths from which intervals, and the finer measures, have room.
_MEDIUM, _WIDE = 90, 150

#: From this width on each direction of a gallery has its chance beside it.
_DETAILED = 112


class _Layout(NamedTuple):
    """How much of each value there is room for: a chance per direction, digits of intervals (None: none)."""

    chances: bool
    digits: int | None


#: From the widest to the narrowest; the first that fits is taken, so that no name and no number is cut.
_LAYOUTS = (_Layout(True, 2), _Layout(False, 2), _Layout(False, 1), _Layout(False, None))

_DIRECTIONS = {"i2t": "image → text", "t2i": "text → image", "mean": "mean"}
_SHORT = {"i2t": "I2T", "t2i": "T2I", "mean": "mean"}


def measures_table(result: Result, benchmark: Benchmark, *, width: int = 80) -> Group:
    """One row per measure: per cent, 95 % interval, chance. Of a gallery all directions side by side.

    Correlations are times 100; what has no value stands below with its reason.
    """
    if benchmark.questions.form == Gallery.form:
        return _gallery_table(result, benchmark, width)
    heading, table = _table(
        f"{result.scorer} on {benchmark.card.title or result.benchmark}, {_asked(benchmark)}"
    )
    table.add_column("measure", no_wrap=True)
    missing = reasons(result)
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


def _asked(benchmark: Benchmark) -> str:
    """How much was asked; of rated captions how often people answered, which is what is correlated."""
    questions = benchmark.questions
    if isinstance(questions, Rated):
        ratings = int((~np.isnan(questions.ratings)).sum())
        return f"{amount(len(questions), 'caption')}, {amount(ratings, 'rating')}"
    return amount(len(questions), "question")


def _unit(measures: Iterable[str]) -> str:
    """What stands over a column of values: per cent, or times a hundred for correlations."""
    correlations = any(style_of(name) == "correlation" for name in measures)
    return "x 100" if correlations else "%"


def _gallery_table(result: Result, benchmark: Benchmark, width: int) -> Group:
    """A row per measure, main ones first; a column per direction; and below what the numbers are about."""
    rows: dict[str, dict[str, Estimate]] = {}
    for name, estimate in result.measures.items():
        side, base = parted(name)
        rows.setdefault(base, {})[side] = estimate
    sides = [side for side in _DIRECTIONS if any(side in of for of in rows.values())]
    wanted = _LAYOUTS if width >= _DETAILED else _LAYOUTS[1:]
    shown = [(layout, *_gallery_cells(rows, sides, layout)) for layout in wanted]
    layout, heads, cells = next((each for each in shown if _fits(*each[1:], width)), shown[-1])
    about = "" if layout.digits is None else " with 95 % intervals"
    heading, table = _table(f"{result.scorer} on {benchmark.card.title or result.benchmark}, per cent{about}")
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
        heads.append(_DIRECTIONS[side] if layout.digits else _SHORT[side])
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
    widest = [max(len(head), *(len(row[i]) for row in cells)) for i, head in enumerate(heads)]
    return sum(widest) + 2 * (len(widest) - 1) <= width


def _with_interval(estimate: Estimate, layout: _Layout) -> Text:
    """A value with its interval; in a narrow terminal without brackets, and 100 without digits."""
    low, high = 100 * estimate.low, 100 * estimate.high
    if layout.chances:
        return _bold(estimate).append(f" [{low:.2f}, {high:.2f}]", style="not bold")
    if layout.digits is None:
        return _bold(estimate)
    short = [f"{bound:.{layout.digits}f}".replace(f"{100:.{layout.digits}f}", "100") for bound in (low, high)]
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
            f"{_DIRECTIONS[side]} {depth:,}" for side, depth in facts["cut"].items() if depth is not None
        ]
        lines.append(f"rankings are cut, the shortest after: {', '.join(depths)}")
    reasons = {n: why for n, why in (facts.get("unsupported") or {}).items() if not n.startswith("mean_")}
    if reasons:
        # They are much alike, and all are in the result.
        first, reason = next(iter(reasons.items()))
        names = dict.fromkeys(name.split("_", 1)[1] for name in reasons)
        lines.append(f"not measured: {', '.join(names)}; {first}, for one: {reason}")
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
        unit = " %" if style_of(name) == "percent" else ""
        table.add_column(f"{LABELS[name] if not unit else name}{unit}", justify="right", no_wrap=True)
    # A direction that a group does not ask in is no value that is missing.
    missing = "" if benchmark.questions.form == Gallery.form else "–"
    for label in rows:
        estimates = result.groups[label]
        count = max(estimate.n for estimate in estimates.values())
        table.add_row(
            Text(label),
            f"{count:,}",
            *(
                number(estimates[name].value, style_of(name)) if name in estimates else missing
                for name in names
            ),
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
    one, many = ("query", "queries") if first else ("question", "questions")
    what = one if ties["questions"] == 1 else many
    share = f"{ties['questions']:,} {what} ({100 * ties['rate']:.2f} %)"
    return f"ties in {share}, counted {ties['policy']}: {', '.join(ranges)}"


def comparison_table(comparison: Comparison, *, width: int) -> Group:
    """One row per scorer: main measures with intervals, the finer ones where the terminal is wide enough."""
    in_gallery = comparison.runs[0].benchmark.questions.form == Gallery.form
    if in_gallery and width >= _WIDE:
        plain = overview(comparison, measures=headline(comparison))
    else:
        plain = overview(comparison, finer=width >= _WIDE)
    if not plain.columns:
        # Of runs with chosen measures there may be no main one.
        plain = overview(comparison)
    asked = "queries" if in_gallery else "questions"
    heading, table = _table(
        f"{comparison.runs[0].benchmark.card.title}, {len(comparison.runs[0].benchmark):,} {asked}"
    )
    table.add_column(_unit(column.measure for column in plain.columns), overflow="fold")
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
    in_gallery = comparison.runs[0].benchmark.questions.form == Gallery.form
    table.add_column("scorer", overflow="fold")
    table.add_column("measure", no_wrap=True)
    correlations = all(style_of(d.measure) == "correlation" for d in differences)
    table.add_column("x 100" if correlations else "points", justify="right", no_wrap=True)
    table.add_column("95 % interval", justify="center", no_wrap=True)
    table.add_column("p (Holm)", justify="right", no_wrap=True)
    for d in differences:
        name = d.a if comparison.baseline else f"{d.a} − {d.b}"
        # As the table above writes it, where names are long.
        measure = LABELS.get(d.measure, d.measure) if in_gallery or correlations else d.measure
        value, low, high = (number(v, style_of(d.measure, difference=True)) for v in (d.value, d.low, d.high))
        points = Text(value, style="bold" if d.p_holm < 0.05 else "")
        interval = f"[{low}, {high}]"
        table.add_row(Text(name), measure, points, Text(interval), _p(d.p_holm))
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
