"""The corpus of bad inputs: a table of (class, what is bad, command line), and what is said of each.

Files: every class of damage that a format has is done to one of the files of that format, in turns. The
campaign does all of them to all, and many more. Options, scorers and contents: as they stand in `reading`.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from faults.damage import damages
from faults.reading import CONTENTS, OPTIONS, READERS, SCORERS

#: In how many of the files of a format each class of damage is done.
EACH = 1

#: Damages that leave the file sound for the command that reads it: (class, file or suffix). What such a
#: command prints is right, so it ends with 0 or with an error; never with a fault.
HARMLESS: frozenset[tuple[str, str]] = frozenset(
    (kind, suffix)
    for suffix, kinds in (
        (
            ".csv",
            "cut-at-the-end last-column-gone first-column-gone nan inf huge-number digits negative a-word "
            "all-the-same hostile latin-1 surrogate cells-empty long-name half semicolons",
        ),
        (
            ".tsv",
            "cut-at-the-end last-column-gone nan inf huge-number negative a-word all-the-same hostile digits "
            "semicolons",
        ),
        (".json", "first-nul first-hostile doubled latin-1 first-long key-twice"),
        (".png", "cut-at-the-end"),
        (".tar", "cut-at-the-end"),
        (".mp4", "cut-at-the-end"),
        # A campaign without a database has no answers yet.
        (".sqlite", "cut-at-the-end missing"),
        (".jsonl", "first-nul first-hostile doubled latin-1"),
    )
    for kind in kinds.split()
)
#: A field that no model reads, and the scale that no cosine needs.
HARMLESS |= {(kind, "clip/config.json") for kind in ("first-a-number", "first-true")}
HARMLESS |= {("renamed", "clip/model.safetensors")}
#: Formats in which a changed value may be as good as any other.
BINARY = (".parquet", ".pt", ".npz", ".npy")


@dataclass(frozen=True)
class Case:
    """One bad input: its class, what is bad, and the command that meets it."""

    kind: str
    subject: str
    command: tuple[str, ...]
    #: One of these is in the line about the error.
    expected: tuple[str, ...]
    #: Whether the command may also succeed.
    harmless: bool = False
    #: What the file called `subject` holds, where it is made for the case.
    content: str | None = None

    @property
    def out(self) -> str:
        """The folder that the command is told to write, or what no file is called."""
        return self.command[self.command.index("--out") + 1] + "/" if "--out" in self.command else "//"

    @property
    def name(self) -> str:
        """What the case is called in the list of tests."""
        return f"{self.kind}-{self.subject[:40]}-{'-'.join(self.command[:2])[:30]}"


def of_files() -> Iterator[Case]:
    """Damaged files: every class of damage of a format, each in the files that had the fewest so far."""
    done: Counter[str] = Counter()
    for suffix in dict.fromkeys(Path(file).suffix for file in READERS):
        files = [file for file in READERS if Path(file).suffix == suffix]
        for kind in damages(files[0]):
            for file in sorted(files, key=lambda file: done[file])[:EACH]:
                done[file] += 1
                command = READERS[file][done[file] % len(READERS[file])]
                harmless = bool({(kind, suffix), (kind, file)} & HARMLESS) or suffix in BINARY
                # Where two files do not fit each other either may be the one that is named.
                others = [each for each in READERS if each in command.split()]
                names = (Path(file).name, Path(file).stem, Path(file).parts[0], *others)
                yield Case(kind, file, tuple(command.split()), names, harmless)


def of_contents() -> Iterator[Case]:
    """Files that are sound in themselves and say what cannot be."""
    for name, (content, command, words) in CONTENTS.items():
        yield Case("content", name, (*command.split(), name), (words,), content=content)


def of_options() -> Iterator[Case]:
    """Options with values that they cannot have, and arguments that name nothing."""
    for command, options in OPTIONS.items():
        for option, values in options.items():
            for value in values:
                added = (option, value) if value or option.startswith("--") else (option,)
                key, _, setting = value.partition("=")
                words = (
                    option.strip("-").rstrip("s"),
                    value[:40],
                    key[:40],
                    setting,
                    value.partition(":")[2],
                )
                words = (*words, "given: inf")
                expected = tuple(each for each in words if each)
                yield Case("option", f"{option} {value}", (*command.split(), *added), expected)


def of_scorers() -> Iterator[Case]:
    """Scorers that cannot be."""
    for line in SCORERS:
        words = line.split()
        what = words[0].partition(":")[2]
        expected = (what.partition("/")[0] or words[0], what.rpartition("/")[2] or words[0], *words[1:])
        yield Case("scorer", line, ("evaluate", *words, "--no-cache", "--draws", "100"), expected)


def of_benchmarks() -> Iterator[Case]:
    """Every benchmark by name, with data that are missing or another's."""
    from counterfoil import catalog

    places = ("photos", "pairs.csv", "loop")
    for k, name in enumerate(catalog.benchmarks()):
        if name.startswith("world-"):
            continue
        data = places[k % len(places)]
        command = ("evaluate", "blind:random", name, "--data", data, "--no-cache", "--draws", "100")
        yield Case(
            "data",
            f"{name} {data}",
            command,
            (data, name, "file missing"),
            harmless=name in ("pairs", "gallery"),
        )


def cases() -> list[Case]:
    """The whole corpus."""
    return [*of_files(), *of_contents(), *of_options(), *of_scorers(), *of_benchmarks()]
