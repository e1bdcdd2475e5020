"""Claims on what a command writes: one process at a time, by a lock that the kernel drops when it ends.

The lock is a file beside the output, `.NAME.lock`, that says who holds it. It is gone when its holder is
done, and one that a killed process left behind is taken over, with the unfinished files of that process.
"""

import fcntl
import os
import re
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from shutil import rmtree

from counterfoil.errors import InputError

#: What `store.writing` calls a file until it is whole, and `publish` a folder.
_UNFINISHED = re.compile(r"\.(?P<name>.+)\.[a-z0-9_]{8}\.part", re.DOTALL)


@dataclass(frozen=True)
class OutputLock:
    """A lock that is held, and the folders that were made to put it in."""

    lock: Path
    handle: int
    folders: Sequence[Path] = ()

    def release(self) -> None:
        """Give the lock back, and remove the folders made for it that are empty."""
        with suppress(OSError):
            self.lock.unlink()
        os.close(self.handle)
        _remove(self.folders)


def claim(path: Path, command: str) -> OutputLock | None:
    """Lock a file or folder; None where it may not be written, and in all processes of a training but one."""
    if any(os.environ.get(name, "0") != "0" for name in ("RANK", "LOCAL_RANK")):
        return None
    path = Path(os.path.realpath(path))
    lock = path.parent / f".{path.name}.lock"
    new_folders: list[Path] = []
    try:
        for folder in reversed([one for one in path.parents if not one.exists()]):
            folder.mkdir(exist_ok=True)
            new_folders.insert(0, folder)
        handle = _locked(lock, path)
    except OSError:
        # Whether anything can be written there is for the writing to say.
        _remove(new_folders)
        return None
    holder = f"counterfoil {command}, process {os.getpid()} on {socket.gethostname()}"
    with suppress(OSError):
        os.ftruncate(handle, 0)
        os.pwrite(handle, holder.encode(), 0)
    return OutputLock(lock, handle, new_folders)


@contextmanager
def claimed(path: Path, command: str, names: Sequence[str] = ()) -> Iterator[None]:
    """A block that alone writes a file, or `names` (patterns) in a folder, where what a stop left is gone."""
    held = claim(path, command)
    if held is not None:
        sweep(path, names)
    try:
        yield
    finally:
        if held is not None:
            held.release()


def sweep(path: Path, names: Sequence[str] = ()) -> None:
    """Remove files of `path`, and of `names` (patterns) in and below it, that a killed process left."""
    _sweep(path.parent, [re.sub(r"([*?[])", r"[\1]", path.name)])
    if names and path.is_dir():
        _sweep(path, names)
        for entry in list(path.iterdir()):
            if entry.is_dir() and not entry.is_symlink() and any(fnmatch(entry.name, name) for name in names):
                for inside, _, _ in os.walk(entry):
                    _sweep(Path(inside), ["*"])


def hold(handle: int) -> None:
    """Lock an open file that is not whole yet, so that no `sweep` takes it for what a killed process left."""
    with suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _sweep(folder: Path, names: Sequence[str]) -> None:
    with suppress(OSError), os.scandir(folder) as listed:
        for entry in listed:
            unfinished = _UNFINISHED.fullmatch(entry.name)
            if unfinished is None or not any(fnmatch(unfinished["name"], name) for name in names):
                continue
            with suppress(OSError):
                if entry.is_dir(follow_symlinks=False):
                    rmtree(entry.path)
                elif entry.is_file(follow_symlinks=False):
                    handle = os.open(entry.path, os.O_RDONLY | os.O_NOFOLLOW)
                    try:
                        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        os.unlink(entry.path)
                    finally:
                        os.close(handle)


def _locked(lock: Path, path: Path) -> int:
    """A handle that holds the lock; raises `OSError` for no lock, `InputError` where it is taken."""
    while True:
        handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Its last holder may have removed it since: that lock is of no name.
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(handle), os.stat(lock)):
                    return handle
        except BlockingIOError:
            holder = os.pread(handle, 400, 0).decode("utf-8", "replace") or None
            os.close(handle)
            what, hint = "another command is writing there", "wait until it is done, or name another place"
            raise InputError(what, where=path, given=holder, hint=hint) from None
        except OSError:
            os.close(handle)
            raise
        os.close(handle)


def _remove(folders: Sequence[Path]) -> None:
    with suppress(OSError):
        for folder in folders:
            folder.rmdir()
