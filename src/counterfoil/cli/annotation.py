"""`counterfoil pool | bias | preferences`: pairs for people to verify, machine annotators, votes."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from counterfoil.cli.options import Draws, Html, Ids, Json, Overwrite, Scores, Seed
from counterfoil.inputs.limits import most

if TYPE_CHECKING:
    from counterfoil.evaluation.pooling import Summary

POOL_EPILOG = """Examples:
  counterfoil pool runs/*/eccv --k 5 --out pool.csv
  counterfoil pool pvse.npz vsrn.npz clip.npz --queries queries.txt --direction t2i --out pool.parquet
  counterfoil pool runs/*/eccv similarity.npy --ids ids.npz --k 25 --plot yield.svg --json -

queries.txt has an id per line, of an image or a caption; where an id is both, write i2t/ID or t2i/ID. Give
people the table with a column `answer` to fill in, and hand it to `counterfoil bias --judgements`."""


def pool(
    scores: Scores,
    k: Annotated[
        int, typer.Option(min=1, max=most("k"), help="How many items each model proposes per query.")
    ] = 5,
    queries: Annotated[
        Path | None, typer.Option(help="Ids of the queries: one per line, or a table's column query or id.")
    ] = None,
    direction: Annotated[
        Literal["t2i", "i2t", "both"],
        typer.Option(help="Captions ask for images (t2i), images for captions (i2t), or both."),
    ] = "both",
    out: Annotated[Path | None, typer.Option(help="Write the pairs here (.csv or .parquet).")] = None,
    ids: Ids = None,
    exclude_known: Annotated[
        bool,
        typer.Option(
            "--exclude-known", help="Leave out pairs that are right in the runs' benchmark already."
        ),
    ] = False,
    per_task: Annotated[int, typer.Option(min=1, max=most("people"), help="Pairs to judge per task.")] = 18,
    golden: Annotated[
        int, typer.Option(min=0, max=most("people"), help="Pairs of known answer in each task beside them.")
    ] = 2,
    answers: Annotated[
        int, typer.Option(min=1, max=most("people"), help="How many people judge each pair.")
    ] = 1,
    price: Annotated[float, typer.Option(min=0, max=most("price"), help="Price of a task.")] = 1.4,
    plot: Annotated[Path | None, typer.Option(help="Draw the yield curve here (svg, pdf, png).")] = None,
    json: Json = None,
    overwrite: Overwrite = False,
) -> None:
    """Pool what several models put first, each pair once, with who proposed it at which place.

    Tasks and prices default to those of ECCV Caption: 18 pairs to judge and 2 of known answer for 1.40.
    """
    from counterfoil import terminal
    from counterfoil.benchmarks.judgements import pool_kind
    from counterfoil.cli import paths
    from counterfoil.evaluation.pooling import Tasks
    from counterfoil.jobs.feedback import terminal_feedback
    from counterfoil.jobs.pool import pool

    paths.check(table=out, json=json, plot=plot)
    if out is not None:
        pool_kind(out)
    pooled = pool(
        scores,
        k=k,
        queries=queries,
        direction=direction,
        ids=ids,
        exclude_known=exclude_known,
        tasks=Tasks(per_task, golden, answers, price),
        feedback=terminal_feedback(),
    )
    console = terminal.beside(json)
    for part in () if terminal.quiet and json == "-" else _pooled(pooled.summary, console.width):
        console.print(part)
    if out is not None:
        pooled.save(out)
        terminal.note(f"{len(pooled.pairs):,} rows written to {out}")
    if json is not None:
        terminal.write_result(json, pooled.to_json())
    if plot is not None:
        from counterfoil.report.drawing import save

        save(pooled.plot(), plot, title="Pairs to verify by models and k")
        terminal.note(f"yield curve drawn in {plot}")


def _pooled(summary: "Summary", width: int) -> list[Any]:
    from rich.text import Text

    from counterfoil.cli.tables import printed
    from counterfoil.report.tables import Column, text_table

    by_model = text_table(
        summary.heading,
        "model",
        [Column(head) for head in ("proposes", "alone", "new in this order")],
        [
            (name, f"{proposed:,}", f"{alone:,}", f"{new:,}")
            for name, proposed, alone, new in zip(
                summary.models, summary.proposed, summary.alone, summary.new, strict=True
            )
        ],
    )
    ks = _columns(summary.k, max(1, (width - 12) // 11))
    curve = text_table(
        "",
        "pairs by k",
        [Column(str(j)) for j in ks],
        [
            (f"{m + 1} model{'s' if m else ''}", *(f"{row[j - 1]:,.0f}" for j in ks))
            for m, row in enumerate(summary.curve)
        ],
    )
    models = printed(by_model, width, label=lambda column: column.label, names=max(12, width - 47))
    return [*models, Text(), *printed(curve, width), Text(), *map(Text, summary.lines())]


def _columns(k: int, most: int) -> list[int]:
    """The numbers from 1 to k that fit, both ends among them."""
    if k <= most:
        return list(range(1, k + 1))
    most = max(most, 2)
    return sorted({1 + round(i * (k - 1) / (most - 1)) for i in range(most)})


BIAS_EPILOG = """Examples:
  counterfoil bias runs/*/eccv --judgements judged.csv
  counterfoil bias pvse.npz vsrn.npz clip.npz --judgements judged.parquet --k 5 --html bias.html
  counterfoil bias runs/*/coco-5k --judgements judged.csv --positives coco-5k --positives cxc --data COCO

judged.csv is a table of `counterfoil pool` with a column `answer` (100% YES, Partially YES, Mostly NO,
100% NO) or `gain` (1 to 0). Several rows per pair are several people's answers."""


def bias(
    scores: Scores,
    judgements: Annotated[
        Path, typer.Option(help="Judged pairs: direction, image, caption, answer or gain.")
    ],
    k: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=most("k"),
            help="How many items each model proposes: all in the table's places, else 5.",
        ),
    ] = None,
    measure: Annotated[
        str, typer.Option(help="recall_at_1, r_precision, and both with graded_ before them; commas between.")
    ] = "graded_recall_at_1,graded_r_precision",
    direction: Annotated[
        Literal["i2t", "t2i"] | None,
        typer.Option(help="Only this one; that of all judgements where the table does not say."),
    ] = None,
    aggregate: Annotated[
        Literal["majority", "mean"], typer.Option(help="How several answers to one pair are aggregated.")
    ] = "majority",
    undefined: Annotated[
        Literal["out", "zero"],
        typer.Option(help="Queries for which a set of annotators found nothing: left out, or 0."),
    ] = "out",
    positives: Annotated[
        list[str] | None,
        typer.Option(
            help="A benchmark or folder whose right answers to hold against the judgements; repeat."
        ),
    ] = None,
    data: Annotated[Path | None, typer.Option(help="Where the data of those benchmarks are.")] = None,
    ids: Ids = None,
    html: Html = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw bias by number of annotators (svg, pdf, png).")
    ] = None,
    json: Json = None,
    draws: Draws = 2000,
    seed: Seed = 0,
    overwrite: Overwrite = False,
) -> None:
    """Measure each model on the benchmarks that each set of models would have made, and how far that is off.

    Bias is the mean distance of all models to their values on the benchmark that all made together; self-bias
    that of the annotators themselves, non-self-bias that of the rest.
    """
    from counterfoil import terminal
    from counterfoil.cli import paths
    from counterfoil.cli.paths import data_folder
    from counterfoil.cli.tables import show_with_json
    from counterfoil.jobs.bias import bias, gallery
    from counterfoil.jobs.feedback import terminal_feedback

    paths.check(html=html, json=json, plot=plot)
    paths.check_drawing(html)
    folder = data_folder(data)
    with terminal.busy("reading benchmarks"):
        sets = [gallery(name, folder) for name in positives or ()]
    study = bias(
        scores,
        judgements,
        k=k,
        measures=tuple(dict.fromkeys(name.strip() for name in measure.split(","))),
        direction=direction,
        aggregate=aggregate,
        undefined=undefined,
        positives=sets,
        ids=ids,
        draws=draws,
        seed=seed,
        feedback=terminal_feedback(),
    )
    show_with_json(study, json)
    if plot is not None:
        from counterfoil.report.drawing import save

        save(study.plot(), plot, title="Bias by number of annotators")
    if html is not None:
        study.to_html(html)
        terminal.note(f"page written to {html}")
