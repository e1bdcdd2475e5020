"""A server that speaks the routes of the hub by which data sets are made and committed; a process of its own.

What is committed lies in a folder, OWNER/NAME below it. Files ending in .parquet go through the store for
large files, as on the hub. `POST /control` names the fault of the next requests to a route.
"""

import base64
import hashlib
import json
import socket
import struct
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

TOKEN = "hf_a_secret_of_the_tests"
FOLDER = Path(sys.argv[1]) if len(sys.argv) > 1 else Path()
FAULTS: dict[str, list[str]] = {}
LARGE: dict[str, bytes] = {}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        pass

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        path = self.path.partition("?")[0]
        if path == "/control":
            FAULTS.clear()
            FAULTS.update(json.loads(body))
            return self._send({})
        route = next(
            name
            for name, part in (
                ("create", "/repos/create"),
                ("preupload", "/preupload/"),
                ("commit", "/commit/"),
                ("large", "/objects/batch"),
                ("yaml", "/validate-yaml"),
            )
            if part in path
        )
        fault = FAULTS.get(route, [])
        what = fault.pop(0) if fault else ""
        if what == "cut":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            self.close_connection = True
            return None
        if what:
            return self._send({"error": "refused"}, int(what))
        if route != "large" and self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self._send({"error": "Invalid username or password."}, 401)
        if route == "yaml":
            return self._send({"errors": [], "warnings": []})
        if route == "create":
            asked = json.loads(body)
            name = f"{asked['organization']}/{asked['name']}"
            if (FOLDER / name).exists():
                found = {"error": "You already created it", "url": f"{self._root()}/datasets/{name}"}
                return self._send(found, 409)
            (FOLDER / name).mkdir(parents=True)
            return self._send({"url": f"{self._root()}/datasets/{name}", "name": name})
        if route == "large":
            wanted = json.loads(body)["objects"]
            found = [
                {**each, "actions": {"upload": {"href": f"{self._root()}/large/{each['oid']}"}}}
                for each in wanted
            ]
            return self._send({"transfer": "basic", "objects": found}, kind="application/vnd.git-lfs+json")
        name = "/".join(path.split("/")[3:5])
        if route == "preupload":
            files = json.loads(body)["files"]
            modes = ["lfs" if each["path"].endswith(".parquet") else "regular" for each in files]
            found = [
                {"path": each["path"], "uploadMode": mode, "shouldIgnore": False}
                for each, mode in zip(files, modes, strict=True)
            ]
            return self._send({"files": found})
        return self._commit(name, [json.loads(line) for line in body.splitlines()])

    def _commit(self, name: str, lines: list[dict[str, Any]]) -> None:
        for line in lines:
            value, path = line["value"], FOLDER / name / line["value"].get("path", "")
            if line["key"] == "deletedFile":
                path.unlink()
            elif line["key"] in ("file", "lfsFile"):
                path.parent.mkdir(parents=True, exist_ok=True)
                large = line["key"] == "lfsFile"
                path.write_bytes(LARGE[value["oid"]] if large else base64.b64decode(value["content"]))
        oid = hashlib.sha1(json.dumps(lines).encode()).hexdigest()
        self._send(
            {"success": True, "commitOid": oid, "commitUrl": f"{self._root()}/datasets/{name}/commit/{oid}"}
        )

    def do_PUT(self) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"]))
        oid = self.path.rpartition("/")[2]
        if hashlib.sha256(data).hexdigest() != oid:
            return self._send({"error": "not these bytes"}, 400)
        LARGE[oid] = data
        return self._send({})

    def do_GET(self) -> None:
        """The files of a repository."""
        name = "/".join(self.path.split("/")[3:5])
        files = [path for path in sorted((FOLDER / name).rglob("*")) if path.is_file()]
        paths = [path.relative_to(FOLDER / name).as_posix() for path in files]
        if "/tree/" in self.path:
            self._send([{"type": "file", "path": path, "size": 1, "oid": "0" * 40} for path in paths])
        else:
            self._send({"id": name, "sha": "0" * 40, "siblings": [{"rfilename": path} for path in paths]})

    def _root(self) -> str:
        return f"http://{self.headers['Host']}"

    def _send(self, value: Any, status: int = 200, *, kind: str = "application/json") -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


class Server:
    """A running server, from the side of a test."""

    def __init__(self, port: int, folder: Path) -> None:
        self.url, self.folder = f"http://127.0.0.1:{port}", folder

    def fail(self, **faults: list[str]) -> None:
        """Faults of the next requests by route: "cut" ends the connection, "403" is its answer."""
        request = urllib.request.Request(f"{self.url}/control", json.dumps(faults).encode())
        with urllib.request.urlopen(request, timeout=10):
            pass


@contextmanager
def running(folder: Path) -> Iterator[Server]:
    """A server in a process of its own, which keeps what is committed in `folder`."""
    command = [sys.executable, __file__, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield Server(int(process.stdout.readline()), folder)
        finally:
            process.kill()


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    sys.stdout.write(f"{server.server_address[1]}\n")
    sys.stdout.flush()
    server.serve_forever()
