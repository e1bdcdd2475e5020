"""Events of Prolific at a campaign's server, against a server of ours in Prolific's place."""

import base64
import hashlib
import hmac
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("httpx2")
pytest.importorskip("fastapi")

from starlette.testclient import TestClient

from annotate.fake_prolific import TOKEN, FakeProlific, running
from annotate.small_campaigns import Worker, make, pairs
from counterfoil.annotate import entry
from counterfoil.annotate.answers import counts
from counterfoil.annotate.campaign import Campaign
from counterfoil.annotate.database import Database, open_database
from counterfoil.annotate.platforms.prolific_api import ProlificClient, ProlificSettings
from counterfoil.annotate.platforms.prolific_campaign import StudyChoices, new_codes, plan_of, write_study
from counterfoil.annotate.server.app import make_app
from counterfoil.annotate.server.prolific_events import PATH, routes

SECRET, NOW = "a-secret", 1_795_000_000.0


class Stage:
    """A campaign that is served, its study, and what of it has been answered."""

    def __init__(self, campaign: Campaign, db: Database, fake: FakeProlific, client: ProlificClient) -> None:
        self.campaign, self.db, self.fake, self.now = campaign, db, fake, NOW
        choices = StudyChoices(address="https://study.example.org")
        self.study = client.move(client.create(plan_of(campaign, choices, new_codes())).id, "PUBLISH").id
        write_study(campaign, self.study)
        more = [routes(campaign, db, client, secret=SECRET, clock=lambda: self.now)]
        self.http = TestClient(make_app(campaign, db, more=more), base_url="http://localhost")

    def enter(self, pid: str) -> tuple[Worker, str]:
        """Somebody from Prolific, and their submission."""
        worker = Worker(self.db, self.campaign, 1)
        come = {"worker": pid, "platform": "prolific", "parameters": {}}
        worker.entered = entry.enter(self.db, self.campaign, now=NOW, **come)
        entry.consent(self.db, worker.person, NOW)
        return worker, self.fake.join(self.study, pid)

    def send(self, event: str, *, secret: str = SECRET, at: float = NOW) -> tuple[int, object]:
        """The answer to an event that is signed here."""
        body = json.dumps({"event_type": "submission.status.change", "resource_id": "s"}).encode()
        mark = hmac.new(secret.encode(), str(int(at)).encode() + body, hashlib.sha256).digest()
        headers = {
            "X-Prolific-Request-Signature": base64.b64encode(mark).decode(),
            "X-Prolific-Request-Timestamp": str(int(at)),
            "X-Event-Id": event,
        }
        answer = self.http.post(PATH, content=body, headers=headers)
        return answer.status_code, answer.json()


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    campaign = make(
        tmp_path / "campaign", pairs(4), entry="prolific", overlap=2, completion="C1", pay_per_hour=12.0
    )
    db = open_database(campaign)
    with running() as fake:
        settings = ProlificSettings(fake.address, retries=0)
        with ProlificClient(TOKEN, settings) as client:
            yield Stage(campaign, db, fake, client)
    db.close()


def test_an_event_gives_a_place_back_once(stage: Stage) -> None:
    worker, submission = stage.enter("ann")
    worker.answer(worker.standing().assigned[0])
    assert stage.send("e0") == (200, {"repeated": False})
    assert (counts(stage.db).answers, counts(stage.db).leased) == (1, 2)
    stage.fake.end(submission, "RETURNED")
    assert stage.send("e1") == (200, {"repeated": False})
    assert (counts(stage.db).answers, counts(stage.db).leased) == (0, 0)
    asked = len(stage.fake.log)
    assert stage.send("e1") == (200, {"repeated": True})
    assert len(stage.fake.log) == asked


def test_an_event_that_cannot_be_dealt_with_may_come_again(stage: Stage) -> None:
    _, submission = stage.enter("ann")
    stage.fake.end(submission, "TIMED-OUT")
    stage.fake.faults = ["503"]
    status, answer = stage.send("e1")
    assert status == 503
    assert TOKEN not in json.dumps(answer)
    assert stage.send("e1") == (200, {"repeated": False})


def test_events_of_others_do_nothing(stage: Stage) -> None:
    asked = len(stage.fake.log)
    assert stage.send("e1", secret="another")[0] == 401
    assert stage.send("e1", at=NOW - 1_000)[0] == 401
    assert stage.http.post(PATH, content=b"{}").status_code == 401
    assert len(stage.fake.log) == asked
    assert stage.http.get(PATH).status_code == 405
    assert PATH not in stage.http.get("/openapi.json").text
