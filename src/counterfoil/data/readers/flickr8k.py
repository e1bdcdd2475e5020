"""Flickr8k's judgements: captions of other images that experts or a crowd rated for an image.

    Flickr8k.token.txt           NAME.jpg#K, a tab, the caption: five of each image
    ExpertAnnotations.txt        image, id of the caption, three ratings from 1 to 4; tabs between
    CrowdFlowerAnnotations.txt   image, id of the caption, share of yes, how many yes, how many no

or what CLIPScore's and PAC-S's code make of them, flickr8k.json and crowdflower_flickr8k.json:
{image: {"human_judgement": [{"image_id", "caption", "rating"}], "image_path", "ground_truth": [texts]}}.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from counterfoil.data.benchmark import Benchmark, Card
from counterfoil.data.columns import shown
from counterfoil.data.readers.coco_files import json_file, photographs
from counterfoil.data.readers.hub import not_on_hub
from counterfoil.data.readers.human_ratings import (
    CaptionTable,
    RatingRows,
    Skipped,
    clean_caption,
    placed,
    rated,
    rating,
    unique_ids,
)
from counterfoil.data.readers.released_captions import read_tokens
from counterfoil.data.records import Image
from counterfoil.data.reference_policy import contained
from counterfoil.data.references import References
from counterfoil.errors import DataError
from counterfoil.inputs.files import read_text

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


def read_expert(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """Flickr8k-Expert: three ratings of every candidate, each a point of its own.

    A candidate that is among the references of its image is not asked about (158 of 5,822 rows). `data` is
    the folder with the text files, or flickr8k.json, in which that was done. Raises `DataError` naming file
    and row of what does not fit.
    """
    return _read(card, data, images, _EXPERT, raters=3, policy="drop-item")


def read_crowd(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """Flickr8k-CF: the share of people who found that a caption describes the image.

    A candidate that is among the references of its image is taken out of them, for all candidates of the
    image. `data` is as for the experts. Raises `DataError` naming file and row of what does not fit.
    """
    return _read(card, data, images, _CROWD, raters=1, policy="drop-reference")


def _read(
    card: Card,
    data: Path | None,
    images: Path | None,
    names: tuple[str, str],
    *,
    raters: int,
    policy: Literal["drop-item", "drop-reference"],
) -> Benchmark:
    if data is None:
        raise not_on_hub(card)
    path = _file(data, names)
    captions, left = CaptionTable(), Skipped()
    if path.suffix.lower() == ".json":
        rows, written = _of_json(path, captions, raters, left)
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
    left.out("rows whose candidate is a reference", int((~after.kept).sum()))
    notes = [f"{after.dropped:,} references equal to a candidate taken out"] if after.dropped else []
    kept = np.flatnonzero(after.kept)
    ids = unique_ids([rows[at].name for at in kept])
    sources = photographs([(name,) for name in files], FOLDERS, data, images)
    return rated(
        card,
        RatingRows(ids, candidates[kept], pictures[kept], ratings[kept], after.references.take(kept)),
        captions.items,
        [Image(name, source) for name, source in zip(files, sources, strict=True)],
        left=left,
        source=source,
        notes=notes,
        path=data,
    )


def _file(data: Path, names: Sequence[str]) -> Path:
    if data.is_file():
        return data
    found = next((data / name for name in names if (data / name).is_file()), None)
    if found is None:
        raise DataError(
            "no judgements of Flickr8k here", where=data, allowed=f"{TOKENS} and {names[0]}, or {names[1]}"
        )
    return found


def _of_text(
    path: Path, tokens: Path, captions: CaptionTable, raters: int, left: Skipped
) -> tuple[list[_Row], Mapping[str, Sequence[int]]]:
    entries = read_tokens(tokens)
    written = {image: [captions.add(text, name) for name, text in own] for image, own in entries.items()}
    known = {
        name: at for image, own in entries.items() for (name, _), at in zip(own, written[image], strict=True)
    }
    rows = []
    for number, line in enumerate(_lines(path), start=1):
        where = f"{path}, line {number}"
        cells = line.split("\t")
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
            _check_share(values, where)
        values = values[:raters]
        left.out("ratings that are NaN", sum(map(math.isnan, values)))
        rows.append(_Row(f"{image}/{name}", image, known[name], values))
    if not rows:
        raise DataError("no judgements", where=path)
    return rows, written


def _of_json(
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
        own, judged = (_list(entry, name, place) for name in ("ground_truth", "human_judgement"))
        image = Path(str(entry.get("image_path") or f"{key}.jpg")).name
        if image in written:
            raise DataError("an image occurs twice", where=place, given=image)
        texts = [
            clean_caption(text, f"{place}, reference {at + 1}", "reference") for at, text in enumerate(own)
        ]
        written[image] = captions.add_all(texts, image)
        # The released file has an entry per rating: those of one candidate follow each other.
        last = ""
        for at, each in enumerate(judged):
            where = f"{place}, judgement {at + 1}"
            if not isinstance(each, dict) or not {"caption", "rating"} <= set(each):
                raise DataError(
                    "not a judgement", where=where, given=shown(each), allowed="caption and rating"
                )
            text = clean_caption(each["caption"], where)
            number = rating(each["rating"], where, missing=True)
            left.out("ratings that are NaN", int(math.isnan(number)))
            if text == last and len(rows[-1].ratings) < raters:
                rows[-1] = _Row(rows[-1].name, image, rows[-1].caption, [*rows[-1].ratings, number])
            else:
                rows.append(_Row(f"{image}/{at}", image, captions.add(text, f"{image}/{at}"), [number]))
            last = text
    if not rows:
        raise DataError("no judgements", where=path)
    return rows, written


def _list(entry: Any, name: str, where: str) -> list[Any]:
    found = entry.get(name) if isinstance(entry, dict) else None
    if not isinstance(found, list):
        raise DataError(f"no list '{name}'", where=where, given=shown(entry))
    return found


def _check_share(values: Sequence[float], where: str) -> None:
    share, yes, no = values
    if not math.isnan(sum(values)) and (yes + no <= 0 or abs(share - yes / (yes + no)) > _SHARE):
        raise DataError(
            "the share of yes is not that of its counts",
            where=where,
            given=f"{share:g}, {yes:g} yes, {no:g} no",
        )


def _lines(path: Path) -> list[str]:
    lines = [line.rstrip("\r") for line in read_text(path).split("\n")]
    while lines and not lines[-1].strip():
        lines.pop()
    return lines
