"""A folder on a disk of this machine, or on one that several machines mount, as a place."""

import errno
import fcntl
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import BufferedIOBase
from pathlib import Path

from counterfoil.inputs.files import digest
from counterfoil.storage.object_store import StoreEntry, Tagged
from counterfoil.store import storage_error, writing

#: The file that those who replace or remove a contested name lock; it is gone again afterwards.
_LOCK = ".lock"


@dataclass(frozen=True)
class FolderStore:
    """Names are files below `folder`; those that begin with a dot are not seen.

    `replace` and `remove` hold a lock of the kernel, on a network file system that of the server.
    """

    folder: Path
    patience: float = 0.0

    def read(self, name: str) -> Tagged | None:
        try:
            data = (self.folder / name).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise storage_error(self.folder / name, error, "read") from error
        return Tagged(data, digest(data))

    def opened(
        self, entries: Iterable[StoreEntry], wanted: Callable[[bytes], bool]
    ) -> Iterator[tuple[StoreEntry, BufferedIOBase | None]]:
        for entry in entries:
            try:
                yield entry, open(self.folder / entry.name, "rb")  # noqa: SIM115, the caller closes it
            except FileNotFoundError:
                continue
            except OSError:
                yield entry, None

    def write(self, name: str, data: bytes) -> None:
        with writing(self.folder / name) as file:
            file.write(data)

    def replace(self, name: str, data: bytes, tag: str) -> bool:
        # Looked at before, too: where another one came first nobody waits for the lock.
        if fits := self._has(name, tag):
            with self._locked():
                if fits := self._has(name, tag):
                    self.write(name, data)
        return fits

    def _has(self, name: str, tag: str) -> bool:
        current = self.read(name)
        return (current.tag if current else "") == tag

    def touch(self, name: str) -> bool:
        """Of a file of another user, and of one that is gone, the age stays."""
        try:
            os.utime(self.folder / name)
        except OSError:
            return False
        return True

    def age(self, name: str) -> float | None:
        """The difference to a file that is made now, so that the file system's clock counts on both sides."""
        try:
            then = os.stat(self.folder / name).st_mtime
        except OSError:
            return None
        try:
            with tempfile.TemporaryFile(dir=self.folder) as probe:
                probe.write(b"\0")
                probe.flush()
                now = os.fstat(probe.fileno()).st_mtime
        except OSError as error:
            raise storage_error(self.folder, error) from error
        return max(0.0, now - then)

    def remove(self, name: str, tag: str | None = None) -> bool:
        with self._locked():
            if tag is not None and not self._has(name, tag):
                return False
            try:
                os.unlink(self.folder / name)
            except FileNotFoundError:
                return False
            except OSError as error:
                raise storage_error(self.folder / name, error, "removed") from error
            return True

    def entries(self, prefix: str = "") -> list[StoreEntry]:
        """Links are not followed, and what is no regular file is passed over."""
        return sorted(self._files(prefix.rstrip("/")))

    def _files(self, below: str) -> Iterator[StoreEntry]:
        try:
            listed = os.scandir(self.folder / below)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            raise storage_error(self.folder / below, error, "read") from error
        now = time.time()
        with listed:
            for entry in listed:
                name = f"{below}/{entry.name}" if below else entry.name
                if entry.name.startswith("."):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    yield from self._files(name)
                elif entry.is_file(follow_symlinks=False):
                    with suppress(OSError):  # another process removed it
                        about = entry.stat(follow_symlinks=False)
                        yield StoreEntry(name, about.st_size, now - about.st_mtime)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock of the folder. Its file is removed by its last holder, and by the kernel never."""
        path = self.folder / _LOCK
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            while True:
                handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
                fcntl.flock(handle, fcntl.LOCK_EX)
                # Another holder may have removed the file while this one waited: that lock is of no name.
                with suppress(FileNotFoundError):
                    if os.path.samestat(os.fstat(handle), os.stat(path)):
                        break
                os.close(handle)
        except OSError as error:
            hint = "choose a folder on a file system with locks" if error.errno == errno.ENOLCK else None
            raise storage_error(self.folder, error, hint=hint) from error
        try:
            yield
        finally:
            with suppress(OSError):
                os.unlink(path)
            os.close(handle)

    def __str__(self) -> str:
        return str(self.folder)
