"""Terminal output: tables, notes, and progress on anything that takes more than two seconds.

Captions, ids, titles and names of files come from anywhere, and a terminal obeys what is in them: all output
passes `clean` on its way.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from counterfoil.errors import InputError

#: Called with the stage, how much of it is done, and of how much.
Report = Callable[[str, int, int], None]

#: What the command that runs was asked for: neither notes nor progress, or progress more often.
quiet = False
verbose = False

#: Progress appears only on work that takes longer than this many seconds.
PATIENCE = 2.0

#: Seconds between lines of progress where stderr is no terminal, and with --verbose.
EVERY, VERBOSE_EVERY = 30.0, 5.0


#: Control characters (C0 without tab and line feed, DEL, C1), marks that turn the direction of writing and
#: the invisible "tag" characters go; separators of lines and paragraphs become a blank; halves of surrogate
#: pairs, which have no bytes in UTF-8, become the replacement character.
_TABLE: dict[int, str | None] = {
    **dict.fromkeys([*range(0x09), *range(0x0B, 0x20), *range(0x7F, 0xA0)]),
    **dict.fromkeys([0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A), 0xFEFF]),
    **dict.fromkeys(range(0xE0000, 0xE0080)),
    0x2028: " ",
    0x2029: " ",
    **dict.fromkeys(range(0xD800, 0xE000), "�"),
}
#: The same characters as JSON writes them; those of ASCII are escaped there already, but for DEL.
_ESCAPES = {code: json.dumps(chr(code))[1:-1] for code in _TABLE if code > 0x7F} | {0x7F: "\\u007f"}


def clean(text: str) -> str:
    """The text without control characters; line feeds and tabs stay.

    >>> clean("a \\x1b[31mred\\x1b[0m \\u202egnp.exe \\udcff caption\\r")
    'a [31mred[0m gnp.exe � caption'
    """
    return text if text.isascii() and text.isprintable() else text.translate(_TABLE)


def escaped(written: str) -> str:
    """JSON in which such characters, which can stand in its strings only, are written as escapes."""
    return written.translate(_ESCAPES)


class _Clean(Console):
    """A console that shows text as it is: without control characters, markup and names of emoji."""

    def __init__(self, *, stderr: bool = False) -> None:
        # In a notebook too: text on the two streams, and no display of Rich's own.
        super().__init__(stderr=stderr, highlight=False, markup=False, emoji=False, force_jupyter=False)

    def on_broken_pipe(self) -> None:
        """Write no more, where Rich would end the program: files are still to be written."""
        drop_output()

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """As Rich does it, cleaned; Rich's own control codes are segments of their own kind."""
        for segment in super().render(renderable, options):
            text, style, control = segment
            yield segment if control else Segment(clean(text), style)


def drop_output() -> None:
    """Let standard output lead nowhere, once its reader (head, less) has left."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def out() -> Console:
    """Standard output: what a user asked for."""
    return _Clean()


def err() -> Console:
    """Standard error: notes, warnings and progress, so that output can be piped."""
    return _Clean(stderr=True)


def table_console(json: str | None) -> Console:
    """Where tables go: standard output, but for what `--json -` writes there."""
    return err() if json == "-" else out()


def note(text: str) -> None:
    """One line about what was decided or found, on stderr; none where the command is quiet."""
    if quiet:
        return
    err().print(Text(" ".join(text.split()), style="dim"), soft_wrap=True)


def warn(text: str) -> None:
    """One line a user should not miss, on stderr."""
    err().print(Text.assemble(("warning:", "yellow"), " ", " ".join(text.split())), soft_wrap=True)


def confirmed(what: str) -> bool:
    """Whether the user wants `what` removed; raises `InputError` where there is no terminal to ask in."""
    if not sys.stdin.isatty():
        raise InputError("nothing was removed: no terminal to confirm in", given=what, hint="pass --yes")
    from rich.prompt import Confirm

    try:
        sure = Confirm.ask(Text(f"Remove {what}?"), console=err(), default=False)
    except EOFError:  # Ctrl-D
        sure = False
    if not sure:
        note("nothing was removed")
    return sure


@contextmanager
def levels(*, quiet: bool, verbose: bool) -> Iterator[None]:
    """A block, the run of a command, in which notes and progress are as it was asked for."""
    before = globals()["quiet"], globals()["verbose"]
    globals().update(quiet=quiet, verbose=verbose)
    try:
        yield
    finally:
        globals().update(zip(("quiet", "verbose"), before, strict=True))


def write_result(target: str, value: Any) -> None:
    """JSON to a file, or to standard output where the target is '-'."""
    if target == "-":
        plain = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
        try:
            print(escaped(json.dumps(value, indent=2, ensure_ascii=plain, allow_nan=False)), flush=True)
        except BrokenPipeError:
            drop_output()
    else:
        from counterfoil.store import write_json

        write_json(Path(target), value)


@contextmanager
def busy(text: str, *, silent: bool = False) -> Iterator[None]:
    """A line on a terminal that says what is being waited for; an error gets it as a note."""
    console = err()
    shown = nullcontext() if silent or quiet or not console.is_terminal else console.status(Text(text))
    try:
        with shown:
            yield
    except Exception as error:
        error.add_note(f"while {text}")
        raise


@contextmanager
def progress(*, silent: bool = False) -> Iterator[Report]:
    """A function (stage, done, total) that shows a bar, after two seconds of a stage.

    Where stderr is no terminal a line is written every half minute, with --verbose and in a notebook more
    often.
    """
    console = err()
    if silent or quiet:
        yield lambda stage, done, total: None
        return
    if not console.is_terminal:
        yield _lines(VERBOSE_EVERY if verbose or "ipykernel" in sys.modules else EVERY)
        return
    from rich import progress as rich

    bars = rich.Progress(
        rich.SpinnerColumn(),
        rich.TextColumn("{task.description}", markup=False),
        rich.BarColumn(bar_width=None),
        rich.MofNCompleteColumn(),
        rich.TextColumn("{task.fields[rate]}", markup=False),
        rich.TimeRemainingColumn(),
        console=console,
        transient=True,
    )
    tasks: dict[str, rich.TaskID] = {}
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


def _lines(every: float) -> Report:
    """A report that writes a line about the stage at hand at a steady interval."""
    started: dict[str, tuple[float, int]] = {}
    last = time.monotonic()

    def report(stage: str, done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        since, first = started.setdefault(stage, (now, done))
        if now - last >= every:
            last = now
            rate = (done - first) / max(now - since, 1e-9)
            left = f", about {(total - done) / rate:,.0f} s left" if rate > 0 and done < total else ""
            note(f"{stage}: {done:,} of {total:,}{left}")
        if done >= total:
            started.pop(stage)

    return report
