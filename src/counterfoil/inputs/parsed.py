"""JSON and TOML within bounds: values nested no deeper and numbers no longer than anything sensible needs."""

import json
import tomllib
from collections.abc import Collection
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from counterfoil.errors import DataError
from counterfoil.inputs.files import decoded, read_bytes

#: How deep lists and objects may be nested. Files of this field stay below ten.
MAX_DEPTH = 64

_CUT = "is the file cut off?"


def read_json(path: str | Path) -> Any:
    """The value in a JSON file; raises `DataError` with line and column of what is broken or doubled.

    NaN and infinities, which Python's json reads though they are no JSON, are refused: for files that
    counterfoil wrote itself, and for settings. Values of others' tables go through `parse_json`.
    """
    return parse_json(decoded(read_bytes(path), where=path), where=path, finite=True)


def parse_json(text: str, *, where: object, without: Collection[str] = (), finite: bool = False) -> Any:
    """The JSON value in `text`; raises `DataError` with line and column of what is broken or doubled.

    Keys in `without` are dropped from every object as soon as it is read. NaN, Infinity and -Infinity are
    read as such, or with `finite` refused. Lists and objects may be nested `MAX_DEPTH` deep.

    >>> parse_json('{"a": 1, "a": 2}', where="x.json")
    Traceback (most recent call last):
    counterfoil.errors.DataError: x.json: key occurs twice in a JSON object; given: 'a'
    """
    try:
        value = json.loads(
            text,
            object_pairs_hook=partial(_once, where, without),
            parse_constant=partial(_refuse, where) if finite else None,
        )
    except json.JSONDecodeError as error:
        raise DataError(
            f"not valid JSON: {error.msg}",
            where=f"{where}, line {error.lineno}, column {error.colno}",
            hint=_CUT,
        ) from None
    except RecursionError:
        raise _too_deep("JSON", where) from None
    except ValueError:
        # Python converts no text of more than 4,300 digits into a whole number.
        raise DataError("a number in the JSON has thousands of digits", where=where) from None
    # Only a text with so many opening brackets can be nested so deep.
    if text.count("[") + text.count("{") > MAX_DEPTH:
        _check_depth(value, "JSON", where)
    return value


def read_toml(path: str | Path, *, hint: str = "check the path") -> dict[str, Any]:
    """The table in a TOML file; raises `DataError` naming what is broken, with `hint` where there is none."""
    return parse_toml(decoded(read_bytes(path, hint=hint), where=path), where=path)


def parse_toml(text: str, *, where: object) -> dict[str, Any]:
    """The table in a TOML text; raises `DataError` naming what is broken.

    >>> parse_toml("steps = ", where="mine.toml")
    Traceback (most recent call last):
    counterfoil.errors.DataError: mine.toml: not valid TOML: Invalid value (at end of document)
    """
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"not valid TOML: {error}", where=where) from None
    except RecursionError:
        raise _too_deep("TOML", where) from None
    except (ValueError, OverflowError) as error:
        # A date of a thirteenth month, an offset of 30 hours, a number of thousands of digits.
        raise DataError(f"not valid TOML: {error}", where=where) from None
    _check_depth(found, "TOML", where)
    return found


def _once(where: object, without: Collection[str], pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        double = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise DataError("key occurs twice in a JSON object", where=where, given=f"'{double[:60]}'")
    for name in without:
        found.pop(name, None)
    return found


def _refuse(where: object, constant: str) -> Any:
    raise DataError("not valid JSON: not a finite number", where=where, given=constant)


def _check_depth(value: Any, kind: str, where: object) -> None:
    """Raise `DataError` where lists and objects are nested deeper than `MAX_DEPTH`; level by level."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(MAX_DEPTH):
        inner = chain.from_iterable(each.values() if isinstance(each, dict) else each for each in level)
        level = [each for each in inner if isinstance(each, dict | list)]
        if not level:
            return
    raise _too_deep(kind, where)


def _too_deep(kind: str, where: object) -> DataError:
    return DataError(f"{kind} nested too deeply", where=where, allowed=f"at most {MAX_DEPTH} levels")
