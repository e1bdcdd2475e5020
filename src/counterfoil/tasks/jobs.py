"""A job: one command whose work many ranks share, with nothing between them but a folder.

    job.json            the command, the folder it is run in, the number of ranks, versions of libraries
    cache/              finished work, unless the command names a cache of its own
    ranks/0003.json     written when rank 3 has ended its part

A rank runs the command, computes what no other rank does, and throws the result away; merging runs it once
more when everything is in the cache. So the result is the command's, and its bytes are those of one machine.
"""

import platform
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from counterfoil.data.answers import versions
from counterfoil.errors import DataError, InputError
from counterfoil.inputs.files import read_json
from counterfoil.store import digest_value, write_json

_FORMAT = "counterfoil job"


@dataclass(frozen=True)
class Job:
    """A command as its ranks share it, in `folder`; `place` is the folder in which it is run."""

    folder: Path
    command: tuple[str, ...]
    place: Path
    of: int
    versions: dict[str, str]

    @property
    def cache(self) -> Path:
        """Where finished work is kept, unless the command says where."""
        return self.folder / "cache"

    @property
    def digest(self) -> str:
        """A name for the command and the number of ranks."""
        return digest_value([list(self.command), str(self.place), self.of])

    @property
    def line(self) -> str:
        """The command as one line, to be read."""
        return " ".join(("counterfoil", *self.command))

    def check(self, command: Sequence[str], of: int | None) -> None:
        """Raise `InputError` where this is not the job of `command` (if any) and of `of` ranks (if named)."""
        if command and tuple(command) != self.command:
            raise InputError(
                "the job is of another command",
                where=self.folder,
                given=" ".join(command),
                allowed=" ".join(self.command),
                hint="every rank runs the same one; another command needs another folder",
            )
        if of is not None and of != self.of:
            raise InputError(
                "the job has another number of ranks", where=self.folder, given=of, allowed=str(self.of)
            )

    def check_versions(self) -> None:
        """Raise `InputError` where libraries here are not those the job was made with."""
        here = versions()
        other = [
            f"{name} {here.get(name, 'none')} for {self.versions.get(name, 'none')}"
            for name in sorted({*here, *self.versions})
            if here.get(name) != self.versions.get(name)
        ]
        if other:
            raise InputError(
                "libraries differ from those the job was made with",
                where=self.folder,
                given=", ".join(other),
                hint="install the same versions everywhere, or make the job again in another folder",
            )

    def finished(self) -> tuple[int, ...]:
        """The ranks that have ended their part of this very command, ascending."""
        found = []
        for path in sorted((self.folder / "ranks").glob("*.json")):
            note = read_json(path)
            if isinstance(note, dict) and note.get("digest") == self.digest:
                found.append(int(note["rank"]))
        return tuple(found)

    def missing(self) -> tuple[int, ...]:
        """The ranks that have not."""
        return tuple(sorted(set(range(self.of)) - set(self.finished())))

    def end(self, rank: int, seconds: float) -> None:
        """Note that a rank has ended its part."""
        note = {"rank": rank, "digest": self.digest, "host": platform.node(), "seconds": round(seconds, 1)}
        write_json(self.folder / "ranks" / f"{rank:04d}.json", {**note, "ended": round(time.time())})


def make_job(folder: Path, command: Sequence[str], of: int, place: Path) -> Job:
    """The job of a command in `folder`: made there, or the one that is there.

    Raises `InputError` where another job or anything else is there.
    """
    if of < 1:
        raise InputError("number of ranks", given=of, allowed="1 or more")
    if (folder / "job.json").exists():
        job = load_job(folder)
        job.check(command, of)
        return job
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError("holds other files and no job", where=folder, hint="choose another folder")
    job = Job(folder.absolute(), tuple(command), place, of, versions())
    content: dict[str, Any] = {
        "format": _FORMAT,
        "command": list(job.command),
        "folder": str(place),
        "ranks": of,
        "versions": job.versions,
    }
    write_json(folder / "job.json", content)
    return job


def load_job(folder: Path) -> Job:
    """The job in a folder; raises `InputError` where none is, `DataError` where its file is damaged."""
    path = folder / "job.json"
    if not path.is_file():
        raise InputError(
            "no such job",
            where=folder,
            hint="make it with 'counterfoil work FOLDER --of N -- COMMAND', on a disk that every rank sees",
        )
    found = read_json(path)
    try:
        if found["format"] != _FORMAT or not found["command"] or int(found["ranks"]) < 1:
            raise ValueError
        command = tuple(str(word) for word in found["command"])
        return Job(
            folder.absolute(), command, Path(found["folder"]), int(found["ranks"]), dict(found["versions"])
        )
    except (KeyError, TypeError, ValueError):
        raise DataError("is no job of this version of counterfoil", where=path) from None
