"""The folder of finished work as a whole: whose it is, how large it is, and what of it may go.

Only files that a cache has written, known by place and name, are ever counted or removed.
"""

import re
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from counterfoil.engine.cache import KEY_BYTES
from counterfoil.engine.cache_keys import MEMO
from counterfoil.errors import CounterfoilError, StorageError, UnknownNameError
from counterfoil.inputs.files import decoded, location, parse_json
from counterfoil.storage import Place, open_place

#: What stands in for the name of a scorer whose note is gone or cannot be read.
UNKNOWN = "(unknown)"
_NOTE = "identity.json"
#: The folders of identities of models, answers of chat endpoints, and leases on shards, a file for each.
NOTES = ("identities", "chat", "leases")
_SHELF = re.compile(rf"(v\d{{1,4}}/([0-9a-f]{{32}}))/(?:({'|'.join(KEY_BYTES)})/[0-9a-f]{{32}}\.npz|{_NOTE})")
_OTHER_NOTES = re.compile(rf"{re.escape(MEMO)}|(?:{'|'.join(NOTES)})/[0-9a-f]{{32}}\.json")


@dataclass(frozen=True)
class Shard:
    """One file of finished work: when it was last written or read, in seconds since 1970, and its bytes."""

    name: str
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
        return sum(shard.size for shard in self.shards)

    @property
    def used(self) -> float:
        return max(shard.used for shard in self.shards)


@dataclass(frozen=True)
class Contents:
    """What a cache's folder holds: `shelves`, the small `notes` beside them, and files of others."""

    place: Place
    shelves: tuple[CachedScorer, ...]
    notes: tuple[Shard, ...]
    others: int

    @property
    def size(self) -> int:
        return sum(shelf.size for shelf in self.shelves) + sum(note.size for note in self.notes)

    def of(self, scorer: str) -> tuple[CachedScorer, ...]:
        """The shelves of a scorer, by its name or the beginning of its key; raises `UnknownNameError`."""
        shelves = tuple(
            shelf
            for shelf in self.shelves
            if shelf.scorer == scorer or (len(scorer) >= 4 and shelf.key.startswith(scorer))
        )
        if not shelves:
            raise UnknownNameError("scorer in the cache", scorer, {shelf.scorer for shelf in self.shelves})
        return shelves


def contents(folder: Path) -> Contents:
    """What lies in `folder`; nothing where there is none. Raises `StorageError` where it cannot be listed."""
    place, now = open_place(folder), time.time()
    shards_of: dict[tuple[str, str], list[Shard]] = {}
    notes: list[Shard] = []
    entries = [] if folder.is_symlink() else place.entries()
    for entry in entries:
        shard = Shard(entry.name, now - entry.age, entry.size)
        shelf = _SHELF.fullmatch(entry.name)
        if shelf is not None and shelf[3] is not None:
            shards_of.setdefault((shelf[1], shelf[3]), []).append(shard)
        elif shelf is not None or _OTHER_NOTES.fullmatch(entry.name):
            notes.append(shard)
    names = {root: _name(place, root) for root in sorted({root for root, _ in shards_of})}
    shelves = [
        CachedScorer(names[root], root.rpartition("/")[2], kind, tuple(shards))
        for (root, kind), shards in shards_of.items()
    ]
    shelves.sort(key=lambda shelf: (-shelf.used, shelf.scorer, shelf.kind))
    listed = len(entries)
    if isinstance(where := location(folder), Path):
        listed = sum(1 for path in where.rglob("*") if not path.is_dir())
    others = listed - len(notes) - sum(map(len, shards_of.values()))
    return Contents(place, tuple(shelves), tuple(notes), others)


def beyond(contents: Contents, limit: int) -> tuple[Shard, ...]:
    """The shards that must go for at most `limit` bytes to stay: no more than needed, oldest first."""
    excess = contents.size - limit
    gone: list[Shard] = []
    shards = [shard for shelf in contents.shelves for shard in shelf.shards]
    for shard in sorted(shards, key=lambda shard: (shard.used, shard.name)):
        if excess <= 0:
            break
        gone.append(shard)
        excess -= shard.size
    return tuple(gone)


def remove(contents: Contents, shards: Sequence[Shard]) -> int:
    """Remove files of a cache, and folders that are empty then; returns the bytes freed."""
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


def _remove_empty(place: Place, *names: str) -> None:
    """Remove folders that hold nothing; a bucket has none."""
    if isinstance(folder := location(str(place)), Path):
        for name in names:
            with suppress(OSError):  # it is not empty, or was never there
                (folder / name).rmdir()


def _name(place: Place, root: str) -> str:
    try:
        note = place.read(f"{root}/{_NOTE}")
        name = None if note is None else parse_json(decoded(note.data, where=root), where=root)["name"]
    except (CounterfoilError, KeyError, TypeError):
        return UNKNOWN
    return name if isinstance(name, str) and name else UNKNOWN
