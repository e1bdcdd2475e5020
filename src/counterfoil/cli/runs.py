"""`counterfoil compare | rankings | lengths`: runs side by side, orders of models, lengths of captions."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from counterfoil import terminal
from counterfoil.cli.options import (
    Json,
    Overwrite,
    Runs,
)
from counterfoil.inputs.options import Option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from counterfoil.evaluation.lengths import LengthCorrelation
    from counterfoil.jobs.compare import ModelRankings, RunComparison
    from counterfoil.jobs.results import EvaluationRun

SIGNATURES = Option(
    "Also a line per measure of all that its numbers depend on, to be cited with them.",
    False,
    panel="Results",
)


def show_run(
    run: "EvaluationRun", console: "Console", *, signatures: Annotated[bool, SIGNATURES] = False
) -> None:
    """The measures with their intervals, those of groups, and what the numbers rest on."""
    from counterfoil.cli.tables import groups_table, measures_table, resting_lines, signature_lines
    from counterfoil.report.notes import ties_line

    result, benchmark = run.result, run.benchmark
    console.print(measures_table(result, benchmark, width=console.width))
    groups = groups_table(result, benchmark, width=console.width)
    if groups is not None:
        console.print(groups)
    console.print(resting_lines(benchmark, [result]))
    console.print(ties_line(result, benchmark), style="dim")
    if signatures:
        console.print(signature_lines(*map(result.signature, result.measures)), soft_wrap=True)


def show_comparison(
    compared: "RunComparison", console: "Console", *, signatures: Annotated[bool, SIGNATURES] = False
) -> None:
    """The measures, the differences, and what the numbers rest on, of each benchmark."""
    from counterfoil.cli.tables import comparison_table, differences_table, resting_lines, signature_lines
    from counterfoil.report.comparison_tables import signature_of

    for comparison in compared:
        console.print(comparison_table(comparison, width=console.width))
        differences = differences_table(comparison, width=console.width)
        if differences is not None:
            console.print(differences)
        console.print(resting_lines(comparison.runs[0].benchmark, [run.result for run in comparison.runs]))
        if signatures:
            names = dict.fromkeys(name for run in comparison.runs for name in run.result.measures)
            lines = (signature_of(comparison.runs, name) for name in names)
            console.print(signature_lines(*lines), soft_wrap=True)


def show_rankings(ranked: "ModelRankings", console: "Console") -> None:
    """Correlations of measures, ranks of models, and how far their first items agree."""
    from counterfoil.cli.tables import correlation_tables, diversity_tables, rank_tables

    shown = [
        correlation_tables(ranked.correlation, width=console.width),
        rank_tables(ranked.correlation, width=console.width),
        *(diversity_tables(one, width=console.width) for one in ranked.lists),
    ]
    for number, parts in enumerate(shown):
        if number:
            console.print()
        for part in parts:
            console.print(part)
    for note in ranked.notes:
        terminal.note(note)


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
    from counterfoil import terminal
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
    from counterfoil import terminal
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
