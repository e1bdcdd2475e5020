"""Running means of each step's loss and its parts, read without blocking the device; NaN ends training."""

import math
from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from jaxtyping import Int
from numpy import ndarray
from torch import Tensor

from counterfoil.errors import InputError


class _Pending(NamedTuple):
    """Values of one step, on their way to the CPU."""

    step: int
    lr: float
    rows: Int[ndarray, "b"]
    names: tuple[str, ...]
    values: Tensor
    event: Any


class RunningMetrics:
    """Means of what the steps since the last entry of the journal said.

    On a CPU values are read at once, so a step that went wrong is stopped before it changes the weights. On
    other devices they are read one step late, while the device works on the next one.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._pending: deque[_Pending] = deque()
        self._sums: dict[str, float] = {}
        self._steps = 0
        self._rows = 0
        self._seconds = 0.0
        self._waited = 0.0

    def take(
        self,
        step: int,
        values: Mapping[str, Tensor],
        *,
        lr: float,
        rows: Int[ndarray, "b"],
    ) -> None:
        """Take in a step's scalars.

        Raises `InputError` naming step, rows and learning rate where one of them (or, on a GPU, of the step
        before) is NaN or infinite.
        """
        stacked = torch.stack([value.detach().float() for value in values.values()])
        event = None
        if self._device.type == "cuda":
            stacked = stacked.to("cpu", non_blocking=True)
            event = torch.cuda.Event()
            event.record()
        self._pending.append(_Pending(step, lr, rows, tuple(values), stacked, event))
        self._read(keep=0 if self._device.type == "cpu" else 1)

    def time(self, rows: int, seconds: float, waited: float) -> None:
        """Take in a step's rows, the time it took and how much of that it waited for them."""
        self._rows, self._seconds, self._waited = (
            self._rows + rows,
            self._seconds + seconds,
            self._waited + waited,
        )

    def settle(self) -> None:
        """Read all that is on its way; raises as `take`."""
        self._read(keep=0)

    def means(self) -> dict[str, float]:
        """The mean of each value, rows per second and the share of time spent waiting; starts anew."""
        self.settle()
        found = {name: total / self._steps for name, total in self._sums.items()}
        if self._seconds > 0:
            found |= {
                "rows_per_second": self._rows / self._seconds,
                "waiting": self._waited / self._seconds,
            }
        self._sums, self._steps, self._rows, self._seconds, self._waited = {}, 0, 0, 0.0, 0.0
        return found

    def state(self) -> dict[str, Any]:
        """All of it as plain values; nothing may be on its way."""
        return {
            "sums": dict(self._sums),
            "steps": self._steps,
            "rows": self._rows,
            "seconds": self._seconds,
            "waited": self._waited,
        }

    def put_back(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        self._sums, self._steps = dict(state["sums"]), state["steps"]
        self._rows, self._seconds, self._waited = state["rows"], state["seconds"], state["waited"]

    def _read(self, *, keep: int) -> None:
        while len(self._pending) > keep:
            pending = self._pending.popleft()
            if pending.event is not None:
                pending.event.synchronize()
            numbers = dict(zip(pending.names, pending.values.tolist(), strict=True))
            for name, number in numbers.items():
                if not math.isfinite(number):
                    raise _no_number(pending, name, number)
                self._sums[name] = self._sums.get(name, 0.0) + number
            self._steps += 1


def _no_number(pending: _Pending, name: str, number: float) -> InputError:
    rows = [int(row) for row in pending.rows[:5]]
    more = f", ... ({len(pending.rows)} in all)" if len(pending.rows) > len(rows) else ""
    return InputError(
        f"{name} is {number}",
        where=f"step {pending.step}",
        given=f"rows {', '.join(map(str, rows))}{more}, learning rate {pending.lr:g}",
        hint="training stops, and what was saved last is kept; try a lower lr, or clip_norm",
    )
