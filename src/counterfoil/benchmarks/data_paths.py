"""Paths of a benchmark's data: named by the user, or fetched earlier."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from counterfoil.benchmarks.benchmark import BENCHMARKS
from counterfoil.benchmarks.forms import FORMS
from counterfoil.errors import DataError, InputError
from counterfoil.storage import as_path, is_distant


def data_folder() -> Path:
    """The folder that fetched benchmarks are kept in: COUNTERFOIL_DATA, else the user's data folder."""
    if named := os.environ.get("COUNTERFOIL_DATA"):
        return Path(named)
    base = os.environ.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "counterfoil"


def fetched_data(benchmark: str) -> Path | None:
    """The folder that `counterfoil benchmarks fetch` filled for a benchmark; None where it is not whole."""
    from counterfoil.benchmarks.fetching import fetched, serving

    release = serving(benchmark)
    return None if release is None else fetched(release, data_folder())


@dataclass(frozen=True)
class Places:
    """Paths given with one option: one for all benchmarks, and paths for single ones.

    `option` is the option's name, for messages.
    """

    plain: Path | None = None
    named: Mapping[str, Path] = field(default_factory=dict)
    option: str = "--data"

    @classmethod
    def read(cls, values: Sequence[str], benchmarks: Sequence[str], *, option: str = "--data") -> "Places":
        """Values as the command line has them: PATH once, and NAME=PATH for each of some benchmarks.

        What stands before the first "=" is a name where it is that of a benchmark; a path that begins so can
        be written ./NAME=.... Raises `InputError` for two plain paths, a name twice, and a benchmark that
        is not asked about.

        >>> found = Places.read(["sugarcrepe=/", "."], ["sugarcrepe", "bivlc"])
        >>> str(found.plain), {name: str(path) for name, path in found.named.items()}
        ('.', {'sugarcrepe': '/'})
        """
        plain: Path | None = None
        named: dict[str, Path] = {}
        benchmarks = [BENCHMARKS.spelt(benchmark) for benchmark in benchmarks]
        for value in values:
            name, equals, path = value.partition("=")
            name = BENCHMARKS.spelt(name)
            if equals and (name in benchmarks or name in BENCHMARKS):
                if name not in benchmarks:
                    raise InputError(
                        f"{option} names a benchmark that is not asked about", given=value, allowed=benchmarks
                    )
                if not path:
                    raise InputError(f"{option} lacks a path", given=value, allowed=f"{name}=PATH")
                if name in named:
                    raise InputError(f"{option} names one benchmark twice", given=value)
                named[name] = as_path(path)
            elif not value:
                raise InputError(f"{option} lacks a path", allowed="PATH, or NAME=PATH")
            elif plain is not None:
                raise InputError(
                    f"{option} is given twice", given=value, allowed=f"{option} NAME=PATH for each benchmark"
                )
            else:
                plain = as_path(value)
        return cls(plain, named, option).check()

    def check(self) -> "Places":
        """This value; raises `DataError` where a path does not exist. A URL is looked at when it is read."""
        for given in (self.plain, *self.named.values()):
            if given is None or is_distant(given):
                continue
            if not given.exists():
                raise DataError("no such file or folder", where=given, hint=f"check {self.option}")
        return self

    def of(self, benchmark: str, *, many: bool) -> Path | None:
        """Where the data of a benchmark lie, None where nothing was named for it and nothing was fetched.

        A path of its own comes first. Of `many` benchmarks the plain path is a folder with one of each name
        (`PATH/NAME`); several sets of judged captions come in one folder, so of those one called as the first
        words of the name will do: flickr8k for flickr8k-expert. One that has no folder there is read from
        what was fetched, where it can be had so; the others from the path itself.
        """
        if benchmark in self.named:
            return self.named[benchmark]
        if self.plain is None or not many:
            return self.plain if self.plain is not None else fetched_data(benchmark)
        card = BENCHMARKS.get(benchmark)
        names = [benchmark]
        if card is not None and FORMS[card.form].judged:
            words = benchmark.split("-")
            names += ["-".join(words[:count]) for count in range(len(words) - 1, 0, -1)]
        for name in names:
            if (self.plain / name).exists():
                return self.plain / name
        if (folder := fetched_data(benchmark)) is not None:
            return folder
        return None if card is not None and card.hub else self.plain

    def images_of(self, benchmark: str) -> Path | None:
        """The folder of pictures for a benchmark: its own, else the plain one."""
        return self.named.get(benchmark, self.plain)
