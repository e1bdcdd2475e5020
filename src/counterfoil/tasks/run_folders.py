"""Run folders: those that a task reads, and those of an evaluation, none over another scorer's."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from counterfoil.errors import InputError
from counterfoil.evaluation.run import FILES, Run, find_runs, why_foreign
from counterfoil.outputs import guard
from counterfoil.outputs.guard import Folder
from counterfoil.scorers.base import Identity
from counterfoil.tasks.feedback import SILENT, Feedback


def load_runs(runs: Sequence[Run | str | Path], feedback: Feedback = SILENT) -> list[Run]:
    """The runs among `runs`, then those in folders (however deep); raises `InputError` for none."""
    found = [each for each in runs if isinstance(each, Run)]
    folders = [each for each in runs if not isinstance(each, Run)]
    if folders:
        found += find_runs(folders, note=feedback.note)
    if not found:
        raise InputError("no runs", hint="give runs, run folders, or folders of them")
    return found


def run_folder(out: Path, benchmark: str) -> Path:
    """Where the run on a benchmark goes: a folder in `out` of its name, or of that of its own folder.

    Raises `InputError` where neither is the name of a folder.

    >>> run_folder(Path("runs/clip"), "world/quads").as_posix()
    'runs/clip/quads'
    """
    name = Path(benchmark).name
    if name in ("", ".", ".."):
        name = Path(benchmark).resolve().name
    if not name:
        raise InputError("the benchmark has no name for its run folder", given=benchmark)
    return out / name


def run_folders(out: Path | None, benchmarks: Sequence[str], scorer: str) -> list[Folder]:
    """The folders of runs of `scorer`, to be declared; raises `InputError` where two would be one."""
    if out is None:
        return []
    folders: dict[str, str] = {}
    for benchmark in benchmarks:
        name = run_folder(out, benchmark).name
        if name.casefold() in folders:
            raise InputError(
                "two benchmarks would be written to one run folder",
                where=out / name,
                given=f"{folders[name.casefold()]} and {benchmark}",
                hint="evaluate them in two calls with two --out",
            )
        folders[name.casefold()] = benchmark
    whose = partial(why_foreign, scorer=scorer)
    return [Folder(run_folder(out, each), FILES, whose, alone=True) for each in benchmarks]


def check_identity(folder: Path, scorer: str, identity: Identity) -> None:
    """Raise `InputError` where the run there is of a scorer that has the same name but is another."""
    if guard.overwriting() or not (folder / "manifest.json").exists():
        return
    why = why_foreign(folder, scorer=scorer, identity=(identity.name, identity.key))
    if why is not None:
        raise InputError(why, where=folder, hint="name another folder, or replace it with --overwrite")
