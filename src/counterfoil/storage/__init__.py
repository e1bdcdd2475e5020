"""Places: folders and prefixes in buckets that hold named bytes, each written whole or not at all."""

from pathlib import Path

from counterfoil.errors import InputError
from counterfoil.inputs.files import location
from counterfoil.storage.place import Place, PlaceEntry, Tagged, local_folder, user_cache

__all__ = ["Place", "PlaceEntry", "Tagged", "local_folder", "open_place", "user_cache"]


def open_place(text: str | Path) -> Place:
    """The place that a path or a URL names; a folder need not be there, and no connection is made.

    Raises `InputError` for a scheme that cannot create a file only where there is none.
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
