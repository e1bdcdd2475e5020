"""The guard of a command's outputs: none is a file that it reads, none replaces what it did not write.

A command declares what it will write and what it reads before any work is done (`Outputs.file`,
`Outputs.folder`). While it runs, `store.writing` asks the same guard, so that a file which was not declared
cannot take the place of one that is read either. Two paths are one file where the system says so (links,
other spellings, case where the disk ignores it) or where they resolve to the same path.
"""

import os
import stat
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

from counterfoil.errors import InputError
from counterfoil.outputs import marks

#: What a user can do where a file stands in the way.
_ANOTHER_FILE = "name another file"
_ANOTHER_FOLDER = "name another folder"


@dataclass(frozen=True)
class Folder:
    """A folder that a command writes files into.

    `names` are patterns of what is written there. `whose` says of a folder that holds some of them why it is
    not the command's own, None where it is; a folder that holds none of them is free, unless `alone`: then it
    must hold nothing else at all.
    """

    path: Path
    names: tuple[str, ...]
    whose: Callable[[Path], str | None]
    alone: bool = False


@dataclass(eq=False)
class Outputs:
    """What `command` writes and reads; `overwrite` where the user asked to replace what is not its own."""

    command: str
    overwrite: bool = False
    reads: list[Path] = field(default_factory=list)
    _files: dict[Path, str | None] = field(default_factory=dict)
    _folders: list[Folder] = field(default_factory=list)

    def read(self, *paths: Path) -> None:
        """Add files and folders that the command reads, those that exist, and ask again of all outputs.

        Raises `InputError` where one of the outputs would replace one of them.
        """
        self.reads += [path for path in paths if path.exists()]
        for path in self._files:
            self._check_input(path, ours=self._own(path))
        for folder in self._folders:
            self._check_folder_input(folder)

    def file(self, path: Path, form: str | None = None) -> None:
        """Declare a file; `form` is how it holds a mark (`marks.form_of`), None where it holds none.

        Raises `InputError` where the file is read by the command, is another output too, is no regular file,
        or was written by anything but this command.
        """
        real = _real(path)
        if os.path.lexists(real) and not stat.S_ISREG(os.lstat(real).st_mode):
            raise InputError(
                "not a regular file, so nothing is written to it",
                where=path,
                hint="name a file, or - for standard output where the option allows it",
            )
        if any(_alike(real, other) for other in self._files):
            raise InputError("two results would be written to one file", given=str(path), hint="name another")
        for folder in self._folders:
            self._check_apart(real, path, folder)
        self._files[real] = form
        ours = self._own(real)
        self._check_input(path, ours=ours)
        if real.exists() and not ours and not self.overwrite:
            since = f" and is not as 'counterfoil {self.command}' wrote it" if form is not None else ""
            raise InputError(
                f"the file exists{since}",
                where=path,
                hint=f"{_ANOTHER_FILE}, or replace it with --overwrite",
            )

    def folder(self, folder: Folder) -> None:
        """Declare a folder.

        Raises `InputError` where the command reads it or files in it that would be replaced, where it holds
        files of these names that are not the command's own, and where two outputs would be one file.
        """
        path, real = folder.path, _real(folder.path)
        if any(_alike(real, _real(other.path)) for other in self._folders):
            raise InputError("two results would be written to one folder", given=str(path))
        self._folders.append(folder)
        for file in self._files:
            self._check_apart(file, file, folder)
        self._check_folder_input(folder)
        why = self._why_foreign(folder)
        if why is not None and not self.overwrite:
            raise InputError(why, where=path, hint=f"{_ANOTHER_FOLDER}, or replace it with --overwrite")

    def check_write(self, path: Path) -> None:
        """Raise `InputError` where writing `path` would replace a file that the command reads."""
        if any(_same(path, source) for source in self.reads if not source.is_dir()):
            raise _is_read(path, path)

    def mark_of(self, path: Path) -> str | None:
        """The form of mark that the file gets, None where it was not declared or holds none."""
        return self._files.get(_real(path))

    def _own(self, path: Path) -> bool:
        form = self._files.get(_real(path))
        return form is not None and path.is_file() and marks.writer_of(path, form) == self.command

    def _check_input(self, path: Path, *, ours: bool) -> None:
        real = _real(path)
        for source in self.reads:
            if _same(real, source):
                raise _is_read(path, source)
            if source.is_dir() and real.exists() and not ours and _within(real, source):
                raise _is_read(path, source)

    def _check_folder_input(self, folder: Folder) -> None:
        real = _real(folder.path)
        foreign = self._why_foreign(folder) is not None
        for source in self.reads:
            if _same(real, source) or (foreign and source.is_dir() and _within(real, source)):
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
        if inside or _alike(real, place):
            raise InputError("two results would be written to one file", given=str(path), hint="name another")

    def _why_foreign(self, folder: Folder) -> str | None:
        if not folder.path.is_dir():
            return None
        if _there(folder):
            return folder.whose(folder.path)
        # Partial files of a machine that stopped while writing are no obstacle.
        names = [each.name for each in folder.path.iterdir()] if folder.alone else []
        others = [name for name in names if not (name.startswith(".") and name.endswith(".part"))]
        return f"the folder holds other files ({', '.join(sorted(others)[:3])})" if others else None


_active: Outputs | None = None


@contextmanager
def guarding(outputs: Outputs) -> Iterator[Outputs]:
    """Make `outputs` the guard that writing asks, until the block ends."""
    global _active
    before, _active = _active, outputs
    try:
        yield outputs
    finally:
        _active = before


def active() -> Outputs | None:
    """The guard of the command that runs, None outside of one."""
    return _active


def overwriting() -> bool:
    """Whether the command that runs was asked to replace what is not its own."""
    return _active is not None and _active.overwrite


def existing(texts: Iterable[object]) -> list[Path]:
    """The files and folders that arguments name, alone or after a kind, a key or an architecture.

    >>> here = Path(__file__)
    >>> existing([f"given:{here}", f"data={here}", "bivlc-and-no-file"]) == [here]
    True
    """
    found: dict[Path, Path] = {}
    for text in texts:
        for name in _names(str(text)):
            try:
                if name and Path(name).exists():
                    found.setdefault(_real(Path(name)), Path(name))
            except (OSError, ValueError):  # too long, or with a character that no name has
                continue
    return list(found.values())


def _names(text: str) -> Iterator[str]:
    yield text
    for sign in ":=":
        _, found, rest = text.partition(sign)
        if found:
            yield rest
            yield rest.partition("@")[0]
            # What follows an architecture: ViT-B-32/weights/best.pt.
            while "/" in rest:
                rest = rest.partition("/")[2]
                yield rest


def _there(folder: Folder) -> list[Path]:
    """What lies in the folder under one of its names."""
    if not folder.path.is_dir():
        return []
    return [
        path
        for path in sorted(folder.path.iterdir())
        if any(fnmatch(path.name, pattern) for pattern in folder.names)
    ]


def _is_read(path: Path, source: Path, hint: str = _ANOTHER_FILE) -> InputError:
    where = "" if _same(path, source) else f" (in {source})"
    return InputError(f"would replace what this command reads{where}", where=path, hint=hint)


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _same(path: Path, other: Path) -> bool:
    """Whether two paths are one file or folder."""
    try:
        return os.path.samefile(path, other)
    except (OSError, ValueError):
        return _real(path) == _real(other)


def _alike(path: Path, other: Path) -> bool:
    """Whether two resolved paths are one file, or would be on a disk that ignores case."""
    return _same(path, other) or _folded(path) == _folded(other)


def _folded(path: Path) -> str:
    return unicodedata.normalize("NFC", str(path)).casefold()


def _within(path: Path, folder: Path) -> bool:
    """Whether a path lies somewhere in a folder, by the system's own account of which folder that is."""
    return any(_same(parent, folder) for parent in _real(path).parents)
