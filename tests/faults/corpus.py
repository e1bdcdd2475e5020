"""The corpus of bad inputs: a table of (class, what is bad, command line), and what is said of each.

Files: every class of damage that a format has is done to one of the files of that format, and every file has
one. Which one a hash decides, so that a new file or class leaves nearly all others where they are. Options,
models, contents and refusals: as they stand in `contents` and `refusals`.
"""

import hashlib
import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from faults.command import Ended, states
from faults.command_lines import READERS
from faults.contents import CONTENTS
from faults.damage import damages
from faults.refusals import MODELS, OPTIONS, REFUSALS
from faults.urls import BAD_URLS, Surroundings

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
        (".txt", "cut-at-the-end"),
        # A campaign without a database has no answers yet.
        (".sqlite", "cut-at-the-end missing"),
        (".jsonl", "first-nul first-hostile doubled latin-1"),
    )
    for kind in kinds.split()
)
#: A field that no model reads, and the scale that no cosine needs; a file that a tokenizer need not have; an
#: image or an answer less, which a note counts; a number that nothing reads; a result that is not there.
HARMLESS |= {
    (kind, file)
    for file, kinds in (
        (
            "clip/config.json",
            "first-a-number first-true first-null first-a-list first-an-object first-huge first-key-gone",
        ),
        ("clip/model.safetensors", "renamed"),
        (
            "clip/tokenizer_config.json",
            "missing folder link-loop a-device empty-object first-null first-key-gone wrapped",
        ),
        ("candidates.json", "first-key-gone"),
        ("sugarcrepe/swap_att.json", "first-key-gone"),
        ("answers.csv", "first-cell-empty"),
        ("judged.csv", "first-cell-empty"),
        ("released/detectors/bivlc_CLIP_baseline.csv", "missing link-loop"),
    )
    for kind in kinds.split()
}
#: Formats in which a changed value may be as good as any other.
BINARY = (".parquet", ".pt", ".npz", ".npy")


#: Whether the input must be refused, may be taken, or must be taken.
Wanted = str
REFUSED, EITHER, TAKEN = "refused", "either", "taken"


def wanted(kind: str, file: str) -> Wanted:
    """Whether a command that reads a file with this damage may also succeed."""
    suffix = Path(file).suffix
    return EITHER if suffix in BINARY or {(kind, suffix), (kind, file)} & HARMLESS else REFUSED


@dataclass(frozen=True)
class Case:
    """One bad input: its class, what is bad, and the command that meets it."""

    kind: str
    subject: str
    command: tuple[str, ...]
    #: One of these is in the line about the error.
    expected: tuple[str, ...] = ("",)
    wanted: Wanted = REFUSED
    #: What is done to the folder before.
    prepare: Callable[[Path], object] = lambda folder: None
    #: Outputs that another command is writing.
    held: tuple[str, ...] = ()
    #: What a server answers that the command reaches as {address}; and environment variables.
    answer: str = ""
    environment: tuple[tuple[str, str], ...] = ()

    @property
    def out(self) -> str:
        """The folder that the command is told to write, or what no file is called."""
        if self.command[:2] == ("annotate", "approve"):
            return "campaign/"
        return self.command[self.command.index("--out") + 1] + "/" if "--out" in self.command else "//"

    @property
    def name(self) -> str:
        return f"{self.kind}-{self.subject[:40]}-{'-'.join(self.command[:2])[:30]}"


#: Longer than any line about an error is.
LONGEST = 1500
SECRET, KEY = "SECRET-OF-THE-MACHINE", "sk-very-secret-0123456789"


def check(case: Case, ended: Ended, before: dict[str, object], folder: Path) -> None:
    """One line that names what is wrong, or success; nothing changed since `before`, left or shown."""
    after = states(folder)
    # A download that stopped goes on from what is there.
    new = set(after) - set(before)
    if "fetch" in case.command:
        new = {name for name in new if not name.endswith(".part")}
    assert ended.code in {REFUSED: (2,), TAKEN: (0,)}.get(case.wanted, (0, 2)), ended.err
    # What a command was told to write it may replace: a training in its own folder. The lock of a process
    # that was killed is taken over.
    kept = {
        name: state
        for name, state in before.items()
        if name != ".killed.lock" and (ended.code or not name.startswith(case.out))
    }
    assert {name: after.get(name) for name in kept} == kept, "a file that was there is another one now"
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", ended.err + ended.out)
    assert "Hang:" not in ended.err
    assert "Traceback" not in ended.err
    if ended.code == 2:
        assert len(ended.lines) == 1, ended.err
        # What is refused before anything begins is refused by one line and nothing else.
        assert case.kind != "refusal" or (ended.out, ended.err.count("\n")) == ("", 1), ended.err
        assert ended.err.splitlines()[-1] == ended.lines[0]
        assert any(words in ended.lines[0] for words in case.expected), ended.lines[0]
        assert len(ended.lines[0]) < LONGEST
        assert not new, "something was left behind"
    written = [path for path in map(folder.joinpath, new) if path.is_file()]
    shown = [(ended.out + ended.err).encode(), *(path.read_bytes() for path in written)]
    secrets = (SECRET.encode(), b"root:x:0:0", KEY.encode())
    assert not any(secret in text for secret in secrets for text in shown)


def of_files() -> Iterator[Case]:
    """Damaged files: every class of damage of a format in one of its files, and one in each other file."""
    for suffix in dict.fromkeys(Path(file).suffix for file in READERS):
        files = [file for file in READERS if Path(file).suffix == suffix]
        kinds = list(damages(files[0]))
        pairs = {kind: max(files, key=lambda file, kind=kind: _drawn(kind, file)) for kind in kinds}
        spared = [file for file in files if file not in pairs.values()]
        chosen = list(pairs.items())
        chosen += [(max(kinds, key=lambda kind, file=file: _drawn(kind, file)), file) for file in spared]
        for kind, file in chosen:
            command = READERS[file][_drawn(file, kind) % len(READERS[file])]
            # Where two files do not fit each other either may be the one that is named.
            others = [item for item in READERS if item in command.split()]
            names = (Path(file).name, Path(file).stem, Path(file).parts[0], *others)

            def damage(folder: Path, kind: str = kind, file: str = file) -> None:
                damages(file)[kind](folder / file)

            yield Case(kind, file, tuple(command.split()), names, wanted(kind, file), damage)


def _drawn(*names: str) -> int:
    """A number that names alone decide."""
    return int.from_bytes(hashlib.blake2b("\0".join(names).encode(), digest_size=8).digest(), "big")


def of_contents() -> Iterator[Case]:
    for name, (content, command, words) in CONTENTS.items():

        def write(folder: Path, name: str = name, content: str = content) -> None:
            (folder / name).write_text(content)

        yield Case("content", name, (*command.split(), name), (words,), prepare=write)


def of_options() -> Iterator[Case]:
    command = ""
    for line in OPTIONS.strip().splitlines():
        start, _, row = line.partition("    " if line.startswith(" ") else " | ")
        command = start or command
        first, *others = shlex.split(row) or ("",)
        if first.startswith("--"):
            yield from (_of_option(command, first, value) for value in others)
        elif first:
            yield from (_of_option(command, *argument.split()) for argument in (first, *others))


def _of_option(command: str, option: str, value: str = "") -> Case:
    added = (option, value) if value or option.startswith("--") else (option,)
    key, _, setting = value.partition("=")
    words = (
        option.strip("-").rstrip("s"), value[:40], key[:40], setting, value.partition(":")[2], "given: inf",
    )  # fmt: skip
    return Case("option", f"{option} {value}", (*command.split(), *added), tuple(filter(None, words)))


def of_refusals() -> Iterator[Case]:
    for start, more in REFUSALS.items():
        for added, words in more.items():
            yield Case("refusal", f"{start} {added}", (*start.split(), *shlex.split(added)), (words,))


def of_models() -> Iterator[Case]:
    for benchmark, models in MODELS.items():
        for model in models.split():
            what, others = model.partition(":")[2], benchmark.split()
            expected = (what.partition("/")[0] or model, what.rpartition("/")[2] or model, *others)
            command = ("evaluate", model, *others, "--no-cache", "--draws", "100")
            yield Case("model", f"{model} {benchmark}", command, expected)


def of_benchmarks() -> Iterator[Case]:
    from counterfoil import catalog

    places = ("photos", "pairs.csv", "loop")
    for k, name in enumerate(catalog.BENCHMARKS):
        if name.startswith("world-"):
            continue
        data = places[k % len(places)]
        command = ("evaluate", "blind:random", name, "--data", data, "--no-cache", "--draws", "100")
        expected = EITHER if name in ("pairs", "gallery") else REFUSED
        yield Case("data", f"{name} {data}", command, (data, name, "file missing"), expected)


def of_urls(bucket: str) -> Iterator[tuple[Surroundings, Case]]:
    for around, command, words in BAD_URLS:
        line = command.format(bucket=bucket)
        yield around, Case("url", line.rpartition(" ")[2], tuple(line.split()), (words,))


def cases() -> list[Case]:
    return [*of_files(), *of_contents(), *of_options(), *of_models(), *of_benchmarks(), *of_refusals()]
