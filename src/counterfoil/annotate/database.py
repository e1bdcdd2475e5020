"""The database of a campaign: opened, migrated, held against the campaign.

A writer holds the whole database, so that no two people get the last place of an item.
"""

import fcntl
import json
import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from counterfoil.annotate import item_order
from counterfoil.annotate.campaign import DATABASE, Campaign
from counterfoil.annotate.tables import (
    METADATA,
    Connection,
    answers,
    insert,
    meta_value,
    people,
    run,
    sa,
    set_meta_value,
    versions,
)
from counterfoil.errors import DataError, InputError, MissingExtraError, StorageError
from counterfoil.inputs.files import digest
from counterfoil.store import owner_only

#: Every revision of the tables, oldest first; the last is what this version works with.
REVISIONS = ("0001", "0002", "0003")
#: Columns that came after the first revision, which older databases get; tables that they lack are made.
_LATER = (people.c.wanted, people.c.browser, answers.c.comment)
#: What the plan of a campaign depends on: none of it can change under answers, but the overlap of a queue.
_PLANNED = ("design", "seed", "overlap", "per_person", "golden_per_block", "people_per_block", "by_direction")
#: Those that came later, and what they were before: a plan without them is an older one.
_BEFORE = {"people_per_block": 1, "by_direction": False}
#: What the one who writes holds in PostgreSQL.
_LOCK = sa.text("LOCK TABLE alembic_version IN EXCLUSIVE MODE")
#: Seconds that a writer waits for another process's.
_WAIT = 60.0
#: Number of the lock of a PostgreSQL database that is served.
SERVED = 8_750_140


@dataclass(eq=False)
class Database:
    """An open database; `writing` and `reading` give a connection for one transaction."""

    url: str
    engine: sa.Engine
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _served: Any = None

    @property
    def is_sqlite(self) -> bool:
        """Whether the database is a file of SQLite."""
        return self.engine.dialect.name == "sqlite"

    @contextmanager
    def writing(self, *, tables: bool = False) -> Iterator[Connection]:
        """One writing transaction, on the disk when the block ends; with `tables` it makes them."""
        # Threads wait here and not in the database, which would have them ask again and again.
        with self._lock, refusals(self.url), self._begin(writing=True) as connection:
            if not self.is_sqlite:
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(SERVED + 1)) if tables else _LOCK)
            yield connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """One reading transaction, which sees one state of the database throughout and holds up no writer."""
        # SQLite's reading transactions see one state as they are.
        options: dict[str, Any] = {} if self.is_sqlite else {"isolation_level": "REPEATABLE READ"}
        with refusals(self.url), self._begin(**options) as connection:
            yield connection

    @contextmanager
    def _begin(self, **options: Any) -> Iterator[Connection]:
        connected = self.engine.connect().execution_options(**options)
        with connected as connection, connection.begin():
            yield connection

    def close(self) -> None:
        """Close all connections and give up serving; SQLite's log is merged into its file."""
        self.engine.dispose()
        if self._served is not None:
            self._served.close()
            self._served = None


@owner_only()
def open_database(
    campaign: Campaign, url: str | None = None, *, serve: bool = False, durable: bool = True
) -> Database:
    """The database of a campaign, made or migrated where needed; with `serve` no other process may serve it.

    One that is not `durable` does not wait for the disk.
    """
    address = address_of(campaign, url)
    database = Database(address, engine_of(address, durable))
    path = Path(database.engine.url.database or DATABASE) if database.is_sqlite else None
    fresh = path is not None and not path.exists()
    if path is not None and path.is_file() and not path.stat().st_size:
        hint = "put a copy back; or delete the file, if no answers were in it, to begin anew"
        raise DataError("the database is an empty file", where=str(path), hint=hint)
    try:
        if serve:
            database._served = lock_served(database.engine, address, campaign)
        _migrate(database)
        _fill(database, campaign)
        # One that an earlier version made could be read by all.
        for end in ("", "-wal", "-shm") if path is not None else ():
            with suppress(FileNotFoundError):
                os.chmod(f"{path}{end}", 0o600)
    except BaseException:
        database.close()
        if fresh and path is not None and path.is_file() and not path.stat().st_size:
            path.unlink()
        raise
    return database


@contextmanager
def existing_database(campaign: Campaign, url: str | None = None) -> Iterator[Database]:
    """The database of a campaign; without one, an empty one that is gone when the block ends."""
    with ExitStack() as held:
        durable = url is not None or os.path.lexists(campaign.folder / DATABASE)
        if not durable:
            folder = held.enter_context(tempfile.TemporaryDirectory(prefix="counterfoil-"))
            url = f"sqlite:///{Path(folder) / DATABASE}"
        yield held.enter_context(closing(open_database(campaign, url, durable=durable)))


def _migrate(database: Database) -> None:
    """Make the tables, or add to older ones what has come since."""
    where = hidden(database.url).removeprefix("sqlite:///")
    with database.reading() as connection:
        tables = sa.inspect(connection).get_table_names()
        revision = connection.execute(sa.select(versions)).scalar() if versions.name in tables else None
    if revision == REVISIONS[-1]:
        return
    if revision is None and tables:
        raise DataError("not a campaign's database", where=where, given=f"tables {', '.join(sorted(tables))}")
    if revision is not None and revision not in REVISIONS:
        what, given = "the database was made by a newer version of counterfoil", f"revision {revision}"
        hint = "install that version"
        raise DataError(what, where=where, given=given, allowed=f"up to {REVISIONS[-1]}", hint=hint)
    with database.writing(tables=True) as connection:
        METADATA.create_all(connection)
        for column in _LATER:
            table, there = column.table.name, sa.inspect(connection).get_columns(column.table.name)
            if column.name not in {known_column["name"] for known_column in there}:
                definition = sa.schema.CreateColumn(column).compile(dialect=connection.dialect)
                connection.exec_driver_sql(f"ALTER TABLE {table} ADD COLUMN {definition}")
        run(connection, f"DELETE FROM {versions.name}")
        insert(connection, versions.name, {"version_num": REVISIONS[-1]})


def _fill(database: Database, campaign: Campaign) -> None:
    """Hold the database against the campaign; fill its tables where nothing has been answered."""
    recipe = campaign.recipe
    plan = {name: value for name in _PLANNED if (value := getattr(recipe, name)) != _BEFORE.get(name)}
    # Which campaign it is follows from a secret; the digest gives nothing of it away.
    facts = {"campaign": digest(campaign.secrets["salt"].encode()), "digest": campaign.digest}
    facts["plan"] = json.dumps(plan)
    with database.reading() as connection:
        stored = {key: meta_value(connection, key) for key in facts}
    if stored == facts:
        return
    where = str(campaign.folder)
    if stored["campaign"] not in ("", facts["campaign"]):
        raise DataError("the database is another campaign's", where=where, hint="name one of its own")
    planned: tuple[tuple[int, ...], ...] = ()
    if recipe.design == "blocks":
        planned = item_order.plan_blocks(campaign.items, recipe)
    elif recipe.golden_share and not any(item.role == "golden" for item in campaign.items):
        raise InputError("no golden items for the golden share", where=where)
    with database.writing() as connection:
        stored = {key: meta_value(connection, key) for key in facts}
        if stored == facts:
            return
        if run(connection, "SELECT number FROM answers LIMIT 1").first() is None:
            _write_items(connection, campaign, planned)
        elif stored["digest"] != facts["digest"]:
            what = "items or form were changed after people had answered"
            raise DataError(what, where=where, hint="make a new campaign, or put the files back")
        else:
            _raise_overlap(connection, json.loads(stored["plan"]), plan, where)
        for key, value in facts.items():
            set_meta_value(connection, key, value)


def _write_items(connection: Connection, campaign: Campaign, planned: tuple[tuple[int, ...], ...]) -> None:
    for table in ("leases", "block_items", "blocks", "items"):
        run(connection, f"DELETE FROM {table}")
    anew = 'UPDATE people SET "right" = 0, wrong = 0, warned = 0, pages = 0, done = 0, finished = NULL'
    run(connection, anew)
    numbers: dict[str, int] = {}
    ranks = item_order.work_order(campaign.items, campaign.recipe).tolist()
    rows = [
        {
            "position": i,
            "role": item.role,
            "instance": numbers.setdefault(item.exclusion_group, len(numbers)),
            "rank": ranks[i],
            # Items of known answer can be given to all: they want no number of answers.
            "target": campaign.recipe.overlap if item.role == "work" else 0,
            "author": item.cells.get("author"),
        }
        for i, item in enumerate(campaign.items)
    ]
    insert(connection, "items", *rows)
    for block, members in enumerate(planned):
        insert(connection, "blocks", {"id": block})
        positions = [{"block": block, "place": place, "item": item} for place, item in enumerate(members)]
        insert(connection, "block_items", *positions)


def _raise_overlap(connection: Connection, before: dict[str, Any], now: dict[str, Any], where: str) -> None:
    """More answers per item can be asked for in a queue; nothing else of a plan changes under answers."""
    fixed = _PLANNED if now["design"] == "blocks" else ("design", "seed")
    changed = next((name for name in fixed if before.get(name) != now.get(name)), None)
    if changed is None and now["overlap"] < before["overlap"]:
        changed = "overlap"
    if changed is not None:
        old, given = (plan.get(changed, _BEFORE.get(changed)) for plan in (before, now))
        what, allowed = "the plan was changed after people had answered", f"{old} as before"
        allowed += " or more" if changed == "overlap" else ""
        raise DataError(what, where=f"{where}, key '{changed}'", given=given, allowed=allowed)
    more = "UPDATE items SET target = :overlap WHERE role = 'work' AND target < :overlap"
    run(connection, more, overlap=now["overlap"])


def address_of(campaign: Campaign, url: str | None) -> str:
    """The address of a campaign's database; None is the file in its folder."""
    if url is None:
        return f"sqlite:///{(campaign.folder / DATABASE).absolute()}"
    scheme, _, rest = url.partition("://")
    if not rest or scheme not in ("sqlite", "postgresql", "postgres", "postgresql+psycopg"):
        allowed = "postgresql://USER:PASSWORD@HOST/NAME, or sqlite:///FILE"
        raise InputError("no address of a database", given=hidden(url), allowed=allowed)
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
    user, separator, host = rest.rpartition("@")
    return f"{scheme}{mark}{user.partition(':')[0]}{separator}{host}"


def engine_of(address: str, durable: bool = True) -> sa.Engine:
    is_file = address.startswith("sqlite")
    # The connection to a server that was used last is the next one: it has its statements prepared.
    options: dict[str, Any] = {"pool_pre_ping": True, "pool_use_lifo": True}
    if is_file:
        options = {"connect_args": {"timeout": _WAIT, "check_same_thread": False}}
    try:
        engine = sa.create_engine(address, pool_size=8, max_overflow=32, **options)
    except sa.exc.ArgumentError:
        raise InputError("no address of a database", given=hidden(address)) from None
    if not is_file:
        return engine

    @sa.event.listens_for(engine, "connect")
    def prepare(connection: Any, record: object) -> None:
        # Transactions begin where `begin` says so, not where the driver thinks that one is needed.
        connection.isolation_level = None
        # With FULL a commit is on the disk when it returns.
        mode = "FULL" if durable else "OFF"
        pragmas = "journal_mode = WAL", f"synchronous = {mode}", "foreign_keys = ON", "secure_delete = ON"
        for line in pragmas:
            connection.execute(f"PRAGMA {line}")

    @sa.event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writing = connection.get_execution_options().get("writing")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")

    return engine


@contextmanager
def refusals(url: str) -> Iterator[None]:
    """Errors of a database that cannot be written or reached, as one line."""
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
    """A lock that no other process gets until what is returned is closed, or this process ends."""
    hint = "stop the other server first"
    taken = InputError("this campaign is being served", where=str(campaign.folder), hint=hint)
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
    path = Path(engine.url.database or DATABASE)
    try:
        # It stays open as long as the campaign is served.
        file = open(f"{path}.lock", "ab")  # noqa: SIM115
    except OSError as error:
        raise StorageError(f"cannot be written: {error.strerror}", where=f"{path}.lock") from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise taken from None
    return file
