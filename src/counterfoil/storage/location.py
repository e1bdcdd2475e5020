"""Paths and URLs: which of the two a text is."""

import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from counterfoil.errors import URL, InputError

#: The schemes of places that can be read, with the extra of each.
SCHEMES = {"s3": "s3", "s3a": "s3", "gs": "gcs", "gcs": "gcs", "memory": "", "file": "", "local": ""}


@dataclass(frozen=True)
class Location:
    """A URL: the name of its scheme as fsspec has it, and what follows, without slashes at its ends."""

    scheme: str
    path: str

    def __str__(self) -> str:
        return f"{self.scheme}://{self.path}"


def location(text: str | Path) -> Location | Path:
    """What a text names: a `Location` at a distance, or a path (for `file:` URLs too).

    A `Path` that was made of a URL is that URL still. A folder called "s3:" is named by its absolute path.
    Raises `InputError` for a `file:` URL of another host.

    >>> location("s3://bucket/a/"), location(Path("s3://bucket/a"))
    (Location(scheme='s3', path='bucket/a'), Location(scheme='s3', path='bucket/a'))
    >>> location("file:///data/a%20b"), location("data/a:/b")
    (PosixPath('/data/a b'), PosixPath('data/a:/b'))
    >>> location("file://etc/passwd")
    Traceback (most recent call last):
    counterfoil.errors.InputError: a file: URL of another machine; given: file://etc/passwd; allowed: ...
    """
    url = URL.fullmatch(str(text))
    if url is None:
        return Path(text)
    scheme, rest = url[1].lower(), url[3]
    if scheme in ("file", "local"):
        host, slash, below = rest.partition("/")
        # Of two slashes a path of pathlib has kept one, which names no host.
        if url[2] == "//" and host and isinstance(text, str):
            if host.lower() != "localhost":
                raise InputError(
                    "a file: URL of another machine", given=text, allowed="file:///PATH on this machine"
                )
            rest = slash + below
        return Path("/" + unquote(rest).lstrip("/"))
    return Location({"s3a": "s3", "gs": "gcs"}.get(scheme, scheme), rest.strip("/"))


def as_path(text: str | Path) -> Path:
    """A path, that of a `file:` URL, or any other URL as a `Path`, which `location` knows as that URL still.

    >>> as_path("file:///data/a"), as_path("runs/a"), location(as_path("s3://bucket/a"))
    (PosixPath('/data/a'), PosixPath('runs/a'), Location(scheme='s3', path='bucket/a'))
    """
    where = location(text)
    return where if isinstance(where, Path) else Path(text)


def is_distant(text: str | Path) -> bool:
    """Whether a text or a path names something behind a URL, which no file of this machine is.

    >>> is_distant("s3://bucket/a"), is_distant("file:///data/a"), is_distant("runs/a")
    (True, False, False)
    """
    return isinstance(location(text), Location)


def user_cache() -> Path:
    """The cache of counterfoil in the user's cache folder: `$XDG_CACHE_HOME`, else `~/.cache`."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "counterfoil"


def local_folder(cache: str | Path) -> Path:
    """The folder for what means something on this machine alone: the cache itself where it is a folder.

    Of a cache at a distance it is the user's own cache folder: there lie notes on local files, by their paths
    and times.

    >>> local_folder("runs/cache"), local_folder("s3://bucket/cache") == user_cache()
    (PosixPath('runs/cache'), True)
    """
    where = location(cache)
    return where if isinstance(where, Path) else user_cache()


def located(text: str | Path) -> str:
    """A path or URL as it is shown: with both slashes where pathlib took one.

    >>> located(Path("s3://bucket/a")), located("runs/a")
    ('s3://bucket/a', 'runs/a')
    """
    return str(location(text))
