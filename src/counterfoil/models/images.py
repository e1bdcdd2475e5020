"""From image records to arrays of bytes, in worker processes that never import torch.

The pool is Python's own: an error in a worker arrives as itself, and there is no shared memory to run out of.
"""

import multiprocessing
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import islice
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
import PIL.Image
from jaxtyping import UInt8
from numpy import ndarray

from counterfoil.benchmarks.records import BytesSource, FileSource, Image, TarSource
from counterfoil.errors import DataError, InputError
from counterfoil.inputs.fields import setting
from counterfoil.inputs.files import is_distant
from counterfoil.models.base import ImageBatches

_READS = 16
#: How many times as long as wide a picture may be: resized by its shorter side, 1 x 20,000 takes 3 GB.
_LONGEST = 300
_PLACED = (FileSource, TarSource)


@runtime_checkable
class Preparation(Protocol):
    """What workers do to a picture. Must be picklable."""

    def __call__(self, picture: PIL.Image.Image) -> UInt8[ndarray, "height width 3"]:
        """The pixels of one RGB picture."""


@runtime_checkable
class ImageReader(Protocol):
    """A preparation that takes an image itself, in place of its decoded picture: its id says what is read."""

    def read(self, image: Image) -> ndarray:
        """What a network is given of the image; raises `DataError` where that is not there."""

    def sample(self) -> ndarray:
        """An array as `read` gives them, of no image: it shows a network's shapes."""


def inputs_of(preparation: Preparation, image: Image) -> ndarray:
    """What a preparation makes of an image, decoded unless it reads images itself."""
    if isinstance(preparation, ImageReader):
        return preparation.read(image)
    picture = image.decode()
    if isinstance(preparation, Resized | Untouched):
        check_proportions(picture, image.source)
    return preparation(picture)


def check_proportions(picture: PIL.Image.Image, where: object) -> None:
    """Raise `DataError` for a picture so long that resizing it by its shorter side would take gigabytes."""
    if max(picture.size) > _LONGEST * min(picture.size):
        given = f"{picture.width} x {picture.height} pixels"
        allowed = f"at most {_LONGEST} times as long as wide"
        raise DataError("image too long for its width", where=where, given=given, allowed=allowed)


@dataclass(frozen=True)
class Untouched:
    """All pixels as decoded, for models that bring their own processing."""

    def __call__(self, picture: PIL.Image.Image) -> UInt8[ndarray, "height width 3"]:
        return np.asarray(picture)


UNTOUCHED = Untouched()


@dataclass(frozen=True)
class Resized:
    """Resize and crop to `size` as open_clip's evaluation does, kept as bytes.

    Of uneven margins (`corner`) open_clip rounds half to even, transformers down.
    """

    size: int
    mode: Literal["shortest", "squash"] = "shortest"
    interpolation: Literal["bicubic", "bilinear"] = "bicubic"
    corner: Literal["even", "floor"] = "even"

    def __call__(self, picture: PIL.Image.Image) -> UInt8[ndarray, "size size 3"]:
        kind = PIL.Image.Resampling[self.interpolation.upper()]
        width, height = self.target(*picture.size)
        resized = picture.resize((width, height), kind)
        if self.mode == "squash":
            return np.asarray(resized)
        left, top = self.corner_at(width, height)
        return np.asarray(resized.crop((left, top, left + self.size, top + self.size)))

    def target(self, width: int, height: int) -> tuple[int, int]:
        """Width and height that a picture of this size is resized to, before it is cropped.

        >>> Resized(224).target(640, 427), Resized(224, "squash").target(640, 427)
        ((335, 224), (224, 224))
        """
        if self.mode == "squash":
            return self.size, self.size
        short, long = sorted((width, height))
        longer = int(self.size * long / short)
        return (self.size, longer) if width <= height else (longer, self.size)

    def corner_at(self, width: int, height: int) -> tuple[int, int]:
        margins = (width - self.size) / 2.0, (height - self.size) / 2.0
        left, top = (int(margin) if self.corner == "floor" else round(margin) for margin in margins)
        return left, top


Read = Callable[[Preparation, Image], ndarray]


def prepared(
    batches: ImageBatches, preparation: Preparation, *, workers: int, read: Read = inputs_of
) -> Generator[list[ndarray], None, None]:
    """Each batch of images as a list of pixel arrays, in order, up to two batches per worker ahead.

    A single batch is prepared here. Processes do not import the script that runs, so it needs no
    `if __name__ == "__main__"`. What cannot be read is raised when its batch's turn comes.
    """
    if not workers or len(batches) < 2 or isinstance(preparation, ImageReader):
        for batch in batches:
            yield [read(preparation, image) for image in _fetched(batch)]
        return
    pool = ProcessPoolExecutor(
        max_workers=min(workers, len(batches)),
        # Forking a process that runs threads (torch's, a progress bar's) can lock up: a clean server forks.
        mp_context=multiprocessing.get_context("spawn" if sys.platform == "win32" else "forkserver"),
        initializer=_start_worker,
        initargs=(partial(read, preparation),),
    )
    sources = {type(image.source).__module__ for batch in batches for image in batch}
    alone = nullcontext if "__main__" in sources else _without_main

    def submit(batch: Sequence[Image]) -> "Future[list[ndarray]]":
        with alone():
            return pool.submit(_prepare_in_worker, list(batch))

    try:
        rest = iter(batches)
        waiting = deque(submit(batch) for batch in islice(rest, 2 * workers))
        while waiting:
            ready = waiting.popleft().result()
            waiting.extend(submit(batch) for batch in islice(rest, 1))
            yield ready
    except BrokenProcessPool:
        given, hint = f"{workers} workers", "is there too little memory? try fewer, or --workers 0"
        raise InputError("a process that decodes images stopped", given=given, hint=hint) from None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _fetched(batch: Sequence[Image]) -> Sequence[Image]:
    """The images of a batch, those at a distance with their bytes, of which several are read at once."""
    distant = [
        image for image in batch if isinstance(image.source, _PLACED) and is_distant(image.source.path)
    ]
    if len(distant) < 2:
        return batch

    def with_bytes(image: Image) -> Image:
        # What cannot be read says so when its turn comes to be decoded.
        with suppress(DataError):
            return replace(image, source=BytesSource(image.read(), str(image.source)))
        return image

    with ThreadPoolExecutor(_READS) as pool:
        read = dict(zip(map(id, distant), pool.map(with_bytes, distant), strict=True))
    return [read.get(id(image), image) for image in batch]


@contextmanager
def _without_main() -> Iterator[None]:
    """Processes that start in this block do not import the main module a second time."""
    main = vars(sys.modules["__main__"])
    main_file: dict[str, Any] = {name: main[name] for name in ("__spec__", "__file__") if name in main}
    main["__spec__"] = None
    main.pop("__file__", None)
    try:
        yield
    finally:
        main.update(main_file)


_in_worker: list[Callable[[Image], ndarray]] = []


def _start_worker(read: Callable[[Image], ndarray]) -> None:
    def leave_with_parent() -> None:
        # However the parent went: a pool's own workers would wait forever.
        parent = multiprocessing.parent_process()
        if parent is not None:
            parent.join()
            os._exit(1)

    _in_worker[:] = [read]
    # Ctrl-C reaches every process of the terminal; the parent alone decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=leave_with_parent, daemon=True).start()


def _prepare_in_worker(batch: Sequence[Image]) -> list[ndarray]:
    return [_in_worker[0](image) for image in _fetched(batch)]


@dataclass(frozen=True)
class ImageRoute:
    """Where pictures are resized, and whether their tower is compiled."""

    resize: Literal["host", "device"] = setting("host", "Where pictures are resized.")
    compile: Literal["no", "yes"] = setting("no", "Compile the image tower.")

    def facts(self) -> dict[str, str]:
        return {name: value for name, value in asdict(self).items() if value not in ("host", "no")}

    def preparation(self, resized: Preparation, *, where: str) -> Preparation:
        if self.resize == "host":
            return resized
        if not isinstance(resized, Resized):
            problem = "the model's pictures are prepared by its library alone"
            raise InputError(problem, where=where, given="resize=device", hint="leave out --set resize")
        return Untouched()
