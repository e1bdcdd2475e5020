"""CREPE's questions: a region of a Visual Genome image, its caption and hard negatives of it."""

import ast
import re
import warnings
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import Path

from counterfoil.data.benchmark import Benchmark, Card
from counterfoil.data.readers.aro import boxes
from counterfoil.data.readers.questions import check_counts, choices
from counterfoil.data.readers.released_files import located
from counterfoil.data.readers.rows import not_on_hub
from counterfoil.data.records import Image, Source
from counterfoil.data.tables import DataTable, first_double, integers, read_table, shown, stack, texts
from counterfoil.errors import DataError

_PRODUCTIVITY = re.compile(r"prod_vg_hard_negs_(atom|swap|negate)_complexity_(\d{1,2})\.csv")
_SYSTEMATICITY = r"syst_vg_hard_negs_((?:un)?seen_compounds)_in_{}\.csv"
_BOX = ("x", "y", "width", "height")
_COLUMNS = ("image_id", "caption", *_BOX)
#: What a hard negative of the systematicity questions changes: an atom of the caption, or compounds of atoms.
_TYPES = ("atom", "comp")
#: Visual Genome's images are in two folders, and the questions do not say which.
_FOLDERS = ("VG_100K", "VG_100K_2")


def read(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """CREPE's productivity from a folder with `prod_vg_hard_negs_TYPE_complexity_N.csv`, or one such file.

    The caption comes first, the hard negatives of the row after it. Images are cropped to the box of the row,
    and found as `IMAGE_ID.jpg` in `images` (or beside the data), or in its VG_100K and VG_100K_2. Question
    "atom_4/17" is row 17, from 0, of that type and complexity. Groupings: `subset` (type and complexity),
    `type` (atom, swap, negate) and `complexity`. Raises `DataError` for rows that do not fit, naming them.
    """
    if data is None:
        raise not_on_hub(card)
    allowed = "prod_vg_hard_negs_TYPE_complexity_N.csv, with type atom, swap or negate"
    files = _files(card, data, _PRODUCTIVITY, allowed)
    files.sort(key=lambda each: (each[1][1], int(each[1][2])))
    tables = [_questions(read_table(file), "hard_negs", least=1) for file, _ in files]
    named = [(f"{match[1]}_{match[2]}", match[1], f"complexity {match[2]}") for _, match in files]
    return _benchmark(card, tables, named, ("subset", "type", "complexity"), data, images)


def read_systematicity(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """CREPE's systematicity for one training set: `syst_vg_hard_negs_SPLIT_in_SET.csv` of both splits.

    The card's name ends in the training set (cc12m, yfcc, laion), since what a split calls seen is what that
    set holds; `data` is a folder with the files, or one of them. Each row is a question with its
    `valid_hard_negs_atom` behind the caption, and another one with its `valid_hard_negs_comp`: as many as
    there are, which differs from row to row. With an empty list there is no question. Question
    "seen_compounds_atom/17" is row 17, from 0, of that split, with negatives of that type. Groupings:
    `subset` (split and type), `compounds` (seen compounds, unseen compounds) and `type` (atom, comp). Images
    and errors as of `read`.
    """
    if data is None:
        raise not_on_hub(card)
    of = card.name.rpartition("-")[2]
    allowed = f"syst_vg_hard_negs_SPLIT_in_{of}.csv, with split seen_compounds or unseen_compounds"
    files = _files(card, data, re.compile(_SYSTEMATICITY.format(of)), allowed)
    tables, named = [], []
    for file, match in files:
        table = read_table(file)
        for kind in _TYPES:
            tables.append(_questions(table, f"valid_hard_negs_{kind}", least=0))
            named.append((f"{match[1]}_{kind}", match[1].replace("_", " "), kind))
    return _benchmark(card, tables, named, ("subset", "compounds", "type"), data, images)


def _benchmark(
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
    ids = [f"{name}/{row}" for name, each in zip(subsets, tables, strict=True) for row in range(len(each))]
    asked = [row for row, negatives in enumerate(rows["negatives"]) if negatives]
    if not asked:
        raise DataError("no caption has hard negatives", where=rows.source)
    captions, shown_images = texts(rows, "caption"), _images(rows, data, images)
    labels_of = dict(zip(subsets, named, strict=True))
    labels = [labels_of[rows["subset"][row]] for row in asked]
    found = choices(
        card,
        [ids[row] for row in asked],
        list(zip_longest(*((captions[row], *rows["negatives"][row]) for row in asked))),
        [shown_images[row] for row in asked],
        dict(zip(groupings, map(tuple, zip(*labels, strict=True)), strict=True)),
        source=rows.source,
        path=data,
    )
    return check_counts(found)


def _files(
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


def _questions(table: DataTable, column: str, *, least: int) -> DataTable:
    """What is asked of a table's regions with the hard negatives in a column, which become lists."""
    columns: dict[str, Sequence[object]] = {name: table[name] for name in _COLUMNS}
    columns["negatives"] = [_listed(table, row, column, least) for row in range(len(table))]
    return DataTable(columns, table.source, table.kind, table.parts)


def _listed(table: DataTable, row: int, column: str, least: int) -> list[str]:
    """The negatives of a row, a Python list of `least` or more as text; nothing in it is run."""
    cell = table[column][row]
    try:
        with warnings.catch_warnings():
            # Of a backslash before a letter that means nothing.
            warnings.simplefilter("ignore")
            found = ast.literal_eval(cell)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        found = None
    if not isinstance(found, list) or len(found) < least or not all(isinstance(each, str) for each in found):
        raise DataError(
            "not a list of texts",
            where=table.where(row, column),
            given=shown(cell),
            allowed="['a caption', ...]",
        )
    return found


def _images(rows: DataTable, data: Path, images: Path | None) -> list[Image]:
    names = [f"{number}.jpg" for number in integers(rows, "image_id").tolist()]
    sources = _sources(names, data, images)
    return [
        Image(f"{name}#{','.join(map(str, box))}", sources[name], box, name)
        for name, box in zip(names, boxes(rows, _BOX), strict=True)
    ]


def _sources(names: Sequence[str], data: Path, images: Path | None) -> Mapping[str, Source | None]:
    beside = images or (data if data.is_dir() else data.parent)
    folders = [beside / name for name in _FOLDERS if (beside / name).is_dir()]
    if not folders:
        return located(names, data, images)
    found: dict[str, Source | None] = dict.fromkeys(names)
    for folder in folders:
        found |= {name: source for name, source in located(names, folder, None).items() if source}
    return found
