"""Paths of a command: outputs declared before it does any work, and the user's folders."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from counterfoil.errors import InputError
from counterfoil.outputs import Folder, Outputs, active_outputs, existing_paths, guarding
from counterfoil.store import check_writable

#: Options that name what is written; all other arguments that name a file or a folder are read.
WRITTEN = frozenset(
    {"out", "to", "json", "html", "markdown", "latex", "csv", "plot", "save", "cache", "dropped", "keep"}
)


@contextmanager
def guarded(command: str, arguments: Mapping[str, Any], data: Path) -> Iterator[Outputs]:
    """Guard what `command` reads, as its arguments name it, until the block ends.

    `data` is the folder of benchmark files where no argument names one.
    """
    read = {name: value for name, value in arguments.items() if name not in WRITTEN}
    if "data" in read and not read["data"]:
        read["data"] = data
    # A path or a text, or what an argument lists of these.
    lists = (value if isinstance(value, list | tuple) else (value,) for value in read.values())
    inputs = existing_paths(text for texts in lists for text in texts if isinstance(text, str | Path))
    outputs = Outputs(command, overwrite=bool(arguments.get("overwrite")), reads=inputs)
    with guarding(outputs):
        yield outputs


def check(*, folders: Sequence[Folder] = (), **files: str | Path | None) -> None:
    """Declare outputs by option; raises `CounterfoilError` where one of them cannot or must not be written.

    `files` are named after their options. "-" is standard output.
    """
    outputs = active_outputs() or Outputs("")
    for option, target in files.items():
        if target is None or target == "-":
            continue
        if str(target) == "":
            raise InputError("no name of a file", where=f"--{option}", given="(empty)", hint="name a file")
        path = Path(target)
        check_writable(path)
        if option == "plot":
            from counterfoil.report.drawing import kind_of

            kind_of(path)
        outputs.file(path)
    for folder in folders:
        check_writable(folder.path, folder=True)
        outputs.folder(folder)


def not_read(*names: str) -> None:
    """Take arguments away that name something else than the file or folder of the same name."""
    outputs = active_outputs()
    if outputs is not None:
        outputs.reads[:] = [path for path in outputs.reads if str(path) not in names]
