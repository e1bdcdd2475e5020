"""FOIL: captions of COCO and copies of them with one word wrong.

foilv1.0_test_2017.json holds {"images": [{"id", "file_name"}], "annotations": [{"id", "image_id", "caption",
"foil", "target_word", "foil_word", "foil_id"}]}. Annotations of one `id` are a group: the original and its
foils. References come from captions_val2014.json (or dataset_coco.json) in the same folder.

Three papers measured on three sets of pairs: every original with each of its foils (Polos); one pair of each
image (CLIPScore); one pair of each image that is not in the part of COCO that PAC-S was trained on.
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from counterfoil.benchmarks.benchmark import Benchmark, Card
from counterfoil.benchmarks.forms import Ids, Preference
from counterfoil.benchmarks.readers.coco_files import json_file, photographs
from counterfoil.benchmarks.readers.human_ratings import (
    CaptionTable,
    Skipped,
    clean_caption,
    finished,
    placed,
    unique_ids,
)
from counterfoil.benchmarks.readers.released_captions import coco_captions, karpathy_part, of_image
from counterfoil.benchmarks.readers.released_files import released_file
from counterfoil.benchmarks.records import Image
from counterfoil.benchmarks.references import References, contained
from counterfoil.benchmarks.tables import shown
from counterfoil.errors import DataError

FILE = "foilv1.0_test_2017.json"
KARPATHY = "dataset_coco.json"

#: Which pair of an image is drawn where each has one; the papers did not release theirs.
SEED = 0


@dataclass(frozen=True)
class _Pair:
    """An original and one of its foils."""

    name: str
    image: str
    original: str
    foil: str
    word: str


def _read(
    card: Card,
    data: Path | None,
    images: Path | None,
    *,
    every: bool = False,
    unseen: bool = False,
    one: bool = False,
) -> Benchmark:
    """Pairs of an original and a foil, all other captions of the image as references.

    All pairs with `every`, else one of each image, drawn with a fixed seed; with `unseen` those whose image
    is in Karpathy's validation or test part, for which the folder has a dataset_coco.json; with `one` the
    first reference alone. The first candidate is the original, and the label. References equal to it are
    taken out. `data` is the folder, or the file with the captions of COCO beside it; without these there are
    no references. Questions are called "GROUP/FOIL" by their ids in the file; grouping `word` is the word
    that was replaced. Raises `DataError` naming the group that has no or several originals, or no foil, and
    what else does not fit.
    """
    path = released_file(card, data, (FILE,), hint="it is the test half of FOIL's release")
    files, pairs = _pairs(path)
    source = str(path)
    if not every:
        of_image: dict[str, list[_Pair]] = {}
        for pair in pairs:
            of_image.setdefault(pair.image, []).append(pair)
        rng = np.random.default_rng(SEED)
        pairs = [own[int(rng.integers(len(own)))] for own in of_image.values()]
    if unseen:
        split = path.parent / KARPATHY
        if not split.is_file():
            raise DataError(
                "file missing", where=split, hint="PAC-S's pairs are those of its validation and test part"
            )
        part = karpathy_part(split, ("val", "test"))
        pairs = [pair for pair in pairs if pair.image in part]
        source += f", {KARPATHY}"
        if not pairs:
            raise DataError("no image is in Karpathy's validation or test part", where=source)
    return _benchmark(card, pairs, files, path, data, images, source, one=one, drawn=not every)


read = partial(_read, every=True)
read_one_reference = partial(_read, every=True, one=True)
read_clipscore = partial(_read)
read_clipscore_one_reference = partial(_read, one=True)
read_pac_s = partial(_read, unseen=True)
read_pac_s_one_reference = partial(_read, unseen=True, one=True)


def _benchmark(
    card: Card,
    pairs: list[_Pair],
    files: dict[str, str],
    path: Path,
    data: Path | None,
    images: Path | None,
    source: str,
    *,
    one: bool,
    drawn: bool,
) -> Benchmark:
    left, captions = Skipped(), CaptionTable()
    notes = [f"one pair of each image, drawn with seed {SEED}"] if drawn else []
    candidates = np.array(
        [
            [
                captions.add(text, f"{pair.name}#{side}")
                for side, text in enumerate((pair.original, pair.foil))
            ]
            for pair in pairs
        ],
        dtype=np.int64,
    )
    written = coco_captions(path.parent)
    references = None
    if written is not None:
        listed = {
            image: captions.add_all(of_image(written, image), f"coco-{image}")
            for image in dict.fromkeys(pair.image for pair in pairs)
        }
        after = contained(
            captions.texts,
            candidates[:, 0],
            References.of([listed[pair.image] for pair in pairs]),
            "drop-reference",
            every=True,
        )
        references = after.references
        if one:
            references = References.of([references.row(row)[:1] for row in range(len(references))])
        with_references: Ids = np.flatnonzero(references.counts).astype(np.int64)
        left.out("pairs without a reference", len(pairs) - len(with_references))
        pairs, candidates = [pairs[at] for at in with_references.tolist()], candidates[with_references]
        references = references.take(with_references)
        source += f", {written[1].name}"
        notes.append(f"{after.dropped:,} references equal to the original taken out")
    elif one:
        raise DataError(
            "no captions of COCO here, which are the references",
            where=path.parent,
            allowed="captions_val2014.json or dataset_coco.json",
            hint="without references, read the row of the same name without '-1ref'",
        )
    else:
        notes.append("without references: COCO's captions are not in the folder")
    if not pairs:
        raise DataError("no pair is left", where=left.said(source))
    ids, pictures = placed([pair.image for pair in pairs])
    sources = photographs([(files[image],) for image in ids], ("val2014",), data, images)
    questions = Preference.between(
        unique_ids([pair.name for pair in pairs]),
        candidates,
        pictures,
        np.tile([1.0, 0.0], (len(pairs), 1)),
        np.zeros(len(pairs), dtype=np.int64),
        references=references,
        groupings={"word": tuple(pair.word for pair in pairs)},
    )
    return finished(
        card,
        captions.items,
        [Image(image, source) for image, source in zip(ids, sources, strict=True)],
        questions,
        source=left.said(source, *notes),
        path=data,
    )


def _pairs(path: Path) -> tuple[dict[str, str], list[_Pair]]:
    """The file names of the images by id, and all pairs in the order of the file."""
    value = json_file(path)
    if not isinstance(value, dict) or not all(
        isinstance(value.get(k), list) for k in ("images", "annotations")
    ):
        raise DataError("not FOIL's file", where=path, given=shown(value), allowed="images and annotations")
    files: dict[str, str] = {}
    for at, image in enumerate(value["images"], start=1):
        where = f"{path}, images, entry {at}"
        files[_whole(image, "id", where)] = clean_caption(
            _field(image, "file_name", where), where, "file name"
        )
    groups: dict[str, tuple[list[dict[str, str]], list[dict[str, str]]]] = {}
    for at, annotation in enumerate(value["annotations"], start=1):
        where = f"{path}, annotations, entry {at}"
        entry = {
            "image": _whole(annotation, "image_id", where),
            "caption": clean_caption(_field(annotation, "caption", where), where),
            "word": str(annotation.get("target_word") or ""),
            "name": str(annotation.get("foil_id", at)),
        }
        if entry["image"] not in files:
            raise DataError("a candidate without an image", where=where, given=f"image_id {entry['image']}")
        is_foil = _field(annotation, "foil", where)
        if not isinstance(is_foil, bool):
            raise DataError("'foil' is neither true nor false", where=where, given=shown(is_foil))
        groups.setdefault(_whole(annotation, "id", where), ([], []))[is_foil].append(entry)
    return files, [pair for name, own in groups.items() for pair in _of_group(name, own, path)]


def _of_group(name: str, own: tuple[list[dict[str, str]], list[dict[str, str]]], path: Path) -> list[_Pair]:
    originals, foils = own
    where = f"{path}, annotations of id {name}"
    if len(originals) != 1 or not foils:
        raise DataError(
            "not an original and its foils",
            where=where,
            given=f"{len(originals)} originals, {len(foils)} foils",
            allowed="one original, one foil or more",
        )
    original = originals[0]
    if any(foil["image"] != original["image"] for foil in foils):
        raise DataError("an original and its foil are of different images", where=where)
    return [
        _Pair(f"{name}/{foil['name']}", original["image"], original["caption"], foil["caption"], foil["word"])
        for foil in foils
    ]


def _field(entry: Any, key: str, where: str) -> Any:
    if not isinstance(entry, dict) or key not in entry:
        raise DataError(f"no '{key}'", where=where, given=shown(entry))
    return entry[key]


def _whole(entry: Any, key: str, where: str) -> str:
    value = _field(entry, key, where)
    if isinstance(value, bool) or not isinstance(value, int):
        raise DataError(f"'{key}' is no whole number", where=where, given=shown(value))
    return str(value)
