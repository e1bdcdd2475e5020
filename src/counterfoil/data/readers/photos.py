"""Image files that a table names, and image cells of every kind, as sources."""

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from counterfoil.data.readers.rows import CellSource
from counterfoil.data.records import BytesSource, FileSource, Source
from counterfoil.data.tables import DataTable
from counterfoil.errors import DataError


@dataclass(frozen=True)
class Photos:
    """A folder of image files, each of its folders listed once; `folder` None holds nothing."""

    folder: Path | None
    _listed: dict[Path, frozenset[str]] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.folder is not None and not self.folder.is_dir():
            raise DataError(
                "no such image folder", where=self.folder, hint="check the path given with --images"
            )

    def source(self, name: str) -> FileSource | None:
        """The file of that name (in a subfolder, or with its whole path), or None where there is none."""
        if self.folder is None and not Path(name).is_absolute():
            return None
        path = Path(name) if self.folder is None else self.folder / name
        if path.parent not in self._listed:
            try:
                self._listed[path.parent] = frozenset(os.listdir(path.parent))
            except (FileNotFoundError, NotADirectoryError):
                self._listed[path.parent] = frozenset()
        return FileSource(path) if path.name in self._listed[path.parent] else None

    def sources(self, names: Iterable[str]) -> dict[str, FileSource | None]:
        """A source or None for each distinct name; raises `DataError` where the folder has none of them.

        Some may be missing: a benchmark can be measured on the part that is at hand.
        """
        found = {name: self.source(name) for name in dict.fromkeys(names)}
        if self.folder is not None and not any(found.values()):
            raise DataError(
                f"none of the {len(found):,} images is in this folder",
                where=self.folder,
                hint=f"it should hold files like {next(iter(found))}",
            )
        return found


def image_folder(data: Path | None, images: Path | None) -> Path | None:
    """The folder the user named, else the folder `images` beside the data where there is one."""
    if images is not None or data is None:
        return images
    beside = (data if data.is_dir() else data.parent) / "images"
    return beside if beside.is_dir() else None


def cell_source(table: DataTable, column: str, row: int, folder: Path | None) -> Source | None:
    """The image of one cell: bytes, `{"bytes", "path"}`, or a path relative to `folder`.

    None where the image is not at hand: the cell names a file that is not there, or is how a released result
    table prints an image it does not carry ("<PIL...>"). Raises `DataError` where the cell is empty.
    """
    cell: Any = table[column][row]
    where = table.where(row, column)
    if isinstance(cell, CellSource):
        return cell
    if isinstance(cell, dict):
        cell = cell["bytes"] if cell.get("bytes") is not None else cell.get("path")
    if isinstance(cell, bytes) and cell:
        return BytesSource(cell, where)
    if not isinstance(cell, str) or not cell.strip():
        raise DataError("no image", where=where, allowed="the path of an image file, or its bytes")
    if cell.startswith("<PIL."):
        return None
    path = (folder or Path()) / cell
    return FileSource(path) if path.is_file() else None
