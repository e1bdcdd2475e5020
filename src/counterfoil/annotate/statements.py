"""Statements that every answer runs: built and compiled once, and handed to the database's driver.

To build a statement, to look up its text and to wrap its rows takes SQLAlchemy longer than SQLite takes to
run it. With PostgreSQL the way there and back takes longest: what is written, and gives nothing back, waits
for the next question, and goes with it in one message (`psycopg`'s pipeline).
"""

from collections import namedtuple
from collections.abc import Callable
from typing import Any

from counterfoil.annotate.tables import sa

#: Where a connection keeps what waits to be run: (text, values) in order.
_WAITING = "counterfoil waiting"


class PreparedStatement:
    """A statement of SQLAlchemy whose values are those of its `bindparam`s, by name."""

    def __init__(self, statement: Any) -> None:
        self.statement = statement
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

    def __init__(self, *parts: PreparedStatement) -> None:
        *others, last = (part.statement for part in parts)
        super().__init__(last.add_cte(*(each.cte(f"part_{at}") for at, each in enumerate(others))))
        self.parts = parts

    def run(self, connection: sa.Connection, **values: Any) -> None:
        """Write all of them, the last one last."""
        if connection.dialect.name == "sqlite":
            for part in self.parts:
                part.run(connection, **values)
        else:
            super().run(connection, **values)


def write_waiting(connection: sa.Connection) -> None:
    """Run what waits to be run."""
    waiting = connection.info.pop(_WAITING, None)
    if waiting:
        _pipeline(connection, waiting)


def forget_waiting(connection: sa.Connection) -> None:
    """Run nothing of what waits: the transaction is undone."""
    connection.info.pop(_WAITING, None)


def _fetched(connection: sa.Connection, text: str, values: Any) -> list[Any]:
    waiting = connection.info.pop(_WAITING, None)
    if waiting:
        return _pipeline(connection, [*waiting, (text, values)]).fetchall()
    return _execute(connection, text, values).fetchall()


def _execute(connection: sa.Connection, text: str, values: Any) -> Any:
    raw: Any = connection.connection.driver_connection
    try:
        return raw.execute(text, values)
    except connection.dialect.loaded_dbapi.Error as error:
        raise _wrapped(connection, text, error) from error


def _pipeline(connection: sa.Connection, statements: list[tuple[str, Any]]) -> Any:
    """The cursor of the last of several statements, which go to the server together."""
    raw: Any = connection.connection.driver_connection
    try:
        with raw.pipeline():
            for text, values in statements:
                last = raw.execute(text, values)
    except connection.dialect.loaded_dbapi.Error as error:
        raise _wrapped(connection, statements[-1][0], error) from error
    return last


def _wrapped(connection: sa.Connection, text: str, error: Exception) -> BaseException:
    """An error of the driver as SQLAlchemy's, without the values: they are people's answers."""
    base = connection.dialect.loaded_dbapi.Error
    return sa.exc.DBAPIError.instance(
        text, None, error, base, hide_parameters=True, dialect=connection.dialect
    )
