"""Pseudo-random mutations of a file: cuts, bits and extreme bytes, fields of headers, values, other files."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from faults.damage import ARRAYS, HOSTILE, LONG, damages, replaced
from faults.files import flipped

#: Numbers that sizes, counts and offsets are tried with.
_NUMBERS = (
    *(0, 1, 127, 128, 255, 256, 2**15 - 1, 2**16 - 1),
    *(2**31 - 1, 2**31, 2**32 - 1, 2**62, 2**63 - 1, 2**64 - 1),
)
#: Values that a field of a text is tried with.
_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1.5, 10**30, 1e308, float("nan"), float("inf"), "", " ", "nan", "null", "-1"),
    *("1e999", HOSTILE, LONG, "\ud800", "a\0b", "../../x", "/dev/zero", "{}", [], {}, [[]], {"a": 1}, [None]),
)


def mutate(path: Path, rng: np.random.Generator, others: list[Path]) -> str:
    """Mutate the file in one of many ways; what was done, in words."""
    structured = {".json": _leaf, ".jsonl": _leaf, ".csv": _cell, ".tsv": _cell, ".toml": _line}
    headed = dict.fromkeys((".npz", ".npy", ".safetensors"), _header)
    ways: list[Callable[[Path, np.random.Generator], str]] = [_bytes] * 6
    ways += [structured[path.suffix]] * 6 if path.suffix in structured else []
    ways += [headed[path.suffix]] * 3 if path.suffix in headed else []
    way = int(rng.integers(len(ways) + 3))
    if way == len(ways):
        other = others[int(rng.integers(len(others)))]
        replaced(path, other.read_bytes())
        return f"the bytes of {other.name}"
    if way > len(ways):
        known = damages(path.name)
        kind = list(known)[int(rng.integers(len(known)))]
        known[kind](path)
        return kind
    return ways[way](path, rng)


def _number(data: bytes, at: int, rng: np.random.Generator) -> bytes:
    width = int(rng.choice([1, 2, 4, 8]))
    number = _NUMBERS[int(rng.integers(len(_NUMBERS)))] % 2 ** (8 * width)
    return data[:at] + number.to_bytes(width, ("little", "big")[rng.integers(2)]) + data[at + width :]


#: Bytes changed from a place on.
_BYTES: dict[str, Callable[[bytes, int, np.random.Generator], bytes]] = {
    "cut": lambda data, i, rng: data[:i],
    "flipped": lambda data, start, rng: (
        data[:start] + flipped(data[start : start + 64] or b"x", rng, 4) + data[start + 64 :]
    ),
    "a number put in": _number,
    "left out": lambda data, i, rng: data[:i] + data[i + int(rng.integers(1, 64)) :],
    "repeated": lambda data, start, rng: (
        data[:start] + data[start : start + int(rng.integers(1, 64))] * 3 + data[start:]
    ),
    "inserted": lambda data, start, rng: data[:start] + rng.bytes(int(rng.integers(1, 64))) + data[start:],
}


def _bytes(path: Path, rng: np.random.Generator) -> str:
    """Change bytes: as often in the first and the last 200 as anywhere."""
    data = path.read_bytes()
    size = max(1, len(data))
    near = int(rng.integers(min(200, size)))
    at = (near, size - 1 - near, int(rng.integers(size)))[rng.integers(3)]
    done = list(_BYTES)[int(rng.integers(len(_BYTES)))]
    replaced(path, _BYTES[done](data, at, rng))
    return f"{done} at byte {at} of {len(data)}"


def _leaf(path: Path, rng: np.random.Generator) -> str:
    lines = path.suffix == ".jsonl"
    text = path.read_text("utf-8")
    whole = [json.loads(line) for line in text.splitlines()] if lines else json.loads(text)
    holder, key = whole, None
    while isinstance(holder, dict | list) and holder:
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        key = keys[int(rng.integers(len(keys)))]
        if not isinstance(holder[key], dict | list) or not holder[key] or rng.integers(6) == 0:
            break
        holder = holder[key]
    value = _VALUES[int(rng.integers(len(_VALUES)))]
    if rng.integers(5) == 0 and isinstance(holder, dict):
        holder[str(value)[:50]] = holder.pop(key)
        done = f"{key!r} renamed"
    elif rng.integers(5) == 0 and key is not None:
        del holder[key]
        done = f"{key!r} left out"
    else:
        if key is not None:
            holder[key] = value
        done = f"{key!r} is {str(value)[:40]!r}"
    replaced(path, "\n".join(map(json.dumps, whole)) if lines else json.dumps(whole))
    return done


def _cell(path: Path, rng: np.random.Generator) -> str:
    mark = "\t" if path.suffix == ".tsv" else ","
    rows = [line.split(mark) for line in path.read_text("utf-8").splitlines()]
    row = int(rng.integers(len(rows))) if rng.integers(4) else 0
    column = int(rng.integers(len(rows[row])))
    value = _VALUES[int(rng.integers(len(_VALUES)))]
    rows[row][column] = "" if value is None else str(value).replace(mark, " ")
    replaced(path, "\n".join(mark.join(cells) for cells in rows) + "\n")
    return f"row {row}, column {column} is {str(value)[:40]!r}"


def _line(path: Path, rng: np.random.Generator) -> str:
    lines = path.read_text("utf-8").splitlines()
    i = int(rng.integers(len(lines)))
    value = _VALUES[int(rng.integers(len(_VALUES)))]
    key = lines[i].partition("=")[0].strip() or "key"
    lines[i] = f"{key} = {json.dumps(value)}" if rng.integers(3) else str(value)
    replaced(path, "\n".join(lines))
    return f"line {i} is {lines[i][:50]!r}"


def _header(path: Path, rng: np.random.Generator) -> str:
    """Another digit somewhere in a header: a size, a shape, an offset, a type."""
    data = bytearray(path.read_bytes())
    if path.suffix == ".npy" and rng.integers(2):
        kind = list(ARRAYS)[int(rng.integers(len(ARRAYS)))]
        replaced(path, ARRAYS[kind])
        return kind
    digits = [i for i, byte in enumerate(data[:4000]) if 48 <= byte < 58]
    for _ in range(int(rng.integers(1, 4))):
        if digits:
            data[digits[int(rng.integers(len(digits)))]] = int(rng.choice(list(b"0123456789-. ")))
    replaced(path, bytes(data))
    return "other digits in the header"
