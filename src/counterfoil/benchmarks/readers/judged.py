"""Captions that people judged: rows with ratings, votes and references, or statements, to questions."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterfoil.benchmarks import forms
from counterfoil.benchmarks.benchmark import Benchmark, Card
from counterfoil.benchmarks.readers.questions import check_counts, listed
from counterfoil.benchmarks.records import Caption, Image
from counterfoil.benchmarks.references import References, collapsed
from counterfoil.benchmarks.tables import DataTable, booleans, shown
from counterfoil.errors import DataError, ScoreError


@dataclass
class CaptionTable:
    """Captions as they are met, one per text, called by the name that the text was first met under."""

    items: list[Caption] = field(default_factory=list)
    _at: dict[str | None, int] = field(default_factory=dict, repr=False)

    def add(self, caption: Caption) -> int:
        """The position of a caption, whose text was collapsed already."""
        at = self._at.setdefault(caption.text, len(self.items))
        if at == len(self.items):
            self.items.append(caption)
        return at

    def add_all(self, captions: Iterable[Caption]) -> list[int]:
        """The positions of several captions."""
        return list(map(self.add, captions))


def numbered(texts: Iterable[str], name: str) -> list[Caption]:
    """Texts as captions that are called NAME#0, NAME#1 and so on."""
    return [Caption(f"{name}#{number}", text) for number, text in enumerate(texts)]


def clean_caption(cell: object, where: object, what: str = "caption") -> str:
    """A caption with its white space collapsed; raises `DataError` for what is no text, and for an empty one.

    >>> clean_caption(7, "a.csv, row 2")
    Traceback (most recent call last):
    counterfoil.errors.DataError: a.csv, row 2: a caption is no text; given: 7; allowed: a text
    """
    if not isinstance(cell, str):
        raise DataError(f"a {what} is no text", where=where, given=shown(cell), allowed="a text")
    text = collapsed(cell)
    if not text:
        raise DataError(f"an empty {what}", where=where, allowed="a text")
    return text


def ratings_of(table: DataTable, columns: Sequence[str], *, missing: bool = False) -> NDArray[np.float64]:
    """(rows, columns) ratings; the mean of those that a cell lists.

    Where some may be `missing`, NaN stands for NaN and for empty cells. Raises `DataError` naming the row.
    """
    ratings = np.full((len(table), len(columns)), np.nan)
    for at, column in enumerate(columns):
        for row, cell in enumerate(table[column]):
            where = partial(table.where, row, column)
            if cell == []:
                raise DataError("no ratings", where=where())
            if isinstance(cell, list):
                ratings[row, at] = np.mean([rating(value, where, missing=missing) for value in cell])
            elif not (missing and (cell is None or (isinstance(cell, str) and not cell.strip()))):
                ratings[row, at] = rating(cell, where, missing=missing)
    return ratings


def rating(cell: object, where: Callable[[], str], *, missing: bool = False) -> float:
    """A rating as a number; raises `DataError` for anything else, and for NaN unless it may be `missing`.

    >>> rating("0.5", lambda: "a.csv, row 2")
    0.5
    """
    try:
        number = float(cell) if isinstance(cell, str | int | float | np.number) else None
    except ValueError:
        number = None
    if number is None or isinstance(cell, bool) or math.isinf(number):
        raise DataError("a rating is no number", where=where(), given=shown(cell), allowed="a finite number")
    if math.isnan(number) and not missing:
        raise DataError("a rating is missing", where=where(), given=shown(cell), allowed="a finite number")
    return number


def unique_ids(names: Sequence[str]) -> tuple[str, ...]:
    """Ids made unique: the second question of one name is called NAME/2, the third NAME/3.

    >>> unique_ids(["a", "b", "a"])
    ('a', 'b', 'a/2')
    """
    seen: dict[str, int] = {}
    ids = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        ids.append(name if seen[name] == 1 else f"{name}/{seen[name]}")
    return tuple(ids)


def left_out(number: int, what: str) -> tuple[str, ...]:
    """The note that says how many of something were left out; none where that is nothing.

    >>> left_out(3, "rows without a rating"), left_out(0, "rows")
    (('3 rows without a rating left out',), ())
    """
    return (f"{number:,} {what} left out",) if number else ()


def noted(source: str, notes: Sequence[str]) -> str:
    """A source with what there is to say of it behind it.

    >>> noted("a.csv", ["3 rows left out", "no references"])
    'a.csv (3 rows left out; no references)'
    """
    return f"{source} ({'; '.join(notes)})" if notes else source


def judged(
    card: Card,
    ids: Sequence[str],
    captions: Sequence[Sequence[Caption]],
    images: Sequence[Image],
    groupings: Mapping[str, tuple[str, ...]],
    *,
    ratings: NDArray[np.float64] | None = None,
    votes: NDArray[np.float64] | None = None,
    references: Sequence[Sequence[Caption]] | None = None,
    most: int | None = None,
    source: str,
    notes: Sequence[str] = (),
    **fields: Any,
) -> Benchmark:
    """Captions that people rated, or of which two of an image got `votes`; equal texts are one caption.

    `captions` holds a column for each candidate, `ratings` is (n, raters) with NaN where one is missing,
    `votes` (n, 2). Of the references the first `most` are used. `fields` are others of the questions, such as
    the `label` of each pair: else it is that of more votes, drawn with seed 0 where they are equal. Rated
    rows without a rating, and without a reference where others have some, are left out, and `source` says how
    many. Raises `DataError` where no row is left, and where the number of questions is not that of the card.
    """
    items, positions = listed(images)
    table = CaptionTable()
    candidates = np.array([table.add_all(row) for row in zip(*captions, strict=True)], dtype=np.int64)
    listed_references = None
    if references is not None:
        # Rows of one image share its list.
        lists: dict[int, list[int]] = {}
        for row in references:
            if id(row) not in lists:
                lists[id(row)] = table.add_all(row)[:most]
        listed_references = References.of([lists[id(row)] for row in references])
    if votes is not None:
        if "label" not in fields:
            drawn = np.random.default_rng(0).integers(0, 2, len(votes))
            ahead = np.sign(votes[:, 1] - votes[:, 0])
            fields["label"] = np.where(ahead == 0, drawn, ahead > 0).astype(np.int64)
        questions: "forms.Rated | forms.Preference" = forms.Preference.between(
            tuple(ids),
            candidates,
            positions,
            votes,
            groupings=groupings,
            references=listed_references,
            **fields,
        )
    else:
        assert ratings is not None
        rated = ~np.isnan(ratings).all(axis=1)
        referred = rated if listed_references is None else rated & (listed_references.counts > 0)
        notes = [
            *notes,
            *left_out(int((~rated).sum()), "rows without a rating"),
            *left_out(int((rated & ~referred).sum()), "rows without a reference"),
        ]
        rows = np.flatnonzero(referred).astype(np.int64)
        if not len(rows):
            raise DataError("no row is left", where=noted(source, notes))
        questions = forms.Rated(
            tuple(ids[row] for row in rows.tolist()),
            groupings={
                name: tuple(labels[row] for row in rows.tolist()) for name, labels in groupings.items()
            },
            captions=candidates[rows, 0],
            images=positions[rows],
            ratings=ratings[rows],
            references=None if listed_references is None else listed_references.take(rows),
            **fields,
        )
    whole = Benchmark(card, items, tuple(table.items), questions, noted(source, notes))
    return check_counts(whole.mentioned())


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
    questions = forms.Statement(
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
