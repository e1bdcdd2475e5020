"""`counterfoil compare | rankings | lengths`: runs side by side, orders of models, lengths of captions."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from counterfoil.cli.options import (
    Draws,
    Html,
    Json,
    Overwrite,
    Private,
    Runs,
    Seed,
    Signatures,
    Tables,
    Title,
)
from counterfoil.inputs.limits import most

if TYPE_CHECKING:
    from collections.abc import Sequence

    from counterfoil.evaluation.lengths import LengthCorrelation

COMPARE_EPILOG = """Examples:
  counterfoil compare runs/*
  counterfoil compare runs/* --baseline clip --html report.html
  counterfoil compare runs/people runs/clip --shared
  counterfoil compare runs/* --latex table.tex --markdown table.md --json comparison.json"""


def compare(
    runs: Runs,
    baseline: Annotated[str | None, typer.Option(help="Compare every other run with this one.")] = None,
    html: Html = None,
    tables: Tables = Tables(),
    json: Json = None,
    title: Title = "counterfoil report",
    pictures: Annotated[
        Literal["auto", "always", "never"],
        typer.Option(help="Images on the page: auto asks the benchmark's licence."),
    ] = "auto",
    data: Annotated[
        Path | None, typer.Option(help="Where the benchmark's images are, if not where they were.")
    ] = None,
    images: Annotated[
        Path | None, typer.Option(help="Folder of the images, where the data name files.")
    ] = None,
    interval: Annotated[
        Literal["auto", "wilson", "clusters", "crossed", "folds"] | None,
        typer.Option(
            help="How intervals are made, those of the runs too; by default theirs are kept, and those of "
            "differences are made as auto makes them."
        ),
    ] = None,
    ties: Annotated[
        Literal["strict", "half", "optimistic"] | None,
        typer.Option(help="Count ties anew, in all runs; by default as each run counted them."),
    ] = None,
    shared: Annotated[
        bool,
        typer.Option(
            "--shared", help="Compare over the questions that all runs answer: people beside models."
        ),
    ] = False,
    draws: Draws = 10_000,
    seed: Seed = 0,
    signatures: Signatures = False,
    private: Private = False,
    overwrite: Overwrite = False,
) -> None:
    """Compare runs question by question: intervals of the difference, their p-values, McNemar, Holm.

    The same seed gives the same numbers, to the last bit.
    """
    from counterfoil.cli import paths, terminal
    from counterfoil.cli.tables import comparison_table, differences_table, resting_lines, signature_lines
    from counterfoil.jobs.compare import compare
    from counterfoil.report.comparison_tables import signature_of

    paths.check(html=html, **vars(tables), json=json)
    terminal.check_drawing(html)
    feedback = terminal.feedback()
    compared = compare(
        runs,
        baseline=baseline,
        interval=interval,
        ties=ties,
        shared=shared,
        draws=draws,
        seed=seed,
        feedback=feedback,
    )
    if html is not None and pictures != "never":
        required = pictures == "always" and data is not None
        compared = compared.with_images(data=data, images=images, required=required, feedback=feedback)
    console = terminal.beside(json)
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
    tables.write(compared)
    if json is not None:
        results = compared.to_json()
        terminal.write_result(json, results[0] if len(results) == 1 else results)
    if html is not None:
        compared.to_html(html, title=title, pictures=pictures, private=private)
        terminal.note(f"report written to {html}")


RANKINGS_EPILOG = """Examples:
  counterfoil rankings runs/*
  counterfoil rankings runs/* --measure coco-5k:mean_recall_at_1 --measure eccv:mean_map_at_r
  counterfoil rankings runs/* --measure "mean_*" --html rankings.html --json rankings.json

A measure may be named with its benchmark (eccv:mean_map_at_r), without (mean_map_at_r), without the direction
(map_at_r, the mean over both), or as a pattern ("eccv:*")."""


def rankings(
    runs: Annotated[
        list[Path], typer.Argument(help="Run folders, or folders of them; three models or more.")
    ],
    measure: Annotated[
        list[str] | None, typer.Option(help="Only this measure, or pattern of them; may be repeated.")
    ] = None,
    k: Annotated[
        int,
        typer.Option("--k", min=2, max=most("k"), help="How many first items of each query are compared."),
    ] = 25,
    draws: Draws = 1000,
    seed: Seed = 0,
    html: Html = None,
    json: Json = None,
    csv: Annotated[Path | None, typer.Option(help="Write all numbers as CSV here, one a line.")] = None,
    title: Title = "What rankings say",
    private: Private = False,
    overwrite: Overwrite = False,
) -> None:
    """Do measures and benchmarks put models in the same order, and how different are the models' lists?

    Kendall's tau-b and Spearman's correlation between measures, with intervals from models and queries drawn
    anew; the rank of every model; for galleries, how far the models' first items agree. The same seed gives
    the same numbers, to the last bit.
    """
    from counterfoil.cli import paths, terminal
    from counterfoil.cli.tables import correlation_tables, diversity_tables, rank_tables
    from counterfoil.jobs.compare import rank
    from counterfoil.store import write_text

    paths.check(html=html, json=json, csv=csv)
    terminal.check_drawing(html)
    ranked = rank(runs, measures=measure or (), k=k, draws=draws, seed=seed, feedback=terminal.feedback())
    console = terminal.beside(json)
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
    if json is not None:
        terminal.write_result(json, ranked.to_json())
    if csv is not None:
        write_text(csv, ranked.to_csv())
    if html is not None:
        ranked.to_html(html, title=title, private=private)
        terminal.note(f"page written to {html}")


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
    from counterfoil.cli import paths, terminal
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
    from counterfoil.cli import terminal
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
