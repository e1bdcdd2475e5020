"""Given embeddings (npz) and given similarities (npy), read without ever unpickling.

Rows of a similarity are images, columns captions, higher scores better. Without ids rows and columns are in
the order of the benchmark's items; with them (an npz file with `image_ids` and `caption_ids`) they may be in
any order. The file stays on the disk: what is needed is read when it is needed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from jaxtyping import Float, Real
from numpy import ndarray

from counterfoil.errors import DataError
from counterfoil.inputs.arrays import read_npy, read_npz
from counterfoil.inputs.memory import check_room
from counterfoil.scorers.base import DEFAULT, Ability, Identity, Options, reject_unused_options
from counterfoil.store import digest_file

#: Names under which files in the wild keep their arrays, ours first.
IMAGES = ("images", "image", "img", "imgs", "image_embeddings", "image_embeds")
CAPTIONS = ("captions", "caption", "cap", "caps", "text", "texts", "caption_embeddings", "text_embeds")
IMAGE_IDS = ("image_ids", "image_id", "img_ids")
CAPTION_IDS = ("caption_ids", "caption_id", "cap_ids", "text_ids")

#: Values of embeddings whose lengths neither overflow nor vanish in any precision that is computed in.
_LARGEST, _SMALLEST = 1e15, 1e-15


@dataclass(frozen=True, eq=False)
class Embeddings:
    """What an npz file holds: rows as stored (float32 or float64), and ids where it has them."""

    images: Float[ndarray, "images width"]
    captions: Float[ndarray, "captions width"]
    image_ids: tuple[str, ...] | None
    caption_ids: tuple[str, ...] | None


def read_embeddings(path: Path) -> Embeddings:
    """The embeddings in the npz file `path`.

    Arrays are named `images` and `captions` (or `img`, `cap`, `text`, ...), each (rows, width) of float16,
    float32 or float64, with optional `image_ids` and `caption_ids` of integers or strings, one per row.
    float16 becomes float32. Raises `DataError` for files that are no npz, cut off, of other names, shapes or
    types, with rows that are not finite or all zero, and with ids that are doubled or too few.
    """
    arrays = read_npz(path, names="images captions", hint="check the path after 'embeddings:'")
    image_name, images = _one_of(arrays, IMAGES, path)
    caption_name, captions = _one_of(arrays, CAPTIONS, path)
    images, captions = (
        _checked(images, f"{path}, array '{image_name}'"),
        _checked(captions, f"{path}, array '{caption_name}'"),
    )
    if images.shape[1] != captions.shape[1]:
        raise DataError(
            "image and caption embeddings differ in width",
            where=path,
            given=f"'{image_name}' {images.shape}, '{caption_name}' {captions.shape}",
            hint="both must come from the same model, after its projections",
        )
    return Embeddings(
        images=images,
        captions=captions,
        image_ids=ids_of(arrays, IMAGE_IDS, len(images), path, per="embedding"),
        caption_ids=ids_of(arrays, CAPTION_IDS, len(captions), path, per="embedding"),
    )


def _one_of(arrays: Mapping[str, ndarray], names: tuple[str, ...], path: Path) -> tuple[str, ndarray]:
    found = [name for name in arrays if name.lower() in names]
    if len(found) == 1:
        return found[0], arrays[found[0]]
    raise DataError(
        f"{'several arrays' if found else 'no array'} could be the {names[0]}",
        where=path,
        given=", ".join(found or arrays) or "(no arrays)",
        allowed=f"one of {', '.join(names)}",
    )


def _checked(array: ndarray, where: str) -> Float[ndarray, "rows width"]:
    if array.dtype.kind != "f":
        raise DataError(
            "embeddings are not floating point",
            where=where,
            given=array.dtype,
            allowed="float16, float32, float64",
        )
    if array.ndim != 2 or 0 in array.shape:
        hint = (
            f"reshape it to ({array.size // array.shape[-1]}, {array.shape[-1]})"
            if array.ndim > 2 and array.size
            else None
        )
        raise DataError(
            "embeddings have the wrong shape",
            where=where,
            given=array.shape,
            allowed="(rows, width)",
            hint=hint,
        )
    check_room(array.size * 8, where=where, what="these embeddings")
    values: ndarray = array.astype(np.float64 if array.dtype.itemsize >= 8 else np.float32)
    finite = np.isfinite(values).all(axis=1)
    if not finite.all():
        raise DataError(
            "embedding is not finite",
            where=f"{where}, row {int(np.argmin(finite)) + 1}",
            hint=f"{int((~finite).sum())} of {len(values)} rows have NaN or infinite values",
        )
    largest = np.abs(values).max(axis=1)
    far = largest > _LARGEST
    if far.any():
        raise DataError(
            "embedding is too large to be compared: its length would overflow",
            where=f"{where}, row {int(np.argmax(far)) + 1}",
            given=f"a value of {largest[int(np.argmax(far))]:.3g}",
            allowed=f"values up to {_LARGEST:g}",
            hint="divide all embeddings by one number, or by their lengths",
        )
    zero = largest < _SMALLEST
    if zero.any():
        raise DataError(
            "embedding is all zeros (or nearly), so it has no direction to compare",
            where=f"{where}, row {int(np.argmax(zero)) + 1}",
            hint=f"{int(zero.sum())} of {len(values)} rows are zero",
        )
    return values


def ids_of(
    arrays: Mapping[str, ndarray], names: tuple[str, ...], rows: int, path: Path, *, per: str
) -> tuple[str, ...] | None:
    """The ids among the arrays of a file, as strings, or None where it has none under any of the names.

    Raises `DataError` where they are not one per `per` (what a row is, for the message), or one occurs twice.
    """
    found = [name for name in arrays if name.lower() in names]
    if not found:
        return None
    array = arrays[found[0]]
    where = f"{path}, array '{found[0]}'"
    if array.dtype.kind not in "iuUS" or array.ndim != 1:
        raise DataError(
            "ids are not a list of integers or strings", where=where, given=f"{array.dtype} {array.shape}"
        )
    if len(array) != rows:
        raise DataError(f"not one id per {per}", where=where, given=f"{len(array)} ids", allowed=str(rows))
    ids = tuple(
        value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
        for value in array.tolist()
    )
    first: dict[str, int] = {}
    for row, name in enumerate(ids):
        if first.setdefault(name, row) != row:
            raise DataError(
                "id occurs twice", where=f"{where}, rows {first[name] + 1} and {row + 1}", given=name
            )
    return ids


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
