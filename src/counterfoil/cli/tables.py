"""Results in a terminal: tables as wide as that is, what does not fit stacked or split, never left out."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any

from rich.columns import Columns
from rich.console import Console, Group
from rich.padding import Padding
from rich.table import Table as Rich
from rich.text import Text

from counterfoil import terminal
from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.evaluation.compare import Comparison
from counterfoil.evaluation.result import Result
from counterfoil.inputs.options import Option
from counterfoil.report.comparison_tables import compact, signature_of
from counterfoil.report.results import RESULTS, reported_groups, rests_on, ties_line
from counterfoil.report.tables import Cell, Column, Table, measure_label, number, short, style_of, written

if TYPE_CHECKING:
    from counterfoil.jobs.annotate_campaign import CampaignProgress
    from counterfoil.jobs.compare import RunComparison
    from counterfoil.jobs.evaluate import EvaluationRun
    from counterfoil.jobs.reproduce import Reproduction
    from counterfoil.jobs.results import Tabular
    from counterfoil.jobs.tour import ExampleFiles, Tour
    from counterfoil.jobs.world import Drawn
    from counterfoil.report.reproduction import Entry

#: The terminal's width from which the finer measures have room.
_WIDE = 150
_SIDES = {"image to text": "I2T ", "text to image": "T2I "}
_STYLES = {1: "bold", 2: "underline"}


def printed(
    table: Table, width: int, *, label: Callable[[Column], str] | None = None, names: int | None = None
) -> list[Any]:
    """A table for the terminal: intervals beside values where they fit in `width`, else below; else split.

    `label` says what stands over a column; names of rows that do not fit are shortened to `names` letters.
    """
    parts: list[Any] = [Text(table.caption.rstrip("."), style="bold")] if table.caption else []
    if table.caption and not table.rows:
        return parts
    blocks = [column.block for column in table.columns]
    sides = _SIDES if len(set(blocks)) > 1 else {}
    heads = [
        label(column)
        if label
        else sides.get(column.block, "") + "\n".join(short(part, 16) for part in column.label.split(" · "))
        for column in table.columns
    ]
    room = names or max(24, 2 * width // 5)
    for most, stacked in ((width, False), (room, False), (room, True)):
        called = ["\n".join(short(line, most) for line in row.name.split("\n")) for row in table.rows]
        longest = max(len(line) for name in [table.corner, *called] for line in name.split("\n"))
        cells = []
        for i, column in enumerate(table.columns):
            texts = [(written(row.cells[i], column, interval=True), row.cells[i].low) for row in table.rows]
            # An interval below its value, where they do not fit beside one another.
            cells.append(
                [t.replace(" [", "\n[", 1) if stacked and low is not None else t for t, low in texts]
            )
        rooms = [
            2 + max(len(line) for text in [head, *of] for line in text.split("\n"))
            for head, of in zip(heads, cells, strict=True)
        ]
        if longest + sum(rooms) <= width:
            break
    for group in _groups(rooms, blocks, width - longest):
        rich = Rich(box=None, pad_edge=False, header_style="dim")
        rich.add_column(Text(table.corner), no_wrap=True)
        for i, align in ((i, table.columns[i].align) for i in group):
            # Texts wrap where names would be cut.
            rich.add_column(Text(heads[i]), justify=align, no_wrap=align != "left")
        for number_, row in enumerate(table.rows):
            shown = (_styled(cells[i][number_], table.columns[i], row.cells[i].rank) for i in group)
            rich.add_row(Text(called[number_]), *shown, style="dim" if row.kind == "chance" else "")
        sizes = [table.columns[i].size for i in group]
        if len({column.size for column in table.columns}) > 1:
            rich.add_row("queries", *(f"{size:,}" if size is not None else "" for size in sizes), style="dim")
        parts.append(rich)
    return parts


def show(console: Console, tables: Sequence[Table]) -> None:
    """Print tables, a blank line after each."""
    for table in tables:
        console.print(Group(*printed(table, console.width), Text()))


def show_result(result: "Tabular", console: Console) -> None:
    """Print tables and notes of a result; a note that begins with "warning: " is one that quiet shows too."""
    show(console, result.tables)
    for note in result.notes:
        text = note.removeprefix("warning: ")
        (terminal.note if text == note else terminal.warn)(text)


def _styled(text: str, column: Column, rank: int) -> Text:
    if column.look == "first":
        value, rest = re.fullmatch(r"(\S*)(.*)", text, re.DOTALL).groups()  # type: ignore[union-attr]
        return Text.assemble((value, "bold"), (rest, "dim"))
    return Text(text, style=_STYLES.get(rank, column.look))


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


def measures_table(result: Result, benchmark: Benchmark, *, width: int = 80) -> Group:
    """The measures of a run as its form has them, and below what has no value or was not measured."""
    of_form = RESULTS[benchmark.questions.form]
    table, lines = of_form.table(result, benchmark, width), of_form.lines(result)
    return Group(*printed(table, width, names=width), *(Text(line, style="dim") for line in lines))


def groups_table(result: Result, benchmark: Benchmark, *, width: int = 80) -> Group | None:
    """One row per group of the groupings the benchmark's authors report by; main measures side by side."""
    table = reported_groups(result, benchmark)
    return None if table is None else Group(*printed(table, width))


def print_signatures(console: Console, lines: Iterable[str]) -> None:
    """Print signatures, a line each however narrow the terminal is."""
    for line in lines:
        console.print(Text(line, style="dim", no_wrap=True, overflow="ignore"), soft_wrap=True)


def print_resting(console: Console, lines: Sequence[str]) -> None:
    """Print what the intervals rest on, and warnings where that is little (`rests_on`)."""
    first, *more = lines
    warnings = (Text(f"warning: {line}", style="yellow") for line in more)
    console.print(Group(Text(first, style="dim"), *warnings))


def comparison_table(comparison: Comparison, *, width: int) -> Group:
    """One row per model, every value with its interval; finer measures where the terminal is wide enough."""
    in_gallery = comparison.runs[0].benchmark.questions.directed

    def label(column: Column) -> str:
        # What stands in a block per direction elsewhere says its direction here.
        return measure_label(column.measure, column.label) if in_gallery else column.label

    return Group(*printed(compact(comparison, wide=width >= _WIDE), width, label=label))


def differences_table(comparison: Comparison, *, width: int = 80) -> Group | None:
    """The tested differences, to the baseline where there is one, else of all pairs."""
    differences = comparison.against_baseline() if comparison.baseline else comparison.differences
    if not differences:
        return None
    in_gallery = comparison.runs[0].benchmark.questions.directed
    correlations = all(style_of(d.measure) == "correlation" for d in differences)
    lines = []
    for d in differences:
        # As the table above writes it, where names are long.
        measure = measure_label(d.measure) if in_gallery or correlations else d.measure
        value, low, high = (number(v, style_of(d.measure, difference=True)) for v in (d.value, d.low, d.high))
        p = "<0.0001" if d.p_holm < 0.0001 else f"{d.p_holm:.4f}"
        lines.append((measure, value, f"[{low}, {high}]", p))
    columns = (
        Column("measure", align="left"),
        Column("x 100" if correlations else "points"),
        Column("95 % interval", align="center"),
        Column("p (Holm)"),
    )
    heads = [column.label for column in columns]
    taken = sum(2 + max(map(len, column)) for column in zip(heads, *lines, strict=True))
    names = [[d.a] if comparison.baseline else [d.a, f"− {d.b}"] for d in differences]
    if max(len(" ".join(pair)) for pair in names) + taken > width:
        room = max(12, width - taken)
        called = ["\n".join(short(part, room) for part in pair) for pair in names]
    else:
        called = [" ".join(pair) for pair in names]
    rows: list[tuple[str | Cell, ...]] = [
        (name, measure, Cell(value, rank=int(d.p_holm < 0.05)), *rest)
        for d, name, (measure, value, *rest) in zip(differences, called, lines, strict=True)
    ]
    title = f"each model minus {comparison.baseline}" if comparison.baseline else "differences of models"
    heading = f"{comparison.runs[0].benchmark.title}, {title}"
    return Group(*printed(Table.of(heading, "model", columns, rows), width, names=2 * width))


SIGNATURES = Option(
    "Add a line per measure that states all its numbers depend on, to cite with them.", False, panel="Results"
)


def show_run(
    run: "EvaluationRun", console: Console, *, signatures: Annotated[bool, SIGNATURES] = False
) -> None:
    """The measures with their intervals, those of groups, and what the numbers rest on."""
    result, benchmark = run.result, run.benchmark
    console.print(measures_table(result, benchmark, width=console.width))
    groups = groups_table(result, benchmark, width=console.width)
    if groups is not None:
        console.print(groups)
    print_resting(console, rests_on(benchmark, [result]))
    console.print(ties_line(result, benchmark), style="dim")
    if signatures:
        print_signatures(console, map(result.signature, result.measures))


def show_comparison(
    compared: "RunComparison", console: Console, *, signatures: Annotated[bool, SIGNATURES] = False
) -> None:
    """The measures, the differences, and what the numbers rest on, of each benchmark."""
    for comparison in compared:
        console.print(comparison_table(comparison, width=console.width))
        differences = differences_table(comparison, width=console.width)
        if differences is not None:
            console.print(differences)
        results = [run.result for run in comparison.runs]
        print_resting(console, rests_on(comparison.runs[0].benchmark, results))
        if signatures:
            names = dict.fromkeys(name for run in comparison.runs for name in run.result.measures)
            print_signatures(console, (signature_of(comparison.runs, name) for name in names))


#: Stands after the column of a number that follows from others printed in the same paper, or from arithmetic.
DERIVED_MARK = "†"


def show_demo(demo: "Tour | ExampleFiles", console: Console) -> None:
    """The comparison of the tour, how long it took, and last the path of its page; or the files."""
    from counterfoil.jobs.tour import ExampleFiles

    if isinstance(demo, ExampleFiles):
        console.print(f"{demo.folder}: {', '.join(demo.names)}", soft_wrap=True)
        return
    show(console, demo.comparison.tables)
    terminal.note(f"{demo.seconds:.0f} s in all")
    console.print(f"The page is in {demo.path.resolve()}", soft_wrap=True)


def show_drawn(drawn: "Drawn", console: Console) -> None:
    """What `counterfoil world` drew, where the command is not quiet."""
    for line in () if terminal.quiet else drawn.lines:
        console.print(line, soft_wrap=True)


def show_ledger(reproduction: "Reproduction", console: Console) -> None:
    """Paper by paper a paragraph per row, then what differs and why, then counts; or the files looked for."""
    from counterfoil.cli.listings import print_words
    from counterfoil.jobs.reproduce import BASES
    from counterfoil.report.reproduction import Basis, Verdict, by_basis

    if reproduction.files:
        rows = [(paper, name, place or "not there") for paper, name, place in reproduction.files]
        print_words(console, ("paper", "file", "found"), rows)
        return
    for (_, title), of_paper in groupby(reproduction.entries, key=lambda e: (e.paper, e.title)):
        console.print(Text(title, style="bold"))
        for table, of_table in groupby(of_paper, key=lambda e: e.table):
            console.print(Text(f"  {table}", style="bold cyan"))
            for row, of_row in groupby(of_table, key=lambda e: e.row):
                cells = list(of_row)
                console.print(Padding(Text(row), (0, 0, 0, 4)))
                computed = []
                for e in cells:
                    if e.verdict is not Verdict.NO_DATA:
                        sign, style = ("=", "green") if e.verdict is Verdict.SAME else ("≠", "bold yellow")
                        mark = DERIVED_MARK if e.basis is Basis.DERIVED else ""
                        pair = (f"{e.printed} {sign} {e.rounded}", style)
                        text = Text.assemble(f"{e.column}{mark} ", pair, style="dim", no_wrap=True)
                        computed.append(text)
                if computed:
                    console.print(Padding(Columns(computed, padding=(0, 3)), (0, 0, 0, 6)))
                missing = Counter(e.reason for e in cells if e.verdict is Verdict.NO_DATA)
                for reason, count in missing.items():
                    console.print(Padding(Text(f"no data for {count}: {reason}", style="dim"), (0, 0, 0, 6)))
    differing = [e for e in reproduction.entries if e.verdict is Verdict.DIFFERS]
    if differing:
        console.print(Text("\nWhat differs, printed ≠ recomputed", style="bold"))
        alike: dict[tuple[str, str, str], list[Entry]] = {}
        for e in differing:
            alike.setdefault((e.paper, e.table, e.reason), []).append(e)
        for (number, table, reason), cells in alike.items():
            numbers = "; ".join(f"{e.row}, {e.column}: {e.printed} ≠ {e.rounded}" for e in cells)
            why = Text(reason or "No reason is known.", style="" if reason else "bold red")
            head = Text(f"{number} {table}, {numbers}. ", style="yellow")
            console.print(Padding(head + why, (0, 0, 0, 2)))
    counts = by_basis(reproduction.whole)
    console.print()
    for basis, label in BASES.items():
        of = counts[basis]
        label += f" ({DERIVED_MARK})" if basis is Basis.DERIVED else ""
        line = f"{label}: {of['same']:,} same, {of['differs']:,} differ, {of['unexplained']:,} unexplained"
        console.print(Text(line, style="bold"))
    console.print(Text(f"no data: {counts[Basis.NONE]['no data']:,}", style="bold"))


def show_lines(result: Any, console: Console) -> None:
    """Tables, and notes as lines that are as much what was asked for."""
    show(console, result.tables)
    for line in result.notes:
        console.print(line, soft_wrap=True)


def show_facts(result: Any, console: Console) -> None:
    from counterfoil.cli.listings import print_facts

    if result.facts:
        facts = {name: f"{fact:,}" if isinstance(fact, int) else fact for name, fact in result.facts.items()}
        print_facts(console, facts)


def show_status(
    progress: "CampaignProgress",
    console: Console,
    *,
    by_person: Annotated[bool, Option("Add a line per person.")] = False,
) -> None:
    show_facts(progress, console)
    show(console, progress.tables if by_person else ())
