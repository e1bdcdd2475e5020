"""Judgements of a campaign, or of a table that came from elsewhere."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from counterfoil.annotate.campaign import Campaign, open_campaign
from counterfoil.annotate.judgement_table import read_judgement_table
from counterfoil.errors import InputError

if TYPE_CHECKING:
    from counterfoil.annotate.database import Database


@dataclass(frozen=True, eq=False)
class JudgementSource:
    """A table of judgements, and the campaign that it belongs to where that is known."""

    name: str
    table: pa.Table
    campaign: Campaign | None = None


@contextmanager
def opened(folder: str | Path, database: str | None = None) -> Iterator[tuple[Campaign, "Database"]]:
    """The campaign in a folder and its database, closed when the block ends; without one nothing is made.

    Raises `DataError` for a folder without a campaign, and as `open_database`.
    """
    campaign = open_campaign(Path(folder))
    from counterfoil.annotate.database import existing_database

    with existing_database(campaign, database) as connected:
        yield campaign, connected


def read_judgements(
    source: str | Path, *, campaign: str | Path | None = None, database: str | None = None
) -> JudgementSource:
    """The judgements of a campaign's folder, or those in a file.

    `campaign` is the campaign whose questions a file answers; `database` the address of a campaign's database
    where that is not in its folder. Raises `DataError` for a folder without a campaign and a damaged table.
    """
    path = Path(source)
    if path.is_dir():
        if campaign is not None:
            raise InputError("a campaign is given twice", given=f"{source} and {campaign}")
        with opened(path, database) as (owner, connected):
            from counterfoil.annotate.answers import judgement_table

            return JudgementSource(str(source), judgement_table(connected, owner), owner)
    if database is not None:
        raise InputError("a database belongs to a campaign", where="--database", given=source)
    own = None if campaign is None else open_campaign(Path(campaign))
    return JudgementSource(str(source), read_judgement_table(path), own)
