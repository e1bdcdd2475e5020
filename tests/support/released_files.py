"""A server of released files on this machine: parts of files, connections that break, gated data sets."""

import json
from contextlib import contextmanager
from dataclasses import dataclass, field

from loopback import Handler, loopback


@dataclass
class Host:
    """What is served: bytes by path; and what was asked, as (path, first byte, token)."""

    files: dict[str, bytes] = field(default_factory=dict)
    asked: list[tuple[str, int, str]] = field(default_factory=list)
    #: Connections that break after so many bytes, one after another.
    breaks: list[int] = field(default_factory=list)
    ranges: bool = True
    token: str = ""
    address: str = ""


@contextmanager
def serving(host):
    class Released(Handler):
        def do_GET(self):
            path = self.path.partition("?")[0].lstrip("/")
            given = self.headers.get("Authorization", "")
            span = self.headers.get("Range", "")
            start = int(span.removeprefix("bytes=").rstrip("-")) if span else 0
            host.asked.append((path, start, given))
            if host.token and given != f"Bearer {host.token}":
                self.send_error(401)
            elif path not in host.files:
                self.send_error(404)
            else:
                whole = host.files[path]
                body, status = (whole[start:], 206) if start and host.ranges else (whole, 200)
                sent = body[: host.breaks.pop(0)] if host.breaks else body
                self.close_connection = sent != body
                self.send(status, sent, {"Content-Length": str(len(body))})

    with loopback(Released) as host.address:
        yield host


def listing(sha, *files):
    """What the hub says of a data set at a commit."""
    return json.dumps({"sha": sha, "siblings": list(files)}).encode()
