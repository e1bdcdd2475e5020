"""Revisions of the database's tables, applied when a campaign's database is opened."""
