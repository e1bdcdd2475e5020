"""Studies in the world, from Python."""

from pathlib import Path

from counterfoil.api.arguments import (
    feedback_of,
)
from counterfoil.engine.deduplicate import Note, Progress
from counterfoil.jobs.study import StudyReport
from counterfoil.jobs.study import study as study_task


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
