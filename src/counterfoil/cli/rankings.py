"""`counterfoil rankings`: do measures and benchmarks agree on the order of models?"""

from pathlib import Path
from typing import Annotated

import typer

from counterfoil.cli.options import Draws, Html, Json, Overwrite, Private, Seed, Title
from counterfoil.inputs.amounts import most

EPILOG = """Examples:

  counterfoil rankings runs/*

  counterfoil rankings runs/* --measure coco-5k:mean_recall_at_1 --measure eccv:mean_map_at_r

  counterfoil rankings runs/* --measure "mean_*" --html rankings.html --json rankings.json

A measure may be named with its benchmark (eccv:mean_map_at_r), without (mean_map_at_r), without the direction
(map_at_r, the mean over both), or as a pattern ("eccv:*")."""


def command(
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
    from counterfoil.cli.terminal_tables import correlation_tables, diversity_tables, rank_tables
    from counterfoil.store import write_text
    from counterfoil.tasks.rankings import rank

    paths.check(html=html, json=json, csv=csv)
    terminal.check_drawing(html)
    found = rank(runs, measures=measure or (), k=k, draws=draws, seed=seed, feedback=terminal.feedback())
    console = terminal.err() if json == "-" else terminal.out()
    shown = [
        correlation_tables(found.correlation, width=console.width),
        rank_tables(found.correlation, width=console.width),
        *(diversity_tables(one, width=console.width) for one in found.lists),
    ]
    for number, parts in enumerate(shown):
        if number:
            console.print()
        for part in parts:
            console.print(part)
    for note in found.notes:
        terminal.note(note)
    if json is not None:
        terminal.write_result(json, found.to_json())
    if csv is not None:
        write_text(csv, found.to_csv())
    if html is not None:
        found.to_html(html, title=title, private=private)
        terminal.note(f"page written to {html}")
