"""Training data from files: which layout a path holds, and the split that leaves some rows for validation."""

import math
from pathlib import Path

import numpy as np

from counterfoil.data.folder import is_benchmark_folder, load
from counterfoil.data.tables import EXTENSIONS
from counterfoil.data.training import Missing, TrainingSet
from counterfoil.data.training_benchmarks import from_benchmark
from counterfoil.data.training_coco import is_coco, read_coco
from counterfoil.data.training_shards import is_shards, read_shards
from counterfoil.data.training_tables import read_rows
from counterfoil.errors import InputError


def read(
    path: str | Path,
    *,
    images: str | Path | None = None,
    split: str | None = None,
    shelf: Path | None = None,
    missing: Missing = "refuse",
) -> TrainingSet:
    """The training data in `path`, whichever of these it holds; images stay in their files until asked for.

    * A folder that `counterfoil` saved: quads give the four roles, choices the ones they have, a gallery its
      images with the captions written for them (`training_benchmarks`).
    * WebDataset shards: a `.tar`, a folder of them, or a pattern "train-{000..015}.tar" (`training_shards`).
    * COCO's captions: `captions_train2017.json`, or the folder it lies in (`training_coco`).
    * A table: Parquet as the hub keeps it, one file or a folder, and every table that `read_table` reads
      (`training_tables`).

    `images` is the folder of the photographs that a layout only names. `split` picks the files whose names
    begin with it ("train", "validation"), or the folder that is called so; None is "train" where there are
    several splits, else all there is. `shelf` is a folder in which the captions of large tables are kept as
    memory is, for the next process that reads them (`training_captions`). With `missing` "keep" an image
    whose file is not there stays, and raises when it is decoded, as one that is broken does.
    Raises `DataError` naming the file, the row and the column that does not fit.
    """
    path, images = Path(path), None if images is None else Path(images)
    if is_benchmark_folder(path):
        if split not in (None, "train"):
            raise InputError("a saved benchmark has no splits", where=path, given=split)
        return from_benchmark(load(path, verify=False), missing=missing)
    if is_shards(path):
        return read_shards(path, split=split)
    if is_coco(path):
        return read_coco(path, images=images, split=split, missing=missing)
    inside = _folder_of_split(path, split)
    if inside is not None:
        return read(inside, images=images, shelf=shelf, missing=missing)
    return read_rows(path, images=images, split=split, shelf=shelf, missing=missing)


def _folder_of_split(path: Path, split: str | None) -> Path | None:
    """The folder of a split in a folder that holds nothing but such folders (and photographs)."""
    names = ("validation", "val", "valid") if split in ("val", "validation") else (split or "train",)
    if not path.is_dir() or any((path / name).is_file() for name in ("dataset_dict.json", "state.json")):
        return None
    if any(file.suffix.lower() in EXTENSIONS for place in (path, path / "data") for file in place.glob("*")):
        return None
    return next((path / name for name in names if (path / name).is_dir()), None)


def split(data: TrainingSet, *, share: float = 0.2, seed: int = 42) -> tuple[TrainingSet, TrainingSet]:
    """(training, validation): `share` of the rows, rounded up and drawn by `seed`, are for validation.

    The rows are those that `datasets.Dataset.train_test_split(test_size=share, seed=seed)` draws, in its
    order, which is the split behind the released checkpoints of BiVLC. It is a split of rows: an image with
    several captions may have some on either side. Raises `InputError` where one side would be empty.

    >>> from counterfoil.data.records import Caption, Image
    >>> rows = {"image": np.arange(10), "caption": np.arange(10)}
    >>> data = TrainingSet("ten", (Image("a"),) * 10, (Caption("b", "b"),) * 10, rows)
    >>> training, validation = split(data)
    >>> len(training), validation.rows["image"]
    (8, array([5, 6]))
    """
    n = len(data)
    held = math.ceil(share * n) if 0 < share < 1 else 0
    if not 0 < held < n:
        raise InputError(
            "the split would leave one side empty",
            where=data.source or data.name,
            given=f"{share} of {n:,} rows",
            allowed="a share between 0 and 1 that leaves a row on either side",
            hint="give more rows, or others to validate on",
        )
    order = np.random.default_rng(seed).permutation(n)
    return data.select(order[held:]), data.select(order[:held])
