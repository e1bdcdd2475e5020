"""CrissCrossed Captions: image-caption pairs of COCO that people rated from 0 to 5; 3 and more is right.

The gallery of the test half is read from the two files of positives by id, else from sits_test.csv (columns
caption, image, agg_score, sampling_method). The ratings themselves (SITS) are sits_val.csv or sits_test.csv,
with COCO's captions in the same folder.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from counterfoil.benchmarks.benchmark import Benchmark, Card
from counterfoil.benchmarks.forms import Ids, Rated, RetrievalDirection
from counterfoil.benchmarks.readers.coco import KARPATHY, captions_of, read_test, same_pairs, searches_of
from counterfoil.benchmarks.readers.questions import IdPositions, check_counts, search, unique_ids
from counterfoil.benchmarks.readers.released_captions import (
    Captioned,
    find,
    place,
    read_captions,
    read_karpathy,
    said,
)
from counterfoil.benchmarks.readers.released_files import no_data
from counterfoil.benchmarks.references import collapsed
from counterfoil.benchmarks.tables import DataTable, check_numbers, floats, labels, read_table, shown, texts
from counterfoil.errors import DataError, MissingExtraError

TABLE = "sits_test.csv"

#: Pairs rated at least so high are right ([CxC] section 4.2; ECCV Caption section 5.1).
RIGHT = 3.0

_HIGHEST = 5.0
_FILES = ("cxc_image_to_caption.json", "cxc_caption_to_image.json")


def read(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """CxC over COCO's test half."""
    test = read_test(data)
    i2t, t2i, source = _positives(test, data)
    return test.gallery(card, (i2t, t2i), data, images, positives=source)


def _positives(test: Captioned, data: Path | None) -> tuple[RetrievalDirection, RetrievalDirection, str]:
    """Both searches and where they were read from."""
    table = place(data, TABLE)
    try:
        files = [find(data, name) for name in _FILES]
    except MissingExtraError:
        if table is None:
            raise
        return *_rated(test, table), str(table)
    i2t, t2i = searches_of(test, files[0], files[1], every=True)
    if not same_pairs(i2t, t2i):
        raise DataError("the two directions do not agree", where=files[1], given=f"not {files[0].name}")
    return i2t, t2i, f"{said(files[0])}, {files[1].name}"


def ratings(table: DataTable) -> tuple[Ids, Ids, NDArray[np.float64]]:
    """Caption id, image id and score of every row."""
    scores = floats(table, "agg_score")
    outside = (scores < 0) | (scores > _HIGHEST)
    check_numbers(table, "agg_score", scores, outside, "rating out of range", "0 to 5")
    return _ids(table, "caption", ":"), _ids(table, "image", "_"), scores


def _ids(table: DataTable, column: str, mark: str) -> Ids:
    """ "COCO_val2014:sentid:732091" and "COCO_val2014_000000365325.jpg" as numbers."""
    ids = np.empty(len(table), dtype=np.int64)
    for row, cell in enumerate(texts(table, column)):
        number = cell.rpartition(mark)[2].removesuffix(".jpg")
        if not number.isdecimal() or len(number) > 18:
            raise DataError("no id of COCO", where=table.where(row, column), given=shown(cell))
        ids[row] = int(number)
    return ids


def _rated(test: Captioned, where: Path) -> tuple[RetrievalDirection, RetrievalDirection]:
    """Both searches from a table of rated pairs: all items are queries."""
    captions, images, scores = ratings(read_table(where))
    caption = IdPositions(test.captions, "caption", test.source).of(captions)
    image = IdPositions(test.images, "image", test.source).of(images)
    outside = (caption < 0) | (image < 0)
    if outside.any():
        what = f"{int(outside.sum()):,} of {len(outside):,} rated pairs are outside the gallery"
        raise DataError(what, where=where, hint="is this another half?")
    right = scores >= RIGHT
    sides = (
        (test.images, (caption[right], image[right])[::-1]),
        (test.captions, (caption[right], image[right])),
    )
    i2t, t2i = (
        search(np.arange(len(ids)), pairs, names=[str(i) for i in ids.tolist()], where=where)
        for ids, pairs in sides
    )
    return i2t, t2i


VALIDATION = "sits_val.csv"


def read_ratings(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """Every rated pair of a table: sits_test.csv in the folder, else sits_val.csv, or the table named.

    Questions are called "CAPTION-IMAGE" by their ids; grouping `sampling` tells a caption's own image
    (c2i_original) from one that looks alike (c2i_intrasim).
    """
    if data is None:
        raise no_data(card)
    named = (path for name in (TABLE, VALIDATION) if (path := place(data, name)))
    path = data if data.is_file() else next(named, None)
    if path is None:
        raise DataError("no ratings here", where=data, allowed=f"{TABLE} or {VALIDATION}")
    table = read_table(path)
    captions, pictures, scores = ratings(table)
    caption_ids, image_ids = (np.unique(ids) for ids in (captions, pictures))
    candidates = np.searchsorted(caption_ids, captions).astype(np.int64)
    shown = np.searchsorted(image_ids, pictures).astype(np.int64)
    folder = data if data.is_dir() else data.parent
    files, karpathy = captions_of(folder), place(folder, KARPATHY)
    texts: tuple[str | None, ...] = (None,) * len(caption_ids)
    source = ""
    if files or karpathy is not None:
        written = read_captions(files) if files or karpathy is None else read_karpathy(karpathy)
        at, source = IdPositions(written.captions, "caption", written.source).of(caption_ids), written.source
        texts = tuple(collapsed(written.texts[row] or "") if row >= 0 else "" for row in at.tolist())
        lacking = caption_ids[[not text for text in texts]]
        if len(lacking):
            what = f"{len(lacking):,} of the {len(caption_ids):,} rated captions are not in this file"
            given = f"no caption {lacking[0]}"
            raise DataError(what, where=source, given=given, hint="they are in captions_val2014.json")
    note = f"{path}, {source}" if source else f"{path} (without texts: COCO's captions are not in the folder)"
    images_at, captions_at = Captioned.of_coco(image_ids, caption_ids, shown, texts, note).items(data, images)
    questions = Rated(
        unique_ids([f"{c}-{i}" for c, i in zip(captions.tolist(), pictures.tolist(), strict=True)]),
        groupings={"sampling": labels(table, "sampling_method")},
        captions=candidates,
        images=shown,
        ratings=scores[:, None],
    )
    if path.name != TABLE:
        # The card counts the test half.
        card = card.model_copy(update={"title": f"{card.title} ({path.name})", "size": None, "counts": {}})
    whole = Benchmark(card, tuple(images_at), tuple(captions_at), questions, note, data)
    return check_counts(whole.mentioned())
