"""Size of a pool of candidate pairs: pairs by model and by k, tasks and cost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from counterfoil.metrics.annotators import Pool, pool_yield


@dataclass(frozen=True)
class Tasks:
    """How pairs are divided into tasks: pairs to judge per task, and pairs with a known answer beside them.

    ECCV Caption section 3.2 and appendix B.2: 18 and 2, 1.40 dollars a task in the first stage.
    """

    per_task: int = 18
    golden: int = 2
    answers: int = 1
    price: float = 1.4

    def of(self, pairs: int) -> int:
        """How many tasks so many pairs make.

        >>> Tasks().of(38_880), Tasks().of(46_424), Tasks(answers=3).of(19)
        (2160, 2580, 6)
        """
        return -(-pairs // self.per_task) * self.answers


@dataclass(frozen=True, eq=False)
class Summary:
    """A pool in numbers, both directions together except for `queries`, which are by direction.

    `rows` are pairs by direction; `pairs` counts image and caption once where both directions propose them.
    `proposed`, `alone` and `new` are rows per model: all it proposes, those only it proposes, those that no
    model before it does. `curve[m - 1, j - 1]` are the rows of m models that hand in j items each, the mean
    over all choices of m models. `excluded` rows were known to be right.
    """

    models: tuple[str, ...]
    k: int
    queries: Mapping[str, int]
    rows: int
    pairs: int
    proposed: tuple[int, ...]
    alone: tuple[int, ...]
    new: tuple[int, ...]
    curve: NDArray[np.float64]
    tasks: Tasks
    excluded: int

    @property
    def n_tasks(self) -> int:
        """How many tasks all pairs make."""
        return self.tasks.of(self.pairs)

    @property
    def cost(self) -> float:
        """What all tasks cost, in the unit of the price."""
        return self.n_tasks * self.tasks.price

    @property
    def heading(self) -> str:
        """How many pairs there are to verify, of how many models and queries."""
        queries = " and ".join(
            f"{n:,} {'images' if way == 'i2t' else 'captions'}" for way, n in self.queries.items()
        )
        models = f"{len(self.models)} model{'s' if len(self.models) > 1 else ''}"
        return f"{self.pairs:,} pairs to verify: the first {self.k} of {models} for {queries}"

    def lines(self) -> list[str]:
        """What was pooled and what it costs, in words."""
        together = sum(self.proposed)
        share = f" ({100 * (1 - self.rows / together):.1f} % were doubled)" if together else ""
        lines = [f"{together:,} proposals are {self.rows:,} different ones{share}"]
        if self.rows != self.pairs:
            lines[0] += f", {self.pairs:,} pairs of an image and a caption, whichever asked"
        if self.excluded:
            lines.append(f"{self.excluded:,} more were left out, known to be right")
        each = f"{self.tasks.per_task} pairs"
        if self.tasks.golden:
            each += f" and {self.tasks.golden} of known answer"
        people = f", {self.tasks.answers} people each" if self.tasks.answers > 1 else ""
        questions = self.n_tasks * (self.tasks.per_task + self.tasks.golden)
        lines.append(
            f"{self.n_tasks:,} tasks of {each}{people}: {questions:,} questions, {self.cost:,.2f} "
            f"at {self.tasks.price:,.2f} a task"
        )
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
                name: {"proposed": p, "alone": a, "new": n}
                for name, p, a, n in zip(self.models, self.proposed, self.alone, self.new, strict=True)
            },
            "yield": {str(m + 1): row.tolist() for m, row in enumerate(self.curve)},
            "tasks": {
                "number": self.n_tasks,
                "pairs_per_task": self.tasks.per_task,
                "golden_per_task": self.tasks.golden,
                "answers": self.tasks.answers,
                "price": self.tasks.price,
                "cost": self.cost,
            },
        }


def without(pooled: Pool, known: NDArray[np.int64]) -> Pool:
    """The pool without some pairs, given as (pairs, 2) rows of query and item.

    >>> pool = Pool(np.array([0, 0]), np.array([4, 7]), np.array([[1], [2]]))
    >>> without(pool, np.array([[0, 7], [1, 4]])).item
    array([4])
    """
    if not len(known):
        return pooled
    width = 1 + max(int(pooled.item.max(initial=0)), int(known[:, 1].max()))
    kept = ~np.isin(pooled.query * width + pooled.item, known[:, 0] * width + known[:, 1])
    return Pool(pooled.query[kept], pooled.item[kept], pooled.place[kept])


def summary(
    pools: Mapping[Literal["i2t", "t2i"], Pool],
    *,
    k: int,
    models: Sequence[str],
    queries: Mapping[Literal["i2t", "t2i"], int],
    pair_of: Mapping[Literal["i2t", "t2i"], NDArray[np.int64]],
    tasks: Tasks,
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
        tasks=tasks,
        excluded=excluded,
    )
