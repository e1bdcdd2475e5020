"""Audits, the ledger of papers and studies in the world, from Python."""

from collections.abc import Sequence
from pathlib import Path

from counterfoil.api.arguments import (
    feedback_of,
    path_of,
)
from counterfoil.engine.deduplicate import Note, Progress
from counterfoil.jobs.reproduce import Ledger
from counterfoil.jobs.reproduce import reproduce as reproduce_task
from counterfoil.jobs.study import StudyReport
from counterfoil.jobs.study import study as study_task


def reproduce(
    data: str | Path | None = None, papers: str | Sequence[str] | None = None, *, quiet: bool = False
) -> Ledger:
    """What the papers print beside what is recomputed, as `counterfoil reproduce` has it.

    `data` is the folder of released files, by default that of COUNTERFOIL_DATA; where one is not there, its
    numbers are "no data". `papers` are names such as "bivlc" and "winoground", by default all. Raises
    `DataError` where a file is there but cannot be used.

    >>> found = reproduce(papers="bivlc", quiet=True).only("same")
    >>> [(entry.table, entry.printed, entry.rounded) for entry in found.entries][-1]
    ('Table 7', '0.49', '0.49')
    """
    from counterfoil.cli.paths import data_folder

    folder = data_folder(path_of(data))
    return reproduce_task(folder, papers, feedback=feedback_of(quiet=quiet))


def study(
    out: str | Path,
    *,
    full: bool = False,
    seed: int = 0,
    quiet: bool = False,
    progress: Progress | None = None,
    note: Note | None = None,
) -> StudyReport:
    """The study of `counterfoil demo --full`: four models trained on a drawn world, measured, and what held.

    Minutes of work, which the first note estimates. Networks, runs and the report are kept in the folder
    `out`; a study that was stopped goes on where it was, one with another seed or plan begins anew. `full`
    takes three seeds per model and two more studies, as `--dials` does. Raises `MissingExtraError` without
    the extras `train` and `report`, `InputError` for a folder that holds something else.
    """
    feedback = feedback_of(quiet=quiet, progress=progress, note=note)
    return study_task(out, full=full, seed=seed, feedback=feedback)
