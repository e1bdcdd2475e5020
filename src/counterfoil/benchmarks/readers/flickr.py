"""Flickr30k's captions, and judgements of captions in Flickr8k.

Flickr30k is read from Karpathy's JSON, the hub's CSV of the same, or the token file of a Flickr release.
Flickr8k's judgements are of captions of other images that experts or a crowd rated for an image.

    Flickr8k.token.txt           NAME.jpg#K, a tab, the caption: five of each image
    ExpertAnnotations.txt        image, id of the caption, three ratings from 1 to 4; tabs between
    CrowdFlowerAnnotations.txt   image, id of the caption, share of yes, how many yes, how many no

or what CLIPScore's and PAC-S's code make of them, flickr8k.json and crowdflower_flickr8k.json:
{image: {"human_judgement": [{"image_id", "caption", "rating"}], "image_path", "ground_truth": [texts]}}.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np

from counterfoil.benchmarks.benchmark import Benchmark, Card
from counterfoil.benchmarks.readers.coco_files import json_file, named_photographs
from counterfoil.benchmarks.readers.human_ratings import (
    CaptionTable,
    RatingRows,
    Skipped,
    clean_caption,
    placed,
    rated,
    rating,
    unique_ids,
)
from counterfoil.benchmarks.readers.questions import gallery, own
from counterfoil.benchmarks.readers.released_captions import read_split, read_tokens
from counterfoil.benchmarks.readers.released_files import released_file
from counterfoil.benchmarks.readers.rows import not_on_hub
from counterfoil.benchmarks.records import Caption
from counterfoil.benchmarks.references import References, contained
from counterfoil.benchmarks.tables import labels, read_table, shown, texts
from counterfoil.errors import DataError
from counterfoil.inputs.files import parse_json, read_text

_KARPATHY = "dataset_flickr30k.json"
_HUB = "flickr_annotations_30k.csv"
_FOLDERS = ("flickr30k-images", "flickr30k_images", "Images")

#: (file name of an image, [(caption id, text), ...])
_Entry = tuple[str, list[tuple[str, str]]]


def read_30k(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """Images with the captions written for them; right is the own image.

    Of dataset_flickr30k.json and of flickr_annotations_30k.csv (columns raw, sentids, split, filename,
    img_id) the test split is read, captions called by their sentence ids; of a token file
    (`NAME.jpg#0<TAB>caption`) all there is, captions called by their keys. Images are called by their file
    names. `data` is one of these files or a folder with one. Raises `DataError` naming file and row of what
    does not fit.
    """
    if data is None:
        raise not_on_hub(card)
    path = _captions_file(data)
    if path.suffix == ".json":
        entries = read_split(
            path,
            lambda image: (
                str(image["filename"]),
                [(str(sentence["sentid"]), str(sentence["raw"])) for sentence in image["sentences"]],
            ),
        )
    elif path.suffix == ".csv":
        entries = _of_csv(path)
    else:
        entries = list(read_tokens(path, collapse=False).items())
        title = f"Captions of {path.name}"
        card = card.model_copy(update={"title": title, "size": None, "counts": {}})
    names = [name for name, _ in entries]
    _once("image", names, path)
    ids = [caption for _, captions in entries for caption, _ in captions]
    _once("caption", ids, path)
    owners = np.repeat(np.arange(len(entries)), [len(captions) for _, captions in entries]).astype(np.int64)
    return gallery(
        card,
        named_photographs(names, _FOLDERS, data, images),
        [Caption(caption, text) for _, captions in entries for caption, text in captions],
        owners,
        own(owners, len(entries)),
        source=str(path),
        path=data,
    )


def _captions_file(data: Path) -> Path:
    if data.is_file():
        return data
    known = [data / _KARPATHY, data / _HUB]
    files = [path for path in known if path.is_file()] or sorted(
        [*data.glob("*.token*"), *data.glob("*token.txt")]
    )
    if not files:
        raise DataError("nothing of Flickr30k here", where=data, allowed=f"{_KARPATHY}, {_HUB}, *.token")
    return files[0]


def _of_csv(path: Path) -> list[_Entry]:
    table = read_table(path)
    splits, names = labels(table, "split"), texts(table, "filename")
    raw, ids = texts(table, "raw"), texts(table, "sentids")
    entries: list[_Entry] = []
    for row, split in enumerate(splits):
        if split == "test":
            captions, keys = (
                parse_json(cell, where=table.where(row, column))
                for cell, column in ((raw[row], "raw"), (ids[row], "sentids"))
            )
            for cells, column in ((captions, "raw"), (keys, "sentids")):
                if not isinstance(cells, list):
                    raise DataError("not a list", where=table.where(row, column), given=shown(cells))
            if len(captions) != len(keys):
                raise DataError(
                    "not an id per caption",
                    where=table.where(row),
                    given=f"{len(keys)} ids, {len(captions)} captions",
                )
            entries.append(
                (names[row], [(str(key), str(text)) for key, text in zip(keys, captions, strict=True)])
            )
    if not entries:
        raise DataError("no image of the split 'test'", where=path)
    return entries


def _once(kind: str, ids: Iterable[str], path: Path) -> None:
    seen: set[str] = set()
    for name in ids:
        if name in seen:
            raise DataError(f"{kind} id occurs twice", where=path, given=name, hint="ids are unique")
        seen.add(name)


TOKENS = "Flickr8k.token.txt"

FOLDERS = ("Flicker8k_Dataset", "Flickr8k_Dataset", "Flickr8k_dataset")

_EXPERT = ("ExpertAnnotations.txt", "flickr8k.json")
_CROWD = ("CrowdFlowerAnnotations.txt", "crowdflower_flickr8k.json")

#: How far the share of yes may be from the counts, as the released code checks.
_SHARE = 1e-5


@dataclass(frozen=True)
class _Row:
    """A candidate: its question's id, its image's file, its caption's position, its ratings."""

    name: str
    image: str
    caption: int
    ratings: Sequence[float]


def _read(
    card: Card,
    data: Path | None,
    images: Path | None,
    *,
    names: tuple[str, str],
    raters: int,
    policy: Literal["drop-item", "drop-reference"],
) -> Benchmark:
    """Ratings of candidates, each rating a point; a candidate among its image's references is dealt with.

    `data` is the folder with the text files, or the JSON file that the released code made of them. Raises
    `DataError` naming file and row of what does not fit.
    """
    path = released_file(card, data, names, hint=f"{TOKENS} lies beside a text file")
    captions, left = CaptionTable(), Skipped()
    if path.suffix.lower() == ".json":
        rows, written = _rows_of_json(path, captions, raters, left)
        source = str(path)
    else:
        tokens = path.parent / TOKENS
        if not tokens.is_file():
            raise DataError("file missing", where=tokens, hint=f"it lies beside {path.name}: the captions")
        rows, written = _of_text(path, tokens, captions, raters, left)
        source = f"{path}, {TOKENS}"
    files, pictures = placed([row.image for row in rows])
    candidates = np.array([row.caption for row in rows], dtype=np.int64)
    ratings = np.full((len(rows), raters), np.nan)
    for at, row in enumerate(rows):
        ratings[at, : len(row.ratings)] = row.ratings
    after = contained(
        captions.texts,
        candidates,
        References.of([list(written[row.image]) for row in rows]),
        policy,
        shared=pictures,
    )
    left.out("rows whose candidate is a reference", int((~after.included).sum()))
    notes = [f"{after.dropped:,} references equal to a candidate taken out"] if after.dropped else []
    chosen_rows = np.flatnonzero(after.included)
    ids = unique_ids([rows[at].name for at in chosen_rows])
    return rated(
        card,
        RatingRows(
            ids,
            candidates[chosen_rows],
            pictures[chosen_rows],
            ratings[chosen_rows],
            after.references.take(chosen_rows),
        ),
        captions.items,
        named_photographs(files, FOLDERS, data, images),
        left=left,
        source=source,
        notes=notes,
        path=data,
    )


#: Three ratings of every candidate; one that is a reference is not asked about (158 of 5,822 rows).
read_expert = partial(_read, names=_EXPERT, raters=3, policy="drop-item")
#: The share of people who found that a caption describes the image; a candidate that is a reference is taken
#: out of the references of its image, for all candidates.
read_crowd = partial(_read, names=_CROWD, raters=1, policy="drop-reference")


def _of_text(
    path: Path, tokens: Path, captions: CaptionTable, raters: int, left: Skipped
) -> tuple[list[_Row], Mapping[str, Sequence[int]]]:
    entries = read_tokens(tokens)
    written = {image: [captions.add(text, name) for name, text in own] for image, own in entries.items()}
    known = {
        name: at for image, own in entries.items() for (name, _), at in zip(own, written[image], strict=True)
    }
    rows = []
    for number, line in enumerate(read_text(path).rstrip().split("\n"), start=1):
        where = f"{path}, line {number}"
        cells = line.rstrip("\r").split("\t")
        if len(cells) != 5:
            raise DataError(
                "not a judgement", where=where, given=f"{len(cells)} cells", allowed="5, tabs between them"
            )
        image, name = cells[0].strip(), cells[1].strip()
        if image not in written:
            raise DataError(
                "a candidate without an image", where=where, given=image, allowed=f"those of {TOKENS}"
            )
        if name not in known:
            raise DataError("unknown caption", where=where, given=name, allowed=f"those of {TOKENS}")
        values = [rating(cell.strip(), where, missing=True) for cell in cells[2:]]
        if raters == 1:
            share, yes, no = values
            if not math.isnan(sum(values)) and (yes + no <= 0 or abs(share - yes / (yes + no)) > _SHARE):
                raise DataError(
                    "the share of yes is not that of its counts",
                    where=where,
                    given=f"{share:g}, {yes:g} yes, {no:g} no",
                )
        values = values[:raters]
        left.out("ratings that are NaN", sum(map(math.isnan, values)))
        rows.append(_Row(f"{image}/{name}", image, known[name], values))
    if not rows:
        raise DataError("no judgements", where=path)
    return rows, written


def _rows_of_json(
    path: Path, captions: CaptionTable, raters: int, left: Skipped
) -> tuple[list[_Row], Mapping[str, Sequence[int]]]:
    value = json_file(path)
    if not isinstance(value, dict) or not value:
        raise DataError(
            "not judgements", where=path, given=shown(value), allowed="an object with an entry per image"
        )
    rows: list[_Row] = []
    written: dict[str, Sequence[int]] = {}
    for key, entry in value.items():
        place = f"{path}, image '{key}'"
        for name in ("ground_truth", "human_judgement"):
            if not isinstance(entry, dict) or not isinstance(entry.get(name), list):
                raise DataError(f"no list '{name}'", where=place, given=shown(entry))
        own, judged = entry["ground_truth"], entry["human_judgement"]
        image = Path(str(entry.get("image_path") or f"{key}.jpg")).name
        if image in written:
            raise DataError("an image occurs twice", where=place, given=image)
        texts = [
            clean_caption(text, f"{place}, reference {at + 1}", "reference") for at, text in enumerate(own)
        ]
        written[image] = captions.add_all(texts, image)
        # The released file has an entry per rating: those of one candidate follow each other.
        last = ""
        for at, judgement in enumerate(judged):
            where = f"{place}, judgement {at + 1}"
            if not isinstance(judgement, dict) or not {"caption", "rating"} <= set(judgement):
                raise DataError(
                    "not a judgement", where=where, given=shown(judgement), allowed="caption and rating"
                )
            text = clean_caption(judgement["caption"], where)
            number = rating(judgement["rating"], where, missing=True)
            left.out("ratings that are NaN", int(math.isnan(number)))
            if text == last and len(rows[-1].ratings) < raters:
                rows[-1] = _Row(rows[-1].name, image, rows[-1].caption, [*rows[-1].ratings, number])
            else:
                rows.append(_Row(f"{image}/{at}", image, captions.add(text, f"{image}/{at}"), [number]))
            last = text
    if not rows:
        raise DataError("no judgements", where=path)
    return rows, written
