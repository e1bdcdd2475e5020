"""`counterfoil annotate plan`: labels per item, intervals, hours and cost before people are paid."""

from typing import Annotated, Literal

import typer

from counterfoil.cli.options import Json, Overwrite, Quiet, Seed
from counterfoil.errors import InputError
from counterfoil.inputs.limits import most

EPILOG = """Examples:

  counterfoil annotate plan best-of-k --items 3000 --labels 3 --accuracy 0.85

  counterfoil annotate plan match --items 2000 --half-width 0.02 --of agreement --pay 15 --fee 0.333

  counterfoil annotate plan yes-no --items 800 --label-accuracy 0.97 --accuracy 0.9,0.85 --share 0.25"""


def plan(
    form: Annotated[
        str, typer.Argument(metavar="FORM", help="A form of work, see 'counterfoil annotate forms'.")
    ],
    items: Annotated[int, typer.Option(min=2, max=most("items"), help="Items to label.")],
    labels: Annotated[
        int | None, typer.Option(min=1, max=50, help="Labels per item. Default: 3, or what the aim needs.")
    ] = None,
    accuracy: Annotated[
        str,
        typer.Option(help="How often an answer is right; of two classes also two rates, of no and of yes."),
    ] = "0.85",
    half_width: Annotated[
        float | None, typer.Option(help="Aim: half of the width of the 95 % interval of --of.")
    ] = None,
    of: Annotated[
        Literal["score", "positive", "answers", "agreement", "alpha"],
        typer.Option(help="What --half-width is of."),
    ] = "score",
    label_accuracy: Annotated[
        float | None, typer.Option(help="Aim: how often an item's label is right.")
    ] = None,
    classes: Annotated[
        int | None, typer.Option(min=2, max=1000, help="Answers to choose from. Default: the form's.")
    ] = None,
    share: Annotated[
        float | None, typer.Option(help="Of two classes: the share of yes. Default: one half.")
    ] = None,
    people: Annotated[
        int | None, typer.Option(min=1, max=most("people"), help="People in all, who may differ by --spread.")
    ] = None,
    spread: Annotated[
        float, typer.Option(help="Standard deviation of accuracy from person to person; needs --people.")
    ] = 0.0,
    seconds: Annotated[
        float | None, typer.Option(help="Seconds per answer. Default: what the form usually takes.")
    ] = None,
    pay: Annotated[float, typer.Option(min=0, max=most("price"), help="Pay per hour.")] = 12.0,
    pay_per_item: Annotated[
        float | None, typer.Option(min=0, max=most("price"), help="Pay of an item, in place of --pay.")
    ] = None,
    currency: Annotated[str, typer.Option(help="Currency of the pay.")] = "USD",
    fee: Annotated[
        float, typer.Option(min=0, max=10, help="Share that a platform takes on top, such as 0.333.")
    ] = 0.0,
    json: Json = None,
    seed: Seed = 0,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Plan a campaign: from labels per item to intervals, hours and cost, or from an aim to labels per item.

    Labels are those of most people, ties decided by a coin; people err independently of each other.
    """
    from counterfoil.cli import paths, terminal
    from counterfoil.cli.tables import show
    from counterfoil.tasks.annotate_plan import PlanOptions, annotate_plan

    paths.check(json=json)
    planned = annotate_plan(
        form,
        PlanOptions(
            items=items,
            labels=labels or 0,
            accuracy=_rates(accuracy),
            classes=classes or 0,
            share=share,
            people=people,
            spread=spread,
            seconds=seconds,
            pay=pay,
            pay_per_item=pay_per_item,
            currency=currency,
            fee=fee,
            half_width=half_width,
            of=of,
            label_accuracy=label_accuracy,
            seed=seed,
        ),
    )
    silent = quiet and json == "-"
    show(terminal.beside(json), () if silent else planned.tables)
    for note in () if silent else planned.notes:
        terminal.beside(json).print(note, highlight=False)
    if json is not None:
        terminal.write_result(json, planned.to_json())


def _rates(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise InputError(
            "no rates", where="--accuracy", given=text, allowed="such as 0.85, or 0.9,0.8 of two classes"
        ) from None
