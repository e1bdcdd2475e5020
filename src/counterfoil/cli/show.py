"""Printing of results that are more than tables: a demo, drawings of the world, the numbers of papers."""

from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING

from rich.columns import Columns
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from counterfoil import terminal

if TYPE_CHECKING:
    from counterfoil.jobs.reproduce import Ledger
    from counterfoil.jobs.tour import ExampleFiles, Tour
    from counterfoil.jobs.world import Drawn
    from counterfoil.report.reproduction import Entry

#: Stands after the column of a number that follows from others printed in the same paper, or from arithmetic.
DERIVED_MARK = "†"


def show_demo(demo: "Tour | ExampleFiles", console: Console) -> None:
    """The comparison of the tour, how long it took, and last the path of its page; or the files."""
    from counterfoil.cli.tables import show
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


def show_ledger(ledger: "Ledger", console: Console) -> None:
    """Paper by paper a paragraph per row, then what differs and why, then counts; or the files looked for."""
    from counterfoil.cli.listings import print_words
    from counterfoil.jobs.reproduce import BASES
    from counterfoil.report.reproduction import Basis, Verdict, by_basis

    if ledger.files:
        rows = [(paper, name, place or "not there") for paper, name, place in ledger.files]
        print_words(console, ("paper", "file", "found"), rows)
        return
    for (_, title), of_paper in groupby(ledger.entries, key=lambda e: (e.paper, e.title)):
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
    differing = [e for e in ledger.entries if e.verdict is Verdict.DIFFERS]
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
    counts = by_basis(ledger.whole)
    console.print()
    for basis, label in BASES.items():
        of = counts[basis]
        label += f" ({DERIVED_MARK})" if basis is Basis.DERIVED else ""
        line = f"{label}: {of['same']:,} same, {of['differs']:,} differ, {of['unexplained']:,} unexplained"
        console.print(Text(line, style="bold"))
    console.print(Text(f"no data: {counts[Basis.NONE]['no data']:,}", style="bold"))
