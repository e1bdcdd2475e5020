"""Files at a distance that are only read: images, shards and videos behind a URL, whole or in parts."""

from collections import OrderedDict
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from io import SEEK_CUR, SEEK_END, SEEK_SET, BufferedReader, RawIOBase
from typing import Any

from counterfoil.errors import DataError
from counterfoil.storage.buckets import filesystem, reaching
from counterfoil.storage.location import SCHEMES, Location
from counterfoil.store import digest


def read_file(where: Location) -> bytes:
    """The bytes of a file; raises `DataError` in one line where it cannot be read."""
    with reaching(where, where.scheme, DataError):
        return _filesystem(where).cat_file(str(where))


def read_part(where: Location, start: int, length: int) -> bytes:
    """`length` bytes from `start` on, fewer where the file ends before; raises as `read_file`."""
    if length < 1:
        return b""
    with reaching(where, where.scheme, DataError):
        data: bytes = _filesystem(where).cat_file(str(where), start=start, end=start + length)
        return data


def open_file(where: Location) -> BufferedReader:
    """A file opened for reading at any place; a few blocks of it are in memory, however large it is.

    Reading on asks for the next blocks ahead of time. Raises as `read_file`, then and when it is read.
    """
    return BufferedReader(_Blocks(where), _BUFFER)


def names_in(folder: Location) -> frozenset[str]:
    """The names of what lies in a folder, none where there is no such folder; raises as `listing`."""
    return frozenset(listing(folder))


def listing(folder: Location) -> Mapping[str, bool]:
    """What lies in a folder: whether each name is a folder itself; nothing where there is no such folder.

    Raises `DataError` where it cannot be listed: no bucket, no credentials, no right, no network.
    """
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


#: Bytes that are asked for at a time, blocks that are kept, and blocks that are asked for ahead.
_BLOCK, _KEPT, _AHEAD = 1 << 22, 12, 4
#: Bytes that are handed on at a time: a header, a few captions.
_BUFFER = 1 << 16


class _Blocks(RawIOBase):
    """A file by its blocks, those that were read last in memory and those that come next on their way."""

    def __init__(self, where: Location) -> None:
        self._where = where
        with reaching(where, where.scheme, DataError):
            about: dict[str, Any] = _filesystem(where).info(str(where))
        if about["type"] == "directory":
            raise DataError("is a folder", where=where, hint="name the file in it")
        self._size = int(about["size"])
        self._at, self._last = 0, -1
        self._blocks: OrderedDict[int, Future[bytes]] = OrderedDict()
        self._pool = ThreadPoolExecutor(_AHEAD, thread_name_prefix="counterfoil-read")

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = SEEK_SET) -> int:
        self._at = {SEEK_SET: 0, SEEK_CUR: self._at, SEEK_END: self._size}[whence] + offset
        return self._at

    def readinto(self, target: Any) -> int:
        if not 0 <= self._at < self._size:
            return 0
        number, within = divmod(self._at, _BLOCK)
        part = self._block(number)[within : within + len(target)]
        target[: len(part)] = part
        self._at += len(part)
        return len(part)

    def _block(self, number: int) -> bytes:
        ahead = range(number, number + 1 + (_AHEAD if number - self._last in (0, 1) else 0))
        for following in ahead:
            if following not in self._blocks and following * _BLOCK < self._size:
                self._blocks[following] = self._pool.submit(
                    read_part, self._where, following * _BLOCK, _BLOCK
                )
        self._last = number
        self._blocks.move_to_end(number)
        while len(self._blocks) > _KEPT:
            self._blocks.popitem(last=False)[1].cancel()
        data = self._blocks[number].result()
        if len(data) < min(_BLOCK, self._size - number * _BLOCK):
            raise DataError("the file was changed while it was read", where=self._where, hint="run it again")
        return data

    def close(self) -> None:
        if not self.closed:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._blocks.clear()
        super().close()


def _filesystem(where: Location) -> Any:
    if where.scheme not in SCHEMES:
        raise DataError(
            "unknown scheme of a URL",
            where=where,
            given=where.scheme,
            allowed="a folder, s3, gcs, memory",
        )
    return filesystem(where.scheme)
