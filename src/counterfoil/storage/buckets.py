"""Prefixes in buckets of S3, and of stores that speak its language, as places.

Requests go through the client of s3fs, with its credentials and retries; conditional writes are here.
"""

import importlib.util
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from io import BufferedIOBase, BytesIO
from typing import Any

from counterfoil.errors import CounterfoilError, MissingExtraError, StorageError
from counterfoil.inputs.files import Location
from counterfoil.storage.object_store import HEAD, SCHEMES, StoreEntry, Tagged
from counterfoil.storage.parallel import map_ahead

#: Reads in flight. One takes 20 to 100 ms, nearly all of it waiting.
READS = 16
#: Entries up to this size are read at once, without a look at their beginning.
_SMALL = 4 * HEAD
#: Seconds until a connection counts as failed, and how often a request is tried.
_CONNECT, _READ, TRIES = 5, 60, 4

#: The package of each scheme, as Python imports it.
_PACKAGES = {"s3": "s3fs", "gcs": "gcsfs"}

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
    """fsspec's file system of a scheme, one per process; credentials come from where its package looks."""
    package = _PACKAGES.get(scheme)
    if package is not None and importlib.util.find_spec(package) is None:
        raise MissingExtraError(package, SCHEMES[scheme])
    import fsspec

    settings: dict[str, Any] = {"use_listings_cache": False} if package else {}
    if scheme == "s3":
        retries = {"mode": "standard", "total_max_attempts": TRIES}
        settings["config_kwargs"] = {"connect_timeout": _CONNECT, "read_timeout": _READ, "retries": retries}
    return fsspec.filesystem(scheme, **settings)


@contextmanager
def reaching(where: object, scheme: str, error: type[CounterfoilError] = StorageError) -> Iterator[None]:
    """Raise what goes wrong at a distance inside the block as one line of `error`."""
    try:
        yield
    except (CounterfoilError, GeneratorExit):
        raise
    # The packages raise errors of their own, of aiohttp, of botocore and of Google's libraries.
    except Exception as caught:
        causes: list[BaseException] = [caught]
        while (earlier := causes[-1].__cause__ or causes[-1].__context__) is not None and len(causes) < 8:
            causes.append(earlier)
        kinds = {kind.__name__ for cause in causes for kind in type(cause).__mro__}
        codes: set[int | str] = set()
        for cause in causes:
            # Of an error of S3 a word, of Google's storage the status of HTTP.
            answer = getattr(cause, "response", None)
            code = getattr(cause, "code", None)
            code = answer.get("Error", {}).get("Code") if isinstance(answer, dict) else code
            codes |= {code} if isinstance(code, int | str) else set()
        words = " ".join(str(caught).split()) or type(caught).__name__
        hint: str | None = None
        if kinds & _NO_CREDENTIALS or 401 in codes:
            problem, hint = "no credentials", _CREDENTIALS.get(scheme)
        elif codes & {"NoSuchBucket", "InvalidBucketName"}:
            problem, hint = "no such bucket", "check its name, or make it first"
        elif (kinds | codes) & _NO_RIGHT or words.startswith("Forbidden"):
            problem, hint = f"may not be used: {words}", "check the rights of your credentials to this bucket"
        elif (kinds | codes) & _NO_FILE:
            problem, hint = "no such file", "check the URL"
        # An answer with a code came over a connection.
        elif kinds & _NO_CONNECTION and not codes:
            problem, hint = f"cannot be reached: {words}", _ENDPOINT
        else:
            problem = f"failed: {words}"
        raise error(problem, where=where, hint=hint) from caught


#: The mark by which a writer knows its own object, where the answer to the first try was lost.
_WRITER = "counterfoil-writer"


#: S3's codes of a condition that does not hold, of writers that came at the same moment, and of no object.
_UNMET, _CLASH = {"PreconditionFailed", "412"}, {"ConditionalRequestConflict", "409", "OperationAborted"}
_MISSING = {"NoSuchKey", "404", "NotFound"}
#: How often a conditional request is sent while others come first.
_CLASHES = 8


@dataclass(frozen=True)
class S3Store:
    """A prefix in a bucket; conditions are `If-None-Match` and `If-Match`, and the tag is the ETag."""

    where: Location
    #: `touch` is a request that is paid for.
    patience: float = 86_400.0

    @property
    def bucket(self) -> str:
        return self.where.path.partition("/")[0]

    def key(self, name: str) -> str:
        below = self.where.path.partition("/")[2]
        return f"{below}/{name}" if below else name

    def opened(
        self, entries: Iterable[StoreEntry], wanted: Callable[[bytes], bool]
    ) -> Iterator[tuple[StoreEntry, BufferedIOBase | None]]:
        """By `READS` threads, a few more in flight than are open."""

        def fetch(entry: StoreEntry) -> Tagged | None:
            if entry.size > _SMALL:
                head = self.read(entry.name, HEAD)
                if head is None or not wanted(head.data):
                    return None
            return self.read(entry.name)

        for entry, fetched in map_ahead(fetch, entries, threads=READS, ahead=2 * READS):
            if fetched is not None:
                yield entry, BytesIO(fetched.data)

    def write(self, name: str, data: bytes) -> None:
        self._call("put_object", name, Body=data)

    def replace(self, name: str, data: bytes, tag: str) -> bool:
        writer = secrets.token_hex(8)
        condition = {"IfMatch": tag} if tag else {"IfNoneMatch": "*"}
        if self._settle("put_object", name, Body=data, Metadata={_WRITER: writer}, **condition):
            return True
        # A request whose answer was lost is sent again, and then meets the object that it wrote itself.
        about = self.about(name)
        return about is not None and about.get("Metadata", {}).get(_WRITER) == writer

    def age(self, name: str) -> float | None:
        """Both times are the server's: of the object, and of its answer."""
        about = self.about(name)
        if about is None:
            return None
        now = parsedate_to_datetime(about["ResponseMetadata"]["HTTPHeaders"]["date"])
        return max(0.0, (now - about["LastModified"]).total_seconds())

    def entries(self, prefix: str = "") -> list[StoreEntry]:
        root, now, entries = self.key(""), time.time(), []
        options: dict[str, Any] = {"Prefix": self.key(prefix)}
        while True:
            page = self._call("list_objects_v2", None, **options)
            for entry in page.get("Contents", ()):
                age = now - entry["LastModified"].timestamp()
                entries.append(StoreEntry(entry["Key"].removeprefix(root), entry["Size"], age))
            if not page.get("IsTruncated"):
                return sorted(entries)
            options["ContinuationToken"] = page["NextContinuationToken"]

    def read(self, name: str, size: int | None = None) -> Tagged | None:
        span: dict[str, Any] = {} if size is None else {"Range": f"bytes=0-{size - 1}"}
        answer = self._call("get_object", name, missing=True, **span)
        return None if answer is None else Tagged(answer["data"], answer["ETag"])

    def touch(self, name: str) -> bool:
        """Copied onto itself on the server, which keeps bytes and ETag."""
        source = {"Bucket": self.bucket, "Key": self.key(name)}
        answer = self._call("copy_object", name, missing=True, CopySource=source, MetadataDirective="REPLACE")
        return answer is not None

    def about(self, name: str) -> dict[str, Any] | None:
        """What the store says of an object, or None."""
        about: dict[str, Any] | None = self._call("head_object", name, missing=True)
        return about

    def remove(self, name: str, tag: str | None = None) -> bool:
        if tag is not None:
            return self._settle("delete_object", name, IfMatch=tag)
        about = self.about(name)
        if about is not None:
            self._call("delete_object", name)
        return about is not None

    def _settle(self, method: str, name: str, **options: Any) -> bool:
        """Whether the condition of a request was met, which is sent again while another one runs."""
        for attempt in range(_CLASHES):
            answer = self._call(method, name, missing=True, unmet=True, **options)
            if answer != "clash":
                return answer is not None
            time.sleep(0.05 * 2**attempt * (0.5 + secrets.randbelow(1000) / 1000))
        raise StorageError("other writers came first, every time", where=f"{self}/{name}", hint="try again")

    def _call(
        self, method: str, name: str | None, *, missing: bool = False, unmet: bool = False, **options: Any
    ) -> Any:
        """One request; None where there is no such object, or the condition is not met, if those may be."""
        from botocore.exceptions import ClientError
        from fsspec.asyn import sync

        options["Bucket"] = self.bucket
        if name is not None:
            options["Key"] = self.key(name)
        with reaching(self if name is None else f"{self}/{name}", "s3"):
            files = filesystem("s3")

            async def request() -> Any:
                await files.set_session()
                client = await files.get_s3(self.bucket)
                answer = await getattr(client, method)(**options)
                if "Body" in answer:
                    # A connection that is cut in the middle of the body: the whole request has failed.
                    async with answer["Body"] as body:
                        answer["data"] = await body.read()
                return answer

            try:
                return sync(files.loop, request)
            except ClientError as error:
                code = error.response.get("Error", {}).get("Code")
                if unmet and code in _CLASH:
                    return "clash"
                if (missing and code in _MISSING) or (unmet and code in _UNMET):
                    return None
                raise

    def __str__(self) -> str:
        return str(self.where)
