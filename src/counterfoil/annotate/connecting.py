"""Connections of a campaign's database: addresses, engines, errors in one line, and the lock of a server."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from counterfoil.annotate.campaign import DATABASE, Campaign
from counterfoil.annotate.tables import sa
from counterfoil.errors import DataError, InputError, MissingExtraError, StorageError

#: Seconds that a writer waits for another process's.
_WAIT = 60.0
#: Number of the lock of a PostgreSQL database that is served.
SERVED = 8_750_140


def address_of(campaign: Campaign, url: str | None) -> str:
    """The address of a campaign's database, as SQLAlchemy takes it; None is the file in its folder.

    Raises `InputError` for an address that is none, and where what PostgreSQL needs is not installed.
    """
    if url is None:
        return f"sqlite:///{(campaign.folder / DATABASE).absolute()}"
    scheme, _, rest = url.partition("://")
    if not rest or scheme not in ("sqlite", "postgresql", "postgres", "postgresql+psycopg"):
        raise InputError(
            "no address of a database",
            given=hidden(url),
            allowed="postgresql://USER:PASSWORD@HOST/NAME, or sqlite:///FILE",
        )
    if scheme == "sqlite":
        return url
    try:
        import psycopg  # noqa: F401
    except ModuleNotFoundError:
        raise MissingExtraError("psycopg", "postgres") from None
    return f"postgresql+psycopg://{rest}"


def hidden(url: str) -> str:
    """An address without the password in it."""
    scheme, mark, rest = url.partition("://")
    user, at, host = rest.rpartition("@")
    return f"{scheme}{mark}{user.partition(':')[0]}{at}{host}"


def engine_of(address: str, durable: bool = True) -> sa.Engine:
    try:
        if not address.startswith("sqlite"):
            # The connection that was used last is the next one: it has its statements prepared.
            return sa.create_engine(
                address, pool_size=8, max_overflow=32, pool_pre_ping=True, pool_use_lifo=True
            )
        engine = sa.create_engine(
            address, pool_size=8, max_overflow=32, connect_args={"timeout": _WAIT, "check_same_thread": False}
        )
    except sa.exc.ArgumentError:
        raise InputError("no address of a database", given=hidden(address)) from None

    @sa.event.listens_for(engine, "connect")
    def prepare(connection: Any, record: object) -> None:
        # Transactions begin where `begin` says so, not where the driver thinks that one is needed.
        connection.isolation_level = None
        # With FULL a commit is on the disk when it returns.
        mode = "FULL" if durable else "OFF"
        for line in (
            "journal_mode = WAL",
            f"synchronous = {mode}",
            "foreign_keys = ON",
            "secure_delete = ON",
        ):
            connection.execute(f"PRAGMA {line}")

    @sa.event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        writing = connection.get_execution_options().get("writing")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")

    return engine


@contextmanager
def refusals(url: str) -> Iterator[None]:
    """Errors of a database that cannot be written or reached as one line; others stay as they are."""
    try:
        yield
    except sa.exc.DBAPIError as error:
        text = str(error.orig)
        where = hidden(url).removeprefix("sqlite:///")
        if any(words in text for words in ("not a database", "malformed", "no such table", "no such column")):
            raise DataError("damaged database, or none at all", where=where, given=text) from error
        if isinstance(error, sa.exc.IntegrityError | sa.exc.ProgrammingError | sa.exc.DataError):
            raise
        code = getattr(error.orig, "sqlstate", None)
        if code == "53100" or "is full" in text:
            what, hint = "the disk is full", "free some space; what was not acknowledged is not stored"
        elif "disk I/O error" in text:
            what = f"the database cannot be written: {text}"
            hint = "is a quota reached, or the disk damaged? what was not acknowledged is not stored"
        elif "locked" in text:
            what, hint = "another process is writing", "try again"
        else:
            what, hint = f"the database cannot be used: {text}", "see that it runs and may be written"
        raise StorageError(what, where=where, hint=hint) from error


def lock_served(engine: sa.Engine, url: str, campaign: Campaign) -> Any:
    """A lock that no other process gets until `close` of what is returned, or until this process ends.

    Raises `InputError` where another process has it.
    """
    taken = InputError(
        "this campaign is being served", where=str(campaign.folder), hint="stop the other server first"
    )
    if engine.dialect.name != "sqlite":
        with refusals(url):
            # A connection of its own, out of the pool: the lock is the connection's.
            connection = sa.create_engine(url, poolclass=sa.pool.NullPool).connect()
            # The server takes a moment to learn that a process which held the lock was killed.
            connection.execute(sa.text("SET lock_timeout = '5s'"))
            try:
                connection.execute(sa.select(sa.func.pg_advisory_lock(SERVED)))
            except sa.exc.OperationalError as error:
                connection.close()
                if getattr(error.orig, "sqlstate", None) != "55P03":
                    raise
                raise taken from None
            connection.commit()
        return connection
    return _locked_file(Path(engine.url.database or DATABASE), taken)


def _locked_file(path: Path, taken: InputError) -> IO[bytes]:
    try:
        # It stays open as long as the campaign is served.
        file = open(f"{path}.lock", "ab")  # noqa: SIM115
    except OSError as error:
        raise StorageError(f"cannot be written: {error.strerror}", where=f"{path}.lock") from error
    try:
        if os.name == "nt":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise taken from None
    return file
