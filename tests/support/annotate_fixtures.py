"""Databases of both kinds for the tests of campaigns."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from annotate import postgres_server, small_campaigns
from counterfoil.annotate.campaign import Campaign
from counterfoil.annotate.database import Database, open_database
from counterfoil.annotate.forms.base import WorkItem


@pytest.fixture
def durable() -> None:
    """For tests of what is on the disk: databases wait for it, as those of users do."""


@pytest.fixture(autouse=True)
def quick_disk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """In other tests databases of this process survive its death, not the machine's, and are quicker."""
    if "durable" not in request.fixturenames:
        monkeypatch.setitem(inspect.unwrap(open_database).__kwdefaults__, "durable", False)


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[..., tuple[Database, Campaign]]]:
    """Makes campaigns of items with their databases, which are closed when the test ends."""
    with ExitStack() as stack:

        def build(items: list[WorkItem], url: str | None = None, **recipe: Any) -> tuple[Database, Campaign]:
            campaign = small_campaigns.make(
                tmp_path / f"campaign {len(list(tmp_path.iterdir()))}", items, **recipe
            )
            return stack.enter_context(closing(open_database(campaign, url, durable=False))), campaign

        yield build


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
