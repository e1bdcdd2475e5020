"""Files at a distance that are only read: images, shards and videos behind a URL, whole or in parts."""

from collections.abc import Mapping
from typing import Any

from counterfoil.errors import DataError
from counterfoil.inputs.files import Location, digest
from counterfoil.storage.buckets import filesystem, reaching
from counterfoil.storage.object_store import SCHEMES


def read_file(where: Location, start: int | None = None, end: int | None = None) -> bytes:
    """The bytes of a file, or of a part of it; raises `DataError` in one line where it cannot be read."""
    with reaching(where, where.scheme, DataError):
        data: bytes = _filesystem(where).cat_file(str(where), start=start, end=end)
        return data


#: Bytes that are asked for at a time, and blocks that are kept of a file.
_BLOCK, _CACHED = 1 << 22, 12


def open_file(where: Location) -> Any:
    """Open a file for reading at any place: a few blocks are in memory, the next one is asked for ahead.

    Raises as `read_file`; callers read inside of `reaching`.
    """
    with reaching(where, where.scheme, DataError):
        files = _filesystem(where)
        if files.info(str(where))["type"] == "directory":
            raise DataError("is a folder", where=where, hint="name the file in it")
        options = {"cache_type": "background", "cache_options": {"maxblocks": _CACHED}}
        return files.open(str(where), "rb", block_size=_BLOCK, **options)


def names_in(folder: Location) -> frozenset[str]:
    """The names of what lies in a folder, none where there is no such folder; raises as `listing`."""
    return frozenset(listing(folder))


def listing(folder: Location) -> Mapping[str, bool]:
    """What lies in a folder: whether each name is a folder itself; nothing where there is no such folder."""
    with reaching(folder, folder.scheme, DataError):
        try:
            listed = _filesystem(folder).ls(str(folder), detail=True)
        except FileNotFoundError as error:
            # A bucket that is not there is no empty folder.
            if "NoSuchBucket" in repr(error.__cause__):
                raise
            return {}
    entries = {str(entry["name"]).rstrip("/").rpartition("/")[2]: entry["type"] for entry in listed}
    return {name: kind == "directory" for name, kind in entries.items()}


def stamp_of(where: Location) -> tuple[int, int, int] | None:
    """Size and a digest of the store's tag, as the stamp of a local file; None where it has none."""
    with reaching(where, where.scheme, DataError):
        facts: dict[str, Any] = _filesystem(where).info(str(where))
    tags = [str(facts[name]) for name in ("ETag", "etag", "md5Hash", "generation") if facts.get(name)]
    if not tags or not facts.get("size"):
        return None
    mark = digest(" ".join(tags).encode())
    return int(facts["size"]), int(mark[:15], 16), int(mark[15:30], 16)


def _filesystem(where: Location) -> Any:
    if where.scheme not in SCHEMES:
        problem = "unknown scheme of a URL"
        raise DataError(problem, where=where, given=where.scheme, allowed="a folder, s3, gcs, memory")
    return filesystem(where.scheme)
