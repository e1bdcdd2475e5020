"""Fields of dataclasses from what files and command lines hold: every key known, every value of its type."""

import re
from collections.abc import Callable, Mapping
from dataclasses import field, fields
from difflib import get_close_matches
from types import NoneType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from counterfoil.errors import InputError

Made = TypeVar("Made")

#: A comma between two pairs KEY=VALUE.
_NEXT_PAIR = r",(?=[\w.-]+=)"


def setting(default: Any, help: str, **declared: Any) -> Any:
    """A field of a dataclass with its help and what else an `Option` declares, such as `low` and `high`."""
    return field(default=default, metadata={"help": help, **declared})


def field_types(kind: type) -> dict[str, Any]:
    """The type of each field of a dataclass, in order.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Sampling:
    ...     k: int = 4
    >>> field_types(Sampling)
    {'k': <class 'int'>}
    """
    types = get_type_hints(kind)
    return {field.name: types[field.name] for field in fields(kind)}


def type_of(kind: type, key: str, *, where: object) -> Any:
    """The type of one field; raises `InputError` with the nearest name where there is none of this name."""
    hints = field_types(kind)
    if key not in hints:
        near = get_close_matches(key, hints, n=1, cutoff=0.5)
        raise InputError(
            "unknown key",
            where=where,
            given=key,
            allowed=sorted(hints) or "none",
            hint=f"did you mean '{near[0]}'?" if near else None,
        )
    return hints[key]


def field_value(kind: type, key: str, value: Any, *, where: object) -> Any:
    """The value of a field as the dataclass holds it, from TOML's or the caller's.

    Raises `InputError` for a key that the dataclass does not have, and a value of another type.
    """
    words, convert = _kind(type_of(kind, key, where=where))
    converted = convert(value)
    if converted is _WRONG:
        given = f"'{value}'" if isinstance(value, str) else value
        raise InputError("wrong value", where=f"{where}, key '{key}'", given=given, allowed=words)
    return converted


def from_text(kind: type, key: str, text: str) -> Any:
    """What TOML would hold for the value of a field as typed: 0.1, none, yes, adamp, 0.9,0.98.

    Commas part the values of a tuple; of pairs KEY=VALUE those alone that another key follows at once. Of a
    field that the dataclass does not have the text itself.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Rated:
    ...     by: tuple[str, ...] = ()
    >>> from_text(Rated, "by", "vera,cola"), from_text(Rated, "by", "prompt=Yes, or no?,end=in")
    (['vera', 'cola'], ['prompt=Yes, or no?', 'end=in'])
    """
    hint = field_types(kind).get(key)
    if hint is None:
        return text
    hint = _without_none(hint)
    if get_origin(hint) is tuple:
        comma = _NEXT_PAIR if "=" in text.partition(",")[0] else ","
        parts = [] if text in ("none", "") else re.split(comma, text)
        return parts if get_args(hint)[0] is str else [_number(part) for part in parts]
    if hint is bool:
        return {"yes": True, "true": True, "no": False, "false": False}.get(text.lower(), text)
    if hint is str or get_origin(hint) is Literal:
        return text
    return _number(text)


def values_of(kind: type, values: Mapping[str, Any], *, where: object) -> dict[str, Any]:
    """The values of several fields, each as `field_value` has it."""
    return {key: field_value(kind, key, value, where=where) for key, value in values.items()}


def made_of(kind: type[Made], settings: Mapping[str, Any], *, where: object) -> Made:
    """An instance of the class `kind` with these settings, as TOML has them.

    Raises `InputError`, which names `where`, for a key that it does not have and a value that it does not
    allow.
    """
    values = values_of(kind, settings, where=where)
    try:
        return kind(**values)
    except InputError as error:
        raise InputError(str(error), where=where) from None


def _without_none(hint: Any) -> Any:
    arguments = get_args(hint)
    if NoneType in arguments:
        return next(argument for argument in arguments if argument is not NoneType)
    return hint


def _number(text: str) -> Any:
    for to in (int, float):
        try:
            return to(text)
        except ValueError:
            continue
    return text


#: What a conversion answers where there is none; None is a value.
_WRONG: Any = object()


def _kind(hint: Any) -> tuple[str, Callable[[Any], Any]]:
    """What a type allows, in words, and how a value becomes one."""
    arguments = get_args(hint)
    if get_origin(hint) is Literal:
        return ", ".join(arguments), lambda value: value if value in arguments else _WRONG
    if get_origin(hint) is tuple:
        return (
            ("one or more words", _texts) if arguments[0] is str else ("two numbers, such as 0.9,0.98", _pair)
        )
    if NoneType in arguments:
        words, convert = _kind(_without_none(hint))
        return f"{words}, or none", lambda value: None if value in (None, "none") else convert(value)
    return {
        bool: ("yes or no", lambda value: value if isinstance(value, bool) else _WRONG),
        int: ("a whole number", _whole),
        float: ("a number", _real),
        str: ("a word", lambda value: value if isinstance(value, str) and value else _WRONG),
    }[hint]


def _whole(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else _WRONG


def _real(value: Any) -> Any:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else _WRONG


def _pair(value: Any) -> Any:
    if not isinstance(value, list | tuple) or len(value) != 2:
        return _WRONG
    pair = tuple(_real(number) for number in value)
    return _WRONG if _WRONG in pair else pair


def _texts(value: Any) -> Any:
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list | tuple) or not all(isinstance(text, str) and text for text in value):
        return _WRONG
    return tuple(value)
