"""Servers that speak the language of S3 (moto) and of Google's storage, and a proxy that cuts connections.

fsspec keeps one client per process and settings, which environment variables are no part of: `s3_at` and
`gcs_at` therefore clear its clients.
"""

import json
import logging
import os
import secrets
import socket
import threading
import time
import warnings
from contextlib import contextmanager, suppress
from typing import Any
from unittest.mock import patch
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from counterfoil.storage import buckets, open_place
from loopback import Handler, loopback

#: What of the surroundings decides where a request goes and with which credentials.
_NAMES = ("AWS_", "FSSPEC_", "GOOGLE_", "STORAGE_", "CLOUDSDK_")


@contextmanager
def surroundings(**values):
    """Exactly these variables of the clients, and no client from before."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_NAMES)}
    with patch.dict(os.environ, {**kept, **values}, clear=True):
        _forget()
        try:
            yield
        finally:
            _forget()


def _forget():
    import gcsfs
    import s3fs
    from fsspec.config import conf, set_conf_env

    conf.clear()
    set_conf_env(conf)
    s3fs.S3FileSystem.clear_instance_cache()
    gcsfs.GCSFileSystem.clear_instance_cache()
    buckets._gcs_class().clear_instance_cache()


@contextmanager
def s3_at(url, **more):
    """S3 is at `url`, with credentials, unless told otherwise."""
    own = {"AWS_ACCESS_KEY_ID": "tests", "AWS_SECRET_ACCESS_KEY": "tests", "AWS_DEFAULT_REGION": "us-east-1"}
    with surroundings(**{**own, "AWS_ENDPOINT_URL": url, **more}):
        yield


@contextmanager
def gcs_at(url):
    """Google's storage is at `url`, without credentials."""
    with surroundings(STORAGE_EMULATOR_HOST=url, FSSPEC_GCS_TOKEN="anon"):
        yield


@contextmanager
def s3_server():
    """An S3-compatible server; its URL. What it holds is of this process."""
    pytest.importorskip("s3fs", reason="s3fs is not installed: pip install '.[s3]'")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        server = pytest.importorskip("moto.server", reason="moto is not installed: pip install '.[dev]'")
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    running = server.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    try:
        yield f"http://{host}:{port}"
    finally:
        running.stop()


def new_bucket():
    """The name of a bucket of S3 that was made now."""
    import fsspec

    name = f"tests-{secrets.token_hex(6)}"
    fsspec.filesystem("s3").mkdir(name)
    return name


def copied(folder, url):
    """The files of a folder at a URL, which is returned."""
    for file in folder.rglob("*.*"):
        open_place(url).write(str(file.relative_to(folder)), file.read_bytes())
    return url


class _Objects(Handler):
    """The routes of Google's storage for objects: upload, read, list, patch, delete, on conditions."""

    wbufsize = 1 << 16
    buckets: dict[str, dict[str, dict[str, Any]]]
    lock: threading.Lock
    page = 3

    def do_GET(self):
        asked = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(asked.query).items()}
        body = self.body()
        bucket, _, *name = asked.path.partition("/b/")[2].split("/", 2)
        with self.lock:
            objects = self.buckets.get(bucket)
            if objects is None:
                return self.send(
                    404, {"error": {"code": 404, "message": "The specified bucket does not exist."}}
                )
            return self.act(objects, unquote(name[0]) if name else "", query, body)

    do_POST = do_PATCH = do_DELETE = do_GET  # noqa: N815

    def act(self, objects, name, query, body):
        about = {}
        if self.command == "POST":
            between = self.headers["Content-Type"].partition('boundary="')[2].rstrip('"').encode()
            _, first, second, _ = body.split(b"--" + between)
            about = json.loads(first.partition(b"\r\n\r\n")[2])
            name, body = about["name"], second.partition(b"\r\n\r\n")[2].removesuffix(b"\r\n")
        known = objects.get(name)
        wanted = query.get("ifGenerationMatch")
        if wanted is not None and wanted != (known["generation"] if known else "0"):
            return self.send(412, {"error": {"code": 412, "message": "conditionNotMet"}})
        if self.command == "GET" and not name:
            names = sorted(each for each in objects if each.startswith(query.get("prefix", "")))
            at = int(query.get("pageToken", 0))
            page = {"items": [_shown(objects[each]) for each in names[at : at + self.page]]}
            more = {"nextPageToken": str(at + self.page)} if at + self.page < len(names) else {}
            return self.send(200, page | more)
        if self.command == "POST":
            generation = str(time.time_ns())
            about |= {"data": body, "generation": generation, "updated": _now(), "size": str(len(body))}
            objects[name] = about
            return self.send(200, _shown(about))
        if known is None:
            return self.send(404, {"error": {"code": 404, "message": "No such object"}})
        if self.command == "PATCH":
            known["metadata"] = known.get("metadata", {}) | json.loads(body)["metadata"]
            known["updated"] = _now()
        if self.command == "DELETE":
            del objects[name]
        if query.get("alt") == "media":
            first, _, last = self.headers.get("Range", "bytes=0-").removeprefix("bytes=").partition("-")
            data = known["data"][int(first) : int(last) + 1 if last else None]
            if not data and known["data"]:
                return self.send(416, {"error": {"code": 416, "message": "range not satisfiable"}})
            return self.send(200, data, {"x-goog-generation": known["generation"]})
        return self.send(200, _shown(known))


def _shown(known):
    return {name: value for name, value in known.items() if name != "data"}


def _now():
    return time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime())


@contextmanager
def gcs_server(*buckets):
    """A server of Google's storage with some empty buckets; its URL."""
    pytest.importorskip("gcsfs", reason="gcsfs is not installed: pip install '.[gcs]'")
    kept = {name: {} for name in buckets}
    handler = type("Objects", (_Objects,), {"buckets": kept, "lock": threading.Lock()})
    with loopback(handler) as url:
        yield url


class Cutter:
    """A proxy to a server, which cuts a connection after `after` bytes of what the client sends, if set.

    With `lose` it passes everything on, and cuts instead of handing the first answer back.
    """

    def __init__(self, url):
        self.target = urlsplit(url).hostname, urlsplit(url).port
        self.after = None
        self.lose = False
        self.cuts = 0
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"

    def run(self):
        while True:
            try:
                client, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        server = socket.create_connection(self.target)
        back = threading.Thread(target=self.pass_back, args=(server, client), daemon=True)
        back.start()
        passed = 0
        with suppress(OSError), client, server:
            while data := client.recv(1 << 16):
                if self.after is not None and passed + len(data) > self.after:
                    server.sendall(data[: self.after - passed])
                    self.cuts += 1
                    break
                server.sendall(data)
                passed += len(data)

    def pass_back(self, server, client):
        with suppress(OSError):
            while data := server.recv(1 << 16):
                if self.lose:
                    self.lose = False
                    self.cuts += 1
                    client.shutdown(socket.SHUT_RDWR)
                    return
                client.sendall(data)


@contextmanager
def cutter(url):
    """A proxy to the server at `url`."""
    proxy = Cutter(url)
    thread = threading.Thread(target=proxy.run, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        proxy.socket.shutdown(socket.SHUT_RDWR)
        proxy.socket.close()
        thread.join(timeout=5)
