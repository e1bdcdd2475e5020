"""Rows of a table of scores, one per (image, caption), as answers to questions that rate captions of images.

Pairs are told by the ids of image and caption, or by the image's id and the caption's text. An id may be
written as the benchmark does, as a path to a file of that name, without the file's ending, or as the number
at its end ("COCO_val2014_000000431431.jpg" for 431431): the first reading that keeps apart all ids of both
sides and finds every id of the benchmark counts.
"""

import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import PurePosixPath

import numpy as np
from jaxtyping import Int64
from numpy import ndarray

from counterfoil.data.benchmark import Benchmark
from counterfoil.data.tables import shown
from counterfoil.engine.plan import Note
from counterfoil.errors import ScoreError
from counterfoil.scorers.given import GivenTable
from counterfoil.scorers.score_table_layouts import item_columns

_NUMBER = re.compile(r".*?(\d{1,18})(?:\.[A-Za-z]\w{2,3})?")


def _path(name: str) -> PurePosixPath:
    return PurePosixPath(name.replace("\\", "/"))


def _number(name: str) -> Hashable:
    found = _NUMBER.fullmatch(name)
    return name if found is None else int(found[1])


def _plain(text: str) -> str:
    return " ".join(text.lower().split())


_READINGS: tuple[Callable[[str], Hashable], ...] = (
    str,
    lambda name: _path(name).name,
    lambda name: _path(name).stem,
    _number,
)


@dataclass(frozen=True)
class _Column:
    """One column of the table beside what the benchmark calls the same, read in one way."""

    name: str
    theirs: Sequence[Hashable]
    #: Per question what its item may be called: a text that was written of two images is one caption.
    ours: Sequence[tuple[Hashable, ...]]


def rows_by_pairs(given: GivenTable, benchmark: Benchmark, note: Note) -> Int64[ndarray, "n"] | None:
    """For every question the row of its image and caption; None where the table has no column of either.

    Rows of pairs that are not asked about are left out, and `note` says how many. A table with captions
    alone may also follow the questions row by row, which is noted. Raises `ScoreError` where an id or a pair
    of the benchmark is missing, where one pair has two scores, and where the columns there are do not tell
    the questions apart.
    """
    image_columns, caption_columns = item_columns(given.table)
    if not image_columns and not caption_columns:
        return None
    images = _one_of(image_columns, given, benchmark, _image_names(benchmark))
    captions = _one_of(caption_columns, given, benchmark, _caption_names(benchmark), _texts(benchmark))
    used = [column for column in (images, captions) if column is not None]
    named = " and ".join(f"'{column.name}'" for column in used)
    if len(used) == 1 and not _distinct(used[0]):
        if captions is not None and _in_order(captions):
            note(f"{given.table.source}: no column names images; rows are taken in the benchmark's order")
            return np.arange(len(benchmark), dtype=np.int64)
        raise ScoreError(
            f"column {named} does not tell the questions of {benchmark.name} apart",
            where=given.table.source,
            allowed="columns image_id and caption_id, or image and caption; or id, with the questions' ids",
        )
    theirs = list(zip(*(column.theirs for column in used), strict=True))
    row_of: dict[tuple[Hashable, ...], int] = {}
    firsts = [row_of.setdefault(key, row) for row, key in enumerate(theirs)]
    found = np.full(len(benchmark), -1, dtype=np.int64)
    for question in range(len(benchmark)):
        keys = _product([column.ours[question] for column in used])
        found[question] = next((row_of[key] for key in keys if key in row_of), -1)
    missing = np.flatnonzero(found < 0)
    if len(missing):
        names = [benchmark.questions.ids[question] for question in missing[:3]]
        raise ScoreError(
            f"questions of {benchmark.name} have no row with their image and caption",
            where=f"{given.table.source}, columns {named}",
            given=f"{len(missing):,} of {len(benchmark):,} missing: " + ", ".join(f"'{n}'" for n in names),
            hint="is it the table of another benchmark, or of another part of it?",
        )
    asked = set(found.tolist())
    for row, first in enumerate(firsts):
        if first != row and first in asked:
            _check_equal(given, row, first)
    left = sum(first not in asked for first in firsts)
    if left:
        note(
            f"{given.table.source}: {left:,} of {len(given):,} rows are of pairs that {benchmark.name} does "
            "not ask about, and are left out"
        )
    return found


def pairs_disagree(given: GivenTable, benchmark: Benchmark, rows: Int64[ndarray, "n"]) -> ScoreError | None:
    """None where the images and captions in the table's `rows` are those of the questions, or unreadable.

    Otherwise the error that names the first row that differs, for the caller to raise.
    """
    image_columns, caption_columns = item_columns(given.table)
    for columns, readings in (
        (image_columns, (_image_names(benchmark),)),
        (caption_columns, (_caption_names(benchmark), _texts(benchmark))),
    ):
        for name in columns:
            column = _read(given, name, *readings)
            if column is None:
                continue
            odd = [q for q, row in enumerate(rows.tolist()) if column.theirs[row] not in column.ours[q]]
            if odd:
                question = benchmark.questions.ids[odd[0]]
                return ScoreError(
                    f"the row has the id of question '{question}' of {benchmark.name}, and another image or "
                    "caption",
                    where=given.table.where(int(rows[odd[0]]), name),
                    given=shown(given.table[name][int(rows[odd[0]])]),
                    allowed=shown(column.ours[odd[0]][0]),
                    hint=f"{len(odd):,} of {len(rows):,} rows differ",
                )
    return None


def _one_of(
    names: Sequence[str], given: GivenTable, benchmark: Benchmark, *ours: Sequence[tuple[str, ...]] | None
) -> _Column | None:
    """The first column that names every item of the benchmark; None where there is no column at all."""
    for name in names:
        column = _read(given, name, *ours)
        if column is not None:
            return column
    if not names:
        return None
    cells = {_cell(cell) for cell in given.table[names[0]]}
    wanted = list(dict.fromkeys(each[0] for each in ours[0] or ()))
    missing = [each for each in wanted if each not in cells]
    example = (missing or wanted)[0]
    raise ScoreError(
        f"the column does not hold the items of {benchmark.name}",
        where=f"{given.table.source}, column '{names[0]}'",
        given=f"{len(missing):,} of {len(wanted):,} missing, such as '{example}'; the "
        f"first row has {shown(given.table[names[0]][0])}",
        hint="is it the table of another benchmark, or are ids written in another way?",
    )


def _read(given: GivenTable, name: str, *ours: Sequence[tuple[str, ...]] | None) -> _Column | None:
    """The column under the first reading that finds every item; ids first, then texts."""
    cells = [_cell(cell) for cell in given.table[name]]
    names, texts = ours[0], ours[1] if len(ours) > 1 else None
    assert names is not None
    distinct, own = set(cells), set(chain(*names))
    for reading in _READINGS:
        read = {text: reading(text) for text in distinct | own}
        held = {read[cell] for cell in distinct}
        if (
            len(held) == len(distinct)
            and len({read[text] for text in own}) == len(own)
            and all(any(read[each] in held for each in mine) for mine in set(names))
        ):
            return _Column(
                name, [read[cell] for cell in cells], [tuple(read[e] for e in mine) for mine in names]
            )
    if texts is not None:
        spoken = list(map(_plain, cells))
        held = set(spoken)
        if all(mine[0] in held for mine in texts):
            return _Column(name, spoken, texts)
    return None


def _cell(cell: object) -> str:
    # Parquet written by data-frame libraries keeps whole numbers beside gaps as 17.0.
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return "" if cell is None else str(cell).strip()


def _image_names(benchmark: Benchmark) -> list[tuple[str, ...]]:
    questions = benchmark.rated
    return [(benchmark.images[at].id,) for at in questions.images]


def _caption_names(benchmark: Benchmark) -> list[tuple[str, ...]]:
    """What each question's caption is called: in ids "IMAGE/CAPTION" by its own name, which goes first."""
    questions = benchmark.rated
    found: list[tuple[str, ...]] = []
    for name, caption, image in zip(questions.ids, questions.captions, questions.images, strict=True):
        id, prefix = benchmark.captions[caption].id, f"{benchmark.images[image].id}/"
        own = name.removeprefix(prefix)
        found.append((own, id) if name.startswith(prefix) and own != id else (id,))
    return found


def _texts(benchmark: Benchmark) -> list[tuple[str, ...]] | None:
    """The text of each question's caption; None where they are not at hand."""
    questions = benchmark.rated
    texts = [benchmark.captions[at].text for at in questions.captions]
    return [(_plain(text),) for text in texts if text is not None] if None not in texts else None


def _product(parts: Sequence[tuple[Hashable, ...]]) -> list[tuple[Hashable, ...]]:
    keys: list[tuple[Hashable, ...]] = [()]
    for part in parts:
        keys = [(*key, name) for key in keys for name in part]
    return keys


def _distinct(column: _Column) -> bool:
    first = [names[0] for names in column.ours]
    return len(set(first)) == len(first)


def _in_order(column: _Column) -> bool:
    return len(column.theirs) == len(column.ours) and all(
        theirs in ours for theirs, ours in zip(column.theirs, column.ours, strict=True)
    )


def _check_equal(given: GivenTable, row: int, first: int) -> None:
    assert given.values is not None
    if given.values[row] != given.values[first]:
        raise ScoreError(
            "one image and caption with two scores",
            where=f"{given.table.where(first)} and {given.table.where(row)}",
            given=f"{given.values[first]:g} and {given.values[row]:g}",
        )
