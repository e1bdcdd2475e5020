"""`counterfoil demo`: a tour of all verbs, or the study of four trainings, on a small world."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from counterfoil.cli.options import Overwrite
from counterfoil.errors import InputError
from counterfoil.inputs.limits import most

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table
    from rich.text import Text

    from counterfoil.evaluation.findings import Finding
    from counterfoil.evaluation.result import Estimate
    from counterfoil.studies.demo import Study

EPILOG = """Examples:
  counterfoil demo
  counterfoil demo --seed 3 --out another
  counterfoil demo --files first                 # small files to try every command on, as README does
  counterfoil demo --full                        # which of BiVLC's findings hold: some minutes
  counterfoil demo --full --dials --out hours    # three seeds, noise, mining"""

#: What the summary shows of each model: the benchmark, the measure, the column's head.
_COLUMNS = (
    ("world-quads-alike", "i2t", "I2T"),
    ("world-quads-alike", "t2i", "T2I"),
    ("world-quads-alike", "group", "group"),
    ("world-quads", "group", "mixed"),
    ("world-choices", "accuracy", "choice"),
    ("world-gallery", "mean_map_at_r", "mAP@R"),
)
_MARKS = {"holds": ("✓", "green"), "does not hold": ("✗", "red"), "undecided": ("?", "yellow")}
_POINT = ("•", "")
#: Columns of a terminal from which the summary has room for intervals, and the most that words run over.
_ROOMY, _LINE = 110, 100


def command(
    out: Annotated[
        Path | None,
        typer.Option(help="The folder.", show_default="demo-report; with --full study-report"),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="The study of four trainings, which takes some minutes.")
    ] = False,
    dials: Annotated[
        bool,
        typer.Option(
            "--dials",
            help="With --full: three seeds, what noise costs, which negatives to count; takes hours.",
        ),
    ] = False,
    seed: Annotated[int, typer.Option(min=0, max=most("seed"), help="The first seed of the networks.")] = 0,
    files: Annotated[
        Path | None,
        typer.Option(help="Only write small files of every kind that commands read into this folder."),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Go through measuring, building, asking, explaining and comparing on a small drawn world, in a minute.

    The page has a picture, what follows from it and the commands of each; the files of all stay in the
    folder, where the commands run as they are printed. Nothing is downloaded. The first line says how long
    it takes here, the last one is the path of the page. --full trains four networks instead and says which
    of BiVLC's findings hold. A demo that was stopped goes on where it was.
    """
    if files is not None:
        from counterfoil import terminal
        from counterfoil.studies.example_files import write_example_files

        terminal.out().print(f"{files}: {', '.join(write_example_files(files, seed=seed))}", soft_wrap=True)
        return
    if dials and not full:
        raise InputError("--dials is of the study", hint="add --full")
    if full:
        _study(Path("study-report") if out is None else out, dials, seed)
    else:
        _tour(Path("demo-report") if out is None else out, seed, overwrite)


def _tour(out: Path, seed: int, overwrite: bool) -> None:
    from counterfoil import terminal
    from counterfoil.cli.tables import show as show_tables
    from counterfoil.jobs.feedback import terminal_feedback
    from counterfoil.jobs.tour import tour

    finished = tour(out, seed=seed, overwrite=overwrite, feedback=terminal_feedback())
    show_tables(terminal.out(), finished.comparison.tables)
    terminal.note(f"{finished.whole:.0f} s in all, {finished.processor:.0f} s of processor time")
    terminal.out().print(f"The page is in {finished.path.resolve()}", soft_wrap=True)


def _study(out: Path, dials: bool, seed: int) -> None:
    from time import process_time

    from counterfoil import terminal
    from counterfoil.jobs.feedback import terminal_feedback
    from counterfoil.jobs.study import study

    worked = process_time()
    report = study(out, full=dials, seed=seed, feedback=terminal_feedback())
    show(report.study, terminal.out())
    parts = {**report.study.seconds, "the report": report.seconds - sum(report.study.seconds.values())}
    spent = ", ".join(f"{what} {seconds:.0f} s" for what, seconds in parts.items())
    terminal.note(
        f"{report.seconds:.0f} s in all: {spent} ({process_time() - worked:.0f} s of processor time)"
    )
    terminal.out().print(f"The report is in {report.path.resolve()}", soft_wrap=True)


def show(study: "Study", console: "Console") -> None:
    """The end of a demo: a table of the models, then each finding and its verdict."""
    from rich.text import Text

    from counterfoil.report.study_page import known

    seeds = study.plan.seeds
    console.print()
    console.print(_summary(study, intervals=console.width >= _ROOMY))
    about = "In per cent" + (", with 95 % intervals" if console.width >= _ROOMY else "")
    about += f"; networks of seed {seeds[0]}. Both pictures in one style; "
    about += "mixed: group where the second picture is synthetic."
    if len(seeds) > 1:
        about += f" What follows is over seeds {', '.join(map(str, seeds))}."
    width = min(console.width, _LINE)
    console.print(Text(about, style="dim"), width=width)
    sentences = [_found(finding) for finding in study.findings]
    if study.order is not None:
        sentences.append((_POINT, "The trainings in order.", study.order.sentence))
    sentences += [(_POINT, sweep.question, sweep.sentence) for sweep in study.sweeps]
    sentences += [(_POINT, "Caption metrics.", known(study.captions.comparisons))]
    sentences += [_found(finding) for finding in study.captions.findings]
    console.print()
    for mark, head, words in sentences:
        beside = Text.assemble((head, "bold"), "\n", (words, "dim"))
        console.print(_hanging(Text(*mark), beside), width=width)
    console.print()


def _found(finding: "Finding") -> tuple[tuple[str, str], str, str]:
    """A finding's mark, its claim and its verdict."""
    sentence = f"{finding.verdict.capitalize()} in this run. {finding.sentence}"
    return _MARKS[finding.verdict], finding.claim, sentence


def _hanging(mark: "Text", words: "Text") -> "RenderableType":
    """Words beside a mark, every line of them as far in as the first."""
    from rich.table import Table

    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(width=1)
    grid.add_column(overflow="fold")
    grid.add_row(mark, words)
    return grid


def _summary(study: "Study", *, intervals: bool) -> "Table":
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column("model", no_wrap=True)
    for _, _, head in _COLUMNS:
        table.add_column(head, justify="right", no_wrap=True)
    rows: dict[str, dict[str, "Text"]] = {}
    chance: dict[str, str] = {}
    for comparison in study.comparisons:
        for run in comparison.runs:
            for of, measure, head in _COLUMNS:
                if of == comparison.benchmark and measure in run.result.measures:
                    estimate = run.result.measures[measure]
                    rows.setdefault(run.name, {})[head] = Text.assemble(
                        f"{100 * estimate.value:.1f}", (_span(estimate) if intervals else "", "dim")
                    )
                    if estimate.chance is not None:
                        chance[head] = f"{100 * estimate.chance:.1f}" + (
                            " " * len(_span(estimate)) * intervals
                        )
    table.add_row("chance", *(chance.get(head, "") for _, _, head in _COLUMNS), style="dim")
    for name, cells in rows.items():
        table.add_row(name, *(cells.get(head, "") for _, _, head in _COLUMNS))
    return table


def _span(estimate: "Estimate") -> str:
    return f" {100 * estimate.low:4.1f} to {100 * estimate.high:4.1f}"
