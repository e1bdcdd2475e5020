"""Strengths from pairwise votes, as a result in tables."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from counterfoil.benchmarks.judgements import Votes, read_votes
from counterfoil.errors import DataError
from counterfoil.evaluation import preferences as bradley_terry
from counterfoil.evaluation.preferences import Preferences
from counterfoil.jobs.results import Tabular
from counterfoil.report.labels import amount
from counterfoil.report.tables import Cell, Column, Row, Table


@dataclass(frozen=True, eq=False, repr=False)
class VoteStrengths(Tabular):
    """Bradley-Terry strengths, which sum to 100, and the chance that one is preferred to another.

    Rows by "name" are one per name, strongest first: `name`, `strength`, `low`, `high` (95 %), and the best
    and worst rank that it may have (`rank_best`, `rank_worst`). Rows by "pair" are one per ordered pair:
    `name`, `over`, the `chance` in [0, 1] that it is preferred, `low`, `high`, and whether that interval
    leaves out one half (`apart`).
    """

    strengths: Preferences

    rows_by = ("name", "pair")

    def _rows(self, by: str) -> pa.Table:
        strengths, order = self.strengths, self.strengths.order
        if by == "name":
            return pa.table(
                {
                    "name": [strengths.names[i] for i in order],
                    "strength": [float(strengths.strength[i]) for i in order],
                    "low": [float(strengths.low[i]) for i in order],
                    "high": [float(strengths.high[i]) for i in order],
                    "rank_best": [strengths.ranks[i][0] for i in order],
                    "rank_worst": [strengths.ranks[i][1] for i in order],
                }
            )
        pairs = [(i, j) for i in order for j in order if i != j]
        return pa.table(
            {
                "name": [strengths.names[i] for i, _ in pairs],
                "over": [strengths.names[j] for _, j in pairs],
                "chance": [float(strengths.chance[at]) for at in pairs],
                "low": [float(strengths.chance_low[at]) for at in pairs],
                "high": [float(strengths.chance_high[at]) for at in pairs],
                "apart": [bool(strengths.apart[at]) for at in pairs],
            }
        )

    @property
    def heading(self) -> str:
        """How many names, votes and judges."""
        strengths = self.strengths
        voted = f"{strengths.votes:,} votes" + (
            f" of {strengths.judges:,} judges" if strengths.judges else ""
        )
        return f"Bradley-Terry strengths of {len(strengths.names)}, {voted}"

    @property
    def tables(self) -> tuple[Table]:
        """The strengths with intervals and ranks."""
        rows = []
        for row in self.to_arrow().to_pylist():
            low, high = row["rank_best"], row["rank_worst"]
            strength = f"{row['strength']:.2f} [{row['low']:.2f}, {row['high']:.2f}]"
            rank = str(low) if low == high else f"{low} to {high}"
            rows.append(Row(row["name"], (Cell(strength), Cell(rank))))
        columns = (Column("strength", style="text"), Column("rank", style="text"))
        return (Table(self.heading, columns, tuple(rows), "name"),)

    @property
    def notes(self) -> list[str]:
        """The order, and what was left out or had to be added."""
        strengths = self.strengths
        lines = [f"order: {strengths.written_order}"]
        if strengths.own:
            lines.append(f"left out, since they prefer something to itself: {amount(strengths.own, 'vote')}")
        return [*lines, *([self.separation] if strengths.separated else [])]

    @property
    def separation(self) -> str:
        """In how many draws one won every vote against the rest, and what was done."""
        strengths = self.strengths
        return (
            f"in {strengths.separated:,} of {strengths.draws:,} draws one won every vote against the rest: "
            "half a vote was added both ways to every pair in these"
        )

    def __repr__(self) -> str:
        return f"<VoteStrengths: {self.strengths.written_order}>"

    def to_json(self) -> dict[str, Any]:
        """All of it as plain values, as `preferences --json` writes it."""
        return self.strengths.to_json()

    def plot(self) -> Any:
        """A matplotlib figure of the strengths with intervals."""
        from counterfoil.report.annotators import strengths

        return strengths(self.strengths)


def preferences(
    votes: str | Path | Votes,
    *,
    self_votes: Literal["leave-out", "error"] = "leave-out",
    draws: int = 10_000,
    seed: int = 0,
) -> VoteStrengths:
    """Bradley-Terry strengths from votes, as `counterfoil.preferences` describes them.

    Raises `DataError` for a table without votes, `InputError` where the votes leave strengths open.

    >>> import numpy as np
    >>> found = preferences(Votes(("a", "b"), np.array([[0, 3], [1, 0]])), draws=100)
    >>> found.strengths.strength.round(6).tolist()
    [75.0, 25.0]
    """
    given = votes if isinstance(votes, Votes) else read_votes(Path(votes))
    if given.own and self_votes == "error":
        raise DataError(
            "votes for something over itself",
            where=None if isinstance(votes, Votes) else votes,
            given=f"{given.own:,} of {given.own + given.total:,}",
            hint="correct them, or leave them out with --self-votes leave-out",
        )
    return VoteStrengths(bradley_terry.preferences(given, draws=draws, seed=seed))
