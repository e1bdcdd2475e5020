"""Paths of a command: outputs declared before it does any work, and the user's folders."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from counterfoil.errors import InputError
from counterfoil.inputs.secrets import secret
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
    inputs = existing_paths(text for value in read.values() for text in _texts(value))
    outputs = Outputs(command, overwrite=bool(arguments.get("overwrite")), reads=inputs)
    with guarding(outputs):
        yield outputs


def check(*, folders: Sequence[Folder] = (), reads: Sequence[Path] = (), **files: str | Path | None) -> None:
    """Declare outputs by option; raises `CounterfoilError` where one of them cannot or must not be written.

    `files` are named after their options. "-" is standard output. `reads` are files and folders that no
    argument names.
    """
    outputs = active_outputs() or Outputs("")
    outputs.read(*reads)
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


def also_read(*paths: Path | None) -> None:
    """Add what turns out to be read on the way; raises as `check` where an output would replace it."""
    outputs = active_outputs()
    if outputs is not None:
        outputs.read(*(path for path in paths if path is not None))


def not_read(*names: str) -> None:
    """Take arguments away that name something else than the file or folder of the same name."""
    outputs = active_outputs()
    if outputs is not None:
        outputs.reads[:] = [path for path in outputs.reads if str(path) not in names]


def _texts(value: Any) -> Iterable[object]:
    """The texts and paths in an argument: itself, or what it lists."""
    if isinstance(value, str | Path):
        return (value,)
    return value if isinstance(value, list | tuple) else ()


def cache_folder(named: Path | None) -> Path:
    """The folder of finished work: the one named, else COUNTERFOIL_CACHE, else the user's cache folder."""
    from counterfoil.storage.location import user_cache

    if named is not None:
        return named
    if own := os.environ.get("COUNTERFOIL_CACHE"):
        return Path(own)
    return user_cache()


def api_key(scorer: str, variable: str | None) -> str:
    """The key of a chat endpoint from the environment variable named, else from COUNTERFOIL_API_KEY; or none.

    Other scorers get none. Raises `InputError` for a variable that is named and not set.
    """
    kind = scorer.partition(":")[0]
    if kind != "chat":
        if variable is not None:
            raise InputError("--api-key-env is for chat endpoints", given=scorer, allowed="chat:URL#MODEL")
        return ""
    named = variable or "COUNTERFOIL_API_KEY"
    key = secret(os.environ.get(named, ""), where=named)
    if variable is not None and not key:
        raise InputError("the environment variable is not set", where="--api-key-env", given=variable)
    return key


def check_drawing(page: Path | None) -> None:
    """Raise `MissingExtraError` where a page is wanted and its figures cannot be drawn."""
    if page is not None:
        from counterfoil.report.drawing import check

        check()
