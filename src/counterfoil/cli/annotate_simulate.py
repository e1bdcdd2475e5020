"""`counterfoil annotate simulate`: a whole campaign by simulated people, before people are paid."""

from pathlib import Path
from typing import Annotated

import typer

from counterfoil.cli.options import Json, Overwrite, Quiet, Seed, key_values
from counterfoil.errors import InputError

EPILOG = """Examples:

  counterfoil annotate simulate campaign/ --people 50

  counterfoil annotate simulate campaign/ --mix able=0.8,hasty=0.1,careless=0.1 --accuracy 0.9

  counterfoil annotate simulate campaign/ --http --keep simulated/ --out simulated.parquet

Kinds of people: able, hasty (fast, right in 80 %), one-sided (half of the answers are what is shown first),
careless (guesses), adversarial (wrong on purpose), bot (first option, in no time)."""


def simulate(
    campaign: Annotated[Path, typer.Argument(metavar="CAMPAIGN", help="The campaign's folder.")],
    people: Annotated[int, typer.Option(min=1, max=100_000, help="How many people come.")] = 50,
    mix: Annotated[
        str, typer.Option(metavar="KIND=SHARE,...", help="Kinds of people and their shares.")
    ] = "able=1",
    accuracy: Annotated[
        float | None, typer.Option(min=0, max=1, help="How often able people are right. Default: 0.95.")
    ] = None,
    http: Annotated[
        bool, typer.Option("--http", help="Send every request to the campaign's server, in this process.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="TABLE", help="Write the simulated judgements, .csv or .parquet.")
    ] = None,
    keep: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Keep a copy of the campaign with all that was answered here."),
    ] = None,
    json: Json = None,
    seed: Seed = 0,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Run a campaign by simulated people, from entry to the last answer, and hold it against the plan.

    The campaign's own database is not touched. People know the right answers of items and give them as often
    as their kind does; items whose truth is not known get one at random.
    """
    from counterfoil.annotate.judgement_table import write_judgement_table
    from counterfoil.cli import paths, terminal
    from counterfoil.cli.tables import show
    from counterfoil.tasks.annotate_simulate import annotate_simulate

    paths.check(table=out, json=json)
    simulated = annotate_simulate(
        campaign,
        people=people,
        mix=_shares(mix),
        accuracy=accuracy,
        http=http,
        seed=seed,
        keep=keep,
        overwrite=overwrite,
        feedback=terminal.feedback(quiet=quiet),
    )
    if out is not None:
        write_judgement_table(out, simulated.judgements)
    show(terminal.beside(json), () if quiet and json == "-" else simulated.tables)
    for note in () if quiet else simulated.notes:
        terminal.note(note)
    if keep is not None and not quiet:
        terminal.note(f"kept: {keep}; look at it with: counterfoil annotate status {keep}")
    if json is not None:
        terminal.write_result(json, simulated.to_json())


def _shares(text: str) -> dict[str, float]:
    example = "able=0.8,careless=0.2"
    shares = {}
    for kind, share in key_values(text.split(","), option="--mix", example=example).items():
        try:
            shares[kind.strip()] = float(share)
        except ValueError:
            raise InputError(
                "no share", where=f"--mix, {kind}", given=share, allowed=f"such as {example}"
            ) from None
    return shares
