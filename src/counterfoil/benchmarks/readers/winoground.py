"""Winoground: Parquet, `examples.jsonl` with an image folder, or the tags alone; the tags of Diwan et al."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from jaxtyping import Int
from numpy import ndarray

from counterfoil.benchmarks.benchmark import Benchmark, Card
from counterfoil.benchmarks.readers.questions import quads
from counterfoil.benchmarks.readers.rows import Photos, cell_source, image_folder, open_rows, released_rows
from counterfoil.benchmarks.records import Image
from counterfoil.benchmarks.tables import DataTable, integers, labels, names, shown, texts
from counterfoil.errors import DataError
from counterfoil.inputs.files import read_json

_SIDES = ("image_0", "image_1")
_CAPTIONS = ("caption_0", "caption_1")
_FILES = ("examples.jsonl", "tags.csv")
_COLLAPSED = ("Object", "Relation", "Both")
#: Tags of the pictures. The paper reports the first three; the fourth is in the data.
_VISUAL = ("Symbolic", "Pragmatics", "Series", "Morpheme-Level")
#: Second tags of all items; the paper calls "Non Minimal" "Non-Compositional".
SECOND_TAGS = "new_tag_assignments.json"
_SECOND = (
    *("Complex Reasoning", "Unusual Image", "Unusual Text"),
    *("Ambiguously Correct", "Visually Difficult", "Non Minimal"),
)
#: The group of items without a second tag, and the groupings of those with some.
_NO_TAG = "No Tag"
_SECOND_ANY = {tag: f"second_any_{tag.lower().replace(' ', '_')}" for tag in _SECOND}


def read(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """Winoground from the hub, its Parquet files, `examples.jsonl`, or `tags.csv` alone.

    Without Parquet, images are `ex_{id}_img_{k}.png` in `images`, or in the folder `images` beside the table;
    those that are not there are left out, and with `tags.csv` captions are left out too: such a benchmark is
    measured from given scores. Question "17" has captions "17_c0", "17_c1" and images "17_i0", "17_i1".

    Groupings: `collapsed` (Object, Relation, Both), `preds` ("1 Main Pred", "2 Main Preds"), `visual` (items
    whose visual tag is exactly one tag: what Table 5 of the paper reports), `visual_any_symbolic` and so on
    (items whose visual tags contain it: what Table 1 counts), `tag` (the 70 fine ones); those whose columns
    are not in the table are left out. Where `new_tag_assignments.json` (Diwan et al. 2022) lies in the folder
    of the data: `second_tags` ("No Tag", or the tag of items that have exactly one) and
    `second_any_complex_reasoning` and so on (items whose second tags contain it: what that paper counts).
    Raises `DataError` for missing columns, cells that do not fit, and counts that are not the card's.
    """
    table = released_rows(card, data, _SIDES, names=_FILES)
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
    second = _second_tags(ids, data)
    return quads(
        _expected(card, table, second),
        ids,
        (texts(table, _CAPTIONS[0]), texts(table, _CAPTIONS[1])) if has_captions else (missing, missing),
        (sides[0], sides[1]),
        {**_groupings(table), **second},
        source=table.source,
        path=data,
    )


def caption_words(data: Path) -> Int[ndarray, "n 2"]:
    """Length in words (split at blanks) of both captions of every item, in the order of `read`.

    Counted from the captions where they are at hand, else taken from the columns `caption_0_words` and
    `caption_1_words` of `tags.csv`. `data` is what `read` takes.
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


def labelled(card: Card, ids: Sequence[str], *, source: str) -> Benchmark:
    """The items that a table of scores names, without captions, images or tags."""
    missing: Sequence[str | None] = (None,) * len(ids)
    sides = _from_folder(ids, None)
    unchecked = card.model_copy(update={"counts": {}})
    benchmark = quads(unchecked, ids, (missing, missing), (sides[0], sides[1]), {}, source=source)
    return replace(benchmark, card=card)


def _from_folder(ids: Sequence[str], folder: Path | None) -> list[list[Image]]:
    files = {(name, k): f"ex_{name}_img_{k}.png" for name in ids for k in (0, 1)}
    sources = Photos(folder).sources(files.values())
    return [[Image(f"{name}_i{k}", sources[files[name, k]]) for name in ids] for k in (0, 1)]


def _groupings(table: DataTable) -> dict[str, tuple[str, ...]]:
    """The groupings whose columns the table has: rows in the layout of Winoground need not be tagged."""
    groupings: dict[str, tuple[str, ...]] = {}
    if "collapsed_tag" in table:
        groupings["collapsed"] = labels(table, "collapsed_tag", _COLLAPSED)
    if "num_main_preds" in table:
        preds = integers(table, "num_main_preds")
        groupings["preds"] = tuple(f"{n} Main Pred{'s' if n > 1 else ''}" for n in preds)
    if "secondary_tag" in table:
        tags = labels(table, "secondary_tag")
        groupings["visual"] = tuple(tag if tag in _VISUAL else "" for tag in tags)
        for visual in _VISUAL:
            name = f"visual_any_{visual.lower().replace('-', '_')}"
            groupings[name] = tuple(f"any {visual}" if visual in tag.split(", ") else "" for tag in tags)
    if "tag" in table:
        groupings["tag"] = labels(table, "tag")
    return groupings


def _second_tags(ids: Sequence[str], data: Path | None) -> dict[str, tuple[str, ...]]:
    """The groupings of `SECOND_TAGS`, where it lies in the folder of the data."""
    if data is None:
        return {}
    path = (data if data.is_dir() else data.parent) / SECOND_TAGS
    if not path.is_file():
        return {}
    given = read_json(path)
    if not isinstance(given, dict):
        raise DataError("not an object keyed by item id", where=path, given=shown(given))
    tags = []
    for name in ids:
        if name not in given:
            raise DataError("an item without an entry", where=path, given=name)
        tags_of_item = given[name]
        if not isinstance(tags_of_item, list) or any(tag not in _SECOND for tag in tags_of_item):
            raise DataError(
                "unknown tags", where=f"{path}, '{name}'", given=shown(tags_of_item), allowed=_SECOND
            )
        tags.append(tags_of_item)
    exact = tuple(
        _NO_TAG if not tags_of_item else tags_of_item[0] if len(tags_of_item) == 1 else ""
        for tags_of_item in tags
    )
    return {"second_tags": exact} | {
        name: tuple(f"any {tag}" if tag in tags_of_item else "" for tags_of_item in tags)
        for tag, name in _SECOND_ANY.items()
    }


def _expected(card: Card, table: DataTable, second: Mapping[str, object]) -> Card:
    """The card with the counts of those groups that the data can have."""
    of_column = {"collapsed_tag": _COLLAPSED, "num_main_preds": ("1 Main Pred", "2 Main Preds")}
    lacking = {group for column, groups in of_column.items() if column not in table for group in groups}
    if "secondary_tag" not in table:
        lacking |= {*_VISUAL, *(f"any {visual}" for visual in _VISUAL)}
    if not second:
        lacking |= {_NO_TAG, *(f"any {tag}" for tag in _SECOND)}
    counts = {group: n for group, n in card.counts.items() if group not in lacking}
    return card.model_copy(update={"counts": counts})
