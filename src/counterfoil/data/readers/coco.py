"""COCO retrieval: the 5K and 1K test sets, and any captions files of COCO's kind. Right is the own image."""

from pathlib import Path

import numpy as np

from counterfoil.data.benchmark import Benchmark, Card
from counterfoil.data.readers import coco_files
from counterfoil.data.readers.coco_files import Captioned, captions_files, photographs
from counterfoil.data.readers.coco_test import read_test
from counterfoil.data.readers.hub import not_on_hub
from counterfoil.data.readers.questions import gallery, own
from counterfoil.data.records import Caption, Image
from counterfoil.errors import DataError


def read_5k(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """COCO 5K: Karpathy's test half, every image against 25,000 captions, every caption against 5,000 images.

    `data` is a folder of COCO (with `annotations/captions_val2014.json`, `val2014`) or None for the ids in
    the package `eccv_caption` alone; `coco_test.read_test` says what else is understood and what goes wrong.
    """
    test = read_test(data)
    return test.benchmark(card, own(test.owners, len(test.images)), data=data, images=images)


def read_1k(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """COCO 1K: the items of COCO 5K in five parts of a thousand images; a query sees its own part only."""
    test = read_test(data)
    searches = own(test.owners, len(test.images))
    return test.benchmark(card, searches, data=data, images=images, parts=test.parts())


def read_captions(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """Every image and caption of a captions file, or of all `captions_*.json` in a folder's `annotations`.

    Captions stand by image, in the order of the files. An image without captions stays in the gallery: it can
    be mistaken for another, but is no query that has a value. Raises `DataError` for ids that occur twice and
    annotations whose image is unknown.
    """
    if data is None:
        raise not_on_hub(card)
    found = captioned(data)
    pictures, captions = items(found, data, images)
    return gallery(
        card.model_copy(update={"title": f"{card.title} ({data.stem})"}),
        pictures,
        captions,
        found.owners,
        own(found.owners, len(pictures)),
        source=found.source,
        path=data,
    )


def captioned(data: Path) -> Captioned:
    """What the captions files in `data` hold, captions by image; raises `DataError` where there are none."""
    files = captions_files(data)
    if not files:
        raise DataError(
            "no captions file in this folder",
            where=data,
            allowed="captions_*.json, here or in 'annotations'",
        )
    found = coco_files.read_captions(files)
    order = np.argsort(found.owners, kind="stable")
    return Captioned(
        images=found.images,
        files=found.files,
        splits=found.splits,
        captions=found.captions[order],
        owners=found.owners[order],
        texts=tuple(found.texts[i] for i in order.tolist()),
        source=found.source,
    )


def items(found: Captioned, data: Path, images: Path | None) -> tuple[tuple[Image, ...], tuple[Caption, ...]]:
    """The items of a benchmark, called by their ids, with the photographs that are at hand."""
    sources = photographs([(name,) for name in found.files], dict.fromkeys(found.splits), data, images)
    return coco_files.called_by_id(found.images, sources, found.captions, found.texts)
