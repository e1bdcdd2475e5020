"""COCO's captions files as training data: every caption with its photograph, in the order of the file."""

from pathlib import Path

import numpy as np

from counterfoil.data.readers.coco_files import captions_files, photographs, read_captions
from counterfoil.data.records import Caption, FileSource, Image
from counterfoil.data.training import Missing, TrainingSet
from counterfoil.errors import DataError


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
    files = captions_files(path)
    if path.is_dir():
        stems = [file.stem.removeprefix("captions_") for file in files]
        wanted = split or "train"
        chosen = [f for f, s in zip(files, stems, strict=True) if s.startswith(_prefix(wanted))]
        if not chosen and split is None:
            chosen = files
        if not chosen:
            raise DataError("no captions of this split", where=path, given=split, allowed=stems)
        files = chosen
    found = read_captions(files)
    sources = photographs(
        [(name,) for name in found.files], dict.fromkeys(found.splits), path, _folder(images)
    )
    used = np.unique(found.owners)
    lacking = [i for i in used.tolist() if sources[i] is None]
    if lacking and missing == "refuse":
        raise DataError(
            f"{len(lacking):,} of {len(used):,} photographs are not there",
            where=images or path,
            given=found.files[lacking[0]],
            hint="give the folder that holds them with --images",
        )
    beside = images or (path if path.is_dir() else path.parent)
    place = np.zeros(len(found.files), dtype=np.int64)
    place[used] = np.arange(len(used))
    texts = [" ".join(text.strip().split("\n")) for text in found.texts]
    empty = next((i for i, text in enumerate(texts) if not text), None)
    if empty is not None:
        raise DataError("empty text", where=f"{found.source}, annotation {found.captions[empty]}")
    return TrainingSet(
        name="coco",
        images=tuple(
            Image(str(found.images[i]), sources[i] or FileSource(beside / found.files[i]))
            for i in used.tolist()
        ),
        captions=tuple(
            Caption(str(name), text) for name, text in zip(found.captions.tolist(), texts, strict=True)
        ),
        rows={"image": place[found.owners], "caption": np.arange(len(texts))},
        source=found.source,
    )


def _prefix(split: str) -> str:
    return "val" if split == "validation" else split


def _folder(images: Path | None) -> Path | None:
    if images is not None and not images.is_dir():
        raise DataError("no such image folder", where=images, hint="check the path given with --images")
    return images
