"""Decisions where people disagree, and people who come for several blocks."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table of decisions and the number of blocks that a person came for."""
    op.create_table(
        "adjudications",
        sa.Column("item", sa.Integer, sa.ForeignKey("items.position"), primary_key=True),
        sa.Column("question", sa.Text, primary_key=True),
        sa.Column("answer", sa.Text, nullable=False),
        sa.Column("note", sa.Text, nullable=False),
        sa.Column("by", sa.Text, nullable=False),
        sa.Column("decided", sa.Float, nullable=False),
    )
    op.add_column("people", sa.Column("wanted", sa.Integer, nullable=False, server_default="1"))
