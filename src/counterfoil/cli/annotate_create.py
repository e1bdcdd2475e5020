"""`counterfoil annotate create`: a campaign from a table, a pool, a benchmark or another campaign."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from counterfoil.annotate.recipe import CampaignRecipe
from counterfoil.cli.field_options import field_options, text_of
from counterfoil.cli.options import Json, Overwrite, Quiet, key_values

EPILOG = """Examples:

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
        from counterfoil.cli import paths, terminal
        from counterfoil.cli.tables import show
        from counterfoil.tasks.annotate_create import CreateOptions, create_campaign

        json, quiet = given["json"], given["quiet"]
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
            feedback=terminal.feedback(quiet=quiet),
        )
        show(terminal.beside(json), () if quiet and json == "-" else created.tables)
        if json is not None:
            terminal.write_result(json, created.to_json())
        for note in () if quiet else created.notes:
            terminal.note(note)

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
        "quiet": (Quiet, False),
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
