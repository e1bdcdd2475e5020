"""Captions of images in the files they were released in: Karpathy's JSON, token files, reference files.

Karpathy's dataset_coco.json and dataset_flickr30k.json hold images in splits with sentences; a line of a
Flickr token file is NAME.jpg#K, a tab, the caption.
"""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from counterfoil.benchmarks.readers.coco_files import json_file, place, read_captions
from counterfoil.benchmarks.references import collapsed
from counterfoil.benchmarks.tables import shown
from counterfoil.errors import DataError
from counterfoil.inputs.files import read_text

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
    entries: list[Entry] = []
    for at, image in enumerate(images):
        try:
            if image["split"] in splits:
                entries.append(entry(image))
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"not as expected: {error!r}", where=f"{path}, images, entry {at + 1}") from None
    if not entries:
        raise DataError(f"no image of the split '{', '.join(splits)}'", where=path)
    return entries


_TOKEN = re.compile(r"([^\t]+)#(\d+)\t(.*)")


def read_tokens(path: Path, *, collapse: bool = True) -> dict[str, list[tuple[str, str]]]:
    """For every image the ids and texts of its captions, in the order of the file.

    With `collapse`, white space in the texts is collapsed. Raises `DataError` naming the line that is no
    caption, is empty, or has an id for the second time.
    """
    lines = read_text(path).split("\n")
    captions_of: dict[str, list[tuple[str, str]]] = {}
    seen: set[str] = set()
    for number, line in enumerate(lines, start=1):
        if line.strip():
            match = _TOKEN.fullmatch(line.rstrip("\r"))
            if match is None or not collapsed(match[3]):
                raise DataError(
                    "not a caption",
                    where=f"{path}, line {number}",
                    given=shown(line),
                    allowed="NAME.jpg#0, a tab, the caption",
                )
            name = f"{match[1]}#{match[2]}"
            if name in seen:
                raise DataError("caption id occurs twice", where=f"{path}, line {number}", given=name)
            seen.add(name)
            text = collapsed(match[3]) if collapse else match[3]
            captions_of.setdefault(match[1], []).append((name, text))
    if not captions_of:
        raise DataError("no captions", where=path)
    return captions_of


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
    captions_of: dict[str, list[str]] = {}
    if path.suffix == ".json" and path.name.startswith("captions"):
        file = read_captions([path])
        names = [str(image) for image in file.images.tolist()]
        for owner, text in zip(file.owners.tolist(), file.texts, strict=True):
            captions_of.setdefault(names[owner], []).append(text)
    else:
        captions_of = dict(
            read_split(path, lambda image: (str(int(image["cocoid"])), _raw(image)), splits=SPLITS)
        )
    return _collapsed(captions_of), path


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
    return [str(sentence["raw"]) for sentence in image["sentences"]]


def _collapsed(captions: dict[str, list[str]]) -> dict[str, list[str]]:
    return {image: [text for raw in own if (text := collapsed(raw))] for image, own in captions.items()}
