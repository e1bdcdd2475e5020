"""Databases of both kinds for the tests of campaigns."""

from collections.abc import Callable, Iterator

import pytest

from annotate import postgres_server


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
