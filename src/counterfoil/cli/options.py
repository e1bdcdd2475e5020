"""Options that several commands share, and the names that a shell completes in them."""

import tomllib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import MISSING, fields
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import typer

from counterfoil.errors import InputError
from counterfoil.inputs.limits import most
from counterfoil.inputs.options import fields_of

#: Those with a `catalog.toml` of benchmarks.
_PACKAGES = ("counterfoil.benchmarks", "counterfoil.world")


# A shell waits for completions at every press of the tab key, so only lists of names are read, and no library
# that computes. A name with a slash in it is a file's, which the shell completes itself.
def complete_benchmarks(incomplete: str) -> list[str]:
    """Benchmarks of the catalog.

    >>> complete_benchmarks("winog")
    ['winoground']
    """
    texts = (files(package).joinpath("catalog.toml").read_text("utf-8") for package in _PACKAGES)
    return _beginning([name for text in texts for name in tomllib.loads(text)], incomplete)


def complete_scorers(incomplete: str) -> list[str]:
    """Kinds of scorer with their colon; behind "metric:" the caption metrics.

    >>> complete_scorers("op"), complete_scorers("metric:rou")
    (['open-clip:'], ['metric:rouge-l'])
    """
    from counterfoil.catalog import scorers

    kind, colon, _ = incomplete.partition(":")
    if colon and kind == "metric":
        return [f"metric:{name}" for name in complete_metrics(incomplete.removeprefix("metric:"))]
    return _beginning((f"{prefix}:" for prefix in scorers()), incomplete)


def complete_metrics(incomplete: str) -> list[str]:
    """Caption metrics, each after the commas of those that were typed before it.

    >>> complete_metrics("cider,rou")
    ['cider,rouge-l']
    """
    from counterfoil.models.captions.registry import METRICS, SEVERAL

    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in _beginning([*SEVERAL, *METRICS], last)]


def complete_recipes(incomplete: str) -> list[str]:
    """Recipes of training.

    >>> complete_recipes("trohn")
    ['trohn-text', 'trohn-img']
    """
    from counterfoil.train.recipes.reading import RECIPES

    return _beginning(RECIPES, incomplete)


def complete_papers(incomplete: str) -> list[str]:
    """Papers of the ledger.

    >>> complete_papers("e")
    ['eccv-caption']
    """
    folder = files("counterfoil.report").joinpath("papers")
    names = (file.name.removesuffix(".toml").replace("_", "-") for file in folder.iterdir())
    return _beginning(sorted(names), incomplete)


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


Overwrite = Annotated[
    bool,
    typer.Option("--overwrite", help="Replace files that exist; never one that the command reads."),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No notes and no progress.")]
Json = Annotated[str | None, typer.Option(metavar="PATH|-", help="Write the machine-readable result here.")]
Html = Annotated[Path | None, typer.Option(help="Write one self-contained HTML page here.")]

Draws = Annotated[int, typer.Option(min=100, max=most("draws"), help="Draws of a bootstrap.")]
Seed = Annotated[int, typer.Option(min=0, max=most("seed"), help="Seed of everything random.")]

Runs = Annotated[list[Path], typer.Argument(help="Run folders, or folders of them.")]
Available = Annotated[
    bool, typer.Option("--available", help="Only the questions whose images and captions are at hand.")
]


def key_values(
    pairs: Sequence[str], *, option: str = "--set", example: str = "references=paper"
) -> dict[str, str]:
    """The values of `--set KEY=VALUE`, or of another option of such pairs, by key.

    Raises `InputError` for what is no such pair, and for a key twice.

    >>> key_values(["prefix=", "references=paper"])
    {'prefix': '', 'references': 'paper'}
    """
    values: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise InputError(f"{option} needs KEY=VALUE", given=pair, allowed=f"such as {example}")
        if key in values:
            raise InputError(f"{option} names one key twice", given=pair)
        values[key] = value
    return values


def field_options(kind: type, *, leave: Collection[str] = ()) -> dict[str, tuple[Any, Any]]:
    """Of each field the type of its option and the default, None: what is not given is the field's own.

    Values come as texts (of tuples as lists of texts), which `text_of` and `inputs.fields.from_text` turn
    into the field's values; yes and no are flags. Fields in `leave` get no option.
    """
    options: dict[str, tuple[Any, Any]] = {}
    types = {name: argument.hint for name, argument in fields_of(kind).items()}
    for column in fields(kind):
        if column.name in leave:
            continue
        text = str(column.metadata.get("help", ""))
        default = None if column.default is MISSING else column.default
        shown = default if isinstance(default, str | int | float) and default != "" else None
        if isinstance(default, tuple):
            shown = ",".join(default) or None
        if types[column.name] is bool:
            flag = f"--{column.name.replace('_', '-')}"
            option = typer.Option(f"{flag}/--no-{flag[2:]}", help=text, show_default=str(default))
            options[column.name] = (Annotated[bool | None, option], None)
            continue
        several = isinstance(default, tuple)
        option = typer.Option(
            f"--{column.name.replace('_', '-')}",
            help=text,
            metavar=_metavar(types[column.name]),
            show_default=str(shown) if shown is not None else False,
        )
        options[column.name] = (Annotated[list[str] | None if several else str | None, option], None)
    return options


def text_of(value: Any) -> str:
    """The value of an option as `from_text` reads it.

    >>> text_of(True), text_of(["vera", "cola"]), text_of("0.5")
    ('yes', 'vera,cola', '0.5')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ",".join(value) if isinstance(value, list) else str(value)


def _metavar(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return "|".join(get_args(hint))
    if float in (hint, *get_args(hint)):
        return "NUMBER"
    return "N" if int in (hint, *get_args(hint)) else "TEXT"
