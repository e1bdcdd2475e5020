"""Strengths from pairwise votes, as a result in tables."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Unpack

from counterfoil.benchmarks.judgements import Votes, read_votes
from counterfoil.evaluation import preferences as bradley_terry
from counterfoil.evaluation.preferences import Preferences
from counterfoil.jobs.job import job
from counterfoil.jobs.results import Tabular, declared, lines
from counterfoil.jobs.shared_options import DRAWS, SEED, Reporting
from counterfoil.report.tables import Cell, Column, Table, amount

#: The most names whose chances over each other are shown.
_FEW = 12


class VoteStrengths(Tabular):
    """Bradley-Terry strengths, which sum to 100, and the chance that one is preferred to another."""

    strengths: Preferences

    rows_by = declared(
        name="strongest first: `name`, `strength: float`, `low: float`, `high: float` (95 %), and the best "
        "and worst rank that it may have (`rank_best: int`, `rank_worst: int`)",
        pair="one per ordered pair: `name`, `over`, the `chance: float` in [0, 1] that it is preferred, "
        "`low: float`, `high: float`, and whether that interval leaves out one half (`apart: bool`)",
    )
    plot_title = "Bradley-Terry strengths"

    def _rows(self, by: str) -> Iterator[Any]:
        of, names = self.strengths, self.strengths.names
        for i in of.order:
            if by == "name":
                best, worst = of.ranks[i]
                ends = {"low": of.low[i], "high": of.high[i], "rank_best": best, "rank_worst": worst}
                yield {"name": names[i], "strength": of.strength[i], **ends}
                continue
            for j in of.order:
                if i != j:
                    ends = {"low": of.chance_low[i, j], "high": of.chance_high[i, j]}
                    facts = {"chance": of.chance[i, j], **ends, "apart": of.told_apart[i, j]}
                    yield {"name": names[i], "over": names[j], **facts}

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
        """The strengths with intervals and ranks, and of few names the chances over each other."""
        strengths = self.strengths
        over = strengths.order if len(strengths.order) <= _FEW else []
        columns = [
            Column("strength", look="bold"),
            Column("95 % interval", align="center"),
            Column("rank", align="center"),
            *(Column(f"over {strengths.names[j]}") for j in over),
        ]
        rows: list[tuple[str | Cell, ...]] = []
        for i in strengths.order:
            best, worst = strengths.ranks[i]
            chances = (
                Cell(
                    "" if i == j else f"{100 * strengths.chance[i, j]:.1f} %",
                    rank=int(bool(strengths.told_apart[i, j] and strengths.chance[i, j] > 0.5)),
                )
                for j in over
            )
            interval = f"[{strengths.low[i]:.2f}, {strengths.high[i]:.2f}]"
            rank = str(best) if best == worst else f"{best} to {worst}"
            rows.append((strengths.names[i], f"{strengths.strength[i]:.2f}", interval, rank, *chances))
        return (Table.of(self.heading, "name", columns, rows),)

    @property
    def notes(self) -> list[str]:
        """The order, and what was left out or had to be added."""
        strengths, order = self.strengths, self.strengths.written_order
        # Where it is rare it does not reach the ends of a 95 % interval.
        often = "warning: " if strengths.separated > 0.02 * strengths.draws else ""
        votes = amount(strengths.self_votes, "vote")
        return lines(
            f"order: {order}"
            + ("; ≈: neighbours that these votes do not tell apart" if " ≈ " in order else ""),
            strengths.self_votes and f"warning: left out, since they prefer something to itself: {votes}",
            strengths.separated
            and f"{often}in {strengths.separated:,} of {strengths.draws:,} draws one won every vote against "
            "the rest: half a vote was added both ways to every pair in these",
        )

    def __repr__(self) -> str:
        return f"<VoteStrengths: {self.strengths.written_order}>"

    def to_json(self) -> dict[str, Any]:
        return self.strengths.to_json()

    def plot(self) -> Any:
        """A matplotlib figure of the strengths with intervals."""
        from counterfoil.report.annotators import strengths

        return strengths(self.strengths)


@job(
    outputs="plot json",
    examples="""Examples:
  counterfoil annotate preferences votes.csv
  counterfoil annotate preferences votes.csv --plot strengths.svg --json strengths.json

votes.csv has a row per vote (columns winner, loser; optionally count, judge), or is a square table: the names
in its first column and in its header, each cell the votes for its row against its column.""",
)
def preferences(
    votes: str | Path | Votes,
    *,
    draws: Annotated[int, DRAWS] = 10_000,
    seed: Annotated[int, SEED] = 0,
    **reporting: Unpack[Reporting],
) -> VoteStrengths:
    """Estimate Bradley-Terry strengths from pairwise votes.

    Intervals resample judges if a column names them (judge, worker, annotator or cluster), else the votes of
    each pair. Equal seeds give equal numbers.

    Raises `InputError` where the votes leave strengths open.

    Arguments:
        votes: Votes: CSV, TSV, JSON, JSON Lines or Parquet.

    >>> import numpy as np
    >>> result = preferences(Votes(("a", "b"), np.array([[0, 3], [1, 0]])), draws=100)
    >>> result, result.strengths.strength.round(6).tolist()
    (<VoteStrengths: a ≈ b>, [75.0, 25.0])
    """
    given = votes if isinstance(votes, Votes) else read_votes(Path(votes))
    return VoteStrengths(bradley_terry.preferences(given, draws=draws, seed=seed))
