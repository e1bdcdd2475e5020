"""Candidate pairs for people to verify, and the judgements of them, as tables.

A pool has a row per direction, query and item. A pair that is proposed in both directions has the same number
`pair` in both; `place:MODEL` is at which place a model proposed it, 0 where it did not. Judgements have an
`answer` or a `gain` per row; only `direction`, `image`, `caption` and that are needed.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from counterfoil.benchmarks.records import distinct
from counterfoil.benchmarks.tables import DataTable, check_numbers, floats, integers, labels, read_table
from counterfoil.errors import DataError, InputError
from counterfoil.inputs.arrays import plain_array
from counterfoil.inputs.limits import RANGES, check_amount, check_room
from counterfoil.metrics.annotators import Pool
from counterfoil.store import csv_text

Direction = Literal["i2t", "t2i"]
DIRECTIONS: tuple[Direction, ...] = ("i2t", "t2i")

#: Which of two ids is the query's and which the item's.
ROLES: Mapping[Direction, tuple[str, str]] = {"i2t": ("image", "caption"), "t2i": ("caption", "image")}

#: How several answers to one pair are aggregated: the most frequent gain (of equally frequent ones the
#: lowest), or their mean.
AGGREGATES = ("majority", "mean")

#: How an answer may begin, and its gain (ECCV Caption section 3.2 and equation E.4).
_BEGINNINGS = {"100% yes": 1.0, "partially yes": 0.5, "mostly no": 0.0, "100% no": 0.0}
#: Whole answers, as ECCV Caption abbreviates them.
_SHORT = {"yes": 1.0, "weak yes": 0.5, "weak no": 0.0, "no": 0.0}


@dataclass(frozen=True, eq=False)
class Judgements:
    """The judged pairs of one direction, by query: pair p is `queries[query[p]]` with `items[item[p]]`."""

    direction: Direction
    queries: tuple[str, ...]
    items: tuple[str, ...]
    query: NDArray[np.int64]
    item: NDArray[np.int64]
    gain: NDArray[np.float64]
    place: Mapping[str, NDArray[np.int64]]


@dataclass(frozen=True, eq=False)
class JudgementTable:
    """A table of judgements: the directions in it, its `rows`, and what was counted on the way.

    `pairs` of image and caption have an answer, `several` of these more than one in a direction; `unanswered`
    rows are of pairs without an answer and left out.
    """

    directions: tuple[Judgements, ...]
    rows: int
    pairs: int
    several: int
    unanswered: int


def read_judgements(
    path: Path | DataTable, *, direction: Direction | None = None, aggregate: str = "majority"
) -> JudgementTable:
    """The judgements in a table; several answers to one pair become one as `aggregate` says."""
    if aggregate not in AGGREGATES:
        raise InputError("unknown policy for several answers", given=aggregate, allowed=AGGREGATES)
    table = path if isinstance(path, DataTable) else read_table(path)
    if "direction" in table:
        of_row = labels(table, "direction", DIRECTIONS)
    elif direction is not None:
        of_row = (direction,) * len(table)
    else:
        allowed = "i2t (the image is the query) or t2i in every row"
        hint = "or name one direction for all rows with --direction"
        raise DataError("no column 'direction'", where=table.source, allowed=allowed, hint=hint)
    images, captions = _ids(table, "image"), _ids(table, "caption")
    gains = _gains(table)
    image, caption = (np.unique(np.array(ids), return_inverse=True)[1].ravel() for ids in (images, captions))
    _, pair = np.unique(image * (int(caption.max()) + 1) + caption, return_inverse=True)
    pair = pair.reshape(-1)
    answered = ~np.isnan(gains)
    if not answered.any():
        raise DataError("no pair has an answer", where=table.source, given=f"{len(table)} rows")
    judged, judged_gains, n = pair[answered], gains[answered], int(pair.max()) + 1
    count = np.bincount(judged, minlength=n)
    if aggregate == "mean":
        total = np.bincount(judged, weights=judged_gains, minlength=n)
        merged = np.divide(total, count, out=np.full(n, np.nan), where=count > 0)[pair]
    else:
        levels, level = np.unique(judged_gains, return_inverse=True)
        cells = judged * len(levels) + level.reshape(-1)
        votes = np.bincount(cells, minlength=n * len(levels)).reshape(n, -1)
        # argmax takes the first of equals, which is the lowest gain.
        merged = np.where(count > 0, levels[votes.argmax(axis=1)], np.nan)[pair]
    answered_pairs = ~np.isnan(merged)
    # A pair that was proposed in both directions and judged once stands in the table twice.
    sides = 2 * pair + (np.array(of_row) == "t2i")
    codes, times = np.unique(sides[answered], return_counts=True)
    positions = {}
    for name in (name for name in table.columns if name.startswith("place:")):
        cells = [0 if cell is None or cell == "" else cell for cell in table[name]]
        of_rows = integers(DataTable({name: cells}, table.source, table.kind, table.parts), name)
        check_numbers(table, name, of_rows, of_rows < 0, "a place is no place", "1, 2, ... or 0")
        positions[name.removeprefix("place:")] = of_rows
    directions = []
    for way in DIRECTIONS:
        rows = np.flatnonzero(answered_pairs & (np.array(of_row) == way))
        if len(rows):
            query_ids, item_ids = (images, captions) if way == "i2t" else (captions, images)
            directions.append(_one_way(way, rows, query_ids, item_ids, merged, positions))
    return JudgementTable(
        tuple(directions),
        rows=len(table),
        pairs=len(np.unique(pair[answered])),
        several=len(np.unique(codes[times > 1] // 2)),
        unanswered=int((~answered_pairs).sum()),
    )


def gain_of(answer: str) -> float | None:
    """The gain of an answer in words, None where it is unknown. Case and blanks do not matter."""
    words = re.sub(r"\s+", " ", answer.strip().casefold()).replace(" %", "%")
    if words in _SHORT:
        return _SHORT[words]
    return next((gain for start, gain in _BEGINNINGS.items() if words.startswith(start)), None)


def pool_table(
    pools: Mapping[Direction, Pool],
    *,
    models: Sequence[str],
    queries: Mapping[Direction, Sequence[str]],
    images: Sequence[str],
    captions: Sequence[str],
    texts: Sequence[str | None] | None = None,
) -> pa.Table:
    """A pool as a table (see the module), by direction, query and item."""
    parts = []
    both = (("image", images), ("caption", captions))
    number = {role: {name: rows for rows, name in enumerate(ids)} for role, ids in both}
    for way, pooled in pools.items():
        query_role, item_role = ROLES[way]
        ids = images if item_role == "image" else captions
        query_ids = pa.array(list(queries[way]), pa.string()).take(pa.array(pooled.query))
        item_ids = pa.array(list(ids), pa.string()).take(pa.array(pooled.item))
        rows = np.array([number[query_role][name] for name in queries[way]], dtype=np.int64)[pooled.query]
        image, caption = (rows, pooled.item) if query_role == "image" else (pooled.item, rows)
        columns = {
            "pair": pa.array(image * len(captions) + caption),
            "direction": pa.repeat(pa.scalar(way), len(pooled.query)),
            "query": query_ids,
            "item": item_ids,
            "image": query_ids if query_role == "image" else item_ids,
            "caption": item_ids if query_role == "image" else query_ids,
        }
        if texts is not None:
            columns["text"] = pa.array(list(texts), pa.string()).take(pa.array(caption))
        for m, name in enumerate(models):
            columns[f"place:{name}"] = pa.array(pooled.place[:, m].astype(np.int32))
        parts.append(pa.table(columns))
    whole = pa.concat_tables(parts)
    # Numbered in the order of the table, from 1 on, so that the number is of use to people.
    codes, first, inverse = np.unique(whole["pair"].to_numpy(), return_index=True, return_inverse=True)
    rank = np.empty(len(codes), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(1, len(codes) + 1)
    return whole.set_column(0, "pair", pa.array(rank[inverse.reshape(-1)]))


def _filled(table: DataTable, column: str, problem: str) -> tuple[str, ...]:
    names = labels(table, column)
    if "" in names:
        raise DataError(problem, where=table.where(names.index(""), column))
    return names


def _ids(table: DataTable, column: str) -> tuple[str, ...]:
    ids = _filled(table, column, "empty id")
    # A pool that was written as CSV has an apostrophe before ids that a spreadsheet would compute.
    return tuple(map(csv_text, ids)) if table.kind in ("csv", "tsv") else ids


def _gains(table: DataTable) -> NDArray[np.float64]:
    """The gain of every row, NaN where it has no answer."""
    if "gain" in table:
        empty = np.array([cell is None or cell == "" for cell in table["gain"]])
        cells = [0.0 if none else cell for cell, none in zip(table["gain"], empty, strict=True)]
        gains = floats(DataTable({"gain": cells}, table.source, table.kind, table.parts), "gain")
        outside, allowed = (gains < 0) | (gains > 1), "0 (no match) to 1 (a full match)"
        check_numbers(table, "gain", gains, outside, "a gain is out of range", allowed)
        return np.where(empty, np.nan, gains)
    if "answer" not in table:
        raise DataError("no answers: no column 'answer' or 'gain'", where=table.source, allowed=table.columns)
    words = labels(table, "answer")
    gain_of_word = {word: gain_of(word) if word else np.nan for word in set(words)}
    odd = next((row for row, word in enumerate(words) if gain_of_word[word] is None), None)
    if odd is not None:
        what, where = "an answer that cannot be read", table.where(odd, "answer")
        allowed = "100% YES, Partially YES, Mostly NO, 100% NO, or a column 'gain' of numbers"
        raise DataError(what, where=where, given=words[odd], allowed=allowed)
    return np.array([gain_of_word[word] for word in words], dtype=np.float64)


def _one_way(
    way: Direction,
    rows: NDArray[np.int64],
    query_ids: Sequence[str],
    item_ids: Sequence[str],
    gains: NDArray[np.float64],
    positions: Mapping[str, NDArray[np.int64]],
) -> Judgements:
    """The judgements of one direction; rows of one pair become one, with the best place of each model."""
    queries, query = distinct(query_ids[row] for row in rows)
    items, item = distinct(item_ids[row] for row in rows)
    codes, first, inverse = np.unique(query * len(items) + item, return_index=True, return_inverse=True)
    merged = {}
    for name, place in positions.items():
        # The best place is the lowest above 0.
        best = np.full(len(codes), np.iinfo(np.int64).max)
        np.minimum.at(best, inverse.reshape(-1), np.where(place[rows] > 0, place[rows], best[0]))
        merged[name] = np.where(best == np.iinfo(np.int64).max, 0, best)
    gain = gains[rows][first]
    pairs = codes // len(items), codes % len(items)
    return Judgements(way, tuple(queries), tuple(items), *pairs, gain, merged)


#: The most votes of one thing against another in all.
_MOST_VOTES = 10**15
#: Columns that say who voted, so that one judge's votes are drawn together; the first there is counts.
JUDGES = ("judge", "worker", "annotator", "cluster")


@dataclass(frozen=True, eq=False)
class Votes:
    """`wins[i, j]` votes preferred `names[i]` to `names[j]`; `judges`, where known, has a table per judge."""

    names: tuple[str, ...]
    wins: NDArray[np.int64]
    judges: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        names = self.names if isinstance(self.names, tuple) else ()
        if len({name for name in names if isinstance(name, str)}) < max(len(names), 1):
            raise DataError("no different names of what was voted on", given=self.names)
        for field, ndim in (("wins", 2), ("judges", 3))[: 1 + (self.judges is not None)]:
            votes = plain_array(getattr(self, field))
            square = votes.ndim == ndim and votes.shape[-2:] == (len(names),) * 2
            whole = square and votes.dtype.kind in "iu"
            if not whole or not 0 <= votes.min() <= votes.max() <= _MOST_VOTES:
                allowed = f"a square of {len(names)} whole numbers from 0 to {_MOST_VOTES:,}"
                raise DataError("no counts of votes", where=field, given=votes, allowed=allowed)
            object.__setattr__(self, field, votes.astype(np.int64, copy=False))

    @property
    def total(self) -> int:
        """How many votes there are between two different things."""
        return int(self.wins.sum() - np.trace(self.wins))

    @property
    def self_votes(self) -> int:
        """How many votes prefer something to itself, which say nothing and are in no total."""
        return int(np.trace(self.wins))


def read_votes(path: Path) -> Votes:
    """The votes in a table of any kind that `read_table` reads.

    Either a row per vote, with columns `winner` and `loser`, optionally `count` (how many votes the row
    stands for) and one of `JUDGES`; or a square table whose first column names the rows and whose header
    names the same things in the same order, each cell the votes for its row against its column.
    """
    table = read_table(path)
    if "winner" not in table and "loser" not in table:
        first, *columns = table.columns
        rows = labels(table, first)
        if tuple(columns) != rows or len(set(rows)) < len(rows):
            what = "neither a list of votes nor a square table of them"
            given = f"columns {', '.join(table.columns)}; {len(table)} rows"
            allowed = "columns winner, loser[, count, judge], or as many columns as rows of the same names"
            raise DataError(what, where=table.source, given=given, allowed=allowed)
        return Votes(rows, np.stack([_counts(table, name) for name in columns], axis=1))
    sides = [_filled(table, name, "empty name") for name in ("winner", "loser")]
    count = _counts(table, "count") if "count" in table else np.ones(len(table), dtype=np.int64)
    names = tuple(sorted({*sides[0], *sides[1]}))
    number = {name: i for i, name in enumerate(names)}
    winner, loser = (np.array([number[name] for name in side], dtype=np.int64) for side in sides)
    n = len(names)
    check_amount("systems", n, what="the number of names", where=table.source)
    wins = np.zeros((n, n), dtype=np.int64)
    np.add.at(wins, (winner, loser), count)
    column = next((name for name in JUDGES if name in table), None)
    if column is None:
        return Votes(names, wins)
    who, judge = np.unique(_filled(table, column, "empty name"), return_inverse=True)
    what = f"the votes of {len(who):,} judges between {n:,} names"
    check_room(8 * n * n * len(who), where=table.source, what=what)
    judges = np.zeros((len(who), n, n), dtype=np.int64)
    np.add.at(judges, (judge.reshape(-1), winner, loser), count)
    return Votes(names, wins, judges)


def _counts(table: DataTable, column: str) -> NDArray[np.int64]:
    counts = integers(table, column)
    low, high = RANGES["votes"]
    odd = (counts < low) | (counts > high)
    check_numbers(table, column, counts, odd, "votes are counts", f"0 and above, up to {high:,}")
    return counts
