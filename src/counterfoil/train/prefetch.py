"""The batches themselves, prepared ahead of the step that needs them."""

import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from queue import Empty, Full, Queue
from typing import NamedTuple, TypeVar

import numpy as np
from jaxtyping import Int
from numpy import ndarray
from torch import Tensor

from counterfoil.data.training import TrainingSet
from counterfoil.scorers.base import text_of
from counterfoil.scorers.networks import Backbone
from counterfoil.train.augmentation import UNVARIED, Variation, without_words
from counterfoil.train.batches import BatchPart
from counterfoil.train.images import ImageRequest, ImageStore
from counterfoil.train.tokens import TokenTable

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
    """Rows of a training set made ready for a backbone.

    `image_roles` and `caption_roles` are encoded in that order. What `variation` makes of a picture or a
    caption is decided by (seed, epoch, row, role), whatever process prepares it.
    """

    data: TrainingSet
    backbone: Backbone
    pictures: ImageStore
    tokens: TokenTable
    image_roles: Sequence[str] = ("image",)
    caption_roles: Sequence[str] = ("caption",)
    variation: Variation = UNVARIED
    seed: int = 0
    #: What is done to a batch where it is prepared: pinned for a GPU, say.
    finish: Callable[[Batch], Batch] = lambda batch: batch
    #: Whether batches are prepared ahead, in a thread. Where the processor is busy with the step anyway and
    #: pictures are in memory, there is nothing to be gained, and handing over costs more than preparing.
    works_ahead: bool = True

    def batches(self, parts: Sequence[BatchPart]) -> Generator[Batch, None, None]:
        """A batch for each of `parts`, in order; raises here what preparing them raises in a thread."""
        prepared = self._prepared(parts)
        return ahead(prepared, depth=_AHEAD) if self.works_ahead else prepared

    def _prepared(self, parts: Sequence[BatchPart]) -> Generator[Batch, None, None]:
        with closing(self.pictures.batches(_Lookup(self, parts))) as pictures:
            for part, pixels in zip(parts, pictures, strict=True):
                yield self.finish(
                    Batch(part.epoch, part.rows, self.backbone.pixels(pixels), self._words(part))
                )

    def _words(self, part: BatchPart) -> Tensor:
        positions = self._positions(self.caption_roles, part)
        if not self.variation.word_drop:
            return self.tokens.of(positions)
        # Longer than any key of a picture, so that the two are drawn apart.
        keys = [(*key, 1) for key in self._keys(self.caption_roles, part)]
        share = self.variation.word_drop
        return self.backbone.tokens(
            [
                without_words(text_of(self.data.captions[at]), key=key, share=share)
                for at, key in zip(positions, keys, strict=True)
            ]
        )

    def _keys(self, roles: Sequence[str], part: BatchPart) -> list[tuple[int, ...]]:
        return [(self.seed, part.epoch, int(row), role) for role in range(len(roles)) for row in part.rows]

    def _positions(self, roles: Sequence[str], part: BatchPart) -> ndarray:
        return np.concatenate([self.data.need(role)[part.rows] for role in roles])

    def asked(self, part: BatchPart) -> ImageRequest:
        """The pictures of one batch."""
        positions = self._positions(self.image_roles, part)
        if not self.variation.of_pictures:
            return ImageRequest(positions)
        return ImageRequest(positions, tuple(self._keys(self.image_roles, part)), self.variation)


class _Lookup(Sequence[ImageRequest]):
    """The pictures of each batch, worked out when they are asked for."""

    def __init__(self, feed: Feed, parts: Sequence[BatchPart]) -> None:
        self._feed, self._parts = feed, parts

    def __len__(self) -> int:
        return len(self._parts)

    def __getitem__(self, at):  # type: ignore[no-untyped-def]
        return self._feed.asked(self._parts[at])


_Item = TypeVar("_Item")


def ahead(source: Generator[_Item, None, None], *, depth: int) -> Generator[_Item, None, None]:
    """The items of `source`, which runs in a thread, up to `depth` items ahead.

    What `source` raises is raised in its place. Stopping early (`close`) stops the thread and closes
    `source`.
    """
    ready: Queue[tuple[str, object]] = Queue(maxsize=depth)
    stopped = threading.Event()

    def put(kind: str, item: object) -> bool:
        while not stopped.is_set():
            try:
                ready.put((kind, item), timeout=0.2)
            except Full:
                continue
            return True
        return False

    def work() -> None:
        try:
            with closing(source):
                for item in source:
                    if not put("item", item):
                        return
            put("end", None)
        # Any exception is raised where the next item is awaited.
        except BaseException as error:
            put("error", error)

    thread = threading.Thread(target=work, name="batches ahead", daemon=True)
    thread.start()
    try:
        yield from _items(ready)
    finally:
        stopped.set()
        while True:
            try:
                ready.get_nowait()
            except Empty:
                break
        thread.join()


def _items(ready: "Queue[tuple[str, object]]") -> Iterator:  # type: ignore[type-arg]
    while True:
        kind, item = ready.get()
        if kind == "end":
            return
        if kind == "error":
            assert isinstance(item, BaseException)
            raise item
        yield item
