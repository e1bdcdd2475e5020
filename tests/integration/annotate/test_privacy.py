"""Withdrawal by the researcher, and deletion after the date: nothing of a person is left in any file."""

import struct
from collections import Counter
from pathlib import Path

import pytest

from annotate.small_campaigns import Worker, make, pairs
from counterfoil.annotate.answering import running
from counterfoil.annotate.answers import counts, judgement_table
from counterfoil.annotate.database import open_database
from counterfoil.annotate.privacy import KEPT_LABELS, delete_people
from counterfoil.annotate.review import adjudicate, adjudicated, approve, reviews
from counterfoil.annotate.tables import answers, events, leases, people, sa, tokens
from counterfoil.errors import InputError
from counterfoil.jobs.annotate_judgements import annotate_export

LATER = 3e9


def test_nothing_of_a_person_is_left_after_the_date(opened):
    with pytest.raises(InputError, match="no date after which answers are to be deleted"):
        delete_people(*opened(pairs(2)), LATER)
    db, campaign = opened(pairs(4), overlap=2, keep_until="2030-01-31")
    workers = [Worker(db, campaign, 1), Worker(db, campaign, 2)]
    for worker in workers:
        worker.do()
    approve(db, [workers[0].person.id], by="ann", now=5.0, reason="Careful throughout")
    adjudicate(db, campaign, "1", "no", by="ann", now=5.0)
    with pytest.raises(InputError, match=r"answers are not to be deleted yet; given: 2030-01-31; delete"):
        delete_people(db, campaign, 1e9)
    assert counts(db).answers == 8
    deleted = delete_people(db, campaign, LATER)
    assert (deleted.people, deleted.answers) == (2, 8)
    left = counts(db)
    assert (left.people, left.answers, left.items) == ({}, 0, 4)
    assert running(db) == "stopped"
    assert not reviews(db)
    assert [item.answer for item in adjudicated(db, campaign).values()] == ["no"]


def test_labels_stay_without_any_answer_person_or_time(tmp_path, new_database):
    """In no file of the folder, nor in PostgreSQL's tables, is a trace of a person left."""
    campaign = make(tmp_path / "campaign", pairs(6), overlap=3, keep_labels=True)
    url = new_database()
    db = open_database(campaign, url)
    # The last item has one answer alone.
    for number, items in ((1, 6), (2, 5)):
        Worker(db, campaign, number, now=1.7e9 + 0.123456 + 1e4 * number, judge=lambda item: "yes").do(items)
    votes = Counter(judgement_table(db, campaign)["item"].to_pylist())
    (one,) = (item for item, count in votes.items() if count == 1)
    traces = _traces(db)
    assert len(traces) > 50
    annotate_export(campaign.folder, database=url)
    folders = [campaign.folder] if url is None else [campaign.folder, _postgres_files(db)]
    for folder in folders:
        assert len(_left(folder, traces)) > 10
    result = delete_people(db, campaign, LATER, early=True)
    assert (result.labels, result.single) == (5, 1)
    db.close()
    kept = (campaign.folder / KEPT_LABELS).read_text().splitlines()
    assert len(kept) == 6
    assert f'"{one}"' not in "".join(kept)
    assert all(row.split(",")[2] == '"yes"' for row in kept[1:])
    assert "2 people judged 6 items" in (campaign.folder / "data_sheet.md").read_text()
    for folder in folders:
        assert _left(folder, traces) == set()
    again = open_database(campaign, url)
    assert delete_people(again, campaign, LATER, early=True).labels == 0
    again.close()
    assert len((campaign.folder / KEPT_LABELS).read_text().splitlines()) == 6


def _traces(db):
    """Ids, answers and times of people as their database stores them: texts, and numbers as eight bytes."""
    order = ">d" if db.is_sqlite else "<d"
    result = set()
    with db.reading() as connection:
        for table in (people, tokens, leases, answers, events):
            for row in connection.execute(sa.select(table)).mappings():
                if table is events and row["person"] is None:
                    continue
                for value in row.values():
                    if isinstance(value, str) and len(value) >= 12:
                        result.add(value.encode())
                    # SQLite stores whole numbers in fewer bytes, which could be anything.
                    if isinstance(value, float) and value % 1:
                        result |= {struct.pack(order, value), repr(value).encode()}
    return result - {repr(1.5).encode(), struct.pack(order, 1.5)}


def _left(folder, traces):
    """The traces that are in any file of a folder."""
    contents = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    return {trace for trace in traces for content in contents if trace in content}


def _postgres_files(db):
    """The folder of the files of a PostgreSQL database, all that was written being in them."""
    with db.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("CHECKPOINT")
        folder = Path(connection.exec_driver_sql("SHOW data_directory").scalar_one())
        query = "SELECT oid FROM pg_database WHERE datname = current_database()"
        return folder / "base" / str(connection.exec_driver_sql(query).scalar_one())
