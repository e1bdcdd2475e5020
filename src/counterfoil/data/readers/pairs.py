"""A user's own pairs: columns image, caption, negative_caption[, negative_image, type, subtype, id]."""

from collections.abc import Sequence
from pathlib import Path

from counterfoil.data.benchmark import Benchmark, Card
from counterfoil.data.readers.hub import not_on_hub
from counterfoil.data.readers.own import ALIASES, named
from counterfoil.data.readers.questions import choices, quads
from counterfoil.data.readers.rows import cell_source, open_rows
from counterfoil.data.records import Image
from counterfoil.data.tables import DataTable, labels, names, texts
from counterfoil.errors import DataError

_IMAGES = ("image", "negative_image")


def read(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """Quads where there is a column `negative_image`, else choices of two captions.

    `data` is a CSV, TSV, JSON, JSON Lines or Parquet file, or a folder with one, or with one per subset;
    image cells are paths relative to `images` (else to the file's folder), or bytes in Parquet. Columns may
    be in capitals, and called as other benchmarks call them (`filename` for `image`: see `own`). Question
    ids are the column `id` (behind the subset's name, where there are files of subsets), else row numbers
    from 0. Groupings: `type`, and `subset`, a column or file of that name, or "type_subtype".
    Raises `DataError` naming file, row and column of what does not fit.
    """
    if data is None:
        raise not_on_hub(card)
    aliases = [alias for name in _IMAGES for alias in ALIASES[name]]
    table = named(open_rows(data, aliases, subsets=True), (*_IMAGES, "caption", "negative_caption"))
    ids = _ids(table)
    folder = images or (data if data.is_dir() else data.parent)
    sides = [
        _images(table, column, ids, side, folder) for side, column in enumerate(_IMAGES) if column in table
    ]
    if not sides or _IMAGES[0] not in table:
        raise DataError("no column 'image'", where=table.source, given=", ".join(table.columns))
    form, measures = ("quad", ("group", "i2t", "t2i")) if len(sides) == 2 else ("choice", ("accuracy",))
    own = {"title": data.stem, "form": form, "size": len(table), "measures": measures}
    card = card.model_copy(update=own)
    captions = texts(table, "caption"), texts(table, "negative_caption")
    if len(sides) == 2:
        return quads(
            card, ids, captions, (sides[0], sides[1]), _groupings(table), source=table.source, path=data
        )
    return choices(card, ids, captions, sides[0], _groupings(table), source=table.source, path=data)


def _ids(table: DataTable) -> tuple[str, ...]:
    if "id" not in table:
        return tuple(str(row) for row in range(len(table)))
    if table.kind != "folder":
        return names(table, "id")
    inside = [f"{subset}/{name}" for subset, name in zip(table["subset"], labels(table, "id"), strict=True)]
    return names(DataTable({**table.columns, "id": inside}, table.source, table.kind, table.parts), "id")


def _images(table: DataTable, column: str, ids: Sequence[str], side: int, folder: Path) -> list[Image]:
    """Files are called by the path in the cell, so that rows of one image share it."""
    return [
        Image(
            cell if isinstance(cell, str) else f"{ids[row]}_i{side}",
            cell_source(table, column, row, folder),
            photo="" if isinstance(cell, str) else None,
        )
        for row, cell in enumerate(table[column])
    ]


def _groupings(table: DataTable) -> dict[str, tuple[str, ...]]:
    found = {}
    if "type" in table:
        found["type"] = labels(table, "type")
        if "subtype" in table:
            pairs = zip(found["type"], labels(table, "subtype"), strict=True)
            found["subset"] = tuple("_".join(part for part in pair if part) for pair in pairs)
    if "subset" in table:
        found["subset"] = labels(table, "subset")
    return found
