"""A server of released files on this machine: parts of files, connections that break, gated data sets."""

import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


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
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            path = self.path.partition("?")[0].lstrip("/")
            given = self.headers.get("Authorization", "")
            span = self.headers.get("Range", "")
            start = int(span.removeprefix("bytes=").rstrip("-")) if span else 0
            host.asked.append((path, start, given))
            if host.token and given != f"Bearer {host.token}":
                self.send_error(401)
                return
            if path not in host.files:
                self.send_error(404)
                return
            body = host.files[path]
            if start and host.ranges:
                self.send_response(206)
                self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
                body = body[start:]
            else:
                self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if host.breaks:
                self.wfile.write(body[: host.breaks.pop(0)])
                self.wfile.flush()
                self.close_connection = True
                return
            self.wfile.write(body)

        def log_message(self, *what):
            pass

    with in_a_thread(Handler) as host.address:
        yield host


@contextmanager
def in_a_thread(handler):
    """The address of a server of this process, until the block ends."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def listing(sha, *files):
    """What the hub says of a data set at a commit."""
    return json.dumps({"sha": sha, "siblings": list(files)}).encode()
