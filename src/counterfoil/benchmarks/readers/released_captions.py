"""Captions of images in the files they were released in: Karpathy's JSON, token files, reference files.

Karpathy's dataset_coco.json and dataset_flickr30k.json hold images in splits with sentences; a line of a
Flickr token file is NAME.jpg#K, a tab, the caption.
"""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from counterfoil.benchmarks.benchmark import Card
from counterfoil.benchmarks.readers.coco_files import Captioned, json_file, place, read_captions
from counterfoil.benchmarks.records import Caption
from counterfoil.benchmarks.references import collapsed
from counterfoil.benchmarks.tables import DataTable, first_double, labels, read_table, shown, texts
from counterfoil.errors import DataError
from counterfoil.inputs.files import parse_json, read_text

#: Whole numbers of COCO, names of Flickr.
Id = TypeVar("Id", int, str)

#: All of them; "restval" are the images of COCO's validation half that Karpathy trains on.
SPLITS = ("train", "restval", "val", "test")


def read_split(
    path: Path, key: str, kind: Callable[[Any], Id], splits: Sequence[str] = ("test",)
) -> list[tuple[Id, list[tuple[Id, str]]]]:
    """The images of these splits by their `key`, each with the ids and texts of its captions, in order.

    Raises `DataError` where it is no such file, where an image lacks what is read of it or has an id that is
    not of the `kind`, and where no image is of these splits.
    """
    value = json_file(path, ("tokens",))
    images = value.get("images") if isinstance(value, dict) else None
    if not isinstance(images, list):
        raise DataError("not a data set after Karpathy", where=path, allowed="an object with a list 'images'")
    entries: list[tuple[Id, list[tuple[Id, str]]]] = []
    for at, image in enumerate(images):
        try:
            if image["split"] in splits:
                name = kind(image[key])
                entries.append((name, [(kind(own["sentid"]), str(own["raw"])) for own in image["sentences"]]))
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"not as expected: {error!r}", where=f"{path}, images, entry {at + 1}") from None
    if not entries:
        raise DataError(f"no image of the split '{', '.join(splits)}'", where=path)
    return entries


def read_karpathy(path: Path, splits: Sequence[str] = SPLITS) -> Captioned:
    """The images of COCO in these splits with their captions, called by their ids."""
    entries = read_split(path, "cocoid", int, splits)
    written = [caption for _, own in entries for caption in own]
    return Captioned.of_coco(
        np.array([image for image, _ in entries], dtype=np.int64),
        np.array([name for name, _ in written], dtype=np.int64),
        np.repeat(np.arange(len(entries)), [len(own) for _, own in entries]).astype(np.int64),
        (text for _, text in written),
        path,
    )


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
#: Flickr8k's and Flickr30k's by file name, in one of these.
FLICKR8K = ("Flickr8k.token.txt",)
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
    coco = read_captions([path]) if path.name.startswith("captions") else read_karpathy(path)
    captions_of: dict[str, list[str]] = {str(image): [] for image in coco.images.tolist()}
    names = list(captions_of)
    for owner, text in zip(coco.owners.tolist(), coco.texts, strict=True):
        captions_of[names[owner]].append(text or "")
    return _collapsed(captions_of), path


def flickr_captions(data: Path, names: Sequence[str]) -> Written | None:
    """The captions of Flickr's images by file name, in one of these files; None where there is none."""
    path = _first(data, names)
    if path is None:
        return None
    is_json = path.suffix == ".json"
    entries = dict(read_split(path, "filename", str, SPLITS)) if is_json else read_tokens(path)
    return _collapsed({image: [text for _, text in own] for image, own in entries.items()}), path


def karpathy_part(path: Path, splits: Sequence[str]) -> frozenset[str]:
    """The ids of COCO's images in these splits of dataset_coco.json."""
    return frozenset(str(image) for image, _ in read_split(path, "cocoid", int, splits))


def of_image(written: Written, image: str) -> list[str]:
    """The captions of one image; raises `DataError` naming the file that has none of it."""
    captions, path = written
    if not captions.get(image):
        raise DataError("no references of an image", where=path, given=image)
    return captions[image]


def _first(data: Path, names: Sequence[str]) -> Path | None:
    folder = data if data.is_dir() else data.parent
    return next((path for name in names if (path := place(folder, name)) is not None), None)


def _collapsed(captions: dict[str, list[str]]) -> dict[str, list[str]]:
    return {image: [text for raw in own if (text := collapsed(raw))] for image, own in captions.items()}


#: Of Flickr30k: after Karpathy, and the hub's of the same.
_FLICKR30K = (FLICKR30K[1], "flickr_annotations_30k.csv")


def flickr30k(card: Card, data: Path) -> tuple[DataTable, bool]:
    """Flickr30k's images, and in the column `captions` those written for them.

    Of Karpathy's JSON and of the hub's CSV (columns raw, sentids, split, filename) the test split is read,
    captions called by their sentence ids; of a token file all there is, captions called by their keys.
    """
    known = [data] if data.is_file() else [data / name for name in _FLICKR30K if (data / name).is_file()]
    files = known or sorted([*data.glob("*.token*"), *data.glob("*token.txt")])
    if not files:
        raise DataError("nothing of Flickr30k here", where=data, allowed=f"{', '.join(_FLICKR30K)}, *.token")
    path = files[0]
    if path.suffix == ".json":
        entries = read_split(path, "filename", str)
    elif path.suffix == ".csv":
        entries = _of_csv(path)
    else:
        entries = list(read_tokens(path, collapse=False).items())
    ids = [name for _, captions in entries for name, _ in captions]
    for kind, names in (("image", [image for image, _ in entries]), ("caption", ids)):
        double = first_double(names)
        if double is not None:
            raise DataError(f"{kind} id occurs twice", where=path, given=double, hint="ids are unique")
    columns: dict[str, Sequence[Any]] = {
        "image": [image for image, _ in entries],
        "captions": [[Caption(name, text) for name, text in captions] for _, captions in entries],
    }
    return DataTable(columns, str(path)), False


def _of_csv(path: Path) -> list[tuple[str, list[tuple[str, str]]]]:
    whole = read_table(path)
    rows = [row for row, split in enumerate(labels(whole, "split")) if split == "test"]
    if not rows:
        raise DataError("no image of the split 'test'", where=path)
    table = whole.take(rows)
    lists: dict[str, list[list[str]]] = {"raw": [], "sentids": []}
    for column, cells in lists.items():
        for row, text in enumerate(texts(table, column)):
            cell = parse_json(text, where=table.where(row, column))
            if not isinstance(cell, list):
                raise DataError("not a list", where=table.where(row, column), given=shown(cell))
            cells.append([str(item) for item in cell])
    entries = []
    for row, (name, captions, ids) in enumerate(zip(texts(table, "filename"), *lists.values(), strict=True)):
        if len(captions) != len(ids):
            raise DataError(
                "not an id per caption",
                where=table.where(row),
                given=f"{len(ids)} ids, {len(captions)} captions",
            )
        entries.append((name, list(zip(ids, captions, strict=True))))
    return entries
