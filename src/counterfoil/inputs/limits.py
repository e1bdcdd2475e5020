"""Ranges of the numbers that decide how large something gets, and memory that is free.

A number outside is a slip that would end in a full memory or in a night of waiting. The most pixels of an
image are `benchmarks.records.MAX_PIXELS`.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from counterfoil.errors import DataError, InputError

#: The least and the most of each, both allowed.
RANGES: Mapping[str, tuple[int, int]] = {
    "draws": (1, 1_000_000),
    "seed": (0, 2**32 - 1),
    #: Items that a command draws: questions, rows, images.
    "items": (1, 1_000_000),
    "captions of each image": (1, 1_000),
    #: Pixels to the side of a picture that is drawn.
    "size": (16, 2048),
    "frames": (1, 10_000),
    #: Frames per second.
    "rate": (0, 1_000),
    #: First items of a ranking.
    "k": (1, 1_000_000),
    "batch_size": (1, 1_000_000),
    "workers": (0, 1_024),
    "devices": (1, 4_096),
    #: People, pairs and tasks of an annotation.
    "people": (0, 10_000),
    "price": (0, 1_000_000),
    #: Names that people chose between, and votes that a row stands for.
    "systems": (1, 1_000),
    "votes": (0, 1_000_000_000),
    #: Steps, epochs and the like of a training.
    "steps": (1, 1_000_000_000),
    "heads": (1, 1_024),
    #: Files that a pattern stands for.
    "files": (1, 100_000),
}


def most(name: str) -> int:
    """The most that a number may be."""
    return RANGES[name][1]


def check_amount(name: str, value: Any, *, what: str | None = None, where: object = None) -> None:
    """Raise `InputError` for a number outside its range; `what` is what the message calls it."""
    low, high = RANGES[name]
    # Written so that NaN is outside.
    if not low <= value <= high:
        place = what or name if where is None else f"{where}, {what or name}"
        given = value if abs(value) < 10**20 else f"{float(value):.3g}" if abs(value) < 10**300 else "more"
        raise InputError("out of range", where=place, given=given, allowed=f"{low:,} to {high:,}")


#: Of a network's own description: keys by what they end in, and the most that their whole numbers may be.
_PARTS = (
    (("layers", "heads", "depth", "blocks", "groups"), 1_024),
    (("image_size", "patch_size", "channels", "num_frames"), 8_192),
    (("size", "width", "dim", "length", "positions", "embeddings"), 1 << 22),
)


def check_network(card: Any, *, where: object) -> None:
    """Raise `InputError` where a description asks for parts that no network has, such as a million layers."""
    if isinstance(card, list):
        for part in card:
            check_network(part, where=where)
    if not isinstance(card, Mapping):
        return
    for key, value in card.items():
        check_network(value, where=where)
        if not isinstance(value, int) or isinstance(value, bool):
            continue
        limit = next((limit for ends, limit in _PARTS if str(key).endswith(ends)), None)
        if limit is not None and value > limit:
            place, allowed = f"{where}, key '{key}'", f"at most {limit:,}"
            raise InputError("out of range", where=place, given=value, allowed=allowed)


#: The share of the free memory that one array or table may take.
SHARE = 0.8

#: Files in which Linux reports free memory, and the limit of a container.
_MEMINFO = Path("/proc/meminfo")
_LIMIT = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current"))


def available() -> int | None:
    """Bytes that a process can still get, of the machine and its container; None where that is unknown."""
    free = _of_machine()
    with suppress(OSError, ValueError):  # "max" is no limit
        limit, used = (int(file.read_text("ascii")) for file in _LIMIT)
        free = max(limit - used, 0) if free is None else min(free, max(limit - used, 0))
    return free


def check_room(needed: int, *, where: object, what: str, hint: str | None = None) -> None:
    """Raise `DataError` where `needed` bytes are more than the memory that is free can take."""
    free = available()
    if free is not None and needed > SHARE * free:
        given = f"{size(needed)} needed, {size(free)} free"
        raise DataError(f"{what} does not fit into memory", where=where, given=given, hint=hint)


def size(number: int) -> str:
    """A number of bytes in words: 312 bytes, 1.5 MB."""
    for unit, name in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if number >= unit:
            return f"{number / unit:,.1f} {name}"
    return f"{number} bytes"


def _of_machine() -> int | None:
    try:
        for line in _MEMINFO.read_text("ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return None
