"""Statements that every answer runs: built and compiled once, and handed to the database's driver.

To build a statement, to look up its text and to wrap its rows takes SQLAlchemy longer than SQLite takes to
run it. With PostgreSQL the way there and back takes longest: what is written, and gives nothing back, waits
for the next question, and goes with it in one message (`psycopg`'s pipeline). Of several transactions that
are one, the first question of each goes with the last one of the transaction before it.
"""

from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from counterfoil.annotate.tables import sa

#: Where a connection keeps what waits to be run: (text, values) in order.
_WAITING = "counterfoil waiting"
#: Where it keeps the question that was read ahead, and the one that is to be.
_READ, _AHEAD = "counterfoil read", "counterfoil ahead"


class PreparedStatement:
    """A statement of SQLAlchemy whose values are those of its `bindparam`s, by name.

    After one that is `apart` what was read ahead is still true.
    """

    def __init__(self, statement: Any, *, apart: bool = False) -> None:
        self.statement, self.apart = statement, apart
        self._compiled: dict[str, tuple[str, Callable[[dict[str, Any]], Any], Callable[[Any], Any]]] = {}

    def all(self, connection: sa.Connection, **values: Any) -> list[Any]:
        """Every row, as a named tuple."""
        text, bound, row = self._of(connection)
        return [row(each) for each in _fetched(connection, text, bound(values))]

    def first(self, connection: sa.Connection, **values: Any) -> Any:
        """The first row, None where there is none."""
        text, bound, row = self._of(connection)
        found = _fetched(connection, text, bound(values))
        return row(found[0]) if found else None

    def run(self, connection: sa.Connection, **values: Any) -> None:
        """Write; errors come with this or with what is run after it, the end of the transaction at last."""
        text, bound, _ = self._of(connection)
        if connection.dialect.name == "sqlite":
            _execute(connection, text, bound(values))
        else:
            connection.info.setdefault(_WAITING, []).append((text, bound(values)))
            if not self.apart:
                doubt_ahead(connection)

    def question(self, connection: sa.Connection, **values: Any) -> "DatabaseQuery":
        """What `first` and `all` ask with these values."""
        text, bound, _ = self._of(connection)
        return DatabaseQuery(text, bound(values))

    def _of(self, connection: sa.Connection) -> Any:
        """Text, what binds values to it, and what makes a row of a tuple, for the connection's database."""
        dialect = connection.dialect
        found = self._compiled.get(dialect.name)
        if found is None:
            compiled = self.statement.compile(dialect=dialect)
            fixed, order = dict(compiled.params), compiled.positiontup
            columns = [each.key for each in getattr(self.statement, "selected_columns", ())]
            named: Any = namedtuple("Row", columns, rename=True) if columns else None
            row = tuple if named is None else named._make

            def bound(values: dict[str, Any]) -> Any:
                known = fixed | values
                return known if order is None else [known[name] for name in order]

            found = self._compiled[dialect.name] = (compiled.string, bound, row)
        return found


class Together(PreparedStatement):
    """Several writes to different rows, which PostgreSQL takes as one statement; values by name go to all."""

    def __init__(self, *parts: PreparedStatement, apart: bool = False) -> None:
        *others, last = (part.statement for part in parts)
        ctes = (each.cte(f"part_{at}") for at, each in enumerate(others))
        super().__init__(last.add_cte(*ctes), apart=apart)
        self.parts = parts

    def run(self, connection: sa.Connection, **values: Any) -> None:
        """Write all of them, the last one last."""
        if connection.dialect.name == "sqlite":
            for part in self.parts:
                part.run(connection, **values)
        else:
            super().run(connection, **values)


@dataclass
class DatabaseQuery:
    """A question with its rows, where they were read and nothing was written since that could change them."""

    text: str
    values: Any
    rows: list[Any] | None = None


#: A write of a transaction, and what it asks first.
Write = Callable[[sa.Connection], Any]
Ask = Callable[[sa.Connection], DatabaseQuery]


def ask_ahead(connection: sa.Connection, question: DatabaseQuery | None) -> None:
    """Ask with the next message that brings something to the disk; what was asked before can be used now.

    A question that was read ahead is not asked again, unless anything was written since, but for statements
    that are `apart`. SQLite is asked when the rows are wanted: it is not far away.
    """
    connection.info[_READ] = connection.info.get(_AHEAD)
    connection.info[_AHEAD] = None if connection.dialect.name == "sqlite" else question


def doubt_ahead(connection: sa.Connection) -> None:
    """Something is written: what was read ahead may not be true any more, and is read again."""
    for name in (_READ, _AHEAD):
        question = connection.info.get(name)
        if question is not None:
            question.rows = None


def write_waiting(connection: sa.Connection) -> None:
    """Run what waits to be run."""
    waiting = connection.info.pop(_WAITING, None)
    if waiting:
        _pipeline(connection, waiting)


def forget_waiting(connection: sa.Connection) -> None:
    """Run nothing of what waits: the transaction is undone."""
    for name in (_WAITING, _READ, _AHEAD):
        connection.info.pop(name, None)


def _fetched(connection: sa.Connection, text: str, values: Any) -> list[Any]:
    read = connection.info.get(_READ)
    if read is not None and read.rows is not None and (read.text, read.values) == (text, values):
        return read.rows
    waiting = connection.info.pop(_WAITING, None)
    if not waiting:
        return _execute(connection, text, values).fetchall()
    ahead = connection.info.get(_AHEAD)
    if ahead is None:
        return _pipeline(connection, [*waiting, (text, values)])[-1].fetchall()
    *_, last, more = _pipeline(connection, [*waiting, (text, values), (ahead.text, ahead.values)])
    ahead.rows = more.fetchall()
    return last.fetchall()


def _execute(connection: sa.Connection, text: str, values: Any) -> Any:
    raw: Any = connection.connection.driver_connection
    try:
        return raw.execute(text, values)
    except connection.dialect.loaded_dbapi.Error as error:
        raise _wrapped(connection, text, error) from error


def _pipeline(connection: sa.Connection, statements: list[tuple[str, Any]]) -> list[Any]:
    """The cursors of several statements, which go to the server together."""
    raw: Any = connection.connection.driver_connection
    try:
        with raw.pipeline():
            cursors = [raw.execute(text, values) for text, values in statements]
    except connection.dialect.loaded_dbapi.Error as error:
        raise _wrapped(connection, statements[-1][0], error) from error
    return cursors


def _wrapped(connection: sa.Connection, text: str, error: Exception) -> BaseException:
    """An error of the driver as SQLAlchemy's, without the values: they are people's answers."""
    base = connection.dialect.loaded_dbapi.Error
    return sa.exc.DBAPIError.instance(
        text, None, error, base, hide_parameters=True, dialect=connection.dialect
    )
