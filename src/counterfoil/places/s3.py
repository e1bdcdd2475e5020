"""A prefix in a bucket of S3, or of a store that speaks its language, as a place."""

import secrets
import time
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any

from counterfoil.errors import StorageError
from counterfoil.places.base import PlaceEntry, Tagged
from counterfoil.places.remote import Bucket, filesystem, reaching

#: Codes of a condition that does not hold, and of writers that came at the same moment.
_UNMET, _CLASH = {"PreconditionFailed", "412"}, {"ConditionalRequestConflict", "409", "OperationAborted"}
_MISSING = {"NoSuchKey", "404", "NotFound"}
#: The mark by which a writer knows its own object, where the answer to the first try was lost.
_WRITER = "counterfoil-writer"
_CLASHES = 8


@dataclass(frozen=True)
class S3Place(Bucket):
    """One request writes one object, which appears whole when all of it has arrived.

    `create` and `replace` are conditional requests (`If-None-Match`, `If-Match`), the tag is the ETag, and
    ages are by the server's clock. Every request goes through the client of s3fs, with its credentials.
    """

    scheme: str = "s3"

    def read(self, name: str) -> Tagged | None:
        """The object and its ETag."""
        found = self._get(name)
        return None if found is None else Tagged(found["data"], found["ETag"])

    def part(self, name: str, size: int | None) -> bytes | None:
        """By a request for a range."""
        found = self._get(name, **({} if size is None else {"Range": f"bytes=0-{size - 1}"}))
        return None if found is None else found["data"]

    def write(self, name: str, data: bytes) -> None:
        """One request, without a condition."""
        self._call("put_object", name, Body=data)

    def create(self, name: str, data: bytes) -> bool:
        """On the condition that there is no such object."""
        return self._put(name, data, IfNoneMatch="*")

    def replace(self, name: str, data: bytes, tag: str) -> bool:
        """On the condition that its ETag is the same."""
        return self._put(name, data, IfMatch=tag)

    def touch(self, name: str) -> bool:
        """Copied onto itself on the server, which keeps bytes and ETag."""
        source = {"Bucket": self.bucket, "Key": self.key(name)}
        return (
            self._call("copy_object", name, CopySource=source, MetadataDirective="REPLACE", missing=True)
            is not None
        )

    def age(self, name: str) -> float | None:
        """Both times are the server's: of the object, and of its answer."""
        found = self._call("head_object", name, missing=True)
        if found is None:
            return None
        now = parsedate_to_datetime(found["ResponseMetadata"]["HTTPHeaders"]["date"])
        then: datetime = found["LastModified"]
        return max(0.0, (now - then).total_seconds())

    def remove(self, name: str, tag: str | None = None) -> bool:
        """With a tag, on the condition that it is the ETag."""
        if tag is None:
            known = self._call("head_object", name, missing=True)
            if known is not None:
                self._call("delete_object", name)
            return known is not None
        return self._settled("delete_object", name, IfMatch=tag) is not None

    def entries(self, prefix: str = "") -> list[PlaceEntry]:
        """A thousand names per request."""
        found: list[PlaceEntry] = []
        asked: dict[str, Any] = {"Prefix": self.key(prefix)}
        root, now = self.key(""), time.time()
        while True:
            page = self._call("list_objects_v2", None, **asked)
            for each in page.get("Contents", ()):
                age = now - each["LastModified"].timestamp()
                found.append(PlaceEntry(each["Key"].removeprefix(root), each["Size"], age))
            if not page.get("IsTruncated"):
                return sorted(found)
            asked["ContinuationToken"] = page["NextContinuationToken"]

    def _put(self, name: str, data: bytes, **condition: str) -> bool:
        writer = secrets.token_hex(8)
        if self._settled("put_object", name, Body=data, Metadata={_WRITER: writer}, **condition) is not None:
            return True
        # A request whose answer was lost is sent again, and then meets the object that it wrote itself.
        known = self._call("head_object", name, missing=True)
        return known is not None and known.get("Metadata", {}).get(_WRITER) == writer

    def _settled(self, method: str, name: str, **asked: Any) -> Any | None:
        """A conditional request, sent again while another runs; None where the condition is unmet."""
        for attempt in range(_CLASHES):
            answer = self._call(method, name, missing=True, unmet=True, **asked)
            if answer != "clash":
                return answer
            time.sleep(0.05 * 2**attempt * (0.5 + secrets.randbelow(1000) / 1000))
        raise StorageError("other writers came first, every time", where=f"{self}/{name}", hint="try again")

    def _get(self, name: str, **asked: Any) -> Any | None:
        return self._call("get_object", name, missing=True, **asked)

    def _call(
        self, method: str, name: str | None, *, missing: bool = False, unmet: bool = False, **asked: Any
    ) -> Any:
        """One request; None where there is no such object, or the condition is not met, if those may be."""
        from botocore.exceptions import ClientError
        from fsspec.asyn import sync

        asked["Bucket"] = self.bucket
        if name is not None:
            asked["Key"] = self.key(name)
        where = str(self) if name is None else f"{self}/{name}"
        with reaching(where, "s3"):
            files = filesystem("s3")
            try:
                return sync(files.loop, _request, files, method, asked)
            except ClientError as error:
                code = error.response.get("Error", {}).get("Code")
                if unmet and code in _CLASH:
                    return "clash"
                if (missing and code in _MISSING) or (unmet and code in _UNMET):
                    return None
                raise


async def _request(files: Any, method: str, asked: dict[str, Any]) -> Any:
    await files.set_session()
    client = await files.get_s3(asked["Bucket"])
    answer = await getattr(client, method)(**asked)
    if "Body" in answer:
        # The connection may be cut in the middle of the body: the whole request is then one that failed.
        async with answer["Body"] as body:
            answer["data"] = await body.read()
    return answer
