"""Composite: captions of Flickr8k, Flickr30k and COCO that people rated from 1 to 5 (Aditya et al.).

    {8k,30k,coco}_correctness.csv   how correct a caption is; `;` between the cells of a row per image
    {8k,30k,coco}_throughness.csv   how much of the image it says (the files are spelt so)

Among the cells are Input.image_url (the 28th), then the texts (three of Flickr8k, four of the others), then
as many ratings. The last two rows of each file have no image. The first text was written by a person and
is one of the image's own captions; the others come from machines.
"""

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from counterfoil.benchmarks.benchmark import Benchmark, Card
from counterfoil.benchmarks.readers.coco_files import named_photographs
from counterfoil.benchmarks.readers.flickr import FOLDERS
from counterfoil.benchmarks.readers.human_ratings import (
    CaptionTable,
    RatingRows,
    Skipped,
    clean_caption,
    placed,
    rated,
    rating,
)
from counterfoil.benchmarks.readers.released_captions import (
    Written,
    coco_captions,
    flickr8k_captions,
    flickr30k_captions,
    of_image,
)
from counterfoil.benchmarks.readers.released_files import released_set
from counterfoil.benchmarks.references import References, nearest
from counterfoil.errors import DataError
from counterfoil.inputs.files import decoded, read_bytes

#: The sources in the order of the release, and how many texts a row has.
TEXTS = {"8k": 3, "30k": 4, "coco": 4}

#: All studies use the first so many of them.
USED = 3

_SOURCES = {"8k": "flickr8k", "30k": "flickr30k", "coco": "coco"}
_FOLDERS = (*FOLDERS, "flickr30k-images", "flickr30k_images", "val2014")
_COLUMN, _AT = "Input.image_url", 27
#: How the file of an image ends.
_PICTURES = (".jpg", ".jpeg", ".png")


@dataclass
class _Candidates:
    """Candidates as they are read, three after each other for every row of a file."""

    names: list[str] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    images: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    ratings: list[float] = field(default_factory=list)


def _read(card: Card, data: Path | None, images: Path | None, *, scale: str) -> Benchmark:
    """Composite by how correct the captions are, or how much of the image they say: 11,985 points of 3,995
    images.

    References are the captions of each image without the one that is nearest to its first candidate, where
    the folder has Flickr8k.token.txt, results_20130124.token or dataset_flickr30k.json, and
    captions_val2014.json or dataset_coco.json; without all of them there are none. Questions are called
    "coco/17/2": the second candidate of the 17th row of that file. Groupings: `source`, `candidate`. Raises
    `DataError` naming file and row of what does not fit.
    """
    names = [f"{name}_{scale}.csv" for name in TEXTS]
    hint = "the folder holds the three tables of the release, and the captions of the images"
    files = dict(zip(TEXTS, released_set(card, data, names, hint=hint), strict=True))
    assert data is not None
    rows, left = _Candidates(), Skipped()
    for name, file in files.items():
        left.out("rows at the end of a file, without an image,", _add(rows, name, file))
    written = _written(data)
    captions = CaptionTable()
    names, pictures = placed(rows.images)
    candidates = [captions.add(text, name) for text, name in zip(rows.texts, rows.names, strict=True)]
    references = None
    note = "without references: the captions of the images are not in the folder"
    if written:
        lists: dict[str, list[int]] = {}
        for source, image, text in zip(rows.sources, rows.images, rows.texts, strict=True):
            # The first candidate met is the one that a person wrote.
            if image not in lists:
                key = str(int(image.rpartition("_")[2].removesuffix(".jpg"))) if source == "coco" else image
                own = of_image(written[source], key)
                gone = nearest(text, own)
                lists[image] = captions.add_all(own[:gone] + own[gone + 1 :], image)
        references = References.of([lists[image] for image in rows.images])
        note = f"{len(lists):,} references nearest to the first candidate taken out"
    origins = [
        str(data),
        *(f.name for f in files.values()),
        *(str(path.name) for _, path in written.values()),
    ]
    return rated(
        card,
        RatingRows(
            rows.names,
            np.array(candidates, dtype=np.int64),
            pictures,
            np.array(rows.ratings, dtype=np.float64)[:, None],
            references,
            groupings={
                "source": tuple(rows.sources),
                "candidate": tuple(f"candidate {name.rpartition('/')[2]}" for name in rows.names),
            },
        ),
        captions.items,
        named_photographs(names, _FOLDERS, data, images),
        left=left,
        source=", ".join(origins),
        notes=[note],
        path=data,
    )


read = partial(_read, scale="correctness")
read_throughness = partial(_read, scale="throughness")


def _add(rows: _Candidates, name: str, path: Path) -> int:
    """Read one file into `rows`; the number of rows at its end that have no image."""
    table = _cells(path)
    header = [cell.strip() for cell in table[0]] if table else []
    at = header.index(_COLUMN) if _COLUMN in header else _AT
    body = table[1:]
    while body and _file_name(body[-1], at) is None:
        body.pop()
    if not body:
        raise DataError("no rows", where=path, allowed=f"a column {_COLUMN}, the texts and their ratings")
    texts = TEXTS[name]
    for number, cells in enumerate(body, start=1):
        where = f"{path}, row {number}"
        image = _file_name(cells, at)
        if image is None:
            raise DataError("a candidate without an image", where=where, allowed=f"an address in {_COLUMN}")
        if name == "coco" and not image.rpartition("_")[2].removesuffix(".jpg").isdecimal():
            raise DataError(
                "no image of COCO", where=where, given=image, allowed="COCO_val2014_000000000042.jpg"
            )
        if len(cells) <= at + 2 * texts:
            raise DataError(
                "a row is cut short",
                where=where,
                given=f"{len(cells)} cells",
                allowed=f"more than {at + 2 * texts}",
            )
        for place in range(1, USED + 1):
            rows.names.append(f"{_SOURCES[name]}/{number}/{place}")
            rows.sources.append(_SOURCES[name])
            rows.images.append(image)
            rows.texts.append(clean_caption(cells[at + place], f"{where}, text {place}"))
            rows.ratings.append(rating(cells[at + texts + place].strip(), f"{where}, rating {place}"))
    return len(table) - 1 - len(body)


def _file_name(cells: list[str], at: int) -> str | None:
    """The image's file in its address; None where there is none, whatever else stands there."""
    name = cells[at].strip().rpartition("/")[2] if len(cells) > at else ""
    return name if name.lower().endswith(_PICTURES) else None


def _cells(path: Path) -> list[list[str]]:
    try:
        with io.StringIO(decoded(read_bytes(path), where=path), newline="") as file:
            return [row for row in csv.reader(file, delimiter=";") if row]
    except csv.Error as error:
        raise DataError(f"not valid CSV: {error}", where=path) from None


def _written(data: Path) -> Mapping[str, Written]:
    """The captions of the three sources' images, or of none of them."""
    captions_of = {
        "flickr8k": flickr8k_captions(data),
        "flickr30k": flickr30k_captions(data),
        "coco": coco_captions(data),
    }
    there = {name: written for name, written in captions_of.items() if written is not None}
    if there and len(there) < len(captions_of):
        raise DataError(
            f"no captions of {', '.join(name for name in captions_of if name not in there)} here",
            where=data,
            allowed="Flickr8k.token.txt, results_20130124.token or dataset_flickr30k.json, and "
            "captions_val2014.json or dataset_coco.json",
            hint="without any of them, captions are rated without references",
        )
    return there
