"""Judgements of other tools: Mechanical Turk, Label Studio, tables."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from counterfoil.annotate.campaign import Campaign, open_campaign
from counterfoil.annotate.forms.base import is_right
from counterfoil.annotate.judgement_table import answer_value, read_judgement_table, write_judgement_table
from counterfoil.annotate.platforms.label_studio import read_controls, read_export
from counterfoil.annotate.platforms.mturk_files import HitLayout, read_results
from counterfoil.errors import DataError
from counterfoil.inputs.files import read_text


@dataclass(frozen=True, eq=False)
class ImportedJudgements:
    """Judgements of another tool as a table, and what was left out, by what it was."""

    table: pa.Table
    left_out: Mapping[str, int] = field(default_factory=dict)

    @property
    def facts(self) -> dict[str, int]:
        """Rows, items and people of the table, and what was left out."""
        counts = {name: len(self.table.column(name).unique()) for name in ("item", "person")}
        counted = {"judgements": len(self.table), "items": counts["item"], "people": counts["person"]}
        return {**counted, **{name: count for name, count in self.left_out.items() if count}}


def import_judgements(
    path: Path,
    source: str,
    *,
    layout: HitLayout | None = None,
    config: Path | None = None,
    campaign: Path | None = None,
    keep_ids: bool = False,
) -> ImportedJudgements:
    """The judgements in a batch of Mechanical Turk, an export of Label Studio, or a table.

    People are numbered (p1, p2, ...) in the order in which they come; with `campaign` their ids are hashed as
    those of the campaign's own people are, and golden items of the campaign are held to their answers; with
    `keep_ids` they stay as they are. Raises `InputError` for what cannot be read, and for items and questions
    that the campaign does not have.
    """
    opened = None if campaign is None else open_campaign(campaign)
    if source == "table":
        imported = ImportedJudgements(read_judgement_table(path))
    else:
        identify = str if keep_ids else _numbered() if opened is None else _hashed(opened, source)
        if source == "mturk":
            results = read_results(path, layout, identify=identify)
            left_out = {"rejected assignments": results.rejected, "judged again": results.repeated}
            imported = ImportedJudgements(results.judgements, left_out)
        else:
            controls = None if config is None else read_controls(read_text(config), where=config)
            export = read_export(path, controls, identify=identify)
            left_out = {"cancelled": export.cancelled, "annotated again": export.repeated}
            imported = ImportedJudgements(export.judgements, left_out)
    return (
        imported
        if opened is None
        else ImportedJudgements(_held(imported.table, opened, path), imported.left_out)
    )


def write_judgements(imported: ImportedJudgements, out: Path) -> None:
    """Write imported judgements, as CSV or Parquet by the suffix."""
    write_judgement_table(out, imported.table)


def _numbered() -> Callable[[str], str]:
    known: dict[str, str] = {}
    return lambda worker: known.setdefault(worker, f"p{len(known) + 1}")


def _hashed(campaign: Campaign, source: str) -> Callable[[str], str]:
    # Only this needs the library of the database.
    from counterfoil.annotate.entry import person_id

    return lambda worker: person_id(campaign, source, worker)


def _held(table: pa.Table, campaign: Campaign, path: Path) -> pa.Table:
    """The table with its golden items held to the answers that the campaign knows."""
    fields = {
        item.id: {field.name: field for field in campaign.form.page(item).fields} for item in campaign.items
    }
    answers: dict[tuple[str, str], dict[str, Any]] = {}
    for row, judged in enumerate(table.to_pylist()):
        item, question = judged["item"], judged["question"]
        if item not in fields or question not in fields[item]:
            raise DataError(
                "no such item in the campaign" if item not in fields else "no such question of this item",
                where=f"{path}, judgement {row + 1}",
                given=item if item not in fields else question,
                allowed=None if item not in fields else list(fields[item]),
            )
        value = answer_value(judged["answer"], fields[item][question].kind, where=f"{path}, item {item}")
        answers.setdefault((item, judged["person"]), {})[question] = value
    golden = [
        is_right(campaign.items[campaign.places[item]], answers[item, person])
        for item, person in zip(
            table.column("item").to_pylist(), table.column("person").to_pylist(), strict=True
        )
    ]
    at = table.column_names.index("golden")
    return table.set_column(at, "golden", pa.array(golden, pa.bool_()))
