"""BiVLC: rows of image, caption, negative caption, negative image, type and subtype."""

from pathlib import Path

from counterfoil.data.benchmark import Benchmark, Card
from counterfoil.data.readers.questions import check_counts, quads
from counterfoil.data.readers.rows import cell_source, hub_rows, open_rows
from counterfoil.data.records import Image
from counterfoil.data.tables import DataTable, labels, texts

_IMAGES = ("image", "negative_image")
_TYPES = ("add", "replace", "swap")
_SUBTYPES = ("obj", "att", "rel")


def read(card: Card, data: Path | None, images: Path | None) -> Benchmark:
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


def captions_only(card: Card, table: DataTable) -> Benchmark:
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
