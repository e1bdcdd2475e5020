"""`counterfoil work` and `counterfoil merge`: one command shared by many ranks, as in a job array."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from counterfoil.cli import replay
from counterfoil.cli.options import Quiet
from counterfoil.errors import InputError

if TYPE_CHECKING:
    from counterfoil.tasks.jobs import Job

WORK_EPILOG = """Examples:

  counterfoil work runs/job --of 64 -- evaluate vqa:Qwen/Qwen3-VL-4B-Instruct bivlc --out runs/qwen

  counterfoil work runs/job --rank $SLURM_ARRAY_TASK_ID --of 64

  counterfoil work runs/job

  counterfoil merge runs/job"""

MERGE_EPILOG = """Examples:

  counterfoil merge runs/job

  counterfoil merge runs/job --unfinished"""

_Folder = Annotated[
    Path, typer.Argument(metavar="JOB", help="Folder of the job, on a disk that every rank sees.")
]


def work(
    job: _Folder,
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- COMMAND ...]", help="The command, when the job is made."),
    ] = None,
    rank: Annotated[int | None, typer.Option(help="Do the part of this rank, from 0.")] = None,
    of: Annotated[int | None, typer.Option(help="Number of ranks.")] = None,
    quiet: Quiet = False,
) -> None:
    """Share the work of one command among ranks: processes on any machines that see one folder.

    With a COMMAND behind -- the job is made; with --rank a part of it is computed; with neither it shows
    which ranks have ended. Ranks may start in any order and at any time, be killed, and be started again:
    what one of them leaves is done by another. 'counterfoil merge' then gives the result.
    """
    import time

    from counterfoil.cli import terminal
    from counterfoil.engine.executor import RankExecutor
    from counterfoil.tasks.jobs import load_job, make_job

    if command:
        if of is None:
            raise InputError("how many ranks share the job?", hint="name their number: --of 64")
        # Nothing is written for a command that no rank could run, or a rank that there is not.
        if replay.prepared(command).params["no_cache"]:
            raise InputError("work that ranks share needs a cache", given="--no-cache", hint="leave it out")
        if rank is not None:
            RankExecutor(rank, of)
        found = make_job(job, command, of, Path.cwd())
    else:
        found = load_job(job)
        found.check((), of)
    if rank is None:
        _show(found)
        return
    executor = RankExecutor(rank, found.of)
    found.check_versions()
    began = time.monotonic()
    with _in_place(found), replay.thrown_away(quiet=quiet) as results:
        replay.run(replay.prepared(found.command), results, executor=executor, cache=found.cache)
    found.end(rank, time.monotonic() - began)
    if not quiet:
        left = len(found.missing())
        terminal.note(
            f"rank {rank} of {found.of} has ended in {time.monotonic() - began:,.0f} s; "
            + (f"{left:,} to end" if left else f"all have: counterfoil merge {job}")
        )


def merge(
    job: _Folder,
    unfinished: Annotated[
        bool, typer.Option("--unfinished", help="Compute here what ranks that have not ended left.")
    ] = False,
) -> None:
    """Give the result of a job: its command is run once more, with everything computed by the ranks."""
    import sys

    from counterfoil.tasks.jobs import load_job

    found = load_job(job)
    found.check_versions()
    missing = found.missing()
    if missing and not unfinished:
        raise InputError(
            f"{len(missing):,} of {found.of:,} ranks have not ended",
            where=found.folder,
            given=_ranges(missing),
            hint="start them again, or compute the rest here with --unfinished",
        )
    with _in_place(found):
        # Results say how they were made: by this command.
        sys.argv = [sys.argv[0], *found.command]
        replay.run(replay.prepared(found.command), cache=found.cache)


@contextmanager
def _in_place(job: "Job") -> Iterator[None]:
    """In the folder of the job's command, so that its relative paths are what they were."""
    import os

    before = Path.cwd()
    try:
        os.chdir(job.place)
    except OSError as error:
        raise InputError(
            "the folder in which the job was made is not at hand here", where=job.place, given=error.strerror
        ) from None
    try:
        yield
    finally:
        os.chdir(before)


def _show(job: "Job") -> None:
    """Which ranks have ended, and what to do next."""
    from rich.text import Text

    from counterfoil.cli import terminal

    missing = job.missing()
    console = terminal.out()
    console.print(Text(job.line, style="bold"))
    console.print(Text(f"{job.of - len(missing):,} of {job.of:,} ranks have ended"))
    if missing:
        console.print(Text(f"to do: {_ranges(missing)}", style="dim"))
        console.print(Text(f"each: counterfoil work {job.folder} --rank R --of {job.of}", style="dim"))
    else:
        console.print(Text(f"next: counterfoil merge {job.folder}", style="dim"))


def _ranges(ranks: tuple[int, ...]) -> str:
    """Ranks as a job array takes them.

    >>> _ranges((0, 1, 2, 5, 7, 8))
    '0-2,5,7-8'
    """
    parts: list[list[int]] = []
    for rank in ranks:
        if parts and rank == parts[-1][-1] + 1:
            parts[-1][1:] = [rank]
        else:
            parts.append([rank])
    return ",".join("-".join(map(str, part)) for part in parts)
