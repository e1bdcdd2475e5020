"""COCO retrieval: Karpathy's test half as COCO 5K, 1K, CxC and ECCV Caption, any captions files, and PMRP.

The test half is 5,000 images in a fixed order with five captions each. PMRP: right is every picture that
shows the same classes of object, by COCO's instances. ECCV Caption's (section 5.1) asks for equal codes and
looks at 50 places at most. PCME's averages R-Precision over codes that differ in at most 0, 1 and 2 places,
with no limit, and only among images that have an object at all.
"""

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from counterfoil.benchmarks.benchmark import Benchmark, Card
from counterfoil.benchmarks.forms import Ids, Rated, RetrievalDirection
from counterfoil.benchmarks.forms.base import first_use
from counterfoil.benchmarks.readers.questions import IdPositions, check_counts, own_pairs, search, unique_ids
from counterfoil.benchmarks.readers.released_captions import (
    Captioned,
    annotation_folder,
    captions_files,
    find,
    place,
    read_captions,
    read_codes,
    read_karpathy,
    read_positives,
    shown_path,
)
from counterfoil.benchmarks.readers.released_files import no_data
from counterfoil.benchmarks.references import collapsed
from counterfoil.benchmarks.tables import DataTable, check_numbers, floats, labels, read_table, shown, texts
from counterfoil.errors import DataError, MissingExtraError
from counterfoil.inputs.arrays import read_npy
from counterfoil.metrics.class_rules import Plausible
from counterfoil.metrics.ranks import Qrels

IDS = "coco_test_ids.npy"
KARPATHY = "dataset_coco.json"
OWNERS = ("original_image_to_caption.json", "original_caption_to_image.json")
CAPTIONS = "captions_val2014.json"
TABLE, OTHER_TABLE = "sits_test.csv", "sits_val.csv"
WAYS = ("image_to_caption", "caption_to_image")

#: Images in each part of COCO 1K, and captions of each image.
PART, _TEXTS = 1000, 5


def parts(coco: Captioned) -> tuple[Ids, Ids]:
    """The part of every image and caption where a thousand images after another are one."""
    if len(coco.images) % PART:
        what, given = f"the images do not make parts of {PART:,}", f"{len(coco.images):,} images"
        raise DataError(what, where=coco.source, given=given, hint="measure over the whole gallery instead")
    of_image = np.arange(len(coco.images), dtype=np.int64) // PART
    return of_image, of_image[coco.owners]


def searches_of(
    coco: Captioned, i2t: Path, t2i: Path, *, every: bool
) -> tuple[RetrievalDirection, RetrievalDirection]:
    """The searches that two files of positives, {id: [ids]}, ask for."""
    images = IdPositions(coco.images, "image", coco.source)
    captions = IdPositions(coco.captions, "caption", coco.source)
    return _search(i2t, images, captions, every=every), _search(t2i, captions, images, every=every)


def read_test(data: Path | None) -> Captioned:
    """The test half from what is in the folder `data`, else from the package `eccv_caption`.

    The order is that of coco_test_ids.npy in the folder, else of Karpathy's dataset_coco.json, else of the
    package; texts are from captions files, else from Karpathy's, else there are none.
    """
    karpathy = place(data, KARPATHY)
    written = captions_of(data)
    if data is not None and not written:
        files = [IDS, KARPATHY, *OWNERS, TABLE, "instances_val2014.json"]
        files += [f"{name}_{way}.json" for name in ("cxc", "eccv") for way in WAYS]
        photographs = data.is_dir() and any((data / name / "val2014").is_dir() for name in ("", "images"))
        if not photographs and not any(place(data, name) for name in files):
            allowed = f"a folder with annotations/{CAPTIONS}, val2014, {KARPATHY}, {IDS} or positives"
            hint = "without --data, the files of the package eccv_caption are read"
            raise DataError("nothing of COCO here", where=data, allowed=allowed, hint=hint)
    if karpathy is None or place(data, IDS) is not None:
        test = _listed(find(data, IDS), find(data, OWNERS[1]))
        if karpathy is not None:
            test = _with_texts(test, read_karpathy(karpathy, ("test",)))
    else:
        whole = read_karpathy(karpathy, ("test",))
        counts = np.bincount(whole.owners, minlength=len(whole.images))
        if (counts < _TEXTS).any():
            image = int(np.argmax(counts < _TEXTS))
            where = f"{karpathy}, image {whole.images[image]}"
            raise DataError("an image has too few captions", where=where, given=int(counts[image]))
        starts = np.repeat(np.cumsum(counts) - counts, counts)
        first = np.flatnonzero(np.arange(len(whole.owners)) - starts < _TEXTS)
        test = whole.take(np.arange(len(whole.images)), first)
        IdPositions(test.images, "image", karpathy), IdPositions(test.captions, "caption", karpathy)
    return _with_texts(test, read_captions(written)) if written else test


def _search(path: Path, queries: IdPositions, items: IdPositions, *, every: bool) -> RetrievalDirection:
    ids, row, right = read_positives(path)
    listed = queries.of(ids)
    if (listed < 0).any():
        what = f"{int((listed < 0).sum()):,} of {len(listed):,} queries are no {queries.kind} of the gallery"
        given = f"{queries.kind} {ids[np.argmax(listed < 0)]}"
        raise DataError(what, where=path, given=given, hint="are these the positives of another gallery?")
    query_positions = np.arange(len(queries.ids), dtype=np.int64) if every else np.sort(listed)
    rows = np.searchsorted(query_positions, listed)[row]
    names = [str(number) for number in queries.ids[query_positions].tolist()]
    return search(query_positions, (rows, items.of(right)), names=names, where=path)


def captions_of(data: Path | None) -> list[Path]:
    """The captions files in a folder: that of val2014 alone where it is there, else all there are."""
    if data is None:
        return []
    val = place(data, CAPTIONS)
    if val is not None:
        return [val]
    return [file for file in captions_files(data) if file.name.startswith("captions_")]


def _listed(ids: Path, owners: Path) -> Captioned:
    """The test half from its list of caption ids and the file that says whose they are."""
    captions = read_npy(ids)
    if captions.ndim != 1 or captions.dtype.kind not in "iu" or not len(captions):
        given = f"{captions.dtype} {captions.shape}"
        raise DataError("not a list of ids", where=ids, given=given, allowed="whole numbers, shape (n,)")
    captions = captions.astype(np.int64)
    IdPositions(captions, "caption", ids)
    positives, row, image = read_positives(owners)
    rows = IdPositions(positives, "caption", owners).of(captions)
    counts = np.bincount(row, minlength=len(positives))
    if (rows < 0).any() or (counts != 1).any():
        wrong = captions[np.argmax(rows < 0)] if (rows < 0).any() else positives[np.argmax(counts != 1)]
        raise DataError("a caption does not have one image", where=owners, given=f"caption {wrong}")
    of_caption = image[rows]
    # Images in order of first use; COCO 1K needs the five captions of each to stand together.
    source = shown_path(ids)
    blocks = of_caption.reshape(-1, _TEXTS) if len(of_caption) % _TEXTS == 0 else of_caption[:, None]
    images = blocks[:, 0]
    if blocks.shape[1] != _TEXTS or (blocks != images[:, None]).any() or len(np.unique(images)) < len(images):
        what = f"captions do not come {_TEXTS} to an image"
        raise DataError(what, where=source, hint="is this the list of another set?")
    of_images = np.repeat(np.arange(len(images), dtype=np.int64), _TEXTS)
    return Captioned.of_coco(images, captions, of_images, (None,) * len(captions), source)


def _with_texts(test: Captioned, written: Captioned) -> Captioned:
    rows = IdPositions(written.captions, "caption", written.source).of(test.captions)
    if missing := int((rows < 0).sum()):
        what = f"{missing:,} of the {len(rows):,} captions of COCO's test half are not in this file"
        given = f"no caption {test.captions[np.argmax(rows < 0)]}"
        hint = f"they are in {CAPTIONS}; other captions files read as benchmark 'coco-captions'"
        raise DataError(what, where=written.source, given=given, hint=hint)
    names = (written.files[i] for i in written.owners[rows][::_TEXTS].tolist())
    return replace(
        test,
        texts=tuple(written.texts[i] for i in rows.tolist()),
        files=tuple(tuple(dict.fromkeys((*a, *b))) for a, b in zip(names, test.files, strict=True)),
        source=f"{test.source}, {written.source}",
    )


def _pairs(search: RetrievalDirection) -> set[tuple[int, int]]:
    """The positions of each query and of what is right for it."""
    assert isinstance(search.positives, Qrels)
    queries = search.queries[search.positives.queries].tolist()
    return {*zip(queries, search.positives.items.tolist(), strict=True)}


def read_eccv(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """1,261 images and 1,332 captions as queries, through all items of COCO 5K.

    The two directions were verified apart. Positives outside the gallery count in R and are never found.
    """
    test = read_test(data)
    i2t, t2i = (find(data, f"eccv_{way}.json") for way in WAYS)
    searches = searches_of(test, i2t, t2i, every=False)
    return test.gallery(card, searches, data, images, positives=f"{shown_path(i2t)}, {t2i.name}")


def read_5k(card: Card, data: Path | None, images: Path | None, *, folds: bool = False) -> Benchmark:
    """COCO 5K: every image of Karpathy's test half against 25,000 captions, and back; right is the own one.

    With `folds` COCO 1K: five parts of a thousand images; a query sees its own part only.
    """
    test = read_test(data)
    in_parts = parts(test) if folds else None
    return test.gallery(card, own_pairs(test.owners, len(test.images)), data, images, parts=in_parts)


read_1k = partial(read_5k, folds=True)


def read_files(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """Every image and caption of a captions file, or of all `captions_*.json` in a folder's `annotations`."""
    if data is None:
        raise no_data(card)
    files = captions_files(data)
    if not files:
        what = "no captions file in this folder"
        raise DataError(what, where=data, allowed="captions_*.json, here or in 'annotations'")
    # Captions by image.
    coco = read_captions(files)
    coco = coco.take(np.arange(len(coco.images)), np.argsort(coco.owners, kind="stable"))
    card = card.model_copy(update={"title": f"{card.title} ({data.stem})"})
    return coco.gallery(card, own_pairs(coco.owners, len(coco.images)), data, images)


def read_pmrp(
    card: Card,
    data: Path | None,
    images: Path | None,
    *,
    thresholds: tuple[int, ...] = (0,),
    cap: int | None = 50,
    bare: bool = True,
    folds: bool = False,
) -> Benchmark:
    """The gallery of COCO's test half, judged by its instances.

    Right are images whose codes differ in at most that many places, for each of `thresholds`; at most `cap`
    places are looked at. An image without any object is no query, nor are its captions; where `bare` ones
    stay in the gallery, they match nothing. With `folds` the gallery is in parts of a thousand images.
    """
    if data is None:
        raise no_data(card)
    coco = read_test(data)
    folder = annotation_folder(data.parent if data.is_file() else data)
    own_half = folder / "instances_val2014.json"
    files = [own_half] if own_half.is_file() else sorted(folder.glob("instances_*.json"))
    if not files:
        what, allowed = "no instances here, which say what objects an image shows", "instances_*.json"
        raise DataError(what, where=folder, allowed=allowed, hint="they come with COCO's annotations")
    codes = read_codes(files, coco.images)
    names = ", ".join(file.name for file in files)
    coco = replace(coco, source=f"COCO's test half: {coco.source}, {names}")
    of_items = parts(coco) if folds else None
    shown = codes.sum(axis=1) > 0
    if not shown.any():
        raise DataError("no image has an object", where=coco.source)
    if not bare:
        chosen, described = np.flatnonzero(shown), np.flatnonzero(shown[coco.owners])
        coco, codes, shown = coco.take(chosen, described), codes[chosen], shown[chosen]
        of_items = of_items and (of_items[0][chosen], of_items[1][described])
    # Images without an object are no queries, so that their empty codes match nothing.
    image_queries, caption_queries = np.flatnonzero(shown), np.flatnonzero(shown[coco.owners])
    of_captions = codes[coco.owners]
    searches = (
        RetrievalDirection(image_queries, Plausible(codes[image_queries], of_captions, thresholds, cap)),
        RetrievalDirection(caption_queries, Plausible(of_captions[caption_queries], codes, thresholds, cap)),
    )
    return coco.gallery(card, searches, data, images, parts=of_items)


#: PCME's evaluation: the mean over three thresholds, R as it is, images without an object left out.
read_pmrp_original = partial(read_pmrp, thresholds=(0, 1, 2), cap=None, bare=False)
read_pmrp_original_1k = partial(read_pmrp_original, folds=True)

#: Pairs rated at least so high are right ([CxC] section 4.2; ECCV Caption section 5.1).
RIGHT = 3.0


def read_cxc(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """CrissCrossed Captions over COCO's test half: pairs that people rated 3 to 5 are right.

    They are read from the two files of positives by id, else from sits_test.csv. Where sits_val.csv is all
    there is, the gallery is of the captions and images that it names.
    """
    other = place(data, OTHER_TABLE)
    names = (TABLE, IDS, KARPATHY, *(f"cxc_{way}.json" for way in WAYS))
    if other is not None and not captions_of(data) and not any(place(data, name) for name in names):
        # The captions and images that the table names, first those that belong together.
        rows = read_table(other)
        captions, pictures, _ = ratings(rows)
        original = np.array(labels(rows, "sampling_method")) == "c2i_original"
        caption_ids, image_ids = (
            first_use(np.concatenate([ids[original], ids[~original]])) for ids in (captions, pictures)
        )
        from_ids = IdPositions(caption_ids, "caption", other).of(captions[original])
        if len(np.unique(from_ids)) < len(from_ids):
            raise DataError("a caption has two rows 'c2i_original'", where=other)
        owners = np.full(len(caption_ids), -1, dtype=np.int64)
        owners[from_ids] = IdPositions(image_ids, "image", other).of(pictures[original])
        named = Captioned.of_coco(image_ids, caption_ids, owners, (None,) * len(caption_ids), other)
        facts: dict[str, object] = {"title": f"{card.title} ({other.name})", "size": None, "counts": {}}
        return named.gallery(card.model_copy(update=facts), _rated(named, other), data, images)
    test, table = read_test(data), place(data, TABLE)
    try:
        files = [find(data, f"cxc_{way}.json") for way in WAYS]
    except MissingExtraError:
        if table is None:
            raise
        return test.gallery(card, _rated(test, table), data, images, positives=str(table))
    searches = searches_of(test, files[0], files[1], every=True)
    if _pairs(searches[0]) != {(image, caption) for caption, image in _pairs(searches[1])}:
        raise DataError("the two directions do not agree", where=files[1], given=f"not {files[0].name}")
    return test.gallery(card, searches, data, images, positives=f"{shown_path(files[0])}, {files[1].name}")


def ratings(table: DataTable) -> tuple[Ids, Ids, NDArray[np.float64]]:
    """Caption id, image id and score of every row."""
    scores = floats(table, "agg_score")
    outside = (scores < 0) | (scores > 5)
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
    caption, image = caption[scores >= RIGHT], image[scores >= RIGHT]
    i2t, t2i = (
        search(np.arange(len(ids)), pairs, names=[str(i) for i in ids.tolist()], where=where)
        for ids, pairs in ((test.images, (image, caption)), (test.captions, (caption, image)))
    )
    return i2t, t2i


def read_ratings(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """Every rated pair of a table: sits_test.csv in the folder, else sits_val.csv, or the table named.

    Questions are called "CAPTION-IMAGE" by their ids; grouping `sampling` tells a caption's own image
    (c2i_original) from one that looks alike (c2i_intrasim).
    """
    if data is None:
        raise no_data(card)
    path = data if data.is_file() else place(data, TABLE) or place(data, OTHER_TABLE)
    if path is None:
        raise DataError("no ratings here", where=data, allowed=f"{TABLE} or {OTHER_TABLE}")
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
        rows, source = (
            IdPositions(written.captions, "caption", written.source).of(caption_ids),
            written.source,
        )
        texts = tuple(collapsed(written.texts[row] or "") if row >= 0 else "" for row in rows.tolist())
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
