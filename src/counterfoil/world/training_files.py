"""A training set as a folder in the layout of TROHN-Img: Parquet files for training and for validation."""

import json
from collections.abc import Sequence
from math import ceil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from counterfoil.data.forms import Ids
from counterfoil.data.training import IMAGE_ROLES, TrainingSet
from counterfoil.errors import DataError, InputError
from counterfoil.outputs.guard import overwriting
from counterfoil.stats.sharing import numbered
from counterfoil.store import writing
from counterfoil.world.sample import Progress, silent

TRAIN, VALIDATION = "train.parquet", "validation.parquet"

#: The key in a file's metadata that says it is ours.
_MARK = b"counterfoil"
#: Rows written at a time.
_GROUP = 1000


def check_folder(folder: Path) -> None:
    """Raise `InputError` where `folder` holds anything but a training set that was saved here before."""
    if folder.exists() and not folder.is_dir():
        raise InputError("not a folder", where=folder, hint="name a new folder to save the training set in")
    others = _others(folder)
    if others and not overwriting():
        raise InputError(
            "the folder holds other files",
            where=folder,
            given=others[0],
            hint="name a new folder to save the training set in",
        )


def why_foreign(folder: Path) -> str | None:
    """Why the folder holds no training set that was saved there before, None where it does."""
    others = _others(folder)
    return f"the folder holds other files ({', '.join(others[:3])})" if others else None


def _others(folder: Path) -> list[str]:
    """The names of what lies in the folder and is no part of a training set that was saved there."""
    return [
        path.name
        for path in (sorted(folder.iterdir()) if folder.is_dir() else ())
        # What a machine that stopped while saving leaves behind is ours too.
        if not (path.name.startswith(".") and path.name.endswith(".part"))
        and not (path.name in (TRAIN, VALIDATION) and _ours(path))
    ]


def _ours(path: Path) -> bool:
    try:
        return _MARK in (pq.read_schema(path).metadata or {})
    except (pa.ArrowException, OSError):
        return False


def save_training(
    made: TrainingSet, folder: Path, *, share: float = 0.2, progress: Progress = silent
) -> tuple[int, int]:
    """Write a training set in the layout of TROHN-Img: `train.parquet` and `validation.parquet`.

    A row of either holds image, caption, negative_caption and negative_image, as far as there are any, and
    the groupings; an image is its bytes and a name. The last rows, at least `share` of them, are for
    validation: all rows of an image are on one side. Returns the number of rows of each. Files appear whole
    or not at all; a set saved there before is replaced, and other files are not (`check_folder`).

    Raises `InputError` for folders that hold something else and where a side would be empty.
    """
    check_folder(folder)
    training_rows, validation_rows = _divided(made.rows["image"], share, made.source or made.name)
    paths = folder / TRAIN, folder / VALIDATION
    for path in paths:
        path.unlink(missing_ok=True)
    try:
        done = 0
        for path, rows in zip(paths, (training_rows, validation_rows), strict=True):
            _write(path, made, rows, progress, done)
            done += len(rows)
    except BaseException:
        for path in paths:
            path.unlink(missing_ok=True)
        raise
    return len(training_rows), len(validation_rows)


def _divided(image: Ids, share: float, where: str) -> tuple[Ids, Ids]:
    """Rows for training and for validation; an image's rows stay together."""
    if not 0 < share < 1:
        raise InputError("a share of the rows is for validation", given=share, allowed="between 0 and 1")
    # Images in order of first appearance; the last ones that together have enough rows are held back.
    at = numbered(image)
    from_last = np.cumsum(np.bincount(at)[::-1])
    held = 1 + int(np.searchsorted(from_last, ceil(share * len(image))))
    first = int(at.max()) + 1 - held
    if first <= 0:
        raise InputError(
            "too few images to keep some for validation",
            where=where,
            given=f"{int(at.max()) + 1} images in {len(image)} rows",
            hint="ask for more rows",
        )
    return np.flatnonzero(at < first), np.flatnonzero(at >= first)


def _write(path: Path, made: TrainingSet, rows: Ids, progress: Progress, done: int) -> None:
    schema = _schema(made)
    with writing(path) as file, pq.ParquetWriter(file, schema, compression="zstd") as writer:
        for start in range(0, len(rows), _GROUP):
            group = rows[start : start + _GROUP]
            writer.write_table(pa.table(_columns(made, group), schema=schema))
            progress("saving", done + start + len(group), len(made))


def _columns(made: TrainingSet, rows: Ids) -> dict[str, Sequence[object]]:
    columns: dict[str, Sequence[object]] = {}
    # Neighbouring rows share images; encoding one once is enough.
    encoded: dict[int, dict[str, object]] = {}
    for role, positions in made.rows.items():
        at = positions[rows].tolist()
        if role not in IMAGE_ROLES:
            columns[role] = [_text(made, i) for i in at]
            continue
        for i in at:
            if i not in encoded:
                data = made.images[i].read()
                ending = "png" if data.startswith(b"\x89PNG") else "jpg"
                encoded[i] = {"bytes": data, "path": f"{made.images[i].id}.{ending}"}
        columns[role] = [encoded[i] for i in at]
    for name, labels in made.groupings.items():
        columns[name] = [labels[i] for i in rows]
    return columns


def _text(made: TrainingSet, at: int) -> str:
    caption = made.captions[at]
    if caption.text is None:
        raise DataError(f"caption '{caption.id}' is not at hand", where=made.source or made.name)
    return caption.text


def _schema(made: TrainingSet) -> pa.Schema:
    """The columns, marked as ours, and as images for the package `datasets`."""
    names = [*made.rows, *made.groupings]
    picture = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    features = {
        name: {"_type": "Image"} if name in IMAGE_ROLES else {"dtype": "string", "_type": "Value"}
        for name in names
    }
    return pa.schema(
        [(name, picture if name in IMAGE_ROLES else pa.string()) for name in names],
        metadata={
            _MARK: json.dumps({"name": made.name, "source": made.source}),
            "huggingface": json.dumps({"info": {"features": features}}),
        },
    )
