"""A PostgreSQL server of the tests' own, from the binaries of the system, in a temporary folder."""

import itertools
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest


@dataclass(frozen=True)
class PostgresServer:
    """A running server; every call of `new` makes another empty database."""

    port: int
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def new(self):
        """The address of a new database."""
        import psycopg

        name = f"campaign_{next(self.numbers)}"
        with psycopg.connect(self._address("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self._address(name)

    def _address(self, name):
        return f"postgresql://tester@127.0.0.1:{self.port}/{name}"


def binaries():
    """The folder of the newest server that is installed."""
    result = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    named = shutil.which("initdb")
    return result[-1].parent if result else Path(named).parent if named else None


@contextmanager
def running(*, durable=False):
    """A server for as long as the block runs; skips where no server is installed.

    One that is not `durable` does not wait for the disk: it survives the death of our processes, not the
    machine's, and is quicker.
    """
    pytest.importorskip("psycopg")
    programs = binaries()
    if programs is None:
        pytest.skip("no PostgreSQL server: install Debian's package postgresql")
    folder = Path(tempfile.mkdtemp(prefix="counterfoil-postgres-"))
    # The server refuses to run as root.
    user = {}
    if os.geteuid() == 0:
        shutil.chown(folder, "nobody")
        user = {"user": "nobody", "extra_groups": []}
    folder.chmod(0o700)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    data = str(folder / "data")
    quiet = {"cwd": "/", "stdout": subprocess.DEVNULL, "stderr": subprocess.STDOUT, **user}
    make = [str(programs / "initdb"), "-D", data, "-U", "tester", "--auth=trust", "--no-sync", "-E", "UTF8"]
    subprocess.run(make, check=True, **quiet)
    fsync = f"fsync={'on' if durable else 'off'}"
    options = [*("-D", data, "-p", str(port), "-k", str(folder), "-h", "127.0.0.1"), "-c", fsync]
    server = subprocess.Popen([str(programs / "postgres"), *options], **quiet)
    try:
        ready = [str(programs / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(port), "-t", "1"]
        for _ in range(300):
            if subprocess.run(ready, **quiet).returncode == 0:
                break
            assert server.poll() is None, "the server stopped"
        yield PostgresServer(port)
    finally:
        server.terminate()
        server.wait(30)
        shutil.rmtree(folder, ignore_errors=True)
