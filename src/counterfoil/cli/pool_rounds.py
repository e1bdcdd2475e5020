"""`counterfoil build pool`: pairs that several models propose, judged in rounds."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from counterfoil.cli.options import (
    Device,
    Ids,
    ImageFolder,
    Json,
    Overwrite,
    Quiet,
    Scores,
    Seed,
    WorkOptions,
)
from counterfoil.inputs.limits import most

EPILOG = """Examples:

  counterfoil build pool runs/*/world-gallery --rounds 3 --judge world --out pooled/

  counterfoil build pool runs/*/world-gallery --retrain coco --set steps=200 --out pooled/

  counterfoil build pool runs/*/coco-5k --judge answers.csv --out pooled/

  counterfoil build pool pvse.npz vsrn.npz --ids ids.npz --judge eccv --k 10 --out pooled/

  counterfoil build pool pvse.npz vsrn.npz --ids ids.npz --judge eccv --retrain-command
  "python train.py --pairs {positives} --out {out}" --out pooled/"""


@dataclass(frozen=True)
class RetrainingOptions:
    """What is trained between rounds, and how."""

    retrain: Annotated[
        str | None,
        typer.Option(
            metavar="RECIPE",
            help="Train the models of runs again after each round, on the right pairs so far, by this recipe "
            "('counterfoil list recipes', or a .toml file), and rank the gallery anew by them.",
            rich_help_panel="Retraining",
        ),
    ] = None
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="A field of that recipe, such as steps=200; may be repeated.",
            rich_help_panel="Retraining",
        ),
    ] = None
    start: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=MODEL",
            help="What the training of a run starts from, where not from the model that the run names; may "
            "be repeated.",
            rich_help_panel="Retraining",
        ),
    ] = None
    retrain_command: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND",
            help="Run this after each round: it trains on the table {positives} and writes new lists, called "
            "as the models are, into the folder {out}.",
            rich_help_panel="Retraining",
        ),
    ] = None


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
    retraining: RetrainingOptions = RetrainingOptions(),
    seed: Seed = 0,
    device: Device = "auto",
    work: WorkOptions = WorkOptions(),
    json: Json = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Pool what models put first, judge it, and again: what each round costs, finds and leaves behind.

    Judged pairs go to judgements.csv, which `counterfoil bias --judgements` reads, the right ones to
    positives.csv. Lists are read further down in every round, or are made anew by models that were trained
    again; a pooling that was stopped takes the trainings that were finished.
    """
    from counterfoil.cli import paths, terminal
    from counterfoil.cli.tables import show
    from counterfoil.outputs import Folder
    from counterfoil.tasks.pool_judges import RoundOptions
    from counterfoil.tasks.pool_retraining import is_retrained
    from counterfoil.tasks.pool_rounds import FILES, pool_rounds

    paths.check(json=json, folders=[Folder(out, FILES, is_retrained)])
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
    feedback = terminal.feedback(quiet=quiet)
    retrain = _retraining(scores, retraining, out, options, feedback)
    found = pool_rounds(scores, judge, options, retrain=retrain, feedback=feedback)
    found.save(out)
    show(terminal.beside(json), () if quiet and json == "-" else found.tables)
    for note in () if quiet else found.notes:
        terminal.note(note)
    if json is not None:
        terminal.write_result(json, found.to_json())


def _retraining(scores: list[Path], asked: RetrainingOptions, out: Path, options: Any, feedback: Any) -> Any:
    """What trains the models between rounds; None where nothing does."""
    from counterfoil.cli.options import key_values
    from counterfoil.errors import InputError
    from counterfoil.tasks.pool_retraining import CommandRetraining, RecipeRetraining

    if asked.retrain is not None and asked.retrain_command is not None:
        raise InputError("--retrain and --retrain-command", given="both", allowed="one of them")
    if asked.retrain is None and (asked.settings or asked.start):
        name = "--set" if asked.settings else "--start"
        raise InputError(f"{name} is for --retrain", given=(asked.settings or asked.start or [""])[0])
    if options.rounds < 2 and (asked.retrain or asked.retrain_command):
        raise InputError(
            "models are trained again between rounds, of which there is one",
            where="--retrain" if asked.retrain else "--retrain-command",
            allowed="--rounds 2 or more",
        )
    if asked.retrain_command is not None:
        return CommandRetraining(asked.retrain_command, scores, out, feedback)
    if asked.retrain is None:
        return None
    return RecipeRetraining.of(
        scores,
        asked.retrain,
        out,
        settings=asked.settings or (),
        start=key_values(asked.start or (), option="--start", example="clip=ckpt/clip"),
        options=options,
        feedback=feedback,
    )
