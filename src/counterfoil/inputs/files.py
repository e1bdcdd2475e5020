"""Regular files and what is in them: bytes and UTF-8 text.

A pipe that is waited on for ever, a device without an end, a folder and a loop of links are refused before
they are opened.
"""

import errno
import os
import stat
from pathlib import Path

from counterfoil.errors import DataError
from counterfoil.inputs.memory import check_room

_KINDS = (
    (stat.S_ISDIR, "is a folder", "name the file in it"),
    (stat.S_ISFIFO, "is a pipe", "write what comes out of it to a file first"),
    (stat.S_ISSOCK, "is a socket", "name a file"),
    (stat.S_ISCHR, "is a device", "name a file"),
    (stat.S_ISBLK, "is a device", "name a file"),
)

#: Files of more bytes than this are compared with the memory that is free before they are read.
_LARGE = 1 << 26

#: Marks of byte order of encodings that are not UTF-8, the longer before those they begin with.
_MARKS = (
    (b"\xff\xfe\x00\x00", "UTF-32"),
    (b"\x00\x00\xfe\xff", "UTF-32"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
)


def regular(
    path: str | Path, *, missing: str = "no such file", hint: str = "check the path"
) -> os.stat_result:
    """What the system knows of a regular file, links followed; raises `DataError` for anything else.

    >>> regular("/dev/null")
    Traceback (most recent call last):
    counterfoil.errors.DataError: /dev/null: is a device; name a file
    """
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        raise DataError(missing, where=path, hint=hint) from None
    except OSError as error:
        raise unreadable(path, error) from None
    except ValueError:
        raise DataError("no name of a file can hold a NUL character", where=repr(str(path))) from None
    for kind, what, instead in _KINDS:
        if kind(found.st_mode):
            raise DataError(what, where=path, hint=instead)
    return found


def unreadable(path: object, error: OSError) -> DataError:
    """The error of a file that is there, perhaps, and cannot be read."""
    if error.errno == errno.ELOOP:
        return DataError("is a loop of links", where=path, hint="name the file itself")
    if error.errno == errno.ENAMETOOLONG:
        return DataError("the name is longer than a name of a file can be", where=path)
    if error.errno in (errno.EACCES, errno.EPERM):
        return DataError("may not be read", where=path, hint="ask for the right to read it")
    return DataError(f"cannot be read: {error.strerror or error}", where=path)


def read_bytes(path: str | Path, *, missing: str = "no such file", hint: str = "check the path") -> bytes:
    """All bytes of a regular file that has room in memory."""
    known = regular(path, missing=missing, hint=hint)
    if known.st_size > _LARGE:
        check_room(known.st_size, where=path, what="the file")
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise unreadable(path, error) from None


def read_text(path: str | Path, *, hint: str = "check the path") -> str:
    """The text of a UTF-8 file, without a mark of byte order; raises `DataError` for other encodings.

    Line breaks become a newline each.
    """
    text = decoded(read_bytes(path, hint=hint), where=path)
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def decoded(data: bytes, *, where: object) -> str:
    """Bytes as UTF-8 text, without a mark of byte order and with line breaks as they are.

    >>> decoded("a caption".encode("utf-16"), where="a.csv")
    Traceback (most recent call last):
    counterfoil.errors.DataError: a.csv: is UTF-16 text; save it as UTF-8
    """
    for mark, name in _MARKS:
        if data.startswith(mark):
            raise DataError(f"is {name} text", where=where, hint="save it as UTF-8")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(
            f"not UTF-8 text (byte {error.start})", where=where, hint="save it as UTF-8"
        ) from None
    at = text.find("\0")
    if at >= 0:
        raise DataError(
            "not a text: it holds NUL characters",
            where=f"{where}, line {text.count(chr(10), 0, at) + 1}",
            hint="is it a binary file, or one that a crash filled with zeros?",
        )
    return text
