"""A user's own gallery: judged pairs.

Columns image, caption[, image_id, caption_id, relevance, written_for].
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from counterfoil.data.benchmark import Benchmark, Card
from counterfoil.data.forms import Ids
from counterfoil.data.readers.own import own_table, title_of
from counterfoil.data.readers.questions import gallery, search
from counterfoil.data.readers.rows import cell_source, looked_for
from counterfoil.data.records import Caption, Image
from counterfoil.data.tables import DataTable, floats, labels, shown, texts
from counterfoil.errors import DataError


def read(card: Card, data: Path | DataTable | None, images: Path | None) -> Benchmark:
    """One row per right pair; the gallery is every image and every caption that a row names.

    `relevance` in (0, 1] is the gain of a pair, 1 where there is no such column; a pair of relevance 0 is
    wrong, and adds its items to the gallery. Images are called by `image_id`, else by the path in `image`;
    captions by `caption_id`, else equal texts are one caption, called by its number in order ("c0").
    `written_for` names the image a caption was written for, empty where unknown; without the column, a
    caption with one right image is taken to be that image's. `data` is a table, or a folder with one; image
    cells are paths relative to `images` (else to the table's folder), or bytes in Parquet. Every item is a
    query in its direction. Raises `DataError` naming file, row and column of what does not fit.
    """
    table, folder, path = own_table(card, data, images, ("image", "caption"))
    pictures, image = _images(table, folder)
    captions, caption = _captions(table)
    gains = _gains(table)
    _check_once(table, image, caption, len(captions))
    right = gains > 0
    if not right.any():
        raise DataError("no row says what is right", where=table.source, given="relevance 0 throughout")
    pairs = image[right], caption[right]
    owners = _owners(table, pictures, len(captions), caption, pairs)
    of_image, of_caption = (np.arange(len(items), dtype=np.int64) for items in (pictures, captions))
    return gallery(
        card.model_copy(update={"title": title_of(path)}),
        pictures,
        captions,
        owners,
        (
            search(of_image, pairs, gains[right], names=[i.id for i in pictures], where=table.source),
            search(of_caption, pairs[::-1], gains[right], names=[c.id for c in captions], where=table.source),
        ),
        source=table.source,
        path=path,
    )


@dataclass
class _Named:
    """Distinct keys in order of first appearance, and the first row of each."""

    number: dict[str, int] = field(default_factory=dict)
    rows: list[int] = field(default_factory=list)

    def add(self, key: str, row: int) -> int:
        if key not in self.number:
            self.number[key] = len(self.rows)
            self.rows.append(row)
        return self.number[key]


def _images(table: DataTable, folder: Path | None) -> tuple[list[Image], Ids]:
    """Distinct images and the position of each row's."""
    cells = table["image"]
    given = _keys(table, "image_id")
    named = _Named()
    positions = np.empty(len(table), dtype=np.int64)
    for row, cell in enumerate(cells):
        key = given[row] if given is not None else cell
        if not isinstance(key, str) or not key:
            raise DataError(
                "an image without a name",
                where=table.where(row, "image"),
                given=shown(cell),
                allowed="a path, or bytes with a column 'image_id'",
            )
        positions[row] = named.add(key, row)
        first = cells[named.rows[positions[row]]]
        if isinstance(cell, str) and isinstance(first, str) and cell != first:
            raise DataError(
                "two images of one id", where=table.where(row, "image"), given=shown(cell), allowed=first
            )
    return [
        Image(key, cell_source(table, "image", row, folder), sought=looked_for(folder, cells[row]))
        for key, row in zip(named.number, named.rows, strict=True)
    ], positions


def _captions(table: DataTable) -> tuple[list[Caption], Ids]:
    """Distinct captions and the position of each row's."""
    written = texts(table, "caption")
    given = _keys(table, "caption_id")
    named = _Named()
    positions = np.empty(len(table), dtype=np.int64)
    for row, text in enumerate(written):
        positions[row] = named.add(text if given is None else given[row], row)
        first = written[named.rows[positions[row]]]
        if text != first:
            raise DataError(
                "two captions of one id", where=table.where(row, "caption"), given=shown(text), allowed=first
            )
    ids = list(named.number) if given is not None else [f"c{i}" for i in range(len(named.rows))]
    return [Caption(key, written[row]) for key, row in zip(ids, named.rows, strict=True)], positions


def _keys(table: DataTable, column: str) -> tuple[str, ...] | None:
    """A column of ids of which none is empty, if there is one."""
    if column not in table:
        return None
    keys = labels(table, column)
    if "" in keys:
        raise DataError("empty id", where=table.where(keys.index(""), column))
    return keys


def _gains(table: DataTable) -> NDArray[np.float64]:
    if "relevance" not in table:
        return np.ones(len(table))
    gains = floats(table, "relevance")
    outside = (gains < 0) | (gains > 1)
    if outside.any():
        row = int(np.argmax(outside))
        raise DataError(
            "relevance out of range",
            where=table.where(row, "relevance"),
            given=gains[row],
            allowed="0 (wrong) to 1 (right)",
        )
    return gains


def _check_once(table: DataTable, image: Ids, caption: Ids, n_captions: int) -> None:
    pair = image * n_captions + caption
    _, first = np.unique(pair, return_index=True)
    again = np.setdiff1d(np.arange(len(pair)), first)
    if len(again):
        row = int(again[0])
        before = int(np.argmax(pair == pair[row]))
        raise DataError(
            "a pair occurs twice", where=table.where(row), given=f"the pair of {table.where(before)}"
        )


def _owners(
    table: DataTable, pictures: Sequence[Image], n_captions: int, caption: Ids, pairs: tuple[Ids, Ids]
) -> Ids:
    owners = np.full(n_captions, -1, dtype=np.int64)
    if "written_for" not in table:
        image, right = pairs
        single = np.bincount(right, minlength=n_captions)[right] == 1
        owners[right[single]] = image[single]
        return owners
    number = {picture.id: i for i, picture in enumerate(pictures)}
    for row, name in enumerate(labels(table, "written_for")):
        if not name:
            continue
        at = number.get(name)
        if at is None:
            raise DataError(
                "written for an image that is not in the table",
                where=table.where(row, "written_for"),
                given=name,
            )
        if owners[caption[row]] not in (-1, at):
            raise DataError(
                "a caption is written for one image",
                where=table.where(row, "written_for"),
                given=name,
                allowed=pictures[owners[caption[row]]].id,
            )
        owners[caption[row]] = at
    return owners
