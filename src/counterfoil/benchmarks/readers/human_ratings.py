"""Shared parts of the readers of human judgements: texts as captions, ratings, counts of skipped rows."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from counterfoil.benchmarks.benchmark import Benchmark, Card
from counterfoil.benchmarks.forms import Ids, Preference, Rated
from counterfoil.benchmarks.readers.questions import check_counts
from counterfoil.benchmarks.records import Caption, Image
from counterfoil.benchmarks.references import References, collapsed
from counterfoil.benchmarks.tables import shown
from counterfoil.errors import DataError


@dataclass
class CaptionTable:
    """Captions as they are met, one per text, called by the name that the text was first met under."""

    items: list[Caption] = field(default_factory=list)
    _at: dict[str, int] = field(default_factory=dict, repr=False)

    def add(self, text: str, name: str) -> int:
        """The position of a text that was collapsed already."""
        at = self._at.get(text)
        if at is None:
            at = self._at[text] = len(self.items)
            self.items.append(Caption(name, text))
        return at

    def add_all(self, texts: Iterable[str], name: str) -> list[int]:
        """The positions of several texts, called NAME#0, NAME#1 and so on."""
        return [self.add(text, f"{name}#{number}") for number, text in enumerate(texts)]

    @property
    def texts(self) -> list[str]:
        """All texts by position."""
        return [str(item.text) for item in self.items]


@dataclass
class Skipped:
    """Counts of what a reader left out, by reason, for the benchmark's source line."""

    counts: dict[str, int] = field(default_factory=dict)

    def out(self, why: str, number: int = 1) -> None:
        """`number` more were left out, which `why` says in words ("rows without a rating")."""
        if number:
            self.counts[why] = self.counts.get(why, 0) + number

    def said(self, source: str, *more: str) -> str:
        """The source with what was left out behind it.

        >>> left = Skipped()
        >>> left.out("rows without a rating", 3)
        >>> left.said("a.csv", "", "no references")
        'a.csv (3 rows without a rating left out; no references)'
        """
        parts = [f"{number:,} {why} left out" for why, number in self.counts.items()]
        parts += [note for note in more if note]
        return f"{source} ({'; '.join(parts)})" if parts else source


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


def rating(cell: object, where: object, *, missing: bool = False) -> float:
    """A rating as a number; raises `DataError` for anything else, and for NaN unless it may be `missing`.

    >>> rating("0.5", "a.csv, row 2")
    0.5
    """
    try:
        number = float(cell) if isinstance(cell, str | int | float | np.number) else None
    except ValueError:
        number = None
    if number is None or isinstance(cell, bool) or math.isinf(number):
        raise DataError("a rating is no number", where=where, given=shown(cell), allowed="a finite number")
    if math.isnan(number) and not missing:
        raise DataError("a rating is missing", where=where, given=shown(cell), allowed="a finite number")
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


def placed(names: Sequence[str]) -> tuple[list[str], Ids]:
    """Distinct names in order of first use, and the position of each one given."""
    number: dict[str, int] = {}
    positions = [number.setdefault(name, len(number)) for name in names]
    return list(number), np.array(positions, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class RatingRows:
    """Rated candidates as a reader finds them, also those without a rating or a reference."""

    ids: Sequence[str]
    #: Positions of captions and of images, (n,) each.
    candidates: Ids
    pictures: Ids
    #: (n, raters), NaN where a rating is missing.
    ratings: NDArray[np.float64]
    references: References | None
    groupings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def complete(self, left: Skipped) -> Ids:
        """The rows with a rating and, where `references` is given, a reference; `left` counts the rest."""
        rated_rows = ~np.isnan(self.ratings).all(axis=1)
        left.out("rows without a rating", int((~rated_rows).sum()))
        keep = rated_rows
        if self.references is not None:
            bare = rated_rows & (self.references.counts == 0)
            left.out("rows without a reference", int(bare.sum()))
            keep = rated_rows & ~bare
        return np.flatnonzero(keep).astype(np.int64)


def rated(
    card: Card,
    rows_read: RatingRows,
    captions: Sequence[Caption],
    images: Sequence[Image],
    *,
    left: Skipped,
    source: str,
    notes: Sequence[str] = (),
    path: Path | None,
    corpus: Path | None = None,
    raters: Literal["points", "apart"] = "points",
    decimals: int | None = None,
) -> Benchmark:
    """The benchmark of the complete rows; `source` is extended by the counts of those left out.

    Raises `DataError` where no row is complete, and where the number of questions is not that of the card.
    """
    rows = rows_read.complete(left)
    if not len(rows):
        raise DataError("no row is left", where=left.said(source))
    questions = Rated(
        tuple(rows_read.ids[row] for row in rows.tolist()),
        groupings={
            name: tuple(labels[row] for row in rows.tolist()) for name, labels in rows_read.groupings.items()
        },
        captions=rows_read.candidates[rows],
        images=rows_read.pictures[rows],
        ratings=rows_read.ratings[rows],
        references=None if rows_read.references is None else rows_read.references.take(rows),
        raters=raters,
        decimals=decimals,
    )
    return finished(
        card, captions, images, questions, source=left.said(source, *notes), path=path, corpus=corpus
    )


def finished(
    card: Card,
    captions: Sequence[Caption],
    images: Sequence[Image],
    questions: Rated | Preference,
    *,
    source: str,
    path: Path | None,
    corpus: Path | None = None,
) -> Benchmark:
    """The benchmark with the items that its questions mention, if it has as many as its card says."""
    whole = Benchmark(card, tuple(images), tuple(captions), questions, source, path, corpus)
    return check_counts(whole.select(np.arange(len(questions))))
