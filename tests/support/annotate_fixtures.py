"""Databases of both kinds for the tests of campaigns."""

import inspect
from collections.abc import Callable, Iterator

import pytest

from annotate import postgres_server
from counterfoil.annotate.database import open_database


@pytest.fixture
def durable() -> None:
    """For tests of what is on the disk: databases wait for it, as those of users do."""


@pytest.fixture(autouse=True)
def quick_disk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """In other tests databases of this process survive its death, not the machine's, and are quicker."""
    if "durable" not in request.fixturenames:
        monkeypatch.setitem(inspect.unwrap(open_database).__kwdefaults__, "durable", False)


@pytest.fixture(scope="session")
def postgres() -> Iterator[postgres_server.PostgresServer]:
    """A PostgreSQL server; tests that need one are skipped where none is installed."""
    with postgres_server.running() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def new_database(request: pytest.FixtureRequest) -> Callable[[], str | None]:
    """Addresses of new databases: None is SQLite's file in the campaign's folder."""
    if request.param == "sqlite":
        return lambda: None
    server: postgres_server.PostgresServer = request.getfixturevalue("postgres")
    return server.new
