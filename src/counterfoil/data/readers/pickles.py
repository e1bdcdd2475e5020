"""Pickles of plain values: nothing in them is called but what makes texts, numbers, lists and arrays."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np

from counterfoil.errors import DataError

_BUILTINS = {
    kind.__name__: kind for kind in (set, frozenset, bytearray, bytes, str, int, float, bool, complex)
}

# What numpy's own pickles call; where in numpy these live has changed from release to release.
_MAKERS: list[Any] = [
    made[0] for made in (np.zeros(1).__reduce__(), np.float64(0).__reduce__(), np.zeros(1).__reduce_ex__(5))
]
_ARRAYS = {maker.__name__: maker for maker in _MAKERS}
_NUMPY = {"ndarray": np.ndarray, "dtype": np.dtype}


def plain_pickle(path: Path) -> Any:
    """The value in a pickle of builtins and numpy arrays.

    Raises `DataError` where it would call anything else, and where it is missing, cut off or no pickle.
    """
    try:
        with open(path, "rb") as file:
            return _Plain(file).load()
    except FileNotFoundError:
        raise DataError("no such file", where=path, hint="check the folder given with --data") from None
    except _RefusedError as error:
        raise DataError(
            "a pickle of more than texts, numbers and arrays is not read",
            where=path,
            given=str(error),
            allowed="builtins and numpy arrays",
            hint="a pickle may run what its author likes",
        ) from None
    # A broken pickle makes the unpickler stumble over anything.
    except Exception as error:
        raise DataError(f"not a readable pickle: {error}", where=path, hint="is the file cut off?") from None


class _RefusedError(Exception):
    """A name that a pickle asks for and does not get."""


class _Plain(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if module in ("builtins", "__builtin__") and name in _BUILTINS:
            return _BUILTINS[name]
        if module == "numpy" and name in _NUMPY:
            return _NUMPY[name]
        if module.startswith(("numpy.core.", "numpy._core.")) and name in _ARRAYS:
            return _ARRAYS[name]
        if (module, name) == ("_codecs", "encode"):
            return _latin
        raise _RefusedError(f"{module}.{name}")


def _latin(text: str, encoding: str) -> bytes:
    """How older pickles hold bytes."""
    if encoding != "latin1":
        raise _RefusedError(f"_codecs.encode to {encoding}")
    return text.encode("latin1")
