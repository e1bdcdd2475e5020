"""What can be wrong with a file: for each format, classes of damage with a function that does it.

A damage takes the file's path and, for the pseudo-random ones of the campaign, a generator; it replaces the
file (never writes into it: other copies may be links to the same bytes).
"""

import contextlib
import io
import json
import os
import re
import sqlite3
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from faults.files import encrypted, npy, npy_of, npz

Damage = Callable[[Path], None]

#: Text that a terminal, a spreadsheet, a page or LaTeX would obey.
HOSTILE = "=cmd|' /C calc'!A0 \x1b]0;owned\x07\x1b[31m \u202egnp \x9b2J </script><b> $\\input{x}$ [red]"
LONG = "x" * 300


def replaced(path: Path, data: bytes | str) -> None:
    path.unlink()
    path.write_bytes(data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data)


def _bytes(change: Callable[[bytes], bytes]) -> Damage:
    return lambda path: replaced(path, change(path.read_bytes()))


def _text(change: Callable[[str], str]) -> Damage:
    return lambda path: replaced(path, change(path.read_text("utf-8")))


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _loop(path: Path) -> None:
    path.unlink()
    other = path.with_name(f"other-{path.name}")
    other.symlink_to(path.name)
    path.symlink_to(other.name)


def _pipe(path: Path) -> None:
    path.unlink()
    os.symlink("/dev/null", path)


#: Of any file.
ANY: dict[str, Damage] = {
    "missing": lambda path: path.unlink(),
    "empty": lambda path: replaced(path, b""),
    "half": _bytes(lambda data: data[: len(data) // 2]),
    "cut-at-the-end": _bytes(lambda data: data[:-3]),
    "zeros": _bytes(lambda data: bytes(len(data))),
    "random-bytes": _bytes(lambda data: np.random.default_rng(0).bytes(min(len(data), 4096))),
    "folder": _folder,
    "link-loop": _loop,
    "a-device": _pipe,
    "a-png": lambda path: replaced(path, b"\x89PNG\r\n\x1a\n" + bytes(50)),
    "a-zip": lambda path: replaced(path, npz({"x.npy": b"no array"})),
    "a-pickle": lambda path: replaced(
        path, b"\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00\x8c\x07os.exit\x94."
    ),
}

#: Of any text.
TEXT: dict[str, Damage] = {
    "blanks": lambda path: replaced(path, " \n\n \t\n"),
    "one-word": lambda path: replaced(path, "hello"),
    "latin-1": _bytes(lambda data: data.replace(b"a", b"\xe4", 3)),
    "nul": _bytes(lambda data: data[:20] + b"\0" + data[20:]),
    "utf-16": _bytes(lambda data: data.decode().encode("utf-16")),
    "a-page": lambda path: replaced(path, "<!DOCTYPE html><html><body>404 Not Found</body></html>"),
    "an-lfs-pointer": lambda path: replaced(
        path, "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
    ),
}


def _cells(change: Callable[[list[list[str]]], list[list[str]]]) -> Damage:
    def damage(path: Path) -> None:
        mark = "\t" if path.suffix == ".tsv" else ","
        rows = [line.split(mark) for line in path.read_text("utf-8").splitlines()]
        replaced(path, "\n".join(mark.join(row) for row in change(rows)) + "\n")

    return damage


def _each(column: int, value: str, *, rows: slice = slice(1, None)) -> Damage:
    def change(cells: list[list[str]]) -> list[list[str]]:
        for row in cells[rows]:
            row[column] = value
        return cells

    return _cells(change)


TABLE: dict[str, Damage] = {
    **TEXT,
    "header-only": _cells(lambda rows: rows[:1]),
    "no-header": _cells(lambda rows: rows[1:]),
    "header-of-blanks": _cells(lambda rows: [[" "] * len(rows[0]), *rows[1:]]),
    "first-column-gone": _cells(lambda rows: [row[1:] for row in rows]),
    "last-column-gone": _cells(lambda rows: [row[:-1] for row in rows]),
    "column-twice": _cells(lambda rows: [[*row, row[-1]] for row in rows]),
    "ragged": _cells(lambda rows: [*rows[:2], rows[2][:-1], *rows[3:]]),
    "open-quote": _cells(lambda rows: [*rows[:2], ['"' + rows[2][0], *rows[2][1:]], *rows[3:]]),
    "semicolons": _text(lambda text: text.replace(",", ";").replace("\t", ";")),
    "cells-empty": _each(-1, "", rows=slice(2, 3)),
    "first-cell-empty": _each(0, "", rows=slice(2, 3)),
    "nan": _each(-1, "nan", rows=slice(2, 3)),
    "inf": _each(-1, "inf", rows=slice(2, 3)),
    "huge-number": _each(-1, "1e400", rows=slice(2, 3)),
    "digits": _each(-1, "9" * 5000, rows=slice(2, 3)),
    "negative": _each(-1, "-1", rows=slice(2, 3)),
    "a-word": _each(-1, "many", rows=slice(2, 3)),
    "all-the-same": _each(0, "same"),
    "hostile": _each(0, HOSTILE.replace(",", " "), rows=slice(2, 3)),
    "long-name": _each(0, LONG, rows=slice(2, 3)),
    "surrogate": lambda path: replaced(path, path.read_bytes().replace(b"a", b"\xed\xa0\x80", 3)),
    "wide": lambda path: replaced(path, ",".join(f"c{i}" for i in range(100_000)) + "\n"),
}


def _json(change: Callable[[Any], Any]) -> Damage:
    def damage(path: Path) -> None:
        if path.suffix == ".jsonl":
            result = change([json.loads(line) for line in path.read_text().splitlines()])
            text = "\n".join(map(json.dumps, result)) if isinstance(result, list) else json.dumps(result)
            replaced(path, text)
        else:
            replaced(path, json.dumps(change(json.loads(path.read_text()))))

    return damage


def _one(value: Any) -> Callable[[Any], Any]:
    """Replace the first leaf below the top by `value`."""

    def change(found: Any) -> Any:
        if isinstance(found, dict) and found:
            key = next(iter(found))
            inner = found[key]
            found[key] = change(inner) if isinstance(inner, dict | list) and inner else value
            return found
        if isinstance(found, list) and found:
            found[0] = change(found[0]) if isinstance(found[0], dict | list) and found[0] else value
            return found
        return value

    return change


def _without(found: Any) -> Any:
    if isinstance(found, list) and found and isinstance(found[0], dict):
        found[0].pop(next(iter(found[0])))
    elif isinstance(found, dict):
        found.pop(next(iter(found)))
    return found


JSON: dict[str, Damage] = {
    **TEXT,
    "null": lambda path: replaced(path, "null"),
    "a-number": lambda path: replaced(path, "3"),
    "a-text": lambda path: replaced(path, '"text"'),
    "empty-list": lambda path: replaced(path, "[]"),
    "empty-object": lambda path: replaced(path, "{}"),
    "list-of-null": lambda path: replaced(path, "[null, null]"),
    "list-of-lists": lambda path: replaced(path, "[[], [1]]"),
    "deep": lambda path: replaced(path, "[" * 100_000 + "]" * 100_000),
    "deep-objects": lambda path: replaced(path, '{"a":' * 50_000 + "1" + "}" * 50_000),
    "digits": lambda path: replaced(path, '{"a": ' + "9" * 10_000 + "}"),
    "first-null": _json(_one(None)),
    "first-a-list": _json(_one([])),
    "first-an-object": _json(_one({})),
    "first-a-number": _json(_one(-1)),
    "first-true": _json(_one(True)),
    "first-nan": _json(_one(float("nan"))),
    "first-inf": _json(_one(float("inf"))),
    "first-huge": _json(_one(10**400)),
    "first-surrogate": _json(_one("\ud800")),
    "first-nul": _json(_one("a\0b")),
    "first-hostile": _json(_one(HOSTILE)),
    "first-long": _json(_one(LONG)),
    "first-key-gone": _json(_without),
    "wrapped": _json(lambda found: {"data": found}),
    "doubled": _json(lambda found: found + found if isinstance(found, list) else [found, found]),
    "key-twice": _text(
        lambda text: re.sub(r'\{("[^"]*"): *("[^"]*"|[0-9]+)', r"{\1: \2, \1: \2", text, count=1)
    ),
    "trailing-comma": _text(lambda text: text[:-1] + "," + text[-1]),
}


def _arrow(change: Callable[[pa.Table], pa.Table]) -> Damage:
    def damage(path: Path) -> None:
        table = change(pq.read_table(path, partitioning=None))
        path.unlink()
        pq.write_table(table, path)

    return damage


def _column(make: Callable[[int], pa.Array], at: int = 0) -> Damage:
    def change(table: pa.Table) -> pa.Table:
        where = at % max(1, table.num_columns)
        return table.set_column(where, table.column_names[where], make(table.num_rows))

    return _arrow(change)


_KINDS: dict[str, Callable[[int], pa.Array]] = {
    "null": lambda n: pa.nulls(n),
    "null-text": lambda n: pa.nulls(n, pa.string()),
    "a-number": lambda n: pa.array([-1] * n, pa.int64()),
    "nan": lambda n: pa.array([float("nan")] * n),
    "inf": lambda n: pa.array([float("inf")] * n),
    "huge": lambda n: pa.array([2**63 - 1] * n),
    "text": lambda n: pa.array(["text"] * n),
    "hostile": lambda n: pa.array([HOSTILE] * n),
    "bytes": lambda n: pa.array([b"\xff\x00"] * n),
    "list": lambda n: pa.array([[1, 2]] * n),
    "struct": lambda n: pa.array([{"a": 1}] * n),
    "date": lambda n: pa.array([2**62] * n, pa.timestamp("us")),
    "duration": lambda n: pa.array([2**62] * n, pa.duration("s")),
    "true": lambda n: pa.array([True] * n),
}
PARQUET: dict[str, Damage] = {
    "no-rows": _arrow(lambda table: table.slice(0, 0)),
    "one-row": _arrow(lambda table: table.slice(0, 1)),
    "rows-twice": _arrow(lambda table: pa.concat_tables([table, table])),
    "first-column-gone": _arrow(lambda table: table.remove_column(0)),
    "last-column-gone": _arrow(lambda table: table.remove_column(table.num_columns - 1)),
    "no-columns": _arrow(lambda table: pa.table({})),
    "column-more": _arrow(lambda table: table.append_column("extra", pa.array([1] * table.num_rows))),
    "wide": _arrow(lambda table: pa.table({f"c{i}": [1] for i in range(3000)})),
    **{f"first-{kind}": _column(make) for kind, make in _KINDS.items()},
    **{f"last-{kind}": _column(make, -1) for kind, make in _KINDS.items()},
    "metadata-huge": _bytes(lambda data: data[:-8] + struct.pack("<I", 2**31 - 1) + b"PAR1"),
}


def _saved(array: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.save(out, array, allow_pickle=True)
    return out.getvalue()


#: What an array may be instead, as the bytes of an npy file.
ARRAYS: dict[str, bytes] = {
    "claims-terabytes": npy_of("(1000000000, 1000)", data=bytes(64)),
    "claims-overflow": npy_of("(9223372036854775807, 9223372036854775807)", data=bytes(64)),
    "negative-shape": npy_of("(-3, 4)", data=bytes(64)),
    "objects": npy_of("(3,)", "'|O'", b"\x80\x04K\x01."),
    "odd-type": npy_of("(3,)", "'<x9'", bytes(64)),
    "header-code": npy("__import__('os').abort()\n", bytes(64)),
    "header-deep": npy("(" * 90 + "\n", bytes(8)),
    "dates": _saved(np.array(["2020-01-01"], "datetime64[D]")),
    "texts": _saved(np.array([["a", "b"], ["c", "d"]])),
    "complex": _saved(np.ones((3, 4), complex)),
    "records": _saved(np.zeros(3, [("a", "f4"), ("b", "i4")])),
    "a-scalar": _saved(np.array(1.0)),
    "three-dimensions": _saved(np.zeros((2, 2, 2), np.float32)),
    "no-elements": _saved(np.zeros((0, 4), np.float32)),
    "nans": _saved(np.full((12, 6), np.nan, np.float32)),
    "infinite": _saved(np.full((12, 6), np.inf, np.float32)),
    "zeros": _saved(np.zeros((12, 6), np.float32)),
    "huge-values": _saved(np.full((12, 6), 1e38, np.float32)),
    "booleans": _saved(np.ones((12, 6), bool)),
}


def _member(data: bytes | None, at: int) -> Damage:
    def damage(path: Path) -> None:
        with zipfile.ZipFile(path) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        name = list(members)[at % len(members)]
        if data is None:
            del members[name]
        else:
            members[name] = data
        replaced(path, npz(members))

    return damage


NPY: dict[str, Damage] = {
    name: (lambda path, data=data: replaced(path, data)) for name, data in ARRAYS.items()
}
NPZ: dict[str, Damage] = {
    **{f"member-{name}": _member(data, 0) for name, data in ARRAYS.items()},
    **{
        f"ids-{name}": _member(ARRAYS[name], -1)
        for name in ("objects", "claims-terabytes", "nans", "a-scalar")
    },
    "member-gone": _member(None, 0),
    "ids-gone": _member(None, -1),
    "no-members": lambda path: replaced(path, npz({})),
    "encrypted": _bytes(encrypted),
    "an-npy": lambda path: replaced(path, ARRAYS["zeros"]),
}

PICTURE: dict[str, Damage] = {
    "claims-gigapixels": _bytes(lambda data: data[:16] + struct.pack(">II", 60_000, 60_000) + data[24:]),
    "no-pixels": _bytes(lambda data: data[:16] + struct.pack(">II", 0, 0) + data[24:]),
    "a-text": lambda path: replaced(path, "not a picture"),
    "an-svg": lambda path: replaced(path, "<svg xmlns='http://www.w3.org/2000/svg'/>"),
}

TAR: dict[str, Damage] = {
    "member-claims-more": _bytes(lambda data: data[:124] + b"77777777777\0" + data[136:]),
    "member-size-text": _bytes(lambda data: data[:124] + b"not a size!\0" + data[136:]),
    "name-of-nul": _bytes(lambda data: bytes(100) + data[100:]),
    "checksum": _bytes(lambda data: data[:148] + b"0000000\0" + data[156:]),
}

TOML: dict[str, Damage] = {
    **TEXT,
    "unknown-key": _text(lambda text: "colour = 1\n" + text),
    "wrong-type": _text(lambda text: text.replace("batch_size = 4", 'batch_size = "four"')),
    "negative": _text(lambda text: text.replace("batch_size = 4", "batch_size = -4")),
    "huge": _text(lambda text: text.replace("batch_size = 4", f"batch_size = {10**30}")),
    "nan": _text(lambda text: text.replace("lr = 1e-3", "lr = nan")),
    "a-date": _text(lambda text: text.replace("lr = 1e-3", "lr = 1979-05-27")),
    "a-list": _text(lambda text: text.replace("lr = 1e-3", "lr = [1, 2]")),
    "deep": _text(lambda text: "x = " + "[" * 5000 + "]" * 5000 + "\n" + text),
    "digits": _text(lambda text: "x = " + "9" * 10_000 + "\n" + text),
    "unknown-base": _text(lambda text: text.replace("negclip", "neclip")),
    "no-base": _text(lambda text: text.replace('base = "negclip"', "")),
    "run-a-list": _text(lambda text: text.replace("[run]", "[[run]]")),
    "key-twice": _text(lambda text: "epochs = 1\n" + text),
}


def _tensors(change: Callable[[dict[str, Any]], Any]) -> Damage:
    def damage(path: Path) -> None:
        data = path.read_bytes()
        size = struct.unpack("<Q", data[:8])[0]
        header = change(json.loads(data[8 : 8 + size]))
        text = header if isinstance(header, bytes) else json.dumps(header).encode()
        replaced(path, struct.pack("<Q", len(text)) + text + data[8 + size :])

    return damage


def _first_tensor(**facts: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    def change(header: dict[str, Any]) -> dict[str, Any]:
        name = next(name for name in header if name != "__metadata__")
        header[name] |= facts
        return header

    return change


def _renamed(header: dict[str, Any]) -> dict[str, Any]:
    name = next(name for name in header if name != "__metadata__")
    header["no.such.weight"] = header.pop(name)
    return header


SAFETENSORS: dict[str, Damage] = {
    "header-huge": _bytes(lambda data: struct.pack("<Q", 2**62) + data[8:]),
    "header-text": _tensors(lambda header: b"not json"),
    "header-list": _tensors(lambda header: b"[]"),
    "shape-huge": _tensors(_first_tensor(shape=[10**9, 10**9])),
    "shape-negative": _tensors(_first_tensor(shape=[-1])),
    "type-unknown": _tensors(_first_tensor(dtype="X9")),
    "offsets-outside": _tensors(_first_tensor(data_offsets=[0, 2**40])),
    "renamed": _tensors(_renamed),
    "no-tensors": _tensors(lambda header: {}),
}


def _statements(*lines: str) -> Damage:
    """Change a database by SQL, as another program or another version would."""

    def damage(path: Path) -> None:
        replaced(path, path.read_bytes())
        with contextlib.closing(sqlite3.connect(path)) as database:
            for line in lines:
                database.execute(line)
            database.commit()

    return damage


SQLITE: dict[str, Damage] = {
    "newer-schema": _statements("UPDATE alembic_version SET version_num = '9999'"),
    "anothers-tables": _statements("DROP TABLE alembic_version", "CREATE TABLE songs (name TEXT)"),
    "another-campaign": _statements("UPDATE meta SET value = '00' WHERE key = 'campaign'"),
    "no-answers-table": _statements("DROP TABLE answers"),
    "a-text": lambda path: replaced(path, "item,person,answer\n" * 400),
    "zeroed-page": _bytes(lambda data: data[:4096] + bytes(4096) + data[8192:]),
}

#: The damages of each format, by suffix.
BY_SUFFIX: dict[str, dict[str, Damage]] = {
    ".csv": TABLE, ".tsv": TABLE, ".json": JSON, ".jsonl": JSON, ".parquet": PARQUET, ".npz": NPZ,
    ".npy": NPY, ".png": PICTURE, ".tar": TAR, ".toml": TOML, ".safetensors": SAFETENSORS, ".sqlite": SQLITE,
    ".pt": {},
}  # fmt: skip


def damages(name: str) -> dict[str, Damage]:
    return {**ANY, **BY_SUFFIX.get(Path(name).suffix, {})}
