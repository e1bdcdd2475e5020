"""Arrays in npy and npz files: numbers and strings, never objects, and never more than the file holds.

NumPy makes room for what a header claims and hands objects to pickle, so the header is checked before.
"""

import io
import os
import warnings
import zipfile
import zlib
from collections.abc import Collection
from math import prod
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy import ndarray
from numpy.typing import NDArray

from counterfoil.errors import DataError
from counterfoil.inputs.files import regular, unreadable
from counterfoil.inputs.limits import check_room, size

#: Kinds of NumPy types that are plain data: truth, whole numbers, floats, bytes and texts.
PLAIN = "biufSU"

#: Bytes of a member of an archive up to which asking how much memory is free takes longer than reading it.
_SMALL = 4 * 2**20

_NPY = b"\x93NUMPY"
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_PLAIN_WORDS = "numbers or strings, never pickled objects"
_CUT = "is the file cut off?"


def read_npy(path: str | Path, *, mapped: bool = False, hint: str = "check the path") -> ndarray:
    """The array in an npy file; with `mapped` it stays on the disk until it is looked at."""
    status = regular(path, hint=hint)
    try:
        with open(path, "rb") as file:
            start = file.read(len(_NPY))
            if start.startswith(_ZIP) or not status.st_size:
                problem = "the file is empty" if not start else "is an npz file, not one array"
                raise DataError(problem, where=path, hint="save it with numpy.save")
            file.seek(0)
            shape, order, kind = _header(file, path)
            begin = file.tell()
            held, claimed = status.st_size - begin, prod(shape) * kind.itemsize
            if claimed > held:
                raise _other_size("less", held, claimed, shape, kind, path)
            if mapped and claimed:
                return np.memmap(path, dtype=kind, mode="r", offset=begin, shape=shape, order=order)
            check_room(claimed, where=path, what=_words(shape, kind))
            return np.fromfile(file, dtype=kind, count=prod(shape)).reshape(shape, order=order)
    except OSError as error:
        raise unreadable(path, error) from None


def read_npz(path: str | Path, *, names: str = "", hint: str = "check the path") -> dict[str, ndarray]:
    """All arrays of an npz file, by name; `names` says in errors which ones belong there."""
    regular(path, hint=hint)
    save = f"save them with numpy.savez(path{''.join(f', {name}=...' for name in names.split())})"
    try:
        with open(path, "rb") as file:
            start = file.read(len(_NPY))
            if start == _NPY:
                wanted = " and ".join(names.split()) or "several"
                raise DataError(f"holds one array, not {wanted}", where=path, hint=save)
            if not start.startswith(_ZIP):
                raise DataError("not an npz file", where=path, allowed=_PLAIN_WORDS)
            with zipfile.ZipFile(file) as archive:
                infos = archive.infolist()
                if sum(info.compress_size for info in infos) > os.fstat(file.fileno()).st_size:
                    raise DataError("its members are larger than the file", where=path, hint=_CUT)
                unpacked = sum(info.file_size for info in infos)
                check_room(unpacked, where=path, what="what the file unpacks to")
                arrays: dict[str, ndarray] = {}
                for info in infos:
                    name = info.filename.removesuffix(".npy")
                    if name in arrays:
                        raise DataError("two arrays of one name", where=path, given=name)
                    if name == info.filename:
                        problem, allowed = "holds a member that is no array", "members NAME.npy"
                        raise DataError(problem, where=path, given=name[:60], allowed=allowed)
                    arrays[name] = member(archive, info, f"{path}, array '{name}'")
                return arrays
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        # zipfile raises RuntimeError for passwords and NotImplementedError for unknown compression.
        raise DataError(f"not a readable npz file: {error}", where=path, hint=_CUT) from None
    except OSError as error:
        raise unreadable(path, error) from None


def member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, where: object) -> ndarray:
    """One array of an open archive, its checksum compared; raises `DataError` and what `zipfile` raises."""
    if info.flag_bits & 0x1:
        raise DataError("is encrypted", where=where, hint="save it without a password")
    # A small member is read at once; of a large one first the header, kilobytes, whatever it unpacks to.
    data = archive.read(info) if info.file_size <= _SMALL else None
    with archive.open(info) if data is None else io.BytesIO(data) as file:
        shape, order, kind = _header(file, where)
        begin = file.tell()
    claimed = prod(shape) * kind.itemsize
    if claimed != info.file_size - begin:
        raise _other_size("another amount", max(info.file_size - begin, 0), claimed, shape, kind, where)
    if data is None:
        # The bytes as they are unpacked, and the array over them.
        check_room(claimed, where=where, what=_words(shape, kind))
        data = archive.read(info)
    if not claimed:
        return np.empty(shape, kind)
    return np.frombuffer(data, dtype=kind, count=prod(shape), offset=begin).reshape(shape, order=order)


def _other_size(what: str, held: int, claimed: int, shape: Any, kind: Any, where: object) -> DataError:
    given, allowed = f"{size(held)} of numbers", f"{size(claimed)}, {_words(shape, kind)}"
    return DataError(
        f"holds {what} than its header says", where=where, given=given, allowed=allowed, hint=_CUT
    )


def _header(file: Any, where: object) -> tuple[tuple[int, ...], Literal["F", "C"], np.dtype[Any]]:
    """Shape, order and type from the head of an npy file, at whose end the file stands afterwards."""
    if file.read(len(_NPY)) != _NPY:
        raise DataError("not an npy file", where=where, allowed=_PLAIN_WORDS)
    version = tuple(file.read(2))
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in readers:
        given, hint = ".".join(map(str, version)) or "none", f"it must hold {_PLAIN_WORDS}"
        problem = "an npy file of another version"
        raise DataError(problem, where=where, given=given, allowed="1.0 and 2.0", hint=hint)
    try:
        with warnings.catch_warnings():
            # NumPy warns where it falls back on a parser for files of Python 2.
            warnings.simplefilter("ignore")
            shape, fortran, kind = readers[version](file)
    # On a broken header NumPy's parser raises anything from ValueError to TokenError.
    except Exception as error:
        text = " ".join(str(error).split())[:120]
        raise DataError(f"not a readable npy file: {text}", where=where, hint=_CUT) from None
    if kind.kind not in PLAIN or kind.hasobject or kind.subdtype is not None or kind.itemsize == 0:
        raise DataError("not plain data", where=where, given=str(kind)[:60], allowed=_PLAIN_WORDS)
    if any(not isinstance(side, int) or isinstance(side, bool) or side < 0 for side in shape):
        raise DataError("not a shape", where=where, given=str(shape)[:60])
    if len(shape) > 32 or prod(shape) >= 1 << 62:
        raise DataError("the header claims more than any file holds", where=where, given=str(shape)[:60])
    return shape, "F" if fortran else "C", kind


def _words(shape: Collection[int], kind: np.dtype[Any]) -> str:
    return f"an array of {tuple(shape)} {kind}"


def plain_array(given: Any) -> NDArray[Any]:
    """What was given as an array; one of an object alone where it holds lists of several lengths."""
    try:
        return np.asarray(given)
    except ValueError:
        return np.asarray(None)
