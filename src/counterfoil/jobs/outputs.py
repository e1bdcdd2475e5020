"""Outputs of a task: guarded files, and run folders, none of which is written over another scorer's."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from counterfoil.errors import InputError
from counterfoil.evaluation.run import FILES, Run, find_runs, is_run_of
from counterfoil.jobs.job import SILENT, Feedback
from counterfoil.models.base import Identity
from counterfoil.outputs import Folder, Outputs, active_outputs, existing_paths, guarding, overwriting
from counterfoil.store import write_text


@contextmanager
def guarded(command: str, *, overwrite: bool = False, reads: Iterable[object] = ()) -> Iterator[Outputs]:
    """The guard of the command that runs; where there is none, one for the length of the block.

    `reads` are names and paths of what the task reads.
    """
    outputs = active_outputs() or Outputs(command, overwrite=overwrite)
    with guarding(outputs):
        outputs.read(*existing_paths(reads))
        yield outputs


@contextmanager
def guarded_file(path: str | Path, *, command: str, overwrite: bool) -> Iterator[None]:
    """A block in which `command` writes one file; a command line has declared its outputs before.

    Raises `InputError` where the file exists, unless `overwrite`.
    """
    declared = active_outputs() is not None
    with guarded(command, overwrite=overwrite) as outputs:
        if not declared:
            outputs.file(Path(path))
        yield


def write(path: str | Path, text: str, *, command: str, overwrite: bool) -> None:
    """Write a text file as `guarded_file` allows it."""
    with guarded_file(path, command=command, overwrite=overwrite):
        write_text(Path(path), text)


def load_runs(runs: Sequence[Run | str | Path], feedback: Feedback = SILENT) -> list[Run]:
    """The runs among `runs`, then those in folders (however deep); raises `InputError` for none."""
    loaded = [run for run in runs if isinstance(run, Run)]
    folders = [run for run in runs if not isinstance(run, Run)]
    if folders:
        loaded += find_runs(folders, note=feedback.note)
    if not loaded:
        raise InputError("no runs", hint="give runs, run folders, or folders of them")
    return loaded


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
    resumes = partial(is_run_of, scorer=scorer)
    return [Folder(run_folder(out, name_of_run), FILES, resumes, alone=True) for name_of_run in benchmarks]


def check_identity(folder: Path, scorer: str, identity: Identity) -> None:
    """Raise `InputError` where the run there is of a scorer that has the same name but is another."""
    if overwriting() or not (folder / "manifest.json").exists():
        return
    if not is_run_of(folder, scorer=scorer, identity=(identity.name, identity.key)):
        raise InputError(
            "the folder holds a run of another scorer of this name",
            where=folder,
            hint="name another folder, or replace it with --overwrite",
        )
