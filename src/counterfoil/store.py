"""Files written whole or not at all, and digests of what is in them.

Every file that counterfoil writes goes through `writing`: a temporary file beside the target, flushed to
the disk, then renamed over it. A reader sees the old file or the new one, never half of either, whatever
moment the machine stops at.
"""

import errno
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from counterfoil.errors import DataError, StorageError

#: The errors of the operating system that mean "there is no room or no right to write here".
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_NO_RIGHT = {errno.EACCES, errno.EPERM, errno.EROFS}


@contextmanager
def writing(path: str | Path) -> Iterator[IO[bytes]]:
    """Open `path` for writing in one piece: it appears when the block ends, and not if the block fails.

    Raises `StorageError` where the disk is full or the folder may not be written.

    >>> import tempfile; folder = Path(tempfile.mkdtemp())
    >>> with writing(folder / "a.txt") as file:
    ...     _ = file.write(b"whole")
    >>> (folder / "a.txt").read_bytes(), len(list(folder.iterdir()))
    (b'whole', 1)
    """
    path = Path(path)
    temporary: str | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        # mkstemp makes files private; what a user writes should have the rights the user's umask gives.
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
        temporary = None
        _sync_folder(path.parent)
    except OSError as error:
        raise _storage_error(path, error) from error
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)


def check_writable(path: str | Path, *, folder: bool = False) -> None:
    """Raise `StorageError` where a file (or files in a `folder`) cannot be written, before any work is done.

    >>> check_writable(Path(__file__) / "a.txt")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    counterfoil.errors.StorageError: ...store.py/a.txt: cannot be written: ...store.py is a file; choose ...
    """
    path = Path(path)
    if path.is_dir() and not folder:
        raise StorageError("cannot be written: it is a folder", where=path, hint="name a file in it")
    above = [path, *path.absolute().parents] if folder else path.absolute().parents
    there = next((place for place in above if place.exists()), Path("/"))
    if not there.is_dir():
        what = "it" if there == path else there
        raise StorageError(f"cannot be written: {what} is a file", where=path, hint="choose another folder")
    if not os.access(there, os.W_OK | os.X_OK):
        raise StorageError("may not be written", where=path, hint="choose a folder you may write to")


def write_bytes(path: str | Path, data: bytes) -> None:
    """Write `data` to `path` in one piece."""
    with writing(path) as file:
        file.write(data)


def write_text(path: str | Path, text: str) -> None:
    """Write `text` to `path` as UTF-8 in one piece."""
    write_bytes(path, text.encode("utf-8"))


def write_json(path: str | Path, value: object) -> None:
    """Write `value` to `path` as indented JSON in one piece; NaN and infinities are refused."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def read_json(path: str | Path) -> Any:
    """The value in the JSON file `path`; raises `DataError` naming line and column where it is broken."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError("no such file", where=path, hint="check the path") from None
    except json.JSONDecodeError as error:
        raise DataError(
            f"not valid JSON: {error.msg}",
            where=f"{path}, line {error.lineno}, column {error.colno}",
            hint="is the file cut off?",
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot be read: {error}", where=path) from None


def write_parquet(path: str | Path, table: pa.Table) -> None:
    """Write an Arrow table to `path` in one piece; the same table gives the same bytes."""
    with writing(path) as file:
        pq.write_table(table, file, compression="zstd", store_schema=True)


def read_parquet(path: str | Path) -> pa.Table:
    """The Arrow table in `path`; raises `DataError` where there is none or it is cut off."""
    try:
        return pq.read_table(path, partitioning=None)
    except FileNotFoundError:
        raise DataError("no such file", where=path, hint="check the path") from None
    except (pa.ArrowException, OSError) as error:
        raise DataError(
            f"not a readable Parquet file: {error}", where=path, hint="is the file cut off?"
        ) from None


def digest(data: bytes) -> str:
    """32 hex digits that name the bytes (BLAKE2b, 128 bits).

    >>> digest(b"a caption")
    'ee64aa98bd501dec0be241691a8a4534'
    """
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def digest_file(path: str | Path) -> str:
    """The digest of a file's bytes, read in blocks."""
    state = hashlib.blake2b(digest_size=16)
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            state.update(block)
    return state.hexdigest()


def digest_value(value: object) -> str:
    """The digest of a JSON-able value, whatever the order of its keys.

    >>> digest_value({"a": 1, "b": [2]}) == digest_value({"b": [2], "a": 1})
    True
    """
    return digest(canonical_json(value).encode("utf-8"))


def canonical_json(value: object) -> str:
    """JSON with sorted keys and no blanks: equal values give equal text."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False, default=_plain
    )


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no canonical JSON")


def _storage_error(path: Path, error: OSError) -> StorageError:
    if error.errno in _NO_ROOM:
        what, hint = (
            "the disk is full",
            "free some space or choose another folder; nothing was left half-written",
        )
    elif error.errno in _NO_RIGHT:
        what, hint = "may not be written", "choose a folder you may write to"
    else:
        what, hint = f"cannot be written: {error.strerror or error}", "choose another folder"
    return StorageError(what, where=path, hint=hint)


def _umask() -> int:
    # There is no way to read the umask without setting it.
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _sync_folder(folder: Path) -> None:
    """Make the rename itself durable, where the system can."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError:
        pass
    finally:
        os.close(handle)
