"""Training data from files, shards, COCO's captions or a benchmark's questions; the split for validation."""

import math
from pathlib import Path

import numpy as np

from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.folder import is_benchmark_folder, load
from counterfoil.benchmarks.readers.coco_files import captions_files, photographs, read_captions
from counterfoil.benchmarks.records import Caption, FileSource, Image
from counterfoil.benchmarks.tables import EXTENSIONS
from counterfoil.benchmarks.training_rows import Missing, TrainingSet
from counterfoil.benchmarks.training_shards import is_shards, read_shards
from counterfoil.benchmarks.training_tables import read_rows
from counterfoil.errors import DataError, InputError
from counterfoil.storage import Location, as_path, location


def is_coco(path: Path) -> bool:
    """Whether this is a captions file of COCO, or a folder that holds one (or has it in `annotations`)."""
    if path.is_file():
        return path.suffix == ".json" and path.stem.startswith("captions_")
    return path.is_dir() and bool(captions_files(path))


def read_coco(
    path: Path, *, images: Path | None = None, split: str | None = None, missing: Missing = "refuse"
) -> TrainingSet:
    """A row per annotation; line breaks in a caption become blanks, and blanks at its ends go.

    That is how the captions were cleaned for the released checkpoints of BiVLC. In a folder, the files of
    `split` count: those that begin with it ("train" for `captions_train2017.json`), or with "val" for
    "validation". Photographs are looked for in `images`, else beside the annotations. Raises `DataError`
    naming file and entry of what is broken, and a photograph that is not there, unless such are kept.
    """
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
    sources = photographs(coco.files, coco.splits, path, images)
    used = np.unique(coco.owners)
    lacking = [i for i in used.tolist() if sources[i] is None]
    if lacking and missing == "refuse":
        raise DataError(
            f"{len(lacking):,} of {len(used):,} photographs are not there",
            where=images or path,
            given=coco.files[lacking[0]][0],
            hint="give the folder that holds them with --images",
        )
    beside = images or (path if path.is_dir() else path.parent)
    place = np.zeros(len(coco.files), dtype=np.int64)
    place[used] = np.arange(len(used))
    texts = [" ".join(text.strip().split("\n")) for text in map(str, coco.texts)]
    empty = next((i for i, text in enumerate(texts) if not text), None)
    if empty is not None:
        raise DataError("empty text", where=f"{coco.source}, annotation {coco.captions[empty]}")
    return TrainingSet(
        name="coco",
        images=tuple(
            Image(str(coco.images[i]), sources[i] or FileSource(beside / coco.files[i][0]))
            for i in used.tolist()
        ),
        captions=tuple(
            Caption(str(name), text) for name, text in zip(coco.captions.tolist(), texts, strict=True)
        ),
        rows={"image": place[coco.owners], "caption": np.arange(len(texts))},
        source=coco.source,
    )


def from_benchmark(benchmark: Benchmark, *, missing: Missing = "refuse") -> TrainingSet:
    """A row per quad; per right and wrong candidate of a choice; per caption of a gallery's images.

    Quads have all four roles, image 0 and caption 0 being the positive pair. A choice among captions has a
    `negative_caption`, one among images a `negative_image`. In a gallery, a caption goes with the image it
    was written for; where that is unknown, with every image that is a full match. Groupings stay. Raises
    `DataError` where a caption of a row is not at hand, or an image, unless such images are kept.
    """
    questions, place = benchmark.questions, benchmark.source or benchmark.name
    source, rows = questions.training_rows(where=place)
    for role, positions in rows.items():
        is_image = role.endswith("image")
        if is_image:
            lacks = np.array([image.source is None for image in benchmark.images])[positions]
        else:
            lacks = np.array([caption.text is None for caption in benchmark.captions])[positions]
        if lacks.any() and not (is_image and missing != "refuse"):
            at = int(positions[np.argmax(lacks)])
            item = (
                f"image '{benchmark.images[at].id}'" if is_image else f"caption '{benchmark.captions[at].id}'"
            )
            raise DataError(
                f"{int(lacks.sum()):,} of {len(positions):,} rows have no {role} at hand",
                where=place,
                given=item,
                hint="learning needs the pictures and the texts themselves",
            )
    return TrainingSet(
        name=benchmark.name,
        images=benchmark.images,
        captions=benchmark.captions,
        rows=rows,
        groupings={}
        if source is None
        else {name: tuple(labels[i] for i in source) for name, labels in questions.groupings.items()},
        source=benchmark.source,
    )


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
      images with the captions written for them.
    * WebDataset shards: a `.tar`, a folder of them, or a pattern "train-{000..015}.tar", also behind a URL.
    * COCO's captions: `captions_train2017.json`, or the folder it lies in.
    * A table: Parquet as the hub keeps it, one file or a folder, and every table that `read_table` reads
      (`training_tables`).

    `images` is the folder of the photographs that a layout only names. `split` picks the files whose names
    begin with it ("train", "validation"), or the folder that is called so; None is "train" where there are
    several splits, else all there is. `shelf` is a folder in which the captions of large tables are kept as
    memory is, for the next process that reads them (`training_parquet`), and what shards behind a URL
    hold. With `missing` "keep" an image
    whose file is not there stays, and raises when it is decoded, as one that is broken does.
    Raises `DataError` naming the file, the row and the column that does not fit.
    """
    path, images = as_path(path), None if images is None else as_path(images)
    if isinstance(location(path), Location):
        if is_shards(path):
            return read_shards(path, split=split, shelf=shelf)
        raise DataError(
            "no shards at this URL",
            where=path,
            allowed="tar files, a pattern of them, or a folder that holds some",
            hint="training data of other kinds are read from a disk: mount it, or copy them",
        )
    if is_benchmark_folder(path):
        if split not in (None, "train"):
            raise InputError("a saved benchmark has no splits", where=path, given=split)
        return from_benchmark(load(path, verify=False), missing=missing)
    if is_shards(path):
        return read_shards(path, split=split)
    if is_coco(path):
        return read_coco(path, images=images, split=split, missing=missing)
    # A folder that holds nothing but folders of splits (and photographs).
    places = (path, path / "data") if path.is_dir() else ()
    saved = any((path / name).is_file() for name in ("dataset_dict.json", "state.json"))
    tables = any(file.suffix.lower() in EXTENSIONS for place in places for file in place.glob("*"))
    if path.is_dir() and not saved and not tables:
        held_out = split in ("val", "validation")
        for name in ("validation", "val", "valid") if held_out else (split or "train",):
            if (path / name).is_dir():
                return read(path / name, images=images, shelf=shelf, missing=missing)
    return read_rows(path, images=images, split=split, shelf=shelf, missing=missing)


def split(data: TrainingSet, *, share: float = 0.2, seed: int = 42) -> tuple[TrainingSet, TrainingSet]:
    """(training, validation): `share` of the rows, rounded up and drawn by `seed`, are for validation.

    The rows are those that `datasets.Dataset.train_test_split(test_size=share, seed=seed)` draws, in its
    order, which is the split behind the released checkpoints of BiVLC. It is a split of rows: an image with
    several captions may have some on either side. Raises `InputError` where one side would be empty.

    >>> from counterfoil.benchmarks.records import Caption, Image
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
