"""Clients of simulated people: the functions that the server calls, or the server itself over HTTP."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, runtime_checkable

from counterfoil.annotate import participants, work
from counterfoil.annotate.campaign import Campaign
from counterfoil.annotate.database import Database
from counterfoil.annotate.forms.base import WorkItem, WorkPage
from counterfoil.annotate.leases import find_lease
from counterfoil.errors import InputError, MissingExtraError


@dataclass(frozen=True)
class SeenPage:
    """What is before a person: their state, and the first item with its page as they see it, if any."""

    state: str
    lease: str = ""
    item: WorkItem | None = None
    page: WorkPage | None = None


@runtime_checkable
class CampaignClient(Protocol):
    """How simulated people reach a campaign; people are named by the ids of the judgement table."""

    def enter(self, link: str, now: float) -> None:
        """Come in by a personal link and agree to take part."""

    def look(self, person: str, now: float) -> SeenPage:
        """What is before a person."""

    def answer(self, person: str, lease: str, raw: Mapping[str, Any], seconds: float, now: float) -> SeenPage:
        """Send an answer, and see what is next; raises `InputError` where it is refused as none."""


@dataclass(frozen=True, eq=False)
class _Direct:
    campaign: Campaign
    db: Database

    def enter(self, link: str, now: float) -> None:
        with self.db.writing() as connection:
            entered = participants.enter(
                connection, self.campaign, worker=link, platform="link", parameters={}, now=now
            )
            participants.consent(connection, entered.person, now, text=self.campaign.consent_in())

    def look(self, person: str, now: float) -> SeenPage:
        with self.db.writing() as connection:
            known = participants.person_by_id(connection, person)
            return self._seen(work.work_state(connection, self.campaign, known, now))

    def answer(self, person: str, lease: str, raw: Mapping[str, Any], seconds: float, now: float) -> SeenPage:
        sent = work.AnswerIn(lease=lease, key=lease, answer=dict(raw), seconds=seconds)
        with self.db.writing() as connection:
            known = participants.person_by_id(connection, person)
            issued = find_lease(connection, person, lease)
            return self._seen(work.record_answer(connection, self.campaign, known, issued, sent, now).work)

    def _seen(self, state: work.WorkState) -> SeenPage:
        if not state.assignments:
            return SeenPage(state.state)
        first = state.assignments[0]
        return SeenPage(state.state, first.lease, first.item, first.page)


@contextmanager
def direct_client(campaign: Campaign, db: Database) -> Iterator[CampaignClient]:
    """People call the functions that the server calls."""
    yield _Direct(campaign, db)


@dataclass(eq=False)
class _Http:
    campaign: Campaign
    db: Database
    portal: Any
    http: Any = None
    now: float = 0.0
    tokens: dict[str, str] = field(default_factory=dict)

    def enter(self, link: str, now: float) -> None:
        self.now = now
        token = self._send("GET", f"/enter/{link}").headers["location"].rpartition("/")[2]
        self.tokens[participants.person_id(self.campaign, "link", link)] = token
        self._send("POST", f"/api/work/{token}/consent", {})

    def look(self, person: str, now: float) -> SeenPage:
        self.now = now
        return self._seen(person, self._send("GET", f"/api/work/{self.tokens[person]}").json())

    def answer(self, person: str, lease: str, raw: Mapping[str, Any], seconds: float, now: float) -> SeenPage:
        self.now = now
        sent = {"lease": lease, "key": lease, "answer": dict(raw), "seconds": seconds}
        receipt = self._send("POST", f"/api/work/{self.tokens[person]}/answers", sent).json()
        return self._seen(person, receipt["work"])

    def _send(self, method: str, path: str, sent: Mapping[str, Any] | None = None) -> Any:
        reply = self.portal.call(partial(self.http.request, method, path, json=sent))
        if reply.status_code >= 400:
            raise InputError("the server refused", where=f"{method} {path}", given=reply.text)
        return reply

    def _seen(self, person: str, view: Mapping[str, Any]) -> SeenPage:
        """What the server sent, beside the item of its lease, which people do not get to know."""
        if not view["items"]:
            return SeenPage(view["state"])
        shown = view["items"][0]
        with self.db.reading() as connection:
            lease = find_lease(connection, person, shown["lease"])
        assert lease is not None
        item = self.campaign.items[lease.item]
        page = work.shown_page(self.campaign, person, item)
        return SeenPage(view["state"], shown["lease"], item, page)


@contextmanager
def http_client(campaign: Campaign, db: Database) -> Iterator[CampaignClient]:
    """People send requests to the campaign's server, which runs in this process under their clock.

    Raises `MissingExtraError` without the extra annotate.
    """
    from counterfoil.annotate.server.app import make_app

    try:
        import httpx2
    except ModuleNotFoundError:
        raise MissingExtraError("httpx2", "annotate") from None
    from anyio.from_thread import start_blocking_portal

    # A thread of its own: a notebook has an event loop that runs in the caller's.
    with start_blocking_portal() as portal:
        client = _Http(campaign, db, portal)
        app = make_app(campaign, db, clock=lambda: client.now)
        client.http = httpx2.AsyncClient(
            transport=httpx2.ASGITransport(app), base_url="http://127.0.0.1", trust_env=False
        )
        try:
            yield client
        finally:
            portal.call(client.http.aclose)
