"""`counterfoil compare`: runs side by side, with tests and a report."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from counterfoil.cli.options import Html, Json, Overwrite, Private, Runs, Seed, Signatures, Tables, Title
from counterfoil.inputs.amounts import most

EPILOG = """Examples:

  counterfoil compare runs/*

  counterfoil compare runs/* --baseline clip --html report.html

  counterfoil compare runs/* --latex table.tex --markdown table.md --json comparison.json"""


def command(
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
        Literal["auto", "wilson", "bootstrap", "crossed", "folds"] | None,
        typer.Option(
            help="How intervals are made, those of the runs too; by default theirs are kept, and those of "
            "differences are made as auto makes them."
        ),
    ] = None,
    draws: Annotated[
        int,
        typer.Option(min=100, max=most("draws"), help="Bootstrap draws; permutations are at least as many."),
    ] = 10_000,
    seed: Seed = 0,
    signatures: Signatures = False,
    private: Private = False,
    overwrite: Overwrite = False,
) -> None:
    """Compare runs question by question: intervals of the difference, paired permutation and McNemar, Holm.

    The same seed gives the same numbers, to the last bit.
    """
    from counterfoil.cli import paths, terminal
    from counterfoil.cli.tables import comparison_table, differences_table, resting_lines, signature_lines
    from counterfoil.report.tables import signature_of
    from counterfoil.tasks.compare import compare

    paths.check(html=html, **vars(tables), json=json)
    terminal.check_drawing(html)
    feedback = terminal.feedback()
    found = compare(runs, baseline=baseline, interval=interval, draws=draws, seed=seed, feedback=feedback)
    if html is not None and pictures != "never":
        required = pictures == "always" and data is not None
        found = found.with_images(data=data, images=images, required=required, feedback=feedback)
    console = terminal.err() if json == "-" else terminal.out()
    for comparison in found:
        console.print(comparison_table(comparison, width=console.width))
        differences = differences_table(comparison, width=console.width)
        if differences is not None:
            console.print(differences)
        console.print(resting_lines(comparison.runs[0].benchmark, [run.result for run in comparison.runs]))
        if signatures:
            names = dict.fromkeys(name for run in comparison.runs for name in run.result.measures)
            lines = (signature_of(comparison.runs, name) for name in names)
            console.print(signature_lines(*lines), soft_wrap=True)
    tables.write(found)
    if json is not None:
        results = found.to_json()
        terminal.write_result(json, results[0] if len(results) == 1 else results)
    if html is not None:
        found.to_html(html, title=title, pictures=pictures, private=private)
        terminal.note(f"report written to {html}")
