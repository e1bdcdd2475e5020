"""Files at a distance that are only read: images behind a URL."""

from typing import Any

from counterfoil.errors import DataError
from counterfoil.places.location import SCHEMES, Location
from counterfoil.places.remote import filesystem, reaching
from counterfoil.store import digest


def read_file(where: Location) -> bytes:
    """The bytes of a file; raises `DataError` in one line where it cannot be read."""
    with reaching(where, where.scheme, DataError):
        return _filesystem(where).cat_file(str(where))


def names_in(folder: Location) -> frozenset[str]:
    """The names of what lies in a folder, none where there is no such folder.

    Raises `DataError` where it cannot be listed: no bucket, no credentials, no right, no network.
    """
    with reaching(folder, folder.scheme, DataError):
        try:
            found = _filesystem(folder).ls(str(folder), detail=False)
        except FileNotFoundError as error:
            # A bucket that is not there is no empty folder.
            if "NoSuchBucket" in repr(error.__cause__):
                raise
            return frozenset()
    return frozenset(str(name).rstrip("/").rpartition("/")[2] for name in found)


def stamp_of(where: Location) -> tuple[int, int, int] | None:
    """Size and a digest of what the store says of a file's content, in the form of the stamp of a local file.

    None where the store has neither a tag nor a checksum, so that the bytes have to be read.
    """
    with reaching(where, where.scheme, DataError):
        known: dict[str, Any] = _filesystem(where).info(str(where))
    tags = [str(known[name]) for name in ("ETag", "etag", "md5Hash", "generation") if known.get(name)]
    if not tags or not known.get("size"):
        return None
    mark = digest(" ".join(tags).encode())
    return int(known["size"]), int(mark[:15], 16), int(mark[15:30], 16)


def _filesystem(where: Location) -> Any:
    if where.scheme not in SCHEMES:
        raise DataError(
            "unknown scheme of a URL", where=where, given=where.scheme, allowed="a folder, s3, gcs, memory"
        )
    return filesystem(where.scheme)
