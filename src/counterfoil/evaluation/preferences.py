"""Bradley-Terry strengths from pairwise votes, with intervals and order.

Intervals are percentiles over resampled votes: whole judges where it is known who voted, since one judge's
votes resemble each other, else the votes of each pair on their own. In a resample in which one wins
every vote, strengths are not finite. Leaving it out would leave out just those in which the strongest wins
most, and make intervals too narrow; so half a vote is added both ways to every pair that met, in those
resamples alone, and they are counted.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from counterfoil.benchmarks.judgements import Votes
from counterfoil.errors import InputError
from counterfoil.metrics.bradley_terry import bradley_terry, bradley_terry_draws, connected, one_sided
from counterfoil.stats import Reals, Truths
from counterfoil.stats.bootstrap import cluster_draws, percentiles, share_draws

#: Resamples are solved together, as many as fit this many numbers.
_AT_ONCE = 1 << 20


@dataclass(frozen=True, eq=False)
class Preferences:
    """Strengths (sum 100) and chances p_i / (p_i + p_j) of being preferred, with intervals."""

    names: tuple[str, ...]
    strength: Reals
    low: Reals
    high: Reals
    chance: Reals
    chance_low: Reals
    chance_high: Reals
    votes: int
    judges: int | None
    draws: int
    seed: int
    separated: int
    #: Votes for something over itself, which were left out.
    self_votes: int = 0

    @property
    def told_apart(self) -> Truths:
        """(n, n): which pairs are told apart."""
        separate: Truths = (self.chance_low > 0.5) | (self.chance_high < 0.5)
        return separate & ~np.eye(len(self.names), dtype=bool)

    @property
    def order(self) -> tuple[int, ...]:
        """Positions from the strongest to the weakest; of equal strengths the earlier name."""
        return tuple(int(i) for i in np.argsort(-self.strength, kind="stable"))

    @property
    def written_order(self) -> str:
        """The names by strength, "≈" between neighbours that are not told apart: "C > D ≈ A"."""
        words = [self.names[self.order[0]]]
        for before, after in zip(self.order, self.order[1:], strict=False):
            words += [">" if self.told_apart[before, after] else "≈", self.names[after]]
        return " ".join(words)

    @property
    def ranks(self) -> tuple[tuple[int, int], ...]:
        """The best and the worst rank each may have: who is surely ahead of it, who surely behind."""
        ahead = (self.told_apart & (self.chance < 0.5)).sum(axis=1)
        behind = (self.told_apart & (self.chance > 0.5)).sum(axis=1)
        return tuple((int(a) + 1, len(self.names) - int(b)) for a, b in zip(ahead, behind, strict=True))

    def to_json(self) -> dict[str, Any]:
        """All of it as JSON values, strongest first."""

        def ends(value: Any, *of: Reals) -> dict[str, Any]:
            return {name: float(a[value]) for name, a in zip(("value", "low", "high"), of, strict=True)}

        chances = self.chance, self.chance_low, self.chance_high
        return {
            "order": self.written_order,
            "strengths": {
                self.names[i]: {
                    **ends(i, self.strength, self.low, self.high),
                    "rank_best": self.ranks[i][0],
                    "rank_worst": self.ranks[i][1],
                }
                for i in self.order
            },
            "preferred": {
                self.names[i]: {self.names[j]: ends((i, j), *chances) for j in self.order if j != i}
                for i in self.order
            },
            "votes": self.votes,
            "votes_for_oneself": self.self_votes,
            "judges": self.judges,
            "interval": {
                "method": "bootstrap over judges" if self.judges else "bootstrap over votes",
                "level": 0.95,
                "draws": self.draws,
                "seed": self.seed,
                "draws_with_half_votes": self.separated,
            },
        }


def preferences(votes: Votes, *, draws: int = 10_000, seed: int = 0) -> Preferences:
    """Bradley-Terry strengths of what was voted on, with percentile intervals (ECCV Caption appendix D.1).

    Raises `InputError` where strengths are not finite, for one name alone, and for a single judge.
    """
    if len(votes.names) > 1 and (extreme := one_sided(votes.wins)):
        some = ", ".join(votes.names[i] for i in extreme[:5]) + (", …" if len(extreme) > 5 else "")
        raise InputError(
            "preferences have no finite strengths",
            given=f"{some}: no vote won against the rest",
            allowed="every group wins and loses some",
            hint="leave those out, or collect more votes",
        )
    strength = bradley_terry(votes.wins)
    judges = None if votes.judges is None else len(votes.judges)
    if judges == 1:
        raise InputError("one judge alone has no spread", hint="leave out the column that names judges")
    drawn, separated = [], 0
    met = (votes.wins + votes.wins.T > 0) & ~np.eye(len(votes.names), dtype=bool)
    for wins in _resamples(votes, draws, seed):
        split = ~connected(wins)
        separated += int(split.sum())
        drawn.append(bradley_terry_draws(wins + 0.5 * (met & split[:, None, None])))
    strengths = np.concatenate(drawn)
    low, high = percentiles(strengths)
    # Monotone in the ratio of the strengths, so its percentiles are those of the log ratio.
    between = [percentiles(one[:, None] / (one[:, None] + strengths)) for one in strengths.T]
    chance_low, chance_high = np.stack(between, axis=1)
    chance = strength[:, None] / (strength[:, None] + strength[None, :])
    numbers = strength, low, high, chance, chance_low, chance_high
    return Preferences(votes.names, *numbers, votes.total, judges, draws, seed, separated, votes.self_votes)


def _resamples(votes: Votes, draws: int, seed: int) -> Iterator[Reals]:
    """Blocks of (block, n, n) tables of votes drawn with replacement."""
    n = len(votes.names)
    size = max(1, _AT_ONCE // (n * n))
    if votes.judges is not None:
        flat = votes.judges.reshape(len(votes.judges), -1).astype(np.float64)
        for counts in cluster_draws(len(flat), draws, seed=seed):
            block = (counts @ flat).reshape(-1, n, n)
            yield from (block[lo : lo + size] for lo in range(0, len(block), size))
        return
    i, j = np.triu_indices(n, 1)
    here, both = votes.wins[i, j], votes.wins[i, j] + votes.wins[j, i]
    for won in share_draws(here, both, draws, seed=seed):
        block = np.zeros((len(won), n, n))
        block[:, i, j], block[:, j, i] = won, both - won
        yield from (block[lo : lo + size] for lo in range(0, len(block), size))
