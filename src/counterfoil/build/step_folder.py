"""The artefact of a step: a folder with the rows it kept, those it dropped, and a manifest, written last."""

from contextlib import suppress
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
from pydantic import Field

from counterfoil.benchmarks.tables import EXTENSIONS
from counterfoil.build.step import Output, Step, names_in_settings
from counterfoil.errors import DataError
from counterfoil.inputs.columns import read_parquet
from counterfoil.inputs.files import Stored, digest_file, digest_value, read_model
from counterfoil.outputs import existing_paths
from counterfoil.store import write_json, write_parquet

ROWS, DROPPED, MANIFEST = "rows.parquet", "dropped.parquet", "manifest.json"
_FORMAT = "counterfoil step"


class StepRecord(Stored):
    """What the manifest of a finished step says; `label` is its place and name ("3-imagine")."""

    label: str = ""
    format: str
    step: str
    version: int
    settings: dict[str, Any]
    files: dict[str, str] = Field(repr=False)
    seed: int
    rows_from: str
    rows_in: int
    rows_out: int
    made: list[str]
    dropped: dict[str, int]
    facts: dict[str, Any] = Field(repr=False)
    tables: dict[str, str] = Field(repr=False)
    others: dict[str, str] = Field(repr=False)


@dataclass(frozen=True)
class StepFolder:
    """The folder of a step, in the folder `steps` of its build; `label` is the step's place and name."""

    folder: Path

    @property
    def label(self) -> str:
        return self.folder.name

    @property
    def _build(self) -> Path:
        return self.folder.parent.parent

    @property
    def is_own(self) -> bool:
        """Whether the folder holds nothing but what a step writes, the parts of a stopped one among it."""
        names = [path.name for path in self.folder.iterdir()] if self.folder.is_dir() else []
        return all(name in (ROWS, DROPPED, MANIFEST) or name.endswith(".part") for name in names)

    @property
    def is_finished(self) -> bool:
        try:
            return self.record().format == _FORMAT
        except DataError:
            return False

    def rows(self) -> pa.Table:
        return read_parquet(self.folder / ROWS)

    def dropped(self) -> pa.Table:
        """The rows that it dropped, with their reasons; an empty table where there are none."""
        return read_parquet(self.folder / DROPPED)

    def record(self) -> StepRecord:
        """What the manifest says; raises `DataError` where there is none, or it is damaged."""
        record = read_model(self.folder / MANIFEST, StepRecord)
        return record.model_copy(update={"label": self.label})

    def finished(self, step: Step, *, seed: int, rows_from: str) -> StepRecord | None:
        """The record where this very step was finished on these rows and its tables are whole, else None."""
        try:
            record = self.record()
            digests = [(self.folder / name, digest) for name, digest in record.tables.items()]
            digests += [(self._build / name, digest) for name, digest in record.others.items()]
            if any(digest_file(path) != digest for path, digest in digests):
                return None
        except (DataError, OSError):
            return None
        key = _key(step)
        same = digest_value({name: getattr(record, name) for name in key}) == digest_value(key)
        return record if same and (record.seed, record.rows_from) == (seed, rows_from) else None

    def save(self, step: Step, rows: pa.Table, output: Output, *, seed: int, rows_from: str) -> StepRecord:
        """Write the tables, then the manifest; a stop in between leaves an unfinished folder."""
        with suppress(FileNotFoundError):
            (self.folder / MANIFEST).unlink()
        dropped = output.dropped if output.dropped is not None else rows.schema.empty_table()
        write_parquet(self.folder / ROWS, output.kept.combine_chunks())
        write_parquet(self.folder / DROPPED, dropped.combine_chunks())
        manifest = {
            "format": _FORMAT,
            **_key(step),
            "seed": seed,
            "rows_from": rows_from,
            "rows_in": len(rows),
            "rows_out": len(output.kept),
            "made": [name for name in output.kept.column_names if name not in rows.column_names],
            "dropped": output.reasons,
            "facts": dict(output.facts),
            "tables": {name: digest_file(self.folder / name) for name in (ROWS, DROPPED)},
            "others": {name: digest_file(self._build / name) for name in output.files},
        }
        write_json(self.folder / MANIFEST, manifest)
        return self.record()


def _key(step: Step) -> dict[str, Any]:
    """What a step's result depends on besides its rows and the seed."""
    values = {parameter.name: getattr(step, parameter.name) for parameter in fields(step)}  # type: ignore[arg-type]
    return {
        "step": step.name,
        "version": step.version,
        "settings": {name: list(its) if isinstance(its, tuple) else its for name, its in values.items()},
        "files": digests_of_files(step),
    }


def digests_of_files(step: Step) -> dict[str, str]:
    """The digests of files and folders that settings name; of a user's folder, names and sizes."""
    digests = {}
    for _, name in names_in_settings(step, "file"):
        path = Path(name)
        if path.is_file():
            digests[name] = digest_file(path)
        elif path.is_dir():
            sizes = [[relative, file.stat().st_size] for relative, file in _inside(path)]
            digests[name] = digest_value(sizes)
    for path in existing_paths(name for _, name in names_in_settings(step, "model")):
        if path.is_file():
            digests[str(path)] = _content(path)
        elif path.is_dir():
            digests[str(path)] = digest_value([[name, _content(file)] for name, file in _inside(path)])
    return digests


def check_files(step: Step, *, where: object) -> None:
    """Raise `DataError` where a setting names a file or a folder, by its look, that does not exist."""
    for key, name in names_in_settings(step, "file"):
        path, place = Path(name), f"{where}, {key}"
        if (path.suffix.lower() in EXTENSIONS or len(path.parts) > 1) and not path.exists():
            raise DataError("no such file or folder", where=place, given=name, hint="check the path")


def _inside(folder: Path) -> list[tuple[str, Path]]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return sorted((path.relative_to(folder).as_posix(), path) for path in files)


#: The digest of a file by its path, size and time. Keys of steps are asked for often; weights are gigabytes.
_digest_once = lru_cache(maxsize=4096)(lambda path, size, changed: digest_file(path))


def _content(path: Path) -> str:
    about = path.stat()
    return _digest_once(str(path.resolve()), about.st_size, about.st_mtime_ns)
