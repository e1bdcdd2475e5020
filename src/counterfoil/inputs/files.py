"""Files that are read: text, JSON and TOML, models of what counterfoil wrote, paths and URLs, digests."""

import errno
import hashlib
import json
import os
import re
import stat
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from counterfoil.errors import URL, CounterfoilError, DataError
from counterfoil.inputs.limits import check_room

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
    """What the system knows of a regular file, links followed; raises `DataError` for anything else."""
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        hint = "it is read from a disk: mount it, or copy it" if URL.fullmatch(str(path)) else hint
        raise DataError(missing, where=path, hint=hint) from None
    except OSError as error:
        raise unreadable(path, error) from None
    except ValueError:
        raise DataError("no name of a file can hold a NUL character", where=repr(str(path))) from None
    for kind, what, instead in _KINDS:
        if kind(status.st_mode):
            raise DataError(what, where=path, hint=instead)
    return status


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
    status = regular(path, missing=missing, hint=hint)
    if status.st_size > _LARGE:
        check_room(status.st_size, where=path, what="the file")
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise unreadable(path, error) from None


def read_text(path: str | Path, *, hint: str = "check the path") -> str:
    """The text of a UTF-8 file, without a mark of byte order; each line break is a newline."""
    text = decoded(read_bytes(path, hint=hint), where=path)
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def decoded(data: bytes, *, where: object) -> str:
    """Bytes as UTF-8 text, without a mark of byte order and with line breaks as they are."""
    for mark, name in _MARKS:
        if data.startswith(mark):
            raise DataError(f"is {name} text", where=where, hint="save it as UTF-8")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        problem = f"not UTF-8 text (byte {error.start})"
        raise DataError(problem, where=where, hint="save it as UTF-8") from None
    position = text.find("\0")
    if position >= 0:
        place = f"{where}, line {text.count(chr(10), 0, position) + 1}"
        hint = "is it a binary file, or one that a crash filled with zeros?"
        raise DataError("not a text: it holds NUL characters", where=place, hint=hint)
    return text


#: How deep lists and objects may be nested. Files of this field stay below ten.
MAX_DEPTH = 64

_CUT = "is the file cut off?"
#: Escapes in JSON: a backslash, a pair of surrogates, or (as the group) one of them alone.
_HALVES = re.compile(
    r"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)


def read_json(path: str | Path) -> Any:
    """The value in a JSON file of ours, or of settings: NaN and infinities are refused."""
    return parse_json(decoded(read_bytes(path), where=path), where=path, finite=True)


def parse_json(text: str, *, where: object, without: Collection[str] = (), finite: bool = False) -> Any:
    """The JSON value in `text`; raises `DataError` with line and column of what is broken or doubled.

    Keys in `without` are dropped from every object as it is read. NaN and infinities are read, or with
    `finite` refused.
    """

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        fields = dict(pairs)
        if len(fields) < len(pairs):
            seen: set[str] = set()
            double = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
            raise DataError("key occurs twice in a JSON object", where=where, given=f"'{double[:60]}'")
        for name in without:
            fields.pop(name, None)
        return fields

    def refuse(constant: str) -> Any:
        raise DataError("not valid JSON: not a finite number", where=where, given=constant)

    try:
        value = json.loads(text, object_pairs_hook=once, parse_constant=refuse if finite else None)
    except json.JSONDecodeError as error:
        place = f"{where}, line {error.lineno}, column {error.colno}"
        raise DataError(f"not valid JSON: {error.msg}", where=place, hint=_CUT) from None
    except RecursionError:
        raise _too_deep("JSON", where) from None
    except ValueError:
        # Python converts no text of more than 4,300 digits into a whole number.
        raise DataError("a number in the JSON has thousands of digits", where=where) from None
    half = next((escape for escape in _HALVES.finditer(text) if escape[1]), None) if "\\u" in text else None
    if half is not None:
        place = f"{where}, line {text.count(chr(10), 0, half.start()) + 1}"
        raise DataError("half of a character (a lone surrogate)", where=place, given=half[1])
    # Only a text with that many opening brackets can be nested so deep.
    if text.count("[") + text.count("{") > MAX_DEPTH:
        _check_depth(value, "JSON", where)
    return value


def read_toml(path: str | Path, *, hint: str = "check the path") -> dict[str, Any]:
    """The table in a TOML file; raises `DataError` naming what is broken, with `hint` where there is none."""
    return parse_toml(decoded(read_bytes(path, hint=hint), where=path), where=path)


def parse_toml(text: str, *, where: object) -> dict[str, Any]:
    """The table in a TOML text; raises `DataError` naming what is broken."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"not valid TOML: {error}", where=where) from None
    except RecursionError:
        raise _too_deep("TOML", where) from None
    except (ValueError, OverflowError) as error:
        # A date of a thirteenth month, an offset of 30 hours, a number of thousands of digits.
        raise DataError(f"not valid TOML: {error}", where=where) from None
    _check_depth(table, "TOML", where)
    return table


def _check_depth(value: Any, kind: str, where: object) -> None:
    """Raise `DataError` where lists and objects are nested deeper than `MAX_DEPTH`; level by level."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(MAX_DEPTH):
        inner: list[Any] = []
        for container in level:
            inner += container.values() if isinstance(container, dict) else container
        level = [container for container in inner if isinstance(container, dict | list)]
        if not level:
            return
    raise _too_deep(kind, where)


def _too_deep(kind: str, where: object) -> DataError:
    return DataError(f"{kind} nested too deeply", where=where, allowed=f"at most {MAX_DEPTH} levels")


#: pydantic's message about an object, with the name of our class.
_INSTANCE = re.compile(r"a valid dictionary( or .*)?$")


class Stored(BaseModel):
    """The base of what is stored: types as written, finite numbers, fields of newer versions kept."""

    #: What checks them is made when the first one is read: most commands read few of them.
    model_config = ConfigDict(frozen=True, strict=True, allow_inf_nan=False, extra="allow", defer_build=True)


Model = TypeVar("Model", bound=BaseModel)


def read_model(path: str | Path, model: type[Model]) -> Model:
    """The value in a JSON file of ours; raises `DataError` naming the file and the field that is off."""
    return check_model(read_json(path), model, where=path)


def check_model(
    value: object,
    model: type[Model],
    *,
    where: object,
    hint: str | None = "was it edited?",
    error: type[CounterfoilError] = DataError,
) -> Model:
    """A value as the model has it; raises `error` naming the field that is missing or off."""
    if not isinstance(value, Mapping):
        raise error("not an object", where=where, given=_shown(value), hint=hint)
    return check_value(dict(value), model, where=where, hint=hint, error=error)


def read_value(path: str | Path, kind: Any) -> Any:
    """The value in a JSON file of others as a type has it; raises as `check_value`."""
    return check_value(parse_json(read_text(path), where=path), kind, where=path)


def check_value(
    value: object,
    kind: Any,
    *,
    where: object,
    hint: str | None = None,
    error: type[CounterfoilError] = DataError,
) -> Any:
    """A value as a type has it; raises `error` naming the part that is missing or off."""
    try:
        # A model has what checks it already.
        validate = (
            kind.model_validate if hasattr(kind, "model_validate") else TypeAdapter(kind).validate_python
        )
        return validate(value)
    except ValidationError as caught:
        first = caught.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"] if part != "[key]")
        if first["type"] == "missing":
            raise error(f"no field '{place}'", where=where, hint=hint) from None
        message = str(first["msg"])
        start = "Input should be "
        words: dict[str, Any] = {"what": message[0].lower() + message[1:]}
        if message.startswith(start):
            allowed = _INSTANCE.sub("an object", message.removeprefix(start))
            words = {"what": "wrong value", "allowed": allowed}
        elif first["type"] == "extra_forbidden":
            words = {"what": "unknown field"}
            if len(first["loc"]) == 1:
                words["allowed"] = ", ".join(sorted(kind.model_fields))
        where = f"{where}, field '{place}'" if place else where
        raise error(**words, where=where, given=_shown(first.get("input")), hint=hint) from None


def _shown(value: object) -> str:
    if isinstance(value, dict | list | tuple):
        return f"{type(value).__name__} of {len(value)}"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


@dataclass(frozen=True)
class Location:
    """A URL: the name of its scheme as fsspec has it, and what follows, without slashes at its ends."""

    scheme: str
    path: str

    def __str__(self) -> str:
        return f"{self.scheme}://{self.path}"


def location(text: str | Path) -> Location | Path:
    """What a text names: a `Location` at a distance, or a path.

    A `Path` that was made of a URL is that URL still. A folder called "s3:" is named by its absolute path.

    >>> location("s3://bucket/a/"), location(Path("s3://bucket/a")), location("data/a:/b")
    (Location(scheme='s3', path='bucket/a'), Location(scheme='s3', path='bucket/a'), PosixPath('data/a:/b'))
    """
    url = URL.fullmatch(str(text))
    if url is None:
        return Path(text)
    scheme = url[1].lower()
    return Location("gcs" if scheme == "gs" else scheme, url[3].strip("/"))


def is_distant(text: str | Path) -> bool:
    """Whether a text or a path names something behind a URL, which no file of this machine is."""
    return isinstance(location(text), Location)


def display_path(text: str | Path) -> str:
    """A path or URL as it is shown: with both slashes where pathlib took one."""
    return str(location(text))


def natural(name: str) -> tuple[list[Any], str]:
    """By this names are sorted by the size of the numbers in them: frame 10 after frame 9."""
    pieces = re.split(r"(\d+)", name)
    return [int(piece) if i % 2 else piece for i, piece in enumerate(pieces)], name


def digest(data: bytes) -> str:
    """32 hex digits that name the bytes (BLAKE2b, 128 bits).

    >>> digest(b"a caption")
    'ee64aa98bd501dec0be241691a8a4534'
    """
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def digest_file(path: str | Path) -> str:
    """The digest of a file's bytes, read in blocks."""
    with open(path, "rb") as file:
        return digest_stream(file)


def digest_stream(file: Any) -> str:
    """The digest of what is left to read of an open file, read in blocks."""
    return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def sha256_file(path: str | Path) -> str:
    """The SHA-256 of a file's bytes, by which others check files that are passed on."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest_value(value: object) -> str:
    """The digest of a JSON-able value, whatever the order of its keys."""
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
