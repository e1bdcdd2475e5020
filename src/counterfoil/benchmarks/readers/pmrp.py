"""PMRP: plausible matches, where right is every picture that shows the same classes of object.

Codes come from COCO's instances: a bit per category that an image has an object of. Two protocols share the
name, and are two benchmarks here. ECCV Caption's (section 5.1) asks for equal codes and looks at 50 places at
most. PCME's averages R-Precision over codes that differ in at most 0, 1 and 2 places, with no limit, and only
among images that have an object at all.
"""

from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from counterfoil.benchmarks.benchmark import Benchmark, Card
from counterfoil.benchmarks.forms import Ids, RetrievalDirection
from counterfoil.benchmarks.readers.coco import CAPTIONS, IDS, KARPATHY, captioned, items, parts, read_test
from counterfoil.benchmarks.readers.coco_files import (
    annotation_folder,
    captions_files,
    find,
    place,
    read_codes,
    read_ids,
)
from counterfoil.benchmarks.readers.questions import IdPositions, gallery
from counterfoil.benchmarks.readers.rows import not_on_hub
from counterfoil.benchmarks.records import Caption, Image
from counterfoil.errors import DataError, MissingExtraError
from counterfoil.metrics.class_rules import Plausible

#: ECCV Caption section 5.1: equal codes, R of 50 at most.
_MODIFIED: tuple[tuple[int, ...], int | None] = ((0,), 50)

#: PCME's evaluation: the mean over three thresholds, R as it is.
_ORIGINAL: tuple[tuple[int, ...], int | None] = ((0, 1, 2), None)

_TEST_CAPTIONS = 25_000

Codes = NDArray[np.bool_]


def read(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """ECCV Caption's protocol over COCO's test half, or over all images of captions files that do not hold
    it.

    `data` is a folder of COCO with captions and instances in `annotations`. An image without any object is no
    query, nor are its captions; they stay in the gallery, where they match nothing. Raises `DataError` where
    the instances are missing, or do not know an image.
    """
    card, pictures, captions, owners, codes, source = _read(card, data, images)
    # Images without an object are no queries, so that their empty codes match nothing.
    return _gallery(card, data, pictures, captions, owners, codes, source, _MODIFIED, None)


def _original(card: Card, data: Path | None, images: Path | None, *, folds: bool) -> Benchmark:
    """PCME's protocol; images without any object, and their captions, are left out.

    With `folds` in parts of a thousand images, in order; what has no object is left out afterwards.
    """
    card, pictures, captions, owners, codes, source = _read(card, data, images)
    of_image, of_caption = (
        parts(owners, len(pictures), source) if folds else (np.zeros_like(owners[:0]), owners[:0])
    )
    shown = codes.sum(axis=1) > 0
    with_objects, captions_with_objects = np.flatnonzero(shown), np.flatnonzero(shown[owners])
    if not len(with_objects):
        raise DataError("no image has an object", where=source)
    return _gallery(
        card,
        data,
        [pictures[i] for i in with_objects.tolist()],
        [captions[i] for i in captions_with_objects.tolist()],
        (np.cumsum(shown) - 1)[owners[captions_with_objects]].astype(np.int64),
        codes[with_objects],
        source,
        _ORIGINAL,
        (of_image[with_objects], of_caption[captions_with_objects]) if folds else None,
    )


read_original = partial(_original, folds=False)
read_original_1k = partial(_original, folds=True)


def _gallery(
    card: Card,
    data: Path | None,
    pictures: list[Image],
    captions: list[Caption],
    owners: Ids,
    codes: Codes,
    source: str,
    rule: tuple[tuple[int, ...], int | None],
    of_items: tuple[Ids, Ids] | None,
) -> Benchmark:
    shown = codes.sum(axis=1) > 0
    # An image without captions has no caption of its own to find.
    image_queries = np.flatnonzero(shown & (np.bincount(owners, minlength=len(pictures)) > 0))
    caption_queries = np.flatnonzero(shown[owners])
    if not len(image_queries):
        raise DataError("no image has both an object and a caption", where=source)
    of_captions = codes[owners]
    return gallery(
        card,
        pictures,
        captions,
        owners,
        (
            RetrievalDirection(image_queries, Plausible(codes[image_queries], of_captions, *rule)),
            RetrievalDirection(caption_queries, Plausible(of_captions[caption_queries], codes, *rule)),
        ),
        parts=of_items,
        source=source,
        path=data,
    )


def _read(
    card: Card, data: Path | None, images: Path | None
) -> tuple[Card, list[Image], list[Caption], Ids, Codes, str]:
    """The card, images, captions, owners, the images' codes, and where all that was read from."""
    if data is None:
        raise not_on_hub(card)
    if _holds_test(data):
        test = read_test(data)
        pictures, captions = test.items(data, images)
        ids, owners, source = test.images, test.owners, f"COCO's test half: {test.source}"
        splits = ["val2014"]
    else:
        coco = captioned(data)
        pictures, captions = items(coco, data, images)
        ids, owners = coco.images, coco.owners
        source = f"all {len(ids):,} images of {coco.source}"
        splits = list(dict.fromkeys(coco.splits))
        card = card.model_copy(update={"title": f"{card.title}, {data.stem}", "counts": {}})
    files = _instances(data, splits)
    names = ", ".join(file.name for file in files)
    return card, list(pictures), list(captions), owners, read_codes(files, ids), f"{source}, {names}"


def _holds_test(data: Path) -> bool:
    """Whether the captions files hold all captions of COCO's test half, or there are none to ask."""
    if place(data, CAPTIONS) is None and (place(data, KARPATHY) or not captions_files(data)):
        return True
    written = captioned(data)
    try:
        ids = read_ids(find(data, IDS))
    except MissingExtraError:
        # With so many captions the test half may be included, which cannot be decided without the ids.
        if len(written.captions) >= _TEST_CAPTIONS:
            raise
        return False
    return bool((IdPositions(written.captions, "caption", written.source).of(ids) >= 0).all())


def _instances(data: Path, splits: list[str]) -> list[Path]:
    """The instances files of those parts of COCO, else all there are."""
    folder = annotation_folder(data.parent if data.is_file() else data)
    named = [folder / f"instances_{split}.json" for split in splits]
    files = named if all(file.is_file() for file in named) else sorted(folder.glob("instances_*.json"))
    if not files:
        raise DataError(
            "no instances here, which say what objects an image shows",
            where=folder,
            allowed="instances_*.json",
            hint="they come with COCO's annotations",
        )
    return files
