"""Statements that go to the driver: the same rows as SQLAlchemy's, written in order, whole or not at all."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from annotate.small_campaigns import Worker, make, pairs
from counterfoil.annotate import statements, work
from counterfoil.annotate.answers import counts
from counterfoil.annotate.campaign import Campaign
from counterfoil.annotate.database import Database, open_database
from counterfoil.annotate.situation import Who, question_of
from counterfoil.annotate.statements import PreparedStatement, Together, ask_ahead
from counterfoil.annotate.tables import items, meta, sa

_SET = PreparedStatement(
    sa.insert(meta).values(key=sa.bindparam("the_key"), value=sa.bindparam("the_value")).inline()
)
_CHANGE = PreparedStatement(
    sa.update(meta).where(meta.c.key == sa.bindparam("the_key")).values(value=sa.bindparam("to"))
)
_QUERY = sa.select(meta.c.key, meta.c.value).where(meta.c.key.like("t-%")).order_by(meta.c.key)
_ROWS = PreparedStatement(_QUERY)


@pytest.fixture
def db(tmp_path: Path, new_database: Callable[[], str | None]) -> Iterator[Database]:
    opened = open_database(make(tmp_path / "c", pairs(4)), new_database())
    yield opened
    opened.close()


def kept(db: Database) -> list[tuple[str, str]]:
    with db.reading() as connection:
        return [(row.key, row.value) for row in _ROWS.all(connection)]


def test_what_is_read_sees_what_was_written_before_it_in_order(db: Database) -> None:
    with db.writing() as connection:
        _SET.run(connection, the_key="t-a", the_value="1")
        _SET.run(connection, the_key="t-b", the_value="1")
        _CHANGE.run(connection, the_key="t-a", to="2")
        assert [tuple(row) for row in _ROWS.all(connection)] == [("t-a", "2"), ("t-b", "1")]
        _CHANGE.run(connection, the_key="t-a", to="3")
        # SQLAlchemy's own statements come after it, too.
        assert connection.execute(_QUERY).first() == ("t-a", "3")
        _CHANGE.run(connection, the_key="t-b", to="4")
    assert kept(db) == [("t-a", "3"), ("t-b", "4")]


def test_rows_are_those_of_sqlalchemy(db: Database) -> None:
    query = sa.select(items).where(items.c.position < sa.bindparam("below")).order_by(items.c.position)
    own, none = PreparedStatement(query), {"below": 0}
    with db.reading() as connection:
        rows = connection.execute(query, {"below": 3}).all()
        found = own.all(connection, below=3)
        assert [row._asdict() for row in found] == [row._asdict() for row in rows]
        assert own.first(connection, below=3) == tuple(rows[0])
        assert (own.first(connection, **none), own.all(connection, **none)) == (None, [])


def test_writes_that_are_one_statement_are_all_made_or_none(db: Database) -> None:
    both = Together(
        _SET, PreparedStatement(sa.update(items).values(rank=items.c.rank + sa.bindparam("more")))
    )
    ranks = PreparedStatement(sa.select(items.c.rank).order_by(items.c.rank))

    def write() -> None:
        with db.writing() as connection:
            both.run(connection, the_key="t-a", the_value="1", more=10, unused="x")

    write()
    assert kept(db) == [("t-a", "1")]
    with pytest.raises(sa.exc.IntegrityError):
        write()
    with db.reading() as connection:
        assert [row.rank for row in ranks.all(connection)] == [10, 11, 12, 13]


def test_of_a_transaction_that_fails_nothing_is_kept_and_nothing_waits(db: Database) -> None:
    def fail() -> None:
        with db.writing() as connection:
            _SET.run(connection, the_key="t-a", the_value="1")
            raise KeyError("stop")

    with pytest.raises(KeyError):
        fail()
    with db.writing() as connection:
        _SET.run(connection, the_key="t-b", the_value="2")
    assert kept(db) == [("t-b", "2")]


@pytest.mark.parametrize("reads", [False, True])
def test_a_write_that_is_refused_refuses_the_transaction(db: Database, reads: bool) -> None:
    def twice() -> None:
        with db.writing() as connection:
            _SET.run(connection, the_key="t-a", the_value="private")
            _SET.run(connection, the_key="t-a", the_value="private")
            if reads:
                _ROWS.all(connection)

    with pytest.raises(sa.exc.IntegrityError) as error:
        twice()
    assert "parameters" not in str(error.value)
    assert kept(db) == []


def test_writes_together_are_one_transaction_unless_one_fails(db: Database) -> None:
    begun: list[str] = []
    sa.event.listen(db.engine, "commit", lambda connection: begun.append("commit"))

    def write(key: str, value: str = "1") -> Callable[[sa.Connection], str]:
        def write(connection: sa.Connection) -> str:
            if value == "odd":
                raise ValueError(key)
            _SET.run(connection, the_key=key, the_value=value)
            return key

        return write

    assert db.write_together([write("t-a"), write("t-b"), write("t-c")]) == ["t-a", "t-b", "t-c"]
    assert begun == ["commit"]
    found = db.write_together([write("t-d"), write("t-e", "odd"), write("t-a"), write("t-f")])
    assert (found[0], found[3]) == ("t-d", "t-f")
    assert isinstance(found[1], ValueError)
    assert isinstance(found[2], sa.exc.IntegrityError)
    assert [key for key, _ in kept(db)] == ["t-a", "t-b", "t-c", "t-d", "t-f"]


def ways_of(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Grows by every way to PostgreSQL: a pipeline, or a statement by itself."""
    found: list[str] = []
    for name in ("_pipeline", "_execute"):
        kept = getattr(statements, name)

        def counted(*given: Any, name: str = name, kept: Any = kept) -> Any:
            found.append(name)
            return kept(*given)

        monkeypatch.setattr(statements, name, counted)
    return found


def answered_by(db: Database, campaign: Campaign, n: int) -> tuple[list[Worker], list[Any], list[Any]]:
    """People with an answer each, as writes, and what those ask first."""
    workers = [Worker(db, campaign, number) for number in range(1, n + 1)]
    writes, questions = [], []
    for worker in workers:
        who, given = Who(worker.person.id), worker.standing().assigned[0]
        sent = work.Submission(given.lease, f"key-{worker.number}", {"match": 0}, 1.0)
        writes.append(partial(take_answer, campaign=campaign, who=who, sent=sent))
        questions.append(partial(question_of, who=who, lease=sent.lease, key=sent.key))
    return workers, writes, questions


def take_answer(connection: sa.Connection, *, campaign: Campaign, who: Who, sent: Any) -> work.Receipt:
    return work.take(connection, campaign, who, sent, 1_010.0)


def test_answers_together_are_one_way_each_and_what_they_are_alone(
    tmp_path: Path, new_database: Callable[[], str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = make(tmp_path / "c", pairs(30), overlap=3)
    db = open_database(campaign, new_database())
    _, writes, questions = answered_by(db, campaign, 6)
    ways = ways_of(monkeypatch)
    found = db.write_together(writes, questions)
    assert [receipt.accepted for receipt in found] == [True] * 6
    assert {len(receipt.standing.assigned) for receipt in found} == {2}
    if not db.is_sqlite:
        # One to begin with, one for each answer and where the person stands then, and the last leases.
        assert ways == ["_pipeline"] * 8
    # All of them once more, by the same keys.
    again = db.write_together(writes, questions)
    assert [(receipt.accepted, receipt.repeated) for receipt in again] == [(True, True)] * 6
    assert again[0].standing.assigned == found[0].standing.assigned
    assert counts(db).answers == 6
    db.close()


def test_what_was_read_ahead_is_read_again_where_another_write_changed_it(
    tmp_path: Path, new_database: Callable[[], str | None]
) -> None:
    campaign = make(tmp_path / "c", pairs(2), overlap=1, lease_minutes=1.0)
    db = open_database(campaign, new_database())
    workers, writes, questions = answered_by(db, campaign, 1)
    # The same answer twice in one transaction: the second is the first once more.
    once, twice = db.write_together(writes * 2, questions * 2)
    assert (once.repeated, twice.repeated, twice.accepted) == (False, True, True)
    # A lease that is over is given back, and goes to who came before its own person's answer.
    (worker,) = workers
    (left,) = worker.standing().assigned
    late = Worker(db, campaign, 2, now=2_000.0)

    def come(connection: sa.Connection) -> work.Standing:
        return work.stand(connection, campaign, Who(late.person.id), 2_000.0)

    sent = work.Submission(left.lease, "late", {"match": 0}, 1.0)
    who = Who(worker.person.id)
    answer = partial(take_answer, campaign=campaign, who=who, sent=sent)
    ask = partial(question_of, who=who, lease=sent.lease, key=sent.key)
    standing, receipt = db.write_together([come, answer], [None, ask])
    assert [each.item for each in standing.assigned] == [left.item]
    assert not receipt.accepted
    assert "too late" in receipt.notice
    with db.reading() as connection:
        rows = connection.execute(sa.select(items.c.answered, items.c.leased).order_by(items.c.position))
        assert sorted(tuple(row) for row in rows) == [(0, 1), (1, 0)]
    db.close()


def test_what_was_read_ahead_holds_until_something_is_written(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    apart = PreparedStatement(_CHANGE.statement, apart=True)
    with db.writing() as connection:
        ask_ahead(connection, _ROWS.question(connection))
        _SET.run(connection, the_key="t-a", the_value="1")
        assert _ROWS.all(connection) == [("t-a", "1")]
        ask_ahead(connection, None)
        ways = ways_of(monkeypatch)
        apart.run(connection, the_key="t-none", to="2")
        assert _ROWS.all(connection) == [("t-a", "1")]
        assert db.is_sqlite or ways == []
        _SET.run(connection, the_key="t-b", the_value="1")
        assert [row.key for row in _ROWS.all(connection)] == ["t-a", "t-b"]
        # A statement of SQLAlchemy's may be a write, too.
        ask_ahead(connection, _ROWS.question(connection))
        _SET.run(connection, the_key="t-c", the_value="1")
        assert len(_ROWS.all(connection)) == 3
        ask_ahead(connection, None)
        connection.execute(sa.delete(meta).where(meta.c.key == "t-a"))
        assert [row.key for row in _ROWS.all(connection)] == ["t-b", "t-c"]
    assert [key for key, _ in kept(db)] == ["t-b", "t-c"]
