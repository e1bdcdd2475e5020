"""CrissCrossed Captions: image-caption pairs of COCO that people rated from 0 to 5; 3 and more is right.

The test half is read from the two files of positives by id or from sits_test.csv (columns caption, image,
agg_score, sampling_method), which must agree where both are there. A table of another half (sits_val.csv)
makes a gallery of its own, of the captions and images it names.

CrissCrossed Captions as ratings (SITS): how well a caption of COCO fits an image, from 0 to 5.

sits_val.csv or sits_test.csv: caption, image, agg_score (the mean of the ratings), sampling_method. The texts
are COCO's: captions_val2014.json in the folder, or the captions files of 2017, or dataset_coco.json.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from counterfoil.benchmarks.benchmark import Benchmark, Card
from counterfoil.benchmarks.forms import Ids, Rated, RetrievalDirection
from counterfoil.benchmarks.forms.base import first_use
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
from counterfoil.benchmarks.readers.rows import no_data
from counterfoil.benchmarks.references import collapsed
from counterfoil.benchmarks.tables import DataTable, check_numbers, floats, labels, read_table, shown, texts
from counterfoil.errors import DataError, MissingExtraError

TABLE = "sits_test.csv"

#: Pairs rated at least so high are right ([CxC] section 4.2; ECCV Caption section 5.1).
RIGHT = 3.0

_HIGHEST = 5.0
_ORIGINAL = "c2i_original"
_FILES = ("cxc_image_to_caption.json", "cxc_caption_to_image.json")


def read(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """CxC over COCO's test half, or over the items of one table.

    All images and captions are queries; the 28 captions for which nothing is rated 3 or more have no right
    answer. `data` is as for COCO 5K; or sits_val.csv, or a folder with nothing else. Raises `DataError` where
    the directions, or files and table, do not agree, and naming the row that is broken.
    """
    path = _lone(data)
    if path is None:
        test = read_test(data)
        i2t, t2i, source = _positives(test, data)
        return test.gallery(card, (i2t, t2i), data, images, positives=source)
    # The gallery of what one table names, in its order of pairs as they were written.
    captions, pictures, scores, original = ratings(read_table(path))
    caption_ids, image_ids = (
        first_use(np.concatenate([ids[original], ids[~original]])) for ids in (captions, pictures)
    )
    caption = IdPositions(caption_ids, "caption", path).of(captions)
    image = IdPositions(image_ids, "image", path).of(pictures)
    owners = np.full(len(caption_ids), -1, dtype=np.int64)
    owners[caption[original]] = image[original]
    _, counts = np.unique(caption[original], return_counts=True)
    if (counts > 1).any():
        raise DataError(f"a caption has two rows '{_ORIGINAL}'", where=path)
    searches = _searches(caption, image, scores >= RIGHT, caption_ids, image_ids, path)
    coco = Captioned.of_coco(image_ids, caption_ids, owners, (None,) * len(caption_ids), path)
    return coco.gallery(_of_half(card, path), searches, data, images)


def _lone(data: Path | None) -> Path | None:
    """The table that is all there is to read, unless it is the test half's."""
    if data is None or data.name == TABLE:
        return None
    if data.is_file():
        return data if data.suffix.lower() == ".csv" else None
    tables = sorted(data.glob("sits_*.csv"))
    others = [TABLE, *_FILES, "coco_test_ids.npy", "dataset_coco.json"]
    if any(place(data, name) for name in others) or captions_of(data):
        return None
    if len(tables) > 1:
        raise DataError(
            "several tables", where=data, given=", ".join(t.name for t in tables), hint="name one with --data"
        )
    return tables[0] if tables else None


def _positives(test: Captioned, data: Path | None) -> tuple[RetrievalDirection, RetrievalDirection, str]:
    """Both searches and where they were read from."""
    table = place(data, TABLE)
    try:
        files = [find(data, name) for name in _FILES]
    except MissingExtraError:
        if table is None:
            raise
        files = []
    searches, sources = [], []
    if files:
        i2t, t2i = searches_of(test, files[0], files[1], every=True)
        if not same_pairs(i2t, t2i):
            raise DataError("the two directions do not agree", where=files[1], given=f"not {files[0].name}")
        searches.append((i2t, t2i))
        sources.append(f"{said(files[0])}, {files[1].name}")
    if table is not None:
        captions, images, scores, _ = ratings(read_table(table))
        at_caption = IdPositions(test.captions, "caption", test.source).of(captions)
        at_image = IdPositions(test.images, "image", test.source).of(images)
        searches.append(_searches(at_caption, at_image, scores >= RIGHT, test.captions, test.images, table))
        sources.append(str(table))
    if len(searches) == 2 and not same_pairs(searches[0][0], searches[1][1]):
        raise DataError(
            f"the pairs rated {RIGHT:g} or more are not those of {files[0].name}",
            where=table,
            hint="take the one you do not trust out of the folder",
        )
    return *searches[0], ", ".join(sources)


def _of_half(card: Card, path: Path) -> Card:
    """The card, which counts the test half, for a table of another."""
    return card.model_copy(update={"title": f"{card.title} ({path.name})", "size": None, "counts": {}})


def ratings(table: DataTable) -> tuple[Ids, Ids, NDArray[np.float64], NDArray[np.bool_]]:
    """Caption id, image id and score of every row, and whether the caption was written for the image.

    Raises `DataError` naming the row whose score is no number from 0 to 5, or whose ids are not COCO's.
    """
    scores = floats(table, "agg_score")
    outside = (scores < 0) | (scores > _HIGHEST)
    check_numbers(table, "agg_score", scores, outside, "rating out of range", "0 to 5")
    original = np.array([name == _ORIGINAL for name in texts(table, "sampling_method")], dtype=bool)
    return _ids(table, "caption", ":"), _ids(table, "image", "_"), scores, original


def _ids(table: DataTable, column: str, mark: str) -> Ids:
    """ "COCO_val2014:sentid:732091" and "COCO_val2014_000000365325.jpg" as numbers."""
    ids = np.empty(len(table), dtype=np.int64)
    for row, cell in enumerate(texts(table, column)):
        number = cell.rpartition(mark)[2].removesuffix(".jpg")
        if not number.isdecimal() or len(number) > 18:
            raise DataError("no id of COCO", where=table.where(row, column), given=shown(cell))
        ids[row] = int(number)
    return ids


def _searches(
    caption: Ids, image: Ids, right: NDArray[np.bool_], caption_ids: Ids, image_ids: Ids, where: Path
) -> tuple[RetrievalDirection, RetrievalDirection]:
    """Both searches from rated pairs as positions: all items are queries."""
    outside = (caption < 0) | (image < 0)
    if outside.any():
        raise DataError(
            f"{int(outside.sum()):,} of {len(outside):,} rated pairs are outside the gallery",
            where=where,
            hint=f"is this another half? a lone table is read by itself: --data {where}",
        )
    every_image, every_caption = (np.arange(len(ids), dtype=np.int64) for ids in (image_ids, caption_ids))
    pairs = caption[right], image[right]
    return (
        search(every_image, pairs[::-1], names=[str(i) for i in image_ids.tolist()], where=where),
        search(every_caption, pairs, names=[str(i) for i in caption_ids.tolist()], where=where),
    )


VALIDATION = "sits_val.csv"


def read_ratings(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """Every rated pair of a table: sits_test.csv in the folder, else sits_val.csv, or the table named.

    Questions are called "CAPTION-IMAGE" by their ids; grouping `sampling` tells a caption's own image
    (c2i_original) from one that looks alike (c2i_intrasim). Without COCO's captions in the folder there are
    no texts, and the pairs can be measured from given scores. Raises `DataError` naming the row that does not
    fit, and for captions that COCO's file does not have.
    """
    if data is None:
        raise no_data(card)
    named = (path for name in (TABLE, VALIDATION) if (path := place(data, name)))
    path = data if data.is_file() else next(named, None)
    if path is None:
        raise DataError("no ratings here", where=data, allowed=f"{TABLE} or {VALIDATION}")
    table = read_table(path)
    captions, pictures, scores, _ = ratings(table)
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
            raise DataError(
                f"{len(lacking):,} of the {len(caption_ids):,} rated captions are not in this file",
                where=source,
                given=f"no caption {lacking[0]}",
                hint="they are in captions_val2014.json",
            )
    note = f"{path}, {source}" if source else f"{path} (without texts: COCO's captions are not in the folder)"
    images_at, captions_at = Captioned.of_coco(image_ids, caption_ids, shown, texts, note).items(data, images)
    questions = Rated(
        unique_ids([f"{c}-{i}" for c, i in zip(captions.tolist(), pictures.tolist(), strict=True)]),
        groupings={"sampling": labels(table, "sampling_method")},
        captions=candidates,
        images=shown,
        ratings=scores[:, None],
    )
    card = card if path.name == TABLE else _of_half(card, path)
    whole = Benchmark(card, tuple(images_at), tuple(captions_at), questions, note, data)
    return check_counts(whole.mentioned())
