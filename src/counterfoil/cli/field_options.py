"""Fields of a dataclass as options of a command: their names, help and defaults are those of the fields."""

from collections.abc import Collection
from dataclasses import MISSING, fields
from typing import Annotated, Any, Literal, get_args, get_origin

import typer

from counterfoil.inputs.fields import field_types


def field_options(kind: type, *, leave: Collection[str] = ()) -> dict[str, tuple[Any, Any]]:
    """Of each field the type of its option and the default, None: what is not given is the field's own.

    Values come as texts (of tuples as lists of texts), which `text_of` and `inputs.fields.from_text` turn
    into the field's values; yes and no are flags. Fields in `leave` get no option.
    """
    options: dict[str, tuple[Any, Any]] = {}
    types = field_types(kind)
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
