"""Rows of a data set with images in files or cells: texts in memory, images left there until asked for.

Parquet files and folders of them; released files: the one that is meant in a folder, rows that are lists,
pictures by their paths.
"""

import bisect
import itertools
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pyarrow as pa

from counterfoil.benchmarks.benchmark import Card
from counterfoil.benchmarks.image_files import image_names, image_path, is_image_folder, is_outside_allowed
from counterfoil.benchmarks.records import BytesSource, FileSource, PixelSource, Source
from counterfoil.benchmarks.tables import (
    EXTENSIONS,
    DataTable,
    TablePart,
    check_header,
    objects_table,
    read_table,
    shown,
    stack,
)
from counterfoil.errors import DataError
from counterfoil.inputs.columns import broken, check_size, values
from counterfoil.inputs.files import located, parse_json, read_json, read_text, regular
from counterfoil.inputs.pictures import in_rgb


@dataclass(frozen=True)
class Photos:
    """A folder of image files, each of its folders listed once."""

    folder: Path | None
    beside: Path | None = None
    _listed: dict[Path, Mapping[str, bool]] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.folder is not None and not is_image_folder(self.folder):
            what = "no such image folder"
            raise DataError(what, where=self.folder, hint="check the path given with --images")

    def source(self, name: str, *, where: object = None) -> FileSource | None:
        """The file of that name (in a subfolder, or with its whole path), or None where there is none."""
        folder = self.folder or (self.beside if Path(name).is_absolute() else None)
        if folder is None:
            return None
        path = folder / name
        if path.parent not in self._listed:
            self._listed[path.parent] = image_names(path.parent)
        link = self._listed[path.parent].get(path.name)
        return None if link is None else FileSource(image_path(name, folder, where=where, link=link))

    def first(self, name: str, suffixes: Sequence[str]) -> FileSource | None:
        """The file of that name, or of one with another of these endings; None where there is none."""
        stem = name.rpartition(".")[0] if "." in name.rpartition("/")[2] else name
        sources = (self.source(path) for path in (name, *(stem + suffix for suffix in suffixes)))
        return next((source for source in sources if source is not None), None)

    def sources(self, names: Iterable[str]) -> dict[str, FileSource | None]:
        """A source or None for each distinct name; raises `DataError` where the folder has none of them."""
        source_of = {name: self.source(name) for name in dict.fromkeys(names)}
        if self.folder is not None and not any(source_of.values()):
            what = f"none of the {len(source_of):,} images is in this folder"
            hint = f"it should hold files like {next(iter(source_of))}"
            raise DataError(what, where=self.folder, hint=hint)
        return source_of


def image_folder(data: Path | None, images: Path | None) -> Path | None:
    """The folder the user named, else the folder `images` beside the data where there is one."""
    if images is not None or data is None:
        return images
    beside = (data if data.is_dir() else data.parent) / "images"
    return beside if beside.is_dir() else None


def cell_source(table: DataTable, column: str, row: int, folder: Path | Photos | None) -> Source | None:
    """The image of one cell: bytes, `{"bytes", "path"}`, a picture, or a path in `folder`, or by the table.

    None where the image is not at hand: the cell names a file that is not there, or is how a released result
    table prints an image it does not carry ("<PIL...>").
    """
    where = table.where(row, column)
    cell = held_source(table[column][row], where)
    if not isinstance(cell, str):
        return cell
    if cell.startswith("<PIL."):
        return None
    if isinstance(folder, Photos):
        return folder.source(cell, where=where)
    if folder is None:
        place = Path(table.source)
        folder = place if place.is_dir() else place.parent
    return FileSource(image_path(cell, folder, where=where)) if (folder / cell).is_file() else None


def held_source(cell: Any, where: str) -> Source | str:
    """The image that a cell holds (bytes, `{"bytes", "path"}`, a picture), or the path that it names."""
    if isinstance(cell, CellSource):
        return cell
    if isinstance(cell, dict):
        cell = cell["bytes"] if cell.get("bytes") is not None else cell.get("path")
    if isinstance(cell, bytes) and cell:
        return BytesSource(cell, where)
    if isinstance(cell, PIL.Image.Image):
        return PixelSource(np.asarray(in_rgb(cell)), where)
    if not isinstance(cell, str) or not cell.strip():
        raise DataError("no image", where=where, allowed="the path of an image file, or its bytes")
    return cell


def looked_for(folder: Path | None, cell: object) -> str:
    """Where the image that a cell names was looked for, in words; empty for a cell that holds its bytes."""
    return f"looked for {located((folder or Path()) / cell)}" if isinstance(cell, str) else ""


@dataclass(frozen=True)
class CellSource:
    """An image in a cell of a Parquet file, read when asked for."""

    path: Path
    column: str
    row: int
    anywhere: bool = field(default_factory=is_outside_allowed, compare=False, repr=False)

    def read(self) -> bytes:
        """The bytes in the cell; raises `DataError` where it is empty or the file cannot be read."""
        try:
            # A relative path names another file once the working folder changes.
            file = self.path.resolve()
            with _one_reader:
                metadata = _parquet(file, _age(file)).metadata
                groups = range(metadata.num_row_groups)
                ends = list(itertools.accumulate(metadata.row_group(i).num_rows for i in groups))
                group = bisect.bisect_right(ends, self.row)
                cells = _row_group(file, _age(file), self.column, group)
            cell = cells[self.row - (ends[group - 1] if group else 0)]
        except (pa.ArrowException, OSError, KeyError, ValueError) as error:
            what = f"image cannot be read: {error}"
            raise DataError(what, where=self, hint="is the file cut off?") from None
        if isinstance(cell, dict):
            path = cell.get("path")
            cell = cell.get("bytes")
            if cell is None and path:
                beside = self.path.parent
                return FileSource(image_path(path, beside, where=self, anywhere=self.anywhere)).read()
        if not isinstance(cell, bytes) or not cell:
            raise DataError("the cell holds no image", where=self)
        return cell

    def __str__(self) -> str:
        return f"{self.path}, row {self.row + 1}, column '{self.column}'"


def open_rows(
    path: Path, images: Sequence[str], *, split: str = "", names: Sequence[str] = (), subsets: bool = False
) -> DataTable:
    """The rows in `path`: a Parquet file, any file that `read_table` reads, or a folder.

    In a folder the first of these counts: the Parquet files in it or in its `data/` (those of `split` where
    there are several splits); a table called one of `names`; the only table; with `subsets` all tables, a
    column `subset` telling them apart.
    """
    if path.is_dir():
        return _open_folder(path, images, split, names, subsets)
    if path.suffix.lower() == ".parquet":
        return rows_of_files([path], images)
    return read_table(path)


def rows_of_files(files: Sequence[Path], images: Sequence[str], *, source: str | None = None) -> DataTable:
    """The rows of Parquet files that make one data set, in order."""
    tables = []
    for file in files:
        regular(file)
        try:
            # Images are read from the same Parquet file, by any thread.
            with _one_reader:
                opened = _parquet(file.resolve(), _age(file))
                schema = opened.schema_arrow
                check_header(schema.names, file)
                # Columns whose cells hold bytes rather than paths.
                lazy = [
                    name for name in images if name in schema.names and holds_bytes(schema.field(name).type)
                ]
                plain = [name for name in schema.names if name not in lazy]
                check_size(opened.metadata, where=file, columns=plain)
                table, rows = opened.read(columns=plain), opened.metadata.num_rows
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise broken(file, error, "Parquet") from None
        columns: dict[str, Sequence[Any]] = {name: values(table, name, where=file) for name in plain}
        for name in lazy:
            columns[name] = tuple(CellSource(file, name, row) for row in range(rows))
        tables.append(DataTable(columns, str(file), "parquet", (TablePart(str(file), rows),)))
    place = files[0] if len(files) == 1 else files[0].parent
    return replace(stack(tables, source=source or str(place)), kind="parquet")


def _open_folder(
    folder: Path, images: Sequence[str], split: str, names: Sequence[str], subsets: bool
) -> DataTable:
    if (folder / "dataset_dict.json").is_file() or (folder / "state.json").is_file():
        hint = "write each split with its to_parquet, and name that file or folder"
        raise DataError("a data set saved by the library datasets", where=folder, hint=hint)
    for place in (folder, folder / "data"):
        parquet = sorted(place.glob("*.parquet"))
        of_split = [file for file in parquet if split and file.name.startswith((f"{split}-", f"{split}."))]
        if of_split or parquet:
            return rows_of_files(of_split or parquet, images, source=str(folder))
    for name in names:
        if (folder / name).is_file():
            return read_table(folder / name)
    tables = sorted(file for file in folder.iterdir() if file.suffix.lower() in EXTENSIONS)
    if len(tables) > 1 and subsets:
        return read_table(folder)
    if len(tables) != 1:
        raise DataError(
            "no data set in this folder" if not tables else "several tables in this folder",
            where=folder,
            given=", ".join(file.name for file in tables[:8]) or "nothing that can be read",
            allowed=("Parquet files", *names),
            hint="name the file itself" if tables else None,
        )
    return read_table(tables[0])


def holds_bytes(kind: pa.DataType) -> bool:
    """Whether a column's cells hold pictures."""
    if pa.types.is_struct(kind):
        return any(field.name == "bytes" for field in kind)
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


#: Images are read by several threads, and Arrow's Parquet reader crashes the process when two of them use it.
#: With the lock, a row group is also read once where each thread would have read it for itself.
_one_reader = threading.Lock()


def _age(path: Path) -> int:
    """Part of every cache key, so that a file that was replaced is opened again."""
    return path.stat().st_mtime_ns


@lru_cache(maxsize=32)
def _parquet(path: Path, age: int) -> Any:
    # Not mapped into memory: a mapped file that is cut off meanwhile ends the process by a signal.
    from pyarrow.parquet import ParquetFile

    return ParquetFile(path)


@lru_cache(maxsize=4)
def _row_group(path: Path, age: int, column: str, group: int) -> list[Any]:
    # Rows are read in order: with the last groups kept, each group is read once.
    # No threads: this runs in worker processes that already share the machine.
    table = _parquet(path, age).read_row_group(group, columns=[column], use_threads=False)
    # Cells of a damaged file may point outside its bytes, and Arrow follows them.
    table.validate(full=True)
    # As Python's own values: of an array that outlives other groups Arrow has read freed memory.
    cells: list[Any] = table.column(column).to_pylist()
    return cells


def no_data(card: Card) -> DataError:
    """The error of a benchmark whose data are not here, which says where to get them."""
    from counterfoil.benchmarks.fetching import serving

    if serving(card.name) is not None:
        hint = f"get it with 'counterfoil benchmarks fetch {card.name}', or name its folder with --data"
    elif card.homepage:
        hint = f"get it from {card.homepage} and name its folder with --data"
    else:
        hint = "give it with --data"
    return DataError(f"no data of {card.title}", where=card.name, hint=hint)


def released_file(card: Card, data: Path | None, names: Sequence[str], *, hint: str | None = None) -> Path:
    """The file that `data` is, or the first of `names` that lies in the folder `data`."""
    if data is None:
        raise no_data(card)
    if data.is_file():
        return data
    if not data.is_dir():
        raise DataError("no such file or folder", where=data, hint="check the path given with --data")
    path = next((data / name for name in names if (data / name).is_file()), None)
    if path is None:
        raise DataError(f"no file of {card.title} in this folder", where=data, allowed=names, hint=hint)
    return path


def released_set(
    card: Card, data: Path | None, names: Sequence[str], *, hint: str | None = None
) -> list[Path]:
    """The files of these names in the folder `data`; raises `DataError` naming those that are missing."""
    if data is None:
        raise no_data(card)
    if not data.is_dir():
        raise DataError("no such folder", where=data, hint="check the path given with --data")
    missing = [name for name in names if not (data / name).is_file()]
    if missing:
        many = "s" if len(missing) > 1 else ""
        raise DataError(f"file{many} missing: {', '.join(missing)}", where=data, hint=hint)
    return [data / name for name in names]


def list_of(value: Any, *, where: object) -> list[Any]:
    """The items of a list, tuple or array, if there are some; raises `DataError`."""
    items = value.tolist() if isinstance(value, np.ndarray) else value
    if not isinstance(items, list | tuple) or not items:
        what = "not a list of rows"
        raise DataError(what, where=where, given=shown(value), allowed="a list with a row for each item")
    return list(items)


def listed_rows(path: Path, columns: Sequence[str]) -> DataTable:
    """The rows of a JSON file whose rows are lists, a cell for each of `columns`."""
    rows = list_of(read_json(path), where=path)
    part = TablePart(str(path), len(rows))
    cells: list[list[object]] = []
    for number, row in enumerate(rows):
        if not isinstance(row, list) or len(row) != len(columns):
            what, allowed = "not a row of this layout", f"a list of {', '.join(columns)}"
            raise DataError(what, where=part.where(number), given=shown(row), allowed=allowed)
        cells.append(row)
    return DataTable(dict(zip(columns, zip(*cells, strict=True), strict=True)), str(path), "json", (part,))


def object_tables(path: Path, *keys: str, without: Collection[str] = ()) -> list[DataTable]:
    """The lists of objects under some keys of a JSON file as tables; `without` some columns."""
    value = parse_json(read_text(path), where=path, without=without)
    if not isinstance(value, dict) or not all(isinstance(value.get(key), list) for key in keys):
        given = ", ".join(value) if isinstance(value, dict) else shown(value)
        allowed = f"an object with the lists {' and '.join(keys)}"
        raise DataError("not a file of this layout", where=path, given=given, allowed=allowed)
    return [
        objects_table(value[key], TablePart(f"{path}, {key}", len(value[key]), "entry"), "json")
        for key in keys
    ]


def pictures_of(
    names: Iterable[str], data: Path | None, images: Path | None, *, suffixes: Sequence[str] = ()
) -> dict[str, FileSource | None]:
    """The file of each picture by the path that the release calls it, None where it is not at hand."""
    distinct = tuple(dict.fromkeys(names))
    parts = {name: name.split("/") for name in distinct}
    root = data if data is None or data.is_dir() else data.parent
    folders = [images] if images is not None else [] if root is None else [root, root / "images"]
    for folder in folders:
        if not folder.is_dir():
            continue
        photos = Photos(folder)
        for cut in range(max(map(len, parts.values()))):
            tails = {name: "/".join(of[min(cut, len(of) - 1) :]) for name, of in parts.items()}
            if len(set(tails.values())) < len(distinct):
                break
            source_of = {name: photos.first(tail, suffixes) for name, tail in tails.items()}
            if any(source_of.values()):
                return source_of
    # A bucket is no folder of this machine.
    return dict.fromkeys(distinct) if images is None else Photos(images).sources(distinct)
