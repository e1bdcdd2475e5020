"""Lists of COCO's ids: where such a file lies, and what it holds.

The ids of the test half and the positives of COCO, CxC and ECCV Caption are files inside the PyPI package
`eccv_caption`, read without importing it; a folder of the user's with files of the same names goes before it.
"""

from importlib.util import find_spec
from pathlib import Path

import numpy as np

from counterfoil.data.columns import shown
from counterfoil.data.forms import Ids
from counterfoil.data.readers.coco_files import annotation_folder, json_file
from counterfoil.errors import DataError, MissingExtraError
from counterfoil.inputs.arrays import read_npy


def find(data: Path | None, name: str) -> Path:
    """The file of that name in the user's folder, else in the package; raises `MissingExtraError`."""
    found = place(data, name)
    if found is None:
        found = package() / name
        if not found.is_file():
            raise DataError("file missing", where=found, hint="install the package eccv_caption anew")
    return found


def place(data: Path | None, name: str) -> Path | None:
    """The file of that name in a folder or its `annotations`; or the file itself, if it is called so."""
    if data is None:
        return None
    if data.is_file():
        return data if data.name == name else None
    return next(
        (path for path in (data / name, annotation_folder(data) / name) if path.is_file()),
        None,
    )


def package() -> Path:
    """The data folder of the package `eccv_caption`, which is not imported; raises `MissingExtraError`."""
    spec = find_spec("eccv_caption")
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtraError("eccv_caption", "eccv")
    return Path(spec.submodule_search_locations[0]) / "data"


def said(path: Path) -> str:
    """A file as provenance names it: those of the package without where it is installed."""
    return f"eccv_caption, {path.name}" if path.parent.parent.name == "eccv_caption" else str(path)


def read_ids(path: Path) -> Ids:
    """The ids in an npy file, (n,) int64; raises `DataError` where it is none of those."""
    ids = read_npy(path)
    if ids.ndim != 1 or ids.dtype.kind not in "iu" or not len(ids):
        given = f"{ids.dtype} {ids.shape}"
        raise DataError("not a list of ids", where=path, given=given, allowed="whole numbers, shape (n,)")
    return ids.astype(np.int64)


def read_positives(path: Path) -> tuple[Ids, Ids, Ids]:
    """The queries of a file {id: [ids]}, and the pairs of (row of the queries, id of what is right).

    Raises `DataError` where it is not such a file, naming the entry that does not fit.
    """
    value = json_file(path)
    if not isinstance(value, dict) or not value:
        raise DataError("not positives", where=path, given=shown(value), allowed="an object {id: [ids]}")
    queries = np.array([_whole(key, path, key) for key in value], dtype=np.int64)
    for key, row in value.items():
        if not isinstance(row, list):
            raise DataError(
                "not a list of ids", where=f"{path}, '{key}'", given=shown(row), allowed="[id, ...]"
            )
    flat = [
        each if type(each) is int else _whole(each, path, key) for key, row in value.items() for each in row
    ]
    sizes = np.fromiter(map(len, value.values()), np.int64, len(value))
    return queries, np.repeat(np.arange(len(value)), sizes), np.array(flat, dtype=np.int64)


def _whole(value: object, path: Path, key: str) -> int:
    """A whole number, or a string of one: keys of JSON objects are strings."""
    if isinstance(value, str) and value.isdecimal() and len(value) < 19:
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63:
        return value
    raise DataError("not an id", where=f"{path}, '{key}'", given=shown(value), allowed="whole numbers")
