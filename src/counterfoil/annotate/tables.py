"""Tables of a campaign's database, which refuse too many answers of an item, and two of a person."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from counterfoil.errors import MissingExtraError

try:
    import sqlalchemy
except ModuleNotFoundError:
    raise MissingExtraError("sqlalchemy", "annotate") from None

#: SQLAlchemy by its usual name, and what statements are run with.
sa = sqlalchemy
Connection = sa.Connection
METADATA = sa.MetaData()
#: Whether an item wants more answers than it has or people are at work on: 1 or 0.
OPEN = "CASE WHEN answered + leased < target THEN 1 ELSE 0 END"
#: What each answer or lease of an item adds to its rank: a queue goes round all items before it begins again.
ROUND = 1_000_000


def _of_kind(kind: Any, names: str, *, nullable: bool = False, **more: Any) -> list[Any]:
    """Columns of one kind, which are never null unless they say so."""
    return [sa.Column(name, kind, nullable=nullable, **more) for name in names.split()]


#: The revision of the tables, under the name by which earlier versions noted it.
versions = sa.Table("alembic_version", METADATA, sa.Column("version_num", sa.String(32), primary_key=True))

#: What the database belongs to and how it was planned, by key.
meta = sa.Table(
    "meta", METADATA, sa.Column("key", sa.Text, primary_key=True), sa.Column("value", sa.Text, nullable=False)
)

#: `right` and `wrong` count golden answers, `pages` items that were shown and `done` those that were answered
#: (without the test before the work); `wanted` is how many blocks the person came for, `browser` the hash of
#: the secret of the one that they came with first, null where the next one is taken for it.
people = sa.Table(
    "people",
    METADATA,
    sa.Column("id", sa.Text, primary_key=True),
    *_of_kind(sa.Text, "state platform language parameters"),
    *_of_kind(sa.Integer, "warned right wrong", server_default="0"),
    *_of_kind(sa.Integer, "wanted", server_default="1"),
    *_of_kind(sa.Integer, "pages done", server_default="0"),
    *_of_kind(sa.Float, "entered"),
    *_of_kind(sa.Float, "consented finished", nullable=True),
    *_of_kind(sa.Text, "browser", nullable=True),
)

tokens = sa.Table(
    "tokens",
    METADATA,
    sa.Column("hash", sa.Text, primary_key=True),
    sa.Column("person", sa.Text, sa.ForeignKey("people.id"), nullable=False, index=True),
    sa.Column("issued", sa.Float, nullable=False),
)

#: `position` is the place in the campaign's items, `instance` a number that items share which are kept apart,
#: `rank` its place in a queue, `target` how many answers are wanted, `leased` how many people have the item
#: before them; its `author`, where it has one, does not judge it.
items = sa.Table(
    "items",
    METADATA,
    sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
    *_of_kind(sa.Text, "role"),
    *_of_kind(sa.Integer, "instance rank target"),
    *_of_kind(sa.Integer, "answered leased", server_default="0"),
    *_of_kind(sa.Text, "author", nullable=True),
    sa.Column("open", sa.Integer, sa.Computed(OPEN, persisted=True)),
    sa.CheckConstraint("answered >= 0 AND leased >= 0 AND answered + leased <= target", name="items_wanted"),
)
sa.Index("items_open", items.c.open, items.c.rank)
sa.Index("items_role", items.c.role)

blocks = sa.Table(
    "blocks",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("person", sa.Text, sa.ForeignKey("people.id"), index=True),
    sa.Column("expires", sa.Float),
    sa.Column("done", sa.Boolean, nullable=False, server_default=sa.false()),
)

block_items = sa.Table(
    "block_items",
    METADATA,
    sa.Column("block", sa.Integer, sa.ForeignKey("blocks.id"), primary_key=True),
    sa.Column("place", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("item", sa.Integer, sa.ForeignKey("items.position"), nullable=False),
)

#: `state` is "live", "returned" (it expired) or "answered"; `place` counts the pages of a person from 0.
leases = sa.Table(
    "leases",
    METADATA,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("person", sa.Text, sa.ForeignKey("people.id"), nullable=False),
    sa.Column("item", sa.Integer, sa.ForeignKey("items.position"), nullable=False),
    *_of_kind(sa.Integer, "instance attempt"),
    *_of_kind(sa.Text, "role"),
    *_of_kind(sa.Integer, "place"),
    sa.Column("block", sa.Integer, sa.ForeignKey("blocks.id")),
    *_of_kind(sa.Float, "issued expires"),
    *_of_kind(sa.Text, "state"),
    sa.UniqueConstraint("person", "instance", "attempt", name="leases_apart"),
)
for _name, _columns, _state in (
    ("leases_open", (leases.c.person, leases.c.place), "state <> 'answered'"),
    ("leases_live", (leases.c.expires,), "state = 'live'"),
):
    sa.Index(_name, *_columns, sqlite_where=sa.text(_state), postgresql_where=sa.text(_state))

#: `counted` is false of answers that were set aside: their person was disqualified, or their block returned.
answers = sa.Table(
    "answers",
    METADATA,
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("person", sa.Text, sa.ForeignKey("people.id"), nullable=False),
    sa.Column("item", sa.Integer, sa.ForeignKey("items.position"), nullable=False, index=True),
    *_of_kind(sa.Integer, "attempt"),
    *_of_kind(sa.Text, "role key lease answer"),
    *_of_kind(sa.Float, "seconds submitted"),
    *_of_kind(sa.Boolean, "right", nullable=True),
    *_of_kind(sa.Boolean, "counted", server_default=sa.true()),
    *_of_kind(sa.Text, "comment", server_default=""),
    sa.UniqueConstraint("person", "item", "attempt", name="answers_once"),
    sa.UniqueConstraint("person", "key", name="answers_key"),
)

#: A researcher's decision where people disagree, and who took it.
adjudications = sa.Table(
    "adjudications",
    METADATA,
    sa.Column("item", sa.Integer, sa.ForeignKey("items.position"), primary_key=True),
    sa.Column("question", sa.Text, primary_key=True),
    *_of_kind(sa.Text, "answer note by"),
    *_of_kind(sa.Float, "decided"),
)

events = sa.Table(
    "events",
    METADATA,
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("at", sa.Float, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("person", sa.Text),
    sa.Column("detail", sa.Text, nullable=False, server_default=""),
)


#: Built once: every request runs some of them.
_statement = cache(sa.text)


def run(connection: Connection, statement: str, **values: Any) -> Any:
    """The result of a statement in SQL, which SQLite and PostgreSQL both read; `:name` stands for a value."""
    return connection.execute(_statement(statement), values)


def insert(connection: Connection, table: str, *rows: Mapping[str, Any]) -> None:
    """Add rows of the same columns to a table."""
    names, values = '", "'.join(rows[0]), ", :".join(rows[0])
    connection.execute(_statement(f'INSERT INTO {table} ("{names}") VALUES (:{values})'), list(rows))


def meta_value(connection: Connection, key: str) -> str:
    """What `meta` holds under a key, empty for nothing."""
    value = run(connection, "SELECT value FROM meta WHERE key = :key", key=key).scalar()
    return "" if value is None else value


def set_meta_value(connection: Connection, key: str, value: str) -> None:
    new = "INSERT INTO meta (key, value) VALUES (:key, :value) ON CONFLICT (key) DO UPDATE SET value = :value"
    run(connection, new, key=key, value=value)


def set_person(connection: Connection, person: str, where: str = "", **values: Any) -> bool:
    """Change a person's row, where a further condition in SQL holds; whether there was one to change."""
    changes = ", ".join(f'"{name}" = :{name}' for name in values)
    update = f"UPDATE people SET {changes} WHERE id = :person {where}"
    return bool(run(connection, update, person=person, **values).rowcount)


def log_event(
    connection: Connection, now: float, kind: str, person: str | None = None, detail: str = ""
) -> None:
    insert(connection, "events", {"at": now, "kind": kind, "person": person, "detail": detail})
