"""The memory of this process as a place, by fsspec's `memory:`; for tests and examples."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from io import BufferedIOBase, BytesIO
from typing import Any

from counterfoil.places.base import PlaceEntry, Tagged
from counterfoil.places.location import Location
from counterfoil.store import digest

# All places of this process share fsspec's one store, and so one lock.
_LOCK = threading.RLock()


@dataclass(frozen=True)
class MemoryPlace:
    """Names are files of fsspec's memory; other processes do not see them."""

    where: Location
    scheme: str = "memory"
    patience: float = 0.0

    def read(self, name: str) -> Tagged | None:
        """The bytes, and their digest as the tag."""
        with _LOCK:
            try:
                data = self._files().cat_file(self._path(name))
            except FileNotFoundError:
                return None
        return Tagged(data, digest(data))

    def opened(
        self, entries: Iterable[PlaceEntry], wanted: Callable[[bytes], bool]
    ) -> Iterator[tuple[PlaceEntry, BufferedIOBase | None]]:
        """Copies of the bytes."""
        for entry in entries:
            known = self.read(entry.name)
            if known is not None:
                yield entry, BytesIO(known.data)

    def write(self, name: str, data: bytes) -> None:
        """Under the lock."""
        with _LOCK:
            self._files().pipe_file(self._path(name), data)

    def create(self, name: str, data: bytes) -> bool:
        """Looked for and written under the lock."""
        with _LOCK:
            if self._files().exists(self._path(name)):
                return False
            self.write(name, data)
            return True

    def replace(self, name: str, data: bytes, tag: str) -> bool:
        """Compared and written under the lock."""
        with _LOCK:
            known = self.read(name)
            if known is None or known.tag != tag:
                return False
            self.write(name, data)
            return True

    def touch(self, name: str) -> bool:
        """The time of the file becomes this machine's."""
        with _LOCK, suppress(KeyError):
            self._files().store[self._path(name)].modified = datetime.now(UTC)
            return True
        return False

    def age(self, name: str) -> float | None:
        """By this machine's clock."""
        try:
            then = self._files().modified(self._path(name))
        except FileNotFoundError:
            return None
        return max(0.0, time.time() - then.timestamp())

    def remove(self, name: str, tag: str | None = None) -> bool:
        """Compared and removed under the lock."""
        with _LOCK:
            known = self.read(name)
            if known is None or tag not in (None, known.tag):
                return False
            self._files().rm_file(self._path(name))
            return True

    def entries(self, prefix: str = "") -> list[PlaceEntry]:
        """By fsspec's listing."""
        root, now = self._path(""), time.time()
        with _LOCK:
            files = self._files().find(self._path(prefix).rstrip("/"), detail=True)
            return sorted(
                PlaceEntry(
                    name.removeprefix(root), about["size"], now - self._files().modified(name).timestamp()
                )
                for name, about in files.items()
            )

    def _path(self, name: str) -> str:
        return f"/{self.where.path}/{name}"

    def _files(self) -> Any:
        import fsspec

        return fsspec.filesystem("memory")

    def __str__(self) -> str:
        return str(self.where)
