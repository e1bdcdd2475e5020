"""Finished work on disk, so that nothing is computed twice: shards of embeddings, scores and what was made.

A shard is a `.npz` at FOLDER/v1/IDENTITY/KIND/DIGEST-OF-THE-KEYS, with the keys of its rows and their values,
or named arrays with any number of rows for each key. A key is the digest of content, so neither batch size
nor benchmark is part of it. Several processes may use one folder, or a prefix in a bucket, at once: each adds
whole files of its own.
"""

import io
import re
import time
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import accumulate, chain
from pathlib import Path
from typing import Any, Literal

import numpy as np
from jaxtyping import Float32, Float64, Int64
from numpy import ndarray

from counterfoil.errors import CounterfoilError, DataError, ScoreError, StorageError, UnknownNameError
from counterfoil.inputs.arrays import member
from counterfoil.inputs.files import decoded, digest, location, parse_json
from counterfoil.models.base import Identity
from counterfoil.storage import ObjectStore, StoreEntry, open_store
from counterfoil.store import json_bytes

#: The folder of leases in a cache, and the list of files whose content is known.
LEASES, MEMO = "leases", "files-v1.parquet"

#: Raised when the meaning of a shard changes: older shards are then never looked at.
SCHEMA = 1

Kind = Literal["images", "captions", "pairs", "frames", "tokens", "limits", "made"]

#: The parts of one item: named arrays of rows.
Parts = Mapping[str, ndarray]

#: Bytes in a key: one digest for an item, two for a pair (caption, then image).
KEY_BYTES = {"images": 16, "captions": 16, "pairs": 32, "frames": 16, "tokens": 16, "limits": 16, "made": 16}

Values = Float32[ndarray, "rows width"] | Float64[ndarray, "rows width"]

#: What reading a file that is cut off or altered can raise.
_BROKEN = (
    *(OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile, zlib.error, NotImplementedError),
    # Of the array's own header, and of a member that says it has a password.
    *(DataError, RuntimeError),
)

_ENDING, _NOTE = ".npz", "identity.json"

#: Temporary files older than this belong to a process that was killed while it wrote.
_STALE_SECONDS = 3600.0


@dataclass(frozen=True, eq=False)
class CachedValues:
    """The positions of known keys, ascending, their values (None: nothing is known), and `broken` shards."""

    rows: Int64[ndarray, "rows"]
    values: Values | None
    broken: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Cache:
    """The shards of one model, in `folder` (a path or URL); with `folder` None nothing is kept."""

    folder: Path | None
    identity: Identity
    _noted: list[str] = field(default_factory=list, init=False, repr=False)

    def read(self, kind: Kind, keys: Sequence[str]) -> CachedValues:
        """Look `keys` up; where two shards know one key, the first by file name answers on every machine."""
        if self.folder is None:
            return CachedValues(np.empty(0, dtype=np.int64), None)
        wanted = {bytes.fromhex(key): row for row, key in enumerate(keys)}
        rows: list[int] = []
        parts: list[ndarray] = []
        broken: list[Path] = []
        for entry, taken, values in self._readable(kind, wanted, _values_of, broken):
            if parts and (values.shape[1], values.dtype) != (parts[0].shape[1], parts[0].dtype):
                broken.append(self._path(entry))
                continue
            rows.extend(wanted.pop(key) for key in taken)
            parts.append(values)
            self._used(entry)
        if not rows:
            return CachedValues(np.empty(0, dtype=np.int64), None, tuple(broken))
        of_rows, order = np.asarray(rows, dtype=np.int64), np.argsort(rows, kind="stable")
        return CachedValues(of_rows[order], np.concatenate(parts)[order], tuple(broken))

    def write(self, kind: Kind, keys: Sequence[str], values: Values) -> None:
        """Keep one shard; raises `StorageError` where there is no room, and then keeps nothing of it."""
        self._put(kind, keys, {"values": np.ascontiguousarray(values)})

    def stream_parts(
        self, kind: Kind, keys: Sequence[str], broken: list[Path]
    ) -> Iterator[tuple[str, Parts]]:
        """The parts of the known ones among `keys`, shard by shard; broken shards are added to `broken`."""
        if self.folder is None or not keys:
            return
        wanted = {bytes.fromhex(key): row for row, key in enumerate(keys)}
        for entry, _, readable in self._readable(kind, wanted, _parts_of, broken):
            self._used(entry)
            for key, parts in readable.items():
                wanted.pop(key)
                yield key.hex(), parts

    def write_parts(self, kind: Kind, keys: Sequence[str], parts: Sequence[Parts]) -> None:
        """Keep the parts of some items, in one shard; all have arrays of the same names."""
        arrays: dict[str, ndarray] = {}
        for name in parts[0]:
            arrays[f"{name}.counts"] = np.asarray([len(item[name]) for item in parts], dtype=np.int64)
            arrays[f"{name}.rows"] = np.concatenate([item[name] for item in parts])
        self._put(kind, keys, arrays)

    def _put(self, kind: Kind, keys: Sequence[str], arrays: Mapping[str, ndarray]) -> None:
        if self.folder is None:
            return
        packed = _packed(keys)
        note = f"{self._root}/{_NOTE}"
        # Once per run: at a distance every look is a request.
        if not self._noted and self.place.read(note) is None:
            self.place.write(note, json_bytes(self.identity.to_json()))
        self._noted.append(note)
        table = np.frombuffer(packed, dtype=np.uint8).reshape(len(keys), KEY_BYTES[kind])
        # Packed in memory, a megabyte or so: an archive that fails to be written half-way fails again on
        # closing. Its bytes depend on the arrays alone (NumPy's own carries the time of writing).
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
            for name, array in {"keys": table, **arrays}.items():
                with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as file:
                    np.lib.format.write_array(file, array, allow_pickle=False)
        self.place.write(f"{self._root}/{kind}/{digest(packed)}{_ENDING}", buffer.getvalue())

    def shards(self, kind: Kind) -> set[str]:
        return {entry.name.rpartition("/")[2].removesuffix(_ENDING) for entry in self._entries(kind)}

    def drop(self, kind: Kind, shard: Path) -> None:
        with suppress(StorageError):
            self.place.remove(f"{self._root}/{kind}/{shard.name}")

    def sweep(self) -> None:
        """Remove what processes that were killed while writing left behind; in a bucket nothing ever is."""
        if self.folder is None or not isinstance(folder := location(self.folder), Path):
            return
        patterns = (f"{self._root}/*/.*.part", f"{self._root}/.*.part", ".files-*.part", f"{LEASES}/.*.part")
        for path in chain.from_iterable(map(folder.glob, patterns)):
            try:
                if time.time() - path.stat().st_mtime > _STALE_SECONDS:
                    path.unlink()
            except OSError:  # gone already, or not ours to remove
                continue

    @cached_property
    def place(self) -> ObjectStore:
        assert self.folder is not None
        return open_store(self.folder)

    @cached_property
    def _root(self) -> str:
        return f"v{SCHEMA}/{self.identity.key}"

    def _entries(self, kind: Kind) -> list[StoreEntry]:
        entries = [] if self.folder is None else self.place.entries(f"{self._root}/{kind}/")
        return [entry for entry in entries if entry.name.endswith(_ENDING)]

    def _readable(
        self, kind: Kind, wanted: Mapping[bytes, int], read: Callable[..., Any], broken: list[Path]
    ) -> Iterator[tuple[StoreEntry, dict[bytes, int], Any]]:
        """Shards of a kind with wanted keys, by name: the keys' rows, and what `read` takes of those."""
        may_hold = partial(_may_hold, wanted=wanted, key_bytes=KEY_BYTES[kind])
        for entry, file in self.place.opened(self._entries(kind), may_hold):
            try:
                with io.BytesIO() if file is None else file as opened, zipfile.ZipFile(opened) as shard:
                    keys = _array(shard, "keys")
                    if keys.ndim != 2 or keys.dtype != np.uint8 or keys.shape[1] != KEY_BYTES[kind]:
                        raise ValueError("keys of another layout")
                    rows: dict[bytes, int] = {}
                    for row, key in enumerate(map(bytes, keys)):
                        if key in wanted:
                            rows.setdefault(key, row)
                    contents = read(shard, len(keys), rows) if rows else None
            except _BROKEN:
                broken.append(self._path(entry))
                continue
            if rows:
                yield entry, rows, contents

    def _path(self, entry: StoreEntry) -> Path:
        return Path(f"{self.place}/{entry.name}")

    def _used(self, entry: StoreEntry) -> None:
        """Note on a shard that it was needed now: `contents` tells those that were not."""
        if entry.age > self.place.patience:
            self.place.touch(entry.name)


#: The place of one item of a batch in words, for an error.
Where = Callable[[int], str]


@dataclass(eq=False)
class Keyed:
    """What is computed of items that have keys."""

    kind: Kind
    keys: Sequence[str]


class Vectors(Keyed):
    """One vector per item: an array (items, width)."""

    _values: ndarray | None = None

    @property
    def values(self) -> ndarray:
        assert self._values is not None
        return self._values

    def read(self, cache: Cache) -> tuple[Sequence[int], Sequence[Path]]:
        cached = cache.read(self.kind, self.keys)
        if cached.values is not None:
            self._values = np.empty((len(self.keys), cached.values.shape[1]), dtype=cached.values.dtype)
            self._values[cached.rows] = cached.values
        return cached.rows.tolist(), cached.broken

    def put(self, rows: Sequence[int], part: ndarray, where: Where) -> None:
        if part.ndim != 2 or len(part) != len(rows):
            problem = "the model gave the wrong number of rows"
            raise ScoreError(problem, where=where(0), given=part.shape, allowed=f"({len(rows)}, width)")
        if self._values is None:
            self._values = np.empty((len(self.keys), part.shape[1]), dtype=part.dtype)
        _check_width(part.shape[1], self._values.shape[1], where(0))
        _check_finite(~np.isfinite(part).all(axis=1), where)
        self._values[rows] = part

    def write(self, cache: Cache, rows: Sequence[int], parts: Sequence[ndarray]) -> None:
        cache.write(self.kind, [self.keys[row] for row in rows], np.concatenate(parts))


@dataclass(eq=False)
class StreamedParts(Keyed, ABC):
    """Named arrays per item, each of any number of rows, which are taken one by one as they come."""

    #: What is wrong where a batch has another number of items.
    miscounted = "the model gave the wrong number of items"

    _taken: dict[int, Parts] = field(default_factory=dict, init=False)

    def read(self, cache: Cache) -> tuple[Sequence[int], Sequence[Path]]:
        rows: dict[str, list[int]] = {}
        for row, key in enumerate(self.keys):
            if row not in self._taken:
                rows.setdefault(key, []).append(row)
        broken: list[Path] = []
        for key, parts in cache.stream_parts(self.kind, list(rows), broken):
            for row in rows[key]:
                self._taken[row] = self._take(row, parts, cache.identity.name)
        return sorted(self._taken), broken

    def put(self, rows: Sequence[int], part: Sequence[Parts], where: Where) -> None:
        if len(part) != len(rows):
            raise ScoreError(self.miscounted, where=where(0), given=len(part), allowed=str(len(rows)))
        self.check(part, where)
        for i, (row, parts) in enumerate(zip(rows, part, strict=True)):
            self._taken[row] = self._take(row, parts, where(i))

    def write(self, cache: Cache, rows: Sequence[int], parts: Sequence[Sequence[Parts]]) -> None:
        cache.write_parts(self.kind, [self.keys[row] for row in rows], list(chain.from_iterable(parts)))

    def check(self, part: Sequence[Parts], where: Where) -> None:
        """Raise `ScoreError` for an item that cannot be."""

    @abstractmethod
    def _take(self, row: int, parts: Parts, where: str) -> Parts:
        """What is held of an item."""


class NamedRows(StreamedParts):
    """Arrays with "vectors" among them: frames of videos, tokens of captions."""

    _width: int | None = None

    @property
    def values(self) -> list[Parts]:
        return [self._taken[row] for row in range(len(self.keys))]

    def check(self, part: Sequence[Parts], where: Where) -> None:
        for i, parts in enumerate(part):
            if not len(parts["vectors"]):
                raise ScoreError("an item without any part", where=where(i))
        floats = [[array for array in parts.values() if array.dtype.kind == "f"] for parts in part]
        _check_finite(np.array([not all(np.isfinite(a).all() for a in arrays) for arrays in floats]), where)

    def _take(self, row: int, parts: Parts, where: str) -> Parts:
        width = parts["vectors"].shape[1]
        self._width = width if self._width is None else self._width
        _check_width(width, self._width, where)
        return parts


def _check_width(width: int, before: int, where: str) -> None:
    if width != before:
        raise ScoreError("embeddings of different widths", where=where, given=f"{width} after {before}")


def _check_finite(broken: ndarray, where: Where) -> None:
    if broken.any():
        problem = "the model gave numbers that are not finite"
        given = f"{int(broken.sum())} of {len(broken)} rows of the batch"
        hint = "a half-precision model may overflow: try --precision fp32"
        raise ScoreError(problem, where=where(int(np.argmax(broken))), given=given, hint=hint)


def shard_name(keys: Sequence[str]) -> str:
    return digest(_packed(keys))


def _packed(keys: Sequence[str]) -> bytes:
    return b"".join(bytes.fromhex(key) for key in keys)


def _array(archive: zipfile.ZipFile, name: str) -> ndarray:
    return member(archive, archive.getinfo(f"{name}.npy"), f"array '{name}'")


def _may_hold(head: bytes, *, wanted: Mapping[bytes, int], key_bytes: int) -> bool:
    """Whether a shard that begins like this may hold a wanted key: its keys are the first array in it."""
    start = head.find(b"\x93NUMPY")
    file = io.BytesIO(head[max(start, 0) :])
    try:
        np.lib.format.read_magic(file)
        (rows, width), _, _ = np.lib.format.read_array_header_1_0(file)
    except ValueError:
        return True
    keys = file.read(rows * width)
    if width != key_bytes or len(keys) < rows * width:
        return True
    return any(keys[start : start + width] in wanted for start in range(0, len(keys), width))


def _values_of(shard: zipfile.ZipFile, count: int, rows: Mapping[bytes, int]) -> Values:
    values = _array(shard, "values")
    if values.ndim != 2 or len(values) != count or values.dtype not in (np.float32, np.float64):
        raise ValueError("values of another layout")
    if not np.isfinite(values).all():
        raise ValueError("values that are not finite")
    return values[list(rows.values())]


def _parts_of(shard: zipfile.ZipFile, count: int, rows: Mapping[bytes, int]) -> dict[bytes, Parts]:
    parts_of: dict[bytes, dict[str, ndarray]] = {key: {} for key in rows}
    ending = ".counts.npy"
    names = [member.removesuffix(ending) for member in shard.namelist() if member.endswith(ending)]
    for name in sorted(names):
        counts, values = _array(shard, f"{name}.counts"), _array(shard, f"{name}.rows")
        whole = counts.shape == (count,) and counts.dtype == np.int64 and (counts >= 0).all()
        if not whole or not values.ndim or counts.sum() != len(values):
            raise ValueError("parts of another layout")
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            raise ValueError("values that are not finite")
        ends = np.cumsum(counts)
        for key, row in rows.items():
            parts_of[key][name] = values[ends[row] - counts[row] : ends[row]]
    return dict(parts_of)


#: What stands in for the name of a model whose note is gone or cannot be read.
UNKNOWN = "(unknown)"
#: The folders of identities of models, answers of chat endpoints, and leases on shards, a file for each.
NOTES = ("identities", "chat", LEASES)
_SHELF = re.compile(rf"(v\d{{1,4}}/([0-9a-f]{{32}}))/(?:({'|'.join(KEY_BYTES)})/[0-9a-f]{{32}}\.npz|{_NOTE})")
_OTHER_NOTES = re.compile(rf"{re.escape(MEMO)}|(?:{'|'.join(NOTES)})/[0-9a-f]{{32}}\.json")


@dataclass(frozen=True)
class CachedModel:
    """The finished work of one model of one kind (`KEY_BYTES`); `key` is that of its identity."""

    model: str
    key: str
    kind: str
    shards: tuple[StoreEntry, ...]

    @property
    def size(self) -> int:
        return sum(shard.size for shard in self.shards)

    @property
    def age(self) -> float:
        """Seconds since any of it was used."""
        return min(shard.age for shard in self.shards)


@dataclass(frozen=True)
class Contents:
    """What a cache's folder holds: `shelves`, the small `notes` beside them, and files of others."""

    place: ObjectStore
    shelves: tuple[CachedModel, ...]
    notes: tuple[StoreEntry, ...]
    others: int

    @property
    def size(self) -> int:
        return sum(shelf.size for shelf in self.shelves) + sum(note.size for note in self.notes)

    def of(self, model: str) -> tuple[CachedModel, ...]:
        """The shelves of a model, by its name or the beginning of its key; raises `UnknownNameError`."""
        shelves = tuple(
            shelf
            for shelf in self.shelves
            if shelf.model == model or (len(model) >= 4 and shelf.key.startswith(model))
        )
        if not shelves:
            raise UnknownNameError("model in the cache", model, {shelf.model for shelf in self.shelves})
        return shelves


def contents(folder: Path) -> Contents:
    """What lies in `folder`; nothing where there is none. Raises `StorageError` where it cannot be listed."""
    place = open_store(folder)
    shards_by_kind: dict[tuple[str, str], list[StoreEntry]] = {}
    notes: list[StoreEntry] = []
    entries = [] if folder.is_symlink() else place.entries()
    for entry in entries:
        shelf = _SHELF.fullmatch(entry.name)
        if shelf is not None and shelf[3] is not None:
            shards_by_kind.setdefault((shelf[1], shelf[3]), []).append(entry)
        elif shelf is not None or _OTHER_NOTES.fullmatch(entry.name):
            notes.append(entry)
    names = {root: _name(place, root) for root in sorted({root for root, _ in shards_by_kind})}
    shelves = [
        CachedModel(names[root], root.rpartition("/")[2], kind, tuple(shards))
        for (root, kind), shards in shards_by_kind.items()
    ]
    shelves.sort(key=lambda shelf: (shelf.age, shelf.model, shelf.kind))
    listed = len(entries)
    if isinstance(where := location(folder), Path):
        listed = sum(1 for path in where.rglob("*") if not path.is_dir())
    others = listed - len(notes) - sum(map(len, shards_by_kind.values()))
    return Contents(place, tuple(shelves), tuple(notes), others)


def beyond(contents: Contents, limit: int) -> tuple[StoreEntry, ...]:
    """The least recently used shards without which the cache is no larger than `limit`."""
    shards = [shard for shelf in contents.shelves for shard in shelf.shards]
    shards.sort(key=lambda shard: (-shard.age, shard.name))
    sizes = accumulate((-shard.size for shard in shards), initial=contents.size)
    return tuple(shard for shard, size in zip(shards, sizes, strict=False) if size > limit)


def remove(contents: Contents, shards: Sequence[StoreEntry]) -> int:
    freed = 0
    place = contents.place
    for shard in shards:
        with suppress(StorageError):
            freed += shard.size if place.remove(shard.name) else 0
    for root in {shelf.shards[0].name.rpartition("/")[0].rpartition("/")[0] for shelf in contents.shelves}:
        left = (_SHELF.fullmatch(entry.name) for entry in place.entries(f"{root}/"))
        if not any(match is not None and match[3] is not None for match in left):
            with suppress(StorageError):
                place.remove(f"{root}/{_NOTE}")
        _remove_empty(place, *(f"{root}/{kind}" for kind in KEY_BYTES), root, root.rpartition("/")[0])
    _remove_empty(place, *NOTES)
    return freed


def _remove_empty(place: ObjectStore, *names: str) -> None:
    if isinstance(folder := location(str(place)), Path):
        for name in names:
            with suppress(OSError):  # it is not empty, or was never there
                (folder / name).rmdir()


def _name(place: ObjectStore, root: str) -> str:
    try:
        note = place.read(f"{root}/{_NOTE}")
        name = None if note is None else parse_json(decoded(note.data, where=root), where=root)["name"]
    except (CounterfoilError, KeyError, TypeError):
        return UNKNOWN
    return name if isinstance(name, str) and name else UNKNOWN
