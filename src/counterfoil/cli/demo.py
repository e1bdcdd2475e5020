"""`counterfoil demo`: the whole idea on a small world that is drawn on the spot."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.table import Table

    from counterfoil.data.benchmark import Benchmark
    from counterfoil.studies.demo import Study

EPILOG = """Examples:

  counterfoil demo

  counterfoil demo --full --out full-report      # a quarter of an hour: three seeds, noise, mining

  counterfoil demo --seed 3 --out another"""

#: What the summary shows of each model: the form, the measure, the column's head.
_COLUMNS = (
    ("quad", "i2t", "I2T"),
    ("quad", "t2i", "T2I"),
    ("quad", "group", "group"),
    ("choice", "accuracy", "choice"),
    ("gallery", "mean_map_at_r", "mAP@R"),
)
_MARKS = {"holds": "[green]✓[/green]", "does not hold": "[red]✗[/red]", "undecided": "[yellow]?[/yellow]"}


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

    Takes about three minutes on two cores, a quarter of an hour with --full; nothing is downloaded. A demo
    that was stopped goes on where it was. The last line is the path of the report.
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
    from counterfoil.studies.demo import study
    from counterfoil.studies.plan import FULL, SHORT
    from counterfoil.studies.writing import write

    plan = FULL if full else SHORT
    plan = replace(
        plan,
        seeds=tuple(seed + each for each in plan.seeds),
        dialled=tuple(seed + each for each in plan.dialled),
    )

    def facts(benchmark: "Benchmark", scorer: Any) -> dict[str, Any]:
        return manifest(benchmark, scorer, images=None, device="cpu", batch_size=256, workers=0)

    with terminal.progress() as report:
        made = study(plan, out, facts=facts, progress=report, note=terminal.note)
    path = write(made, out, seconds=perf_counter() - began)
    console = terminal.out()
    console.print(_summary(made))
    for each in made.findings:
        console.print(f"{_MARKS[each.verdict]} [bold]{each.claim}[/bold] {each.verdict.capitalize()}.")
        console.print(f"  [dim]{each.sentence}[/dim]")
    for sweep in made.sweeps:
        console.print(f"[bold]{sweep.question}[/bold]")
        console.print(f"  [dim]{sweep.sentence}[/dim]")
    console.print(f"The report is in {path.resolve()}", soft_wrap=True)


def _summary(made: "Study") -> "Table":
    from rich.table import Table

    table = Table(box=None, pad_edge=False, title=None, header_style="dim")
    table.add_column("model", no_wrap=True)
    for _, _, head in _COLUMNS:
        table.add_column(head, justify="right", no_wrap=True)
    rows: dict[str, dict[str, str]] = {}
    for comparison in made.comparisons:
        form = comparison.runs[0].benchmark.questions.form
        for run in comparison.runs:
            for of, measure, head in _COLUMNS:
                if of == form and measure in run.result.measures:
                    value = run.result.measures[measure].value
                    rows.setdefault(run.name, {})[head] = f"{100 * value:.1f}"
    for name, cells in rows.items():
        table.add_row(name, *(cells.get(head, "") for _, _, head in _COLUMNS))
    return table
