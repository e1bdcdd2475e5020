"""A server that speaks the language of S3 (moto), and a proxy that cuts connections.

fsspec keeps one client per process and settings, which environment variables are no part of: `s3_at`
therefore clears its clients.
"""

import logging
import os
import secrets
import socket
import threading
import warnings
from contextlib import contextmanager, suppress
from unittest.mock import patch
from urllib.parse import urlsplit

import pytest

from counterfoil.storage import open_store

#: What of the surroundings decides where a request goes and with which credentials.
_NAMES = ("AWS_", "FSSPEC_")


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
    import s3fs
    from fsspec.config import conf, set_conf_env

    conf.clear()
    set_conf_env(conf)
    s3fs.S3FileSystem.clear_instance_cache()


@contextmanager
def s3_at(url):
    """S3 is at `url`, with credentials."""
    own = {"AWS_ACCESS_KEY_ID": "tests", "AWS_SECRET_ACCESS_KEY": "tests", "AWS_DEFAULT_REGION": "us-east-1"}
    with surroundings(**{**own, "AWS_ENDPOINT_URL": url}):
        yield


@contextmanager
def s3_server():
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
    import fsspec

    name = f"tests-{secrets.token_hex(6)}"
    fsspec.filesystem("s3").mkdir(name)
    return name


def copied(folder, url):
    """The files of a folder at a URL, which is returned."""
    for file in folder.rglob("*.*"):
        open_store(url).write(str(file.relative_to(folder)), file.read_bytes())
    return url


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
        threading.Thread(target=self.pass_back, args=(server, client), daemon=True).start()
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
    proxy = Cutter(url)
    thread = threading.Thread(target=proxy.run, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        proxy.socket.shutdown(socket.SHUT_RDWR)
        proxy.socket.close()
        thread.join(timeout=5)
