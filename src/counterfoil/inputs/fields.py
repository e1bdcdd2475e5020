"""Fields of dataclasses from files and command lines, and keys of endpoints."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from difflib import get_close_matches
from typing import Any, TypeVar

from counterfoil.errors import InputError
from counterfoil.inputs.options import fields_of, key_values

Fields = TypeVar("Fields")

#: A comma between two pairs KEY=VALUE.
_NEXT_PAIR = r",(?=[\w.-]+=)"


def setting(default: Any, help: str, **declared: Any) -> Any:
    """A field of a dataclass with its help and what else an `Option` declares: `low`, `high`, `among`."""
    return field(default=default, metadata={"help": help, **declared})


def check_fields(instance: Any, *, where: str = "") -> None:
    """Raise `InputError` for a field of a dataclass whose value is of another type or out of its range."""
    for name, argument in fields_of(type(instance)).items():
        value = getattr(instance, name)
        converted = argument.converted(value, f"{where}, {name}" if where else name)
        if isinstance(value, str) and converted != value:
            # A number that came as a text.
            object.__setattr__(instance, name, converted)


def check_key(key: str, allowed: Iterable[str], *, where: object) -> None:
    """Raise `InputError`, with the nearest of the `known` keys, for one that is not among them."""
    names = sorted(allowed)
    if key not in names:
        near = get_close_matches(key, names, n=1, cutoff=0.5)
        hint = f"did you mean '{near[0]}'?" if near else None
        raise InputError("unknown key", where=where, given=key, allowed=names or "none", hint=hint)


def field_value(kind: type, key: str, value: Any, *, where: object) -> Any:
    """The value of a field as the dataclass holds it, from TOML's or the caller's."""
    declared = fields_of(kind)
    check_key(key, declared, where=where)
    place = f"{where}, key '{key}'"
    if value == "none" and declared[key].optional:
        return None
    if value == "" and declared[key].default != "":
        raise InputError("no value", where=place, given="''", allowed=declared[key].allowed or None)
    return declared[key].converted(value, place)


def from_text(kind: type, key: str, typed: Any) -> Any:
    """What TOML would hold for the value of a field as typed, once or several times; others as they are.

    Commas part the values of a tuple; of pairs KEY=VALUE those alone that another key follows at once.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Rated:
    ...     by: tuple[str, ...] = ()
    >>> from_text(Rated, "by", "vera,cola"), from_text(Rated, "by", "prompt=Yes, or no?,end=in")
    (['vera', 'cola'], ['prompt=Yes, or no?', 'end=in'])
    """
    argument = fields_of(kind).get(key)
    if argument is not None and bool in argument.members:
        words = {"yes": True, "true": True, "no": False, "false": False}
        return words.get(str(typed).lower(), typed)
    if argument is None or not argument.several or not isinstance(typed, str | list):
        return typed
    text = typed if isinstance(typed, str) else ",".join(typed)
    comma = _NEXT_PAIR if "=" in text.partition(",")[0] else ","
    return [] if text in ("none", "") else re.split(comma, text)


def changes_of(kind: type, changes: Mapping[str, Any] | Sequence[str] | None, where: str) -> dict[str, Any]:
    """Values of fields from Python, by name, or from a shell as texts KEY=VALUE, as TOML would hold them."""
    if not isinstance(changes, Mapping):
        changes = key_values(changes or (), where)
    return {key: from_text(kind, key, value) for key, value in changes.items()}


def values_of(kind: type, values: Mapping[str, Any], *, where: object) -> dict[str, Any]:
    """The values of several fields, each as `field_value` has it; raises `InputError` for no table."""
    if not isinstance(values, Mapping):
        raise InputError("no table of settings", where=where, given=values)
    return {key: field_value(kind, key, value, where=where) for key, value in values.items()}


def made_of(kind: type[Fields], settings: Mapping[str, Any], *, where: object) -> Fields:
    """An instance of the class `kind` with these settings, as TOML has them."""
    values = values_of(kind, settings, where=where)
    try:
        return kind(**values)
    except InputError as error:
        raise InputError(str(error), where=where) from None


class Secret(str):
    """A text that is sent and never shown: its representation hides it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "(hidden)"


def secret(text: str, *, where: str) -> Secret:
    """The key without blanks around it; raises `InputError` for one that no header can hold."""
    key = text.strip()
    if not all("!" <= character <= "~" for character in key):
        problem = "not a key: it holds blanks, line breaks or characters beyond ASCII"
        given = f"{len(key):,} characters"
        raise InputError(problem, where=where, given=given, hint="is it one key, and nothing else?")
    return Secret(key)
