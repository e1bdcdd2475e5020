"""Strengths from pairwise votes, as a result in tables."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from counterfoil.data.judgements import Votes, read_votes
from counterfoil.errors import DataError
from counterfoil.evaluation import preferences as bradley_terry
from counterfoil.evaluation.preferences import Preferences
from counterfoil.report.labels import amount
from counterfoil.report.tables import Cell, Column, Row, Table
from counterfoil.tasks.results import Tabular


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
        found, order = self.strengths, self.strengths.order
        if by == "name":
            return pa.table(
                {
                    "name": [found.names[i] for i in order],
                    "strength": [float(found.strength[i]) for i in order],
                    "low": [float(found.low[i]) for i in order],
                    "high": [float(found.high[i]) for i in order],
                    "rank_best": [found.ranks[i][0] for i in order],
                    "rank_worst": [found.ranks[i][1] for i in order],
                }
            )
        pairs = [(i, j) for i in order for j in order if i != j]
        return pa.table(
            {
                "name": [found.names[i] for i, _ in pairs],
                "over": [found.names[j] for _, j in pairs],
                "chance": [float(found.chance[at]) for at in pairs],
                "low": [float(found.chance_low[at]) for at in pairs],
                "high": [float(found.chance_high[at]) for at in pairs],
                "apart": [bool(found.apart[at]) for at in pairs],
            }
        )

    @property
    def heading(self) -> str:
        """How many names, votes and judges."""
        found = self.strengths
        voted = f"{found.votes:,} votes" + (f" of {found.judges:,} judges" if found.judges else "")
        return f"Bradley-Terry strengths of {len(found.names)}, {voted}"

    @property
    def tables(self) -> tuple[Table]:
        """The strengths with intervals and ranks."""
        rows = []
        for each in self.to_arrow().to_pylist():
            low, high = each["rank_best"], each["rank_worst"]
            strength = f"{each['strength']:.2f} [{each['low']:.2f}, {each['high']:.2f}]"
            rank = str(low) if low == high else f"{low} to {high}"
            rows.append(Row(each["name"], (Cell(strength), Cell(rank))))
        columns = (Column("strength", style="text"), Column("rank", style="text"))
        return (Table(self.heading, columns, tuple(rows), "name"),)

    @property
    def notes(self) -> list[str]:
        """The order, and what was left out or had to be added."""
        found = self.strengths
        lines = [f"order: {found.written_order}"]
        if found.own:
            lines.append(f"left out, since they prefer something to itself: {amount(found.own, 'vote')}")
        return [*lines, *([self.separation] if found.separated else [])]

    @property
    def separation(self) -> str:
        """In how many draws one won every vote against the rest, and what was done."""
        found = self.strengths
        return (
            f"in {found.separated:,} of {found.draws:,} draws one won every vote against the rest: "
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
