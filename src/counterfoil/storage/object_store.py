"""The protocol of a place, and the folders of the user."""

import os
from collections.abc import Callable, Iterable, Iterator
from io import BufferedIOBase
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

from counterfoil.inputs.files import location

#: The schemes of places that can be read, with the extra of each.
SCHEMES = {"s3": "s3", "gcs": "gcs", "memory": ""}


def user_cache() -> Path:
    """The cache of counterfoil in the user's cache folder: `$XDG_CACHE_HOME`, else `~/.cache`."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "counterfoil"


def data_folder() -> Path:
    """The folder that fetched benchmarks are kept in: COUNTERFOIL_DATA, else the user's data folder."""
    if named := os.environ.get("COUNTERFOIL_DATA"):
        return Path(named)
    base = os.environ.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "counterfoil"


def local_folder(cache: str | Path) -> Path:
    """The folder for notes on local files: the cache where it is a folder, else the user's own."""
    where = location(cache)
    return where if isinstance(where, Path) else user_cache()


class StoreEntry(NamedTuple):
    """A name in a place: its bytes, and seconds since it was written or touched (by this machine's clock)."""

    name: str
    size: int
    age: float


class Tagged(NamedTuple):
    """The bytes of a name, and the tag under which `replace` and `remove` know that they are still there."""

    data: bytes
    tag: str


@runtime_checkable
class ObjectStore(Protocol):
    """Names, with slashes as in paths, and bytes behind each; several machines may use one place at once.

    A reader sees what one writer wrote, whole, or nothing. Methods raise `StorageError` where the place
    cannot be used. Contested names (leases) hold bytes that no other writes and that change with every
    renewal, since a tag may be a digest of the bytes; they change by `replace` and `remove` with a tag alone.
    """

    @property
    def patience(self) -> float:
        """Seconds below which an age is not worth a `touch`: 0 where that is free, a day where it is not."""

    def read(self, name: str) -> Tagged | None:
        """The bytes of a name with their tag, None where there is no such name."""

    def opened(
        self, entries: Iterable[StoreEntry], wanted: Callable[[bytes], bool]
    ) -> Iterator[tuple[StoreEntry, BufferedIOBase | None]]:
        """The entries that are still there, in order, each open for reading, or None where it cannot be read.

        A place at a distance passes those over for which `wanted` says no of their first `HEAD` bytes.
        """

    def write(self, name: str, data: bytes) -> None:
        """Let `name` hold `data`, whatever it held."""

    def replace(self, name: str, data: bytes, tag: str) -> bool:
        """Let `name` hold `data` if it holds what `read` gave `tag` with ("" for nothing); whether it did.

        Of several that come at once, one succeeds.
        """

    def touch(self, name: str) -> bool:
        """Set the age of `name` to 0; whether there is such a name."""

    def age(self, name: str) -> float | None:
        """Seconds since `name` was written or touched, by the clock of the place, or None."""

    def remove(self, name: str, tag: str | None = None) -> bool:
        """Remove a name (with a `tag`, only while it holds what that was given with); whether it did."""

    def entries(self, prefix: str = "") -> list[StoreEntry]:
        """The names that begin with `prefix`, which is empty or ends with a slash, in order of the names."""

    def __str__(self) -> str:
        """The path or URL, without credentials."""


#: How many bytes `ObjectStore.opened` reads of a large entry to know whether it is wanted.
HEAD = 1 << 14
