"""Winoground, BiVLC, SugarCrepe and SugarCrepe++: captions, and images, with minimally different negatives.

Released tables of scores or outcomes carry their questions along, and `from_table` reads those.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from jaxtyping import Int
from numpy import ndarray

from counterfoil.data.benchmark import Benchmark, Card
from counterfoil.data.readers.questions import check_counts, choices, quads
from counterfoil.data.readers.rows import Photos, cell_source, hub_rows, image_folder, not_on_hub, open_rows
from counterfoil.data.records import Image
from counterfoil.data.tables import DataTable, integers, labels, names, read_table, stack, texts
from counterfoil.errors import DataError

_SIDES = ("image_0", "image_1")
_CAPTIONS = ("caption_0", "caption_1")
_FILES = ("examples.jsonl", "tags.csv")
_COLLAPSED = ("Object", "Relation", "Both")
#: Tags of the pictures. The paper reports the first three; the fourth is in the data.
_VISUAL = ("Symbolic", "Pragmatics", "Series", "Morpheme-Level")


def read_winoground(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """Winoground from the hub, its Parquet files, `examples.jsonl`, or `tags.csv` alone.

    Without Parquet, images are `ex_{id}_img_{k}.png` in `images`, or in the folder `images` beside the table;
    those that are not there are left out, and with `tags.csv` captions are left out too: such a benchmark is
    measured from given scores. Question "17" has captions "17_c0", "17_c1" and images "17_i0", "17_i1".

    Groupings: `collapsed` (Object, Relation, Both), `preds` ("1 Main Pred", "2 Main Preds"), `visual` (items
    whose visual tag is exactly one tag: what Table 5 of the paper reports), `visual_any_symbolic` and so on
    (items whose visual tags contain it: what Table 1 counts), `tag` (the 70 fine ones); those whose columns
    are not in the table are left out.
    Raises `DataError` for missing columns, cells that do not fit, and counts that are not the card's.
    """
    table = _rows(card, data)
    ids = names(table, "id")
    if _SIDES[0] in table and not isinstance(table[_SIDES[0]][0], str):
        sides = [
            [Image(f"{name}_i{k}", cell_source(table, column, row, None)) for row, name in enumerate(ids)]
            for k, column in enumerate(_SIDES)
        ]
    else:
        sides = _from_folder(ids, image_folder(data, images))
    missing: Sequence[str | None] = (None,) * len(table)
    has_captions = _CAPTIONS[0] in table
    return check_counts(
        quads(
            _expected(card, table),
            ids,
            (texts(table, _CAPTIONS[0]), texts(table, _CAPTIONS[1])) if has_captions else (missing, missing),
            (sides[0], sides[1]),
            _groupings(table),
            source=table.source,
            path=data,
        )
    )


def caption_words(data: Path) -> Int[ndarray, "n 2"]:
    """Length in words (split at blanks) of both captions of every item, in the order of `read_winoground`.

    Counted from the captions where they are at hand, else taken from the columns `caption_0_words` and
    `caption_1_words` of `tags.csv`. `data` is what `read_winoground` takes.
    """
    table = open_rows(data, _SIDES, split="test", names=_FILES)
    if _CAPTIONS[0] in table:
        return np.asarray(
            [
                [len(text.split()) for text in pair]
                for pair in zip(*(texts(table, c) for c in _CAPTIONS), strict=True)
            ],
            dtype=np.int64,
        )
    return np.stack([integers(table, f"{column}_words") for column in _CAPTIONS], axis=1)


def winoground_labelled(card: Card, ids: Sequence[str], *, source: str) -> Benchmark:
    """The items that a table of scores names, without captions, images or tags."""
    missing: Sequence[str | None] = (None,) * len(ids)
    sides = _from_folder(ids, None)
    found = quads(card, ids, (missing, missing), (sides[0], sides[1]), {}, source=source)
    if card.size is not None and len(found) != card.size:
        raise DataError(
            f"not the number of questions {card.title} has",
            where=source,
            given=len(found),
            allowed=f"{card.size}",
        )
    return found


def _rows(card: Card, data: Path | None) -> DataTable:
    if data is None:
        return hub_rows(card, _SIDES)
    return open_rows(data, _SIDES, split=card.split, names=_FILES)


def _from_folder(ids: Sequence[str], folder: Path | None) -> list[list[Image]]:
    files = {(name, k): f"ex_{name}_img_{k}.png" for name in ids for k in (0, 1)}
    sources = Photos(folder).sources(files.values())
    return [[Image(f"{name}_i{k}", sources[files[name, k]]) for name in ids] for k in (0, 1)]


def _groupings(table: DataTable) -> dict[str, tuple[str, ...]]:
    """The groupings whose columns the table has: rows in the layout of Winoground need not be tagged."""
    found: dict[str, tuple[str, ...]] = {}
    if "collapsed_tag" in table:
        found["collapsed"] = labels(table, "collapsed_tag", _COLLAPSED)
    if "num_main_preds" in table:
        preds = integers(table, "num_main_preds")
        found["preds"] = tuple(f"{n} Main Pred{'s' if n > 1 else ''}" for n in preds)
    if "secondary_tag" in table:
        tags = labels(table, "secondary_tag")
        found["visual"] = tuple(tag if tag in _VISUAL else "" for tag in tags)
        for visual in _VISUAL:
            name = f"visual_any_{visual.lower().replace('-', '_')}"
            found[name] = tuple(f"any {visual}" if visual in tag.split(", ") else "" for tag in tags)
    if "tag" in table:
        found["tag"] = labels(table, "tag")
    return found


def _expected(card: Card, table: DataTable) -> Card:
    """The card with the counts of those groups that the table can have."""
    of_column = {"collapsed_tag": _COLLAPSED, "num_main_preds": ("1 Main Pred", "2 Main Preds")}
    lacking = {group for column, groups in of_column.items() if column not in table for group in groups}
    if "secondary_tag" not in table:
        lacking |= {*_VISUAL, *(f"any {visual}" for visual in _VISUAL)}
    counts = {group: n for group, n in card.counts.items() if group not in lacking}
    return card.model_copy(update={"counts": counts})


_IMAGES = ("image", "negative_image")
_TYPES = ("add", "replace", "swap")
_SUBTYPES = ("obj", "att", "rel")


def read_bivlc(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """BiVLC from the hub, its Parquet files, a folder saved by `datasets`, or a table of paths.

    In a table (CSV, TSV, JSON, JSON Lines) the cells of `image` and `negative_image` are paths relative to
    `images`, or to the table's own folder; a released result table has no images and is read without.
    Question ids are row numbers from 0; question "17" has images "17_i0" (positive) and "17_i1" (negative).
    Raises `DataError` for missing columns, cells that do not fit, and counts that are not the card's.
    """
    table = hub_rows(card, _IMAGES) if data is None else open_rows(data, _IMAGES, split=card.split)
    folder = images or (None if data is None else data if data.is_dir() else data.parent)
    # Positive images are photographs of COCO under several questions each; the release does not say which.
    sides = tuple(
        tuple(
            Image(f"{row}_i{side}", cell_source(table, column, row, folder), photo=None if side == 0 else "")
            for row in range(len(table))
        )
        for side, column in enumerate(_IMAGES)
    )
    return check_counts(
        quads(
            card,
            [str(row) for row in range(len(table))],
            (texts(table, "caption"), texts(table, "negative_caption")),
            (sides[0], sides[1]),
            kinds(table),
            source=table.source,
            path=data,
        )
    )


def kinds(table: DataTable) -> dict[str, tuple[str, ...]]:
    """The groupings `type` ("add", ...) and `subset` ("add_obj", ...) of the columns type and subtype.

    Raises `DataError` for a label that BiVLC and SugarCrepe do not have, naming the row.
    """
    types, subtypes = labels(table, "type", _TYPES), labels(table, "subtype", _SUBTYPES)
    return {"type": types, "subset": tuple(f"{a}_{b}" for a, b in zip(types, subtypes, strict=True))}


def bivlc_captions(card: Card, table: DataTable) -> Benchmark:
    """BiVLC as a released table of outcomes carries it: captions, types and subtypes, no images."""
    ids = [str(row) for row in range(len(table))]
    return check_counts(
        quads(
            card,
            ids,
            (texts(table, "caption"), texts(table, "negative_caption")),
            ([Image(f"{name}_i0") for name in ids], [Image(f"{name}_i1") for name in ids]),
            kinds(table),
            source=table.source,
        )
    )


#: In the order of the result tables that BiVLC's authors released.
SUBSETS = ("add_obj", "add_att", "replace_obj", "replace_att", "replace_rel", "swap_obj", "swap_att")

#: The item that the repository dropped after the paper: keys of the file skip it.
DROPPED = ("swap_obj", 108)


def read_sugarcrepe(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """SugarCrepe from the folder of its seven JSON files, or one of them alone; or a released result table.

    Question "add_obj/17" is item "17" of add_obj.json; captions keep their blanks. Images are called by their
    file names, once each; those not in the folder `images` (all, where it is None) are left out.
    Groupings: `subset` and `type` ("add", "replace", "swap").
    Raises `DataError` naming a file that is missing or miscounted, or the item that does not fit.
    """
    if data is None:
        raise not_on_hub(card)
    if data.is_file() and data.suffix.lower() != ".json":
        return replace(sugarcrepe_captions(card, read_table(data), images), path=data)
    files = subset_files(data, SUBSETS)
    tables = [read_table(file) for file in files]
    for table in tables:
        if table.kind != "keyed":
            raise DataError("not an object keyed by item number", where=table.source)
    ids = [f"{file.stem}/{key}" for file, table in zip(files, tables, strict=True) for key in table["id"]]
    rows = stack(tables, source=str(data), column="subset", values=[file.stem for file in files])
    return of_rows(card, ids, rows, ("caption", "negative_caption"), images, part=data.is_file(), path=data)


def subset_files(data: Path, subsets: Sequence[str]) -> list[Path]:
    """The files of all subsets in the folder `data`, or the one file `data` is.

    Raises `DataError` naming the files that are missing, or the one that is none of the subsets.
    """
    if data.is_file():
        if data.stem not in subsets:
            raise DataError(
                "not the file of a subset", where=data, allowed=[f"{name}.json" for name in subsets]
            )
        return [data]
    if not data.is_dir():
        raise DataError("no such file or folder", where=data, hint="check the path given with --data")
    files = [data / f"{name}.json" for name in subsets]
    missing = [file.name for file in files if not file.is_file()]
    if missing:
        raise DataError(
            f"file{'s' if len(missing) > 1 else ''} missing: {', '.join(missing)}",
            where=data,
            hint="name one file to read that subset alone",
        )
    return files


def of_rows(
    card: Card,
    ids: Sequence[str],
    rows: DataTable,
    candidates: Sequence[str],
    images: Path | None,
    *,
    correct: int = 1,
    part: bool = False,
    path: Path | None = None,
) -> Benchmark:
    """Rows with columns subset, filename and one per candidate caption, as a benchmark."""
    subsets = tuple(str(name) for name in rows["subset"])
    names = texts(rows, "filename")
    sources = Photos(images).sources(names)
    return check_counts(
        choices(
            card,
            ids,
            [texts(rows, column) for column in candidates],
            [Image(name, sources[name]) for name in names],
            {"subset": subsets, "type": tuple(name.split("_")[0] for name in subsets)},
            correct=correct,
            source=rows.source,
            path=path,
        ),
        part=part,
    )


def sugarcrepe_captions(card: Card, table: DataTable, images: Path | None = None) -> Benchmark:
    """SugarCrepe as a released table of outcomes carries it: file names, captions, types and subtypes.

    The tables list every file's items in order, so an item's number is its place in its subset; where
    swap_obj has one item fewer, the number that the repository dropped is skipped.
    """
    subsets = kinds(table)["subset"]
    skipped = subsets.count(DROPPED[0]) == card.counts.get(DROPPED[0])
    ids: list[str] = []
    seen = dict.fromkeys(SUBSETS, 0)
    for subset in subsets:
        number = seen.setdefault(subset, 0)
        seen[subset] += 1
        if skipped and subset == DROPPED[0] and number >= DROPPED[1]:
            number += 1
        ids.append(f"{subset}/{number}")
    rows = DataTable({**table.columns, "subset": subsets}, table.source, table.kind, table.parts)
    return of_rows(card, ids, rows, ("caption", "negative_caption"), images)


PP_SUBSETS = ("replace_obj", "replace_att", "replace_rel", "swap_obj", "swap_att")

_CANDIDATES = ("caption", "caption2", "negative_caption")


def read_sugarcrepe_pp(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """SugarCrepe++ from the hub, from the folder of its five JSON files, or one of them alone.

    The image-text task: three candidates, the first two of them right. Question "swap_obj/17" is the item of
    id 17 in swap_obj.json. Images (COCO val2017) are called by their file names; those not in the folder
    `images` (all, where it is None) are left out. Groupings: `subset` and `type` ("replace", "swap").
    Raises `DataError` naming a file that is missing or miscounted, or the item that does not fit.
    """
    if data is None:
        subsets: list[str] = list(PP_SUBSETS)
        tables = [hub_rows(card, (), config=card.configs[name]) for name in subsets]
    else:
        files = subset_files(data, PP_SUBSETS)
        subsets = [file.stem for file in files]
        tables = [read_table(file) for file in files]
    ids = [f"{name}/{key}" for name, table in zip(subsets, tables, strict=True) for key in names(table, "id")]
    source = str(data) if data is not None else card.hub
    rows = stack(tables, source=source, column="subset", values=subsets)
    return of_rows(
        card, ids, rows, _CANDIDATES, images, correct=2, part=data is not None and data.is_file(), path=data
    )


_LABEL = re.compile(r"(?P<id>.+)_c[01]_i[01]")
_COLUMNS = {"caption", "negative_caption", "type", "subtype"}


def from_table(card: Card, table: DataTable) -> Benchmark | None:
    """The benchmark of `card` that the rows of `table` themselves ask, in their order; None if they do not.

    * BiVLC: a row per instance with caption, negative_caption, type and subtype. Images are not at hand.
    * SugarCrepe: the same with filename. Question ids are the reader's ("swap_obj/109").
    * Winoground: a row per pair with a column label ("17_c0_i1"). Captions are not at hand either.

    Raises `DataError` where the rows are of that kind but do not fit, or are not as many as the card says.
    """
    columns = set(table.columns)
    if card.name == "bivlc" and columns >= _COLUMNS:
        return bivlc_captions(card, table)
    if card.name == "sugarcrepe" and columns >= {"filename", *_COLUMNS}:
        return sugarcrepe_captions(card, table)
    if card.name == "winoground" and "label" in columns:
        found = [_LABEL.fullmatch(cell) if isinstance(cell, str) else None for cell in table["label"]]
        ids = tuple(dict.fromkeys(match["id"] for match in found if match))
        if all(found):
            return winoground_labelled(card, ids, source=table.source)
    return None
