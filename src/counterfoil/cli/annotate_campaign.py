"""`counterfoil annotate create | plan | simulate | serve | links`: a campaign from its plan to its pages."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import typer

from counterfoil.annotate.recipe import CampaignRecipe
from counterfoil.cli.annotate import Database, Folder
from counterfoil.cli.options import Json, Overwrite, Seed, field_options, key_values, text_of
from counterfoil.errors import InputError
from counterfoil.inputs.limits import most

SERVE_EPILOG = """Examples:
  counterfoil annotate serve campaign/
  counterfoil annotate serve campaign/ --public-url https://study.example
  counterfoil annotate serve campaign/ --host 0.0.0.0 --certificate cert.pem --key key.pem

Ctrl-C stops it; answers that were acknowledged are stored. Behind a server that ends https, name the address
that people see with --public-url, and its own with --proxy."""

LINKS_EPILOG = """Examples:
  counterfoil annotate links campaign/ --n 20 --out links.csv --public-url https://study.example
  counterfoil annotate links campaign/ --n 3

Each link is one person's. The first 20 of 30 links are those of 20, so more can be made later."""


def serve(
    campaign: Folder,
    host: Annotated[str, typer.Option(help="Where to listen; 0.0.0.0 is every network.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="0 takes any that is free.")] = 8750,
    database: Database = None,
    public_url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="The address that people see, where it is another than this one's."),
    ] = None,
    proxy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ADDRESS",
            help="A server before this one, or a network: what it says of visitors is believed.",
        ),
    ] = None,
    certificate: Annotated[Path | None, typer.Option(help="For https: the certificate, with --key.")] = None,
    key: Annotated[Path | None, typer.Option(help="For https: the certificate's private key.")] = None,
) -> None:
    """Serve a campaign: a page for those who annotate, one for the researcher.

    Prints both addresses and the token that the researcher's page asks for. Requests are listed with
    --verbose, without the tokens in them.
    """
    from counterfoil import terminal
    from counterfoil.cli import faults
    from counterfoil.jobs.annotate_serve import Addresses, serve_campaign

    def ready(addresses: Addresses) -> None:
        print(f"people      {addresses.people}")
        print(f"researcher  {addresses.researcher}")
        print(f"token       {addresses.token}", flush=True)
        if not terminal.quiet:
            if addresses.people.endswith("..."):
                terminal.note(
                    f"personal links: counterfoil annotate links {campaign} --public-url {addresses.site}"
                )
            terminal.note("Ctrl-C stops the server.")

    with faults.left_to_server():
        serve_campaign(
            campaign,
            host=host,
            port=port,
            database=database,
            public_url=public_url,
            proxies=proxy or (),
            certificate=certificate,
            key=key,
            ready=ready,
            log=terminal.note if terminal.verbose else None,
            trouble=terminal.note,
        )


def links(
    campaign: Folder,
    n: Annotated[int, typer.Option(help="How many.")] = 20,
    out: Annotated[Path | None, typer.Option(help="Write a table number, link here (CSV).")] = None,
    public_url: Annotated[
        str, typer.Option(metavar="URL", help="The address under which people reach the server.")
    ] = "http://127.0.0.1:8750",
    overwrite: Overwrite = False,
) -> None:
    """Personal links that cannot be guessed, one for each person."""
    from counterfoil import terminal
    from counterfoil.cli import paths
    from counterfoil.jobs.annotate_serve import campaign_links
    from counterfoil.store import write_csv

    paths.check(csv=out)
    table = campaign_links(campaign, n, site=public_url)
    if out is None:
        for link in table["link"].to_pylist():
            print(link)
        return
    write_csv(out, table)
    terminal.note(f"{n:,} links written to {out}")


SIMULATE_EPILOG = """Examples:
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
) -> None:
    """Run a campaign by simulated people, from entry to the last answer, and hold it against the plan.

    The campaign's own database is not touched. People know the right answers of items and give them as often
    as their kind does; items whose truth is not known get one at random.
    """
    from counterfoil import terminal
    from counterfoil.annotate.judgement_table import write_judgement_table
    from counterfoil.cli import paths
    from counterfoil.cli.tables import show_with_json
    from counterfoil.jobs.annotate_simulate import annotate_simulate
    from counterfoil.jobs.feedback import terminal_feedback

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
        feedback=terminal_feedback(),
    )
    if out is not None:
        write_judgement_table(out, simulated.judgements)
    show_with_json(simulated, json)
    if keep is not None:
        terminal.note(f"kept: {keep}; look at it with: counterfoil annotate status {keep}")


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


PLAN_EPILOG = """Examples:
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
) -> None:
    """Plan a campaign: from labels per item to intervals, hours and cost, or from an aim to labels per item.

    Labels are those of most people, ties decided by a coin; people err independently of each other.
    """
    from counterfoil import terminal
    from counterfoil.cli import paths
    from counterfoil.cli.tables import show
    from counterfoil.jobs.annotate_plan import PlanOptions, annotate_plan

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
    silent, console = terminal.quiet and json == "-", terminal.beside(json)
    show(console, () if silent else planned.tables)
    for note in () if silent else planned.notes:
        console.print(note, highlight=False)
    if json is not None:
        terminal.write_result(json, planned.to_json())


def _rates(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise InputError(
            "no rates", where="--accuracy", given=text, allowed="such as 0.85, or 0.9,0.8 of two classes"
        ) from None


CREATE_EPILOG = """Examples:
  counterfoil annotate create match --from pool.csv --benchmark coco-5k --images val2014/ --golden auto
  --design blocks --per-person 20 --out campaign/
  counterfoil annotate create choose --from bivlc --sample 500 --design blocks --per-person 100 --overlap 1
  --out human-baseline/
  counterfoil annotate create best-of-k --from build/bivlc/steps/2-imagine/rows.parquet
  --images build/bivlc/images --out campaign/
  counterfoil annotate create yes-no --from winoground --onboarding test.csv --overlap 10 --out campaign/
  counterfoil annotate create rating --from captions.csv --set levels=5 --out campaign/"""

_Form = Annotated[str, typer.Argument(metavar="FORM", help="The form of work (counterfoil annotate forms).")]
_From = Annotated[
    str,
    typer.Option(
        "--from",
        metavar="SOURCE",
        help="A table of items or a pool of pairs, a benchmark's name or folder, or another campaign.",
    ),
]
_Out = Annotated[Path, typer.Option(help="The folder of the campaign.")]
_Golden = Annotated[
    str | None,
    typer.Option(
        metavar="TABLE|auto",
        help="Items whose answer is known, in column 'golden'; of a pool, auto draws true and random pairs.",
    ),
]
_Onboarding = Annotated[
    Path | None,
    typer.Option("--onboarding", metavar="TABLE", help="Items of the test before the work, as golden ones."),
]
_Images = Annotated[Path | None, typer.Option(metavar="FOLDER", help="Folder of the images.")]
_Benchmark = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="The benchmark whose images and captions a table names by ids."),
]
_Data = Annotated[Path | None, typer.Option(metavar="PATH", help="Where the benchmark's data is.")]
_Sample = Annotated[
    int | None, typer.Option(min=1, help="Of a benchmark: so many of its questions, drawn at random.")
]
_Text = Annotated[Path | None, typer.Option(metavar="FILE", help="Markdown in place of the usual text.")]
_Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="A setting of the form; may be repeated."),
]


def _create() -> Callable[..., None]:
    """The command, with an option for every field of a recipe."""

    def create(**given: Any) -> None:
        """Make a campaign: a folder with items, their images, a recipe and instructions, ready to be served.

        The recipe is written to campaign.toml in that folder, where it can still be changed before people
        come.
        """
        from counterfoil.cli import paths
        from counterfoil.cli.tables import show_with_json
        from counterfoil.jobs.annotate_create import CreateOptions, create_campaign
        from counterfoil.jobs.feedback import terminal_feedback

        json = given["json"]
        paths.check(json=json)
        recipe = {key: text_of(given[key]) for key in options if key in own and given[key] not in (None, [])}
        created = create_campaign(
            given["form"],
            given["source"],
            given["out"],
            CreateOptions(
                recipe=recipe,
                settings=key_values(given["settings"] or ()),
                golden=given["golden"],
                onboarding=given["onboarding_items"],
                images=given["images"],
                benchmark=given["benchmark"],
                data=given["data"],
                sample=given["sample"],
                instructions=given["instructions"],
                consent=given["consent"],
            ),
            overwrite=given["overwrite"],
            feedback=terminal_feedback(),
        )
        show_with_json(created, json)

    own = field_options(CampaignRecipe, leave=("form", "settings", "onboarding"))
    empty = inspect.Parameter.empty
    options: dict[str, tuple[Any, Any]] = {
        "form": (_Form, empty),
        "source": (_From, empty),
        "out": (_Out, empty),
        "golden": (_Golden, None),
        "onboarding_items": (cast(Any, _Onboarding), None),
        "images": (_Images, None),
        "benchmark": (_Benchmark, None),
        "data": (_Data, None),
        "sample": (_Sample, None),
        **own,
        "settings": (_Settings, None),
        "instructions": (_Text, None),
        "consent": (_Text, None),
        "json": (Json, None),
        "overwrite": (Overwrite, False),
    }
    cast(Any, create).__signature__ = inspect.Signature(
        [
            inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default)
            for key, (kind, default) in options.items()
        ]
    )
    create.__doc__ = inspect.cleandoc(create.__doc__ or "")
    return create


create = _create()
