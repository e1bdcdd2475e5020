"""`counterfoil pool | bias | preferences`: pairs for people to verify, machine annotators, votes."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from counterfoil.cli.options import Draws, Html, Ids, Json, Overwrite, Scores, Seed
from counterfoil.inputs.limits import most

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
