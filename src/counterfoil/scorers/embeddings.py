"""Reading embeddings from npz files, without ever unpickling."""

import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from counterfoil.errors import DataError

#: Names under which files in the wild keep their arrays, ours first.
IMAGES = ("images", "image", "img", "imgs", "image_embeddings", "image_embeds")
CAPTIONS = ("captions", "caption", "cap", "caps", "text", "texts", "caption_embeddings", "text_embeds")
IMAGE_IDS = ("image_ids", "image_id", "img_ids")
CAPTION_IDS = ("caption_ids", "caption_id", "cap_ids", "text_ids")


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
    arrays = read_arrays(path, ("images", "captions"), after="embeddings:")
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


def read_arrays(path: Path, names: Sequence[str], *, after: str) -> dict[str, Any]:
    """All arrays of the npz file `path`, by name.

    What belongs there (`names`), and after what the path was given, is said in errors. Raises `DataError` for
    files that are no npz, cut off, or hold pickled objects.
    """
    try:
        # Opened here, so that the file is closed where NumPy gives up on a broken archive.
        with open(path, "rb") as file:
            archive = np.load(file, allow_pickle=False)
            if isinstance(archive, ndarray):
                raise DataError(
                    f"holds one array, not {' and '.join(names)}",
                    where=path,
                    hint=f"save them with numpy.savez(path, {', '.join(f'{name}=...' for name in names)})",
                )
            return {name: archive[name] for name in archive.files}
    except FileNotFoundError:
        raise DataError("no such file", where=path, hint=f"check the path after '{after}'") from None
    except IsADirectoryError:
        raise DataError("is a folder", where=path, hint="name the npz file in it") from None
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise DataError(
            f"not a readable npz file: {error}", where=path, hint="is the file cut off?"
        ) from None
    except ValueError as error:
        # NumPy says so of pickled objects, and of files in no format it knows, which it offers to unpickle.
        what = "not an npz file" if "unsafely" in str(error) else f"not a readable npz file: {error}"
        raise DataError(
            what,
            where=path,
            allowed="arrays of numbers or strings, never pickled objects",
        ) from None
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", where=path) from None


def _one_of(arrays: dict[str, Any], names: tuple[str, ...], path: Path) -> tuple[str, ndarray]:
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
    values: ndarray = array.astype(np.float64 if array.dtype.itemsize >= 8 else np.float32)
    finite = np.isfinite(values).all(axis=1)
    if not finite.all():
        raise DataError(
            "embedding is not finite",
            where=f"{where}, row {int(np.argmin(finite)) + 1}",
            hint=f"{int((~finite).sum())} of {len(values)} rows have NaN or infinite values",
        )
    zero = ~values.any(axis=1)
    if zero.any():
        raise DataError(
            "embedding is all zeros, so it has no direction to compare",
            where=f"{where}, row {int(np.argmax(zero)) + 1}",
            hint=f"{int(zero.sum())} of {len(values)} rows are zero",
        )
    return values


def ids_of(
    arrays: dict[str, Any], names: tuple[str, ...], rows: int, path: Path, *, per: str
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
