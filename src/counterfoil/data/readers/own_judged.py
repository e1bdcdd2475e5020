"""A user's own judgements of captions: ratings one by one, or votes between two captions of an image.

Ratings: columns image, caption, rating (or rating_1, rating_2, ...: one per rater), and references where
there are some. Votes: columns image, caption_a, caption_b, and votes_a and votes_b, or preferred (a or b).
"""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from counterfoil.data.benchmark import Benchmark, Card
from counterfoil.data.columns import floats, labels, names, shown
from counterfoil.data.forms import Ids, Preference
from counterfoil.data.readers.hub import not_on_hub
from counterfoil.data.readers.human_ratings import (
    CaptionTable,
    RatingRows,
    Skipped,
    clean_caption,
    finished,
    placed,
    rated,
    rating,
)
from counterfoil.data.readers.own import ALIASES, named
from counterfoil.data.readers.rows import cell_source, open_rows
from counterfoil.data.records import Image
from counterfoil.data.references import References
from counterfoil.data.tables import DataTable, texts
from counterfoil.errors import DataError

_RATING = re.compile(r"(rating|score_?human|rater)(_?\d+)?")
_REFERENCE = re.compile(r"references?(_?\d+)?")


def read_ratings(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """Captions with ratings, a row each; several columns of ratings are several raters, each rating a point.

    A cell of `references` is a text or (in JSON and Parquet) a list of them; further references may stand in
    reference_1, reference_2 and so on. Rows without any rating are left out, and rows without a reference
    where others have some. Images are called by the path in the cell, relative to `images` (else to the
    table's folder). Ids are the column `id`, else row numbers from 0; `type` is a grouping. Raises
    `DataError` naming file, row and column of what does not fit.
    """
    table, folder = _opened(card, data, images)
    raters = [name for name in table.columns if _RATING.fullmatch(name)]
    if not raters:
        raise DataError(
            "no column of ratings",
            where=table.source,
            given=", ".join(table.columns),
            allowed="rating, rating_1, ...",
        )
    ids, (files, pictures) = _ids(table), _pictures(table, folder)
    captions = CaptionTable()
    candidates = np.array(
        [
            captions.add(clean_caption(cell, table.where(row, "caption")), f"c{row}")
            for row, cell in enumerate(table["caption"])
        ],
        dtype=np.int64,
    )
    given = np.array(
        [[_rated(table, row, name) for name in raters] for row in range(len(table))], dtype=np.float64
    )
    return rated(
        card.model_copy(update={"title": _title(data)}),
        RatingRows(
            ids,
            candidates,
            pictures,
            given,
            references=_references(table, captions),
            groupings=_groupings(table),
        ),
        captions.items,
        files,
        left=Skipped(),
        source=table.source,
        path=data,
    )


def read_preferences(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """Pairs of captions of one image with how many people preferred each; rows without any vote are refused.

    Where both have as many votes the label is drawn, with seed 0. References and images as in `read_ratings`.
    Raises `DataError` naming file, row and column of what does not fit.
    """
    table, folder = _opened(card, data, images)
    ids, (files, pictures) = _ids(table), _pictures(table, folder)
    captions = CaptionTable()
    sides = [
        [
            captions.add(clean_caption(cell, table.where(row, column)), f"{column}{row}")
            for row, cell in enumerate(table[column])
        ]
        for column in ("caption_a", "caption_b")
    ]
    votes = _votes(table)
    ahead = np.sign(votes[:, 1] - votes[:, 0])
    drawn = np.random.default_rng(0).integers(0, 2, len(votes))
    questions = Preference.between(
        ids,
        np.array(sides, dtype=np.int64).T,
        pictures,
        votes,
        np.where(ahead == 0, drawn, ahead > 0).astype(np.int64),
        groupings=_groupings(table),
        references=_references(table, captions),
    )
    card = card.model_copy(update={"title": _title(data)})
    return finished(card, captions.items, files, questions, source=table.source, path=data)


def _opened(card: Card, data: Path | None, images: Path | None) -> tuple[DataTable, Path]:
    if data is None:
        raise not_on_hub(card)
    table = named(open_rows(data, ALIASES["image"]), ("image", "caption"))
    return table, images or (data if data.is_dir() else data.parent)


def _title(data: Path | None) -> str:
    return "" if data is None else data.stem


def _ids(table: DataTable) -> tuple[str, ...]:
    return names(table, "id") if "id" in table else tuple(str(row) for row in range(len(table)))


def _pictures(table: DataTable, folder: Path) -> tuple[list[Image], Ids]:
    """Distinct images, and the position of each row's."""
    keys = [
        cell if isinstance(cell, str) else f"image of row {row + 1}"
        for row, cell in enumerate(table["image"])
    ]
    if "image_id" in table:
        keys = list(texts(table, "image_id"))
    distinct, positions = placed(keys)
    first = {key: row for row, key in reversed(list(enumerate(keys)))}
    return [Image(key, cell_source(table, "image", first[key], folder)) for key in distinct], positions


def _rated(table: DataTable, row: int, column: str) -> float:
    cell = table[column][row]
    if cell is None or (isinstance(cell, str) and not cell.strip()):
        return float("nan")
    return rating(cell, table.where(row, column), missing=True)


def _votes(table: DataTable) -> np.ndarray:
    if "votes_a" in table and "votes_b" in table:
        votes = np.stack([floats(table, name) for name in ("votes_a", "votes_b")], axis=1)
        bad = np.flatnonzero((votes < 0).any(axis=1) | (votes.sum(axis=1) == 0))
        if len(bad):
            raise DataError(
                "not votes",
                where=table.where(int(bad[0])),
                given=votes[bad[0]].tolist(),
                allowed="0 or more, one at least",
            )
        return votes
    if "preferred" not in table:
        raise DataError(
            "no votes",
            where=table.source,
            given=", ".join(table.columns),
            allowed="votes_a and votes_b, or preferred",
        )
    chosen = [each.lower() for each in labels(table, "preferred")]
    for row, each in enumerate(chosen):
        if each not in ("a", "b"):
            raise DataError(
                "not a choice", where=table.where(row, "preferred"), given=shown(each), allowed="a or b"
            )
    return np.array([[each == "a", each == "b"] for each in chosen], dtype=np.float64)


def _references(table: DataTable, captions: CaptionTable) -> References | None:
    columns = [name for name in table.columns if _REFERENCE.fullmatch(name)]
    if not columns:
        return None
    rows: list[list[int]] = []
    for row in range(len(table)):
        own: list[int] = []
        for name in columns:
            cell = table[name][row]
            listed: Sequence[object] = cell if isinstance(cell, list | tuple) else [cell]
            own += [
                captions.add(
                    clean_caption(each, table.where(row, name), "reference"), f"r{row}_{len(own) + at}"
                )
                for at, each in enumerate(listed)
                if each is not None and str(each).strip()
            ]
        rows.append(own)
    return References.of(rows)


def _groupings(table: DataTable) -> dict[str, tuple[str, ...]]:
    return {name: labels(table, name) for name in ("type", "source") if name in table}
