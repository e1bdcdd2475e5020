"""Entry: who gets in, by what, and what the database knows of them."""

import pytest

from annotate.small_campaigns import Worker, make, pairs
from counterfoil.annotate import answering, participants
from counterfoil.annotate.campaign import DATABASE
from counterfoil.annotate.tables import sa
from counterfoil.errors import InputError
from refusals import refuses


@pytest.fixture
def prolific(opened):
    return opened(pairs(3), entry="prolific", languages=("de", "en"))


def enter(opened, worker, platform, now=1.0, **parameters):
    db, campaign = opened
    with db.writing() as connection:
        come = {"worker": worker, "platform": platform, "parameters": parameters}
        return participants.enter(connection, campaign, now=now, **come)


def come(opened, worker, **more):
    return enter(opened, worker, "prolific", **more)


def person_of(db, token):
    with db.reading() as connection:
        return participants.person_of(connection, token)


def test_the_same_worker_gets_in_again_and_is_one_person_whose_oldest_tokens_are_forgotten(prolific):
    first, again = come(prolific, "5f1b"), come(prolific, "5f1b", now=2.0)
    assert first.person == again.person
    assert first.token != again.token
    for token in (first.token, again.token):
        assert person_of(prolific[0], token) == first.person
    assert come(prolific, "5f1c").person.id != first.person.id
    tokens = [come(prolific, "w", now=float(i)).token for i in range(10)]
    assert [person_of(prolific[0], token) is None for token in tokens] == [True] * 2 + [False] * 8


@pytest.mark.parametrize("token", ["", "x", "' OR 1=1 --", "\x00", "ü" * 500])
def test_forged_tokens_are_refused(prolific, token):
    come(prolific, "w")
    assert person_of(prolific[0], token) is None


def test_neither_workers_nor_tokens_are_in_the_database(prolific):
    db, campaign = prolific
    entered = come(prolific, "worker-5f1b77", PROLIFIC_PID="worker-5f1b77", SESSION_ID="session-9")
    db.close()
    content = b"".join(path.read_bytes() for path in campaign.folder.glob(f"{DATABASE}*"))
    assert b"session-9" in content
    assert entered.person.id.encode() in content
    for secret in ("worker-5f1b77", entered.token, *campaign.secrets.values()):
        assert secret.encode() not in content


def test_links_cannot_be_guessed_and_ids_of_workers_differ_between_campaigns(prolific, tmp_path):
    _, campaign = prolific
    another = make(tmp_path / "other", pairs(3), salt="")
    mine = participants.person_id(campaign, "prolific", "w")
    assert mine != participants.person_id(another, "prolific", "w")
    assert mine != participants.person_id(campaign, "connect", "w")
    first, second = participants.make_links(campaign, 2)
    other = participants.make_links(another, 1)[0]
    assert enter(prolific, first, "link").person.platform == "link"
    for wrong in (f"2{first[1:]}", f"1{second[1:]}", other, "1-", "", "1", "²-x", "-1-x", first + " "):
        refuses("no such link", enter, prolific, wrong, "link", error=InputError)


def test_an_open_link_needs_its_code_and_makes_a_new_person_each_time(opened):
    study = opened(pairs(3), entry="open", code="pärchen")
    first, second = (enter(study, "", "open", code="pärchen").person for _ in range(2))
    assert first.id != second.id
    for wrong in ({}, {"code": ""}, {"code": "parchen"}):
        refuses("not the code", enter, study, "", "open", error=InputError, **wrong)
    with study[0].reading() as connection:
        stored = connection.execute(sa.text("SELECT parameters FROM people")).scalars().all()
    assert stored == ["{}", "{}"]


@pytest.mark.parametrize(
    ("worker", "platform", "parameters", "message"),
    [
        ("w", "connect", {}, "given: connect; allowed: prolific, link"),
        (" ", "prolific", {}, "no id of a worker; open the study from prolific"),
        ("w" * 201, "prolific", {}, "too long"),
        ("w", "prolific", {"x": "y" * 4000}, "too long"),
    ],
)
def test_what_is_no_entry_is_refused(prolific, worker, platform, parameters, message):
    refuses(message, enter, prolific, worker, platform, error=InputError, **parameters)


@pytest.mark.parametrize(("asked", "found"), [("en-GB", "en"), ("de", "de"), ("fr", "de"), ("", "de")])
def test_the_language_is_one_of_the_campaigns(prolific, asked, found):
    assert come(prolific, "w", language=asked).person.language == found


def test_consent_is_noted_once_with_its_text(opened):
    db, campaign = opened(pairs(3))
    worker = Worker(db, campaign, 1)
    with db.writing() as connection:
        participants.consent(connection, worker.person, 5_000.0, text="another text")
    with db.reading() as connection:
        notes = connection.execute(sa.text("SELECT at, detail FROM events WHERE kind = 'consented'")).all()
        consented = connection.execute(sa.text("SELECT consented FROM people")).scalar()
    assert consented == 1_000.0
    assert [(at, len(detail)) for at, detail in notes] == [(1_000.0, 32)]


def test_nobody_works_before_they_agreed(prolific):
    db, campaign = prolific
    person = come(prolific, "w").person
    with db.writing() as connection:
        result = answering.work_state(connection, campaign, person, 1.0)
    assert (result.state, result.assignments) == ("consent", ())
