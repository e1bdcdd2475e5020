"""`counterfoil build pool`: pairs that several models propose, judged in rounds."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from counterfoil.cli.options import (
    Device,
    Ids,
    ImageFolder,
    Json,
    Overwrite,
    Scores,
    Seed,
    WorkOptions,
)
from counterfoil.inputs.limits import most

EPILOG = """Examples:
  counterfoil build pool runs/*/world-gallery --rounds 3 --judge world --out pooled/
  counterfoil build pool runs/*/coco-5k --judge answers.csv --out pooled/
  counterfoil build pool pvse.npz vsrn.npz --ids ids.npz --judge eccv --k 10 --out pooled/"""


def pool(
    scores: Scores,
    out: Annotated[Path, typer.Option(help="Folder of positives.csv, judgements.csv and rounds.json.")],
    judge: Annotated[
        str,
        typer.Option(
            help="Who judges: world, a table of answers, a benchmark's name or folder, a scorer KIND:WHAT."
        ),
    ] = "world",
    rounds: Annotated[int, typer.Option(min=1, max=most("k"), help="How many rounds.")] = 3,
    k: Annotated[
        int,
        typer.Option(min=1, max=most("k"), help="New items of each model per query and round."),
    ] = 5,
    queries: Annotated[
        Path | None, typer.Option(help="Ids of the queries: one per line, or a table's column query or id.")
    ] = None,
    direction: Annotated[
        Literal["t2i", "i2t", "both"],
        typer.Option(help="Captions ask for images (t2i), images for captions (i2t), or both."),
    ] = "both",
    ids: Ids = None,
    threshold: Annotated[
        float | None, typer.Option(help="Of a scorer that judges: right is what scores at or above it.")
    ] = None,
    people: Annotated[
        int, typer.Option(min=0, max=most("people"), help="Simulated people who see a judge's truth.")
    ] = 0,
    accuracy: Annotated[float, typer.Option(help="Of simulated people: how often they are right.")] = 0.95,
    data: Annotated[
        Path | None,
        typer.Option(help="File or folder of the gallery, where pictures are needed and runs name none."),
    ] = None,
    images: ImageFolder = None,
    seed: Seed = 0,
    device: Device = "auto",
    work: WorkOptions = WorkOptions(),
    json: Json = None,
    overwrite: Overwrite = False,
) -> None:
    """Pool what models put first, judge it, and again: what each round costs, finds and leaves behind.

    Judged pairs go to judgements.csv, which `counterfoil bias --judgements` reads, the right ones to
    positives.csv. Lists are read further down in every round.
    """
    from counterfoil.cli import paths, terminal
    from counterfoil.cli.tables import show_result
    from counterfoil.jobs.pool_rounds import FILES, RoundOptions, pool_rounds
    from counterfoil.outputs import Folder

    paths.check(json=json, folders=[Folder(out, FILES)])
    options = RoundOptions(
        rounds=rounds,
        k=k,
        direction=None if direction == "both" else direction,
        queries=queries,
        ids=ids,
        data=data,
        images=images,
        people=people,
        accuracy=accuracy,
        threshold=threshold,
        seed=seed,
        device=device,
        **work.asked(),
    )
    feedback = terminal.feedback()
    pooled = pool_rounds(scores, judge, options, feedback=feedback)
    pooled.save(out)
    show_result(pooled, json)
