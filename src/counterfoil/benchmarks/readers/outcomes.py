"""Benchmarks that released tables of scores or outcomes carry along: their questions, without other data."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int
from numpy import ndarray

from counterfoil.benchmarks.benchmark import Benchmark, Card
from counterfoil.benchmarks.readers.rows import open_rows
from counterfoil.benchmarks.readers.specs import benchmark_of, layouts
from counterfoil.benchmarks.tables import DataTable, integers, names, texts

_LABEL = re.compile(r"(?P<id>.+)_c[01]_i[01]")
_TWO = ("caption_0", "caption_1")
_COLUMNS = {"caption", "negative_caption", "type", "subtype"}


def from_table(card: Card, table: DataTable) -> Benchmark | None:
    """The benchmark of `card` that the rows of `table` themselves ask, in their order; None if they do not.

    * BiVLC: a row per instance with caption, negative_caption, type and subtype. Images are not at hand.
    * SugarCrepe: the same with filename. Question ids are the reader's ("swap_obj/109").
    * Winoground: a row per pair with a column label ("17_c0_i1"). Captions are not at hand either.

    * ColorSwap: the free-text answers of a chat model, with both captions. Images are not at hand.

    Raises `DataError` where the rows are of that kind but do not fit, or are not as many as the card says.
    """
    columns = set(table.columns)
    cells: dict[str, Sequence[Any]] = {}
    if card.name == "bivlc" and columns >= _COLUMNS:
        cells = dict.fromkeys(("image", "negative_image"), ["(not at hand)"] * len(table))
    elif card.name == "colorswap" and columns >= {"id", "response_image_1", *_TWO}:
        cells = {"caption_1": table[_TWO[0]], "caption_2": table[_TWO[1]]}
        for side in (1, 2):
            cells[f"image_{side}"] = [f"images/img_{name}_{side}.png" for name in names(table, "id")]
    elif card.name == "winoground" and "label" in columns:
        matches = [_LABEL.fullmatch(cell) if isinstance(cell, str) else None for cell in table["label"]]
        if not all(matches):
            return None
        table = DataTable(
            {"id": tuple(dict.fromkeys(match["id"] for match in matches if match))}, table.source
        )
    elif card.name != "sugarcrepe" or not columns >= {"filename", *_COLUMNS}:
        return None
    return benchmark_of(layouts(card.name)[0], card, table.with_columns(cells), None, None)


def caption_words(data: Path) -> Int[ndarray, "n 2"]:
    """Length in words (split at blanks) of both captions of every item of Winoground, in their order.

    Counted from the captions where they are at hand, else taken from the columns `caption_0_words` and
    `caption_1_words` of `tags.csv`.
    """
    (layout,) = layouts("winoground")
    table = open_rows(data, ("image_0", "image_1"), split="test", names=layout.files)
    if _TWO[0] in table:
        pairs = zip(*(texts(table, column) for column in _TWO), strict=True)
        return np.asarray([[len(text.split()) for text in pair] for pair in pairs], dtype=np.int64)
    return np.stack([integers(table, f"{column}_words") for column in _TWO], axis=1)
