"""Regions of photographs and their captions: ARO's four sets and CREPE's questions with hard negatives."""

import ast
import re
import warnings
from collections import Counter
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path

from counterfoil.benchmarks.benchmark import Benchmark, Card
from counterfoil.benchmarks.readers.questions import choices
from counterfoil.benchmarks.readers.released_files import located
from counterfoil.benchmarks.readers.rows import Photos, cell_source, image_folder, not_on_hub, released_rows
from counterfoil.benchmarks.records import Image, Source
from counterfoil.benchmarks.tables import (
    DataTable,
    first_double,
    integers,
    labels,
    read_table,
    shown,
    stack,
    texts,
)
from counterfoil.errors import DataError

_IMAGES = ("image", "images", "image_path")
_BOX = ("bbox_x", "bbox_y", "bbox_w", "bbox_h")
_ORDER = ("correct_caption", "hard_text_1", "hard_text_2", "hard_text_3", "hard_text_4")


def read_relation(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """VG-Relation from the hub, its Parquet files, or `visual_genome_relation.json` and a folder of images.

    Choice of two, the true caption first; images are cropped to the box of the row. Groupings: `relation`
    (all) and `relation_kept` (without the card's `macro_without`): the published macro average runs over it.
    """
    table = released_rows(card, data, _IMAGES, names=("visual_genome_relation.json",))
    relations = labels(table, "relation_name")
    return _pairs(card, data, images, table, "relation", relations)


def read_attribution(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """VG-Attribution from the hub, its Parquet files, or `visual_genome_attribution.json` and its images.

    As `read_relation`, grouped by the two attributes ("furry_white"): `attributes` (all) and
    `attributes_kept` (pairs with at least the card's `macro_least` items), which the published macro average
    runs over.
    """
    table = released_rows(card, data, _IMAGES, names=("visual_genome_attribution.json",))
    names = []
    for row, cell in enumerate(table["attributes"]):
        if not isinstance(cell, list | tuple) or len(cell) < 2:
            raise DataError("not two attributes", where=table.where(row, "attributes"), given=cell)
        names.append(f"{cell[0]}_{cell[1]}")
    return _pairs(card, data, images, table, "attributes", names)


def read_order(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """COCO-Order or Flickr-Order, one frozen draw of the shuffles, from the hub or a table of its columns.

    Columns `images` (or `image`), `correct_caption`, `hard_text_1` to `hard_text_4`: choice of five, the true
    caption first. A shuffle that equals it gets an equal score, a tie.
    """
    table = released_rows(card, data, _IMAGES)
    ids = [str(row) for row in range(len(table))]
    return choices(
        card,
        ids,
        [texts(table, column) for column in _ORDER],
        _images(table, data, images),
        {},
        source=table.source,
        path=data,
    )


def _pairs(
    card: Card, data: Path | None, images: Path | None, table: DataTable, grouping: str, names: Sequence[str]
) -> Benchmark:
    count = Counter(names)
    counted = tuple(
        "" if name in card.macro_without or count[name] < card.macro_least else name for name in names
    )
    return choices(
        card,
        [str(row) for row in range(len(table))],
        [texts(table, "true_caption"), texts(table, "false_caption")],
        _images(table, data, images),
        {grouping: tuple(names), f"{grouping}_kept": counted},
        source=table.source,
        path=data,
    )


def _images(table: DataTable, data: Path | None, images: Path | None) -> list[Image]:
    """An image per row. Files are called by name and box, so that rows of one photograph and box share it."""
    column = next((name for name in _IMAGES if name in table), None)
    if column is None:
        raise DataError(
            "no column of images", where=table.source, given=", ".join(table.columns), allowed=_IMAGES
        )
    if isinstance(table[column][0], str):
        names = texts(table, column)
        sources = Photos(image_folder(data, images)).sources(names)
        return [
            Image(name if box is None else f"{name}#{','.join(map(str, box))}", sources[name], box, name)
            for name, box in zip(names, _boxes(table), strict=True)
        ]
    return [
        Image(f"{row}_i0", cell_source(table, column, row, None), box, photo=None)
        for row, box in enumerate(_boxes(table))
    ]


def _boxes(table: DataTable) -> list[tuple[int, int, int, int] | None]:
    """(left, top, right, bottom) per row, of columns `bbox_x` to `bbox_h` or of cells `bbox` {x, y, w, h}."""
    if "bbox" in table:
        for row, cell in enumerate(table["bbox"]):
            if not isinstance(cell, dict):
                raise DataError(
                    "not a box", where=table.where(row, "bbox"), given=cell, allowed="{x, y, w, h}"
                )
        sides = {f"bbox_{side}": [cell.get(side) for cell in table["bbox"]] for side in "xywh"}
        table = DataTable(sides, table.source, table.kind, table.parts)
    if not all(column in table for column in _BOX):
        return [None] * len(table)
    return list(boxes(table, _BOX))


def boxes(table: DataTable, columns: Sequence[str]) -> list[tuple[int, int, int, int]]:
    """(left, top, right, bottom) per row, of columns of the left edge, the top, the width and the height.

    Raises `DataError` naming the row whose box is empty.
    """
    x, y, w, h = (integers(table, column) for column in columns)
    for row in range(len(table)):
        if w[row] < 1 or h[row] < 1:
            raise DataError("empty box", where=table.where(row), given=f"{w[row]} x {h[row]} pixels")
    return [
        (int(left), int(top), int(left + width), int(top + height))
        for left, top, width, height in zip(x, y, w, h, strict=True)
    ]


_PRODUCTIVITY = re.compile(r"prod_vg_hard_negs_(atom|swap|negate)_complexity_(\d{1,2})\.csv")
_SYSTEMATICITY = r"syst_vg_hard_negs_((?:un)?seen_compounds)_in_{}\.csv"
_CREPE_BOX = ("x", "y", "width", "height")
_CREPE_COLUMNS = ("image_id", "caption", *_CREPE_BOX)
#: What a hard negative of the systematicity questions changes: an atom of the caption, or compounds of atoms.
_NEGATIVES = ("atom", "comp")
#: Visual Genome's images are in two folders, and the questions do not say which.
_FOLDERS = ("VG_100K", "VG_100K_2")


def read_crepe(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """CREPE's productivity from a folder with `prod_vg_hard_negs_TYPE_complexity_N.csv`, or one such file.

    The caption comes first, the hard negatives of the row after it. Images are cropped to the box of the row,
    and found as `IMAGE_ID.jpg` in `images` (or beside the data), or in its VG_100K and VG_100K_2. Question
    "atom_4/17" is row 17, from 0, of that type and complexity. Groupings: `subset` (type and complexity),
    `type` (atom, swap, negate) and `complexity`. Raises `DataError` for rows that do not fit, naming them.
    """
    if data is None:
        raise not_on_hub(card)
    allowed = "prod_vg_hard_negs_TYPE_complexity_N.csv, with type atom, swap or negate"
    files = _crepe_files(card, data, _PRODUCTIVITY, allowed)
    files.sort(key=lambda file_and_match: (file_and_match[1][1], int(file_and_match[1][2])))
    tables = [_crepe_questions(read_table(file), "hard_negs", least=1) for file, _ in files]
    named = [(f"{match[1]}_{match[2]}", match[1], f"complexity {match[2]}") for _, match in files]
    return _crepe(card, tables, named, ("subset", "type", "complexity"), data, images)


def read_systematicity(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """CREPE's systematicity for one training set: `syst_vg_hard_negs_SPLIT_in_SET.csv` of both splits.

    The card's name ends in the training set (cc12m, yfcc, laion), since what a split calls seen is what that
    set holds; `data` is a folder with the files, or one of them. Each row is a question with its
    `valid_hard_negs_atom` behind the caption, and another one with its `valid_hard_negs_comp`: as many as
    there are, which differs from row to row. With an empty list there is no question. Question
    "seen_compounds_atom/17" is row 17, from 0, of that split, with negatives of that type. Groupings:
    `subset` (split and type), `compounds` (seen compounds, unseen compounds) and `type` (atom, comp). Images
    and errors as of `read_crepe`.
    """
    if data is None:
        raise not_on_hub(card)
    of = card.name.rpartition("-")[2]
    allowed = f"syst_vg_hard_negs_SPLIT_in_{of}.csv, with split seen_compounds or unseen_compounds"
    files = _crepe_files(card, data, re.compile(_SYSTEMATICITY.format(of)), allowed)
    tables, named = [], []
    for file, match in files:
        table = read_table(file)
        for kind in _NEGATIVES:
            tables.append(_crepe_questions(table, f"valid_hard_negs_{kind}", least=0))
            named.append((f"{match[1]}_{kind}", match[1].replace("_", " "), kind))
    return _crepe(card, tables, named, ("subset", "compounds", "type"), data, images)


def _crepe(
    card: Card,
    tables: Sequence[DataTable],
    named: Sequence[tuple[str, ...]],
    groupings: Sequence[str],
    data: Path,
    images: Path | None,
) -> Benchmark:
    """The questions of tables, of each of which the labels by grouping are given, the first its subset."""
    subsets = [labels[0] for labels in named]
    rows = stack(tables, source=str(data), column="subset", values=subsets)
    ids = [f"{name}/{row}" for name, table in zip(subsets, tables, strict=True) for row in range(len(table))]
    rows_with_negatives = [row for row, negatives in enumerate(rows["negatives"]) if negatives]
    if not rows_with_negatives:
        raise DataError("no caption has hard negatives", where=rows.source)
    captions, shown_images = texts(rows, "caption"), _crepe_images(rows, data, images)
    labels_of = dict(zip(subsets, named, strict=True))
    labels = [labels_of[rows["subset"][row]] for row in rows_with_negatives]
    return choices(
        card,
        [ids[row] for row in rows_with_negatives],
        list(zip_longest(*((captions[row], *rows["negatives"][row]) for row in rows_with_negatives))),
        [shown_images[row] for row in rows_with_negatives],
        dict(zip(groupings, map(tuple, zip(*labels, strict=True)), strict=True)),
        source=rows.source,
        path=data,
    )


def _crepe_files(
    card: Card, data: Path, pattern: re.Pattern[str], allowed: str
) -> list[tuple[Path, re.Match[str]]]:
    """The files whose names are of a pattern, with the match, in order of their names."""
    paths = [data] if data.is_file() else sorted(data.rglob("*.csv"), key=lambda path: path.name)
    named = [(path, match) for path in paths if (match := pattern.fullmatch(path.name))]
    if not named:
        raise DataError(f"no file of {card.title} here", where=data, allowed=allowed)
    double = first_double([path.name for path, _ in named])
    if double is not None:
        raise DataError("two files of one name", where=data, given=double)
    return named


def _crepe_questions(table: DataTable, column: str, *, least: int) -> DataTable:
    """What is asked of a table's regions with the hard negatives in a column, which become lists."""
    columns: dict[str, Sequence[object]] = {name: table[name] for name in _CREPE_COLUMNS}
    columns["negatives"] = [_listed(table, row, column, least) for row in range(len(table))]
    return DataTable(columns, table.source, table.kind, table.parts)


def _listed(table: DataTable, row: int, column: str, least: int) -> list[str]:
    """The negatives of a row, a Python list of `least` or more as text; nothing in it is run."""
    cell = table[column][row]
    try:
        with warnings.catch_warnings():
            # Of a backslash before a letter that means nothing.
            warnings.simplefilter("ignore")
            negatives = ast.literal_eval(cell)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        negatives = None
    if (
        not isinstance(negatives, list)
        or len(negatives) < least
        or not all(isinstance(text, str) for text in negatives)
    ):
        raise DataError(
            "not a list of texts",
            where=table.where(row, column),
            given=shown(cell),
            allowed="['a caption', ...]",
        )
    return negatives


def _crepe_images(rows: DataTable, data: Path, images: Path | None) -> list[Image]:
    names = [f"{number}.jpg" for number in integers(rows, "image_id").tolist()]
    beside = images or (data if data.is_dir() else data.parent)
    folders = [beside / name for name in _FOLDERS if (beside / name).is_dir()]
    sources: dict[str, Source | None] = dict.fromkeys(names)
    if not folders:
        sources |= located(names, data, images)
    for folder in folders:
        sources |= {name: source for name, source in located(names, folder, None).items() if source}
    return [
        Image(f"{name}#{','.join(map(str, box))}", sources[name], box, name)
        for name, box in zip(names, boxes(rows, _CREPE_BOX), strict=True)
    ]
