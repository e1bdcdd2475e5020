"""The journal of a training as CSV, and the running means of losses that it holds."""

import csv
import io
import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Int
from numpy import ndarray
from torch import Tensor

from counterfoil.errors import DataError, InputError
from counterfoil.inputs.files import read_text
from counterfoil.store import write_text

#: The first columns of every journal; what else is written down follows in the order it came up.
FIRST = ("step", "epoch", "lr", "loss", "grad_norm", "rows_per_second", "waiting", "epoch_waiting", "seconds")


class Journal:
    """Entries of numbers by name, each with a `step`; steps rise from entry to entry.

    In `path` (None keeps them in memory) each entry is one appended line. Opening a journal again keeps the
    entries up to `since`; later ones, and a last line that was cut off, are written again.
    """

    def __init__(self, path: Path | None, *, since: int = 0) -> None:
        self._path = path
        self._columns: list[str] = list(FIRST)
        self.entries: list[Mapping[str, float]] = []
        if path is not None and since and path.exists():
            self.entries = [entry for entry in read(path) if entry["step"] <= since]
            for entry in self.entries:
                self._columns += [name for name in entry if name not in self._columns]
        self._rewrite()

    def write(self, entry: Mapping[str, float]) -> None:
        """Add an entry. A column that was not there before is empty in the entries before it."""
        self.entries.append(dict(entry))
        new = [name for name in entry if name not in self._columns]
        self._columns += new
        if new:
            self._rewrite()
        elif self._path is not None:
            # Appended, not written anew: a line that a crash cuts off is dropped when it is opened again.
            with open(self._path, "a", encoding="utf-8") as file:
                file.write(self._line(entry))

    def sync(self) -> None:
        """Flush what was written so far to the disk."""
        if self._path is not None:
            with open(self._path, "rb") as file:
                os.fsync(file.fileno())

    def _rewrite(self) -> None:
        if self._path is not None:
            head = io.StringIO()
            csv.writer(head, lineterminator="\n").writerow(self._columns)
            write_text(self._path, head.getvalue() + "".join(map(self._line, self.entries)))

    def _line(self, entry: Mapping[str, float]) -> str:
        # repr of a float, shortest that reads back the same: what is resumed has the same numbers.
        return ",".join("" if name not in entry else repr(entry[name]) for name in self._columns) + "\n"


def read(path: Path) -> list[dict[str, float]]:
    """The entries of a journal; a last line that was cut off is left out."""
    text = read_text(path)
    try:
        rows = list(csv.reader(io.StringIO(text[: text.rfind("\n") + 1])))
    except csv.Error as error:
        raise DataError(f"not a journal of a training: {error}", where=path) from None
    if not rows or "step" not in rows[0]:
        raise DataError("not a journal of a training", where=path, allowed="a header with a column 'step'")
    entries = []
    for number, row in enumerate(rows[1:], start=2):
        try:
            cells = zip(rows[0], row, strict=True)
            entry = {name: int(cell) if cell.isdigit() else float(cell) for name, cell in cells if cell}
            entry["step"]
        except (ValueError, KeyError):
            raise DataError("does not fit the header", where=f"{path}, line {number}") from None
        entries.append(entry)
    return entries


#: What running means are of, besides sums, before the first step.
_NOTHING: Mapping[str, float] = {"steps": 0, "rows": 0, "seconds": 0.0, "waited": 0.0}


class RunningMetrics:
    """Means over the steps since the last entry."""

    def __init__(self, largest: Callable[[float], float] = lambda value: value) -> None:
        self._largest = largest
        self._totals: dict[str, Any] = {**_NOTHING, "sums": {}}

    def take(self, step: int, values: Mapping[str, Tensor], *, lr: float, rows: Int[ndarray, "b"]) -> None:
        """Take in a step's scalars; raises `InputError` where one is not finite."""
        stacked = torch.stack([value.detach().float() for value in values.values()])
        sums = self._totals["sums"]
        for name, number in zip(values, stacked.tolist(), strict=True):
            if not math.isfinite(number):
                first = ", ".join(str(int(row)) for row in rows[:5])
                more = f", ... ({len(rows)} in all)" if len(rows) > 5 else ""
                given = f"rows {first}{more}, learning rate {lr:g}"
                hint = "training stops, and what was saved last is kept; try a lower lr, or clip_norm"
                raise InputError(f"{name} is {number}", where=f"step {step}", given=given, hint=hint)
            sums[name] = sums.get(name, 0.0) + number
        self._totals["steps"] += 1

    def time(self, rows: int, seconds: float, waited: float) -> None:
        """Take in a step's rows, the time it took and how much of that it waited for them."""
        for name, value in (("rows", rows), ("seconds", seconds), ("waited", waited)):
            self._totals[name] += value

    def means(self) -> dict[str, float]:
        """The mean of each value, rows per second, the longest share of time spent waiting; starts anew."""
        totals, seconds = self._totals, self._totals["seconds"]
        averages = {name: total / totals["steps"] for name, total in totals["sums"].items()}
        if seconds > 0:
            averages["rows_per_second"] = totals["rows"] / seconds
            averages["waiting"] = self._largest(totals["waited"] / seconds)
        self.put_back({**_NOTHING, "sums": {}})
        return averages

    def state(self) -> dict[str, Any]:
        """All of it as plain values."""
        return {**self._totals, "sums": dict(self._totals["sums"])}

    def put_back(self, state: Mapping[str, Any]) -> None:
        """Go on from a state; raises `KeyError` where it lacks a total."""
        self._totals = {"sums": dict(state["sums"]), **{name: state[name] for name in _NOTHING}}
