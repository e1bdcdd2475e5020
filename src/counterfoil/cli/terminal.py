"""What the terminal shows: tables, notes, and progress on anything that takes more than two seconds."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

from counterfoil.errors import InputError
from counterfoil.store import check_writable, write_json

#: Progress appears only on work that takes longer than this many seconds.
PATIENCE = 2.0

Report = Callable[[str, int, int], None]


def out() -> Console:
    """Standard output: what a user asked for."""
    return Console(highlight=False)


def err() -> Console:
    """Standard error: notes, warnings and progress, so that output can be piped."""
    return Console(stderr=True, highlight=False)


def note(text: str) -> None:
    """One line about what was decided or found, on stderr."""
    err().print(f"[dim]{_escape(text)}[/dim]", soft_wrap=True)


def warn(text: str) -> None:
    """One line a user should not miss, on stderr."""
    err().print(f"[yellow]warning:[/yellow] {_escape(text)}", soft_wrap=True)


def check_targets(*files: str | Path | None, plot: Path | None = None, folder: Path | None = None) -> None:
    """Raise `CounterfoilError` where results cannot be written, before work is spent on them; "-" can be."""
    named = [file for file in (*files, plot) if file is not None and file != "-"]
    for file in named:
        check_writable(file)
    places = [Path(file).resolve() for file in named]
    twice = next((file for k, file in enumerate(named) if places[k] in places[:k]), None)
    if twice is not None:
        raise InputError("two results would be written to one file", given=str(twice), hint="name another")
    if folder is not None:
        check_writable(folder, folder=True)
    if plot is not None:
        from counterfoil.report.drawing import kind_of

        kind_of(plot)


def write_result(target: str, value: Any) -> None:
    """JSON to a file, or to standard output where the target is '-'."""
    if target == "-":
        print(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))
    else:
        write_json(Path(target), value)


@contextmanager
def busy(text: str, *, quiet: bool = False) -> Iterator[None]:
    """A line that says what is being waited for, gone when it is over; only on a terminal."""
    console = err()
    if quiet or not console.is_terminal:
        yield
        return
    with console.status(_escape(text)):
        yield


@contextmanager
def progress(*, quiet: bool = False) -> Iterator[Report]:
    """A function (stage, done, total) that shows a bar with rate and time left.

    Nothing is shown for the first two seconds of a stage, when quiet, or when stderr is no terminal.
    """
    console = err()
    if quiet or not console.is_terminal:
        yield lambda stage, done, total: None
        return
    bars = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    )
    tasks: dict[str, TaskID] = {}
    started: dict[str, tuple[float, int]] = {}

    def report(stage: str, done: int, total: int) -> None:
        now = time.monotonic()
        since, first = started.setdefault(stage, (now, done))
        if now - since > PATIENCE and stage not in tasks and done < total:
            if not bars.live.is_started:
                bars.start()
            tasks[stage] = bars.add_task(stage, total=total, rate="")
        if stage in tasks:
            rate = (done - first) / max(now - since, 1e-9)
            bars.update(tasks[stage], completed=done, total=total, rate=f"{rate:,.1f}/s")
        if done >= total:
            # What is over goes, and may begin again.
            started.pop(stage)
            if stage in tasks:
                bars.remove_task(tasks.pop(stage))
            if not tasks and bars.live.is_started:
                bars.stop()

    try:
        yield report
    finally:
        if bars.live.is_started:
            bars.stop()


def _escape(text: str) -> str:
    from rich.markup import escape

    return escape(text)
