"""Large Parquet tables as training data: columns as Arrow has them, and no Python object per row.

Of 3.65 million rows that keeps two positions and the distinct images; captions stay in a file that is mapped
into memory (`training_captions`), pictures in the cells they lie in.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy import ndarray

from counterfoil.data.columns import DataTable, TablePart, shown
from counterfoil.data.lazy import Lazy
from counterfoil.data.readers.rows import CellSource
from counterfoil.data.records import Image, Source
from counterfoil.data.training import CAPTION_ROLES, IMAGE_ROLES
from counterfoil.data.training_captions import StoredCaptions, spoken
from counterfoil.data.training_rows import LABELS, label
from counterfoil.errors import DataError
from counterfoil.inputs.columns import read_batches

#: Where an image is, from the cell of a table that names it, the column and the row.
Find = Callable[[object, str, int], Source]


class Images(Lazy[Image]):
    """Images that are named, then those of whole columns of cells, made when they are asked for."""

    def __init__(self, named: Sequence[Image], cells: Sequence["Cells"]) -> None:
        self._parts: list[Sequence[Image]] = [named, *cells]
        self._starts = np.concatenate([[0], np.cumsum([len(part) for part in self._parts])])

    def __len__(self) -> int:
        return int(self._starts[-1])

    def item(self, place: int) -> Image:
        """The image at a place."""
        number = int(np.searchsorted(self._starts, place, side="right")) - 1
        return self._parts[number][place - int(self._starts[number])]


class Cells(Lazy[Image]):
    """The images in a column of Parquet files, one per row."""

    def __init__(self, files: Sequence[Path], rows: Sequence[int], column: str) -> None:
        self._files, self._column = files, column
        self._starts = np.concatenate([[0], np.cumsum(rows)])

    def __len__(self) -> int:
        return int(self._starts[-1])

    def item(self, place: int) -> Image:
        """The image of a row."""
        number = int(np.searchsorted(self._starts, place, side="right")) - 1
        source = CellSource(self._files[number], self._column, place - int(self._starts[number]))
        return Image(f"{self._column}/{place + 1}", source)


class Columns:
    """The columns of Parquet files that make one table, read one after the other."""

    def __init__(self, files: Sequence[Path], source: str) -> None:
        self.files, self.source = list(files), source
        self.schema = pq.read_schema(files[0])
        self.rows = [pq.read_metadata(file).num_rows for file in files]
        #: What names a row in messages.
        self.table = DataTable(
            {"row": range(sum(self.rows))},
            source,
            "parquet",
            tuple(TablePart(str(file), rows) for file, rows in zip(files, self.rows, strict=True)),
        )

    @classmethod
    def of(cls, files: Sequence[Path], source: str) -> "Columns | None":
        """The columns of `files`; None where one cannot be opened, or has no rows, as a reader will say."""
        try:
            return cls(files, source)
        except (pa.ArrowException, OSError, DataError):
            return None

    def suits(self, columns: Mapping[str, str]) -> bool:
        """Whether all files have texts, or lists of texts, as captions, and cells or names as images."""
        wanted = {name: self.schema.field(name).type for name in columns.values()}
        for file in self.files[1:]:
            found = pq.read_schema(file)
            if any(name not in found.names or found.field(name).type != wanted[name] for name in wanted):
                return False
        return all(
            _text(kind) or (_listed(kind) and _text(kind.value_type))
            if role in CAPTION_ROLES
            else _held(kind) or _text(kind) or pa.types.is_integer(kind)
            for role, kind in ((role, wanted[name]) for role, name in columns.items())
        )

    def images(self, columns: Mapping[str, str], find: Find) -> tuple[Images, dict[str, ndarray]]:
        """The images of the roles in `columns`, and the position of each row's; equal names are one image.

        `find` says where a named one is, and raises for what names none.
        """
        named: list[Image] = []
        known: dict[object, int] = {}
        cells: list[Cells] = []
        places: dict[str, ndarray] = {}
        waiting: list[str] = []
        for role, column in columns.items():
            if role not in IMAGE_ROLES:
                continue
            if _held(self.schema.field(column).type):
                cells.append(Cells(self.files, self.rows, column))
                waiting.append(role)
                continue
            values, codes, first = self._distinct(column)
            own = np.empty(len(values), dtype=np.int64)
            for at, (value, row) in enumerate(zip(values, first.tolist(), strict=True)):
                if value not in known:
                    known[value] = len(named)
                    named.append(Image(str(value), find(value, column, row)))
                own[at] = known[value]
            places[role] = own[codes]
        for number, role in enumerate(waiting):
            start = len(named) + number * sum(self.rows)
            places[role] = np.arange(start, start + sum(self.rows))
        return Images(named, cells), places

    def labels(self, source: ndarray | None) -> dict[str, tuple[str, ...]]:
        """The labels of rows, or of the rows `source`; equal ones are one string."""
        found = {}
        for name in LABELS:
            if name not in self.schema.names:
                continue
            values, codes, first = self._distinct(name)
            spelled = [
                label(value, self.table.where(row, name))
                for value, row in zip(values, first.tolist(), strict=True)
            ]
            found[name] = tuple(spelled[code] for code in (codes if source is None else codes[source]))
        return found

    def captions(
        self, columns: Mapping[str, str], shelf: Path | None
    ) -> tuple[StoredCaptions, dict[str, tuple[ndarray, ndarray | None]]]:
        """The captions, and of each role the positions of its texts and how many each row has (None: one)."""
        roles = {role: column for role, column in columns.items() if role in CAPTION_ROLES}
        found = spoken(self.files, list(roles.values()), self._checked, shelf=shelf)
        return found.captions, {
            role: (found.positions[column], found.counts.get(column)) for role, column in roles.items()
        }

    def _checked(self, column: str, row: int, cells: pa.Array) -> pa.Array:
        """The texts of cells, without outer blanks; raises `DataError` for a row that lacks one."""
        texts, of = cells, None
        if _listed(cells.type):
            lengths = cells.value_lengths().fill_null(1).to_numpy()
            if (lengths == 0).any():
                raise DataError(
                    "no caption", where=self.table.where(row + int(np.argmax(lengths == 0)), column)
                )
            # A null list is a null text, for which the message is the same.
            if not cells.null_count:
                texts, of = cells.flatten(), np.repeat(np.arange(len(cells)), lengths)
        missing = texts.is_null().to_numpy(zero_copy_only=False)
        if not missing.any():
            texts = pc.utf8_trim_whitespace(texts).cast(pa.string())
            missing = pc.equal(pc.binary_length(texts), 0).to_numpy(zero_copy_only=False)
        if missing.any():
            at = int(np.argmax(missing))
            raise DataError(
                "empty text",
                where=self.table.where(row + (at if of is None else int(of[at])), column),
                given=shown(texts[at].as_py()),
            )
        return texts

    def _distinct(self, column: str) -> tuple[list[object], ndarray, ndarray]:
        """The values of a column in order of first occurrence, the place of each row's, and first rows."""
        whole = pa.chunked_array(list(self._read(column))).combine_chunks()
        coded = whole.dictionary_encode(null_encoding="encode")
        codes = coded.indices.to_numpy(zero_copy_only=False)
        _, first = np.unique(codes, return_index=True)
        return coded.dictionary.to_pylist(), codes, first

    def _read(self, column: str) -> Iterator[pa.Array]:
        for file in self.files:
            yield from read_batches(file, column)


def _text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _listed(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _held(kind: pa.DataType) -> bool:
    """Whether a column's cells hold pictures."""
    if pa.types.is_struct(kind):
        return any(kind.field(i).name == "bytes" for i in range(kind.num_fields))
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))
