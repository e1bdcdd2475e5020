"""Order of rows and batches, a function of the recipe and the number of rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Int
from numpy import ndarray

from counterfoil.errors import InputError
from counterfoil.train.recipes.base import Recipe


def order(n: int, epoch: int, seed: int) -> Int[ndarray, "n"]:
    """The rows 0 to n - 1 in the order of an epoch: a function of the three numbers and of nothing else.

    >>> order(5, 0, 7), order(5, 1, 7)
    (array([2, 0, 4, 1, 3]), array([3, 0, 2, 1, 4]))
    """
    return np.random.default_rng((seed, epoch)).permutation(n)


class BatchPart(NamedTuple):
    """One process's rows of one batch."""

    epoch: int
    rows: Int[ndarray, "b"]


@dataclass(frozen=True)
class Course(Sequence[BatchPart]):
    """The batches of a training, one after the other, as one of `world` processes sees them.

    Each epoch takes `order` in batches of `batch_size` rows and leaves out what is too little for a batch,
    or for `accumulate` batches, which make one step. Process `rank` takes its slice of every step, so the
    steps, one process's rows after the other's, do not depend on how many processes there are.

    Raises `InputError` where there are too few rows for one step, or a batch is no multiple of `world`.
    """

    n: int
    batch_size: int
    steps: int
    accumulate: int = 1
    seed: int = 0
    rank: int = 0
    world: int = 1
    #: The first step, where a training goes on.
    start: int = 0
    #: The epoch that counts as the first, where another training came before.
    first_epoch: int = 0

    def __post_init__(self) -> None:
        if self.batch_size % self.world:
            raise InputError(
                "a batch cannot be divided among the processes",
                given=f"{self.batch_size} rows, {self.world} processes",
                allowed="a batch size that is a multiple of the number of processes",
            )
        if not self.per_epoch:
            raise InputError(
                "too few rows to train on",
                given=self.n,
                allowed=f"at least {self.batch_size * self.accumulate}, the rows of one step",
                hint="choose a smaller batch_size",
            )

    def __len__(self) -> int:
        return (self.steps - self.start) * self.accumulate

    @property
    def per_epoch(self) -> int:
        """Steps in an epoch."""
        return steps_per_epoch(self.n, self.batch_size, self.accumulate)

    def __getitem__(self, at):  # type: ignore[no-untyped-def]
        """The batch `at` places after the first."""
        if not 0 <= at < len(self):
            raise IndexError(at)
        step, turn = divmod(at, self.accumulate)
        epoch, within = divmod(self.start + step, self.per_epoch)
        share = self.batch_size // self.world
        # A process's slices lie side by side: gathered, a step's rows are in one order for any `world`.
        first = within * self.accumulate * self.batch_size + (self.rank * self.accumulate + turn) * share
        rows = _ordered(self.n, self.first_epoch + epoch, self.seed)[first : first + share]
        return BatchPart(self.first_epoch + epoch, rows)


def steps_per_epoch(n: int, batch_size: int, accumulate: int = 1) -> int:
    """Steps in which an epoch sees whole batches of `n` rows.

    >>> steps_per_epoch(100, 30), steps_per_epoch(100, 30, accumulate=2)
    (3, 1)
    """
    return n // batch_size // accumulate


def length(stage: Recipe, n: int) -> int:
    """Steps of a stage of a training on `n` rows.

    >>> length(Recipe("mine", batch_size=30, epochs=2), 100), length(Recipe("mine", steps=5), 100)
    (6, 5)
    """
    return stage.steps or stage.epochs * steps_per_epoch(n, stage.batch_size, stage.accumulate)


def course_of(stages: Sequence[Recipe], number: int, n: int, *, start: int, rank: int, world: int) -> Course:
    """The course of stage `number` on `n` rows, from its step `start` on; raises as `Course`.

    Its epochs are counted on from those that the stages before it have begun.
    """
    stage = stages[number]
    before = [
        -(-length(each, n) // steps_per_epoch(n, each.batch_size, each.accumulate))
        for each in stages[:number]
    ]
    return Course(
        n=n,
        batch_size=stage.batch_size,
        steps=length(stage, n),
        accumulate=stage.accumulate,
        seed=stage.seed,
        rank=rank,
        world=world,
        start=start,
        first_epoch=sum(before),
    )


@lru_cache(maxsize=2)
def _ordered(n: int, epoch: int, seed: int) -> ndarray:
    rows = order(n, epoch, seed)
    rows.flags.writeable = False
    return rows


def in_order(n: int, batch_size: int) -> list[BatchPart]:
    """All rows as they stand, in batches; the last may be smaller.

    >>> [part.rows.tolist() for part in in_order(5, 2)]
    [[0, 1], [2, 3], [4]]
    """
    return [BatchPart(0, np.arange(at, min(at + batch_size, n))) for at in range(0, n, batch_size)]
