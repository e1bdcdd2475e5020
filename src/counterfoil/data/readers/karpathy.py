"""Karpathy's data sets, dataset_coco.json and dataset_flickr30k.json: images in splits, with sentences."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from counterfoil.data.readers.coco_files import json_file
from counterfoil.errors import DataError

Entry = TypeVar("Entry")

#: All of them; "restval" are the images of COCO's validation half that Karpathy trains on.
SPLITS = ("train", "restval", "val", "test")


def read_split(path: Path, entry: Callable[[Any], Entry], splits: Sequence[str] = ("test",)) -> list[Entry]:
    """What `entry` makes of every image of these splits, in the order of the file.

    Raises `DataError` where it is no such file, where an image does not have what `entry` asks of it (a
    `KeyError`, `TypeError` or `ValueError` of its), and where no image is of these splits.
    """
    value = json_file(path, ("tokens",))
    images = value.get("images") if isinstance(value, dict) else None
    if not isinstance(images, list):
        raise DataError("not a data set after Karpathy", where=path, allowed="an object with a list 'images'")
    found: list[Entry] = []
    for at, image in enumerate(images):
        try:
            if image["split"] in splits:
                found.append(entry(image))
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"not as expected: {error!r}", where=f"{path}, images, entry {at + 1}") from None
    if not found:
        raise DataError(f"no image of the split '{', '.join(splits)}'", where=path)
    return found
