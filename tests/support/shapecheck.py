"""The checks that the test run puts on every function and dataclass of the package: see conftest.py.

jaxtyping's decorator binds the arguments and checks them twice in every call, and its hook walks the whole
tree of a module to put it on every function. Here the decorator of this module is put where functions can
stand; beartype makes the check of a function when it is first called, and only a function whose annotations
name shapes opens a scope of axis names: in the first calls of a test the same is refused (test_shapecheck).
"""

import ast
import dataclasses
import functools
import inspect
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, FunctionType, ModuleType
from typing import Any, get_args, get_type_hints

import jaxtyping
from beartype import BeartypeConf, beartype

# As in PEP 484, an int will do where a float is asked for.
check = beartype(conf=BeartypeConf(is_pep484_tower=True, violation_type=TypeError))

# Unwrapped: the search for doctests imports this module once more, under another name.
_with_shapes = inspect.unwrap(jaxtyping.jaxtyped)
_scope = _with_shapes("context")


#: So many calls of a function in a test are checked, since some are called a million times; and so many of a
#: function within a function, which is made anew at each call of that one, in a process.
MOST, MOST_MADE = 10, 5
_test = 0
_made: Counter[CodeType | None] = Counter()

#: Ends the names of the kept bytecode, which is not Python's own; another one for other marks.
_KEPT = ".checked-1.pyc"


def begin_test() -> None:
    """Check the next calls of every function again."""
    global _test
    _test += 1


def install() -> None:
    """Check all that is imported from the package after this call."""
    sys.meta_path.insert(0, _Finder())


class _Finder:
    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: Any = None
    ) -> ModuleSpec | None:
        if name.partition(".")[0] != "counterfoil":
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


class _Loader(SourceFileLoader):
    def exec_module(self, module: ModuleType) -> None:
        vars(module)["__checked__"] = checked
        super().exec_module(module)

    def source_to_code(self, data: Any, path: Any, *, _optimize: int = -1) -> CodeType:
        tree = compile(data, path, "exec", ast.PyCF_ONLY_AST, dont_inherit=True, optimize=_optimize)
        _mark(tree)
        return compile(tree, path, "exec", dont_inherit=True, optimize=_optimize)

    def get_data(self, path: str) -> bytes:
        return super().get_data(_kept(path))

    def set_data(self, path: str, data: bytes, *, _mode: int = 0o666) -> None:
        super().set_data(_kept(path), data, _mode=_mode)


def _kept(path: str) -> str:
    return path.removesuffix(".pyc") + _KEPT if path.endswith(".pyc") else path


def _mark(tree: ast.AST) -> None:
    """Put `checked` on every function, below its decorators, and on every class, above them."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):
            waiting += getattr(node, part, [])
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            mark = ast.copy_location(ast.Name("__checked__", ast.Load()), node)
            marks = node.decorator_list
            marks.insert(0 if isinstance(node, ast.ClassDef) else len(marks), mark)


def checked(thing: Any) -> Any:
    """A class, whose ``__init__`` is checked where it is a dataclass, or a checked function."""
    if not inspect.isclass(thing):
        if isinstance(thing, FunctionType) and "<locals>" in thing.__qualname__:
            _made[thing.__code__] += 1
        often = _made[getattr(thing, "__code__", None)] > MOST_MADE
        return thing if often else _checked_function(thing)
    made = vars(thing).get("__init__")
    if dataclasses.is_dataclass(thing) and made is not None and not hasattr(made, "__wrapped__"):
        thing.__init__ = _checked_function(made)
    return thing


def _checked_function(function: Callable[..., Any]) -> Callable[..., Any]:
    if not isinstance(function, FunctionType):
        return _with_shapes(function, typechecker=check)
    if inspect.isgeneratorfunction(function):
        # beartype would check a generator's arguments at its first step, and each value that it yields.
        copy, shapes, make = function, False, functools.partial(_with_shapes, function, typechecker=check)
    else:
        hints = _hints(function)
        copy, shapes = _annotated(function, hints), any(map(_names_shapes, hints.values()))
        make = functools.partial(check, copy)
    inner: Any = None
    test = calls = 0

    @functools.wraps(function if shapes else copy)
    def checking(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        nonlocal inner, test, calls
        if test != _test:
            test, calls = _test, 0
        if calls >= MOST:
            return copy(*args, **kwargs)
        calls += 1
        if inner is None:
            # Most functions are imported and never called, and a check takes a millisecond to make.
            inner = make()
        if not shapes:
            return inner(*args, **kwargs)
        with _scope:
            return inner(*args, **kwargs)

    return checking


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
