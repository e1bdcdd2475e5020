"""`counterfoil captions score | systems`: how good captions are, by metrics of the field."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from counterfoil.cli import options
from counterfoil.cli.options import (
    Draws,
    Html,
    Json,
    Media,
    MetricModel,
    Overwrite,
    Seed,
    Tables,
    WorkOptions,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

    from counterfoil.jobs.captions import Value

app = typer.Typer(
    help="How good captions are, for images or videos, with or without references.",
    no_args_is_help=True,
    epilog="Example: counterfoil captions score --metrics bleu,cider --candidates c.json --references r.json",
)

Metrics = Annotated[
    str,
    typer.Option(
        help="Names with commas between (see 'counterfoil list metrics'); bleu is bleu-1 to 4.",
        autocompletion=options.complete_metrics,
    ),
]
Policy = Annotated[
    Literal["keep", "drop-reference", "drop-item"] | None,
    typer.Option(
        "--references-contain",
        help="What becomes of a reference that is the candidate itself: it stays, it goes, or the item goes.",
    ),
]

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
    media: Media = Media(),
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
    model: MetricModel = MetricModel(),
    work: WorkOptions = WorkOptions(),
    overwrite: Overwrite = False,
) -> None:
    """Score captions by metrics: a value for all of them, and one for each.

    Of several candidates per image each gets a score; values and intervals are over images. Embeddings are
    kept in the cache, so a run that was stopped goes on where it was.
    """
    from counterfoil import terminal
    from counterfoil.cli import paths
    from counterfoil.jobs.captions import MetricRequest, check_kind, n_images, score_captions
    from counterfoil.jobs.feedback import terminal_feedback
    from counterfoil.report.labels import amount

    paths.check(table=out, json=json)
    check_kind(out)
    feedback = terminal_feedback()
    scored = score_captions(
        candidates,
        MetricRequest.of(metrics, **model.asked(), **work.asked()),
        references=references,
        media=media.folder(),
        policy=references_contain,
        empty=empty,
        per_image=per_image,
        feedback=feedback,
    )
    if not (terminal.quiet and json == "-"):
        console = terminal.beside(json)
        over = "images" if n_images(scored.inputs) < len(scored.inputs) else "captions"
        _show(scored.values, scored.heading, over, scored.notes, console)
    if out is not None:
        scored.save(out)
        feedback.note(f"{amount(len(scored.inputs), 'row')} written to {out}")
    if json is not None:
        terminal.write_result(json, scored.to_json())


def _show(
    values: "Mapping[str, Value]", title: str, over: str, notes: "Sequence[str]", console: "Console"
) -> None:
    """A row per metric: its value, and its interval where it is a mean over captions, or over images."""
    from rich.text import Text

    from counterfoil.cli.tables import printed
    from counterfoil.report.tables import Column, text_table

    intervals = any(value.low is not None for value in values.values())
    means = any(not value.is_mean for value in values.values())
    columns = [Column("value", look="bold")]
    columns += [Column("95 % interval", align="center")] * intervals
    columns += [Column(f"mean of {over}", look="dim")] * means
    rows = []
    for name, value in values.items():
        cells = [name, f"{value.value:.4f}"]
        cells += ["" if value.low is None else f"[{value.low:.4f}, {value.high:.4f}]"] * intervals
        # Of what is no mean the mean over captions stands beside it; it is another number.
        cells += ["" if value.is_mean else f"{value.mean:.4f}"] * means
        rows.append(cells)
    table = text_table(title, "metric", columns, rows)
    for part in printed(table, console.width, label=lambda column: column.label, names=console.width):
        console.print(part)
    for line in notes:
        console.print(Text(line, style="dim"))


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
    draws: Draws = 10_000,
    seed: Seed = 0,
    media: Media = Media(),
    references_contain: Policy = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the numbers of systems here (.csv, .json, .parquet).")
    ] = None,
    json: Json = None,
    html: Html = None,
    tables: Tables = Tables(),
    model: MetricModel = MetricModel(),
    work: WorkOptions = WorkOptions(),
    overwrite: Overwrite = False,
) -> None:
    """Compare captioners: a row per system, a column per metric, and how metrics order them as people do.

    All systems must have written captions of the same images.
    """
    from counterfoil import terminal
    from counterfoil.cli import paths
    from counterfoil.cli.tables import show
    from counterfoil.jobs.caption_systems import compare_systems
    from counterfoil.jobs.captions import MetricRequest, check_kind
    from counterfoil.jobs.feedback import terminal_feedback
    from counterfoil.report.labels import amount

    paths.check(table=out, json=json, html=html, **vars(tables))
    check_kind(out)
    feedback = terminal_feedback()
    compared = compare_systems(
        [*predictions, *(more or ())],
        references,
        MetricRequest.of(metrics, **model.asked(), **work.asked()),
        humans=humans,
        over=over,
        draws=draws,
        seed=seed,
        media=media.folder(),
        policy=references_contain,
        feedback=feedback,
    )
    if not (terminal.quiet and json == "-"):
        from rich.text import Text

        console = terminal.beside(json)
        show(console, compared.tables)
        for note in compared.notes:
            console.print(Text(note, style="dim"))
    tables.write(compared)
    if html is not None:
        compared.to_html(html)
    if out is not None:
        compared.save(out)
        feedback.note(f"{amount(len(compared.by_system), 'row')} written to {out}")
    if json is not None:
        terminal.write_result(json, compared.to_json())
