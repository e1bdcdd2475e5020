"""`counterfoil lengths`: what measures have to do with the lengths of captions."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from counterfoil import terminal
from counterfoil.cli.options import Json, Overwrite, Runs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from counterfoil.evaluation.lengths import LengthCorrelation

LENGTHS_EPILOG = """Examples:
  counterfoil lengths runs/clip/winoground
  counterfoil lengths runs/* --json lengths.json"""


def lengths(
    runs: Runs,
    data: Annotated[
        Path | None,
        typer.Option(help="Data of Winoground, where its captions are not at hand: its tags hold lengths."),
    ] = None,
    json: Json = None,
    overwrite: Overwrite = False,
) -> None:
    """Pearson's correlation of a run's main measures with the length of the captions, in words.

    As in Table 6 of Winoground's paper, with intervals that know which questions share images and captions.
    Of captions that people rated, the score itself is correlated with the caption's length.
    """
    from counterfoil.cli import paths
    from counterfoil.errors import InputError
    from counterfoil.evaluation.lengths import length_correlations, mean_words
    from counterfoil.evaluation.run import find_runs

    paths.check(json=json)
    loaded = [run for run in find_runs(runs) if not run.benchmark.questions.directed]
    if not loaded:
        raise InputError("galleries alone: their queries have no captions of their own", given=runs[0])
    correlations = [
        correlation
        for run in loaded
        for correlation in length_correlations(run, words=mean_words(run.benchmark, data))
    ]
    if json != "-":
        _show_lengths(correlations)
    if json is not None:
        terminal.write_result(json, [correlation.to_json() for correlation in correlations])


def _show_lengths(correlations: "Sequence[LengthCorrelation]") -> None:
    from counterfoil.cli.tables import printed
    from counterfoil.report.tables import Column, text_table

    console = terminal.out()
    columns = [Column("measure", align="left"), Column("r"), Column("95 % interval"), Column("p")]
    for benchmark in dict.fromkeys(correlation.benchmark for correlation in correlations):
        its = [correlation for correlation in correlations if correlation.benchmark == benchmark]
        rows = []
        for correlation in its:
            numbers = ("–", "does not vary", "")
            if correlation.value == correlation.value:
                p = "<0.0001" if correlation.p < 1e-4 else f"{correlation.p:.4f}"
                numbers = (
                    f"{correlation.value:+.2f}",
                    f"[{correlation.low:+.2f}, {correlation.high:+.2f}]",
                    p,
                )
            rows.append((correlation.scorer, correlation.measure, *numbers))
        title = f"{benchmark}, {its[0].questions:,} questions, {its[0].words:.1f} words a caption"
        for part in printed(text_table(title, "scorer", columns, rows), console.width, names=console.width):
            console.print(part)
