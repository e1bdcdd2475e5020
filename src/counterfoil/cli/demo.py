"""`counterfoil demo`: the whole way from pictures to a report, on a world that is drawn on the spot."""

from pathlib import Path
from typing import Annotated, Any

import typer

EPILOG = """Examples:

  counterfoil demo

  counterfoil demo --out my-demo --scenes 120 --seed 3"""

#: The scorers of the demo that need no model: what results call them, and their spec.
_PLAIN = (
    ("blind-random", "blind:random"),
    ("blind-length", "blind:length"),
    ("colour-reader", "pixels:colours"),
)


def command(
    out: Annotated[Path, typer.Option(help="Folder for the benchmark, the runs and the report.")] = Path(
        "demo-report"
    ),
    questions: Annotated[int, typer.Option(min=12, help="How many questions to draw.")] = 140,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same pictures, same numbers.")] = 0,
) -> None:
    """Draw a small benchmark, measure scorers that must fail in known ways, compare them, write a report.

    Nothing is downloaded. The last line is the path of the report.
    """
    from counterfoil.cli import terminal
    from counterfoil.cli.session import manifest
    from counterfoil.cli.tables import comparison_table
    from counterfoil.data.folder import save
    from counterfoil.engine.run import run as run_engine
    from counterfoil.evaluation.compare import compare
    from counterfoil.evaluation.evaluate import evaluate
    from counterfoil.evaluation.run import save_run
    from counterfoil.metrics.ties import Ties
    from counterfoil.report.page import page
    from counterfoil.store import write_text
    from counterfoil.world.sample import quads

    benchmark = quads(questions, seed=seed)
    save(benchmark, out / "benchmark")
    terminal.note(
        f"drew {len(benchmark)} questions with {len(benchmark.images)} pictures: {out / 'benchmark'}"
    )
    runs = []
    for name, scorer in _scorers(out, seed):
        with terminal.progress() as report:
            answers = run_engine(benchmark, scorer, progress=report, note=terminal.warn)
        facts = manifest(benchmark, scorer, images=None, device="cpu", batch_size=32, workers=0)
        provenance = {key: facts[key] for key in ("benchmark", "scorer", "versions")}
        # Half, because two of these scorers tie often, and a coin toss is what a tie is worth.
        result = evaluate(benchmark, answers, scorer=name, ties=Ties.HALF, seed=seed, provenance=provenance)
        runs.append(save_run(out / "runs" / name / benchmark.name, benchmark, answers, result, facts))
        terminal.note(f"measured {name}")
    comparisons = compare(runs, baseline="blind-random", seed=seed)
    console = terminal.out()
    console.print(comparison_table(comparisons[0], width=console.width))
    report_path = out / "report.html"
    write_text(report_path, page(comparisons, title="A small world, measured"))
    console.print(f"The report is in {report_path.resolve()}", soft_wrap=True)


def _scorers(out: Path, seed: int) -> list[tuple[str, Any]]:
    from counterfoil import catalog
    from counterfoil.cli import terminal
    from counterfoil.errors import MissingExtraError
    from counterfoil.scorers.base import Options

    options = Options(device="cpu", seed=seed)
    found = [(name, catalog.scorer(spec, options)) for name, spec in _PLAIN]
    try:
        from counterfoil.scorers.tiny import write_random_checkpoint

        found.append(
            (
                "untrained-encoder",
                catalog.scorer(write_random_checkpoint(out / "encoder", seed=seed), options),
            )
        )
    except MissingExtraError as error:
        terminal.warn(f"the untrained dual encoder is left out: {error}")
    return found
