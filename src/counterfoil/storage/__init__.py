"""Places: folders and prefixes in buckets that hold named bytes, each written whole or not at all."""

from pathlib import Path

from counterfoil.errors import InputError
from counterfoil.inputs.files import location
from counterfoil.storage.object_store import ObjectStore, StoreEntry, Tagged, local_folder, user_cache

__all__ = ["ObjectStore", "StoreEntry", "Tagged", "local_folder", "open_store", "user_cache"]


def open_store(text: str | Path) -> ObjectStore:
    """The place that a path or a URL names; a folder need not be there, and no connection is made.

    Raises `InputError` for a scheme that cannot create a file only where there is none.
    """
    where = location(text)
    if isinstance(where, Path):
        from counterfoil.storage.folder import FolderStore

        return FolderStore(where)
    if where.scheme != "s3":
        problem = "a place of this kind cannot write a file only where there is none"
        hint = "work that is shared needs that"
        raise InputError(problem, where=where, given=where.scheme, allowed="a folder, s3://", hint=hint)
    if not where.path.partition("/")[0]:
        raise InputError("no bucket in the URL", where=where, allowed="s3://BUCKET/FOLDER")
    from counterfoil.storage.buckets import S3Store

    return S3Store(where)
