"""The weights that a scorer holds, found and digested where its identity does not name them.

Two networks under one name must never share what a cache keeps. So an identity says which weights it is of,
or which version of the code where there are none; of a scorer that says neither, its torch modules, tensors
and NumPy arrays are looked for among its attributes.
"""

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from counterfoil.errors import InputError
from counterfoil.scorers.base import Identity
from counterfoil.store import digest, digest_value

#: How deep attributes of attributes are looked into, and where the `repr` of an object names its place.
_DEPTH = 6
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def identity_of(scorer: Any) -> Identity:
    """The scorer's identity; without `weights` in it, with the digest of the weights that the scorer holds.

    Those are all torch modules (every parameter and buffer, and the structure that prints), tensors and NumPy
    arrays among its attributes: also in lists, dictionaries and objects, behind bound methods, partial
    functions and closures. They are read at every call, so a network that is trained on between two runs has
    two identities. A scorer that holds none keeps its identity as it is.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Bilinear:
    ...     matrix: np.ndarray
    ...     identity: Identity = Identity("bilinear")
    >>> one, other = (identity_of(Bilinear(np.full((2, 2), value))) for value in (0.0, 1.0))
    >>> one.name == other.name, one.key == other.key
    (True, False)
    """
    identity: Identity = scorer.identity
    if identity.weights:
        return identity
    held = {name: _digest(value) for name, value in _found(scorer, "", set(), _DEPTH)}
    return replace(identity, weights=digest_value(held)) if held else identity


def check_kept(identity: Identity) -> None:
    """Raise `InputError` where an identity says nothing that would change with the weights or the code."""
    if not (identity.weights or identity.revision):
        raise InputError(
            "what this scorer computes cannot be kept: its identity has neither weights nor a revision, so "
            "another model of this name would get its scores",
            where=identity.name,
            hint='Identity(NAME, revision="1") with a number that you raise when the code changes, '
            "Identity(NAME, weights=DIGEST), or no cache",
        )


def _found(value: Any, name: str, seen: set[int], depth: int) -> Iterator[tuple[str, Any]]:
    """The modules, tensors and arrays reached from `value`, each once, by the way that leads there."""
    if id(value) in seen or depth < 0:
        return
    seen.add(id(value))
    if _is_torch(value) or (isinstance(value, np.ndarray) and value.dtype != object):
        yield name, value
        return
    for part, inner in _inside(value):
        yield from _found(inner, f"{name}.{part}", seen, depth - 1)


def _inside(value: Any) -> list[tuple[str, Any]]:
    """What `value` holds, with a name for each that is the same in every process."""
    if isinstance(value, str | bytes | int | float | complex | type | ModuleType | None):
        return []
    if isinstance(value, Mapping):
        return [(str(key), inner) for key, inner in value.items()]
    if isinstance(value, list | tuple):
        return [(str(i), inner) for i, inner in enumerate(value)]
    if isinstance(value, partial):
        return [("func", value.func), ("args", value.args), ("keywords", value.keywords)]
    if isinstance(value, MethodType):
        return [("self", value.__self__)]
    if isinstance(value, FunctionType):
        cells = zip(value.__code__.co_freevars, value.__closure__ or (), strict=True)
        return [(name, cell.cell_contents) for name, cell in cells if _filled(cell)]
    slots = [name for kind in type(value).__mro__ for name in _slots(kind)]
    named = {name: getattr(value, name) for name in slots if hasattr(value, name)}
    return list({**named, **getattr(value, "__dict__", {})}.items())


def _slots(kind: type) -> tuple[str, ...]:
    slots = kind.__dict__.get("__slots__", ())
    return tuple(
        name for name in ((slots,) if isinstance(slots, str) else slots) if not name.startswith("__")
    )


def _filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:  # not yet assigned
        return False


def _is_torch(value: Any) -> bool:
    # Where torch was never imported, nothing of it can be held.
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.nn.Module | torch.Tensor)


def _digest(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return digest(f"{value.dtype} {value.shape};".encode() + value.tobytes())
    from counterfoil.scorers.runtime import digest_tensors

    if not hasattr(value, "named_parameters"):
        return digest_tensors({"": value})
    state = {**dict(value.named_parameters()), **dict(value.named_buffers())}
    # What no tensor tells, an activation say, is in what the module prints.
    return digest_value([_ADDRESS.sub("", repr(value)), digest_tensors(state)])
