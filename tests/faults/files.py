"""Makers of broken files: whole ones with one thing changed, for tests of what reads them.

Every maker is a pure function of bytes, or changes one thing in a folder, for tables of cases and for random
campaigns.
"""

import csv
import io
import json
import re
import struct
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from counterfoil.inputs.files import digest_file


def truncations(data: bytes, parts: int = 10) -> Iterator[bytes]:
    """A file cut off after every tenth of its bytes, and one byte before its end."""
    for part in range(parts):
        yield data[: len(data) * part // parts]
    if data:
        yield data[:-1]


def flipped(data: bytes, rng: np.random.Generator, bits: int = 1) -> bytes:
    changed = bytearray(data)
    for place in rng.integers(0, len(data), bits):
        changed[place] ^= 1 << int(rng.integers(0, 8))
    return bytes(changed)


def npy(header: str, data: bytes = b"", version: tuple[int, int] = (1, 0)) -> bytes:
    """An npy file with any header, whatever it claims."""
    text = header.encode("latin1")
    size = struct.pack("<H" if version == (1, 0) else "<I", len(text))
    return b"\x93NUMPY" + bytes(version) + size + text + data


def npy_of(shape: str, kind: str = "'<f4'", data: bytes = b"") -> bytes:
    """An npy file that claims a shape and a type, as they are written in its header."""
    return npy(f"{{'descr': {kind}, 'fortran_order': False, 'shape': {shape}}}\n", data)


def encrypted(archive: bytes) -> bytes:
    """An archive whose members all say that they are encrypted."""
    changed = bytearray(archive)
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        for match in re.finditer(re.escape(mark), archive):
            changed[match.start() + offset] |= 1
    return bytes(changed)


def npz(members: dict[str, bytes], *, method: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data, method)
    return buffer.getvalue()


def nested(depth: int, kind: str = "list") -> str:
    opening, closing = ("[", "]") if kind == "list" else ('{"a":', "}")
    return opening * depth + "1" + closing * depth


def json_faults(value: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """A JSON object with one field taken away or of another type, at any depth: (what was done, object)."""
    for path in _paths(value):
        for name, change in _CHANGES.items():
            copy = json.loads(json.dumps(value))
            inner: Any = copy
            for step in path[:-1]:
                inner = inner[step]
            if name == "taken away":
                del inner[path[-1]]
            else:
                inner[path[-1]] = change
            yield f"{'.'.join(map(str, path))} {name}", copy


_CHANGES: dict[str, Any] = {
    "taken away": None, "null": None, "a list": [1], "an object": {"x": 1}, "a text": "x", "a number": -1.5,
    "a truth": True,
}  # fmt: skip


def _paths(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (*above, key)
            yield from _paths(inner, (*above, key))


def change_json(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))


def change_column(path: Path, name: str, change: Callable[[list[Any]], object]) -> None:
    """Change the cells of a column of a Parquet file in place; the type stays where it can."""
    table = pq.read_table(path)
    cells = table[name].to_pylist()
    change(cells)
    try:
        column = pa.array(cells, table.schema.field(name).type)
    except (pa.ArrowException, TypeError):
        column = pa.array(cells)
    pq.write_table(table.set_column(table.column_names.index(name), name, column), path)


def drop_column(path: Path, name: str) -> None:
    pq.write_table(pq.read_table(path).drop_columns([name]), path)


def reseal(folder: Path) -> None:
    """Write the digests of changed files into the manifest of a run or of a benchmark, as a forger would."""

    def digests(manifest: dict[str, Any]) -> None:
        key = "digests" if "digests" in manifest else "files"
        manifest[key] = {name: digest_file(folder / name) for name in manifest[key]}

    change_json(folder / "manifest.json", digests)


def at(row: int, value: Any) -> Callable[[list[Any]], None]:
    def change(cells: list[Any]) -> None:
        cells[row] = value

    return change


def write_csv(path: Path, rows: Sequence[Mapping[str, object]], *, delimiter: str = ",") -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), delimiter=delimiter, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    path.write_text(text.getvalue())
