"""`counterfoil publish`: a benchmark for others, as a folder or on the hub."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from counterfoil.cli import options, usage
from counterfoil.cli.options import Available, Json, Overwrite, Seed

EPILOG = """Examples:
  counterfoil publish sets/mine --to folder:release --licence CC-BY-4.0
  counterfoil publish pairs --data my.csv --images photos/ --to folder:release --licence CC-BY-4.0 --split 0.2
  counterfoil publish sets/mine --to hub:ann/mine --licence CC-BY-4.0 --execute"""


@dataclass(frozen=True)
class DataSetFacts:
    """Facts that the card and the Croissant file state."""

    creator: Annotated[
        list[str] | None,
        typer.Option(
            help="Who made it; may be repeated. Default: the citation's authors.", rich_help_panel="Facts"
        ),
    ] = None
    date: Annotated[
        str,
        typer.Option(
            metavar="YYYY-MM-DD",
            help="When it is published. Default: the first day of the citation's year, else 1970-01-01.",
            rich_help_panel="Facts",
        ),
    ] = ""
    release: Annotated[
        str, typer.Option(metavar="X.Y.Z", help="Version of the data set.", rich_help_panel="Facts")
    ] = "1.0.0"
    language: Annotated[
        str,
        typer.Option(metavar="CODE", help="Language of the captions, such as en.", rich_help_panel="Facts"),
    ] = ""
    url: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Page of the data set.", rich_help_panel="Facts")
    ] = ""
    provenance: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="JSON: method, steps, people, sources, limits, uses, rows (a table of who made what).",
            rich_help_panel="Facts",
        ),
    ] = None
    campaign: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FOLDER",
            help="A campaign whose people's answers went in: its data sheet is stated. May be repeated.",
            rich_help_panel="Facts",
        ),
    ] = None


@usage.panels(Data="data images available no_counts split seed", Results="json quiet")
def command(
    benchmark: Annotated[
        str,
        typer.Argument(
            metavar="FOLDER|NAME",
            help="A benchmark's folder, or its name (see 'counterfoil list benchmarks').",
            autocompletion=options.complete_benchmarks,
        ),
    ],
    to: Annotated[str, typer.Option(metavar="folder:OUT|hub:OWNER/NAME", help="Where it is published.")],
    licence: Annotated[
        str,
        typer.Option(
            metavar="SPDX|ADDRESS", help="Its licence, such as CC-BY-4.0. Default: what its card states."
        ),
    ] = "",
    execute: Annotated[
        bool, typer.Option("--execute", help="Upload to the hub; without it, what would be is printed.")
    ] = False,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Publish although a licence forbids it; the card says so.")
    ] = False,
    private: Annotated[
        bool, typer.Option("--private", help="Make a repository on the hub that others do not see.")
    ] = False,
    data: Annotated[Path | None, typer.Option(help="File or folder of the benchmark.")] = None,
    images: Annotated[
        Path | None, typer.Option(help="Folder of the images, where the data name files.")
    ] = None,
    available: Available = False,
    no_counts: Annotated[
        bool, typer.Option("--no-counts", help="Data may hold another number of questions than the release.")
    ] = False,
    split: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Share of the questions in the split 'test', such as 0.2; no image is in two splits.",
        ),
    ] = None,
    seed: Seed = 0,
    facts: DataSetFacts = DataSetFacts(),
    json: Json = None,
    overwrite: Overwrite = False,
) -> None:
    """Publish a benchmark: Parquet that 'datasets' reads, a card, Croissant, checksums, and our own format.

    What was published is measured like the benchmark: 'counterfoil evaluate SCORER OUT'. Equal benchmarks
    give equal bytes.
    """
    from counterfoil.catalog import benchmarks as known_benchmarks
    from counterfoil.cli import paths, terminal
    from counterfoil.cli.tables import show_result
    from counterfoil.jobs.publish import PublishOptions, publish

    if benchmark in known_benchmarks():
        paths.not_read(benchmark)
    paths.check(json=json)
    published = publish(
        benchmark,
        to,
        PublishOptions(
            data=data,
            images=images,
            counts=not no_counts,
            available=available,
            licence=licence,
            anyway=anyway,
            split=split,
            seed=seed,
            execute=execute,
            private=private,
            creators=facts.creator or (),
            date=facts.date,
            release=facts.release,
            language=facts.language,
            url=facts.url,
            provenance=facts.provenance,
            campaigns=tuple(facts.campaign or ()),
            overwrite=overwrite,
        ),
        feedback=terminal.feedback(),
    )
    show_result(published, json)
