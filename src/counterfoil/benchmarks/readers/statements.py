"""Statements that are true or false of one image: VSR, SeeTRUE, and users' own tables."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from counterfoil.benchmarks.benchmark import Benchmark, Card
from counterfoil.benchmarks.forms import Statement
from counterfoil.benchmarks.readers.human_ratings import CaptionTable, placed, unique_ids
from counterfoil.benchmarks.readers.own import own_table, title_of
from counterfoil.benchmarks.readers.questions import check_counts
from counterfoil.benchmarks.readers.rows import Photos, cell_source, hub_rows, image_folder, looked_for
from counterfoil.benchmarks.records import Image, Source
from counterfoil.benchmarks.tables import (
    DataTable,
    booleans,
    integers,
    labels,
    names,
    read_table,
    shown,
    stack,
    texts,
)
from counterfoil.errors import DataError, ScoreError

#: VSR's split that is measured, and the one that chooses the threshold.
_TEST, _DEV = "test", "dev"
#: VSR's categories of relations (`analysis_scripts/rel_meta_category_dict.txt` of its repository). The file
#: lists "among" twice, and the authors' code takes the later place.
_CATEGORIES = {
    "Adjacency": (
        "adjacent to, alongside, at the side of, at the right side of, at the left side of, attached to, "
        "at the back of, ahead of, against, at the edge of"
    ),
    "Directional": (
        "off, past, toward, down, deep down, up, away from, along, around, from, into, to, across, "
        "across from, through, down from"
    ),
    "Orientation": "facing, facing away from, parallel to, perpendicular to",
    "Projective": (
        "on top of, beneath, beside, behind, left of, right of, under, in front of, below, above, over, "
        "in the middle of"
    ),
    "Proximity": "by, close to, near, far from, far away from",
    "Topological": (
        "connected to, detached from, has as a part, part of, contains, within, at, on, in, with, "
        "surrounding, consists of, out of, between, inside, outside, touching"
    ),
    "Unallocated": "beyond, next to, opposite to, after, among, enclosed by",
}
_CATEGORY_OF = {
    relation: category for category, listed in _CATEGORIES.items() for relation in listed.split(", ")
}
#: The columns of a validator's answer.
_VOTES = ("vote_false_validator_id", "vote_true_validator_id")
#: What columns of own tables may be called beside `own.ALIASES`: the statement, and whether it is true.
_STATEMENT = ("statement", "caption", "text", "sentence", "claim")
_LABEL = ("label", "truth", "true", "correct", "is_true", "answer")
#: Columns of own tables that group questions.
_GROUPS = ("type", "relation", "category", "source", "dataset_source")


def read_vsr(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """VSR from the folder of one of its splits (`test.jsonl`, `dev.jsonl`), `test.jsonl` alone, or the hub.

    The dev split, where it is there, only chooses the threshold. Images are COCO's: `NAME` in `images`, or
    below it as in the link of the row (`train2017/NAME`). Question "test/17" is row 17 of the file, counted
    from 0. Groupings: `category` (of relations, as the paper's figures have them; "Other" for relations that
    the authors list in none) and `relation`. Votes are the validators', of whom an item has two or more.
    Raises `DataError` for a missing file or column, a label that is not 0 or 1, and counts that are not the
    card's.
    """
    if data is None:
        tables = [hub_rows(card, ()), hub_rows(card.model_copy(update={"split": "validation"}), ())]
    elif data.is_dir():
        files = [data / f"{split}.jsonl" for split in (_TEST, _DEV)]
        if not files[0].is_file():
            raise DataError(
                "no test.jsonl in this folder",
                where=data,
                given=", ".join(sorted(file.name for file in data.iterdir())[:8]) or "nothing",
                hint="name the folder of one split: data/splits/zeroshot or data/splits/random",
            )
        tables = [read_table(file) for file in files if file.is_file()]
    else:
        tables = [read_table(data)]
    sizes = [len(table) for table in tables]
    splits = np.repeat([_TEST, _DEV][: len(tables)], sizes)
    numbers = np.concatenate([np.arange(size) for size in sizes])
    source = str(data) if data is not None else tables[0].source
    table = stack(tables, source=source)
    files_of = texts(table, "image")
    links = labels(table, "image_link") if "image_link" in table else ("",) * len(table)
    groupings: dict[str, tuple[str, ...]] = {}
    if "relation" in table:
        relations = labels(table, "relation")
        categories = tuple(_CATEGORY_OF.get(relation, "Other") for relation in relations)
        groupings = {"category": categories, "relation": relations}
    return _benchmark(
        card,
        [f"{split}/{number}" for split, number in zip(splits, numbers, strict=True)],
        texts(table, "caption"),
        files_of,
        _coco(files_of, links, image_folder(data, images)),
        _truth(table, "label"),
        groupings,
        calibration=splits == _DEV,
        votes=_votes(table) if all(name in table for name in _VOTES) else None,
        source=source,
        path=data,
    )


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
    statement, label = (_one_of(table, among) for among in (_STATEMENT, _LABEL))
    ids = names(table, "id") if "id" in table else tuple(str(row) for row in range(len(table)))
    called = [
        cell if isinstance(cell, str) else f"{ids[row]}_image" for row, cell in enumerate(table["image"])
    ]
    first = {name: row for row, name in reversed(list(enumerate(called)))}
    votes: NDArray[np.float64] | None = None
    if "votes_false" in table and "votes_true" in table:
        counts = np.stack([integers(table, name) for name in ("votes_false", "votes_true")], axis=1)
        for row, column in np.argwhere(counts < 0).tolist():
            where = table.where(row, ("votes_false", "votes_true")[column])
            raise DataError("a negative number of votes", where=where, given=int(counts[row, column]))
        votes = counts.astype(np.float64)
    return _benchmark(
        card if card.size is not None else card.model_copy(update={"title": title_of(path)}),
        ids,
        texts(table, statement),
        called,
        {name: cell_source(table, "image", row, folder) for name, row in first.items()},
        _truth(table, label),
        {name: labels(table, name) for name in _GROUPS if name in table},
        calibration=np.isin(labels(table, "split"), (_DEV, "val", "valid", "validation"))
        if "split" in table
        else np.zeros(len(table), dtype=bool),
        votes=votes,
        source=table.source,
        path=path,
        folder=folder,
    )


def _benchmark(
    card: Card,
    ids: Sequence[str],
    statements: Sequence[str],
    images: Sequence[str],
    sources: Mapping[str, Source | None],
    truth: NDArray[np.bool_],
    groupings: Mapping[str, tuple[str, ...]],
    *,
    calibration: NDArray[np.bool_],
    votes: NDArray[np.float64] | None,
    source: str,
    path: Path | None,
    folder: Path | None = None,
) -> Benchmark:
    if calibration.all():
        raise DataError("all rows are of the split that chooses the threshold", where=source)
    captions = CaptionTable()
    at = [captions.add(text, f"{name}_c") for name, text in zip(ids, statements, strict=True)]
    called, pictures = placed(images)
    benchmark = Benchmark(
        card,
        tuple(Image(name, sources[name], sought=looked_for(folder, name)) for name in called),
        tuple(captions.items),
        Statement(
            unique_ids(ids),
            groupings=groupings,
            captions=np.asarray(at, dtype=np.int64),
            images=pictures,
            truth=truth,
            calibration=calibration if calibration.any() else None,
            votes=votes,
        ),
        source,
        path,
    )
    # The card counts what is measured.
    check_counts(benchmark.select(benchmark.statements.measured))
    return benchmark


def _coco(files: Sequence[str], links: Sequence[str], folder: Path | None) -> dict[str, Source | None]:
    """The file of each image, in the folder or where its link has it; None where it is missing."""
    photos = Photos(folder)
    source_of: dict[str, Source | None] = {}
    for name, link in zip(files, links, strict=True):
        if name not in source_of:
            below = "/".join(link.rsplit("/", 2)[-2:]) if link.count("/") > 1 else name
            source_of[name] = photos.source(name) or photos.source(below)
    if folder is not None and not any(source_of.values()):
        raise DataError(
            f"none of the {len(source_of):,} images is in this folder",
            where=folder,
            hint=f"it should hold files like {next(iter(source_of))}, or train2017/{next(iter(source_of))}",
        )
    return source_of


def _truth(table: DataTable, column: str) -> NDArray[np.bool_]:
    """Labels as true and false."""
    try:
        return booleans(table, column)
    except ScoreError as error:
        raise DataError(str(error)) from None


def _votes(table: DataTable) -> NDArray[np.float64]:
    """How many validators said false and true; cells are lists of their numbers, as texts or as lists."""
    votes = np.zeros((len(table), 2))
    for side, column in enumerate(_VOTES):
        for row, cell in enumerate(table[column]):
            try:
                voters = json.loads(cell) if isinstance(cell, str) else cell
                votes[row, side] = len(voters)
            except (ValueError, TypeError):
                raise DataError(
                    "not a list of validators",
                    where=table.where(row, column),
                    given=shown(cell),
                    allowed="a list such as [18, 2]",
                ) from None
    return votes


def _one_of(table: DataTable, among: Sequence[str]) -> str:
    column = next((name for name in among if name in table), None)
    if column is None:
        raise DataError(
            f"no column '{among[0]}'", where=table.source, given=", ".join(table.columns), allowed=among
        )
    return column
