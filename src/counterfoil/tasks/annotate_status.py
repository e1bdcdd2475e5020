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
        rows = [asdict(each) for each in self.status.persons]
        return pa.Table.from_pylist(rows, pa.schema(list(kinds.items())))

    @property
    def facts(self) -> dict[str, str]:
        """The figures of the campaign in words."""
        found = self.status
        return {"Campaign": f"{found.title} ({found.form}, {found.design}), {found.state}", **facts_of(found)}

    @property
    def tables(self) -> tuple[Table, ...]:
        """The people, in the order in which they came."""
        found = self.status
        columns = [Column(name) for name in ("state", "items", "s each", f"{found.currency}/h", "golden")]
        rows = [
            (
                each.person[:SHORT],
                each.review or each.state,
                f"{each.items:,}",
                "–" if each.seconds is None else f"{each.seconds:.1f}",
                "–" if each.pay is None else f"{each.pay:.2f}",
                f"{each.golden_right} of {each.golden}" if each.golden else "–",
            )
            for each in found.persons
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
    with opened(campaign, database) as (found, connected):
        from counterfoil.annotate.overview import read_status

        moment = time.time() if now is None else now
        return CampaignProgress(read_status(connected, found, now=moment))
