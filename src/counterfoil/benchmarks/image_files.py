"""Files that image cells name: they stay inside the folder of images, links resolved.

A table comes from anywhere, and what its cells name is shown, saved and published. `/etc/passwd`,
`../../.ssh/id_rsa` and a link to either are refused, unless the user allows files outside.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from counterfoil.errors import DataError
from counterfoil.inputs.files import Location, location

_outside = False


@contextmanager
def outside_allowed(allowed: bool = True) -> Iterator[None]:
    """A block in which image cells may name any file of this machine, as with `--allow-outside`."""
    global _outside
    before, _outside = _outside, allowed or _outside
    try:
        yield
    finally:
        _outside = before


def is_outside_allowed() -> bool:
    """Whether image cells may name any file."""
    return _outside


def image_path(
    cell: str, folder: Path, *, where: object = None, link: bool | None = None, anywhere: bool | None = None
) -> Path:
    """The path of what a cell names in a folder, whether there is such a file or not.

    `link` says whether it is a link, None where that is to be looked up; `anywhere` is what
    `is_outside_allowed` said when the cell was read. Raises `DataError` for what lies outside of the folder.

    >>> image_path("a/../../.ssh/id_rsa", Path("photos"), where="mine.csv, row 1")
    Traceback (most recent call last):
    counterfoil.errors.DataError: mine.csv, row 1: an image outside of the folder of images; given: ...
    >>> image_path("a/b.jpg", Path("photos")).as_posix()
    'photos/a/b.jpg'
    """
    if "\0" in cell:
        raise DataError("no name of a file can hold a NUL character", where=where, given=repr(cell))
    path = folder / cell
    if _outside if anywhere is None else anywhere:
        return path
    if isinstance(location(folder), Location):
        inside = location(path) != path and ".." not in path.parts
    else:
        # Whole paths: what is remembered of a relative one is of another working folder.
        root, climbs = _real(os.path.abspath(folder)), ".." in Path(cell).parts
        if climbs or (os.path.islink(path) if link is None else link):
            real = os.path.realpath(path)
        else:
            real = os.path.join(_real(os.path.abspath(path.parent)), path.name)
        inside = real == root or real.startswith(root.rstrip(os.sep) + os.sep)
    if not inside:
        what = "an image outside of the folder of images"
        hint = "name their folder with --images, or take them with --allow-outside"
        raise DataError(what, where=where, given=cell, allowed=f"files in {folder}", hint=hint)
    return path


def image_names(folder: Path) -> Mapping[str, bool]:
    """The names in a folder of images, on disk or at a distance, and whether each is a link."""
    if isinstance(where := location(folder), Location):
        from counterfoil.storage.files import names_in

        return dict.fromkeys(names_in(where), False)
    try:
        with os.scandir(folder) as listed:
            return {entry.name: entry.is_symlink() for entry in listed}
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return {}


def is_image_folder(folder: Path) -> bool:
    """Whether there is such a folder; one at a distance must hold something."""
    return bool(image_names(folder)) if isinstance(location(folder), Location) else folder.is_dir()


# A million cells lie in a few folders.
@lru_cache(maxsize=4096)
def _real(folder: str) -> str:
    return os.path.realpath(folder)
