"""CREPE's productivity questions: a region of a Visual Genome image, its caption and five hard negatives."""

import ast
import re
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

from counterfoil.data.benchmark import Benchmark, Card
from counterfoil.data.readers.aro import boxes
from counterfoil.data.readers.questions import check_counts, choices
from counterfoil.data.readers.released_files import located
from counterfoil.data.readers.rows import not_on_hub
from counterfoil.data.records import Image, Source
from counterfoil.data.tables import DataTable, integers, read_table, shown, stack, texts
from counterfoil.errors import DataError

_NAME = re.compile(r"prod_vg_hard_negs_(atom|swap|negate)_complexity_(\d{1,2})\.csv")
_BOX = ("x", "y", "width", "height")
_COLUMNS = ("image_id", "caption", *_BOX, "hard_negs")
#: Visual Genome's images are in two folders, and the questions do not say which.
_FOLDERS = ("VG_100K", "VG_100K_2")


def read(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """CREPE's productivity from a folder with `prod_vg_hard_negs_TYPE_complexity_N.csv`, or one such file.

    The caption comes first, the hard negatives of the row after it; all rows must have equally many. Images
    are cropped to the box of the row, and found as `IMAGE_ID.jpg` in `images` (or beside the data), or in
    its VG_100K and VG_100K_2. Question "atom_4/17" is row 17, from 0, of that type and complexity.
    Groupings: `subset` (type and complexity), `type` (atom, swap, negate) and `complexity`. Raises
    `DataError` for rows that do not fit, naming them.
    """
    if data is None:
        raise not_on_hub(card)
    files = _files(card, data)
    tables = [_columns(read_table(file)) for file, _, _ in files]
    subsets = [f"{kind}_{complexity}" for _, kind, complexity in files]
    ids = [f"{name}/{row}" for name, each in zip(subsets, tables, strict=True) for row in range(len(each))]
    rows = stack(tables, source=str(data), column="subset", values=subsets)
    negatives = [_listed(rows, row) for row in range(len(rows))]
    for row, each in enumerate(negatives):
        if len(each) != len(negatives[0]):
            raise DataError(
                "questions of different numbers of negatives",
                where=rows.where(row, "hard_negs"),
                given=f"{len(each)}, and {len(negatives[0])} in the first row",
            )
    of_row = [str(name) for name in rows["subset"]]
    found = choices(
        card,
        ids,
        [texts(rows, "caption"), *zip(*negatives, strict=True)],
        _images(rows, data, images),
        {
            "subset": tuple(of_row),
            "type": tuple(name.split("_")[0] for name in of_row),
            "complexity": tuple(f"complexity {name.split('_')[1]}" for name in of_row),
        },
        source=rows.source,
        path=data,
    )
    return check_counts(found)


def _files(card: Card, data: Path) -> list[tuple[Path, str, int]]:
    """The files with their types and complexities, in order of these."""
    paths = [data] if data.is_file() else sorted(data.rglob("prod_vg_hard_negs_*.csv"))
    named = [(path, match) for path in paths if (match := _NAME.fullmatch(path.name))]
    if not named:
        raise DataError(
            f"no file of {card.title} here",
            where=data,
            allowed="prod_vg_hard_negs_TYPE_complexity_N.csv, with type atom, swap or negate",
        )
    return sorted(
        ((path, match[1], int(match[2])) for path, match in named), key=lambda each: (each[1], each[2])
    )


def _columns(table: DataTable) -> DataTable:
    return DataTable({name: table[name] for name in _COLUMNS}, table.source, table.kind, table.parts)


def _listed(table: DataTable, row: int) -> list[str]:
    """The negatives of a row, a Python list as text; nothing in it is run."""
    cell = table["hard_negs"][row]
    try:
        with warnings.catch_warnings():
            # Of a backslash before a letter that means nothing.
            warnings.simplefilter("ignore")
            found = ast.literal_eval(cell)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        found = None
    if not isinstance(found, list) or not found or not all(isinstance(each, str) for each in found):
        raise DataError(
            "not a list of texts",
            where=table.where(row, "hard_negs"),
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
