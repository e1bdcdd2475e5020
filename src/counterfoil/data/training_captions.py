"""The captions of large training sets: each distinct text once, in an Arrow file that is mapped into memory.

A set of millions of captions takes gigabytes as Python's strings, in each process that trains on it. Here
the texts lie in a file that all processes map and share, and a row is a position in it. Texts are told apart
by 128-bit digests, so that no more than those is held while they are read.
"""

import hashlib
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from jaxtyping import Int64
from numpy import ndarray

from counterfoil.data.lazy import Lazy
from counterfoil.data.records import Caption
from counterfoil.inputs.columns import read_batches
from counterfoil.store import digest_value, writing

#: Raised when the meaning of the files changes: older ones are then never looked at.
SCHEMA = 1
#: Rows that are read at a time.
_ROWS = 1 << 16
_TEXTS = "captions.arrow"

#: Checks the texts of a batch, given the column and its first row, and returns them without outer blanks.
Check = Callable[[str, int, pa.Array], pa.Array]


class StoredCaptions(Lazy[Caption]):
    """The captions in an Arrow file, made when they are asked for; pickles as the path of the file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with pa.memory_map(str(path)) as source:
            opened = pa.ipc.open_file(source)
            self._batches = [opened.get_batch(i).column(0) for i in range(opened.num_record_batches)]
        self._starts = np.concatenate([[0], np.cumsum([len(batch) for batch in self._batches])])

    def __reduce__(self) -> tuple[type["StoredCaptions"], tuple[Path]]:
        return StoredCaptions, (self.path,)

    def __len__(self) -> int:
        return int(self._starts[-1])

    def item(self, place: int) -> Caption:
        """The caption at a place; its id is the place."""
        number = int(np.searchsorted(self._starts, place, side="right")) - 1
        return Caption(str(place), self._batches[number][place - int(self._starts[number])].as_py())

    def __iter__(self) -> Iterator[Caption]:
        for start, batch in zip(self._starts.tolist(), self._batches, strict=False):
            for at, text in enumerate(batch.to_pylist(), start):
                yield Caption(str(at), text)


@dataclass(frozen=True, eq=False)
class Spoken:
    """Captions, and for each column that was read the positions of its texts, and how many each row has.

    `counts` lacks the columns that have one text per row.
    """

    captions: StoredCaptions
    positions: Mapping[str, Int64[ndarray, "texts"]]
    counts: Mapping[str, Int64[ndarray, "rows"]]


def spoken(files: Sequence[Path], columns: Sequence[str], check: Check, *, shelf: Path | None) -> Spoken:
    """The texts in `columns` of Parquet files, which are texts or lists of texts: equal ones are one caption.

    Captions are numbered as they occur, column after column. What was read is kept in the folder `shelf`,
    where the next process finds it; with None in a temporary folder, for as long as the captions are used.
    Raises what `check` raises.
    """
    folder = Path(tempfile.mkdtemp(prefix="counterfoil-")) if shelf is None else shelf / _key(files, columns)
    if not all((folder / f"{column}.npy").is_file() for column in columns):
        _write(folder, files, columns, check)
    positions: dict[str, ndarray] = {}
    counts: dict[str, ndarray] = {}
    for column in columns:
        positions[column] = np.load(folder / f"{column}.npy", mmap_mode="r", allow_pickle=False)
        if (folder / f"{column}.counts.npy").is_file():
            counts[column] = np.load(folder / f"{column}.counts.npy", mmap_mode="r", allow_pickle=False)
    captions = StoredCaptions(folder / _TEXTS)
    if shelf is None:
        weakref.finalize(captions, shutil.rmtree, folder, ignore_errors=True)
    return Spoken(captions, positions, counts)


def _key(files: Sequence[Path], columns: Sequence[str]) -> str:
    """What names the texts of files that lie where they lay and were not written since."""
    stats = [(str(file.resolve()), file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    return digest_value({"schema": SCHEMA, "files": [list(each) for each in stats], "columns": list(columns)})


def _write(folder: Path, files: Sequence[Path], columns: Sequence[str], check: Check) -> None:
    """Texts and positions of `columns`; the positions of the last column are written last."""
    ends, counts = [0], {}
    digests = bytearray()
    for column in columns:
        lengths = []
        for array, own in _batches(files, column, check):
            lengths.append(own)
            for text in array.cast(pa.binary()).to_pylist():
                digests += hashlib.blake2b(text, digest_size=16).digest()
        ends.append(len(digests) // 16)
        counts[column] = np.concatenate(lengths)
    numbers, first = _numbered(np.frombuffer(digests, dtype="<u8").reshape(-1, 2))
    del digests
    with writing(folder / _TEXTS) as file:
        schema = pa.schema([("text", pa.string())])
        with pa.ipc.new_file(file, schema) as out:
            at = 0
            for column in columns:
                for array, _ in _batches(files, column, check):
                    fresh = array.filter(pa.array(first[at : at + len(array)]))
                    at += len(array)
                    out.write_batch(pa.record_batch([fresh], schema=schema))
    for column, start, stop in zip(columns, ends, ends[1:], strict=False):
        if (counts[column] != 1).any():
            with writing(folder / f"{column}.counts.npy") as file:
                np.save(file, counts[column])
        with writing(folder / f"{column}.npy") as file:
            np.save(file, numbers[start:stop])


def _numbered(digests: ndarray) -> tuple[Int64[ndarray, "texts"], ndarray]:
    """A number for each distinct digest, in the order of first occurrence, and which are first."""
    order = np.lexsort((digests[:, 1], digests[:, 0]))
    same = (digests[order[1:]] == digests[order[:-1]]).all(axis=1)
    leads = np.concatenate([[True], ~same]) if len(order) else np.zeros(0, dtype=bool)
    # The sort keeps the order of equals, so the first of each group is the one that occurs first.
    first = np.zeros(len(order), dtype=bool)
    first[order[leads]] = True
    number = (np.cumsum(first) - 1)[order[leads]]
    found = np.empty(len(order), dtype=np.int64)
    found[order] = np.repeat(number, np.diff(np.append(np.flatnonzero(leads), len(order))))
    return found, first


def _batches(files: Sequence[Path], column: str, check: Check) -> Iterator[tuple[pa.Array, ndarray]]:
    """The texts of a column, some rows at a time, and how many each of those rows has."""
    row = 0
    for file in files:
        for cells in read_batches(file, column, rows=_ROWS):
            texts = check(column, row, cells)
            listed = pa.types.is_list(cells.type) or pa.types.is_large_list(cells.type)
            own = cells.value_lengths().to_numpy() if listed else np.ones(len(cells))
            yield texts, own.astype(np.int64)
            row += len(cells)
