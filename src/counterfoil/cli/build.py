"""`counterfoil build`: a benchmark or a training set by a recipe, or one step on a table of one's own."""

import inspect
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import typer

from counterfoil.cli import usage
from counterfoil.cli.options import (
    Device,
    Ids,
    ImageFolder,
    Json,
    Overwrite,
    Precision,
    Scores,
    Seed,
    WorkOptions,
    field_options,
    key_values,
    text_of,
)
from counterfoil.inputs.limits import most

POOL_EPILOG = """Examples:
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
    from counterfoil.cli import paths
    from counterfoil.cli.tables import show_with_json
    from counterfoil.jobs.feedback import terminal_feedback
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
    feedback = terminal_feedback()
    pooled = pool_rounds(scores, judge, options, feedback=feedback)
    pooled.save(out)
    show_with_json(pooled, json)


HELP = usage.flowing(
    """Build a benchmark or a training set by a recipe; or apply one of its steps to a table of your own.

A build that was stopped goes on where it was. Recipes and steps are below; a recipe of your own is a file
that ends in .toml."""
)
EPILOG = """Examples:
  counterfoil build bivlc --out build/bivlc
  counterfoil build bivlc --from sugar-crepe/data --images val2017/ --out build/bivlc
  counterfoil build mine.toml --out build/mine
  counterfoil build refine pairs.csv --scores vera.csv --scores cola.csv --out refined.csv"""

#: The options of a recipe that stand for a setting of one of its steps.
_STANDS_FOR = {
    "source": "read.source",
    "layout": "read.layout",
    "images": "read.images",
    "n": "read.n",
    "limit": "read.limit",
    "llm": "negate.by",
    "imagine": "imagine.by",
    "people": "choose.people",
}


class SeveralValues(usage.Command):
    """A command whose options that may be repeated take several values at once: `--scores a.csv b.csv`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As Typer does it, with the name of the option before each of its values."""
        several = {
            name for option in self.params if getattr(option, "multiple", False) for name in option.opts
        }
        words: list[str] = []
        current = ""
        taken = 0
        for arg in args:
            if arg.startswith("-"):
                current, taken = (arg if arg in several else ""), 0
            elif current:
                taken += 1
                if taken > 1:
                    words.append(current)
            words.append(arg)
        return super().parse_args(ctx, words)


class Builds(usage.CommandGroup):
    """Recipes and steps as commands, each made when it is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Recipes, then steps, then what else there is."""
        from counterfoil.build.run import shipped
        from counterfoil.build.steps.registry import STEPS

        return [*shipped(), *STEPS, *super().list_commands(ctx)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of a recipe, a file with one, or a step; None for an unknown name."""
        from counterfoil.build.run import shipped
        from counterfoil.build.steps.registry import STEPS

        own = super().get_command(ctx, cmd_name)
        if own is not None:
            return own
        if cmd_name in STEPS:
            example = f"Example: {STEPS[cmd_name].example}"
            return _command(cmd_name, _step_function(cmd_name), example, "Steps", STEPS[cmd_name].summary)
        if cmd_name in shipped() or cmd_name.endswith(".toml"):
            return _command(cmd_name, _recipe_function(cmd_name), _example(cmd_name), "Recipes")
        return None


app = typer.Typer(cls=Builds, help=HELP, epilog=usage.flowing(EPILOG), no_args_is_help=True)


@app.callback()
def _group() -> None:
    """A group of commands, however few it holds itself."""


app.command(cls=usage.Command, epilog=usage.flowing(POOL_EPILOG), rich_help_panel="Pooling")(
    usage.with_levels(pool)
)


def _command(name: str, function: Any, epilog: str, panel: str, summary: str | None = None) -> Any:
    """The command of a function, as Typer makes them."""
    own = typer.Typer()
    own.command(
        name,
        cls=SeveralValues,
        help=usage.flowing(inspect.cleandoc(function.__doc__ or "")),
        short_help=summary,
        epilog=epilog,
        rich_help_panel=panel,
    )(usage.with_levels(function))
    return typer.main.get_command(own)


def _example(name: str) -> str:
    return f"Example: counterfoil build {name} --out build/{Path(name).stem}"


def _recipe_function(name: str) -> Any:
    def run(
        out: Annotated[Path, typer.Option(help="The folder of the build; a build there goes on.")],
        source: Annotated[
            str | None,
            typer.Option(
                "--from",
                metavar="SOURCE",
                help="A table, captions in COCO's layouts, a benchmark's name or folder, or 'world'.",
            ),
        ] = None,
        layout: Annotated[
            str | None, typer.Option(help="The benchmark in whose layout the source is.")
        ] = None,
        images: Annotated[str | None, typer.Option(metavar="FOLDER", help="Folder of the images.")] = None,
        n: Annotated[
            int | None, typer.Option("--n", min=1, help="Of the drawn world: how many rows.")
        ] = None,
        limit: Annotated[int | None, typer.Option(min=1, help="Only so many rows of the source.")] = None,
        llm: Annotated[
            str | None,
            typer.Option(metavar="MODEL", help="What writes negatives: an endpoint URL#MODEL, or lm:NAME."),
        ] = None,
        imagine: Annotated[
            str | None, typer.Option(metavar="GENERATOR", help="What makes images, as step 'imagine' has it.")
        ] = None,
        people: Annotated[
            str | None, typer.Option(metavar="TABLE", help="Answers of people, as step 'choose' has them.")
        ] = None,
        settings: Annotated[
            list[str] | None,
            typer.Option("--set", metavar="STEP.KEY=VALUE", help="A setting of a step; may be repeated."),
        ] = None,
        seed: Annotated[
            int | None, typer.Option(min=0, max=most("seed"), help="Seed of everything random.")
        ] = None,
        device: Device = "auto",
        precision: Precision = "fp32",
        html: Annotated[
            bool, typer.Option("--html/--no-html", help="Whether the report is written, report.html.")
        ] = True,
        json: Json = None,
        work: WorkOptions = WorkOptions(),
        overwrite: Overwrite = False,
    ) -> None:
        from counterfoil import terminal
        from counterfoil.build.run import read_recipe
        from counterfoil.cli import paths
        from counterfoil.cli.tables import show_with_json
        from counterfoil.errors import InputError
        from counterfoil.jobs import build as task
        from counterfoil.jobs.feedback import terminal_feedback

        given = {
            "source": source,
            "layout": layout,
            "images": images,
            "n": n,
            "limit": limit,
            "llm": _language_model(llm),
            "imagine": imagine,
            "people": people,
        }
        named = {_STANDS_FOR[key]: str(value) for key, value in given.items() if value is not None}
        there = {step.name for step in read_recipe(name).steps}
        for key, setting in _STANDS_FOR.items():
            wanted = setting.partition(".")[0]
            if setting in named and wanted not in there:
                hint = f"the recipe has no step '{wanted}'"
                raise InputError(f"--{key} does not go with {name}", given=given[key], hint=hint)
        given_settings = named | key_values(settings or ())
        recipe = read_recipe(name, settings=given_settings, seed=seed)
        paths.check(json=json)
        built = task.build(
            recipe,
            out,
            task.BuildOptions(
                settings=given_settings,
                seed=seed,
                device=device,
                precision=precision,
                api_key=paths.endpoint_key(),
                report=html,
                **work.asked(),
            ),
            overwrite=overwrite,
            feedback=terminal_feedback(),
        )
        show_with_json(built, json)
        if built.benchmark is not None and not terminal.quiet:
            # A result, which goes where tables go.
            terminal.beside(json).print(f"built: {built.benchmark}")

    from counterfoil.build.run import read_recipe, shipped

    run.__doc__ = read_recipe(name).summary if name in shipped() else f"The recipe of {name}."
    return run


def _language_model(given: str | None) -> str | None:
    """An address is an endpoint's."""
    if given is not None and given.startswith(("http://", "https://")):
        return f"chat:{given}"
    return given


def _step_function(name: str) -> Any:
    """The function of a step: its settings become options."""
    from counterfoil.build.steps.registry import STEPS

    kind = STEPS[name].kind
    reads_rows = name != "read"

    def run(**given: Any) -> None:
        from counterfoil import terminal
        from counterfoil.cli import paths
        from counterfoil.cli.tables import show
        from counterfoil.jobs import build as task
        from counterfoil.jobs.feedback import terminal_feedback

        out, json = given["out"], given["json"]
        folder = None if out.suffix else out
        table = None if folder else out
        folders = [task.declared(out)] if folder else []
        paths.check(json=json, table=table, dropped=given["dropped"], folders=folders)
        for path in (table, given["dropped"]):
            if path is not None:
                task.check_table(path)
        settings = {
            setting.name: given[setting.name]
            for setting in fields(kind)
            if given[setting.name] is not None and given[setting.name] != []
        }
        options = task.BuildOptions(
            settings={key: text_of(value) for key, value in settings.items()},
            seed=given["seed"],
            images=given.get("images_"),
            device=given["device"],
            precision=given["precision"],
            api_key=paths.endpoint_key(),
            **given["work"].asked(),
        )
        applied = task.apply_step(
            name,
            given["rows"] if reads_rows else task.nothing(),
            options,
            feedback=terminal_feedback(),
            out=out,
            dropped=given["dropped"],
        )
        show(terminal.beside(json), () if terminal.quiet and json == "-" else applied.tables)
        if json is not None:
            terminal.write_result(json, applied.to_json())

    options: dict[str, tuple[Any, Any]] = {}
    if reads_rows:
        rows = typer.Argument(help="The table of rows: CSV, TSV, JSON, JSON Lines or Parquet.")
        options["rows"] = (Annotated[Path, rows], inspect.Parameter.empty)
    out = typer.Option(help="The table to write (.csv or .parquet), or a folder.")
    options["out"] = (Annotated[Path, out], inspect.Parameter.empty)
    options |= field_options(kind)
    if "images" not in options:
        images = typer.Option("--images", metavar="FOLDER", help="Folder of the images that rows name.")
        options["images_"] = (Annotated[Path | None, images], None)
    dropped = typer.Option(help="Write the rows that were dropped, with reasons, here.")
    options["dropped"] = (Annotated[Path | None, dropped], None)
    seed = typer.Option(min=0, max=most("seed"), help="Seed of everything random.")
    options["seed"] = (Annotated[int, seed], 0)
    options |= {"device": (Device, "auto"), "precision": (Precision, "fp32"), "json": (Json, None)}
    options |= {
        "work": (WorkOptions, WorkOptions()),
        "overwrite": (Overwrite, False),
    }
    cast(Any, run).__signature__ = inspect.Signature(
        [
            inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, annotation=kind_, default=default)
            for key, (kind_, default) in options.items()
        ]
    )
    run.__doc__ = kind.__doc__
    return run
