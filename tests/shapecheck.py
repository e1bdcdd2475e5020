"""The checks that the test run puts on every function and dataclass of the package: see conftest.py.

jaxtyping's decorator binds the arguments and checks them twice in every call, and its hook puts it on every
function. Here beartype checks each function once, and only a function whose annotations name shapes opens a
scope of axis names: the same is refused, in a fifth of the time (test_shapecheck.py).
"""

import dataclasses
import functools
import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any, get_args, get_type_hints

import jaxtyping
from beartype import BeartypeConf, beartype

# As in PEP 484, an int will do where a float is asked for.
check = beartype(conf=BeartypeConf(is_pep484_tower=True, violation_type=TypeError))

# Unwrapped: the search for doctests imports this module once more, under another name.
_with_shapes = inspect.unwrap(jaxtyping.jaxtyped)
_scope = _with_shapes("context")


def install() -> None:
    """Check all that is imported from the package after this call."""

    @functools.wraps(_with_shapes)
    def decorator(*, typechecker: object) -> Callable[[Any], Any]:
        return checked

    jaxtyping.jaxtyped = decorator
    jaxtyping.install_import_hook("counterfoil", "shapecheck.check")


def checked(thing: Any) -> Any:
    """A class, whose ``__init__`` is checked where it is a dataclass, or a checked function."""
    if not inspect.isclass(thing):
        return _checked_function(thing)
    made = vars(thing).get("__init__")
    if dataclasses.is_dataclass(thing) and made is not None and not hasattr(made, "__wrapped__"):
        thing.__init__ = _checked_function(made)
    return thing


def _checked_function(function: Callable[..., Any]) -> Callable[..., Any]:
    if not isinstance(function, FunctionType) or inspect.isgeneratorfunction(function):
        # beartype would check a generator's arguments at its first step, and each value that it yields.
        return _with_shapes(function, typechecker=check)
    hints = _hints(function)
    inner = check(_annotated(function, hints))
    if not any(map(_names_shapes, hints.values())):
        return inner

    @functools.wraps(function)
    def scoped(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        with _scope:
            return inner(*args, **kwargs)

    return scoped


def _hints(function: FunctionType) -> dict[str, Any]:
    """Annotations without strings. One whose name is imported for type checkers alone is not checked."""
    try:
        return get_type_hints(function, include_extras=True)
    except Exception:
        hints = {}
        for name, hint in function.__annotations__.items():
            try:
                hints |= get_type_hints(_annotated(function, {name: hint}), include_extras=True)
            except Exception:
                hints[name] = Any
        return hints


def _annotated(function: FunctionType, hints: dict[str, Any]) -> FunctionType:
    """The function with other annotations."""
    code, namespace, closure = function.__code__, function.__globals__, function.__closure__
    copy = FunctionType(code, namespace, function.__name__, function.__defaults__, closure)
    copy.__kwdefaults__ = function.__kwdefaults__
    functools.update_wrapper(copy, function)
    del copy.__wrapped__
    copy.__annotations__ = hints
    return copy


def _names_shapes(hint: Any) -> bool:
    if inspect.isclass(hint) and issubclass(hint, jaxtyping.AbstractArray):
        return True
    return any(map(_names_shapes, get_args(hint)))
