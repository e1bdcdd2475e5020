"""Withdrawal by the researcher, and deletion after the date: nothing of a person is left in any file."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from annotate.small_campaigns import Worker, make, pairs
from counterfoil.annotate.adjudication import adjudicate, adjudicated
from counterfoil.annotate.answers import counts
from counterfoil.annotate.campaign import Campaign
from counterfoil.annotate.database import Database, open_database
from counterfoil.annotate.privacy import delete_people, withdraw_person
from counterfoil.annotate.review import approve, reviews
from counterfoil.annotate.work import running
from counterfoil.errors import InputError

LATER = 3e9


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    return make(tmp_path / "campaign", pairs(4), overlap=2, keep_until="2030-01-31")


@pytest.fixture
def db(campaign: Campaign) -> Iterator[Database]:
    opened = open_database(campaign)
    yield opened
    opened.close()


def test_the_researcher_can_withdraw_a_person(db: Database, campaign: Campaign) -> None:
    worker, other = Worker(db, campaign, 1), Worker(db, campaign, 2)
    worker.do()
    other.do()
    assert withdraw_person(db, campaign, worker.person.id, 5.0) == 4
    assert worker.standing().state == "withdrawn"
    assert (counts(db).answers, counts(db).wanted) == (4, 4)
    assert withdraw_person(db, campaign, worker.person.id, 6.0) == 0
    with pytest.raises(InputError, match="no such person in this campaign; given: nobody"):
        withdraw_person(db, campaign, "nobody", 5.0)


def test_nothing_of_a_person_is_left_after_the_date(db: Database, campaign: Campaign) -> None:
    workers = [Worker(db, campaign, 1), Worker(db, campaign, 2)]
    for worker in workers:
        worker.do()
    ids = [worker.person.id for worker in workers]
    approve(db, ids[:1], by="ann", now=5.0, reason="Careful throughout")
    adjudicate(db, campaign, "1", "no", by="ann", now=5.0)
    with pytest.raises(
        InputError, match=r"answers are not to be deleted yet; given: 2030-01-31; delete them"
    ):
        delete_people(db, campaign, 1e9)
    assert counts(db).answers == 8
    found = delete_people(db, campaign, LATER)
    assert (found.people, found.answers) == (2, 8)
    assert counts(db).people == {}
    assert counts(db).answers == 0
    assert running(db) == "stopped"
    assert not reviews(db)
    assert [each.answer for each in adjudicated(db, campaign).values()] == ["no"]
    db.close()
    written = b"".join(file.read_bytes() for file in campaign.folder.glob("database.sqlite*"))
    for trace in (*ids, "Careful throughout", '{"match":', '{"match": '):
        assert trace.encode() not in written
    again = open_database(campaign)
    assert counts(again).items == 4
    again.close()


def test_without_a_date_it_is_asked_for(tmp_path: Path) -> None:
    campaign = make(tmp_path / "campaign", pairs(2))
    db = open_database(campaign)
    with pytest.raises(
        InputError, match="no date after which answers are to be deleted; delete them all the same"
    ):
        delete_people(db, campaign, LATER)
    Worker(db, campaign, 1).do()
    assert delete_people(db, campaign, 5.0, early=True).people == 1
    db.close()
