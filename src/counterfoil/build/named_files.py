"""Files and folders that the settings of a step name, and what they hold: where it changes, steps run again.

A setting names them itself (a table, a folder of images), or within the name of a scorer or a model, such as
"lm:FOLDER", "open-clip:ARCH/FILE" or "diffusers:FOLDER".
"""

from collections.abc import Iterator
from dataclasses import fields
from functools import lru_cache
from pathlib import Path

from counterfoil.build.step import Step
from counterfoil.data.tables import EXTENSIONS
from counterfoil.errors import DataError
from counterfoil.outputs import existing_paths
from counterfoil.store import digest_file, digest_value


def digests_of_files(step: Step) -> dict[str, str]:
    """The digests of the files and folders that a step's settings name, by their names.

    Of a folder that a setting names itself, as that of a user's images, the names and sizes of its files
    count; of a model's also what they hold. What does not exist is left to the step.
    """
    found = {}
    for _, name in _named(step):
        path = Path(name)
        if path.is_file():
            found[name] = digest_file(path)
        elif path.is_dir():
            found[name] = listing(path)
    for path in existing_paths(_models(step)):
        if path.is_file():
            found[str(path)] = _content(path)
        elif path.is_dir():
            found[str(path)] = digest_value([[each, _content(file)] for each, file in _inside(path)])
    return found


def listing(folder: Path) -> str:
    """The digest of the names and sizes of the files in a folder."""
    return digest_value([[each, file.stat().st_size] for each, file in _inside(folder)])


def check_files(step: Step, *, where: object) -> None:
    """Raise `DataError` where a setting names a file or a folder, by its look, that does not exist."""
    for key, name in _named(step):
        path = Path(name)
        if (path.suffix.lower() in EXTENSIONS or len(path.parts) > 1) and not path.exists():
            raise DataError(
                "no such file or folder", where=f"{where}, {key}", given=name, hint="check the path"
            )


def _named(step: Step) -> Iterator[tuple[str, str]]:
    """The settings of a step that name files or folders, each with every name that it gives."""
    for each in fields(step):  # type: ignore[arg-type]
        value = getattr(step, each.name)
        if each.metadata.get("file") and value is not None:
            for name in value if isinstance(value, tuple) else (value,):
                yield each.name, name


def _models(step: Step) -> Iterator[str]:
    """Every name of a scorer or a model in a step's settings."""
    for each in fields(step):  # type: ignore[arg-type]
        value, words = getattr(step, each.name), each.metadata.get("model")
        if words is not None and value is not None:
            yield from (
                name for name in (value if isinstance(value, tuple) else (value,)) if name not in words
            )


def _inside(folder: Path) -> list[tuple[str, Path]]:
    """The files of a folder, by their names in it."""
    files = (each for each in folder.rglob("*") if each.is_file())
    return sorted((each.relative_to(folder).as_posix(), each) for each in files)


def _content(path: Path) -> str:
    # A step's key is asked for more than once, and weights are gigabytes.
    about = path.stat()
    return _digest(str(path.resolve()), about.st_size, about.st_mtime_ns)


@lru_cache(maxsize=4096)
def _digest(path: str, size: int, changed: int) -> str:
    """The digest of a file that is as it was when it was last asked for."""
    return digest_file(path)
