"""PMRP: plausible matches, where right is every picture that shows the same classes of object.

Codes come from COCO's instances: a bit per category that an image has an object of. Two protocols share the
name, and are two benchmarks here. ECCV Caption's (section 5.1) asks for equal codes and looks at 50 places at
most. PCME's averages R-Precision over codes that differ in at most 0, 1 and 2 places, with no limit, and only
among images that have an object at all.
"""

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from counterfoil.benchmarks.benchmark import Benchmark, Card
from counterfoil.benchmarks.forms import RetrievalDirection
from counterfoil.benchmarks.readers.coco import CAPTIONS, IDS, KARPATHY, captioned, parts, read_test
from counterfoil.benchmarks.readers.coco_files import (
    annotation_folder,
    captions_files,
    find,
    place,
    read_codes,
    read_ids,
)
from counterfoil.benchmarks.readers.questions import IdPositions
from counterfoil.benchmarks.readers.rows import not_on_hub
from counterfoil.errors import DataError, MissingExtraError
from counterfoil.metrics.class_rules import Plausible

_TEST_CAPTIONS = 25_000


def read(
    card: Card,
    data: Path | None,
    images: Path | None,
    *,
    thresholds: tuple[int, ...] = (0,),
    cap: int | None = 50,
    bare: bool = True,
    folds: bool = False,
) -> Benchmark:
    """The gallery of COCO's test half, or of all images of captions files that do not hold it.

    `data` is a folder of COCO with captions and instances in `annotations`. Right are images whose codes
    differ in at most so many places, for each of `thresholds`; at most `cap` places are looked at. An image
    without any object is no query, nor are its captions; where `bare` ones stay in the gallery, they match
    nothing. With `folds` the gallery is in parts of a thousand images, in order; what has no object is left
    out afterwards. Raises `DataError` where the instances are missing, or do not know an image.
    """
    if data is None:
        raise not_on_hub(card)
    # Whether the captions files hold all captions of COCO's test half, or there are none to ask.
    holds_test = place(data, CAPTIONS) is None and bool(place(data, KARPATHY) or not captions_files(data))
    if not holds_test:
        written = captioned(data)
        try:
            ids = read_ids(find(data, IDS))
            known = IdPositions(written.captions, "caption", written.source)
            holds_test = bool((known.of(ids) >= 0).all())
        except MissingExtraError:
            # With so many captions the test half may be included, which cannot be decided without the ids.
            if len(written.captions) >= _TEST_CAPTIONS:
                raise
    if holds_test:
        coco, splits = read_test(data), ["val2014"]
        source = f"COCO's test half: {coco.source}"
    else:
        coco = written
        splits = list(coco.splits)
        source = f"all {len(coco.images):,} images of {coco.source}"
        card = card.model_copy(update={"title": f"{card.title}, {data.stem}", "counts": {}})
    folder = annotation_folder(data.parent if data.is_file() else data)
    files = [folder / f"instances_{split}.json" for split in splits]
    if not all(file.is_file() for file in files):
        files = sorted(folder.glob("instances_*.json"))
    if not files:
        raise DataError(
            "no instances here, which say what objects an image shows",
            where=folder,
            allowed="instances_*.json",
            hint="they come with COCO's annotations",
        )
    codes = read_codes(files, coco.images)
    coco = replace(coco, source=f"{source}, {', '.join(file.name for file in files)}")
    of_items = parts(coco) if folds else None
    shown = codes.sum(axis=1) > 0
    if not bare:
        if not shown.any():
            raise DataError("no image has an object", where=coco.source)
        chosen, described = np.flatnonzero(shown), np.flatnonzero(shown[coco.owners])
        coco, codes, shown = coco.take(chosen, described), codes[chosen], shown[chosen]
        of_items = of_items and (of_items[0][chosen], of_items[1][described])
    # An image without captions has no caption of its own to find. Images without an object are no queries, so
    # that their empty codes match nothing.
    image_queries = np.flatnonzero(shown & (np.bincount(coco.owners, minlength=len(coco.images)) > 0))
    caption_queries = np.flatnonzero(shown[coco.owners])
    if not len(image_queries):
        raise DataError("no image has both an object and a caption", where=coco.source)
    of_captions = codes[coco.owners]
    searches = (
        RetrievalDirection(image_queries, Plausible(codes[image_queries], of_captions, thresholds, cap)),
        RetrievalDirection(caption_queries, Plausible(of_captions[caption_queries], codes, thresholds, cap)),
    )
    return coco.gallery(card, searches, data, images, parts=of_items)


#: PCME's evaluation: the mean over three thresholds, R as it is, images without an object left out.
read_original = partial(read, thresholds=(0, 1, 2), cap=None, bare=False)
read_original_1k = partial(read_original, folds=True)
