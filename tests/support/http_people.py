"""Simulated people who send requests to a campaign's server, which runs in this process under their clock."""

from dataclasses import dataclass, field

from starlette.testclient import TestClient

from counterfoil.annotate import answering, participants
from counterfoil.annotate.answering import WorkState
from counterfoil.annotate.assignment import find_lease
from counterfoil.annotate.server.app import make_app
from counterfoil.annotate.simulation import CampaignClient


@dataclass(eq=False)
class HttpClient(CampaignClient):
    """How simulated people reach a campaign: by the routes of its server."""

    now: float = 0.0
    tokens: dict[str, str] = field(default_factory=dict)

    def __post_init__(self):
        app = make_app(self.campaign, self.db, clock=lambda: self.now)
        self.http = TestClient(app, base_url="http://127.0.0.1", follow_redirects=False)

    def enter(self, link, now):
        self.now = now
        token = self._send("GET", f"/enter/{link}").headers["location"].rpartition("/")[2]
        self.tokens[participants.person_id(self.campaign, "link", link)] = token
        self._send("POST", f"/api/work/{token}/consent", {})

    def look(self, person, now):
        self.now = now
        return self._received(person, self._send("GET", f"/api/work/{self.tokens[person]}").json())

    def answer(self, person, lease, raw, seconds, now):
        self.now = now
        sent = {"lease": lease, "key": lease, "answer": dict(raw), "seconds": seconds}
        receipt = self._send("POST", f"/api/work/{self.tokens[person]}/answers", sent).json()
        return self._received(person, receipt["work"])

    def _send(self, method, path, sent=None):
        reply = self.http.request(method, path, json=sent)
        assert reply.status_code < 400, f"{method} {path}: {reply.text}"
        return reply

    def _received(self, person, view):
        """What the server sent, beside the item of its lease, which people do not get to know."""
        with self.db.reading() as connection:
            leased = [find_lease(connection, person, shown["lease"]) for shown in view["items"]]
        assignments = answering.assignments(self.campaign, tuple(filter(None, leased)), view["done"])
        return WorkState(view["state"], assignments)
