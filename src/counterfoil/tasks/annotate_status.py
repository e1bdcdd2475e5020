"""The status of a campaign, as a result in tables."""

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from counterfoil.annotate.status import CampaignStatus, facts_of
from counterfoil.report.tables import Column, Table, text_table
from counterfoil.tasks.annotate_judgements import opened
from counterfoil.tasks.results import Tabular

#: Characters of a person's id that are printed.
SHORT = 10


@dataclass(frozen=True, eq=False, repr=False)
class CampaignProgress(Tabular):
    """Where a campaign stands, and each of its people.

    Rows by "person" are one per person: `person` (a hash), `state`, `review` (approved, rejected or empty),
    `items`, `golden_right` of `golden`, median `seconds` per item and `pay` per hour, null where not known.
    """

    status: CampaignStatus

    rows_by = ("person",)

    def _rows(self, by: str) -> pa.Table:
        kinds = {
            "person": pa.string(),
            "state": pa.string(),
            "review": pa.string(),
            "items": pa.int64(),
            "golden_right": pa.int64(),
            "golden": pa.int64(),
            "seconds": pa.float64(),
            "pay": pa.float64(),
        }
        rows = [asdict(person) for person in self.status.persons]
        return pa.Table.from_pylist(rows, pa.schema(list(kinds.items())))

    @property
    def facts(self) -> dict[str, str]:
        """The figures of the campaign in words."""
        status = self.status
        return {
            "Campaign": f"{status.title} ({status.form}, {status.design}), {status.state}",
            **facts_of(status),
        }

    @property
    def tables(self) -> tuple[Table, ...]:
        """The people, in the order in which they came."""
        status = self.status
        columns = [Column(name) for name in ("state", "items", "s each", f"{status.currency}/h", "golden")]
        rows = [
            (
                person.person[:SHORT],
                person.review or person.state,
                f"{person.items:,}",
                "–" if person.seconds is None else f"{person.seconds:.1f}",
                "–" if person.pay is None else f"{person.pay:.2f}",
                f"{person.golden_right} of {person.golden}" if person.golden else "–",
            )
            for person in status.persons
        ]
        return (text_table("People", "person", columns, rows),) if rows else ()

    @property
    def notes(self) -> list[str]:
        """The facts, a line each."""
        return [f"{name}: {value}" for name, value in self.facts.items()]

    def __repr__(self) -> str:
        return f"<CampaignProgress: {self.status.finished} of {self.status.items} items finished>"

    def to_json(self) -> dict[str, Any]:
        """All of it as plain values, as `annotate status --json` writes it."""
        return self.status.to_json()


def annotate_status(
    campaign: str | Path, *, database: str | None = None, now: float | None = None
) -> CampaignProgress:
    """The status of the campaign in a folder, also while it is served; `now` is the present by default.

    Raises `DataError` for a folder without a campaign, and as `open_database`.
    """
    with opened(campaign, database) as (source, connected):
        from counterfoil.annotate.overview import read_status

        moment = time.time() if now is None else now
        return CampaignProgress(read_status(connected, source, now=moment))
