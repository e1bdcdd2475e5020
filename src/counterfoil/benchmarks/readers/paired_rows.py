"""Quads whose rows hold two images and two captions: BiVLC and six benchmarks of one shape."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from counterfoil.benchmarks.benchmark import Benchmark, Card
from counterfoil.benchmarks.readers.questions import quads
from counterfoil.benchmarks.readers.released_files import listed_rows, pictures, released_file, released_set
from counterfoil.benchmarks.readers.rows import cell_source, not_on_hub, open_rows, released_rows
from counterfoil.benchmarks.records import Image
from counterfoil.benchmarks.tables import DataTable, integers, labels, names, read_table, stack, texts
from counterfoil.errors import DataError


@dataclass(frozen=True)
class PairedColumns:
    """The columns of a layout: caption k goes with image k; groupings by the column of their labels.

    Without `id` questions are called by row numbers from 0.
    """

    captions: tuple[str, str]
    images: tuple[str, str]
    id: str = ""
    groupings: Mapping[str, str] = field(default_factory=dict)


_COLORSWAP = PairedColumns(
    ("caption_1", "caption_2"),
    ("image_1", "image_2"),
    "id",
    {"image_source": "image_source", "caption_source": "caption_source"},
)
_VISMIN = PairedColumns(("text_0", "text_1"), ("image_0", "image_1"), "id", {"category": "category"})
_VISMIN_FILES = PairedColumns(
    ("caption", "edited_caption"), ("image_path", "edited_image_path"), "id", {"category": "category"}
)
_NATURALBENCH = PairedColumns(("caption_0", "caption_1"), ("image_0", "image_1"), "index")
_COUNTERFACTUALS = PairedColumns(("captions", "neg_captions"), ("images", "neg_images"))
_COLA = PairedColumns(("caption_1", "caption_2"), ("image_1", "image_2"))
_MMVP = PairedColumns(("caption_0", "caption_1"), ("image_0", "image_1"), "id", {"pattern": "pattern"})

VISMIN_CATEGORIES = ("object", "attribute", "counting", "relation")


def read_colorswap(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """ColorSwap from the hub, its Parquet files, or `test.json` (or another file of its rows).

    Images are `images/img_{id}_1.png` and so on, beside the file or in `images`. Groupings: `image_source`
    and `caption_source`. Raises `DataError` for missing columns and odd cells.
    """
    table = released_rows(card, data, _COLORSWAP.images, names=("test.json",))
    return paired(card, table, _COLORSWAP, data, images)


def read_vismin(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """VisMin from the hub, its Parquet files, or the folder of its four tables, one for each category.

    The tables are `object.csv`, `attribute.csv`, `counting.csv` and `relation.csv`; question "object/17" is
    the row of edit_id 17 in object.csv. Grouping: `category`. Raises `DataError` for missing columns.
    """
    names = [f"{name}.csv" for name in VISMIN_CATEGORIES]
    if data is None or not any((data / name).is_file() for name in names):
        return paired(card, released_rows(card, data, _VISMIN.images), _VISMIN, data, images)
    files = released_set(card, data, names)
    tables = [read_table(file) for file in files]
    ids = [
        f"{file.stem}/{key}" for file, table in zip(files, tables, strict=True) for key in table["edit_id"]
    ]
    rows = stack(tables, source=str(data), column="category", values=VISMIN_CATEGORIES)
    rows = DataTable({**rows.columns, "id": ids}, rows.source, rows.kind, rows.parts)
    return paired(card, rows, _VISMIN_FILES, data, images)


def read_naturalbench(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """NaturalBench's retrieval version: `metadata.json` and its images. Questions are called by `index`."""
    table = read_table(released_file(card, data, ("metadata.json",)))
    return paired(card, table, _NATURALBENCH, data, images)


def read_counterfactuals(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """Flickr30k-Counterfactuals: a table of `captions`, `images`, `neg_captions`, `neg_images`, with tabs."""
    if data is None:
        raise not_on_hub(card)
    return paired(card, open_rows(data, _COUNTERFACTUALS.images), _COUNTERFACTUALS, data, images)


def read_cola(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """Cola's multi-object questions: a list of [address of an image, its caption, address, caption].

    An image is called by the last part of its address ("2390970.jpg"), and looked for under that name.
    """
    path = released_file(card, data, ("COLA_multiobjects_matching_benchmark.json",))
    table = listed_rows(path, ("image_1", "caption_1", "image_2", "caption_2"))
    files = {
        column: tuple(address.rsplit("/", 1)[-1] for address in texts(table, column))
        for column in _COLA.images
    }
    table = DataTable({**table.columns, **files}, table.source, table.kind, table.parts)
    return paired(card, table, _COLA, data, images)


def read_mmvp(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """MMVP-VLM: `Questions.csv`, two consecutive rows a question, and `MLLM_VLM Images/TYPE/ID.jpg`.

    The first row of a pair has an odd id and belongs to its first image. Question "17-18" is of rows 17 and
    18. Grouping: `pattern`, one of nine types. Raises `DataError` for rows that are no such pairs.
    """
    table = read_table(released_file(card, data, ("Questions.csv",)))
    numbers, types = integers(table, "Question ID"), labels(table, "Type")
    statements = texts(table, "Statement")
    if len(table) % 2:
        raise DataError("a row without its second", where=table.where(len(table) - 1))
    first, second = slice(0, None, 2), slice(1, None, 2)
    for row, (a, b) in enumerate(zip(numbers[first], numbers[second], strict=True)):
        if a % 2 != 1 or b != a + 1 or types[2 * row] != types[2 * row + 1]:
            raise DataError(
                "two rows that are no pair",
                where=table.where(2 * row),
                given=f"{a} ({types[2 * row]}), {b} ({types[2 * row + 1]})",
                allowed="an odd id and the next one, of one type",
            )
    files = [f"MLLM_VLM Images/{kind}/{n}.jpg" for n, kind in zip(numbers, types, strict=True)]
    rows = DataTable(
        {
            "id": [f"{a}-{b}" for a, b in zip(numbers[first], numbers[second], strict=True)],
            "pattern": types[first],
            "caption_0": statements[first],
            "caption_1": statements[second],
            "image_0": files[first],
            "image_1": files[second],
        },
        table.source,
    )
    return paired(card, rows, _MMVP, data, images)


def paired(
    card: Card, table: DataTable, columns: PairedColumns, data: Path | None, images: Path | None
) -> Benchmark:
    """Rows of two images and two captions as quads; groupings whose columns are not there are left out.

    Raises `DataError` for a column that is missing and for cells that do not fit, naming the row.
    """
    ids = names(table, columns.id) if columns.id else tuple(map(str, range(len(table))))
    captions = (texts(table, columns.captions[0]), texts(table, columns.captions[1]))
    first, second = pictures(table, columns.images, ids, data, images)
    groupings = {name: labels(table, column) for name, column in columns.groupings.items() if column in table}
    return quads(card, ids, captions, (first, second), groupings, source=table.source, path=data)


_BIVLC = ("image", "negative_image")
_TYPES = ("add", "replace", "swap")
_SUBTYPES = ("obj", "att", "rel")


def read_bivlc(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """BiVLC from the hub, its Parquet files, a folder saved by `datasets`, or a table of paths.

    In a table (CSV, TSV, JSON, JSON Lines) the cells of `image` and `negative_image` are paths relative to
    `images`, or to the table's own folder; a released result table has no images and is read without.
    Question ids are row numbers from 0; question "17" has images "17_i0" (positive) and "17_i1" (negative).
    Raises `DataError` for missing columns, cells that do not fit, and counts that are not the card's.
    """
    table = released_rows(card, data, _BIVLC)
    folder = images or (None if data is None else data if data.is_dir() else data.parent)
    # Positive images are photographs of COCO under several questions each; the release does not say which.
    sides = tuple(
        tuple(
            Image(f"{row}_i{side}", cell_source(table, column, row, folder), photo=None if side == 0 else "")
            for row in range(len(table))
        )
        for side, column in enumerate(_BIVLC)
    )
    return quads(
        card,
        [str(row) for row in range(len(table))],
        (texts(table, "caption"), texts(table, "negative_caption")),
        (sides[0], sides[1]),
        kinds(table),
        source=table.source,
        path=data,
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
    return quads(
        card,
        ids,
        (texts(table, "caption"), texts(table, "negative_caption")),
        ([Image(f"{name}_i0") for name in ids], [Image(f"{name}_i1") for name in ids]),
        kinds(table),
        source=table.source,
    )
