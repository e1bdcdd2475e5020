"""Files written whole or not at all, and digests of what is in them.

Every file goes through `writing`: a temporary file beside the target, flushed, then renamed over it.
"""

import errno
import json
import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import pyarrow as pa
from pyarrow import csv

from counterfoil.claims import hold
from counterfoil.errors import URL, InputError, StorageError
from counterfoil.outputs import UNFINISHED, active_outputs

#: The errors of the operating system that mean "there is no room or no right to write here".
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_NO_RIGHT = {errno.EACCES, errno.EPERM, errno.EROFS}

#: First characters of texts that a spreadsheet takes for a formula, after any apostrophes.
_FORMULA = re.compile(r"'*[=+\-@\t\r\n]")


@contextmanager
def writing(path: str | Path, *, private: bool = False) -> Iterator[IO[bytes]]:
    """Open `path` for writing in one piece: it appears when the block ends, and not if the block fails.

    What lies behind a link is written, and the link stays. A `private` file is its owner's alone.
    """
    _check_no_url(Path(path))
    path = Path(os.path.realpath(path))
    outputs = active_outputs()
    if outputs is not None:
        outputs.check_write(path)
    temporary: str | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
        with os.fdopen(handle, "w+b") as file:
            hold(handle)
            yield file
            file.flush()
            os.fsync(file.fileno())
        # mkstemp makes files private; what a user writes should have the rights the user's umask gives.
        if not private:
            # There is no way to read the umask without setting it.
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, path)
        temporary = None
        with suppress(OSError):  # the rename itself durable, where the system can
            folder = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
    except OSError as error:
        raise storage_error(path, error) from error
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)


@contextmanager
def owner_only() -> Iterator[None]:
    """Files and folders that are made in the block are their owner's alone, whatever makes them."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


def check_writable(path: str | Path, *, folder: bool = False) -> None:
    """Raise `StorageError` where a file, or files in a `folder`, cannot be written, before any work."""
    path = Path(path)
    _check_no_url(path)
    if path.is_dir() and not folder:
        raise StorageError("cannot be written: it is a folder", where=path, hint="name a file in it")
    above = [path, *path.absolute().parents] if folder else path.absolute().parents
    there = next((place for place in above if place.exists()), Path("/"))
    if not there.is_dir():
        what = "it" if there == path else there
        raise StorageError(f"cannot be written: {what} is a file", where=path, hint="choose another folder")
    try:
        # What rights do not say, as of /proc, shows where a file is made.
        tempfile.TemporaryFile(dir=there).close()
    except OSError as error:
        raise storage_error(path, error) from None


def _check_no_url(path: Path) -> None:
    # A folder called "s3:" would be made in the working folder.
    if URL.fullmatch(str(path)):
        hint = "name a folder of this machine, and copy what is written"
        raise StorageError("results are written to a disk, not to a URL", where=path, hint=hint)


def begin(folder: Path, what: str) -> None:
    """Note in a folder that `what` is being written there, so that a later attempt knows what a stop left."""
    write_text(folder / UNFINISHED, what + "\n")


def begun(folder: Path) -> str | None:
    """What `begin` noted in a folder, None where nothing is noted or it was finished."""
    try:
        return (folder / UNFINISHED).read_text(encoding="utf-8").removesuffix("\n")
    except (OSError, UnicodeDecodeError):
        return None


def end(folder: Path) -> None:
    """Take the note of `begin` away: what was written there is whole, or gone."""
    (folder / UNFINISHED).unlink(missing_ok=True)


def write_bytes(path: str | Path, data: bytes) -> None:
    """Write `data` to `path` in one piece."""
    with writing(path) as file:
        file.write(data)


def write_text(path: str | Path, text: str) -> None:
    """Write `text` to `path` as UTF-8 in one piece."""
    write_bytes(path, text.encode("utf-8"))


def write_json(path: str | Path, value: object) -> None:
    """Write `value` to `path` as indented JSON in one piece; NaN and infinities are refused."""
    write_bytes(path, json_bytes(value))


def json_bytes(value: object) -> bytes:
    """What `write_json` writes."""
    return (json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode("utf-8")


def write_parquet(path: str | Path, table: pa.Table) -> None:
    """Write an Arrow table to `path` in one piece; the same table gives the same bytes."""
    with writing(path) as file:
        from pyarrow import parquet

        parquet.write_table(table, file, compression="zstd", store_schema=True)


def csv_cell(text: str) -> str:
    """The text as a cell of a CSV file that no spreadsheet computes: an apostrophe before what it would take.

    A text that has such an apostrophe already gets one more, so that `csv_text` gives back every text.

    >>> csv_cell("=1+1"), csv_cell("a cat"), csv_cell("'-"), csv_text(csv_cell("'-"))
    ("'=1+1", 'a cat', "''-", "'-")
    """
    return f"'{text}" if _FORMULA.match(text) else text


def csv_text(cell: str) -> str:
    """The text that `csv_cell` wrote as `cell`."""
    return cell[1:] if cell[:1] == "'" and _FORMULA.match(cell) else cell


def write_csv(path: str | Path, table: pa.Table) -> None:
    """Write an Arrow table to `path` as CSV in one piece, its texts by `csv_cell`."""
    for i, field in enumerate(table.schema):
        if pa.types.is_string(field.type):
            cells = [None if text is None else csv_cell(text) for text in table.column(i).to_pylist()]
            table = table.set_column(i, field, pa.array(cells, pa.string()))
    with writing(path) as file:
        csv.write_csv(table, file)


#: What a table may be written as.
_TABLES = (".csv", ".json", ".parquet")


def check_table_kind(path: Path, allowed: Sequence[str] = _TABLES) -> None:
    """Raise `InputError` where a table cannot be written under this name."""
    if path.suffix.lower() not in allowed:
        given = path.suffix or "(no suffix)"
        raise InputError("unknown kind of table", where=path, given=given, allowed=allowed)


def write_table(path: Path, table: pa.Table) -> None:
    """Write a table in one piece, as CSV, JSON (a list of objects) or Parquet by its suffix."""
    check_table_kind(path)
    kind = path.suffix.lower()
    if kind == ".json":
        write_json(path, table.to_pylist())
    else:
        (write_csv if kind == ".csv" else write_parquet)(path, table)


def storage_error(
    path: Path, error: OSError, doing: str = "written", *, hint: str | None = None
) -> StorageError:
    """The error in one line of a file or folder that cannot be written, read or removed."""
    if error.errno in _NO_ROOM:
        what = "the disk is full"
        instead = "free some space or choose another folder; nothing was left half-written"
    elif error.errno in _NO_RIGHT:
        what, instead = f"may not be {doing}", "choose a folder you may write to"
    else:
        what, instead = f"cannot be {doing}: {error.strerror or error}", "choose another folder"
    return StorageError(what, where=path, hint=hint or instead)
