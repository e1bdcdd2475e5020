"""The references of an image, from the files its captions were released in."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from counterfoil.data.readers.coco_files import read_captions
from counterfoil.data.readers.coco_ids import place
from counterfoil.data.readers.karpathy import SPLITS, read_split
from counterfoil.data.readers.token_file import read_tokens
from counterfoil.data.texts import collapsed
from counterfoil.errors import DataError

#: COCO's captions by image id, in one of these.
COCO = ("captions_val2014.json", "dataset_coco.json")
#: Flickr30k's captions by file name, in one of these.
FLICKR30K = ("results_20130124.token", "dataset_flickr30k.json")

#: (texts of each image by id, the file they came from)
Written = tuple[dict[str, list[str]], Path]


def coco_captions(data: Path) -> Written | None:
    """The captions of COCO's images by id, in the order of the file; None where it is not in the folder.

    White space is collapsed, empty captions are left out.
    """
    path = _first(data, COCO)
    if path is None:
        return None
    found: dict[str, list[str]] = {}
    if path.suffix == ".json" and path.name.startswith("captions"):
        file = read_captions([path])
        names = [str(image) for image in file.images.tolist()]
        for owner, text in zip(file.owners.tolist(), file.texts, strict=True):
            found.setdefault(names[owner], []).append(text)
    else:
        found = dict(read_split(path, lambda image: (str(int(image["cocoid"])), _raw(image)), splits=SPLITS))
    return _collapsed(found), path


def flickr30k_captions(data: Path) -> Written | None:
    """The captions of Flickr30k's images by file name; None where the file is not in the folder."""
    path = _first(data, FLICKR30K)
    if path is None:
        return None
    if path.suffix == ".json":
        entries = read_split(path, lambda image: (str(image["filename"]), _raw(image)), splits=SPLITS)
        return _collapsed(dict(entries)), path
    return {image: [text for _, text in own] for image, own in read_tokens(path).items()}, path


def flickr8k_captions(data: Path) -> Written | None:
    """The captions of Flickr8k's images by file name; None where the token file is not in the folder."""
    path = _first(data, ("Flickr8k.token.txt",))
    if path is None:
        return None
    return {image: [text for _, text in own] for image, own in read_tokens(path).items()}, path


def karpathy_part(path: Path, splits: Sequence[str]) -> frozenset[str]:
    """The ids of COCO's images in these splits of dataset_coco.json."""
    return frozenset(read_split(path, lambda image: str(int(image["cocoid"])), splits=splits))


def of_image(written: Written, image: str) -> list[str]:
    """The captions of one image; raises `DataError` naming the file that has none of it."""
    captions, path = written
    if not captions.get(image):
        raise DataError("no references of an image", where=path, given=image)
    return captions[image]


def _first(data: Path, names: Sequence[str]) -> Path | None:
    folder = data if data.is_dir() else data.parent
    return next((path for name in names if (path := place(folder, name)) is not None), None)


def _raw(image: Any) -> list[str]:
    return [str(each["raw"]) for each in image["sentences"]]


def _collapsed(captions: dict[str, list[str]]) -> dict[str, list[str]]:
    return {image: [text for each in own if (text := collapsed(each))] for image, own in captions.items()}
