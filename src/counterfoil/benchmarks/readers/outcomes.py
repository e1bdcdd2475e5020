"""Benchmarks that released tables of scores or outcomes carry along: their questions, without other data."""

import re

from counterfoil.benchmarks.benchmark import Benchmark, Card
from counterfoil.benchmarks.readers import paired_rows, sugarcrepe, winoground
from counterfoil.benchmarks.readers.questions import quads
from counterfoil.benchmarks.records import Image
from counterfoil.benchmarks.tables import DataTable, names, texts

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
    if card.name == "bivlc" and columns >= _COLUMNS:
        return paired_rows.bivlc_captions(card, table)
    if card.name == "sugarcrepe" and columns >= {"filename", *_COLUMNS}:
        return sugarcrepe.captions_only(card, table)
    if card.name == "winoground" and "label" in columns:
        matches = [_LABEL.fullmatch(cell) if isinstance(cell, str) else None for cell in table["label"]]
        ids = tuple(dict.fromkeys(match["id"] for match in matches if match))
        if all(matches):
            return winoground.labelled(card, ids, source=table.source)
    if card.name == "colorswap" and columns >= {"id", "response_image_1", *_TWO}:
        ids = names(table, "id")
        sides = ([Image(f"images/img_{name}_{side}.png") for name in ids] for side in (1, 2))
        captions = (texts(table, _TWO[0]), texts(table, _TWO[1]))
        return quads(card, ids, captions, (next(sides), next(sides)), {}, source=table.source)
    return None
