"""Overview of a campaign for its researcher, read from the database: status, agreement, people, disputes.

Command line and researcher's page show the same. Reading holds up no one who works (`Database.reading`).
"""

import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from counterfoil.annotate.adjudication import DisputedItem, adjudicated, disputed_items
from counterfoil.annotate.agreement import CampaignAgreement, campaign_agreement, counted, fields_of
from counterfoil.annotate.answers import counts, judgement_table
from counterfoil.annotate.campaign import Campaign
from counterfoil.annotate.database import Database
from counterfoil.annotate.quality import PersonQuality, people_quality
from counterfoil.annotate.review import Review, reviews
from counterfoil.annotate.status import CampaignStatus, Storage, WorkerRow, campaign_status
from counterfoil.annotate.tables import people, sa
from counterfoil.annotate.work import running

#: Files of SQLite beside its database.
_BESIDE = ("", "-wal", "-shm")


@dataclass(frozen=True)
class CampaignOverview:
    """What a researcher sees at one moment (`at`, seconds since the epoch).

    `agreement` is None where nothing counts yet; `quality` has everyone who answered, `reviews` the decisions
    by person, `disputes` the items that people disagree on, most undecided first.
    """

    at: float
    status: CampaignStatus
    agreement: CampaignAgreement | None
    quality: tuple[PersonQuality, ...]
    reviews: dict[str, Review]
    disputes: tuple[DisputedItem, ...]

    def to_json(self) -> dict[str, Any]:
        """All of it as JSON values."""
        return {
            **asdict(self),
            "agreement": None if self.agreement is None else self.agreement.to_json(),
            "quality": [person.to_json() for person in self.quality],
        }


def read_overview(db: Database, campaign: Campaign, *, now: float, draws: int) -> CampaignOverview:
    """The overview at `now`; `draws` are the reweightings behind intervals of agreement."""
    table = judgement_table(db, campaign, everything=True)
    decisions = reviews(db)
    status = read_status(db, campaign, now=now, table=table)
    counted_rows = table.filter(table.column("counted"))
    fields = fields_of(campaign)
    main = fields.get(campaign.form.main)
    agreement = campaign_agreement(counted_rows, fields, draws=draws) if len(counted(counted_rows)) else None
    quality = people_quality(table, campaign)
    disputes = disputed_items(counted_rows, main, adjudicated(db, campaign)) if main is not None else ()
    return CampaignOverview(now, status, agreement, quality, decisions, disputes)


def read_status(
    db: Database, campaign: Campaign, *, now: float, table: pa.Table | None = None
) -> CampaignStatus:
    """The status alone; `table` are all judgements, where they were read before."""
    return campaign_status(
        campaign,
        judgement_table(db, campaign, everything=True) if table is None else table,
        workers(db, reviews(db)),
        counts(db),
        now=now,
        state=running(db),
        storage=storage(db),
    )


def workers(db: Database, decisions: dict[str, Review]) -> tuple[WorkerRow, ...]:
    """Everyone who entered, in the order in which they came; who finished the work is "done"."""
    done = (people.c.state == "work") & people.c.finished.is_not(None)
    state = sa.case((done, "done"), else_=people.c.state)
    with db.reading() as connection:
        rows = connection.execute(sa.select(people.c.id, state).order_by(people.c.entered, people.c.id)).all()
    decided = {person: review.decision for person, review in decisions.items()}
    return tuple(WorkerRow(person, state, decided.get(person, "")) for person, state in rows)


def storage(db: Database) -> Storage:
    """Where answers are; sizes are known of a file."""
    if not db.is_sqlite:
        return Storage(db.engine.url.render_as_string(hide_password=True))
    path = Path(db.engine.url.database or "")
    files = [Path(f"{path}{end}") for end in _BESIDE]
    size = sum(file.stat().st_size for file in files if file.exists())
    return Storage(path.name, size, shutil.disk_usage(path.absolute().parent).free)
