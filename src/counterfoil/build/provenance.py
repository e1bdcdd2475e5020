"""Provenance of a built benchmark, from the manifests of its steps and the columns of its rows.

It is the plain mapping that a publication takes (`counterfoil.data.publishing.facts.Provenance.of`).
"""

from collections.abc import Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from counterfoil.build.run import STEPS_FOLDER
from counterfoil.build.step_folder import StepFolder, StepRecord
from counterfoil.build.steps.registry import STEPS
from counterfoil.data.folder import BUILT

#: Columns of rows that say who made a column, from what, and with which seed.
_MADE = ("_by", "_from", "_seed")


def build_folder(folder: Path) -> Path | None:
    """The folder of the build in which a benchmark was assembled, or that it is; None where there is none."""
    places = (folder, folder.parent) if folder.name == BUILT else (folder,)
    return next((place for place in places if (place / STEPS_FOLDER).is_dir()), None)


def build_provenance(folder: Path) -> dict[str, Any]:
    """Steps with their counts, and who made what of every row, of the build in a folder.

    Raises `DataError` where a manifest is damaged, or a table.
    """
    named = [place for place in (folder / STEPS_FOLDER).iterdir() if place.name.partition("-")[0].isdigit()]
    steps = [StepFolder(each) for each in sorted(named, key=lambda each: int(each.name.partition("-")[0]))]
    if not steps:
        return {}
    records = [step.record() for step in steps]
    rows = steps[-1].rows()
    kept = [name for name in rows.column_names if name == "id" or name.endswith(_MADE)]
    return {
        "method": f"Built by counterfoil in {len(records)} steps with seed {records[0].seed}.",
        "steps": [_step(record) for record in records],
        **({"rows": rows.select(kept)} if len(kept) > 1 else {}),
    }


def _step(record: StepRecord) -> dict[str, Any]:
    entry = STEPS.get(record.step)
    return {
        "name": record.step,
        "summary": "" if entry is None else entry.summary,
        "settings": {name: _shown(value) for name, value in _chosen(record).items()},
        "rows_in": record.rows_in,
        "rows_out": record.rows_out,
        "dropped": dict(record.dropped),
    }


def _chosen(record: StepRecord) -> Mapping[str, Any]:
    """The settings that are not the step's defaults; all of a step that is not known here."""
    if record.step not in STEPS:
        return record.settings
    defaults = {
        each.name: each.default for each in fields(STEPS[record.step].kind) if each.default is not MISSING
    }
    found = {}
    for name, value in record.settings.items():
        usual = defaults.get(name, MISSING)
        if value != (list(usual) if isinstance(usual, tuple) else usual):
            found[name] = value
    return found


def _shown(value: Any) -> Any:
    """A path of this machine by its last part, which is all that says anything to others."""
    if isinstance(value, str) and Path(value).is_absolute():
        return Path(value).name
    return [_shown(each) for each in value] if isinstance(value, list) else value
