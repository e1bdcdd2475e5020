"""Outputs of a command: none is a file that it reads, and none that exists is replaced without --overwrite.

They are declared before any work and claimed (`counterfoil.claims`) until the command ends; `store.writing`
asks the same guard.
"""

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

from counterfoil.claims import OutputLock, claim, sweep
from counterfoil.errors import InputError

#: The note in a folder that is being written (`store.begin`): the same command may write there again.
UNFINISHED = ".counterfoil-unfinished"
#: Advice where a file is in the way.
_ANOTHER_FILE = "name another file"
_ANOTHER_FOLDER = "name another folder"


@dataclass(frozen=True)
class Folder:
    """A folder that a command writes files into, whose names match the patterns `names`.

    One that holds some of them (where `alone`, anything) is written to only where a stopped command left it
    unfinished, or `resumes` says that the command goes on there.
    """

    path: Path
    names: tuple[str, ...]
    resumes: Callable[[Path], bool] = lambda folder: False
    alone: bool = False


@dataclass(eq=False)
class Outputs:
    """What `command` writes and reads; `overwrite` where the user asked to replace what exists."""

    command: str
    overwrite: bool = False
    reads: list[Path] = field(default_factory=list)
    _files: list[Path] = field(default_factory=list)
    _folders: list[Folder] = field(default_factory=list)
    _claims: dict[Path, OutputLock | None] = field(default_factory=dict)

    def read(self, *paths: Path) -> None:
        """Add what the command reads; raises `InputError` where an output would replace some of it."""
        self.reads += [path for path in paths if path.exists()]
        for path in self._files:
            self._check_input(path, path)
        for folder in self._folders:
            self._check_folder_input(folder)

    def file(self, path: Path) -> None:
        """Declare a file; raises `InputError` where it is in the way, is read, or is another output too."""
        real = _real(path)
        if os.path.lexists(real) and not stat.S_ISREG(os.lstat(real).st_mode):
            hint = "name a file, or - for standard output where the option allows it"
            raise InputError("not a regular file, so nothing is written to it", where=path, hint=hint)
        if any(_same(real, other) for other in self._files):
            raise InputError("two results would be written to one file", given=str(path), hint="name another")
        for folder in self._folders:
            self._check_apart(real, path, folder)
        self._files.append(real)
        self._claim(real)
        self._check_input(path, real)
        if os.path.exists(real) and not self.overwrite:
            hint = f"{_ANOTHER_FILE}, or replace it with --overwrite"
            raise InputError("the file exists", where=path, hint=hint)

    def folder(self, folder: Folder) -> None:
        """Declare a folder; raises `InputError` where files in it are in the way, or are read."""
        path, real = folder.path, _real(folder.path)
        if any(_same(real, other.path) for other in self._folders):
            raise InputError("two results would be written to one folder", given=str(path))
        self._folders.append(folder)
        for file in self._files:
            self._check_apart(file, file, folder)
        self._claim(real, folder)
        self._check_folder_input(folder)
        there: list[str] = []
        if path.is_dir() and not (path / UNFINISHED).exists() and not folder.resumes(path):
            names = os.listdir(path) if folder.alone else [entry.name for entry in _there(folder)]
            # Partial files and locks of a machine that stopped while writing are no obstacle.
            left = (".part", ".lock")
            there = sorted(name for name in names if not (name.startswith(".") and name.endswith(left)))
        if there and not self.overwrite:
            what = f"the folder holds files ({', '.join(there[:3])})"
            hint = f"{_ANOTHER_FOLDER}, or replace them with --overwrite"
            raise InputError(what, where=path, hint=hint)

    def claim(self) -> None:
        """Claim all that is declared; raises `InputError` where another process is writing there."""
        for file in self._files:
            self._claim(file)
        for folder in self._folders:
            self._claim(_real(folder.path), folder)

    def release(self) -> None:
        """Give back what was claimed."""
        while self._claims:
            _, held = self._claims.popitem()
            if held is not None:
                held.release()

    def check_write(self, path: Path) -> None:
        """Raise `InputError` where writing `path` would replace a file that the command reads."""
        if any(_same(path, source) for source in self.reads if not source.is_dir()):
            raise _is_read(path, path)

    def _claim(self, real: Path, folder: Folder | None = None) -> None:
        # A guard that is not active yet claims when it is; one that never is writes nothing.
        if _active is not self or real in self._claims:
            return
        held = self._claims[real] = claim(real, self.command)
        if held is not None:
            sweep(real, () if folder is None else folder.names)

    def _check_input(self, path: Path, real: Path) -> None:
        for source in self.reads:
            inside = source.is_dir() and real.exists() and _within(real, source)
            if inside or _same(real, source):
                raise _is_read(path, source)

    def _check_folder_input(self, folder: Folder) -> None:
        real = _real(folder.path)
        for source in self.reads:
            if _same(real, source):
                raise _is_read(folder.path, source, _ANOTHER_FOLDER)
            place = _real(source)
            if _within(place, real):
                name = place.relative_to(real).parts[0]
                if folder.alone or any(fnmatch(name, pattern) for pattern in folder.names):
                    raise _is_read(folder.path, source, _ANOTHER_FOLDER)
        for path in _there(folder):
            if any(_same(path, source) for source in self.reads if not source.is_dir()):
                raise _is_read(path, path, _ANOTHER_FOLDER)

    def _check_apart(self, real: Path, path: Path, folder: Folder) -> None:
        """Raise where a file is one of those that are written into the folder, or the folder itself."""
        place = _real(folder.path)
        inside = real.parent == place and any(fnmatch(real.name, pattern) for pattern in folder.names)
        if inside or _same(real, place):
            raise InputError("two results would be written to one file", given=str(path), hint="name another")


_active: Outputs | None = None


@contextmanager
def guarding(outputs: Outputs) -> Iterator[Outputs]:
    """Make `outputs` the active guard until the block ends, with all that it declares claimed."""
    global _active
    before, _active = _active, outputs
    try:
        outputs.claim()
        yield outputs
    finally:
        _active = before
        if before is not outputs:
            outputs.release()


@contextmanager
def each_guarded() -> Iterator[None]:
    """A block of several jobs, one of which reads what another wrote: each has a guard of its own."""
    global _active
    before, _active = _active, None
    try:
        yield
    finally:
        _active = before


@contextmanager
def guarded(command: str, *, overwrite: bool = False, reads: Iterable[object] = ()) -> Iterator[Outputs]:
    """The guard of the command that runs, else one for the block; `reads` are names and paths it reads."""
    outputs = active_outputs() or Outputs(command, overwrite=overwrite)
    with guarding(outputs):
        outputs.read(*existing_paths(reads))
        yield outputs


@contextmanager
def guarded_file(path: str | Path, *, command: str, overwrite: bool) -> Iterator[None]:
    """A block in which `command` writes one file; a command line has declared its outputs before."""
    declared = active_outputs() is not None
    with guarded(command, overwrite=overwrite) as outputs:
        if not declared:
            outputs.file(Path(path))
        yield


def active_outputs() -> Outputs | None:
    """The guard of the command that runs, None outside of one."""
    return _active


def overwriting() -> bool:
    """Whether the command that runs was asked to replace what exists."""
    return _active is not None and _active.overwrite


def existing_paths(texts: Iterable[object]) -> list[Path]:
    """The files and folders that arguments name, alone or after a kind, a key or an architecture."""
    path_of: dict[Path, Path] = {}
    for text in texts:
        names = [str(text)]
        for sign in ":=":
            _, after, rest = names[0].partition(sign)
            names += [rest, rest.partition("@")[0]] if after else []
            # What follows an architecture: ViT-B-32/weights/best.pt.
            while after and "/" in rest:
                rest = rest.partition("/")[2]
                names.append(rest)
        for name in names:
            try:
                if name and Path(name).exists():
                    path_of.setdefault(_real(Path(name)), Path(name))
            except (OSError, ValueError):  # too long, or with a character that no name has
                continue
    return list(path_of.values())


def _there(folder: Folder) -> list[Path]:
    """What lies in the folder under one of its names."""
    paths = sorted(folder.path.iterdir()) if folder.path.is_dir() else []
    return [path for path in paths if any(fnmatch(path.name, pattern) for pattern in folder.names)]


def _is_read(path: Path, source: Path, hint: str = _ANOTHER_FILE) -> InputError:
    where = "" if _same(path, source) else f" (in {source})"
    return InputError(f"would replace what this command reads{where}", where=path, hint=hint)


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _same(path: Path, other: Path) -> bool:
    try:
        return os.path.samefile(path, other)
    except (OSError, ValueError):
        return _real(path) == _real(other)


def _within(path: Path, folder: Path) -> bool:
    """Whether a path lies somewhere in a folder, by the system's own account of which folder that is."""
    return any(_same(parent, folder) for parent in _real(path).parents)
