"""Files that can be fetched: released benchmarks in public repositories, pinned to commits and checksums.

The facts are in `releases.toml`; `fetching` does the work.
"""

import tomllib
from functools import cache
from importlib.resources import files
from typing import Literal

from pydantic import BaseModel, ConfigDict

from counterfoil.errors import UnknownNameError

#: Where the files of each kind of repository are served from; `--mirror` puts another address in its place.
HOSTS = {"github": "https://raw.githubusercontent.com", "hub": "https://huggingface.co"}


class ReleasedFile(BaseModel):
    """One file of a release: its path in the repository, its size in bytes and its SHA-256 where known."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: str
    #: What it is called here; the last part of its path where empty.
    name: str = ""
    size: int | None = None
    sha256: str = ""

    @property
    def target(self) -> str:
        """The name of the file in the folder it is fetched to."""
        return self.name or self.path.rsplit("/", 1)[-1]


class Release(BaseModel):
    """The files of one repository at one commit; an empty `revision` means that none is known."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    title: str
    host: Literal["github", "hub"]
    repository: str
    revision: str = ""
    #: The benchmarks that are read from the folder once it is fetched.
    serves: tuple[str, ...] = ()
    #: What is needed besides, in words.
    needs: str = ""
    files: tuple[ReleasedFile, ...] = ()
    #: Of a data set of the hub, which of its files are wanted, as a pattern of their paths.
    select: str = ""


@cache
def releases() -> dict[str, Release]:
    """Every release by name, in the order of the file.

    >>> releases()["sugarcrepe"].repository
    'RAIVNLab/sugar-crepe'
    """
    rows = tomllib.loads(files("counterfoil.data").joinpath("releases.toml").read_text(encoding="utf-8"))
    return {name: Release(name=name, **facts) for name, facts in rows.items()}


def release(name: str) -> Release:
    """The release called `name`, or the one that serves the benchmark `name`; raises `UnknownNameError`.

    >>> release("cxc-sits").name
    'cxc'
    """
    known = releases()
    found = known.get(name) or serving(name)
    if found is None:
        raise UnknownNameError("release", name, known)
    return found


def serving(benchmark: str) -> Release | None:
    """The release whose files the benchmark called `benchmark` is read from, None where there is none."""
    return next((each for each in releases().values() if benchmark in each.serves), None)
