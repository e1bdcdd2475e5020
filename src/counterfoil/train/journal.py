"""The journal of a training: one row of numbers per entry, as CSV and, if wanted, for TensorBoard."""

import csv
import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from counterfoil.errors import DataError, MissingExtraError
from counterfoil.inputs.files import read_text
from counterfoil.store import write_text

#: The first columns of every journal; what else is written down follows in the order it came up.
FIRST = ("step", "epoch", "lr", "loss", "grad_norm", "rows_per_second", "waiting", "seconds")


class Journal:
    """Entries of numbers by name, each with a `step`; steps rise from entry to entry.

    In `path` (None keeps them in memory alone) each entry is one line that is appended at once. Opening a
    journal that is there already keeps the entries up to `since` and drops later ones, and a last line that
    was cut off: the steps after that are done, and written down, again.
    """

    def __init__(self, path: Path | None, *, since: int = 0, tensorboard: Path | None = None) -> None:
        self._path = path
        self._columns: list[str] = list(FIRST)
        self.entries: list[Mapping[str, float]] = []
        if path is not None and since and path.exists():
            self.entries = [entry for entry in read(path) if entry["step"] <= since]
            for entry in self.entries:
                self._columns += [name for name in entry if name not in self._columns]
        self._rewrite()
        self._board = None if tensorboard is None else _writer(tensorboard, since)

    def write(self, entry: Mapping[str, float]) -> None:
        """Add an entry. A column that was not there before is empty in the entries before it."""
        self.entries.append(dict(entry))
        new = [name for name in entry if name not in self._columns]
        self._columns += new
        if new:
            self._rewrite()
        elif self._path is not None:
            # Appended, not written anew: a line that a crash cuts off is dropped when it is opened again.
            with open(self._path, "ab") as file:
                file.write(self._line(entry).encode())
                file.flush()
        if self._board is not None:
            for name, value in entry.items():
                if name != "step":
                    self._board.add_scalar(name, value, int(entry["step"]))

    def sync(self) -> None:
        """Make what was written so far last, whatever happens to the machine."""
        if self._path is not None:
            handle = os.open(self._path, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)

    def close(self) -> None:
        """End writing; the entries stay."""
        if self._board is not None:
            self._board.close()

    def _rewrite(self) -> None:
        if self._path is not None:
            head = io.StringIO()
            csv.writer(head, lineterminator="\n").writerow(self._columns)
            write_text(self._path, head.getvalue() + "".join(map(self._line, self.entries)))

    def _line(self, entry: Mapping[str, float]) -> str:
        # repr of a float, shortest that reads back the same: what is resumed has the same numbers.
        return ",".join("" if name not in entry else repr(entry[name]) for name in self._columns) + "\n"


def read(path: Path) -> list[dict[str, float]]:
    """The entries of a journal; a last line that was cut off is left out.

    Raises `DataError` where any other line does not fit the header.
    """
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


def _writer(folder: Path, since: int) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ModuleNotFoundError:
        raise MissingExtraError("tensorboard", "tensorboard") from None
    return SummaryWriter(str(folder), purge_step=since + 1 if since else None)
