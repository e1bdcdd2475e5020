"""Tables as training data: columns as Arrow has them, and no Python object per row of large Parquet files.

Captions would take gigabytes as Python's strings, in each process that trains on them. Here each distinct
text lies once in an Arrow file that all processes map and share, and a row is a position in it. Texts are
told apart by 128-bit digests, so that no more than those is held while they are read.
"""

import hashlib
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from jaxtyping import Int64
from numpy import ndarray

from counterfoil.benchmarks.records import Caption, CellSource, Image, Item, Lazy, Source, TarSource
from counterfoil.benchmarks.references import bounds
from counterfoil.benchmarks.tables import DataTable, TablePart, check_header, holds_bytes, shown
from counterfoil.benchmarks.training_rows import CAPTION_ROLES, IMAGE_ROLES, LABELS, label
from counterfoil.errors import DataError
from counterfoil.inputs.columns import read_batches
from counterfoil.inputs.files import digest_value
from counterfoil.store import writing

#: Raised when the meaning of the files changes: older ones are then never looked at.
SCHEMA = 1
#: Rows that are read at a time.
_ROWS = 1 << 16
_TEXTS = "captions.arrow"
_TEXT = pa.schema([("text", pa.string())])


class Parts(Lazy[Item]):
    """Items that lie in parts of some sizes, one after another."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self._starts = bounds(sizes)

    def __len__(self) -> int:
        return int(self._starts[-1])

    def part(self, place: int) -> tuple[int, int]:
        """The part that an item lies in, and its place in it."""
        number = int(np.searchsorted(self._starts, place, side="right")) - 1
        return number, place - int(self._starts[number])


class StoredCaptions(Parts[Caption]):
    """The captions in an Arrow file, made when they are asked for; pickles as the path of the file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with pa.memory_map(str(path)) as source:
            opened = pa.ipc.open_file(source)
            self._batches = [opened.get_batch(i).column(0) for i in range(opened.num_record_batches)]
        super().__init__([len(batch) for batch in self._batches])

    def __reduce__(self) -> tuple[type["StoredCaptions"], tuple[Path]]:
        return StoredCaptions, (self.path,)

    def item(self, place: int) -> Caption:
        """The caption at a place; its id is the place."""
        number, row = self.part(place)
        return Caption(str(place), self._batches[number][row].as_py())

    def __iter__(self) -> Iterator[Caption]:
        for start, batch in zip(self._starts.tolist(), self._batches, strict=False):
            for i, text in enumerate(batch.to_pylist(), start):
                yield Caption(str(i), text)


class Images(Parts[Image]):
    """Images that are named, then those of whole columns of cells, made when they are asked for."""

    def __init__(self, named: Sequence[Image], cells: Sequence["Cells"]) -> None:
        self._parts: list[Sequence[Image]] = [named, *cells]
        super().__init__([len(part) for part in self._parts])

    def item(self, place: int) -> Image:
        """The image at a place."""
        number, row = self.part(place)
        return self._parts[number][row]


class Cells(Parts[Image]):
    """The images in a column of Parquet files, one per row."""

    def __init__(self, files: Sequence[Path], rows: Sequence[int], column: str) -> None:
        self._files, self._column = files, column
        super().__init__(rows)

    def item(self, place: int) -> Image:
        """The image of a row."""
        number, row = self.part(place)
        return Image(f"{self._column}/{place + 1}", CellSource(self._files[number], self._column, row))


#: Of a column or a role the positions of its texts, and how many each row has; None where each has one.
Texts = tuple[Int64[ndarray, "texts"], Int64[ndarray, "rows"] | None]
#: Where an image is, from the cell of a table that names it, the column and the row.
Find = Callable[[Any, str, int], Source]


class Columns:
    """The columns of a table in memory."""

    #: The Parquet files that the table is in, and the rows of each.
    files: Sequence[Path] = ()
    rows: Sequence[int] = ()

    def __init__(self, table: DataTable) -> None:
        #: What names a row in messages.
        self.table = table

    @property
    def names(self) -> Sequence[str]:
        """The names of all columns."""
        return list(self.table.columns)

    def images(self, columns: Mapping[str, str], find: Find) -> tuple[Sequence[Image], dict[str, ndarray]]:
        """The images of the roles in `columns`, and the position of each row's; equal names are one image."""
        named: list[Image] = []
        number_of: dict[object, int] = {}
        cells: list[Cells] = []
        positions: dict[str, ndarray] = {}
        waiting: list[str] = []
        for role, column in columns.items():
            if role not in IMAGE_ROLES:
                continue
            if self.holds_bytes(column):
                cells.append(Cells(self.files, self.rows, column))
                waiting.append(role)
                continue
            values, codes, first = self._distinct(column)
            numbers = np.empty(len(values), dtype=np.int64)
            for i, (value, row) in enumerate(zip(values, first.tolist(), strict=True)):
                is_name = isinstance(value, str | int | TarSource)
                key = value if is_name else (column, row)
                if key not in number_of:
                    number_of[key] = len(named)
                    name = str(value) if is_name else f"{column}/{row + 1}"
                    named.append(Image(name, find(value, column, row)))
                numbers[i] = number_of[key]
            positions[role] = numbers[codes]
        for number, role in enumerate(waiting):
            start = len(named) + number * len(self.table)
            positions[role] = np.arange(start, start + len(self.table))
        return Images(named, cells) if cells else tuple(named), positions

    def labels(self, source: ndarray | None) -> dict[str, tuple[str, ...]]:
        """The labels of rows, or of the rows `source`; equal ones are one string."""
        labels_of = {}
        for name in (name for name in LABELS if name in self.names):
            values, codes, first = self._distinct(name)
            rows = zip(values, first.tolist(), strict=True)
            spelled = [label(value, self.table.where(row, name)) for value, row in rows]
            labels_of[name] = tuple(spelled[code] for code in (codes if source is None else codes[source]))
        return labels_of

    def captions(
        self, roles: Mapping[str, str], shelf: Path | None
    ) -> tuple[StoredCaptions, dict[str, Texts]]:
        """The captions, and of each role the positions of its texts and how many each row has (None: one)."""
        column_of = {role: column for role, column in roles.items() if role in CAPTION_ROLES}
        columns = list(column_of.values())
        if shelf is None or not self.files:
            folder, shelf = Path(tempfile.mkdtemp(prefix="counterfoil-")), None
        else:
            # The texts of files that lie where they lay and were not written since.
            stats = [[str(f.resolve()), f.stat().st_size, f.stat().st_mtime_ns] for f in self.files]
            folder = shelf / digest_value({"schema": SCHEMA, "files": stats, "columns": columns})
        try:
            if not all((folder / f"{column}.npy").is_file() for column in columns):
                self._write(folder, columns)
        except BaseException:
            if shelf is None:
                shutil.rmtree(folder, ignore_errors=True)
            raise
        texts: dict[str, Texts] = {}
        for role, column in column_of.items():
            positions, counts = folder / f"{column}.npy", folder / f"{column}.counts.npy"
            texts[role] = (
                np.load(positions, mmap_mode="r", allow_pickle=False),
                np.load(counts, mmap_mode="r", allow_pickle=False) if counts.is_file() else None,
            )
        captions = StoredCaptions(folder / _TEXTS)
        if shelf is None:
            weakref.finalize(captions, shutil.rmtree, folder, ignore_errors=True)
        return captions, texts

    def _write(self, folder: Path, columns: Sequence[str]) -> None:
        """Texts and positions of `columns`; the positions of the last column are written last."""
        ends, counts = [0], {}
        digests = bytearray()
        for column in columns:
            lengths = []
            for array, batch in self._batches(column):
                lengths.append(batch)
                for text in array.cast(pa.binary()).to_pylist():
                    digests += hashlib.blake2b(text, digest_size=16).digest()
            ends.append(len(digests) // 16)
            counts[column] = np.concatenate(lengths)
        # A number for each distinct text, in the order of first occurrence, and which are first.
        buffers = [None, pa.py_buffer(digests)]
        cells = pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), len(digests) // 16, buffers)
        numbers = cells.dictionary_encode().indices.to_numpy().astype(np.int64)
        first = numbers > np.maximum.accumulate(np.concatenate([[-1], numbers]))[:-1]
        del digests, buffers, cells
        with writing(folder / _TEXTS) as file, pa.ipc.new_file(file, _TEXT) as out:
            begin = 0
            for column in columns:
                for array, _ in self._batches(column):
                    fresh = array.filter(pa.array(first[begin : begin + len(array)]))
                    begin += len(array)
                    out.write_batch(pa.record_batch([fresh], schema=_TEXT))
        for column, start, stop in zip(columns, ends, ends[1:], strict=False):
            if (counts[column] != 1).any():
                with writing(folder / f"{column}.counts.npy") as file:
                    np.save(file, counts[column])
            with writing(folder / f"{column}.npy") as file:
                np.save(file, numbers[start:stop])

    def _batches(self, column: str) -> Iterator[tuple[pa.Array, ndarray]]:
        """The texts of a column without outer blanks, some rows at a time, and how many each row has; raises
        `DataError` for a row that lacks one.
        """
        row = 0
        for cells in self._texts(column):
            texts, of, lengths = cells, None, np.ones(len(cells))
            if _listed(cells.type):
                lengths = cells.value_lengths().fill_null(1).to_numpy()
                if (lengths == 0).any():
                    place = self.table.where(row + int(np.argmax(lengths == 0)), column)
                    raise DataError("no caption", where=place)
                # A null list is a null text, for which the message is the same.
                if not cells.null_count:
                    texts, of = cells.flatten(), np.repeat(np.arange(len(cells)), lengths)
            missing = texts.is_null().to_numpy(zero_copy_only=False)
            if not missing.any():
                texts = pc.utf8_trim_whitespace(texts).cast(pa.string())
                missing = pc.equal(pc.binary_length(texts), 0).to_numpy(zero_copy_only=False)
            if missing.any():
                i = int(np.argmax(missing))
                place = self.table.where(row + (i if of is None else int(of[i])), column)
                raise DataError("empty text", where=place, given=shown(texts[i].as_py()))
            yield texts, lengths.astype(np.int64)
            row += len(cells)

    def holds_bytes(self, column: str) -> bool:
        """Whether the images of a column stay in its cells until they are asked for."""
        return False

    def _distinct(self, column: str) -> tuple[Sequence[object], ndarray, ndarray]:
        """The values of a column in order of first occurrence, the place of each row's, and first rows."""
        rows = np.arange(len(self.table))
        return self.table[column], rows, rows

    def _texts(self, column: str) -> Iterator[pa.Array]:
        """The cells of a column of texts or of lists of them, some rows at a time."""
        cells = self.table[column]
        for start in range(0, len(cells), _ROWS):
            rows = []
            for row, cell in enumerate(cells[start : start + _ROWS], start):
                listed = cell if isinstance(cell, list | tuple) else (cell,)
                # Some data sets keep what else they know of a sentence beside it.
                texts = [t.get("raw", t.get("caption")) if isinstance(t, dict) else t for t in listed]
                for text in texts:
                    if not isinstance(text, str | None):
                        raise DataError("not a text", where=self.table.where(row, column), given=shown(text))
                rows.append(texts)
            yield pa.array(rows, pa.list_(pa.string()))


class ParquetColumns(Columns):
    """The columns of Parquet files that make one table, read one after the other."""

    def __init__(self, files: Sequence[Path], source: str) -> None:
        self.files = list(files)
        self.schema = pq.read_schema(files[0])
        check_header(self.schema.names, files[0])
        self.rows = [pq.read_metadata(file).num_rows for file in files]
        parts = (TablePart(str(file), rows) for file, rows in zip(files, self.rows, strict=True))
        super().__init__(DataTable({"row": range(sum(self.rows))}, source, "parquet", tuple(parts)))

    @classmethod
    def of(cls, files: Sequence[Path], source: str) -> "ParquetColumns | None":
        """The columns of `files`; None where one cannot be opened, or has no rows, as a reader will say."""
        try:
            return cls(files, source)
        except (pa.ArrowException, OSError, DataError):
            return None

    @property
    def names(self) -> Sequence[str]:
        """The names of all columns."""
        return list(self.schema.names)

    def suits(self, columns: Mapping[str, str]) -> bool:
        """Whether all files have texts, or lists of texts, as captions, cells or names as images, labels."""
        role_of = {name: role for role, name in columns.items()} | {n: n for n in LABELS if n in self.names}
        wanted = {name: self.schema.field(name).type for name in role_of}
        for file in self.files[1:]:
            schema = pq.read_schema(file)
            if any(name not in schema.names or schema.field(name).type != wanted[name] for name in wanted):
                return False
        types = pa.types
        for name, kind in wanted.items():
            named = _text(kind) or types.is_integer(kind)
            if role_of[name] in CAPTION_ROLES:
                fits = _text(kind) or (_listed(kind) and _text(kind.value_type))
            elif role_of[name] in IMAGE_ROLES:
                fits = named or holds_bytes(kind)
            else:
                # Arrow codes no lists, and has dates that Python has not.
                plain = kind.value_type if types.is_dictionary(kind) else kind
                fits = _text(plain) or types.is_integer(plain) or plain in (pa.null(), pa.bool_())
            if not fits:
                return False
        return True

    def holds_bytes(self, column: str) -> bool:
        """Whether the images of a column stay in its cells until they are asked for."""
        return holds_bytes(self.schema.field(column).type)

    def _distinct(self, column: str) -> tuple[Sequence[object], ndarray, ndarray]:
        whole = pa.chunked_array([*self._texts(column)]).combine_chunks()
        coded = whole.dictionary_encode(null_encoding="encode")
        codes = coded.indices.to_numpy(zero_copy_only=False)
        _, first = np.unique(codes, return_index=True)
        return coded.dictionary.to_pylist(), codes, first

    def _texts(self, column: str) -> Iterator[pa.Array]:
        for file in self.files:
            yield from read_batches(file, column, rows=_ROWS)


def _text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _listed(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))
