"""Arguments of jobs, declared once: type, range, default and help, from which every value is converted.

An argument is declared where a function takes it, `draws: Annotated[int, Option("Draws.", 100, low=1)]`, or
as a row of a `TypedDict` whose rows several functions take as `**options: Unpack[Rows]`.
"""

import os
import re
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from functools import cache, cached_property, wraps
from inspect import Parameter, signature
from math import isfinite
from operator import index
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, ParamSpec, TypeVar, Union, Unpack, get_args, get_origin

from counterfoil.errors import URL, DataError, InputError

P = ParamSpec("P")
R = TypeVar("R")

#: The default of an argument that has to be given.
REQUIRED: Any = Parameter.empty


@dataclass(frozen=True)
class Option:
    """What is declared of an argument beside its type."""

    help: str
    default: Any = REQUIRED
    low: float | None = None
    high: float | None = None
    #: Bounds that a number does not reach itself.
    above: float | None = None
    below: float | None = None
    #: How many values a sequence has at least.
    least: int = 0
    #: Names that texts are taken from, where its type does not list them.
    among: Sequence[str] = ()
    #: A regular expression that the value as a text matches as a whole; errors say the `metavar`.
    pattern: str = ""
    #: Whether it is a folder that is read, and so is there even where nothing in it is needed.
    folder: bool = False
    #: The option of the command line, where it is not the name with hyphens.
    flag: str = ""
    metavar: str = ""
    #: The heading in the help of commands.
    panel: str = ""
    #: The default in words, where its value says little.
    shown: str = ""
    #: The kind of names that a shell completes (`counterfoil.cli.completion`).
    complete: str = ""
    #: The environment variable that is read where the option is not given.
    variable: str = ""
    #: Whether one text holds several values with commas between.
    commas: bool = False
    #: Python alone has the argument.
    hidden: bool = False


def with_default(option: Option, default: Any, **changed: Any) -> Option:
    """The same option with another default, and whatever else is different."""
    return replace(option, default=default, **changed)


@dataclass(frozen=True)
class Argument:
    """An argument of a function: its name, the types that it may have, and what was declared of it."""

    name: str
    hint: Any
    option: Option
    positional: bool = False

    @property
    def flag(self) -> str:
        """The option of the command line."""
        return self.option.flag or f"--{self.name.replace('_', '-')}"

    @property
    def default(self) -> Any:
        """Its value where none is given, `REQUIRED` where one must be."""
        return self.option.default

    @cached_property
    def members(self) -> tuple[Any, ...]:
        """The types that a single value may have, without None and sequences of them."""
        return tuple(_members(self.hint))

    @cached_property
    def choices(self) -> tuple[Any, ...]:
        """The values that it may have, where they are listed."""
        return tuple(
            choice for kind in self.members if get_origin(kind) is Literal for choice in get_args(kind)
        )

    @cached_property
    def several(self) -> bool:
        """Whether it may have several values."""
        return any(_is_sequence(kind) for kind in _parts(self.hint))

    @cached_property
    def length(self) -> int | None:
        """How many values it has, where its type says so."""
        of_tuples = (get_args(kind) for kind in _parts(self.hint) if _origin(kind) is tuple)
        return next((len(kinds) for kinds in of_tuples if kinds[-1] is not Ellipsis), None)

    @property
    def optional(self) -> bool:
        """Whether it may be None."""
        return NoneType in _parts(self.hint)

    @property
    def mapping(self) -> bool:
        """Whether it is values by name: KEY=VALUE on the command line."""
        return any(get_origin(kind) is Mapping or kind is Mapping for kind in map(_origin, self.members))

    @property
    def allowed(self) -> str:
        """The values that it may have, in words; empty where any will do."""
        option = self.option
        if names := self.choices or option.among:
            return ", ".join(map(str, names))
        if None not in (option.low, option.high):
            return f"{option.low:,} to {option.high:,}"
        if None not in (option.above, option.below):
            return f"between {option.above:,} and {option.below:,}"
        bounds = {
            "above {:,}": option.above,
            "{:,} or more": option.low,
            "below {:,}": option.below,
            "at most {:,}": option.high,
        }
        return ", ".join(words.format(bound) for words, bound in bounds.items() if bound is not None)

    @property
    def left_open(self) -> "Argument":
        """The same argument, None where it is not given; help shows its default all the same."""
        default = self.default
        if isinstance(default, bool):
            shown = "yes" if default else "no"
        elif isinstance(default, tuple):
            shown = ",".join(map(str, default))
        else:
            shown = "" if default in (None, REQUIRED) else str(default)
        return replace(self, option=with_default(self.option, None, shown=shown), positional=False)

    def converted(self, value: Any, where: str) -> Any:
        """The value as the function takes it; raises `InputError` at `where` for one it does not."""
        if value is None:
            if self.optional or self.default is None:
                return None
            raise InputError("no value", where=where, given="None", allowed=self.allowed or None)
        if Any not in self.members and hasattr(value, "tolist"):
            # Of NumPy and pandas: an array, a column, or a single value.
            value = value.tolist()
        if self.option.commas and isinstance(value, str):
            value = [text.strip() for text in value.split(",")]
        if self.several and isinstance(value, list | tuple):
            if len(value) < self.option.least or self.length not in (None, len(value)):
                wanted = "one or more" if self.length is None else f"{self.length} of them"
                raise InputError("number of values", where=where, given=len(value), allowed=wanted)
            return tuple(self._one(single, where) for single in value)
        one = self._one(value, where)
        alone = [kind for kind in _parts(self.hint) if not _is_sequence(kind) and kind is not NoneType]
        several = isinstance(one, str) and str not in alone if alone else True
        return (one,) if self.several and several else one

    def _one(self, value: Any, where: str) -> Any:
        members = self.members
        if self.mapping and isinstance(value, Mapping):
            odd = [key for key in value if not isinstance(key, str)]
            if odd:
                raise InputError("a name that is no text", where=where, given=odd[0])
        text = str(value) if isinstance(value, str | Path) else ""
        if "\0" in text or text.encode("utf-8", "replace").decode() != text:
            raise InputError("text that is no valid Unicode", where=where, given=ascii(text))
        if isinstance(value, str) and not value and Path in members:
            raise InputError("no name of a file or folder", where=where, given="(empty)")
        if bool in members and not isinstance(value, bool):
            raise InputError("neither True nor False", where=where, given=value)
        if int in members or float in members:
            value = self._number(value, where)
        elif Path in members and str not in members and isinstance(value, str):
            value = Path(value)
        elif members == (str,) and isinstance(value, os.PathLike):
            value = os.fspath(value)
        if self.option.folder and text and not (URL.fullmatch(text) or os.path.isdir(text)):
            raise DataError("no such folder", where=text, hint=f"check {where}")
        if self.option.among and value not in self.option.among:
            raise InputError("not a choice", where=where, given=value, allowed=self.allowed)
        if (pattern := self.option.pattern) and not re.fullmatch(pattern, str(value)):
            raise InputError("wrong form", where=where, given=value, allowed=self.option.metavar or pattern)
        if isinstance(value, str) and self.choices:
            if value not in self.choices and str not in members:
                raise InputError("not a choice", where=where, given=value, allowed=self.allowed)
        elif Any not in members and not isinstance(value, tuple(_class_of(kind) for kind in members)):
            names = sorted({_NAMES.get(_class_of(kind), _class_of(kind).__name__) for kind in members})
            kind = type(value).__name__
            allowed = self.allowed or " or ".join(names)
            raise InputError("wrong type", where=where, given=kind, allowed=allowed)
        return value

    def _number(self, value: Any, where: str) -> Any:
        whole = float not in self.members
        try:
            if isinstance(value, bool):
                raise TypeError(value)
            as_written = isinstance(value, str) or (isinstance(value, float) and value.is_integer())
            number = float(value) if not whole else int(value) if as_written else index(value)
            option = self.option
            inside = (
                isfinite(number)
                and (option.low is None or option.low <= number)
                and (option.high is None or number <= option.high)
                and (option.above is None or option.above < number)
                and (option.below is None or number < option.below)
            )
        except (TypeError, ValueError, OverflowError):
            if any(kind not in (int, float) for kind in self.members):
                return value
            wanted = "a whole number" if whole else "a number"
            allowed = self.allowed or None
            raise InputError(f"not {wanted}", where=where, given=value, allowed=allowed) from None
        if not inside:
            raise InputError("out of range", where=where, given=value, allowed=self.allowed or "a number")
        return number


def arguments_of(function: Callable[..., Any]) -> list[Argument]:
    """The declared arguments of a function, rows of its `**options` one by one.

    `**options: Annotated[Any, Rows, Model]` are the rows of several classes.
    """
    arguments = []
    for parameter in signature(function).parameters.values():
        hint = parameter.annotation
        if parameter.kind is Parameter.VAR_KEYWORD:
            tables = get_args(hint)[:1] if get_origin(hint) is Unpack else getattr(hint, "__metadata__", ())
            arguments += [argument for rows in tables for argument in rows_of(rows)]
        elif parameter.name not in ("self", "cls") and not isinstance(hint, str):
            option = _option(hint) or Option("", hidden=True)
            if parameter.default is not Parameter.empty:
                option = replace(option, default=parameter.default)
            positional = parameter.kind is not Parameter.KEYWORD_ONLY
            arguments.append(Argument(parameter.name, hint, option, positional))
    return arguments


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """The function, which converts its arguments as they are declared; raises `InputError`."""
    of_function = signature(function)

    @wraps(function)
    def call(*given: P.args, **named: P.kwargs) -> R:
        try:
            bound = of_function.bind(*given, **named)
        except TypeError as error:
            raise InputError(str(error), where=f"{function.__name__}()") from None
        for argument in arguments_of(function):
            if argument.name in bound.arguments:
                place = f"{function.__name__}(), argument '{argument.name}'"
                bound.arguments[argument.name] = argument.converted(bound.arguments[argument.name], place)
        return function(*bound.args, **bound.kwargs)

    return call


def rows_of(rows: type) -> list[Argument]:
    """The declared rows of a `TypedDict`, or the fields of a dataclass that have a help.

    A field that is not given is None: what holds then is the dataclass's own default, which help shows.
    """
    if is_dataclass(rows):
        return [argument.left_open for argument in fields_of(rows).values() if argument.option.help]
    hints = rows.__annotations__
    options = {name: _option(hint) for name, hint in hints.items()}
    return [Argument(name, hints[name], option) for name, option in options.items() if option is not None]


def fields_of(kind: type) -> Mapping[str, Argument]:
    """The fields of a dataclass as arguments, in order; what a class declares holds in its subclasses."""
    hashable: Any = kind
    return _fields_of(hashable)


@cache
def _fields_of(kind: Any) -> Mapping[str, Argument]:
    types, arguments = typing.get_type_hints(kind), {}
    by_class = [vars(base).get("__dataclass_fields__", {}) for base in kind.__mro__]
    for field in fields(kind):
        declared = (of[field.name].metadata for of in by_class if field.name in of)
        nearest: Mapping[str, Any] = next(filter(None, declared), {})
        option_fields = {
            name: value for name, value in nearest.items() if name in Option.__dataclass_fields__
        }
        default = REQUIRED if field.default is MISSING else field.default
        option = Option(**{"help": "", **option_fields, "default": default})
        arguments[field.name] = Argument(field.name, types[field.name], option)
    return arguments


def given_of(rows: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """Of `values` those of these rows that were given."""
    names = [argument.name for argument in rows_of(rows)]
    return {name: values[name] for name in names if values.get(name) is not None}


def key_values(pairs: Sequence[str], where: str, example: str = "references=paper") -> dict[str, str]:
    """The values of pairs KEY=VALUE by key; raises `InputError` for no such pair, and a key twice."""
    values: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise InputError(f"{where} needs KEY=VALUE", given=pair, allowed=f"such as {example}")
        if key in values:
            raise InputError(f"{where} names one key twice", given=pair)
        values[key] = value
    return values


def _option(hint: Any) -> Option | None:
    metadata = getattr(hint, "__metadata__", ())
    return next((entry for entry in metadata if isinstance(entry, Option)), None)


def _origin(hint: Any) -> Any:
    return get_origin(hint) or hint


def _parts(hint: Any) -> Iterator[Any]:
    """The members of a union, or the type itself."""
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    if get_origin(hint) in (Union, UnionType):
        for part in get_args(hint):
            yield from _parts(part)
    else:
        yield hint


def _is_sequence(kind: Any) -> bool:
    return _origin(kind) in (Sequence, list, tuple)


def _members(hint: Any) -> Iterator[Any]:
    for part in _parts(hint):
        if _is_sequence(part):
            yield from _members(get_args(part)[0])
        elif part is not NoneType:
            yield part


#: What messages call a type.
_NAMES: dict[type, str] = {str: "a text", Path: "a path", Mapping: "values by name"}


def _class_of(kind: Any) -> type:
    """The class of a type: of listed values that of texts."""
    return str if get_origin(kind) is Literal else _origin(kind)
