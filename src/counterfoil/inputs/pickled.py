"""Pickles of plain values, read without running anything in them and without NumPy's own unpickling.

NumPy itself would follow whatever a file calls a pointer, so stand-ins take the parts of its arrays as data.
"""

import pickle
from io import BytesIO
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from counterfoil.errors import DataError
from counterfoil.inputs.files import read_bytes

#: Kinds of types that are plain data.
_PLAIN = "biufSU"

#: How deep lists and dictionaries may be nested.
_DEPTH = 16

_BUILTINS: dict[str, Any] = {kind.__name__: kind for kind in (set, frozenset, str, int, float, bool, complex)}


class Type:
    """A stand-in for NumPy's types, as pickles make them: a code such as "f8", and an order of bytes."""

    def __init__(self, code: object = "", align: object = False, copy: object = False) -> None:
        self.code, self.order = code, "|"

    def __setstate__(self, state: object) -> None:
        # (version, order, subtype, names, fields, itemsize, alignment, flags)
        if not isinstance(state, tuple) or len(state) < 5 or state[2:5] != (None, None, None):
            raise ValueError("a type of several fields")
        if not isinstance(state[1], str):
            raise ValueError("no order of bytes")
        self.order = state[1]
        if isinstance(self.code, str) and self.code[:1] in "SU" and not self.code[1:]:
            self.code = f"{self.code}{int(state[5]) // (4 if self.code == 'U' else 1)}"

    def to_dtype(self) -> "np.dtype[Any] | None":
        """The type, None for that of objects."""
        if not isinstance(self.code, str) or self.order not in "<>|=" or len(self.code) > 20:
            raise ValueError("no type of numbers or texts")
        if self.code[:1] == "O":
            return None
        dtype: np.dtype[Any] = np.dtype(self.code)
        if dtype.kind not in _PLAIN or dtype.itemsize > 1 << 20:
            raise ValueError(f"a type of kind '{dtype.kind}'")
        return dtype.newbyteorder(">") if self.order == ">" else dtype


class Array:
    """A stand-in for NumPy's arrays: shape, type, order and the bytes (or the list of objects)."""

    def __init__(self, shape: object = (), kind: object = None, data: object = b"", order: object = "C"):
        self.shape, self.kind, self.data, self.order = shape, kind, data, order

    def __setstate__(self, state: object) -> None:
        # (version, shape, type, whether the first index runs fastest, data); version may be left out.
        parts = state[-4:] if isinstance(state, tuple) and len(state) in (4, 5) else ()
        if not parts:
            raise ValueError("no array")
        self.shape, self.kind, self.data = parts[0], parts[1], parts[3]
        self.order = "F" if parts[2] else "C"


def to_array(kind: object, data: object, shape: object, order: object = "C") -> Any:
    """Make an array of plain numbers or texts from its bytes; of objects, the flat list of them."""
    if not isinstance(kind, Type):
        raise ValueError("an array without a type")
    if not isinstance(shape, tuple) or not all(type(side) is int and side >= 0 for side in shape):
        raise ValueError("an array without a shape")
    dtype, count = kind.to_dtype(), prod(shape)
    if dtype is None:
        if not isinstance(data, list) or len(data) != count:
            raise ValueError("an array of other than its objects")
        return data
    if isinstance(data, str):
        # Bytes as Python 2 wrote them.
        data = data.encode("latin1")
    if not isinstance(data, bytes | bytearray) or len(data) != count * dtype.itemsize:
        raise ValueError("an array of other than its bytes")
    array = np.frombuffer(bytes(data), dtype=dtype, count=count) if count else np.empty(0, dtype)
    return array.reshape(shape, order="F" if order == "F" else "C")


def number(kind: object, data: object = b"") -> Any:
    """One number or text of a type from its bytes, as NumPy's scalars are pickled."""
    return to_array(kind, data, (1,)).tolist()[0]


def _bytes(data: object = b"", encoding: object = "latin1") -> bytes:
    """Bytes from what pickles keep of them; never as many zeros as a number says, as `bytes` itself would."""
    if isinstance(data, str):
        return data.encode("latin1")
    if not isinstance(data, bytes | bytearray | list):
        raise ValueError("bytes of nothing that holds them")
    return bytes(data)


_BUILTINS |= {"bytes": _bytes, "bytearray": _bytes}


def _latin(text: str, encoding: str) -> bytes:
    """How older pickles hold bytes."""
    if encoding != "latin1":
        raise _RefusedError(f"_codecs.encode to {encoding}")
    return text.encode("latin1")


#: What NumPy's own pickles call; where in NumPy these live has changed from release to release.
_NUMPY = {
    "_reconstruct": lambda subtype, shape, code: Array(),
    "_frombuffer": lambda data, kind, shape, order="C", *_: Array(shape, kind, data, order),
    "scalar": number,
}


def plain_pickle(path: Path) -> Any:
    """The value in a pickle of builtins and NumPy arrays; arrays of objects as lists."""
    data = read_bytes(path, hint="check the folder given with --data")
    try:
        return _plain(_Plain(BytesIO(data)).load(), _DEPTH, {})
    except _RefusedError as error:
        problem = "a pickle of more than texts, numbers and arrays is not read"
        allowed, hint = "builtins and numpy arrays", "a pickle may run what its author likes"
        raise DataError(problem, where=path, given=str(error), allowed=allowed, hint=hint) from None
    # A broken pickle can raise any exception in the unpickler.
    except Exception as error:
        words = " ".join(str(error).split())[:120] or type(error).__name__
        raise DataError(f"not a readable pickle: {words}", where=path, hint="is the file cut off?") from None


class _RefusedError(Exception):
    """A name in a pickle that is refused."""


# Python's own unpickler, not the one in C: that one makes room for what a damaged file claims.
class _Plain(pickle._Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if module in ("builtins", "__builtin__") and name in _BUILTINS:
            return _BUILTINS[name]
        if module == "numpy" and name in ("ndarray", "dtype"):
            return {"ndarray": Array, "dtype": Type}[name]
        if module.startswith(("numpy.core.", "numpy._core.")) and name in _NUMPY:
            return _NUMPY[name]
        if (module, name) == ("_codecs", "encode"):
            return _latin
        raise _RefusedError(f"{module}.{name}"[:120])


def _plain(value: Any, depth: int, seen: dict[int, Any]) -> Any:
    """The value with arrays in place of stand-ins; `known` has by identity what was made already."""
    if isinstance(value, str | bytes | bytearray | int | float | bool | complex | type(None)):
        return value
    if not depth:
        # A list can hold itself.
        raise ValueError("nested too deeply")
    if id(value) in seen:
        return seen[id(value)]
    plain: Any
    if isinstance(value, Array):
        plain = to_array(value.kind, value.data, value.shape, value.order)
        plain = _plain(plain, depth - 1, seen) if isinstance(plain, list) else plain
    elif isinstance(value, list | tuple | set | frozenset):
        plain = type(value)(_plain(item, depth - 1, seen) for item in value)
    elif isinstance(value, dict):
        plain = {key: _plain(item, depth - 1, seen) for key, item in value.items()}
    else:
        raise ValueError(f"a {type(value).__name__} by itself")
    seen[id(value)] = plain
    return plain
