"""Prolific's API, against a server of ours that keeps its rules and has faults."""

import dataclasses

import pytest

from annotate.fake_prolific import RETIRED, TOKEN, running
from counterfoil.annotate.platforms import prolific
from counterfoil.annotate.platforms.prolific import ProlificSubmission, Rejection, StudyPlan
from counterfoil.annotate.platforms.prolific_api import ProlificClient, UnsureRequestError
from counterfoil.errors import InputError
from refusals import refuses

PLAN = StudyPlan(
    name="Do these captions match?",
    description="You look at images and captions.",
    address="https://example.org/enter?campaign=7",
    codes={"completed": "C1", "failed_checks": "F2", "no_consent": "N3"},
    places=3,
    minutes=10,
    pay_per_hour=12.0,
)

LONG = "You answered that an image shows a dog where there is no animal. " * 2


@pytest.fixture(scope="module")
def fake_server():
    with running() as server:
        yield server


@pytest.fixture
def fake(fake_server):
    """The server as new."""
    address = fake_server.address
    fake_server.__init__()  # type: ignore[misc]
    fake_server.address = address
    return fake_server


@pytest.fixture
def waits():
    return []


@pytest.fixture
def client(fake, waits):
    with ProlificClient(TOKEN, fake.address, retries=3, sleep=waits.append) as found:
        yield found


def posts(fake, end):
    return sum(method != "GET" and path.endswith(end) for method, path in fake.log)


def published(client, fake, plan=PLAN):
    study = client.create(plan).id
    fake.publish(study)
    return study


def test_a_study_has_the_fields_of_today_and_frees_the_places_of_who_is_refused(client, fake):
    study = client.create(PLAN)
    assert (study.status, study.places, study.reward) == ("UNPUBLISHED", 3, 200)
    sent = fake.studies[study.id]
    places = (f"{name}={{{{%{name}%}}}}" for name in ("PROLIFIC_PID", "STUDY_ID", "SESSION_ID"))
    assert sent["external_study_url"] == "&".join([PLAN.address, *places])
    assert not set(RETIRED) & set(sent)
    types = [code["code_type"] for code in sent["completion_codes"]]
    assert types == ["COMPLETED", "FAILED_ATTENTION_CHECK", "NO_CONSENT"]
    fake.publish(study.id)
    subs = {who: fake.join(study.id, who) for who in ("ann", "bob", "cyd")}
    fake.finish(subs["ann"], "C1")
    fake.finish(subs["bob"], "F2")
    fake.end(subs["cyd"], "TIMED-OUT")
    ann, _, cyd = sorted(client.submissions(study.id), key=lambda each: each.person)
    assert (ann.status, ann.code, ann.seconds) == ("AWAITING REVIEW", "C1", 312.5)
    assert cyd.status == "TIMED-OUT"
    client.reject([Rejection(subs["bob"], LONG, "FAILED_CHECK")])
    assert (fake.status(subs["bob"]), client.study(study.id).taken) == ("REJECTED", 1)


def test_work_that_needs_no_review_is_approved_there(client, fake):
    study = published(client, fake, dataclasses.replace(PLAN, approve=True))
    for who, code, status in (("ann", "C1", "APPROVED"), ("bob", "F2", "AWAITING REVIEW")):
        submission = fake.join(study, who)
        fake.finish(submission, code)
        assert fake.status(submission) == status


def test_pay_is_in_hundredths_and_rounded_up():
    for minutes, pay, reward in ((10, 12.0, 200), (7, 12.5, 146), (1, 0.6, 1), (6, 0.7, 7)):
        assert dataclasses.replace(PLAN, minutes=minutes, pay_per_hour=pay).reward == reward


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": " "}, r"prolific, name: no study can be made so; given: \(empty\)"),
        ({"places": 0}, "prolific, places: no study can be made so; given: 0; allowed: 1 or more"),
        ({"minutes": 0}, "prolific, minutes"),
        ({"pay_per_hour": float("nan")}, "prolific, pay per hour"),
        ({"codes": {"no_consent": "N"}}, "a code of completed work at least"),
        ({"codes": {"completed": "X", "no_consent": "X"}}, "a different code for each outcome"),
        ({"address": "http://localhost:8750/enter"}, "not an address over https"),
    ],
)
def test_studies_that_cannot_be_are_refused_here(change, message):
    refuses(message, dataclasses.replace, PLAN, error=InputError, **change)


def test_what_prolific_refuses_is_one_line(client, fake):
    cheap = dataclasses.replace(PLAN, pay_per_hour=1.0)
    refuses("reward: The reward is below the minimum", client.create, cheap, error=InputError)
    refuses(r"status 404: Not found\.; is the id right", client.study, "nowhere", error=InputError)
    # Ids stay in their place of an address.
    requests = len(fake.log)
    for study in ("", "../users/me", "a/b", "x" * 65, "ä"):
        refuses("not an id of Prolific", client.study, study, error=InputError)
    assert len(fake.log) == requests


def test_a_wrong_token_is_named_and_never_shown(fake):
    with ProlificClient("another-token", fake.address) as client:
        words = refuses("is the token in PROLIFIC_TOKEN right", client.study, "x", error=InputError)
        assert "another-token" not in words
    with ProlificClient(TOKEN, fake.address, retries=0) as client:
        # The server's words hold the token here.
        fake.faults = ["500"]
        assert TOKEN not in refuses(r"\(token\)", client.study, "x", error=InputError)
    for token in ("", " ", "a\nb", "tökén"):
        refuses("no token of Prolific", ProlificClient, token, error=InputError)


def test_a_study_is_made_once(client, fake):
    first = client.create(PLAN)
    assert client.create(PLAN) == first
    assert client.create(dataclasses.replace(PLAN, places=9)).id == first.id
    assert client.create(dataclasses.replace(PLAN, minutes=11)).id != first.id
    # Made, and the answer lost: the same command finds it.
    other = dataclasses.replace(PLAN, name="Another")
    fake.faults = ["", "lost"]
    refuses("it is not known whether the request arrived", client.create, other, error=UnsureRequestError)
    assert client.create(other).name == "Another"
    assert [each["name"] for each in fake.studies.values()].count("Another") == 1


def test_busy_servers_are_asked_again(client, fake, waits):
    fake.faults = ["429", "503", "cut"]
    assert client.create(PLAN).status == "UNPUBLISHED"
    # Each wait is up to twice the one before.
    assert [0.5 <= wait / 2**k <= 1 for k, wait in enumerate(waits)] == [True] * 3
    fake.faults = ["429"] * 4
    refuses("no answer after 4 tries; given: status 429", client.study, "x", error=InputError)
    # Requests that make something are sent again after a 429, which did nothing.
    fake.faults = ["", "429"]
    client.create(dataclasses.replace(PLAN, name="Another"))
    assert len(fake.studies) == 2


def test_a_server_that_is_not_there(waits):
    words = "no answer after 3 tries; .*Connect"
    with ProlificClient(TOKEN, "http://127.0.0.1:9", retries=2, sleep=waits.append) as client:
        refuses(words, client.study, "x", error=InputError)
    assert len(waits) == 2


@pytest.mark.parametrize("largest", [100, 7])
def test_all_pages_are_read(client, fake, largest):
    study = published(client, fake, dataclasses.replace(PLAN, places=110))
    for number in range(110):
        fake.join(study, f"p{number}")
    fake.largest_page, fake.busy_every = largest, 5
    assert [each.person for each in client.submissions(study)] == [f"p{number}" for number in range(110)]


def test_many_are_approved_in_parts(client, fake):
    study = published(client, fake, dataclasses.replace(PLAN, places=450))
    subs = [fake.join(study, f"p{number}") for number in range(450)]
    for sub in subs:
        fake.finish(sub, "C1")
    fake.log.clear()
    fake.faults = ["lost"]
    client.approve(subs)
    assert {fake.status(sub) for sub in subs} == {"APPROVED"}
    assert posts(fake, "/bulk-approve/") == 4  # three parts, the first one twice


def test_spaces_are_no_reason_to_reject():
    refuses(r"rejection of s1: .*given: 0 characters", Rejection, "s1", " " * 200, "OTHER", error=InputError)


def test_places_that_were_given_back_are_free():
    states = {"ann": "RETURNED", "bob": "TIMED-OUT", "cyd": "REJECTED", "dan": "ACTIVE", "eve": "TIMED-OUT"}
    states |= dict.fromkeys(("gus", "hal", "ian"), "AWAITING REVIEW")
    states |= {"fay": "RETURNED", "joy": "APPROVED"}
    submissions = [ProlificSubmission(f"of {who}", who, state) for who, state in states.items()]
    submissions.append(ProlificSubmission("of eve, again", "eve", "ACTIVE"))
    submissions.append(ProlificSubmission("of lea", "lea", "AWAITING REVIEW"))
    # Ian never entered, and Kim typed a link.
    people = {who.upper(): who in ("fay", "gus", "joy") for who in [*states, "kim"] if who != "ian"} | {
        "LEA": True
    }
    found = prolific.reconcile(submissions, people, str.upper, {"LEA": (LONG, "OTHER")})
    assert (found.free, found.strangers) == (("ANN", "BOB", "CYD"), ("KIM",))
    waiting = found.payable, found.unfinished, found.unseen
    assert [[each.id for each in part] for part in waiting] == [["of gus"], ["of hal"], ["of ian"]]
    assert found.rejected == (Rejection("of lea", LONG, "OTHER"),)


def test_states_are_read_however_they_are_spelt():
    spellings = {"TIMED_OUT": "TIMED-OUT", "AWAITING_REVIEW": "AWAITING REVIEW", "active": "ACTIVE"}
    for spelt, status in (spellings | {"NEW": "NEW"}).items():
        read = ProlificSubmission.read({"id": "s", "participant": "p", "status": spelt})
        assert read.status == status
    with pytest.raises(InputError, match="an answer that is no submission; given: id, status"):
        ProlificSubmission.read({"id": "s", "status": "ACTIVE"})
