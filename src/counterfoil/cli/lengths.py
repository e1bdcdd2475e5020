"""`counterfoil compare lengths`: what measures have to do with the lengths of captions."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from counterfoil import terminal
from counterfoil.inputs.options import Option
from counterfoil.jobs.arguments import OVERWRITE, RUNS
from counterfoil.jobs.job import job


@job(
    examples="""Examples:
  counterfoil compare lengths runs/clip/winoground
  counterfoil compare lengths runs/* --json lengths.json"""
)
def lengths(
    runs: Annotated[Sequence[Path], RUNS],
    *,
    data: Path | None = None,
    json: Annotated[str | None, Option("Write the machine-readable result here.", metavar="PATH|-")] = None,
    overwrite: Annotated[bool, OVERWRITE] = False,
) -> None:
    """Correlate a run's main measures with the length of the captions in words (Pearson).

    As in Table 6 of Winoground's paper, with intervals that account for shared images and captions. For rated
    captions, the score itself is correlated with the caption's length.

    Arguments:
        data: Data of Winoground, where its captions are not at hand: its tags hold lengths.
    """
    from counterfoil.cli import usage
    from counterfoil.cli.tables import printed
    from counterfoil.errors import InputError
    from counterfoil.evaluation.lengths import LengthCorrelation, length_correlations, mean_words
    from counterfoil.evaluation.run import find_runs
    from counterfoil.report.tables import Column, Table

    usage.check_outputs(json=json)
    loaded = [run for run in find_runs(runs) if not run.benchmark.questions.directed]
    if not loaded:
        raise InputError("galleries alone: their queries have no captions of their own", given=runs[0])
    correlations = [
        correlation
        for run in loaded
        for correlation in length_correlations(run, words=mean_words(run.benchmark, data))
    ]
    if json != "-":
        columns = [Column("measure", align="left"), Column("r"), Column("95 % interval"), Column("p")]
        by_benchmark: dict[str, list[LengthCorrelation]] = {}
        for correlation in correlations:
            by_benchmark.setdefault(correlation.benchmark, []).append(correlation)
        for benchmark, its in by_benchmark.items():
            rows = []
            for of in its:
                p = "<0.0001" if of.p < 1e-4 else f"{of.p:.4f}"
                numbers = (f"{of.value:+.2f}", f"[{of.low:+.2f}, {of.high:+.2f}]", p)
                varies = of.value == of.value
                rows.append((of.scorer, of.measure, *(numbers if varies else ("–", "does not vary", ""))))
            title = f"{benchmark}, {its[0].questions:,} questions, {its[0].words:.1f} words a caption"
            console = terminal.out()
            width = console.width
            for part in printed(Table.of(title, "scorer", columns, rows), width, names=width):
                console.print(part)
    if json is not None:
        terminal.write_result(json, [correlation.to_json() for correlation in correlations])
