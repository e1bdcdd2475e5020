"""Tables as training data: Parquet in the layouts of the hub, and whatever else `read_table` reads.

A role is a column of its name; these have other names too:

    image      image_id, file_name, filename, filepath, image_path     the name of a file, or a COCO id
    caption    captions, sentences, text, title

A cell of an image column is `{"bytes", "path"}`, bytes, or the name of a file in the folder of images; a cell
of captions is a text or a list of texts. TROHN-Text has image_id, caption and negative_caption; TROHN-Img has
negative_image besides, in the file; COCO's sets on the hub have a list of captions per image.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from counterfoil.benchmarks.forms import Ids
from counterfoil.benchmarks.readers.rows import CellSource, Photos, image_folder, open_rows, rows_of_files
from counterfoil.benchmarks.records import BytesSource, Caption, FileSource, Image, Source
from counterfoil.benchmarks.references import References, bounds
from counterfoil.benchmarks.tables import EXTENSIONS, DataTable, shown
from counterfoil.benchmarks.training_parquet import Columns, Find, Texts
from counterfoil.benchmarks.training_rows import (
    CAPTION_ROLES,
    IMAGE_ROLES,
    LABELS,
    Missing,
    TrainingSet,
    label,
    of_split,
)
from counterfoil.errors import DataError
from counterfoil.inputs.columns import groups, read_batches

_NAMES: dict[str, tuple[str, ...]] = {
    "image": ("image", "image_id", "file_name", "filename", "filepath", "image_path"),
    "caption": ("caption", "captions", "sentences", "text", "title"),
}


#: The columns that may hold images.
_IMAGE_COLUMNS = tuple(dict.fromkeys([*_NAMES["image"], *IMAGE_ROLES]))


def read_rows(
    path: Path,
    *,
    images: Path | None = None,
    split: str | None = None,
    shelf: Path | None = None,
    missing: Missing = "refuse",
) -> TrainingSet:
    """A row per row of the table, or per caption of a row that has a list of them.

    Images in a Parquet or Arrow file stay there (`CellSource`); named ones are looked for in `images`, else
    in the folder `images` beside the table. Captions in Parquet files whose columns are texts are read into
    a file that is mapped into memory, in the folder `shelf`, else a temporary one (`training_parquet`).
    Raises `DataError` naming file, row and column of a cell that is empty, is of another kind, or names a
    file that is not there, unless such images are kept.
    """
    files = _parquet_files(path, split)
    stored = Columns.of(files, str(path)) if files else None
    columns = _columns(stored.schema.names, str(path)) if stored is not None else {}
    cells: Columns | _Cells
    if stored is not None and stored.suits(columns):
        cells = stored
    else:
        table = rows_of_files(files, _IMAGE_COLUMNS, source=str(path)) if files else _opened(path, split)
        cells, columns = _Cells(table), {}
    for file in files:
        _check_cells(file)
    columns = columns or _columns(cells.table.columns, cells.source)
    photos = Photos(image_folder(path, images), path if path.is_dir() else path.parent)

    def source_of(cell: object, column: str, row: int) -> Source:
        return _source(cell, photos, missing, cells.table.where(row, column))

    shown_images, places = cells.images(columns, source_of)
    captions, texts = cells.captions(columns, shelf)
    if all(counts is None for _, counts in texts.values()):
        # One text per row: what was read is what is asked for, and stays in the file that processes share.
        rows = {**places, **{role: positions for role, (positions, _) in texts.items()}}
        labels = cells.labels(None)
    else:
        ones = np.ones(len(cells.table), dtype=np.int64)
        spoken = {
            role: References(bounds(ones if counts is None else counts), positions)
            for role, (positions, counts) in texts.items()
        }
        rows, source = _rows_of(places, spoken, columns, cells.table)
        labels = cells.labels(source)
    return TrainingSet(path.stem, shown_images, captions, rows, labels, cells.source)


def _opened(path: Path, split: str | None) -> DataTable:
    """The rows of any other table."""
    if path.is_file() and split not in (None, "train"):
        raise DataError("a file has no splits", where=path, given=split, hint="name the folder of both")
    plain = sorted(path.glob("[!.]*.*")) if path.is_dir() and not _saved(path) else []
    place = path
    if len(plain := [file for file in plain if file.suffix.lower() in EXTENSIONS]) > 1:
        # One table per split; more than one of a split is for `open_rows` to complain of.
        chosen = of_split(plain, split, where=path)
        place = chosen[0] if len(chosen) == 1 else path
    return open_rows(place, _IMAGE_COLUMNS, split=split or "train")


def _rows_of(
    places: dict[str, Ids], spoken: dict[str, References], columns: dict[str, str], table: DataTable
) -> tuple[dict[str, Ids], Ids]:
    """A row per caption: positions by role, and the row of the table that each is from."""
    counts, source = spoken["caption"].counts, spoken["caption"].rows
    within = np.arange(len(source)) - np.repeat(np.cumsum(counts) - counts, counts)
    rows = {role: positions[source] for role, positions in places.items()}
    for role, texts in spoken.items():
        own = texts.counts
        odd = (own != counts) & (own != 1)
        if odd.any():
            row = int(np.argmax(odd))
            raise DataError(
                "not as many texts as captions",
                where=table.where(row, columns[role]),
                given=int(own[row]),
                allowed=f"1 or {counts[row]}",
            )
        rows[role] = texts.captions[texts.starts[source] + np.where(own[source] == 1, 0, within)]
    return rows, source


def _parquet_files(path: Path, split: str | None) -> list[Path]:
    """The Parquet files of a split, none where the path holds another kind of table."""
    if path.is_dir() and not _saved(path):
        places = (sorted(place.glob("*.parquet")) for place in (path, path / "data"))
        files = next((listed for listed in places if listed), [])
        return of_split(files, split, where=path) if files else []
    if path.suffix.lower() != ".parquet" or not path.is_file():
        return []
    return [path]


def _saved(folder: Path) -> bool:
    """Whether the `datasets` library saved this folder."""
    return (folder / "dataset_dict.json").is_file() or (folder / "state.json").is_file()


def _columns(named: Collection[str], source: str) -> dict[str, str]:
    """The column that plays each role."""
    column_of: dict[str, str] = {}
    for role in (*IMAGE_ROLES, *CAPTION_ROLES):
        names = _NAMES.get(role, (role, f"{role}s") if role in CAPTION_ROLES else (role,))
        column = next((name for name in names if name in named), None)
        if column is not None:
            column_of[role] = column
        elif role in _NAMES:
            raise DataError(f"no column of the {role}s", where=source, given=", ".join(named), allowed=names)
    return column_of


def _check_cells(file: Path) -> None:
    """Raise `DataError` for a row whose image cell is empty, without reading the groups that have none.

    The file itself counts its empty cells, group by group; finding one here is better than in the middle of
    a night of training.
    """
    offset = 0
    for number, group in enumerate(groups(file)):
        for column in _IMAGE_COLUMNS:
            if group.nulls.get(f"{column}.bytes", group.nulls.get(column)):
                batches = read_batches(file, column, row_groups=[number])
                cells = (cell for batch in batches for cell in batch.to_pylist())
                for row, cell in enumerate(cells, offset + 1):
                    # What is no picture (a whole number, say) is the name of one.
                    value = cell.get("bytes") or cell.get("path") if isinstance(cell, dict) else cell
                    if value is None or value in (b"", ""):
                        raise DataError("no image", where=f"{file}, row {row}, column '{column}'")
        offset += group.rows


def _source(cell: Any, photos: Photos, missing: Missing, where: str) -> Source:
    """Where the image is that a cell holds or names; raises `DataError` where there is none."""
    if isinstance(cell, CellSource):
        return cell
    if isinstance(cell, dict):
        cell = cell["bytes"] if cell.get("bytes") is not None else cell.get("path")
    if isinstance(cell, bytes) and cell:
        return BytesSource(cell, where)
    if isinstance(cell, int) and not isinstance(cell, bool):
        # COCO's photographs are called by their ids.
        cell = f"{cell:012d}.jpg"
    if not isinstance(cell, str) or not cell.strip():
        raise DataError("no image", where=where, given=shown(cell), allowed="a file's name, or its bytes")
    folder = photos.folder
    if missing == "unread":
        return FileSource((folder or Path()) / cell)
    source = photos.source(cell, where=where)
    if source is None and folder is not None and missing != "refuse":
        return FileSource(folder / cell)
    if source is None:
        raise DataError(
            "an image that is only named" if folder is None else "no such image file",
            where=where,
            given=cell if folder is None else folder / cell,
            hint="give the folder that holds the images with --images",
        )
    return source


@dataclass
class _Cells:
    """The columns of a table in memory, with what `Columns` says of those of Parquet files."""

    table: DataTable

    @property
    def source(self) -> str:
        """Where the table is from."""
        return self.table.source

    def images(self, columns: Mapping[str, str], find: Find) -> tuple[tuple[Image, ...], dict[str, Ids]]:
        """The images, those that are named twice once, and the position of each row's by role."""
        images: list[Image] = []
        known: dict[object, int] = {}
        places = {}
        for role, column in columns.items():
            if role not in IMAGE_ROLES:
                continue
            positions = []
            for row, cell in enumerate(self.table[column]):
                key = cell if isinstance(cell, str | int) else (column, row)
                if key not in known:
                    name = f"{column}/{row + 1}" if isinstance(key, tuple) else str(cell)
                    known[key] = len(images)
                    images.append(Image(name, find(cell, column, row)))
                positions.append(known[key])
            places[role] = np.array(positions, dtype=np.int64)
        return tuple(images), places

    def captions(
        self, columns: Mapping[str, str], shelf: Path | None
    ) -> tuple[tuple[Caption, ...], dict[str, Texts]]:
        """The captions, equal ones once (some sets say each of a million five times), and those of rows."""
        number: dict[str, int] = {}
        texts = {role: self._texts(name, number) for role, name in columns.items() if role in CAPTION_ROLES}
        return tuple(Caption(str(at), text) for at, text in enumerate(number)), texts

    def _texts(self, column: str, number: dict[str, int]) -> Texts:
        counts, items = [], []
        for row, cell in enumerate(self.table[column]):
            listed = cell if isinstance(cell, list | tuple) else (cell,)
            if not listed:
                raise DataError("no caption", where=self.table.where(row, column))
            for sentence in listed:
                text = sentence
                if isinstance(sentence, dict):
                    # Some data sets keep what else they know of a sentence beside it.
                    text = sentence.get("raw", sentence.get("caption"))
                text = text.strip() if isinstance(text, str) else text
                if not isinstance(text, str) or not text:
                    raise DataError(
                        "empty text" if text is None or text == "" else "not a text",
                        where=self.table.where(row, column),
                        given=shown(text),
                    )
                items.append(number.setdefault(text, len(number)))
            counts.append(len(listed))
        lengths = np.array(counts, dtype=np.int64)
        return np.array(items, dtype=np.int64), None if (lengths == 1).all() else lengths

    def labels(self, source: Ids | None) -> dict[str, tuple[str, ...]]:
        """The labels of rows, or of the rows `source`."""
        rows = range(len(self.table)) if source is None else source.tolist()
        return {
            name: tuple(label(self.table[name][row], self.table.where(row, name)) for row in rows)
            for name in LABELS
            if name in self.table
        }
