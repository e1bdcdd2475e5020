"""Prolific's API, against a server of ours that keeps its rules and has faults."""

import pytest

from annotate.fake_prolific import TOKEN, running
from counterfoil.annotate.platforms import prolific
from counterfoil.annotate.platforms.prolific import ProlificSubmission, Rejection
from counterfoil.annotate.platforms.prolific_api import ProlificClient
from counterfoil.errors import InputError
from refusals import refuses

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
    with ProlificClient(TOKEN, fake.address, retries=3, sleep=waits.append) as result:
        yield result


def posts(fake, end):
    return sum(method != "GET" and path.endswith(end) for method, path in fake.log)


def test_submissions_are_listed_and_rejected(client, fake):
    study = fake.study()
    subs = {who: fake.join(study, who) for who in ("ann", "bob", "cyd")}
    fake.finish(subs["ann"], "C1")
    fake.finish(subs["bob"], "F2")
    fake.end(subs["cyd"], "TIMED-OUT")
    states = {one.person: one.status for one in client.submissions(study)}
    assert states == {"ann": "AWAITING REVIEW", "bob": "AWAITING REVIEW", "cyd": "TIMED-OUT"}
    client.reject([Rejection(subs["bob"], LONG, "FAILED_CHECK")])
    assert fake.status(subs["bob"]) == "REJECTED"


def test_what_prolific_refuses_is_one_line(client, fake):
    refuses(r"status 404: Not found\.; is the id right", client.submissions, "nowhere", error=InputError)
    # Ids stay in their place of an address.
    requests = len(fake.log)
    for study in ("", "../users/me", "a/b", "x" * 65, "ä"):
        refuses("not an id of Prolific", client.submissions, study, error=InputError)
    assert len(fake.log) == requests


def test_a_wrong_token_is_named_and_never_shown(fake):
    with ProlificClient("another-token", fake.address) as client:
        words = refuses("is the token in PROLIFIC_TOKEN right", client.submissions, "x", error=InputError)
        assert "another-token" not in words
    with ProlificClient(TOKEN, fake.address, retries=0) as client:
        # The server's words hold the token here.
        fake.faults = ["500"]
        assert TOKEN not in refuses(r"\(token\)", client.submissions, "x", error=InputError)
    for token in ("", " ", "a\nb", "tökén"):
        refuses("no token of Prolific", ProlificClient, token, error=InputError)


def test_busy_servers_are_asked_again(client, fake, waits):
    study = fake.study()
    fake.faults = ["429", "503", "cut"]
    assert client.submissions(study) == ()
    # Each wait is up to twice the one before.
    assert [0.5 <= wait / 2**k <= 1 for k, wait in enumerate(waits)] == [True] * 3
    fake.faults = ["429"] * 4
    refuses("no answer after 4 tries; given: status 429", client.submissions, study, error=InputError)


def test_a_server_that_is_not_there(waits):
    with ProlificClient(TOKEN, "http://127.0.0.1:9", retries=2, sleep=waits.append) as client:
        refuses("no answer after 3 tries; .*Connect", client.submissions, "x", error=InputError)
    assert len(waits) == 2


@pytest.mark.parametrize("largest", [100, 7])
def test_all_pages_are_read(client, fake, largest):
    study = fake.study(110)
    for number in range(110):
        fake.join(study, f"p{number}")
    fake.largest_page, fake.busy_every = largest, 5
    assert [item.person for item in client.submissions(study)] == [f"p{number}" for number in range(110)]


def test_many_are_approved_in_parts(client, fake):
    study = fake.study(450)
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
    people = {who.upper(): who in ("fay", "gus", "joy") for who in [*states, "kim"] if who != "ian"}
    people["LEA"] = True
    result = prolific.reconcile(submissions, people, str.upper, {"LEA": (LONG, "OTHER")})
    assert (result.free, result.strangers) == (("ANN", "BOB", "CYD"), ("KIM",))
    waiting = result.payable, result.unfinished, result.unseen
    assert [[item.id for item in part] for part in waiting] == [["of gus"], ["of hal"], ["of ian"]]
    assert result.rejected == (Rejection("of lea", LONG, "OTHER"),)


def test_states_are_read_however_they_are_spelt():
    spellings = {"TIMED_OUT": "TIMED-OUT", "AWAITING_REVIEW": "AWAITING REVIEW", "active": "ACTIVE"}
    for spelt, status in (spellings | {"NEW": "NEW"}).items():
        assert ProlificSubmission.read({"id": "s", "participant": "p", "status": spelt}).status == status
    with pytest.raises(InputError, match="an answer that is no submission; given: id, status"):
        ProlificSubmission.read({"id": "s", "status": "ACTIVE"})
