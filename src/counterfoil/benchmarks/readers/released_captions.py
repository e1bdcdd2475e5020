"""Captions of images in the files they were released in: COCO's own, Karpathy's JSON, and token files.

What a folder of COCO lacks may be a file inside the package `eccv_caption`, read without importing it.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.util import find_spec
from itertools import chain, product
from pathlib import Path
from typing import Annotated, Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, Strict

from counterfoil.benchmarks.benchmark import Benchmark, Card
from counterfoil.benchmarks.forms import Ids, RetrievalDirection
from counterfoil.benchmarks.image_files import is_image_folder
from counterfoil.benchmarks.readers.questions import IdPositions, gallery
from counterfoil.benchmarks.readers.released_files import list_of, object_tables
from counterfoil.benchmarks.records import Caption, FileSource, Image, Photos
from counterfoil.benchmarks.references import collapsed
from counterfoil.benchmarks.tables import (
    DataTable,
    check_cells,
    first_double,
    integers,
    labels,
    read_table,
    shown,
    texts,
)
from counterfoil.errors import DataError, MissingExtraError
from counterfoil.inputs.files import Location, display_path, location, parse_json, read_text, read_value


@dataclass(frozen=True, eq=False)
class Captioned:
    """Images, and captions in their order, each written for the image at its place in `owners`."""

    images: Ids
    #: The names that the file of each image may have.
    files: tuple[tuple[str, ...], ...]
    splits: tuple[str, ...]
    captions: Ids
    owners: Ids
    texts: tuple[str | None, ...]
    source: str

    @classmethod
    def of_coco(
        cls, images: Ids, captions: Ids, owners: Ids, texts: Iterable[str | None], source: object
    ) -> "Captioned":
        """Photographs of COCO that are called by their ids, and may lie in any of its parts."""
        files = tuple((f"COCO_val2014_{i:012d}.jpg", f"{i:012d}.jpg") for i in images.tolist())
        parts = ("val2014", "train2017", "val2017")
        return cls(images, files, parts, captions, owners, tuple(texts), str(source))

    def items(self, data: Path | None, images: Path | None) -> tuple[list[Image], list[Caption]]:
        """The items of a benchmark, called by their ids, with the photographs that are at hand."""
        sources = photographs(self.files, self.splits, data, images)
        return (
            [Image(str(name), file) for name, file in zip(self.images.tolist(), sources, strict=True)],
            [Caption(str(name), text) for name, text in zip(self.captions.tolist(), self.texts, strict=True)],
        )

    def gallery(
        self,
        card: Card,
        searches: tuple[RetrievalDirection, RetrievalDirection],
        data: Path | None,
        images: Path | None,
        *,
        positives: str = "",
        parts: tuple[Ids, Ids] | None = None,
    ) -> Benchmark:
        """The benchmark of two searches through the items."""
        source = f"{self.source}, {positives}" if positives else self.source
        items = self.items(data, images)
        return gallery(card, *items, self.owners, searches, parts=parts, source=source, path=data)

    def take(self, images: Ids, captions: Ids) -> "Captioned":
        """Some images and captions by their positions, in that order; the captions are of these images."""
        place = np.full(len(self.images), -1, dtype=np.int64)
        place[images] = np.arange(len(images))
        return replace(
            self,
            images=self.images[images],
            files=tuple(self.files[i] for i in images.tolist()),
            captions=self.captions[captions],
            owners=place[self.owners[captions]],
            texts=tuple(self.texts[i] for i in captions.tolist()),
        )


def annotation_folder(data: Path) -> Path:
    """The folder `annotations` in a folder of COCO, or the folder itself where it has none."""
    inside = data / "annotations"
    return inside if inside.is_dir() else data


def captions_files(data: Path) -> list[Path]:
    """The captions files of a folder by name, or the file itself; none is an empty list."""
    return [data] if data.is_file() else sorted(annotation_folder(data).glob("captions_*.json"))


def read_captions(files: Sequence[Path]) -> Captioned:
    """All images and captions of some captions files, in their order. An image may be without captions."""
    parts = [_captions(file, *_age(file)) for file in files]
    if len(parts) == 1:
        return parts[0]
    source = f"{files[0].parent}, {', '.join(file.name for file in files)}"
    starts = np.cumsum([0, *(len(part.images) for part in parts)])[:-1]
    merged = Captioned(
        images=np.concatenate([part.images for part in parts]),
        files=tuple(chain.from_iterable(part.files for part in parts)),
        splits=tuple(dict.fromkeys(split for part in parts for split in part.splits)),
        captions=np.concatenate([part.captions for part in parts]),
        owners=np.concatenate([part.owners + start for part, start in zip(parts, starts, strict=True)]),
        texts=tuple(chain.from_iterable(part.texts for part in parts)),
        source=source,
    )
    try:
        IdPositions(merged.images, "image", source)
        IdPositions(merged.captions, "caption", source)
    except DataError as error:
        raise DataError(f"{error}, over all files", hint="name one of the files with --data") from None
    return merged


def read_codes(files: Sequence[Path], images: Ids) -> NDArray[np.bool_]:
    """Which classes of object each image shows, (images, classes), a column per category that occurs."""
    source = ", ".join(str(file) for file in files)
    parts = [_instances(file, *_age(file)) for file in files]
    positives = IdPositions(np.unique(np.concatenate([covered for covered, _, _ in parts])), "image", source)
    lacking = np.flatnonzero(positives.of(images) < 0)
    if len(lacking):
        what = f"objects are not known of {len(lacking):,} of {len(images):,} images"
        given = f"image {images[lacking[0]]}"
        raise DataError(what, where=source, given=given, hint="give the instances files of the same images")
    categories, column = np.unique(np.concatenate([ids for _, _, ids in parts]), return_inverse=True)
    row = IdPositions(images, "image", source).of(np.concatenate([ids for _, ids, _ in parts]))
    codes = np.zeros((len(images), len(categories)), dtype=bool)
    codes[row[row >= 0], column[row >= 0]] = True
    return codes


def photographs(
    names: Sequence[tuple[str, ...]], splits: Sequence[str], data: Path | None, images: Path | None
) -> list[FileSource | None]:
    """The file of every photograph, None where it is not at hand; each has one or several possible names.

    Looks in `images`, else in the folder `data`, and there in `images/SPLIT`, `SPLIT`, `images` and itself.
    """
    if images is None and data is None:
        return [None] * len(names)
    base = images or (data if data is not None and data.is_dir() else data.parent if data else Path())
    if images is None and base.name == "annotations":
        base = base.parent
    folders = [f"images/{split}/" for split in splits] + [f"{split}/" for split in splits] + ["images/", ""]
    photos = Photos(base if is_image_folder(base) else None)
    if not isinstance(location(base), Location):
        folders = [start for start in folders if (base / start).is_dir()]
    sources: list[FileSource | None] = []
    for possible in names:
        at_hand = (photos.source(start + name) for start, name in product(folders, possible))
        sources.append(next(filter(None, at_hand), None))
    if images is not None and not any(sources):
        what = f"none of the {len(names):,} images is in this folder"
        raise DataError(what, where=display_path(images), hint=f"it should hold files like {names[0][0]}")
    return sources


@lru_cache(maxsize=4)
def _captions(path: Path, size: int, changed: int) -> Captioned:
    """One captions file; several benchmarks of one command read it, so the last ones are kept."""
    images, annotations = object_tables(path, "images", "annotations")
    ids, of_image, captions = (
        integers(table, column)
        for table, column in ((images, "id"), (annotations, "image_id"), (annotations, "id"))
    )
    names, texts = (
        tuple(check_cells(table, column, lambda cell: isinstance(cell, str), "not a text"))
        for table, column in ((images, "file_name"), (annotations, "caption"))
    )
    owners = IdPositions(ids, "image", path).of(of_image)
    IdPositions(captions, "caption", path)
    if not len(captions):
        raise DataError("no captions", where=path)
    if (owners < 0).any():
        i = int(np.argmax(owners < 0))
        what = f"the image of {int((owners < 0).sum()):,} captions is not in the file"
        raise DataError(what, where=f"{path}, annotation {captions[i]}", given=f"image_id {of_image[i]}")
    files = tuple((name,) for name in names)
    return Captioned(ids, files, (path.stem.removeprefix("captions_"),), captions, owners, texts, str(path))


@lru_cache(maxsize=4)
def _instances(path: Path, size: int, changed: int) -> tuple[Ids, Ids, Ids]:
    """The images a file is about, and for every object its image and its category."""
    # Outlines are nine tenths of the file.
    unused = ("segmentation", "bbox", "area", "iscrowd")
    images, annotations = object_tables(path, "images", "annotations", without=unused)
    return (integers(images, "id"), integers(annotations, "image_id"), integers(annotations, "category_id"))


def _age(path: Path) -> tuple[int, int]:
    if not path.is_file():
        raise DataError("no such file", where=path, hint="check the path given with --data")
    facts = path.stat()
    return facts.st_size, facts.st_mtime_ns


def find(data: Path | None, name: str) -> Path:
    """The file of that name in the user's folder, else in the package; raises `MissingExtraError`."""
    path = place(data, name)
    if path is None:
        spec = find_spec("eccv_caption")
        if spec is None or not spec.submodule_search_locations:
            raise MissingExtraError("eccv_caption", "eccv")
        path = Path(spec.submodule_search_locations[0]) / "data" / name
        if not path.is_file():
            raise DataError("file missing", where=path, hint="install the package eccv_caption anew")
    return path


def place(data: Path | None, name: str) -> Path | None:
    """The file of that name in a folder or its `annotations`; or the file itself, if it is called so."""
    if data is None:
        return None
    if data.is_file():
        return data if data.name == name else None
    return next((path for path in (data / name, annotation_folder(data) / name) if path.is_file()), None)


def shown_path(path: Path) -> str:
    """A file as provenance names it: those of the package without where it is installed."""
    return f"eccv_caption, {path.name}" if path.parent.parent.name == "eccv_caption" else str(path)


_CocoId = Annotated[int, Field(ge=0, lt=1 << 63)]
_Positives = dict[_CocoId, list[Annotated[_CocoId, Strict()]]]


def read_positives(path: Path) -> tuple[Ids, Ids, Ids]:
    """The queries of a file {id: [ids]}, and the pairs of (row of the queries, id of what is right)."""
    value = read_value(path, Annotated[_Positives, Field(min_length=1)])
    flat = list(chain.from_iterable(value.values()))
    rows = np.repeat(np.arange(len(value)), list(map(len, value.values())))
    return np.array(list(value), dtype=np.int64), rows, np.array(flat, dtype=np.int64)


#: Whole numbers of COCO, names of Flickr.
Id = TypeVar("Id", int, str)

#: All of them; "restval" are the images of COCO's validation half that Karpathy trains on.
SPLITS = ("train", "restval", "val", "test")


def read_split(
    path: Path, key: str, kind: Callable[[Any], Id], splits: Sequence[str] = ("test",)
) -> list[tuple[Id, list[tuple[Id, str]]]]:
    """The images of these splits by their `key`, each with the ids and texts of its captions, in order."""
    value = parse_json(read_text(path), where=path, without=("tokens",))
    images = value.get("images") if isinstance(value, dict) else None
    if not isinstance(images, list):
        raise DataError("not a data set after Karpathy", where=path, allowed="an object with a list 'images'")
    entries: list[tuple[Id, list[tuple[Id, str]]]] = []
    for i, image in enumerate(images):
        try:
            if image["split"] in splits:
                name = kind(image[key])
                entries.append((name, [(kind(row["sentid"]), str(row["raw"])) for row in image["sentences"]]))
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"not as expected: {error!r}", where=f"{path}, images, entry {i + 1}") from None
    if not entries:
        raise DataError(f"no image of the split '{', '.join(splits)}'", where=path)
    return entries


def read_karpathy(path: Path, splits: Sequence[str] = SPLITS) -> Captioned:
    """The images of COCO in these splits with their captions, called by their ids."""
    entries = read_split(path, "cocoid", int, splits)
    written = [caption for _, rows in entries for caption in rows]
    return Captioned.of_coco(
        np.array([image for image, _ in entries], dtype=np.int64),
        np.array([name for name, _ in written], dtype=np.int64),
        np.repeat(np.arange(len(entries)), [len(rows) for _, rows in entries]).astype(np.int64),
        (text for _, text in written),
        path,
    )


_TOKEN = re.compile(r"([^\t]+)#(\d+)\t(.*)")


def read_tokens(path: Path, *, collapse: bool = True) -> dict[str, list[tuple[str, str]]]:
    """For every image the ids and texts of its captions, in the order of the file."""
    lines = read_text(path).split("\n")
    captions_of: dict[str, list[tuple[str, str]]] = {}
    seen: set[str] = set()
    for number, line in enumerate(lines, start=1):
        if line.strip():
            match = _TOKEN.fullmatch(line.rstrip("\r"))
            if match is None or not collapsed(match[3]):
                what, allowed = "not a caption", "NAME.jpg#0, a tab, the caption"
                raise DataError(what, where=f"{path}, line {number}", given=shown(line), allowed=allowed)
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
    """The captions of COCO's images by id, in the order of the file; None where it is not in the folder."""
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
    return _collapsed({image: [text for _, text in rows] for image, rows in entries.items()}), path


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
    return {image: [text for raw in texts if (text := collapsed(raw))] for image, texts in captions.items()}


#: Of Flickr30k: after Karpathy, and the hub's of the same.
_FLICKR30K = (FLICKR30K[1], "flickr_annotations_30k.csv")


def flickr30k(card: Card, data: Path) -> tuple[DataTable, bool]:
    """Flickr30k's images, and in the column `captions` those written for them.

    Of Karpathy's JSON and of the hub's CSV the test split is read, of a token file all there is.
    """
    paths = [data] if data.is_file() else [data / name for name in _FLICKR30K if (data / name).is_file()]
    files = paths or sorted([*data.glob("*.token*"), *data.glob("*token.txt")])
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
    lists = []
    for column in ("raw", "sentids"):
        positions = [table.where(row, column) for row in range(len(table))]
        cells = zip(texts(table, column), positions, strict=True)
        lists.append([list_of(parse_json(text, where=where), where=where) for text, where in cells])
    entries = []
    for row, (name, captions, ids) in enumerate(zip(texts(table, "filename"), *lists, strict=True)):
        if len(captions) != len(ids):
            given = f"{len(ids)} ids, {len(captions)} captions"
            raise DataError("not an id per caption", where=table.where(row), given=given)
        entries.append((name, list(zip(map(str, ids), map(str, captions), strict=True))))
    return entries
