"""ARO's four sets: VG-Relation, VG-Attribution (two captions of a cropped image), COCO- and Flickr-Order."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from counterfoil.data.benchmark import Benchmark, Card
from counterfoil.data.readers.questions import check_counts, choices
from counterfoil.data.readers.rows import Photos, cell_source, hub_rows, image_folder, open_rows
from counterfoil.data.records import Image
from counterfoil.data.tables import DataTable, integers, labels, texts
from counterfoil.errors import DataError

_IMAGES = ("image", "images", "image_path")
_BOX = ("bbox_x", "bbox_y", "bbox_w", "bbox_h")
_ORDER = ("correct_caption", "hard_text_1", "hard_text_2", "hard_text_3", "hard_text_4")


def read_relation(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """VG-Relation from the hub, its Parquet files, or `visual_genome_relation.json` and a folder of images.

    Choice of two, the true caption first; images are cropped to the box of the row. Groupings: `relation`
    (all) and `relation_kept` (without the card's `macro_without`): the published macro average runs over it.
    """
    table = _rows(card, data, "visual_genome_relation.json")
    relations = labels(table, "relation_name")
    return _pairs(card, data, images, table, "relation", relations)


def read_attribution(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """VG-Attribution from the hub, its Parquet files, or `visual_genome_attribution.json` and its images.

    As `read_relation`, grouped by the two attributes ("furry_white"): `attributes` (all) and
    `attributes_kept` (pairs with at least the card's `macro_least` items), which the published macro average
    runs over.
    """
    table = _rows(card, data, "visual_genome_attribution.json")
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
    table = _rows(card, data, "")
    ids = [str(row) for row in range(len(table))]
    found = choices(
        card,
        ids,
        [texts(table, column) for column in _ORDER],
        _images(table, data, images),
        {},
        source=table.source,
        path=data,
    )
    return check_counts(found)


def _rows(card: Card, data: Path | None, name: str) -> DataTable:
    if data is None:
        return hub_rows(card, _IMAGES)
    return open_rows(data, _IMAGES, split=card.split, names=(name,) if name else ())


def _pairs(
    card: Card, data: Path | None, images: Path | None, table: DataTable, grouping: str, names: Sequence[str]
) -> Benchmark:
    count = Counter(names)
    kept = tuple(
        "" if name in card.macro_without or count[name] < card.macro_least else name for name in names
    )
    found = choices(
        card,
        [str(row) for row in range(len(table))],
        [texts(table, "true_caption"), texts(table, "false_caption")],
        _images(table, data, images),
        {grouping: tuple(names), f"{grouping}_kept": kept},
        source=table.source,
        path=data,
    )
    return check_counts(found)


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
