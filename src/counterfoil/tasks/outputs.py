"""Outputs of a task: the guard of the command that calls it, or one of its own."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from counterfoil.outputs import guard
from counterfoil.outputs.guard import Outputs
from counterfoil.store import write_text


@contextmanager
def guarded(command: str, *, overwrite: bool = False, reads: Iterable[object] = ()) -> Iterator[Outputs]:
    """The guard of the command that runs; where there is none, one for the length of the block.

    `reads` are names and paths of what the task reads.
    """
    outputs = guard.active() or Outputs(command, overwrite=overwrite)
    with guard.guarding(outputs):
        outputs.read(*guard.existing(reads))
        yield outputs


@contextmanager
def guarded_file(path: str | Path, *, command: str, form: str | None, overwrite: bool) -> Iterator[None]:
    """A block that writes one file; from Python it replaces what `command` wrote, else by `overwrite`.

    `form` is how the file holds the mark of its writer (`counterfoil.outputs.marks`), None where it holds
    none. A command line has declared its outputs before. Raises `InputError` where another file is there.
    """
    if guard.active() is not None:
        yield
        return
    outputs = Outputs(command, overwrite=overwrite)
    outputs.file(Path(path), form)
    with guard.guarding(outputs):
        yield


def write(path: str | Path, text: str, *, command: str, form: str | None, overwrite: bool) -> None:
    """Write a text file as `guarded_file` allows it."""
    with guarded_file(path, command=command, form=form, overwrite=overwrite):
        write_text(Path(path), text)
