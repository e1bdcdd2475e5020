"""`counterfoil audit`: can the questions of benchmarks be answered without looking?"""

from typing import Annotated

import typer

from counterfoil.cli import options, usage
from counterfoil.cli.options import (
    Device,
    Draws,
    Html,
    Json,
    Overwrite,
    Precision,
    Seed,
    Title,
    WorkOptions,
    key_values,
)

EPILOG = """Examples:
  counterfoil audit sugarcrepe --data sugar-crepe/data --html audit.html
  counterfoil audit pairs --data mine.csv --against train.csv --json audit.json
  counterfoil audit sugarcrepe winoground --data sets/ --scorer lm:gpt2
  counterfoil audit valse --data valse/ --scorer text-classifier:textattack/distilbert-base-uncased-CoLA

A scorer of --scorer stands beside the blind ones; those that look at images need them at hand."""


@usage.panels(
    Data="data images limit no_counts against no_pictures",
    Results="html title json quiet",
    Statistics="level draws seed",
    Model="scorer settings",
)
def command(
    benchmarks: options.Benchmarks,
    data: options.BenchmarkData = None,
    images: options.BenchmarkImages = None,
    scorer: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SCORER",
            help="A scorer beside the blind ones, such as lm:gpt2; may be repeated.",
            autocompletion=options.complete_scorers,
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A setting of the named scorers; may be repeated."),
    ] = None,
    against: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TABLE|BENCHMARK",
            help="Captions that should not be shared: a training table (CSV, TSV, JSON, JSON Lines, Parquet, "
            "a caption per line in .txt), or another benchmark; may be repeated.",
        ),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Only so many questions, evenly spread over the benchmark.")
    ] = None,
    no_counts: Annotated[
        bool, typer.Option("--no-counts", help="Data may hold another number of questions than the release.")
    ] = False,
    no_pictures: Annotated[
        bool, typer.Option("--no-pictures", help="Look for no duplicates among images.")
    ] = False,
    level: Annotated[
        float,
        typer.Option(min=0.0001, max=0.5, help="Chance of naming any word where there is no artefact."),
    ] = 0.05,
    draws: Draws = 2000,
    seed: Seed = 0,
    device: Device = "auto",
    precision: Precision = "fp32",
    html: Html = None,
    title: Title = "What captions give away",
    json: Json = None,
    work: WorkOptions = WorkOptions(),
    overwrite: Overwrite = False,
) -> None:
    """Can the questions be answered without looking? Blind scorers, giveaway words, duplicates, leakage.

    Every number has its interval and chance; ties count one half. What is learned about a question comes from
    questions that share no image or caption with it.
    """
    from counterfoil import terminal
    from counterfoil.benchmarks.data_paths import Places
    from counterfoil.catalog import benchmarks as known_benchmarks
    from counterfoil.cli import paths
    from counterfoil.cli.tables import show_with_json
    from counterfoil.jobs.audit import AuditOptions, audit
    from counterfoil.jobs.feedback import terminal_feedback
    from counterfoil.models.base import Options

    paths.not_read(*(name for name in (*benchmarks, *(against or ())) if name in known_benchmarks()))
    paths.check(html=html, json=json)
    audited = audit(
        benchmarks,
        AuditOptions(
            data=Places.read(data or (), (*benchmarks, *(against or ()))),
            images=Places.read(images or (), benchmarks, option="--images"),
            scorers=scorer or (),
            options=Options(
                device=device, precision=precision, seed=seed, settings=key_values(settings or ())
            ),
            against=against or (),
            limit=limit,
            counts=not no_counts,
            level=level,
            pictures=not no_pictures,
            draws=draws,
            seed=seed,
            **work.asked(),
        ),
        feedback=terminal_feedback(),
    )
    show_with_json(audited, json)
    if html is not None:
        audited.to_html(html, title=title)
        terminal.note(f"page written to {html}")
