"""The rows of a training in order: batches prepared ahead of their step."""

from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from itertools import count, takewhile
from typing import Any, NamedTuple, TypeVar

import numpy as np
from jaxtyping import Int
from numpy import ndarray
from torch import Tensor

from counterfoil.benchmarks.training_rows import TrainingSet
from counterfoil.engine.plan import Note, Progress
from counterfoil.errors import InputError
from counterfoil.models.base import text_of
from counterfoil.models.networks import Backbone
from counterfoil.storage.parallel import map_ahead
from counterfoil.train import images
from counterfoil.train.objectives import Objective
from counterfoil.train.recipes.base import Recipe


@lru_cache(maxsize=2)
def order(n: int, epoch: int, seed: int) -> Int[ndarray, "n"]:
    """The rows 0 to n - 1 in the order of an epoch, read-only."""
    rows = np.random.default_rng((seed, epoch)).permutation(n)
    rows.flags.writeable = False
    return rows


class BatchPart(NamedTuple):
    """One process's rows of one batch."""

    epoch: int
    rows: Int[ndarray, "b"]


@dataclass(frozen=True)
class Course(Sequence[BatchPart]):
    """The batches of a training, one after the other, as one of `world` processes sees them.

    Each epoch takes `order` in whole steps. Process `rank` takes its slice of every step, so steps do not
    depend on how many processes there are.
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
        check_batches(self.batch_size, self.accumulate, self.n, self.world)

    def __len__(self) -> int:
        return (self.steps - self.start) * self.accumulate

    @property
    def per_epoch(self) -> int:
        return steps_per_epoch(self.n, self.batch_size, self.accumulate)

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        """The batch `at` places after the first."""
        if not 0 <= index < len(self):
            raise IndexError(index)
        step, turn = divmod(index, self.accumulate)
        epoch, within = divmod(self.start + step, self.per_epoch)
        share = self.batch_size // self.world
        # A process's slices lie side by side: gathered, a step's rows are in one order for any `world`.
        first = within * self.accumulate * self.batch_size + (self.rank * self.accumulate + turn) * share
        rows = order(self.n, self.first_epoch + epoch, self.seed)[first : first + share]
        return BatchPart(self.first_epoch + epoch, rows)


def steps_per_epoch(n: int, batch_size: int, accumulate: int = 1) -> int:
    """Steps in which an epoch sees whole batches of `n` rows."""
    return n // batch_size // accumulate


def check_batches(
    batch_size: int, accumulate: int, n: int, processes: int, *, of_command: bool = False
) -> None:
    """Raise `InputError` for a batch that processes cannot divide, and for too few rows for a step."""
    if batch_size % processes:
        raise InputError(
            "a batch cannot be divided among the processes",
            given=f"{batch_size} rows, {processes} processes",
            allowed="a batch size that is a multiple of the number of processes",
            hint="choose another --batch-size or --devices" if of_command else None,
        )
    if not steps_per_epoch(n, batch_size, accumulate):
        allowed = f"at least {batch_size * accumulate}, the rows of one step"
        hint = f"choose a smaller {'--batch-size' if of_command else 'batch_size'}"
        raise InputError("too few rows to train on", given=n, allowed=allowed, hint=hint)


def length(stage: Recipe, n: int) -> int:
    """Steps of a stage of a training on `n` rows."""
    return stage.steps or stage.epochs * steps_per_epoch(n, stage.batch_size, stage.accumulate)


def course_of(stages: Sequence[Recipe], number: int, n: int, *, start: int, rank: int, world: int) -> Course:
    """The course of stage `number` on `n` rows, from step `start` on; epochs go on from stage to stage."""
    stage = stages[number]
    before = [
        -(-length(earlier, n) // steps_per_epoch(n, earlier.batch_size, earlier.accumulate))
        for earlier in stages[:number]
    ]
    steps, first_epoch = length(stage, n), sum(before)
    return Course(n, stage.batch_size, steps, stage.accumulate, stage.seed, rank, world, start, first_epoch)


def in_order(n: int, batch_size: int) -> list[BatchPart]:
    """All rows as they stand, in batches; the last may be smaller."""
    return [BatchPart(0, np.arange(i, min(i + batch_size, n))) for i in range(0, n, batch_size)]


#: Batches that are prepared ahead of the one in work.
_AHEAD = 3


class Batch(NamedTuple):
    """What a network is fed: roles one after the other, each with the rows in the same order."""

    epoch: int
    rows: Int[ndarray, "b"]
    #: (image roles x b, 3, height, width) and (caption roles x b, length), on the CPU.
    pixels: Tensor
    tokens: Tensor


@dataclass(frozen=True, eq=False)
class Feed:
    """Rows of a training set made ready for a backbone, varied by seed, epoch, row and role alone."""

    data: TrainingSet
    backbone: Backbone
    pictures: images.ImageStore
    image_roles: Sequence[str] = ("image",)
    caption_roles: Sequence[str] = ("caption",)
    variation: images.Variation = images.UNVARIED
    seed: int = 0
    #: Whether batches are pinned where they are prepared, to be copied to a GPU while it computes.
    pin: bool = False
    #: Whether batches are prepared ahead, in a thread; handing over pictures in memory costs more.
    works_ahead: bool = True

    def batches(self, parts: Sequence[BatchPart]) -> Generator[Batch, None, None]:
        """A batch for each of `parts`, in order; raises here what preparing them raises in a thread."""
        prepared = self._prepared(parts)
        return ahead(prepared, depth=_AHEAD) if self.works_ahead else prepared

    def _prepared(self, parts: Sequence[BatchPart]) -> Generator[Batch, None, None]:
        with closing(self.pictures.batches(images.Mapped(self.batch_images, parts))) as pictures:
            for part, pixels in zip(parts, pictures, strict=True):
                texts = [text_of(self.data.captions[i]) for i in self._positions(self.caption_roles, part)]
                if share := self.variation.word_drop:
                    # Keys are longer than any of a picture, so that the two are drawn apart.
                    keyed = zip(texts, self._keys(self.caption_roles, part), strict=True)
                    texts = [images.without_words(text, key=(*key, 1), share=share) for text, key in keyed]
                tensors = self.backbone.pixels(pixels), self.backbone.tokens(texts)
                if self.pin:
                    tensors = tensors[0].pin_memory(), tensors[1].pin_memory()
                yield Batch(part.epoch, part.rows, *tensors)

    def tokens(self, positions: Int[ndarray, "n"]) -> Tensor:
        """(n, length) ids of the captions at `positions`."""
        return self.backbone.tokens([text_of(self.data.captions[i]) for i in positions])

    def _keys(self, roles: Sequence[str], part: BatchPart) -> list[tuple[int, ...]]:
        return [(self.seed, part.epoch, int(row), role) for role in range(len(roles)) for row in part.rows]

    def _positions(self, roles: Sequence[str], part: BatchPart) -> ndarray:
        return np.concatenate([self.data.need(role)[part.rows] for role in roles])

    def batch_images(self, part: BatchPart) -> images.BatchImages:
        """The pictures of one batch."""
        positions = self._positions(self.image_roles, part)
        if not self.variation.of_pictures:
            return images.BatchImages(positions)
        return images.BatchImages(positions, tuple(self._keys(self.image_roles, part)), self.variation)


_Item = TypeVar("_Item")


def ahead(source: Generator[_Item, None, None], *, depth: int) -> Generator[_Item, None, None]:
    """The items of `source`, which runs in a thread, up to `depth` items ahead; `close` stops it."""
    end: Any = object()
    # What is taken is worked on while `depth` others are prepared.
    work = map_ahead(lambda _: next(source, end), count(), threads=1, ahead=depth + 1)
    with closing(source), closing(work) as ready:
        yield from takewhile(lambda item: item is not end, (item for _, item in ready))


def dataloaders(
    data: TrainingSet,
    *,
    backbone: Backbone,
    aims: Sequence[Objective],
    variations: Sequence[images.Variation],
    skip: bool,
    left_out: Sequence[int] = (),
    workers: int,
    seed: int,
    pin: bool,
    progress: Progress,
    note: Note,
) -> tuple[list[Feed], Int[ndarray, "rows"]]:
    """A feed for each stage, and the rows of `data` that they feed; stages share what is prepared.

    With `skip` rows whose pictures cannot be read are left out too, and `note` says so.
    """
    rows = np.setdiff1d(np.arange(len(data)), np.asarray(left_out, dtype=np.int64))
    roles = sorted({role for aim in aims for role in aim.images})
    used = np.unique(np.concatenate([data.need(role)[rows] for role in roles]))
    how: dict[str, Any] = {"workers": workers, "skip": skip, "progress": progress}
    shared = {
        varied: images.ImageStore(data.images, used, backbone.preparation, varies=varied, **how)
        for varied in sorted({variation.of_pictures for variation in variations})
    }
    rows = images.readable_rows(data, rows, roles, shared.values(), backbone.preparation, note)
    chosen = data.select(rows)
    feeds = []
    for aim, variation in zip(aims, variations, strict=True):
        pictures = shared[variation.of_pictures]
        works_ahead = pin or not pictures.in_memory
        roles_of = (aim.images, aim.texts)
        feeds.append(Feed(chosen, backbone, pictures, *roles_of, variation, seed, pin, works_ahead))
    return feeds, rows
