"""`counterfoil demo`: the whole idea on a small world that is drawn on the spot."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

    from counterfoil.data.benchmark import Benchmark
    from counterfoil.evaluation.result import Estimate
    from counterfoil.evaluation.studies.findings import Finding
    from counterfoil.studies.demo import Study

EPILOG = """Examples:

  counterfoil demo

  counterfoil demo --full --out full-report      # a quarter of an hour: three seeds, noise, mining

  counterfoil demo --seed 3 --out another"""

#: What the summary shows of each model: the benchmark, the measure, the column's head.
_COLUMNS = (
    ("world-quads", "i2t", "I2T"),
    ("world-quads", "t2i", "T2I"),
    ("world-quads", "group", "group"),
    ("world-quads-alike", "group", "alike"),
    ("world-choices", "accuracy", "choice"),
    ("world-gallery", "mean_map_at_r", "mAP@R"),
)
_MARKS = {"holds": "[green]✓[/green]", "does not hold": "[red]✗[/red]", "undecided": "[yellow]?[/yellow]"}
#: Columns of a terminal from which the summary has room for intervals, and the most that words run over.
_ROOMY, _LINE = 110, 100


def command(
    out: Annotated[Path, typer.Option(help="Folder for the networks, the runs and the report.")] = Path(
        "demo-report"
    ),
    full: Annotated[
        bool, typer.Option("--full", help="Three seeds per model, the noise study and the mining study.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="The first seed of the networks.")] = 0,
) -> None:
    """Build a world, train four models on it, measure them in both directions, and say what held.

    Takes about three minutes on two cores, a quarter of an hour with --full; nothing is downloaded.
    A demo that was stopped goes on where it was; one with another seed or plan begins anew in the same
    folder. The last line is the path of the report.
    """
    from dataclasses import replace
    from time import perf_counter

    from counterfoil.cli import terminal
    from counterfoil.cli.session import manifest
    from counterfoil.errors import MissingExtraError
    from counterfoil.store import check_writable

    began = perf_counter()
    check_writable(out, folder=True)
    for library in ("torch", "lightning_fabric", "safetensors"):
        try:
            __import__(library)
        except ModuleNotFoundError:
            raise MissingExtraError(library, "train") from None
    from counterfoil.studies import plan as plans
    from counterfoil.studies.demo import study
    from counterfoil.studies.writing import write

    plan = plans.FULL if full else plans.SHORT
    plan = replace(
        plan,
        seeds=tuple(seed + each for each in plan.seeds),
        dialled=tuple(seed + each for each in plan.dialled),
    )

    def facts(benchmark: "Benchmark", scorer: Any) -> dict[str, Any]:
        return manifest(benchmark, scorer, images=None, device="cpu", batch_size=256, workers=0)

    with terminal.progress() as report:
        made = study(plan, out, facts=facts, progress=report, note=terminal.note)
    with terminal.busy("writing the report"):
        path = write(made, out, seconds=perf_counter() - began)
    show(made, terminal.out())
    terminal.out().print(f"The report is in {path.resolve()}", soft_wrap=True)


def show(made: "Study", console: "Console") -> None:
    """The end of a demo: a table of the models, then what was asked and what came of it."""
    from counterfoil.report.study.captions import known

    seeds = made.plan.seeds
    console.print()
    console.print(_summary(made, intervals=console.width >= _ROOMY))
    about = "In per cent" + (", with 95 % intervals" if console.width >= _ROOMY else "")
    about += f"; networks of seed {seeds[0]}. Alike: group where both pictures are drawn in one style."
    if len(seeds) > 1:
        about += f" What follows is over seeds {', '.join(map(str, seeds))}."
    width = min(console.width, _LINE)
    console.print(f"[dim]{about}[/dim]", width=width)
    said = [_found(each) for each in made.findings]
    if made.order is not None:
        said.append(("•", "The trainings in order.", made.order.sentence))
    said += [("•", sweep.question, sweep.sentence) for sweep in made.sweeps]
    said += [("•", "Caption metrics.", known(made.captions.comparisons))]
    said += [_found(each) for each in made.captions.findings]
    console.print()
    for mark, head, words in said:
        console.print(_hanging(mark, f"[bold]{head}[/bold]\n[dim]{words}[/dim]"), width=width)
    console.print()


def _found(finding: "Finding") -> tuple[str, str, str]:
    """A finding's mark, its claim, and what came of it."""
    said = f"{finding.verdict.capitalize()} in this run. {finding.sentence}"
    return _MARKS[finding.verdict], finding.claim, said


def _hanging(mark: str, words: str) -> "RenderableType":
    """Words beside a mark, every line of them as far in as the first."""
    from rich.table import Table

    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(width=1)
    grid.add_column(overflow="fold")
    grid.add_row(mark, words)
    return grid


def _summary(made: "Study", *, intervals: bool) -> "Table":
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column("model", no_wrap=True)
    for _, _, head in _COLUMNS:
        table.add_column(head, justify="right", no_wrap=True)
    rows: dict[str, dict[str, str]] = {}
    chance: dict[str, str] = {}
    for comparison in made.comparisons:
        for run in comparison.runs:
            for of, measure, head in _COLUMNS:
                if of == comparison.benchmark and measure in run.result.measures:
                    found = run.result.measures[measure]
                    rows.setdefault(run.name, {})[head] = _said(found, intervals)
                    if found.chance is not None:
                        chance[head] = f"{100 * found.chance:.1f}" + (" " * len(_span(found)) * intervals)
    table.add_row("chance", *(chance.get(head, "") for _, _, head in _COLUMNS), style="dim")
    for name, cells in rows.items():
        table.add_row(name, *(cells.get(head, "") for _, _, head in _COLUMNS))
    return table


def _said(found: "Estimate", intervals: bool) -> str:
    value = f"{100 * found.value:.1f}"
    return f"{value}[dim]{_span(found)}[/dim]" if intervals else value


def _span(found: "Estimate") -> str:
    return f" {100 * found.low:4.1f} to {100 * found.high:4.1f}"
