"""Statements that are true or false of one image: SeeTRUE, and users' own tables."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from counterfoil.benchmarks.benchmark import Benchmark, Card
from counterfoil.benchmarks.forms import Statement
from counterfoil.benchmarks.readers.judged import CaptionTable, unique_ids
from counterfoil.benchmarks.readers.own import own_table, row_images, title_of
from counterfoil.benchmarks.readers.questions import check_counts, listed
from counterfoil.benchmarks.records import Caption, Image
from counterfoil.benchmarks.tables import (
    DataTable,
    booleans,
    integers,
    labels,
    names,
    texts,
)
from counterfoil.errors import DataError, ScoreError

#: What columns of own tables may be called beside `own.ALIASES`: the statement, and whether it is true.
_STATEMENT = ("statement", "caption", "text", "sentence", "claim")
_LABEL = ("label", "truth", "true", "correct", "is_true", "answer")
_VOTES = ("votes_false", "votes_true")
#: The splits that choose the threshold.
_DEV = ("dev", "val", "valid", "validation")
#: Columns of own tables that group questions.
_GROUPS = ("type", "relation", "category", "source", "dataset_source")


def read(card: Card, data: Path | DataTable | None, images: Path | None) -> Benchmark:
    """A table of statements: columns image, statement (or caption, text) and label (1 or 0, true or false).

    `data` is a CSV, TSV, JSON, JSON Lines or Parquet file, or a folder with one; image cells are paths
    relative to `images` (else to the file's folder), or bytes in Parquet. A column `split` makes the rows of
    "dev" (or "val", "validation") choose the threshold; all other rows are measured. Question ids are the
    column `id`, else row numbers from 0. Groupings: `type`, `relation`, `category`, `source` and
    `dataset_source` (of SeeTRUE), where there are such columns. Columns votes_true and votes_false count what
    people said. Raises `DataError` naming file, row and column of what does not fit.
    """
    table, folder, path = own_table(card, data, images, ("image",))
    columns = []
    for among in (_STATEMENT, _LABEL):
        column = next((name for name in among if name in table), None)
        if column is None:
            given = ", ".join(table.columns)
            raise DataError(f"no column '{among[0]}'", where=table.source, given=given, allowed=among)
        columns.append(column)
    statement, label = columns
    ids = names(table, "id") if "id" in table else tuple(str(row) for row in range(len(table)))
    cells = zip(table["image"], ids, strict=True)
    called = [cell if isinstance(cell, str) else f"{name}_image" for cell, name in cells]
    votes: NDArray[np.float64] | None = None
    if all(name in table for name in _VOTES):
        counts = np.stack([integers(table, name) for name in _VOTES], axis=1)
        for row, at in np.argwhere(counts < 0).tolist():
            where = table.where(row, _VOTES[at])
            raise DataError("a negative number of votes", where=where, given=int(counts[row, at]))
        votes = counts.astype(np.float64)
    dev = np.isin(labels(table, "split"), _DEV) if "split" in table else None
    return statements(
        card if card.size is not None else card.model_copy(update={"title": title_of(path)}),
        ids,
        texts(table, statement),
        row_images(table, "image", folder, called),
        {name: labels(table, name) for name in _GROUPS if name in table},
        truth=truths(table, label),
        calibration=dev,
        votes=votes,
        source=table.source,
        path=path,
    )


def statements(
    card: Card,
    ids: Sequence[str],
    captions: Sequence[str],
    images: Sequence[Image],
    groupings: Mapping[str, tuple[str, ...]],
    *,
    truth: NDArray[np.bool_],
    calibration: NDArray[np.bool_] | None,
    votes: NDArray[np.float64] | None,
    caption_ids: Sequence[str] | None = None,
    source: str,
    path: Path | None,
) -> Benchmark:
    """One caption and one image per question, and whether it is true; equal texts are one caption.

    Questions of `calibration` only choose the threshold, and the card does not count them.
    """
    if calibration is not None and calibration.all():
        raise DataError("all rows are of the split that chooses the threshold", where=source)
    table = CaptionTable()
    names_of_captions = caption_ids or [f"{name}_c" for name in ids]
    positions = table.add_all(map(Caption, names_of_captions, captions))
    items, shown_images = listed(images)
    questions = Statement(
        unique_ids(ids),
        groupings=groupings,
        captions=np.asarray(positions, dtype=np.int64),
        images=shown_images,
        truth=truth,
        calibration=calibration if calibration is not None and calibration.any() else None,
        votes=votes,
    )
    benchmark = Benchmark(card, items, tuple(table.items), questions, source, path)
    check_counts(benchmark.select(benchmark.statements.measured))
    return benchmark


def truths(table: DataTable, column: str) -> NDArray[np.bool_]:
    """A column of right and wrong (`booleans`); raises `DataError` naming the row that is neither."""
    try:
        return booleans(table, column)
    except ScoreError as error:
        raise DataError(str(error)) from None
