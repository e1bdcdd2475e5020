"""Votes between two things at a time, as people hand them in: a row per vote, or a square table of counts."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from counterfoil.data.tables import DataTable, integers, labels, read_table
from counterfoil.errors import DataError
from counterfoil.inputs.amounts import RANGES, check_amount
from counterfoil.inputs.memory import check_room

#: Columns that say who voted, so that one judge's votes are drawn together; the first there is counts.
JUDGES = ("judge", "worker", "annotator", "cluster")


@dataclass(frozen=True, eq=False)
class Votes:
    """`wins[i, j]` votes preferred `names[i]` to `names[j]`; `judges`, where known, has a table per judge."""

    names: tuple[str, ...]
    wins: NDArray[np.int64]
    judges: NDArray[np.int64] | None = None

    @property
    def total(self) -> int:
        """How many votes there are between two different things."""
        return int(self.wins.sum() - np.trace(self.wins))

    @property
    def own(self) -> int:
        """How many votes prefer something to itself, which say nothing and are in no total."""
        return int(np.trace(self.wins))


def read_votes(path: Path) -> Votes:
    """The votes in a table (CSV, TSV, JSON, JSON Lines or Parquet).

    Either a row per vote, with columns `winner` and `loser`, optionally `count` (how many votes the row
    stands for) and one of `JUDGES`; or a square table whose first column names the rows and whose header
    names the same things in the same order, each cell the votes for its row against its column.

    Raises `DataError` where the table is neither, names are missing, or counts are not whole and 0 or above.
    """
    table = read_table(path)
    if "winner" in table or "loser" in table:
        return _from_rows(table)
    return _from_square(table)


def _from_rows(table: DataTable) -> Votes:
    sides = [labels(table, "winner"), labels(table, "loser")]
    for side, role in zip(sides, ("winner", "loser"), strict=True):
        if "" in side:
            raise DataError("empty name", where=table.where(side.index(""), role))
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
    who = labels(table, column)
    if "" in who:
        raise DataError("empty name", where=table.where(who.index(""), column))
    _, judge = np.unique(who, return_inverse=True)
    check_room(
        8 * n * n * (int(judge.max()) + 1),
        where=table.source,
        what=f"the votes of {int(judge.max()) + 1:,} judges between {n:,} names",
    )
    judges = np.zeros((int(judge.max()) + 1, n, n), dtype=np.int64)
    np.add.at(judges, (judge.reshape(-1), winner, loser), count)
    return Votes(names, wins, judges)


def _from_square(table: DataTable) -> Votes:
    first, *columns = table.columns
    rows = labels(table, first)
    if tuple(columns) != rows or len(set(rows)) < len(rows):
        raise DataError(
            "neither a list of votes nor a square table of them",
            where=table.source,
            given=f"columns {', '.join(table.columns)}; {len(table)} rows",
            allowed="columns winner, loser[, count, judge], or as many columns as rows of the same names",
        )
    return Votes(rows, np.stack([_counts(table, name) for name in columns], axis=1))


def _counts(table: DataTable, column: str) -> NDArray[np.int64]:
    found = integers(table, column)
    low, high = RANGES["votes"]
    odd = (found < low) | (found > high)
    if odd.any():
        row = int(np.argmax(odd))
        raise DataError(
            "votes are counts",
            where=table.where(row, column),
            given=int(found[row]),
            allowed=f"0 and above, up to {high:,}",
        )
    return found
