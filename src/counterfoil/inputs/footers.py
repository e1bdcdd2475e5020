"""Column statistics in a Parquet file's footer, group by group, read without Arrow.

To ask Arrow about one column of a group of a damaged file ends the process; here the worst is a `DataError`.
The footer is Thrift's compact protocol (parquet.thrift: FileMetaData, RowGroup, ColumnMetaData, Statistics).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from counterfoil.errors import DataError
from counterfoil.inputs.columns import broken
from counterfoil.inputs.files import regular

_MAGIC = b"PAR1"
#: No footer nests structs or lists any deeper.
_DEEPEST = 24


@dataclass(frozen=True)
class Group:
    """A row group: its rows, and how many cells of a leaf are null, by the leaf's path ("image.bytes").

    Leaves of which the file does not say it are not there.
    """

    rows: int
    nulls: Mapping[str, int]


def groups(path: Path) -> tuple[Group, ...]:
    """The row groups of a Parquet file, in order; raises `DataError` where its footer cannot be read."""
    regular(path)
    try:
        with open(path, "rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - 8))
            end = file.read()
            length = int.from_bytes(end[:4], "little")
            if end[4:] != _MAGIC or length > size - 12:
                raise ValueError("no footer at its end")
            file.seek(size - 8 - length)
            facts = _Compact(file.read(length)).struct()
        return tuple(_group(each) for each in facts[4])
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        words = str(error) if isinstance(error, ValueError) else "its footer lacks what it must have"
        raise broken(path, ValueError(words)) from None
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", where=path) from None


def _group(facts: dict[int, Any]) -> Group:
    nulls = {}
    for column in facts[1]:
        about = column.get(3, {})
        count = about.get(12, {}).get(3)
        if count is not None:
            nulls[b".".join(about[3]).decode("utf-8", "replace")] = int(count)
    return Group(int(facts[3]), nulls)


class _Compact:
    """A reader of Thrift's compact protocol: structs as values by the number of their field."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """The struct that begins here. Raises `ValueError` or `IndexError` where there is none."""
        if depth > _DEEPEST:
            raise ValueError("a footer that nests too deep")
        found: dict[int, Any] = {}
        field = 0
        while head := self._byte():
            field = field + (head >> 4) if head >> 4 else self._signed()
            found[field] = self._value(head & 15, depth + 1)
        return found

    def _value(self, kind: int, depth: int) -> Any:
        if kind in (1, 2):
            return kind == 1
        if kind in (4, 5, 6):
            return self._signed()
        if kind in (9, 10):
            return list(self._items(depth))
        if kind == 12:
            return self.struct(depth)
        # A byte, a double, bytes, a UUID; Parquet has no maps.
        size = self._unsigned() if kind == 8 else {3: 1, 7: 8, 13: 16}.get(kind)
        if size is None:
            raise ValueError(f"a footer with a value of kind {kind}")
        return self._bytes(size)

    def _items(self, depth: int) -> Iterator[Any]:
        if depth > _DEEPEST:
            raise ValueError("a footer that nests too deep")
        head = self._byte()
        size = head >> 4 if head >> 4 < 15 else self._unsigned()
        if size > len(self._data) - self._at:
            raise ValueError("a footer with a list longer than the file")
        for _ in range(size):
            # In a list a truth takes a byte; in a struct it is part of the field's own.
            yield self._byte() == 1 if head & 15 in (1, 2) else self._value(head & 15, depth + 1)

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _bytes(self, size: int) -> bytes:
        if size > len(self._data) - self._at:
            raise ValueError("a footer with bytes beyond its end")
        self._at += size
        return self._data[self._at - size : self._at]

    def _unsigned(self) -> int:
        found = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            found |= (byte & 127) << shift
            if byte < 128:
                return found
        raise ValueError("a footer with a number that does not end")

    def _signed(self) -> int:
        found = self._unsigned()
        return (found >> 1) ^ -(found & 1)
