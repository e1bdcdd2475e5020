"""Statements that go to the driver: the same rows as SQLAlchemy's, written in order, whole or not at all."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from annotate.small_campaigns import make, pairs
from counterfoil.annotate.database import Database, open_database
from counterfoil.annotate.statements import PreparedStatement, Together
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
