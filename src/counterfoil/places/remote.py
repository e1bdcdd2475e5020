"""The common part of buckets: one client per process, several reads at a time, errors in one line."""

import asyncio
import importlib.util
import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from io import BufferedIOBase, BytesIO
from typing import Any, NoReturn

from counterfoil.errors import CounterfoilError, MissingExtraError, StorageError
from counterfoil.places.base import HEAD, PlaceEntry
from counterfoil.places.location import SCHEMES, Location

#: Reads in flight. One takes 20 to 100 ms, nearly all of it waiting.
READS = 16
#: Entries up to this size are read at once, without a look at their beginning.
_SMALL = 4 * HEAD
#: Seconds until a connection counts as failed, and how often a request is tried, and a connection.
_CONNECT, _READ, TRIES, _CALLS = 5, 60, 4, 2

#: The package of each scheme, as Python imports it.
_PACKAGES = {"s3": "s3fs", "gcs": "gcsfs"}

#: What helps where a bucket is not there.
NO_BUCKET = "check its name, or make it first"
_SILENT = logging.NullHandler()
_ENDPOINT = "check the network, and the address of the endpoint where it is not the provider's own"
_CREDENTIALS = {
    "s3": "set AWS_PROFILE or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; for open data FSSPEC_S3_ANON=true",
    "gcs": "set GOOGLE_APPLICATION_CREDENTIALS; for open data FSSPEC_GCS_TOKEN=anon",
}
#: Names of exceptions, of libraries that need not be installed, and codes of answers.
_NO_CREDENTIALS = {"NoCredentialsError", "PartialCredentialsError", "GoogleAuthError"}
_NO_RIGHT = {"PermissionError", "AccessDenied", "403", 403}
_NO_FILE = {"FileNotFoundError", "NoSuchKey", "404", 404}
_NO_CONNECTION = {"ConnectionError", "HTTPClientError", "TimeoutError", "ClientError"}


def filesystem(scheme: str) -> Any:
    """fsspec's file system of a scheme, one per process, which keeps no listings.

    What it needs beyond the URL comes from where its own package looks: `AWS_...` and `~/.aws` (S3), Google's
    default credentials, `FSSPEC_...` variables. Raises `MissingExtraError` without its package.
    """
    package = _PACKAGES.get(scheme)
    if package is not None and importlib.util.find_spec(package) is None:
        raise MissingExtraError(package, SCHEMES[scheme])
    import fsspec

    if scheme == "gcs":
        return _gcs_class()(use_listings_cache=False)
    settings: dict[str, Any] = {"use_listings_cache": False} if package else {}
    if scheme == "s3":
        retries = {"mode": "standard", "total_max_attempts": TRIES}
        settings["config_kwargs"] = {"connect_timeout": _CONNECT, "read_timeout": _READ, "retries": retries}
    return fsspec.filesystem(scheme, **settings)


@cache
def _gcs_class() -> Any:
    """gcsfs's file system, which tries a server half a minute that refuses every connection; this one calls
    twice, and tries again what goes wrong on a connection."""
    import aiohttp

    # The class that is registered asks another server first which kind of bucket it is, for a minute where
    # that does not answer; kinds that need it are read by gRPC alone.
    from gcsfs.core import GCSFileSystem
    from gcsfs.retry import retry_request

    # What goes wrong is one line of ours; gcsfs would print each with all its frames before.
    logging.getLogger("gcsfs").addHandler(_SILENT)
    once = GCSFileSystem._request.__wrapped__
    limits = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT, sock_read=_READ)

    class GcsFiles(GCSFileSystem):  # type: ignore[misc]
        """With limits of time."""

        def __init__(self, **settings: Any) -> None:
            super().__init__(**{"requests_timeout": limits, **settings})

        @retry_request(retries=TRIES)  # type: ignore[untyped-decorator]
        async def _request(self, *args: Any, **asked: Any) -> Any:
            for left in reversed(range(_CALLS)):
                try:
                    return await once(self, *args, **asked)
                except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
                    if not left:
                        raise ConnectionError(str(error)) from error
                    await asyncio.sleep(1)
            raise AssertionError(_CALLS)

    return GcsFiles


@contextmanager
def reaching(where: object, scheme: str, error: type[CounterfoilError] = StorageError) -> Iterator[None]:
    """Raise what goes wrong at a distance inside the block as one line of `error`."""
    try:
        yield
    except (CounterfoilError, GeneratorExit):
        raise
    # The packages raise errors of their own, of aiohttp, of botocore and of Google's libraries.
    except Exception as caught:
        _refuse(where, scheme, caught, error)


def _refuse(where: object, scheme: str, caught: Exception, error: type[CounterfoilError]) -> NoReturn:
    causes: list[BaseException] = [caught]
    while (cause := causes[-1].__cause__ or causes[-1].__context__) is not None and len(causes) < 8:
        causes.append(cause)
    kinds = {kind.__name__ for cause in causes for kind in type(cause).__mro__}
    codes = {code for cause in causes if (code := _code(cause)) is not None}
    words = " ".join(str(caught).split()) or type(caught).__name__
    if kinds & _NO_CREDENTIALS or 401 in codes:
        raise error("no credentials", where=where, hint=_CREDENTIALS.get(scheme)) from caught
    if codes & {"NoSuchBucket", "InvalidBucketName"}:
        raise error("no such bucket", where=where, hint=NO_BUCKET) from caught
    if (kinds | codes) & _NO_RIGHT or words.startswith("Forbidden"):
        hint = "check the rights of your credentials to this bucket"
        raise error(f"may not be used: {words}", where=where, hint=hint) from caught
    if (kinds | codes) & _NO_FILE:
        raise error("no such file", where=where, hint="check the URL") from caught
    # An answer with a code came over a connection.
    if kinds & _NO_CONNECTION and not codes:
        raise error(f"cannot be reached: {words}", where=where, hint=_ENDPOINT) from caught
    raise error(f"failed: {words}", where=where) from caught


def _code(error: BaseException) -> object:
    """The code of an error of S3 (a word) or of Google's storage (the status of HTTP)."""
    answer = getattr(error, "response", None)
    if isinstance(answer, dict):
        return answer.get("Error", {}).get("Code")
    code = getattr(error, "code", None)
    return code if isinstance(code, int | str) else None


@dataclass(frozen=True)
class Bucket(ABC):
    """A prefix in a bucket: what `S3Place` and `GcsPlace` share."""

    where: Location
    #: `touch` is a request that is paid for.
    patience: float = 86_400.0

    @property
    def bucket(self) -> str:
        """The name of the bucket."""
        return self.where.path.partition("/")[0]

    def key(self, name: str) -> str:
        """The key of a name."""
        below = self.where.path.partition("/")[2]
        return f"{below}/{name}" if below else name

    @abstractmethod
    def part(self, name: str, size: int | None) -> bytes | None:
        """The first `size` bytes of a name, or all; None where there is no such name."""

    def opened(
        self, entries: Iterable[PlaceEntry], wanted: Callable[[bytes], bool]
    ) -> Iterator[tuple[PlaceEntry, BufferedIOBase | None]]:
        """By `READS` threads, a few more in flight than are open."""

        def fetch(entry: PlaceEntry) -> bytes | None:
            if entry.size > _SMALL:
                head = self.part(entry.name, HEAD)
                if head is None or not wanted(head):
                    return None
            return self.part(entry.name, None)

        with ThreadPoolExecutor(READS) as pool:
            flying: deque[tuple[PlaceEntry, Future[bytes | None]]] = deque()
            waiting = iter(entries)
            try:
                while True:
                    while len(flying) < 2 * READS and (entry := next(waiting, None)) is not None:
                        flying.append((entry, pool.submit(fetch, entry)))
                    if not flying:
                        return
                    entry, future = flying.popleft()
                    data = future.result()
                    if data is not None:
                        yield entry, BytesIO(data)
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    def __str__(self) -> str:
        return str(self.where)
