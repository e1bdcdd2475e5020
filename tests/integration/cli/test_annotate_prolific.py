"""A campaign on Prolific from the command line, against a server of ours that keeps its rules."""

import csv
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("httpx2")
pytest.importorskip("sqlalchemy")

from annotate.fake_prolific import TOKEN, FakeProlific, running
from annotate.small_campaigns import Worker, make, pairs
from counterfoil.annotate import participants
from counterfoil.annotate.answers import counts
from counterfoil.annotate.campaign import Campaign, open_campaign
from counterfoil.annotate.database import Database, open_database
from counterfoil.annotate.platforms.registry import campaign_platform

from .conftest import Run

URL = "https://study.example.org"


class ProlificWorker(Worker):
    """A person who comes by the address that Prolific makes of the study's."""

    pid: str
    session: str

    def __post_init__(self) -> None:
        given = [("PROLIFIC_PID", self.pid), ("STUDY_ID", "s"), ("SESSION_ID", self.session)]
        visit = campaign_platform("prolific", "C").visit(given)
        come = {"worker": visit.person, "platform": "prolific", "parameters": dict(given)}
        with self.db.writing() as connection:
            self.entered = participants.enter(connection, self.campaign, now=self.now, **come)
            participants.consent(connection, self.person, self.now)


@pytest.fixture
def fake():
    with running() as found:
        yield found


@pytest.fixture
def folder(tmp_path):
    make(tmp_path / "campaign", pairs(4), entry="prolific", overlap=2, pay_per_hour=12.0)
    return tmp_path / "campaign"


@pytest.fixture
def prolific(counterfoil, fake, folder, monkeypatch):
    monkeypatch.setenv("PROLIFIC_TOKEN", TOKEN)

    def run(command: str, *more: object) -> Any:
        return counterfoil("annotate", "prolific", command, folder, *more, "--api", fake.address)

    return Run(run)


def entered(db: Database, campaign: Campaign, fake: FakeProlific, study: str, pid: str) -> ProlificWorker:
    session = fake.join(study, pid)
    made = type(pid, (ProlificWorker,), {"pid": pid, "session": session})
    return made(db, campaign, 1)


def test_a_campaign_on_prolific(prolific, fake, folder, tmp_path):
    before = (folder / "campaign.toml").read_text()
    planned = prolific.succeeds("create", "--url", URL, "--dry-run", "--json", "-")
    plan = json.loads(planned.out)["plan"]
    # 4 items of 4 s each, twice: a minute for each of two people, at 12 an hour.
    assert (plan["total_available_places"], plan["estimated_completion_time"], plan["reward"]) == (2, 1, 20)
    assert (folder / "campaign.toml").read_text() == before
    assert fake.log == []

    made = prolific.succeeds("create", "--url", URL, "--places", 3)
    assert "0.20 per person, 12.00 per hour" in made.out
    assert "0.60 without fees" in made.out
    (study,) = fake.studies
    assert prolific("create", "--url", URL, "--places", 3).code == 0
    assert list(fake.studies) == [study]
    # The recipe has the codes now, and is otherwise as it was.
    recipe = tomllib.loads((folder / "campaign.toml").read_text())
    codes = dict(each.split("=") for each in recipe.pop("completion").split(", "))
    assert recipe == {name: value for name, value in tomllib.loads(before).items() if name != "completion"}
    assert [each["code"] for each in fake.studies[study]["completion_codes"]] == list(codes.values())
    platform = campaign_platform("prolific", open_campaign(folder).recipe.completion)
    assert platform.codes == codes

    assert prolific("publish").code == 0
    campaign = open_campaign(folder)
    db = open_database(campaign)
    try:
        ann, bob, cyd = (entered(db, campaign, fake, study, who) for who in ("ann", "bob", "cyd"))
        assert ann.do().state == "done"
        fake.finish(ann.session, codes["completed"])
        bob.answer(bob.state().assignments[0])
        fake.end(bob.session, "RETURNED")
        # Typed in by somebody who is not on Prolific.
        stranger = type("eve", (ProlificWorker,), {"pid": "eve", "session": "none"})
        stranger(db, campaign, 1)
        state = json.loads(prolific("status", "--json", "-").out)
        assert state["submissions"] == {"ACTIVE": 1, "AWAITING REVIEW": 1, "RETURNED": 1}
        assert state["payable"] == [ann.session]
        assert [state[name] for name in ("free", "strangers", "set_aside")] == [1, 1, 0]
        assert counts(db).answers == 5
        assert json.loads(prolific("status", "--release", "--json", "-").out)["set_aside"] == 1
        assert counts(db).answers == 4
        # What was left goes to the next one.
        assert cyd.do().state == "done"
        assert (counts(db).complete, counts(db).wanted) == (4, 0)
        fake.finish(cyd.session, codes["completed"])
    finally:
        db.close()

    shown = prolific("approve")
    assert "would be approved (--yes does it)" in shown.out
    assert fake.status(ann.session) == "AWAITING REVIEW"
    assert prolific("approve", "--yes").code == 0
    assert (fake.status(ann.session), fake.status(cyd.session)) == ("APPROVED", "APPROVED")
    assert "never entered" in prolific("status").out

    bonuses = tmp_path / "bonuses.csv"
    bonuses.write_text("person,amount\nann,1.50\n")
    assert "would be paid" in prolific("bonus", "--from", bonuses).out
    assert prolific("bonus", "--from", bonuses, "--yes").code == 0
    again = prolific("bonus", "--from", bonuses, "--yes")
    assert "were paid before; nothing was done" in again.err
    assert sum(batch["paid"] for batch in fake.batches.values()) == 1
    written = [path.name for path in folder.iterdir() if path.suffix in (".json", ".toml")]
    for name in written:
        assert "ann" not in (folder / name).read_text().split()
        assert TOKEN not in (folder / name).read_text()


def test_a_study_is_moved_and_grows(prolific, fake):
    assert prolific("create", "--url", URL).code == 0
    (study,) = fake.studies
    for command, state in (("publish", "ACTIVE"), ("pause", "PAUSED"), ("start", "ACTIVE")):
        said = prolific(command, "--json", "-")
        assert json.loads(said.out)["state"] == state == fake.studies[study]["status"]
    assert prolific("places", 9).code == 0
    assert fake.studies[study]["total_available_places"] == 9
    assert prolific("stop").code == 0


def rejections(path: Path, *rows: tuple[str, str, str]) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("submission", "message", "category"), *rows])
    return path


def test_rejections_are_all_checked_before_one_is_sent(prolific, fake, folder, tmp_path):
    prolific("create", "--url", URL)
    prolific("publish")
    (study,) = fake.studies
    subs = [fake.join(study, who) for who in ("ann", "bob")]
    fake.finish(subs[0], "odd code")
    message = "You answered all pairs within two seconds each, and both pairs of known answer wrongly. "
    message += "See the instructions: each pair is to be looked at."
    sub, other = subs
    for rows, words in (
        ([(sub, message, "OTHER"), (sub, message, "OTHER")], "row 2, column 'submission': occurs twice"),
        ([(sub, message, "OTHER"), ("elsewhere", message, "OTHER")], "no submission of this study"),
        ([(sub, message, "OTHER"), (other, message, "OTHER")], "cannot be rejected now; given: ACTIVE"),
    ):
        said = prolific.fails("reject", "--from", rejections(tmp_path / "r.csv", *rows), "--yes", says=words)
        assert len(said.err.splitlines()) == 1
    assert fake.status(subs[0]) == "AWAITING REVIEW"
    table = rejections(tmp_path / "r.csv", (subs[0], message, "TOO_QUICKLY"))
    assert "would be rejected" in prolific("reject", "--from", table).out
    assert fake.status(subs[0]) == "AWAITING REVIEW"
    for _ in range(2):
        assert prolific("reject", "--from", table, "--yes").code == 0
    assert fake.status(subs[0]) == "REJECTED"


def test_without_a_study_nothing_is_sent_or_written(prolific, fake, folder):
    before = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    prolific.fails(
        "publish", says="no study on Prolific yet; make one with: counterfoil annotate prolific create"
    )
    assert not fake.log
    assert {path: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before


def test_a_study_of_other_items_is_not_this_campaigns(prolific, fake, folder):
    prolific("create", "--url", URL)
    (study,) = fake.studies
    (folder / "items.parquet").unlink()
    make(folder, pairs(5), entry="prolific", overlap=2)
    prolific.fails(
        "publish", says=f"the study was made when the campaign had other items or questions; given: {study}"
    )
    assert fake.studies[study]["status"] == "UNPUBLISHED"


def test_campaigns_that_people_enter_otherwise(counterfoil, tmp_path, monkeypatch):
    monkeypatch.delenv("PROLIFIC_TOKEN", raising=False)
    make(tmp_path / "campaign", pairs(2))
    said = counterfoil("annotate", "prolific", "create", tmp_path / "campaign", "--url", URL)
    assert 'people enter this campaign another way; given: entry = link; write entry = "prolific"' in said.err
    other = make(tmp_path / "other", pairs(2), entry="prolific", pay_per_hour=12.0)
    said = counterfoil("annotate", "prolific", "create", other.folder, "--url", URL)
    assert "no token of Prolific; given: (empty)" in said.err
    assert said.code == 2
