"""Places: folders and buckets that hold named bytes, each written whole or not at all.

A cache, and the leases of those who share its work, need the same few things of a folder on a disk and of a
prefix in a bucket: `Place` says which. `open_place` gives the one that a path or URL names.
"""

from pathlib import Path

from counterfoil.errors import InputError
from counterfoil.storage.location import (
    Location,
    Place,
    PlaceEntry,
    Tagged,
    as_path,
    is_distant,
    local_folder,
    located,
    location,
    user_cache,
)

__all__ = [
    "Location",
    "Place",
    "PlaceEntry",
    "Tagged",
    "as_path",
    "is_distant",
    "local_folder",
    "located",
    "location",
    "open_place",
    "user_cache",
]


def open_place(text: str | Path) -> Place:
    """The place that a path or a URL names; a folder need not be there.

    Raises `InputError` for a scheme that can neither create a file only where there is none nor replace one
    whole, and `MissingExtraError` where the package of a scheme is not installed. No connection is made.

    >>> import tempfile; place = open_place(tempfile.mkdtemp())
    >>> place.create("a/lease", b"mine"), place.create("a/lease", b"yours")
    (True, False)
    >>> data, tag = place.read("a/lease")
    >>> place.replace("a/lease", b"mine, again", tag), place.replace("a/lease", b"late", tag)
    (True, False)
    >>> [entry.name for entry in place.entries("a/")], place.remove("a/lease")
    (['a/lease'], True)
    >>> open_place("sftp://host/cache")
    Traceback (most recent call last):
    counterfoil.errors.InputError: sftp://host/cache: a place of this kind cannot write a file only where ...
    """
    where = location(text)
    if isinstance(where, Path):
        from counterfoil.storage.folder import FolderPlace

        return FolderPlace(where)
    if where.scheme != "s3":
        raise InputError(
            "a place of this kind cannot write a file only where there is none",
            where=where,
            given=where.scheme,
            allowed="a folder, s3://",
            hint="work that is shared needs that",
        )
    if not where.path.partition("/")[0]:
        raise InputError("no bucket in the URL", where=where, allowed="s3://BUCKET/FOLDER")
    from counterfoil.storage.buckets import S3Place

    return S3Place(where)
