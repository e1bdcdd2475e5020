"""Campaigns on Prolific against a server of ours, judgements of other tools, and votes."""

import json
from contextlib import closing
from dataclasses import dataclass

import pytest

from annotate.fake_prolific import TOKEN, running
from annotate.mturk_batches import hit, written
from annotate.small_campaigns import Worker, make, pairs
from counterfoil.annotate import participants
from counterfoil.annotate.answers import counts
from counterfoil.annotate.campaign import open_campaign
from counterfoil.annotate.database import open_database
from counterfoil.annotate.judgement_table import read_judgement_table
from counterfoil.annotate.platforms.registry import campaign_platform

from .conftest import Run


@dataclass(eq=False, kw_only=True)
class ProlificWorker(Worker):
    """A person who comes by the address that Prolific makes of the study's."""

    pid: str
    session: str
    number: int = 1

    def __post_init__(self) -> None:
        given = [("PROLIFIC_PID", self.pid), ("STUDY_ID", "s"), ("SESSION_ID", self.session)]
        visit = campaign_platform("prolific", "C").visit(given)
        come = {"worker": visit.person, "platform": "prolific", "parameters": dict(given)}
        with self.db.writing() as connection:
            self.entered = participants.enter(connection, self.campaign, now=self.now, **come)
            participants.consent(connection, self.person, self.now)


@pytest.fixture
def fake():
    with running() as server:
        yield server


@pytest.fixture
def folder(tmp_path):
    make(tmp_path / "campaign", pairs(4), entry="prolific", overlap=2, pay_per_hour=12.0)
    return tmp_path / "campaign"


@pytest.fixture
def prolific(counterfoil, fake, folder, monkeypatch):
    monkeypatch.setenv("PROLIFIC_TOKEN", TOKEN)

    def run(command, *more):
        return counterfoil("annotate", "prolific", command, folder, *more, "--api", fake.address)

    return Run(run)


def studied(folder, fake):
    study, recipe = fake.study(), folder / "campaign.toml"
    text = recipe.read_text()
    assert 'completion = ""' in text
    recipe.write_text(text.replace('completion = ""', f'completion = "completed=C1, study={study}"'))
    return study, open_campaign(folder)


def test_a_campaign_on_prolific(prolific, fake, folder):
    study, campaign = studied(folder, fake)
    with closing(open_database(campaign)) as db:
        sessions = {pid: fake.join(study, pid) for pid in ("ann", "bob", "cyd")}
        ann, bob, cyd = (ProlificWorker(db, campaign, pid=pid, session=sessions[pid]) for pid in sessions)
        assert ann.do().state == "done"
        fake.finish(ann.session, "C1")
        bob.answer(bob.state().assignments[0])
        fake.end(bob.session, "RETURNED")
        # Typed in by somebody who is not on Prolific.
        ProlificWorker(db, campaign, pid="eve", session="none")
        state = json.loads(prolific("status", "--json", "-").out)
        assert state["submissions"] == {"ACTIVE": 1, "AWAITING REVIEW": 1, "RETURNED": 1}
        assert state["payable"] == [ann.session]
        assert [state[name] for name in ("free", "strangers", "set_aside")] == [1, 1, 0]
        assert counts(db).answers == 5
        assert json.loads(prolific("status", "--release-items", "--json", "-").out)["set_aside"] == 1
        assert counts(db).answers == 4
        # What was left goes to the next one.
        assert cyd.do().state == "done"
        assert (counts(db).complete, counts(db).wanted) == (4, 0)
        fake.finish(cyd.session, "C1")
    for words, status in (((), "AWAITING REVIEW"), (("--yes",), "APPROVED")):
        prolific.succeeds("approve", *words)
        assert [fake.status(item.session) for item in (ann, cyd)] == [status] * 2
    for path in (path for path in folder.iterdir() if path.suffix in (".json", ".toml")):
        assert "ann" not in path.read_text().split()
        assert TOKEN not in path.read_text()


def test_work_that_was_rejected_here_is_rejected_there_and_not_approved(prolific, counterfoil, fake, folder):
    study, campaign = studied(folder, fake)
    with closing(open_database(campaign)) as db:
        sessions = {pid: fake.join(study, pid) for pid in ("ann", "bob")}
        workers = [ProlificWorker(db, campaign, pid=pid, session=sessions[pid]) for pid in sessions]
        for worker in workers:
            worker.do()
            fake.finish(worker.session, "odd code")
    reason = "You answered all pairs within two seconds each; see the instructions. " * 2
    who = workers[0].person.id[:12]
    counterfoil.succeeds("annotate", "reject", folder, who, "--category", "TOO_QUICKLY", "--reason", reason)
    state = json.loads(prolific("status", "--json", "-").out)
    assert (state["rejected"], state["payable"]) == ([sessions["ann"]], [sessions["bob"]])
    for words, status in (((), "AWAITING REVIEW"), (("--yes",), "REJECTED"), (("--yes",), "REJECTED")):
        prolific.succeeds("reject", *words)
        assert [fake.status(submission) for submission in sessions.values()] == [status, "AWAITING REVIEW"]
    prolific.succeeds("approve", "--yes")
    assert [fake.status(submission) for submission in sessions.values()] == ["REJECTED", "APPROVED"]


def test_without_a_study_nothing_is_sent_or_written(prolific, fake, folder):
    before = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    prolific.fails("status", says="no study on Prolific is named")
    assert not fake.log
    assert {path: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before


LAYOUT = (
    "--item", "Input.image{n}", "--item", "Input.caption{n}", "--question-column", "match=Answer.match{n}",
)  # fmt: skip


def test_a_batch_of_mechanical_turk(counterfoil, tmp_path):
    rows = [hit(1, "A1"), hit(1, "A2", AssignmentStatus="Rejected"), hit(2, "A1"), hit(2, "A3")]
    command = f"annotate import {written(tmp_path / 'results.csv', rows)} --format mturk"
    facts = tmp_path / "facts.json"
    more = ("--question-column", "why=Answer.why{n}", "--many", "why", "--golden-column", "Input.golden{n}")
    counterfoil.succeeds(command, *LAYOUT, *more, f"--out {tmp_path}/judgements.csv --json {facts}")
    counts = {"judgements": 75, "items": 40, "people": 2, "rejected assignments": 1}
    assert json.loads(facts.read_text()) == counts
    table = read_judgement_table(tmp_path / "judgements.csv")
    # Ids of workers lead to profiles, and are not kept.
    assert set(table["person"].to_pylist()) == {"p1", "p2"}
    assert table["golden"].to_pylist().count(False) == 6
    counterfoil.succeeds(command, *LAYOUT, f"--keep-ids --out {tmp_path}/kept.parquet")
    assert set(read_judgement_table(tmp_path / "kept.parquet")["person"].to_pylist()) == {"A1", "A3"}


def test_an_export_of_label_studio(counterfoil, tmp_path):
    yes = {"from_name": "match", "type": "choices", "value": {"choices": ["yes"]}}
    kind = {"from_name": "kinds", "type": "choices", "value": {"choices": ["colour"]}}
    tasks = [{"data": {"item": "0"}, "annotations": [{"completed_by": 17, "result": [yes, kind]}]}]
    (tmp_path / "export.json").write_text(json.dumps(tasks))
    command = f"annotate import {tmp_path}/export.json --format label-studio --many kinds"
    counterfoil.succeeds(f"{command} --out {tmp_path}/back.parquet")
    table = read_judgement_table(tmp_path / "back.parquet")
    assert set(table["person"].to_pylist()) == {"p1"}
    assert table["answer"].to_pylist() == ["yes", '["colour"]']


def test_votes_for_oneself_are_counted(counterfoil, tmp_path):
    votes = tmp_path / "votes.csv"
    votes.write_text("winner,loser\n" + "a,b\n" * 8 + "b,a\n" * 3 + "a,a\n" * 2)
    said = counterfoil.succeeds("annotate preferences", votes, "--draws", 100, "--json", "-")
    facts = json.loads(said.out)
    assert (facts["votes"], facts["votes_for_oneself"]) == (11, 2)
    assert "warning: left out, since they prefer something to itself: 2 votes" in said.err
