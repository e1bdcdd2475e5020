"""Given similarities: the scores of all images with all captions, in one npy file.

Rows are images, columns captions, higher scores better. Without ids rows and columns are in the order of the
benchmark's items; with them (an npz file with `image_ids` and `caption_ids`) they may be in any order. The
file stays on the disk: what is needed is read when it is needed.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from jaxtyping import Real
from numpy import ndarray

from counterfoil.errors import DataError
from counterfoil.inputs.arrays import read_npy, read_npz
from counterfoil.scorers.base import DEFAULT, Ability, Identity, Options, reject_unused_options
from counterfoil.scorers.embeddings import CAPTION_IDS, IMAGE_IDS, ids_of
from counterfoil.store import digest_file


@dataclass(frozen=True, eq=False)
class GivenSimilarity:
    """Scores of images (rows) with captions (columns) as stored, memory-mapped; nothing is known of NaN yet.

    Where ids are None rows and columns are in the benchmark's order.
    """

    does: ClassVar[tuple[Ability, ...]] = ("given_similarity",)

    identity: Identity
    values: Real[ndarray, "images captions"]
    image_ids: tuple[str, ...] | None = None
    caption_ids: tuple[str, ...] | None = None


def load_similarity(argument: str, options: Options = DEFAULT) -> GivenSimilarity:
    """The similarity in an npy file, with the ids in the npz file `options.ids` if there is one.

    Numbers are float16, float32, float64 or integers. Raises `DataError` for files that are no npy file, cut
    off or pickled, for other shapes and types, and for ids that are missing, doubled or not as many.
    """
    reject_unused_options(f"given:{argument}", options, "ids")
    path = Path(argument)
    values = read_npy(path, mapped=True, hint="check the path after 'given:'")
    if values.dtype.kind not in "iu" and values.dtype.type not in (np.float16, np.float32, np.float64):
        raise DataError(
            "a similarity is not of real numbers",
            where=path,
            given=values.dtype,
            allowed="float16, float32, float64, integers",
        )
    if values.ndim != 2 or 0 in values.shape:
        raise DataError(
            "a similarity has the wrong shape", where=path, given=values.shape, allowed="(images, captions)"
        )
    image_ids, caption_ids = (None, None) if options.ids is None else _ids(options.ids, path, values.shape)
    return GivenSimilarity(
        Identity(
            name=f"given:{argument}",
            weights=digest_file(path),
            options={} if options.ids is None else {"ids": digest_file(options.ids)},
        ),
        values,
        image_ids,
        caption_ids,
    )


def _ids(file: Path, path: Path, shape: tuple[int, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    arrays = read_npz(file, names="image_ids caption_ids", hint="check the path after '--ids'")
    rows = ids_of(arrays, IMAGE_IDS, shape[0], file, per=f"row of {path.name}")
    columns = ids_of(arrays, CAPTION_IDS, shape[1], file, per=f"column of {path.name}")
    if rows is None or columns is None:
        raise DataError(
            f"no ids of {'images' if rows is None else 'captions'}",
            where=file,
            given=", ".join(arrays) or "(no arrays)",
            allowed="image_ids and caption_ids",
        )
    return rows, columns
