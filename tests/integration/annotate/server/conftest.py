"""A campaign behind the application, asked without a network."""

from contextlib import ExitStack, closing
from dataclasses import dataclass

import pytest
from starlette.testclient import TestClient

from counterfoil.annotate.campaign import Campaign
from counterfoil.annotate.database import Database, open_database
from counterfoil.annotate.participants import make_links
from counterfoil.annotate.server.app import make_app
from served_campaign import campaign_of


@dataclass
class Site:
    """A campaign, its database, and a client that follows no redirects."""

    campaign: Campaign
    database: Database
    client: TestClient
    log: list[str]
    clock: list[float]

    def token(self, number=1, *, agreed=True):
        """The token of the person with a personal link, who has agreed to take part."""
        link = make_links(self.campaign, number)[number - 1]
        reply = self.client.get(f"/enter/{link}")
        assert reply.status_code == 303, reply.text
        token = reply.headers["location"].removeprefix("/work/")
        if agreed:
            assert self.client.post(f"/api/work/{token}/consent", json={}).status_code == 200
        return token

    def work(self, token):
        """Where a person stands."""
        return self.client.get(f"/api/work/{token}").json()

    @property
    def bearer(self):
        """The header of the researcher's scripts."""
        return {"authorization": f"Bearer {self.campaign.secrets['token']}"}

    def given(self, token, answer, client=None, **more):
        """What a page sends with an answer to the first item that a person has."""
        lease = (client or self.client).get(f"/api/work/{token}").json()["items"][0]["lease"]
        return {"lease": lease, "key": "key-0001", "answer": answer, "seconds": 1.0, **more}

    def browser(self, address="testclient", url="https://study.example"):
        """Another browser at an address, with cookies of its own."""
        more = {"follow_redirects": False, "raise_server_exceptions": False}
        return TestClient(self.client.app, url, client=(address, 50_000), **more)

    def answer(self, token, answer, **more):
        """The reply to an answer to the first item that a person has."""
        return self.client.post(f"/api/work/{token}/answers", json=self.given(token, answer, **more))


@pytest.fixture
def site_of(tmp_path):
    """Makes sites of campaigns of a form, with settings of the recipe."""
    with ExitStack() as stack:

        def make(form="yes-no", **recipe):
            campaign = campaign_of(tmp_path / f"campaign {len(list(tmp_path.iterdir()))}", form, **recipe)
            database = stack.enter_context(closing(open_database(campaign)))
            log, clock = [], [1_800_000_000.0]
            settings = {"public_url": "https://study.example", "clock": lambda: clock[0], "log": log.append}
            app = make_app(campaign, database, **settings)
            more = {"follow_redirects": False, "raise_server_exceptions": False}
            return Site(campaign, database, TestClient(app, "http://127.0.0.1", **more), log, clock)

        yield make


@pytest.fixture
def site(site_of):
    """A site of three pairs to judge."""
    return site_of()


@pytest.fixture
def visit(chromium):
    """Opens an address; at the end, no page may have complained or asked another site for anything."""
    contexts, troubles = [], []

    def open_page(address, *, context=None, allowed=(), **settings):
        if context is None:
            context = chromium.new_context(**{"viewport": {"width": 1280, "height": 720}, **settings})
            contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)
        site = "/".join(address.split("/")[:3])

        def complain(text, harmless=False):
            troubles.extend([] if harmless else [text])

        page.on("console", lambda sent: complain(sent.text, any(part in sent.text for part in allowed)))
        page.on("pageerror", lambda error: complain(str(error)))
        page.on("request", lambda sent: complain(sent.url, sent.url.startswith((site, "data:"))))
        page.goto(address)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert troubles == []
