"""Databases of both kinds for the tests of campaigns."""

import inspect
from contextlib import ExitStack, closing
from functools import partial

import pytest

from annotate import postgres_server, small_campaigns
from counterfoil.annotate import review
from counterfoil.annotate.database import open_database
from counterfoil.annotate.labels import MODELS
from counterfoil.stats.label_models import pooled_one_coin


@pytest.fixture
def durable():
    """For tests of what is on the disk: databases wait for it, as those of users do."""


@pytest.fixture(autouse=True)
def quick_disk(request, monkeypatch):
    """In other tests databases of this process survive its death, not the machine's, and are quicker."""
    if "durable" not in request.fixturenames:
        monkeypatch.setitem(inspect.unwrap(open_database).__kwdefaults__, "durable", False)


@pytest.fixture
def few_draws(monkeypatch):
    """For tests in which chances of labels are not the subject: a tenth of the draws behind them."""
    quick = partial(pooled_one_coin, draws=40, burn=10)
    monkeypatch.setitem(MODELS, "one-coin", quick)
    monkeypatch.setattr(review, "pooled_one_coin", quick)


@pytest.fixture
def opened(tmp_path):
    """Makes campaigns of items with their databases, which are closed when the test ends."""
    with ExitStack() as stack:

        def build(items, url=None, **recipe):
            folder = tmp_path / f"campaign {len(list(tmp_path.iterdir()))}"
            campaign = small_campaigns.make(folder, items, **recipe)
            return stack.enter_context(closing(open_database(campaign, url, durable=False))), campaign

        yield build


@pytest.fixture(scope="session")
def postgres():
    """A PostgreSQL server; tests that need one are skipped where none is installed."""
    with postgres_server.running() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def new_database(request):
    """Addresses of new databases: None is SQLite's file in the campaign's folder."""
    if request.param == "sqlite":
        return lambda: None
    return request.getfixturevalue("postgres").new
