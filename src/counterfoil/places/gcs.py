"""A prefix in a bucket of Google Cloud Storage as a place."""

import json
import secrets
import time
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any

from counterfoil.errors import StorageError
from counterfoil.places.base import PlaceEntry, Tagged
from counterfoil.places.remote import NO_BUCKET, Bucket, filesystem, reaching

#: The mark by which a writer knows its own object, where the answer to the first try was lost.
_WRITER = "counterfoil-writer"
_OBJECT = "b/{}/o/{}"


@dataclass(frozen=True)
class GcsPlace(Bucket):
    """One request writes one object, which appears whole when all of it has arrived.

    `create` and `replace` are conditional requests (`ifGenerationMatch`), the tag is the generation, and ages
    are by the server's clock. Every request goes through gcsfs, with its credentials.
    """

    scheme: str = "gcs"

    def read(self, name: str) -> Tagged | None:
        """The object and its generation."""
        found = self._call("GET", name, _OBJECT, alt="media")
        return None if found is None else Tagged(found[1], found[0]["x-goog-generation"])

    def part(self, name: str, size: int | None) -> bytes | None:
        """By a request for a range."""
        asked = {} if size is None else {"headers": {"Range": f"bytes=0-{size - 1}"}}
        found = self._call("GET", name, _OBJECT, alt="media", **asked)
        return None if found is None else found[1]

    def write(self, name: str, data: bytes) -> None:
        """One request, without a condition."""
        self._upload(name, data, {})

    def create(self, name: str, data: bytes) -> bool:
        """On the condition that there is no such object: its generation is 0."""
        return self._put(name, data, "0")

    def replace(self, name: str, data: bytes, tag: str) -> bool:
        """On the condition that its generation is the same."""
        return self._put(name, data, tag)

    def touch(self, name: str) -> bool:
        """A field of its metadata is written, which keeps bytes and generation."""
        mark = {"metadata": {"counterfoil-touched": secrets.token_hex(4)}}
        return self._call("PATCH", name, _OBJECT, json=mark) is not None

    def age(self, name: str) -> float | None:
        """Both times are the server's: of the object, and of its answer."""
        found = self._call("GET", name, _OBJECT)
        if found is None:
            return None
        now = parsedate_to_datetime(found[0]["Date"])
        return max(0.0, now.timestamp() - _seconds(json.loads(found[1])["updated"]))

    def remove(self, name: str, tag: str | None = None) -> bool:
        """With a tag, on the condition that it is the generation."""
        asked = {} if tag is None else {"ifGenerationMatch": tag}
        return self._call("DELETE", name, _OBJECT, **asked) is not None

    def entries(self, prefix: str = "") -> list[PlaceEntry]:
        """A thousand names per request."""
        found: list[PlaceEntry] = []
        asked: dict[str, Any] = {"prefix": self.key(prefix)}
        root, now = self.key(""), time.time()
        while True:
            answer = self._call("GET", None, "b/{}/o", **asked)
            if answer is None:
                raise StorageError("no such bucket", where=self, hint=NO_BUCKET)
            page = json.loads(answer[1])
            for each in page.get("items", ()):
                age = now - _seconds(each["updated"])
                found.append(PlaceEntry(each["name"].removeprefix(root), int(each["size"]), age))
            if "nextPageToken" not in page:
                return sorted(found)
            asked["pageToken"] = page["nextPageToken"]

    def _put(self, name: str, data: bytes, generation: str) -> bool:
        writer = secrets.token_hex(8)
        if self._upload(name, data, {_WRITER: writer}, ifGenerationMatch=generation):
            return True
        # A request whose answer was lost is sent again, and then meets the object that it wrote itself.
        known = self._call("GET", name, _OBJECT)
        return known is not None and json.loads(known[1]).get("metadata", {}).get(_WRITER) == writer

    def _upload(self, name: str, data: bytes, metadata: dict[str, str], **condition: str) -> bool:
        """Write an object in one request; whether the condition was met."""
        about = json.dumps({"name": self.key(name), "metadata": metadata})
        between = secrets.token_hex(16)
        head = f"--{between}\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n{about}\r\n"
        head += f"--{between}\r\nContent-Type: application/octet-stream\r\n\r\n"
        asked: dict[str, Any] = {
            "data": head.encode() + data + f"\r\n--{between}--".encode(),
            "headers": {"Content-Type": f'multipart/related; boundary="{between}"'},
        }
        asked |= {"uploadType": "multipart", **condition}
        return self._call("POST", name, "b/{}/o", **asked) is not None

    def _call(self, method: str, name: str | None, path: str, **asked: Any) -> Any | None:
        """Headers and bytes of one answer; None where there is no such object or a condition is not met."""
        upload = method == "POST"
        with reaching(str(self) if name is None else f"{self}/{name}", "gcs"):
            files = filesystem("gcs")
            if upload:
                path = f"{files._location}/upload/storage/v1/{path}"
            names = (self.bucket,) if name is None or upload else (self.bucket, self.key(name))
            try:
                return files.call(method, path, *names, **asked)
            except FileExistsError:  # 412: the condition is not met
                return None
            except FileNotFoundError:
                if upload:
                    raise StorageError("no such bucket", where=self, hint=NO_BUCKET) from None
                return None


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
