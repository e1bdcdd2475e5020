"""Parquet tables: those that counterfoil wrote, checked by a schema, and those of any origin."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from counterfoil.errors import DataError
from counterfoil.inputs.files import regular, unreadable
from counterfoil.inputs.limits import check_room

#: What a column holds; "wholes" and the like are lists of them, "wholes2" lists of lists.
Kind = Literal["text", "whole", "real", "truth", "bytes", "wholes", "texts", "reals", "wholes2"]

#: Bytes that a cell takes at least once it is in memory, whatever it is packed into in the file.
_CELL = 4


@dataclass(frozen=True)
class ColumnSchema:
    """What a column, or its lists, hold: kind, range, and whether a cell may be null or not a number."""

    kind: Kind
    null: bool = False
    nan: bool = False
    low: float | None = None
    high: float | None = None
    unique: bool = False
    required: bool = True


@dataclass(frozen=True)
class Schema:
    """The columns of a table by name, and by prefix ("group:"); others, of newer versions, are kept."""

    columns: Mapping[str, ColumnSchema]
    prefixes: Mapping[str, ColumnSchema] = field(default_factory=dict)

    def column(self, name: str) -> ColumnSchema | None:
        """What the schema says of a column, None where it says nothing."""
        if name in self.columns:
            return self.columns[name]
        return next((schema for prefix, schema in self.prefixes.items() if name.startswith(prefix)), None)

    @property
    def arrow(self) -> pa.Schema:
        """The named columns as Arrow has them."""
        return pa.schema([(name, _KINDS[column.kind][1]) for name, column in self.columns.items()])


def read_columns(path: Path, schema: Schema) -> pa.Table:
    """The table in a Parquet file of ours, checked by its schema: `string`, `int64`, `float64`."""
    return check_columns(read_parquet(path), schema, where=path)


def check_columns(table: pa.Table, schema: Schema, *, where: object) -> pa.Table:
    """`table` with the types that the schema names; raises as `read_columns`.

    >>> made = pa.table({"id": ["a", "b"], "gain": [1.0, -1.0]})
    >>> schema = Schema({"id": ColumnSchema("text", unique=True), "gain": ColumnSchema("real", low=0)})
    >>> check_columns(made, schema, where="positives.parquet")
    Traceback (most recent call last):
    counterfoil.errors.DataError: positives.parquet, column 'gain', row 2: out of range; given: -1.0; ...
    """
    required = {name for name, column in schema.columns.items() if column.required}
    if lacking := [name for name in schema.columns if name in required - {*table.column_names}]:
        names = ", ".join(table.column_names[:8])
        if table.num_columns > 8:
            names += f", ... ({table.num_columns:,} columns)"
        raise DataError(f"no column '{lacking[0]}'", where=where, given=names, hint="was it edited?")
    if len(set(table.column_names)) < len(table.column_names):
        raise DataError("two columns of one name", where=where, hint="was it edited?")
    for i, name in enumerate(table.column_names):
        column = schema.column(name)
        if column is not None:
            checked = _checked(table.column(i), column, f"{where}, column '{name}'")
            table = table.set_column(i, name, checked)
    return table


def read_parquet(path: str | Path) -> pa.Table:
    """The table in a Parquet file of any origin, if what it unpacks to fits into memory."""
    regular(path)
    try:
        with _opened(path) as opened:
            check_size(opened.metadata, where=path)
            return opened.read()
    except pa.ArrowMemoryError:
        raise DataError("the table does not fit into memory", where=path) from None
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise broken(path, error) from None
    except OSError as error:
        # Arrow's own errors of input carry no number of the system's.
        raise (broken(path, error) if error.errno is None else unreadable(path, error)) from None


def read_batches(path: Path, column: str, *, rows: int = 1 << 16) -> Iterator[pa.Array]:
    """A column of a Parquet file of any origin, some rows at a time, from the file mapped into memory.

    The file is opened for this alone: two threads that use one `ParquetFile` end the process.
    """
    try:
        with _opened(path, memory_map=True) as opened:
            batches = opened.iter_batches(rows, columns=[column], use_threads=False)
            while (batch := next(batches, None)) is not None:
                # Cells of a damaged file may point outside its bytes, and Arrow follows them.
                batch.validate(full=True)
                yield batch.column(0)
    except (pa.ArrowException, OSError, IndexError) as error:
        raise broken(path, error) from None


def _opened(path: str | Path, **options: Any) -> Any:
    # Loading the library for Parquet takes a tenth of a second, and many commands read none.
    from pyarrow.parquet import ParquetFile

    return ParquetFile(path, **options)


def broken(path: object, error: Exception, kind: str = "Parquet") -> DataError:
    """The error of a file that is not what its name says."""
    words = " ".join(str(error).split())[:200]
    return DataError(f"not a readable {kind} file: {words}", where=path, hint="is the file cut off?")


def check_size(facts: Any, *, where: object, columns: Sequence[str] | None = None) -> None:
    """Raise `DataError` where `columns` (all by default) hold more than fits into memory."""
    rows, leaves = facts.num_rows, facts.num_columns if columns is None else len(columns)
    # A value that repeats a billion times takes a few bytes in the file, however it is packed.
    needed = rows * _CELL * leaves
    if columns is None:
        # Of groups as wholes: to ask a damaged file about a single column of one ends the process.
        needed = max(needed, sum(facts.row_group(i).total_byte_size for i in range(facts.num_row_groups)))
    check_room(needed, where=where, what=f"a table of {rows:,} rows and {leaves:,} columns")


def values(table: pa.Table, name: str, *, where: object) -> list[Any]:
    """A column as Python's values; raises for dates after 9999, nanoseconds, and texts that are no UTF-8."""
    column = table.column(name)
    try:
        cells: list[Any] = column.to_pylist()
    except (ValueError, OverflowError, pa.ArrowException, KeyError) as error:
        problem = f"a cell of type {column.type} cannot be read: {' '.join(str(error).split())[:120]}"
        raise DataError(problem, where=f"{where}, column '{name}'") from None
    return cells


def notes(table: pa.Table) -> dict[str, str]:
    """What a table's metadata say, by name; bytes that are no UTF-8 are replaced."""
    pairs = (table.schema.metadata or {}).items()
    return {key.decode("utf-8", "replace"): value.decode("utf-8", "replace") for key, value in pairs}


def _checked(column: pa.ChunkedArray, wanted: ColumnSchema, where: str) -> pa.ChunkedArray:
    words, target, _, inner_kind = _KINDS[wanted.kind]
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not (_fits(column.type, wanted.kind) or (pa.types.is_null(column.type) and wanted.kind != "truth")):
        raise DataError("wrong type", where=where, given=str(column.type)[:60], allowed=words)
    try:
        # Arrow does not look at texts when it reads them.
        column.validate(full=True)
        column = column.cast(target)
    except pa.ArrowException as error:
        raise DataError(f"cannot be read: {' '.join(str(error).split())[:120]}", where=where) from None
    if column.null_count and not wanted.null:
        raise _off("empty", where, _first(column.is_null()))
    inner, place, kind = column, where, wanted.kind
    while inner_kind is not None:
        import pyarrow.compute as pc

        # The row is left out: only counterfoil writes such tables.
        inner, kind, place = pc.list_flatten(inner), inner_kind, f"{where}, within the lists"
        inner_kind = _KINDS[kind][3]
        if inner.null_count and inner_kind is None:
            raise _off("empty", place, _first(inner.is_null()))
    if kind in ("whole", "real"):
        _check_range(inner, wanted, place)
    if wanted.unique and len(column.unique()) < len(column):
        seen: set[object] = set()
        for row, value in enumerate(column.to_pylist()):
            if value in seen:
                raise _off("occurs twice", where, row, given=str(value)[:60])
            seen.add(value)
    return column


def _check_range(column: pa.ChunkedArray, wanted: ColumnSchema, where: str) -> None:
    numbers = column.drop_null().to_numpy()
    if not len(numbers):
        return
    if numbers.dtype.kind == "f":
        odd = np.isinf(numbers) if wanted.nan else ~np.isfinite(numbers)
        if odd.any():
            raise _off("not a finite number", where, _row(column, odd), given=numbers[int(np.argmax(odd))])
    low = -np.inf if wanted.low is None else wanted.low
    high = np.inf if wanted.high is None else wanted.high
    out = (numbers < low) | (numbers > high)
    if out.any():
        ends = f"{low:g} or more" if wanted.high is None else f"{low:g} to {high:g}"
        allowed = f"at most {high:g}" if wanted.low is None else ends
        given = numbers[int(np.argmax(out))]
        raise _off("out of range", where, _row(column, out), given=given, allowed=allowed)


def _row(column: pa.ChunkedArray, odd: Any) -> int:
    """The row of the first odd value, nulls counted in."""
    i = int(np.argmax(odd))
    if not column.null_count:
        return i
    return int(np.flatnonzero(column.is_valid().to_numpy())[i])


def _first(mask: pa.ChunkedArray) -> int:
    return int(np.argmax(mask.to_numpy()))


def _off(what: str, where: str, row: int, **more: Any) -> DataError:
    return DataError(what, where=f"{where}, row {row + 1}", **more)


def _fits(kind: pa.DataType, wanted: Kind) -> bool:
    """Whether a column of this type can hold what is wanted."""
    _, _, tests, inner = _KINDS[wanted]
    if not any(test(kind) for test in tests):
        return False
    return inner is None or pa.types.is_null(kind.value_type) or _fits(kind.value_type, inner)


_TEXTS = (pa.types.is_string, pa.types.is_large_string)
_BYTES = (pa.types.is_binary, pa.types.is_large_binary)
_LISTS = (pa.types.is_list, pa.types.is_large_list)
_WHOLE, _REAL = (pa.types.is_integer,), (pa.types.is_integer, pa.types.is_floating)

#: Of each kind its name in messages, the type of columns, which others will do, and the kind within lists.
_KINDS: dict[Kind, tuple[str, pa.DataType, Sequence[Callable[[pa.DataType], bool]], Kind | None]] = {
    "text": ("texts", pa.string(), _TEXTS, None),
    "whole": ("whole numbers", pa.int64(), _WHOLE, None),
    "real": ("numbers", pa.float64(), _REAL, None),
    "truth": ("true and false", pa.bool_(), (pa.types.is_boolean,), None),
    "bytes": ("bytes", pa.binary(), _BYTES, None),
    "wholes": ("lists of whole numbers", pa.list_(pa.int64()), _LISTS, "whole"),
    "texts": ("lists of texts", pa.list_(pa.string()), _LISTS, "text"),
    "reals": ("lists of numbers", pa.list_(pa.float64()), _LISTS, "real"),
    "wholes2": ("lists of lists of whole numbers", pa.list_(pa.list_(pa.int64())), _LISTS, "wholes"),
}
