"""Pools of candidate pairs: their size, and pooling in rounds (ECCV Caption 3.2, 6).

In a round each model proposes, for every query, its first k items that were not judged before. A model has
found a right pair where its list has it no lower than it has proposed so far, whoever proposed it before: so
finds overlap as if each had been judged alone (`counterfoil.stats.capture_recapture`).
"""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from counterfoil.benchmarks.judgements import Direction
from counterfoil.metrics.annotators import Pool, pool_yield
from counterfoil.stats import Reals, Truths, Wholes
from counterfoil.stats.capture_recapture import Population


@dataclass(frozen=True, eq=False)
class Summary:
    """A pool in numbers; `rows` are pairs by direction, `pairs` those of image and caption.

    `proposed`, `alone` and `new` count rows per model; `curve[m - 1, j - 1]` are the mean rows of m
    models that hand in j items each.
    """

    models: tuple[str, ...]
    k: int
    queries: Mapping[str, int]
    rows: int
    pairs: int
    proposed: tuple[int, ...]
    alone: tuple[int, ...]
    new: tuple[int, ...]
    curve: Reals
    excluded: int

    @property
    def heading(self) -> str:
        """How many pairs there are to verify, of how many models and queries."""
        nouns = {"i2t": "images", "t2i": "captions"}
        queries = " and ".join(f"{n:,} {nouns[way]}" for way, n in self.queries.items())
        models = f"{len(self.models)} model{'s' if len(self.models) > 1 else ''}"
        return f"{self.pairs:,} pairs to verify: the first {self.k} of {models} for {queries}"

    def lines(self) -> list[str]:
        """What was pooled, in words."""
        together = sum(self.proposed)
        share = f" ({100 * (1 - self.rows / together):.1f} % were doubled)" if together else ""
        lines = [f"{together:,} proposals are {self.rows:,} different ones{share}"]
        if self.rows != self.pairs:
            lines[0] += f", {self.pairs:,} pairs of an image and a caption, whichever asked"
        if self.excluded:
            lines.append(f"{self.excluded:,} more were left out, known to be right")
        return lines

    def to_json(self) -> dict[str, Any]:
        """All of it as JSON values."""
        return {
            "models": list(self.models),
            "k": self.k,
            "queries": dict(self.queries),
            "proposals": sum(self.proposed),
            "rows": self.rows,
            "pairs": self.pairs,
            "excluded": self.excluded,
            "by_model": {
                name: dict(zip(("proposed", "alone", "new"), counts, strict=True))
                for name, *counts in zip(self.models, self.proposed, self.alone, self.new, strict=True)
            },
            "yield": {str(m + 1): row.tolist() for m, row in enumerate(self.curve)},
        }


def without(pooled: Pool, judged: Wholes) -> Pool:
    """The pool without some pairs, given as (pairs, 2) rows of query and item."""
    if not len(judged):
        return pooled
    width = 1 + max(int(pooled.item.max(initial=0)), int(judged[:, 1].max()))
    unknown = ~np.isin(pooled.query * width + pooled.item, judged[:, 0] * width + judged[:, 1])
    return Pool(pooled.query[unknown], pooled.item[unknown], pooled.place[unknown])


def summary(
    pools: Mapping[Direction, Pool],
    k: int,
    models: Sequence[str],
    queries: Mapping[Direction, int],
    pair_of: Mapping[Direction, Wholes],
    excluded: int = 0,
) -> Summary:
    """A pool of one or both directions in numbers; `pair_of` has a number per row, equal for equal pairs."""
    handed_in = np.concatenate([pooled.place > 0 for pooled in pools.values()])
    first = np.argmax(handed_in, axis=1)
    alone = handed_in & (handed_in.sum(axis=1) == 1)[:, None]
    n = len(models)
    return Summary(
        models=tuple(models),
        k=k,
        queries={str(way): number for way, number in queries.items()},
        rows=len(handed_in),
        pairs=len(np.unique(np.concatenate(list(pair_of.values())))),
        proposed=tuple(handed_in.sum(axis=0).tolist()),
        alone=tuple(alone.sum(axis=0).tolist()),
        new=tuple(np.bincount(first, minlength=n).tolist()),
        curve=np.sum([pool_yield(pooled, k) for pooled in pools.values()], axis=0),
        excluded=excluded,
    )


def unjudged(tops: Sequence[Wholes], judged: Wholes, k: int, width: int) -> tuple[Pool, list[Wholes]]:
    """The pool of each model's first k unjudged items per query, and the (queries,) depth each list reached.

    `tops` are (queries, depth) items, -1 behind the end; `judged` are codes query * width + item.
    """
    codes, positions, depths = [], [], []
    for top in tops:
        n, deep = top.shape
        code = np.arange(n)[:, None] * width + top
        free = (top >= 0) & ~np.isin(code, judged)
        taken = free & (np.cumsum(free, axis=1) <= k)
        _, column = np.nonzero(taken)
        codes.append(code[taken])
        positions.append(column + 1)
        depths.append(np.where(taken, np.arange(1, deep + 1), 0).max(axis=1, initial=0))
    pairs, inverse = np.unique(np.concatenate(codes), return_inverse=True)
    place = np.zeros((len(pairs), len(tops)), dtype=np.int64)
    ends = np.cumsum([0, *map(len, codes)])
    for model, ranks in enumerate(positions):
        place[inverse.reshape(-1)[ends[model] : ends[model + 1]], model] = ranks
    return Pool(pairs // width, pairs % width, place), depths


def found_by(tops: Sequence[Wholes], depths: Sequence[Wholes], query: Wholes, item: Wholes) -> Truths:
    """(pairs, models) which pairs stand in a model's list no lower than `depths` of their query."""
    finds = np.zeros((len(query), len(tops)), dtype=bool)
    for model, (top, depth) in enumerate(zip(tops, depths, strict=True)):
        shown = np.arange(1, top.shape[1] + 1) <= depth[:, None]
        finds[:, model] = ((top[query] == item[:, None]) & shown[query]).any(axis=1)
    return finds


@dataclass(frozen=True)
class PoolRound:
    """One round and all so far; `at_least` bounds all right pairs from below, `total` is their number."""

    number: int
    proposed: int
    judged: int
    right: int
    by_model: Mapping[str, tuple[int, int, int]]
    all_judged: int
    all_right: int
    at_least: Population | None
    total: int | None = None

    @property
    def yielded(self) -> float:
        """The share of judged pairs that are right, NaN where none was judged."""
        return self.right / self.judged if self.judged else float("nan")

    @property
    def recall(self) -> float | None:
        """The share of all right pairs that was found, where the truth is known."""
        return None if not self.total else self.all_right / self.total

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        named = ("proposed", "judged", "right")
        by_model = {name: dict(zip(named, of, strict=True)) for name, of in self.by_model.items()}
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        bound = fields.pop("at_least")
        chao = bound and {"found": bound.n_found, "total": bound.total, "low": bound.low, "high": bound.high}
        whole = {**fields, "by_model": by_model, "missing": {"chao": chao}}
        return {"round": whole.pop("number"), **whole, "recall": self.recall}
