"""From image records to arrays, in worker processes that never see torch unless a model's own code needs it.

The pool is Python's own: an error raised in a worker arrives as itself, arrays travel through pipes (no
shared memory to run out of), and workers start in a fraction of a second.
"""

import multiprocessing
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol

import numpy as np
import PIL.Image
from numpy import ndarray

from counterfoil.data.records import Image
from counterfoil.errors import InputError

Row = Mapping[str, ndarray]


class Preparation(Protocol):
    """What is done to a picture before a model sees it. Must be picklable: workers call it."""

    def __call__(self, picture: PIL.Image.Image) -> Row:
        """The arrays a model takes for one RGB picture, by name."""
        ...

    def describe(self) -> Mapping[str, Any]:
        """Everything that decides the arrays, as plain values."""
        ...


@dataclass(frozen=True)
class Resized:
    """Resize and crop to `size` as open_clip's evaluation does, kept as bytes; scaling and mean come later.

    `mode` "shortest" scales the shorter side to `size` and crops the centre; "squash" ignores proportions.
    """

    size: int
    mode: Literal["shortest", "squash"] = "shortest"
    interpolation: Literal["bicubic", "bilinear"] = "bicubic"

    def __call__(self, picture: PIL.Image.Image) -> Row:
        """`{"pixels": (size, size, 3) uint8}`."""
        kind = PIL.Image.Resampling[self.interpolation.upper()]
        width, height = picture.size
        if self.mode == "squash":
            resized = picture.resize((self.size, self.size), kind)
            return {"pixels": np.asarray(resized)}
        short, long = sorted((width, height))
        longer = int(self.size * long / short)
        width, height = (self.size, longer) if width <= height else (longer, self.size)
        resized = picture.resize((width, height), kind)
        left, top = round((width - self.size) / 2.0), round((height - self.size) / 2.0)
        return {"pixels": np.asarray(resized.crop((left, top, left + self.size, top + self.size)))}

    def describe(self) -> Mapping[str, Any]:
        """Size, mode and interpolation."""
        return asdict(self)


def prepared(
    batches: Sequence[Sequence[Image]], preparation: Preparation, *, workers: int
) -> Generator[Mapping[str, ndarray], None, None]:
    """Each batch of images as arrays with one row per image, in order.

    With `workers` above 0 that many processes decode and prepare, up to two batches each ahead of the one
    asked for. Raises what decoding raises (`DataError` naming the file) when the batch's turn comes.
    """
    if not workers or not batches:
        for batch in batches:
            yield _prepare(preparation, batch)
        return
    pool = ProcessPoolExecutor(
        max_workers=min(workers, len(batches)),
        mp_context=multiprocessing.get_context(_start_method()),
        initializer=_start_worker,
        initargs=(preparation,),
    )
    try:
        waiting: deque[Future[Mapping[str, ndarray]]] = deque()
        rest = iter(batches)
        for batch in rest:
            waiting.append(pool.submit(_prepare_in_worker, list(batch)))
            if len(waiting) >= 2 * workers:
                break
        while waiting:
            ready = waiting.popleft().result()
            for batch in rest:
                waiting.append(pool.submit(_prepare_in_worker, list(batch)))
                break
            yield ready
    except BrokenProcessPool:
        raise InputError(
            "a process that decodes images stopped",
            given=f"{workers} workers",
            hint="is there too little memory? try fewer, or --workers 0",
        ) from None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _prepare(preparation: Preparation, batch: Sequence[Image]) -> Mapping[str, ndarray]:
    rows = [preparation(image.decode()) for image in batch]
    return {name: np.stack([row[name] for row in rows]) for name in rows[0]}


def _start_method() -> str:
    # Forking a process that runs threads (torch's, a progress bar's) can lock up, so a clean server forks.
    return "spawn" if sys.platform == "win32" else "forkserver"


_in_worker: list[Preparation] = []


def _start_worker(preparation: Preparation) -> None:
    _in_worker[:] = [preparation]
    # Ctrl-C reaches every process of the terminal; the parent alone decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if "torch" in sys.modules:
        # A model's own preparation brought torch along; one thread for each worker is enough.
        import torch

        torch.set_num_threads(1)
    threading.Thread(target=_leave_with_parent, daemon=True).start()


def _leave_with_parent() -> None:
    """End this worker when its parent is gone, however that went: a pool's own workers would wait forever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _prepare_in_worker(batch: Sequence[Image]) -> Mapping[str, ndarray]:
    return _prepare(_in_worker[0], batch)
