"""The first tables: people, items, blocks, leases, answers and events."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables."""
    op.create_table("meta", sa.Column("key", sa.Text, primary_key=True), _text("value"))
    op.create_table(
        "people",
        sa.Column("id", sa.Text, primary_key=True),
        *(_text(name) for name in ("state", "platform", "language", "parameters")),
        *(
            sa.Column(name, sa.Integer, nullable=False, server_default="0")
            for name in ("warned", "right", "wrong", "pages", "done")
        ),
        sa.Column("entered", sa.Float, nullable=False),
        sa.Column("consented", sa.Float),
        sa.Column("finished", sa.Float),
    )
    op.create_table(
        "tokens",
        sa.Column("hash", sa.Text, primary_key=True),
        _person(index=True),
        sa.Column("issued", sa.Float, nullable=False),
    )
    op.create_table(
        "items",
        sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
        _text("role"),
        *(sa.Column(name, sa.Integer, nullable=False) for name in ("instance", "rank", "target")),
        *(sa.Column(name, sa.Integer, nullable=False, server_default="0") for name in ("answered", "leased")),
        sa.Column("author", sa.Text),
        sa.Column(
            "open",
            sa.Integer,
            sa.Computed("CASE WHEN answered + leased < target THEN 1 ELSE 0 END", persisted=True),
        ),
        sa.CheckConstraint(
            "answered >= 0 AND leased >= 0 AND answered + leased <= target", name="items_wanted"
        ),
    )
    op.create_index("items_open", "items", ["open", "rank"])
    op.create_index("items_role", "items", ["role"])
    op.create_table(
        "blocks",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("person", sa.Text, sa.ForeignKey("people.id"), index=True),
        sa.Column("expires", sa.Float),
        sa.Column("done", sa.Boolean, nullable=False, server_default=sa.false()),
    )
    op.create_table(
        "block_items",
        sa.Column("block", sa.Integer, sa.ForeignKey("blocks.id"), primary_key=True),
        sa.Column("place", sa.Integer, primary_key=True, autoincrement=False),
        _item(),
    )
    op.create_table(
        "leases",
        sa.Column("id", sa.Text, primary_key=True),
        _person(),
        _item(),
        sa.Column("instance", sa.Integer, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        _text("role"),
        sa.Column("place", sa.Integer, nullable=False),
        sa.Column("block", sa.Integer, sa.ForeignKey("blocks.id")),
        sa.Column("issued", sa.Float, nullable=False),
        sa.Column("expires", sa.Float, nullable=False),
        _text("state"),
        sa.UniqueConstraint("person", "instance", "attempt", name="leases_apart"),
    )
    unanswered, live = sa.text("state <> 'answered'"), sa.text("state = 'live'")
    op.create_index(
        "leases_open", "leases", ["person", "place"], sqlite_where=unanswered, postgresql_where=unanswered
    )
    op.create_index("leases_live", "leases", ["expires"], sqlite_where=live, postgresql_where=live)
    op.create_table(
        "answers",
        sa.Column("number", sa.Integer, primary_key=True),
        _person(),
        _item(index=True),
        sa.Column("attempt", sa.Integer, nullable=False),
        *(_text(name) for name in ("role", "key", "lease", "answer")),
        sa.Column("seconds", sa.Float, nullable=False),
        sa.Column("submitted", sa.Float, nullable=False),
        sa.Column("right", sa.Boolean),
        sa.Column("counted", sa.Boolean, nullable=False, server_default=sa.true()),
        sa.UniqueConstraint("person", "item", "attempt", name="answers_once"),
        sa.UniqueConstraint("person", "key", name="answers_key"),
    )
    op.create_table(
        "events",
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("at", sa.Float, nullable=False),
        _text("kind"),
        sa.Column("person", sa.Text),
        sa.Column("detail", sa.Text, nullable=False, server_default=""),
    )


def _text(name: str) -> "sa.Column[str]":
    return sa.Column(name, sa.Text, nullable=False)


def _person(*, index: bool = False) -> "sa.Column[str]":
    return sa.Column("person", sa.Text, sa.ForeignKey("people.id"), nullable=False, index=index)


def _item(*, index: bool = False) -> "sa.Column[int]":
    return sa.Column("item", sa.Integer, sa.ForeignKey("items.position"), nullable=False, index=index)
