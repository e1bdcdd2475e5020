"""`counterfoil captions score | systems`: how good captions are, by metrics of the field."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from counterfoil.cli import completion
from counterfoil.cli.options import (
    BatchSize,
    CacheFolder,
    Device,
    NoCache,
    Overwrite,
    Precision,
    Workers,
    key_values,
)
from counterfoil.inputs.amounts import most

app = typer.Typer(
    help="How good captions are, for images or videos, with or without references.",
    no_args_is_help=True,
    epilog="Example: counterfoil captions score --metrics bleu,cider --candidates c.json --references r.json",
)

Metrics = Annotated[
    str,
    typer.Option(
        help="Names with commas between (see 'counterfoil list metrics'); bleu is bleu-1 to 4.",
        autocompletion=completion.metrics,
    ),
]
Images = Annotated[Path | None, typer.Option(help="Folder of the images; ids are names of its files.")]
Videos = Annotated[
    Path | None, typer.Option(help="Folder of the videos, of folders of frames, or of features of frames.")
]
Frames = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=most("frames"),
        help="So many frames of each video, evenly spaced.",
    ),
]
Rate = Annotated[float | None, typer.Option(help="So many frames of each video per second.")]
Policy = Annotated[
    Literal["keep", "drop-reference", "drop-item"] | None,
    typer.Option(
        "--references-contain",
        help="What becomes of a reference that is the candidate itself: it stays, it goes, or the item goes.",
    ),
]
Behind = Annotated[
    str | None,
    typer.Option(
        "--scorer",
        metavar="SCORER",
        help="The model behind metrics that look, such as open-clip:ARCH/PRETRAINED or embeddings:PATH.",
        rich_help_panel="Model",
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="[METRIC.]KEY=VALUE",
        help="What metrics do otherwise than officially; may be repeated.",
        rich_help_panel="Model",
    ),
]
Json = Annotated[str | None, typer.Option(metavar="PATH|-", help="Write the machine-readable result here.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No notes and no progress.")]

SCORE_EPILOG = """Examples:

  counterfoil captions score --metrics bleu,rouge-l,cider --candidates c.json --references r.json

  counterfoil captions score --metrics clip-s --images photos/ --candidates c.json --scorer hf:./clip

  counterfoil captions score --metrics em-score --videos clips/ --candidates c.json --scorer hf:./clip

  counterfoil captions score --metrics cider --candidates samples.jsonl --references r.json --per-image best

c.json is {"ID": "caption"} or [{"image_id": ID, "caption": "..."}], r.json {"ID": ["caption", ...]} or COCO's
annotations; a table has columns image_id and caption. An ID is the name of a file, with or without its
ending, or COCO's number. An image may have several candidates: a list of them, or several entries or rows."""


@app.command(epilog=SCORE_EPILOG)
def score(
    metrics: Metrics,
    candidates: Annotated[
        Path, typer.Option(help="The captions to score, one or more per image: JSON, CSV or Parquet.")
    ],
    references: Annotated[
        Path | None, typer.Option(help="Captions that people wrote: JSON, CSV or Parquet.")
    ] = None,
    images: Images = None,
    videos: Videos = None,
    frames: Frames = None,
    rate: Rate = None,
    references_contain: Policy = None,
    empty: Annotated[
        Literal["refuse", "leave-out"],
        typer.Option(help="What becomes of a candidate that is empty: an error, or left out."),
    ] = "refuse",
    per_image: Annotated[
        Literal["mean", "best"],
        typer.Option(help="What an image of several candidates counts: their mean, or the best (oracle)."),
    ] = "mean",
    out: Annotated[
        Path | None, typer.Option(help="Write the score of every caption here (.csv, .json, .parquet).")
    ] = None,
    json: Json = None,
    scorer: Behind = None,
    settings: Settings = None,
    device: Device = "auto",
    precision: Precision = "fp32",
    batch_size: BatchSize = 32,
    workers: Workers = None,
    cache: CacheFolder = None,
    no_cache: NoCache = False,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Score captions by metrics: a value for all of them, and one for each.

    Of several candidates per image each gets a score; values and intervals are over images. Embeddings are
    kept in the cache, so a run that was stopped goes on where it was.
    """
    from counterfoil.cli import paths, terminal, terminal_tables
    from counterfoil.cli.paths import cache_folder
    from counterfoil.data.decoding import Sampling
    from counterfoil.report.labels import amount
    from counterfoil.scorers.base import Options
    from counterfoil.tasks.caption_inputs import MediaFolder
    from counterfoil.tasks.caption_values import check_kind, n_images
    from counterfoil.tasks.captions import MetricRequest, score_captions

    paths.check(table=out, json=json)
    check_kind(out)
    feedback = terminal.feedback(quiet=quiet)
    found = score_captions(
        candidates,
        MetricRequest.of(
            metrics,
            Options(
                device=device,
                precision=precision,
                backbone=scorer or "",
                settings=key_values(settings or ()),
            ),
            cache=None if no_cache else cache_folder(cache),
            batch_size=batch_size,
            workers=workers,
        ),
        references=references,
        media=MediaFolder(images, videos, Sampling(frames, rate)),
        policy=references_contain,
        empty=empty,
        per_image=per_image,
        feedback=feedback,
    )
    if not (quiet and json == "-"):
        console = terminal.err() if json == "-" else terminal.out()
        over = "images" if n_images(found.inputs) < len(found.inputs) else "captions"
        for part in terminal_tables.values_table(
            found.values, title=found.heading, over=over, notes=found.notes
        ):
            console.print(part)
    if out is not None:
        found.save(out)
        feedback.note(f"{amount(len(found.inputs), 'row')} written to {out}")
    if json is not None:
        terminal.write_result(json, found.to_json())


SYSTEMS_EPILOG = """Examples:

  counterfoil captions systems --predictions A.json B.json C.json --references captions_val2014.json

  counterfoil captions systems --predictions A.json B.json C.json --references r.json --humans m.csv

  counterfoil captions systems --predictions A.json B.json C.json --references r.json --humans judged.csv
  --over systems --html systems.html --latex systems.tex

m.csv has a row per system: its name (that of its file, without .json) in the column `system`, and a number
in each other column, such as M1 and M2 of the COCO challenge. judged.csv has a row per judgement, with a
column `judge`, a column `image`, or both: judges are then held against each other too, and intervals know
of what people said of which image."""


@app.command(epilog=SYSTEMS_EPILOG)
def systems(
    predictions: Annotated[
        list[Path], typer.Option(metavar="FILE...", help="A JSON file of captions per system.")
    ],
    references: Annotated[Path, typer.Option(help="Captions that people wrote: a JSON file.")],
    more: Annotated[list[Path] | None, typer.Argument(metavar="[FILE]...", hidden=True)] = None,
    metrics: Metrics = "bleu-4,rouge-l,cider",
    humans: Annotated[
        Path | None, typer.Option(help="What people gave the systems: a table with a column per score.")
    ] = None,
    over: Annotated[
        Literal["images", "systems"],
        typer.Option(help="What is drawn anew for intervals of correlations, and swapped in their tests."),
    ] = "images",
    draws: Annotated[int, typer.Option(min=100, max=most("draws"), help="Bootstrap draws.")] = 10_000,
    seed: Annotated[int, typer.Option(min=0, max=most("seed"), help="Seed of everything random.")] = 0,
    images: Images = None,
    videos: Videos = None,
    frames: Frames = None,
    rate: Rate = None,
    references_contain: Policy = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the numbers of systems here (.csv, .json, .parquet).")
    ] = None,
    json: Json = None,
    html: Annotated[Path | None, typer.Option(help="Write one self-contained HTML page here.")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Write all tables as Markdown here.")] = None,
    latex: Annotated[Path | None, typer.Option(help="Write all tables as LaTeX (booktabs) here.")] = None,
    csv: Annotated[Path | None, typer.Option(help="Write all numbers, at full precision, here.")] = None,
    scorer: Behind = None,
    settings: Settings = None,
    device: Device = "auto",
    precision: Precision = "fp32",
    batch_size: BatchSize = 32,
    workers: Workers = None,
    cache: CacheFolder = None,
    no_cache: NoCache = False,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Compare captioners: a row per system, a column per metric, and how metrics order them as people do.

    All systems must have written captions of the same images.
    """
    from counterfoil.cli import paths, terminal
    from counterfoil.cli.paths import cache_folder
    from counterfoil.cli.terminal_tables import printed
    from counterfoil.data.decoding import Sampling
    from counterfoil.report.labels import amount
    from counterfoil.scorers.base import Options
    from counterfoil.store import write_text
    from counterfoil.tasks.caption_inputs import MediaFolder
    from counterfoil.tasks.caption_systems import compare_systems
    from counterfoil.tasks.caption_values import check_kind
    from counterfoil.tasks.captions import MetricRequest

    paths.check(table=out, json=json, html=html, markdown=markdown, latex=latex, csv=csv)
    check_kind(out)
    feedback = terminal.feedback(quiet=quiet)
    found = compare_systems(
        [*predictions, *(more or ())],
        references,
        MetricRequest.of(
            metrics,
            Options(
                device=device,
                precision=precision,
                backbone=scorer or "",
                settings=key_values(settings or ()),
            ),
            cache=None if no_cache else cache_folder(cache),
            batch_size=batch_size,
            workers=workers,
        ),
        humans=humans,
        over=over,
        draws=draws,
        seed=seed,
        media=MediaFolder(images, videos, Sampling(frames, rate)),
        policy=references_contain,
        feedback=feedback,
    )
    if not (quiet and json == "-"):
        from rich.text import Text

        console = terminal.err() if json == "-" else terminal.out()
        for table in found.tables:
            for part in printed(table, console.width):
                console.print(part)
        for note in found.notes:
            console.print(Text(note, style="dim"))
    for path, written in ((csv, found.to_csv), (markdown, found.to_markdown), (latex, found.to_latex)):
        if path is not None:
            write_text(path, written())
    if html is not None:
        found.to_html(html)
    if out is not None:
        found.save(out)
        feedback.note(f"{amount(len(found.found), 'row')} written to {out}")
    if json is not None:
        terminal.write_result(json, found.to_json())
