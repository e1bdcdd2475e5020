"""Memory that is free, and whether something that is about to be read has room in it."""

import os
from pathlib import Path

from counterfoil.errors import DataError

#: The share of the free memory that one array or table may take.
SHARE = 0.8

#: Where Linux says what it has left, and what a container may use of it.
_MEMINFO = Path("/proc/meminfo")
_LIMITS = (
    (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")),
    (
        Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
        Path("/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ),
)


def available() -> int | None:
    """Bytes of memory that a process can still get; None where the system does not say.

    The least of what the machine has left, what a container (cgroup) leaves and what `ulimit -v` leaves.
    """
    found = [each for each in (_of_machine(), *map(_of_group, _LIMITS), _of_process()) if each is not None]
    return min(found) if found else None


def check_room(needed: int, *, where: object, what: str, hint: str | None = None) -> None:
    """Raise `DataError` where `needed` bytes are more than the memory that is free can take.

    >>> check_room(10**18, where="scores.npy", what="an array of (1000000000, 125000000) float64")
    Traceback (most recent call last):
    counterfoil.errors.DataError: scores.npy: an array of (1000000000, 125000000) float64 does not fit into...
    """
    free = available()
    if free is not None and needed > SHARE * free:
        raise DataError(
            f"{what} does not fit into memory",
            where=where,
            given=f"{size(needed)} needed, {size(free)} free",
            hint=hint,
        )


def size(number: int) -> str:
    """A number of bytes in words.

    >>> size(312), size(1_500_000), size(3 * 10**12)
    ('312 bytes', '1.5 MB', '3,000.0 GB')
    """
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


def _of_group(files: tuple[Path, Path]) -> int | None:
    try:
        limit, used = (int(file.read_text("ascii")) for file in files)
    except (OSError, ValueError):  # "max" is no limit
        return None
    return max(limit - used, 0)


def _of_process() -> int | None:
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit in (resource.RLIM_INFINITY, -1):
            return None
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
        return max(limit - pages * os.sysconf("SC_PAGE_SIZE"), 0)
    except (ImportError, OSError, ValueError, IndexError):
        return None
