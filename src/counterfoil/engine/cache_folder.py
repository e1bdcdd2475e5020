"""The folder of finished work as a whole: whose it is, how large it is, and what of it may go.

Only files that a cache has written are ever counted as its own or removed: they are known by where they lie
and what they are called. Everything else in the folder stays, and links are not followed.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from counterfoil.engine.cache import KEY_BYTES
from counterfoil.engine.content import MEMO
from counterfoil.errors import CounterfoilError, UnknownNameError
from counterfoil.inputs.files import read_json

#: What stands in for the name of a scorer whose note is gone or cannot be read.
UNKNOWN = "(unknown)"
_VERSION = re.compile(r"v\d{1,4}")
_DIGEST = re.compile(r"[0-9a-f]{32}")
_SHARD = re.compile(r"[0-9a-f]{32}\.npz")
_MEMO = re.compile(r"[0-9a-f]{32}\.json")
_NOTE = "identity.json"
#: The folders of identities of models, and of answers of chat endpoints, a file for each.
NOTES = ("identities", "chat")


@dataclass(frozen=True)
class Shard:
    """One file of finished work: when it was last written or read, in seconds since 1970, and its bytes."""

    path: Path
    used: float
    size: int


@dataclass(frozen=True)
class CachedScorer:
    """The finished work of one scorer of one kind (`KEY_BYTES`); `key` is that of its identity."""

    scorer: str
    key: str
    kind: str
    shards: tuple[Shard, ...]

    @property
    def size(self) -> int:
        """Bytes of all of it."""
        return sum(shard.size for shard in self.shards)

    @property
    def used(self) -> float:
        """When any of it was last written or read."""
        return max(shard.used for shard in self.shards)


@dataclass(frozen=True)
class Contents:
    """What a cache's folder holds: `shelves`, the `notes` beside them, and how many files are others'.

    Notes are names of scorers, identities of models, digests of images and answers of chat endpoints: small.
    """

    folder: Path
    shelves: tuple[CachedScorer, ...]
    notes: tuple[Shard, ...]
    others: int

    @property
    def size(self) -> int:
        """Bytes of the cache's own files."""
        return sum(shelf.size for shelf in self.shelves) + sum(note.size for note in self.notes)

    def of(self, scorer: str) -> tuple[CachedScorer, ...]:
        """The shelves of a scorer, by its name or the beginning of its key; raises `UnknownNameError`."""
        found = tuple(
            shelf
            for shelf in self.shelves
            if shelf.scorer == scorer or (len(scorer) >= 4 and shelf.key.startswith(scorer))
        )
        if not found:
            raise UnknownNameError("scorer in the cache", scorer, {shelf.scorer for shelf in self.shelves})
        return found


def contents(folder: Path) -> Contents:
    """What lies in `folder`; nothing where there is none."""
    shelves: list[CachedScorer] = []
    notes: list[Shard] = []
    known: set[Path] = set()
    for place in _folders(folder, _VERSION):
        for root in _folders(place, _DIGEST):
            name = _name(root / _NOTE)
            notes += _shards(root, re.compile(re.escape(_NOTE)))
            for kind in KEY_BYTES:
                shards = _shards(root / kind, _SHARD) if _plain(root / kind) else []
                if shards:
                    shelves.append(CachedScorer(name, root.name, kind, tuple(shards)))
    if _plain(folder):
        notes += _shards(folder, re.compile(re.escape(MEMO)))
        for name in NOTES:
            notes += _shards(folder / name, _MEMO) if _plain(folder / name) else []
    known |= {shard.path for shelf in shelves for shard in shelf.shards} | {note.path for note in notes}
    others = sum(1 for path in folder.rglob("*") if not path.is_dir() and path not in known)
    shelves.sort(key=lambda shelf: (-shelf.used, shelf.scorer, shelf.kind))
    return Contents(folder, tuple(shelves), tuple(notes), others)


def beyond(found: Contents, limit: int) -> tuple[Shard, ...]:
    """The shards that must go for at most `limit` bytes to stay: no more than needed, oldest first."""
    excess = found.size - limit
    gone: list[Shard] = []
    shards = [shard for shelf in found.shelves for shard in shelf.shards]
    for shard in sorted(shards, key=lambda shard: (shard.used, shard.path)):
        if excess <= 0:
            break
        gone.append(shard)
        excess -= shard.size
    return tuple(gone)


def remove(found: Contents, shards: Sequence[Shard]) -> int:
    """Remove files of a cache, and folders that are empty then; how many bytes are free.

    What another process removed first is no error, and what may not be removed stays.
    """
    freed = 0
    for shard in shards:
        with suppress(OSError):
            shard.path.unlink()
            freed += shard.size
    for root in {shelf.shards[0].path.parent.parent for shelf in found.shelves}:
        for kind in KEY_BYTES:
            _remove_empty(root / kind)
        if not any(_plain(root / kind) and _shards(root / kind, _SHARD) for kind in KEY_BYTES):
            with suppress(OSError):
                (root / _NOTE).unlink()
        _remove_empty(root)
        _remove_empty(root.parent)
    for name in NOTES:
        _remove_empty(found.folder / name)
    return freed


def _remove_empty(folder: Path) -> None:
    with suppress(OSError):  # it is not empty, or was never there
        folder.rmdir()


def _folders(folder: Path, called: re.Pattern[str]) -> list[Path]:
    if not _plain(folder):
        return []
    return sorted(path for path in folder.iterdir() if called.fullmatch(path.name) and _plain(path))


def _plain(folder: Path) -> bool:
    return folder.is_dir() and not folder.is_symlink()


def _shards(folder: Path, called: re.Pattern[str]) -> list[Shard]:
    return list(_files(folder, called))


def _files(folder: Path, called: re.Pattern[str]) -> Iterator[Shard]:
    for path in sorted(folder.iterdir()):
        if not called.fullmatch(path.name) or path.is_symlink() or not path.is_file():
            continue
        with suppress(OSError):  # another process removed it
            about = path.stat()
            yield Shard(path, about.st_mtime, about.st_size)


def _name(note: Path) -> str:
    try:
        name = read_json(note)["name"]
    except (CounterfoilError, KeyError, TypeError):
        return UNKNOWN
    return name if isinstance(name, str) and name else UNKNOWN
