"""Columns of users' own tables, under the names that they have in this field, in capitals or not."""

from collections.abc import Mapping, Sequence

from counterfoil.data.columns import DataTable
from counterfoil.errors import DataError

#: What a column may be called, by its name here.
ALIASES: Mapping[str, tuple[str, ...]] = {
    "image": ("image", "filename", "file_name", "image_file", "image_path", "image_name", "filepath", "img"),
    "negative_image": ("negative_image", "negative_filename", "image_negative", "neg_image", "foil_image"),
    "caption": ("caption", "true_caption", "positive_caption", "text", "sentence"),
    "negative_caption": ("negative_caption", "false_caption", "foil", "caption_negative", "neg_caption"),
}


def named(table: DataTable, wanted: Sequence[str]) -> DataTable:
    """The table with the columns in `wanted` under these names, whatever their case and their alias.

    Columns of other names stay; all names are in lower case. Raises `DataError` where two columns are one
    but for their case.

    >>> list(named(DataTable({"Filename": ["a.jpg"], "Caption": ["a cat"]}, "mine.csv"), ["image"]).columns)
    ['image', 'caption']
    """
    lower: dict[str, str] = {}
    for name in table.columns:
        plain = name.strip().lower().replace(" ", "_")
        if plain in lower:
            raise DataError(
                "two columns differ in capitals alone", where=table.source, given=f"{lower[plain]}, {name}"
            )
        lower[plain] = name
    renamed = {name: plain for plain, name in lower.items()}
    for name in wanted:
        found = next((alias for alias in ALIASES.get(name, (name,)) if alias in lower), None)
        if found is not None and name not in lower:
            renamed[lower[found]] = name
    columns = {renamed[name]: cells for name, cells in table.columns.items()}
    return DataTable(columns, table.source, table.kind, table.parts)
