"""Keys of images by their content; a list in the cache folder saves reading files that have not been touched.

The names of shards follow from such keys: `engine.cache.shard_name`.
"""

import os
import time
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa

from counterfoil.benchmarks.records import FileSource, Image, Pictured, Source
from counterfoil.benchmarks.videos import FrameFeatures, FrameFolder, Video
from counterfoil.engine.cache import MEMO
from counterfoil.engine.plan import Progress, id_key
from counterfoil.errors import DataError
from counterfoil.inputs.columns import ColumnSchema, Schema, read_columns
from counterfoil.inputs.files import Location, digest, digest_file, digest_stream, is_distant, location
from counterfoil.storage import local_folder
from counterfoil.storage.buckets import reaching
from counterfoil.storage.files import open_file, stamp_of
from counterfoil.storage.parallel import map_ahead
from counterfoil.store import write_parquet

#: Threads that read files; more than cores, since they wait for the disk.
_READERS = 8

#: A file changed this recently could change again without its times showing it (coarse clocks).
_UNSETTLED_NS = 2_000_000_000

#: Files of more bytes than this are read in blocks: a video may be larger than the memory.
_WHOLE = 1 << 24

_STAMPS = dict.fromkeys(("size", "mtime", "ctime"), ColumnSchema("whole"))
_MEMO_SCHEMA = Schema({"path": ColumnSchema("text"), **_STAMPS, "digest": ColumnSchema("text")})

Stamp = tuple[int, int, int]


def image_keys(images: Sequence[Image], *, cache: Path | None, progress: Progress) -> list[str]:
    """A key for each image: the digest of its bytes (or pixels) and crop; of a video also its frames."""
    cache = None if cache is None else local_folder(cache)
    memo = _load_memo(cache)
    digests: dict[Hashable, str] = {}
    unread: dict[Hashable, Source] = {}
    for source in (part for image in images for part in _parts(image.source)):
        if _name(source) in digests or _name(source) in unread:
            continue
        picture = source.picture() if isinstance(source, Pictured) else None
        if picture is not None:
            # Its pixels are there; encoding them first would take ten times as long.
            pixels = np.asarray(picture)
            digests[id(source)] = digest(f"\0pixels\0{pixels.shape}\0".encode() + pixels.tobytes())
            continue
        entry = memo.get(_path(source)) if isinstance(source, FileSource) else None
        # Asking a store takes a while: that is done by the threads that read.
        if entry is not None and not _is_remote(source) and entry[0] == _stamp(source):
            digests[_name(source)] = entry[1]
        else:
            unread[_name(source)] = source
    fresh: dict[Hashable, tuple[str, Stamp | None]] = {}
    if unread:
        progress("reading images", 0, len(unread))
    reads = map_ahead(lambda item: _read(item[1], memo), unread.items(), threads=_READERS, ahead=4 * _READERS)
    for (name, _), read in reads:
        fresh[name] = read
        progress("reading images", len(fresh), len(unread))
    new = {
        _path(source): (stamp, key)
        for source, (key, stamp) in ((unread[name], read) for name, read in fresh.items())
        if isinstance(source, FileSource) and stamp is not None
    }
    if cache is not None and new:
        # Read again: another process may have added to the list. Where two write at once the last one wins,
        # and the other's files are digested again in a later run.
        entries = {**_load_memo(cache), **new}
        paths = sorted(entries)
        stamps = np.asarray([entries[path][0] for path in paths], dtype=np.int64)
        columns = (paths, *stamps.T, [entries[path][1] for path in paths])
        write_parquet(cache / MEMO, pa.table(dict(zip(_MEMO_SCHEMA.columns, columns, strict=True))))
    digests |= {name: key for name, (key, _) in fresh.items()}
    return [_key(image, digests) for image in images]


def _name(source: Source) -> Hashable:
    return source if isinstance(source, FileSource) else id(source)


def _parts(source: Source | FrameFeatures | None) -> Sequence[Source]:
    if source is None:
        return ()
    if isinstance(source, FrameFeatures):
        return (FileSource(source.path),)
    return source.files if isinstance(source, FrameFolder) else (source,)


def _key(image: Image, digests: Mapping[Hashable, str]) -> str:
    if image.source is None:
        return id_key(image)
    content = " ".join(digests[_name(part)] for part in _parts(image.source))
    if isinstance(image, Video):
        # Which frames are looked at; with the bytes of the video that is all that a model sees.
        source, sampling = image.source, image.sampling
        frame_facts = getattr(source, "rate", None), getattr(source, "duration", None)
        frames = type(source).__name__, image.start, image.end, sampling.count, sampling.rate, *frame_facts
        content = digest(f"{content} video {frames!r}".encode())
    return digest(f"{content} crop {image.crop}".encode()) if image.crop else content


def _is_remote(source: Source) -> bool:
    return isinstance(source, FileSource) and is_distant(source.path)


def _read(source: Source, memo: Mapping[str, tuple[Stamp, str]]) -> tuple[str, Stamp | None]:
    """The digest of a source, and the stamp under which a later run may trust it."""
    before, unlinked = _stamp(source), _is_remote(source)
    remembered = memo.get(_path(source)) if isinstance(source, FileSource) and unlinked else None
    if remembered is not None and remembered[0] == before:
        return remembered[1], before
    name = None
    if isinstance(source, FileSource) and before is not None and before[0] > _WHOLE:
        if isinstance(where := location(source.path), Location):
            with reaching(where, where.scheme, DataError), open_file(where) as file:
                name = digest_stream(file)
        else:
            with suppress(OSError):  # reading it whole says what is wrong, in a line
                name = digest_file(source.path)
    name = digest(source.read()) if name is None else name
    # A store changes its tag with every change of the content, however soon.
    settled = before is not None and (unlinked or max(before[1:]) < time.time_ns() - _UNSETTLED_NS)
    # The stamp is taken on both sides of reading: a file that changed meanwhile is not remembered.
    return name, before if settled and _stamp(source) == before else None


def _stamp(source: Source) -> Stamp | None:
    """Size and times of a file (entry changes too, for copies that keep `mtime`), or a store's tag."""
    if not isinstance(source, FileSource):
        return None
    if isinstance(where := location(source.path), Location):
        return stamp_of(where)
    try:
        status = os.stat(source.path)
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _path(source: FileSource) -> str:
    where = location(source.path)
    return str(where) if isinstance(where, Location) else os.path.abspath(where)


def _load_memo(cache: Path | None) -> dict[str, tuple[Stamp, str]]:
    """The list in the cache folder; a list that cannot be read is an empty one, since it only saves time."""
    if cache is None or not (cache / MEMO).exists():
        return {}
    try:
        columns = read_columns(cache / MEMO, _MEMO_SCHEMA).to_pydict()
    except DataError:
        return {}
    rows = zip(*(columns[name] for name in _MEMO_SCHEMA.columns), strict=True)
    return {path: ((size, mtime, ctime), name) for path, size, mtime, ctime, name in rows}
