"""Training data from tables, shards, COCO's captions or a benchmark's questions; the split for validation."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.folder import is_benchmark_folder, load
from counterfoil.benchmarks.readers.released_captions import captions_files, photographs, read_captions
from counterfoil.benchmarks.records import (
    Caption,
    FileSource,
    Image,
    Photos,
    Source,
    held_source,
    image_folder,
)
from counterfoil.benchmarks.references import References, bounds
from counterfoil.benchmarks.tables import EXTENSIONS, open_rows, rows_of_files
from counterfoil.benchmarks.training_columns import Columns, Find, ParquetColumns
from counterfoil.benchmarks.training_rows import CAPTION_ROLES, IMAGE_ROLES, Missing, TrainingSet, of_split
from counterfoil.benchmarks.training_shards import is_shards, read_shards
from counterfoil.errors import DataError, InputError
from counterfoil.inputs.files import Location, location

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
    """A row per row of the table, or per caption of a row that has a list of them."""
    files = [path] if path.is_file() and path.suffix.lower() == ".parquet" else []
    if path.is_dir():
        listings = (sorted(place.glob("*.parquet")) for place in (path, path / "data"))
        listed = next((listed for listed in listings if listed), [])
        files = of_split(listed, split, where=path) if listed else []
    stored = ParquetColumns.of(files, str(path)) if files else None
    if stored is not None and stored.suits(columns := _columns(stored)):
        cells: Columns = stored
    elif files:
        cells = Columns(rows_of_files(files, _IMAGE_COLUMNS, source=str(path)))
        columns = _columns(cells)
    else:
        # A table that is no Parquet, or a folder with one per split.
        if path.is_file() and split not in (None, "train"):
            raise DataError("a file has no splits", where=path, given=split, hint="name the folder of both")
        listed = sorted(path.glob("[!.]*.*")) if path.is_dir() else []
        plain = [file for file in listed if file.suffix.lower() in EXTENSIONS]
        # More than one of a split is for `open_rows` to complain of.
        chosen = of_split(plain, split, where=path) if len(plain) > 1 else []
        place = chosen[0] if len(chosen) == 1 else path
        cells = Columns(open_rows(place, _IMAGE_COLUMNS, split=split or "train"))
        columns = _columns(cells)
    photos = Photos(image_folder(path, images), path if path.is_dir() else path.parent)

    def source_of(cell: object, column: str, row: int) -> Source:
        return _source(cell, photos, missing, cells.table.where(row, column))

    return _assembled(path.stem, cells, columns, source_of, shelf)


def _assembled(
    name: str, cells: Columns, columns: Mapping[str, str], find: Find, shelf: Path | None
) -> TrainingSet:
    shown_images, image_positions = cells.images(columns, find)
    captions, texts = cells.captions(columns, shelf)
    if all(counts is None for _, counts in texts.values()):
        # One text per row: what was read is what is asked for, and stays in the file that processes share.
        rows = {**image_positions, **{role: positions for role, (positions, _) in texts.items()}}
        labels = cells.labels(None)
    else:
        ones = np.ones(len(cells.table), dtype=np.int64)
        spoken = {
            role: References(bounds(ones if counts is None else counts), positions)
            for role, (positions, counts) in texts.items()
        }
        counts, source = spoken["caption"].counts, spoken["caption"].rows
        within = np.arange(len(source)) - np.repeat(np.cumsum(counts) - counts, counts)
        rows = {role: positions[source] for role, positions in image_positions.items()}
        for role, of_role in spoken.items():
            n_texts = of_role.counts
            odd = (n_texts != counts) & (n_texts != 1)
            if odd.any():
                row = int(np.argmax(odd))
                what, where = "not as many texts as captions", cells.table.where(row, columns[role])
                raise DataError(what, where=where, given=int(n_texts[row]), allowed=f"1 or {counts[row]}")
            place = of_role.starts[source] + np.where(n_texts[source] == 1, 0, within)
            rows[role] = of_role.captions[place]
        labels = cells.labels(source)
    return TrainingSet(name, shown_images, captions, rows, labels, cells.table.source)


def _columns(cells: Columns) -> dict[str, str]:
    column_of: dict[str, str] = {}
    for role in (*IMAGE_ROLES, *CAPTION_ROLES):
        names = _NAMES.get(role, (role, f"{role}s") if role in CAPTION_ROLES else (role,))
        column = next((name for name in names if name in cells.names), None)
        if column is not None:
            column_of[role] = column
        elif role in _NAMES:
            what, given = f"no column of the {role}s", ", ".join(cells.names)
            raise DataError(what, where=cells.table.source, given=given, allowed=names)
    return column_of


def _source(cell: Any, photos: Photos, missing: Missing, where: str) -> Source:
    """Where the image is that a cell holds or names; raises `DataError` where there is none."""
    if type(cell) is int:
        # COCO's photographs are called by their ids.
        cell = f"{cell:012d}.jpg"
    cell = held_source(cell, where)
    if not isinstance(cell, str):
        return cell
    folder = photos.folder
    if missing == "unread":
        return FileSource((folder or Path()) / cell)
    source = photos.source(cell, where=where)
    if source is None and folder is not None and missing != "refuse":
        return FileSource(folder / cell)
    if source is None:
        what = "an image that is only named" if folder is None else "no such image file"
        hint = "give the folder that holds the images with --images"
        raise DataError(what, where=where, given=cell if folder is None else folder / cell, hint=hint)
    return source


def read_coco(
    path: Path, *, images: Path | None = None, split: str | None = None, missing: Missing = "refuse"
) -> TrainingSet:
    """A row per annotation; line breaks in a caption become blanks, and blanks at its ends go."""
    if images is not None and not images.is_dir():
        raise DataError("no such image folder", where=images, hint="check the path given with --images")
    files = captions_files(path)
    if path.is_dir():
        stems = [file.stem.removeprefix("captions_") for file in files]
        prefix = "val" if split == "validation" else split or "train"
        chosen = [file for file, stem in zip(files, stems, strict=True) if stem.startswith(prefix)]
        if not chosen and split is None:
            chosen = files
        if not chosen:
            raise DataError("no captions of this split", where=path, given=split, allowed=stems)
        files = chosen
    coco = read_captions(files)
    coco = coco.take(np.unique(coco.owners), np.arange(len(coco.captions)))
    sources = photographs(coco.files, coco.splits, path, images)
    lacking = [names for names, source in zip(coco.files, sources, strict=True) if source is None]
    if lacking and missing == "refuse":
        what = f"{len(lacking):,} of {len(sources):,} photographs are not there"
        hint = "give the folder that holds them with --images"
        raise DataError(what, where=images or path, given=lacking[0][0], hint=hint)
    texts = [" ".join(text.strip().split("\n")) for text in map(str, coco.texts)]
    if "" in texts:
        raise DataError("empty text", where=f"{coco.source}, annotation {coco.captions[texts.index('')]}")
    folder = images or (path if path.is_dir() else path.parent)
    items = zip(coco.images.tolist(), sources, coco.files, strict=True)
    shown_images = tuple(Image(str(n), source or FileSource(folder / names[0])) for n, source, names in items)
    captions = tuple(map(Caption, map(str, coco.captions.tolist()), texts))
    rows = {"image": coco.owners, "caption": np.arange(len(texts))}
    return TrainingSet("coco", shown_images, captions, rows, source=coco.source)


def from_benchmark(benchmark: Benchmark, *, missing: Missing = "refuse") -> TrainingSet:
    """A row per quad; per right and wrong candidate of a choice; per caption of a gallery's images."""
    questions, place = benchmark.questions, benchmark.source or benchmark.name
    source, rows = questions.training_rows(where=place)
    for role, positions in rows.items():
        is_image = role.endswith("image")
        if is_image:
            lacks = np.array([image.source is None for image in benchmark.images])[positions]
        else:
            lacks = np.array([caption.text is None for caption in benchmark.captions])[positions]
        if lacks.any() and not (is_image and missing != "refuse"):
            j = int(positions[np.argmax(lacks)])
            item = (benchmark.images if is_image else benchmark.captions)[j]
            what = f"{int(lacks.sum()):,} of {len(positions):,} rows have no {role} at hand"
            given = f"{'image' if is_image else 'caption'} '{item.id}'"
            hint = "learning needs the pictures and the texts themselves"
            raise DataError(what, where=place, given=given, hint=hint)
    groupings = {}
    if source is not None:
        groupings = {name: tuple(labels[i] for i in source) for name, labels in questions.groupings.items()}
    items = benchmark.images, benchmark.captions
    return TrainingSet(benchmark.name, *items, rows, groupings, benchmark.source)


def read(
    path: str | Path,
    *,
    images: str | Path | None = None,
    split: str | None = None,
    shelf: Path | None = None,
    missing: Missing = "refuse",
) -> TrainingSet:
    """The training data in `path`: a folder that `counterfoil` saved, WebDataset shards, COCO's captions, a
    table.

    `images` is the folder of the photographs that a layout only names. `split` picks the files whose names
    begin with it ("train", "validation"), or the folder that is called so; None is "train" where there are
    several splits, else all there is. `shelf` is a folder in which the captions of large tables are
    kept for the next process. With `missing` "keep" an image whose file is not there stays, and raises when
    it is decoded.
    """
    path, images = Path(path), None if images is None else Path(images)
    if is_shards(path):
        samples = read_shards(path, split=split)
        columns = {role: role for role in (*IMAGE_ROLES, *CAPTION_ROLES) if role in samples}
        name = path.name.split(".")[0] or "shards"
        return _assembled(name, Columns(samples), columns, lambda cell, column, row: cell, None)
    if isinstance(location(path), Location):
        hint = "training data of other kinds are read from a disk: mount it, or copy them"
        raise DataError("no shards at this URL", where=path, allowed="tar files", hint=hint)
    if is_benchmark_folder(path):
        if split not in (None, "train"):
            raise InputError("a saved benchmark has no splits", where=path, given=split)
        return from_benchmark(load(path, verify=False), missing=missing)
    coco_file = path.is_file() and path.suffix == ".json" and path.stem.startswith("captions_")
    if coco_file or (path.is_dir() and captions_files(path)):
        return read_coco(path, images=images, split=split, missing=missing)
    # A folder that holds nothing but folders of splits (and photographs).
    tables = any(file.suffix.lower() in EXTENSIONS for i in (path, path / "data") for file in i.glob("*"))
    if path.is_dir() and not tables:
        held_out = split in ("val", "validation")
        for name in ("validation", "val", "valid") if held_out else (split or "train",):
            if (path / name).is_dir():
                return read(path / name, images=images, shelf=shelf, missing=missing)
    return read_rows(path, images=images, split=split, shelf=shelf, missing=missing)


def split(data: TrainingSet, *, share: float = 0.2, seed: int = 42) -> tuple[TrainingSet, TrainingSet]:
    """(training, validation): `share` of the rows, rounded up and drawn by `seed`, are for validation.

    The rows are those that `datasets.Dataset.train_test_split(test_size=share, seed=seed)` draws, in its
    order, which is the split behind the released checkpoints of BiVLC. It is a split of rows: an image with
    several captions may have some on either side.
    """
    n = len(data)
    held = math.ceil(share * n) if 0 < share < 1 else 0
    if not 0 < held < n:
        what, hint = "the split would leave one side empty", "give more rows, or others to validate on"
        raise InputError(what, where=data.source or data.name, given=f"{share} of {n:,} rows", hint=hint)
    order = np.random.default_rng(seed).permutation(n)
    return data.select(order[held:]), data.select(order[:held])
