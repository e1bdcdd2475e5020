"""Items on which people disagree, and decisions about them, as jobs on a campaign's folder."""

import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from counterfoil.annotate.campaign import open_campaign
from counterfoil.report.labels import amount
from counterfoil.report.tables import Column, Table, text_table
from counterfoil.tasks.annotate_judgements import opened
from counterfoil.tasks.results import Tabular

if TYPE_CHECKING:
    from counterfoil.annotate.adjudication import AdjudicatedAnswer, DisputedItem


@dataclass(frozen=True, eq=False, repr=False)
class Disputes(Tabular):
    """Items that people disagree on, most undecided first, those decided last.

    Rows by "item": `item`, `kind`, `votes` ("2 × yes, 1 × no"), `label` (the likeliest), its `chance` and the
    `entropy` in bits by the one-coin model; `decision` and `note` of a researcher.
    """

    disputes: "tuple[DisputedItem, ...]"

    rows_by = ("item",)

    def _rows(self, by: str) -> pa.Table:
        rows = []
        for item in self.disputes:
            label = max(item.posterior, key=lambda value: item.posterior[value])
            rows.append(
                {
                    "item": item.item,
                    "kind": item.kind,
                    "votes": ", ".join(f"{n} × {value}" for value, n in item.votes.items()),
                    "label": label,
                    "chance": item.posterior[label],
                    "entropy": item.entropy,
                    "decision": "" if item.decided is None else item.decided.answer,
                    "note": "" if item.decided is None else item.decided.note,
                }
            )
        texts = ("item", "kind", "votes", "label", "decision", "note")
        kinds = {name: pa.string() for name in texts} | {"chance": pa.float64(), "entropy": pa.float64()}
        return pa.Table.from_pylist(rows, pa.schema(list(kinds.items())))

    @property
    def tables(self) -> tuple[Table, ...]:
        """The items with their votes."""
        rows = [
            (row["item"], row["votes"], f"{row['label']} {100 * row['chance']:.0f} %", row["decision"] or "–")
            for row in self.to_arrow().to_pylist()
        ]
        columns = [Column(name) for name in ("votes", "likeliest", "decided")]
        return (text_table("Disagreements", "item", columns, rows),) if rows else ()

    @property
    def notes(self) -> list[str]:
        """How many there are and how many are left."""
        left = sum(item.decided is None for item in self.disputes)
        lines = [f"{amount(len(self.disputes), 'item')} with different answers, {left:,} without a decision"]
        if left:
            lines.append("decide one with: counterfoil annotate adjudicate CAMPAIGN ITEM ANSWER")
        return lines

    def __repr__(self) -> str:
        return f"<Disputes: {amount(len(self.disputes), 'item')}>"

    def to_json(self) -> dict[str, Any]:
        """All of it as plain values, as `annotate adjudicate --json` writes it."""
        return {"items": [item.to_json() for item in self.disputes]}


def annotate_disputes(campaign: str | Path, *, database: str | None = None) -> Disputes:
    """Items of a campaign that got different answers to its main question."""
    with opened(campaign, database) as (source, connected):
        from counterfoil.annotate.adjudication import adjudicated, disputed_items
        from counterfoil.annotate.agreement import fields_of
        from counterfoil.annotate.answers import judgement_table

        main = fields_of(source)[source.form.main]
        return Disputes(
            disputed_items(judgement_table(connected, source), main, adjudicated(connected, source))
        )


def annotate_adjudicate(
    campaign: str | Path,
    item: str,
    answer: str,
    *,
    question: str = "",
    note: str = "",
    by: str = "",
    database: str | None = None,
) -> "AdjudicatedAnswer":
    """Decide an item; raises as `adjudication.adjudicate`."""
    from counterfoil.annotate.adjudication import adjudicate
    from counterfoil.annotate.database import open_database

    source = open_campaign(Path(campaign))
    with closing(open_database(source, database)) as connected:
        return adjudicate(
            connected, source, item, answer, question=question, note=note, by=by, now=time.time()
        )
