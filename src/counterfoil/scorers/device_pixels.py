"""Pictures resized, cropped and normalised where the tower computes, and copies to it that nothing waits for.

Resizing is PyTorch's antialiased one in float32, rounded to bytes once; Pillow rounds after each of its two
passes and weighs in whole numbers, so pixels differ by a level or two of 255 and embeddings by little. Copies
to a GPU go through pinned memory and a stream of their own, so that one batch travels while the one before it
is computed.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import PIL.Image
import torch
from numpy import ndarray
from torch import Tensor

from counterfoil.scorers.images import LARGE, Resized

Batch = TypeVar("Batch")

#: The stream of copies to each device.
_STREAMS: dict[torch.device, Any] = {}


@dataclass(frozen=True, eq=False)
class DevicePixels:
    """Pictures of any size to the pixels that a tower takes, all on its device."""

    resized: Resized
    #: Mean and standard deviation of the three colours.
    mean: Sequence[float]
    std: Sequence[float]
    device: torch.device
    dtype: torch.dtype

    def __call__(self, pictures: Sequence[ndarray]) -> Tensor:
        """(batch, 3, size, size) normalised floats."""
        prepared: dict[int, Tensor] = {}
        # Pictures of one size travel and are resized together.
        rows_of: dict[tuple[int, ...], list[int]] = {}
        for row, picture in enumerate(pictures):
            rows_of.setdefault(picture.shape, []).append(row)
        for rows in rows_of.values():
            whole = upload(np.stack([pictures[row] for row in rows]), self.device).permute(0, 3, 1, 2)
            prepared.update(zip(rows, resize(whole, self.resized), strict=True))
        pixels = torch.stack([prepared[row] for row in range(len(pictures))])
        mean, std = self._colours
        return pixels.div_(255).sub_(mean).div_(std).to(self.dtype)

    @cached_property
    def _colours(self) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation on the device; sent once, since the host waits for a small copy."""
        mean, std = (
            torch.tensor(list(each), dtype=torch.float32, device=self.device).view(3, 1, 1)
            for each in (self.mean, self.std)
        )
        return mean, std


def resize(pictures: Tensor, resized: Resized) -> Tensor:
    """(batch, 3, height, width) bytes to (batch, 3, size, size) float32 of whole levels from 0 to 255."""
    height, width = pictures.shape[2:]
    across, down = resized.target(width, height)
    if across * down > LARGE:
        # Of so long a picture Pillow computes no more than the crop shows.
        hosts = (PIL.Image.fromarray(each.permute(1, 2, 0).cpu().numpy()) for each in pictures)
        cut = np.stack([resized(each) for each in hosts])
        return torch.from_numpy(cut).permute(0, 3, 1, 2).float().to(pictures.device)
    found = pictures.float()
    if (across, down) != (width, height):
        found = torch.nn.functional.interpolate(
            found, (down, across), mode=resized.interpolation, antialias=True, align_corners=False
        )
    left, top = resized.corner_at(across, down)
    found = found[:, :, top : top + resized.size, left : left + resized.size]
    return found.round().clamp(0, 255)


def upload(array: ndarray, device: torch.device) -> Tensor:
    """The array on the device; to a GPU by way of pinned memory and a stream of its own, waited for by what
    is computed next and not by the host.
    """
    # What a worker sent may not be written to, which torch warns of.
    host = torch.from_numpy(array if array.flags.writeable else array.copy())
    if device.type != "cuda":
        return host.to(device)
    if device not in _STREAMS:
        _STREAMS[device] = torch.cuda.Stream(device)
    stream = _STREAMS[device]
    current = torch.cuda.current_stream(device)
    with torch.cuda.stream(stream):
        found = host.pin_memory().to(device, non_blocking=True)
    current.wait_stream(stream)
    # Its memory belongs to the stream of copies, and may be taken again only when the tower is done with it.
    found.record_stream(current)
    return found


def fetched(
    batches: Iterable[Batch], launch: Callable[[Batch], Tensor], *, ahead: int | None = None
) -> Iterator[ndarray]:
    """The rows that `launch` gives for each batch, as arrays, in order.

    A GPU computes by itself once it is told to, so there the next batch is prepared and sent before the rows
    of one are waited for (`ahead` 1); elsewhere there is nothing to gain (0). Where preparing a batch fails,
    the rows of those before it come first.
    """
    waiting: deque[Callable[[], ndarray]] = deque()
    try:
        for batch in batches:
            rows = launch(batch)
            waiting.append(_download(rows))
            depth = (1 if rows.device.type == "cuda" else 0) if ahead is None else ahead
            while len(waiting) > depth:
                yield waiting.popleft()()
    except Exception:
        while waiting:
            yield waiting.popleft()()
        raise
    while waiting:
        yield waiting.popleft()()


def _download(rows: Tensor) -> Callable[[], ndarray]:
    """What gives the rows as an array once they are there."""
    if rows.device.type != "cuda":
        array: ndarray = rows.cpu().numpy()
        return lambda: array
    host = torch.empty(rows.shape, dtype=rows.dtype, pin_memory=True)
    host.copy_(rows, non_blocking=True)
    done = torch.cuda.Event()
    done.record(torch.cuda.current_stream(rows.device))

    def there() -> ndarray:
        done.synchronize()
        # A copy, since pinned memory is scarce.
        found: ndarray = host.numpy().copy()
        return found

    return there
