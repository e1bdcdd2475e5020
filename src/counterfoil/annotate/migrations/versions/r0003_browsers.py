"""The browser that a person came with first, and comments beside answers."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the hash of a browser's secret to people, and a comment to answers."""
    op.add_column("people", sa.Column("browser", sa.Text))
    op.add_column("answers", sa.Column("comment", sa.Text, nullable=False, server_default=""))
