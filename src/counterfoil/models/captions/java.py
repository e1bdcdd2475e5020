"""METEOR 1.5 and SPICE 1.0: the Java programs of pycocoevalcap, and how they are run.

METEOR answers lines with lines: it is started once, kept, and ended with this program. SPICE reads and writes
files; its parser is a download of its own.
"""

import atexit
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from threading import Lock, Timer
from typing import IO, NamedTuple, cast

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from counterfoil.errors import InputError, MissingExtraError, ModelError
from counterfoil.store import write_json

#: Lines that Java prints in any case; they explain no failure.
_CHATTER = ("Picked up ", "NOTE: Picked up ", "... ")

#: Lines that are written at once; their answers together are smaller than a pipe.
_BLOCK = 64

_INSTALL = "install a Java runtime, version 8 or later (such as the package default-jre-headless or openjdk)"


class Child:
    """A program with pipes to it: lines go in, lines come out.

    `command` is started at once, in the folder `place`; `name` stands in messages. `patience` is how many
    seconds a block of lines may take. Raises `ModelError` in one line where the program ends, stays silent
    that long, or cannot be started; then it is over, and asking again says so too.

    >>> from contextlib import closing
    >>> from sys import executable
    >>> echo = [executable, "-uc", "import sys; [print(line.upper(), end='') for line in sys.stdin]"]
    >>> with closing(Child(echo, name="echo")) as child:
    ...     child.ask(["one", "two"])
    ['ONE', 'TWO']
    """

    def __init__(
        self, command: Sequence[str], *, name: str, place: Path | None = None, patience: float = 300
    ) -> None:
        self.name, self._patience, self._busy, self._late = name, patience, Lock(), False
        # A file and no pipe, which would fill up where nobody reads it.
        self._complaints = TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115
        try:
            self.process = subprocess.Popen(
                command,
                cwd=place,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._complaints,
                encoding="utf-8",
                errors="replace",
            )
        except OSError as error:
            self._complaints.close()
            raise _not_started(error, name, command) from None
        self._in, self._out = (cast(IO[str], pipe) for pipe in (self.process.stdin, self.process.stdout))

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self.process.poll() is None

    def ask(self, lines: Sequence[str], answers: int | None = None) -> list[str]:
        """The program's answers to `lines`, one to each unless `answers` says how many to all of them.

        A block of lines is written when all before it are answered, so that neither pipe fills up. No line
        may hold a line break; `InputError` says which one does.
        """
        for at, line in enumerate(lines):
            if "\n" in line or "\r" in line:
                raise InputError("a line break within a line", where=f"{self.name}, line {at + 1}")
        replies: list[str] = []
        with self._busy:
            if not self.alive:
                raise self._ended()
            try:
                for start in range(0, len(lines), _BLOCK):
                    block = lines[start : start + _BLOCK]
                    watch = Timer(self._patience, self._give_up)
                    watch.start()
                    try:
                        # Where it has ended, its answers are missing, and that is reported.
                        with suppress(OSError):
                            self._in.write("\n".join(block) + "\n")
                            self._in.flush()
                        replies += [self._next() for _ in range(answers or len(block))]
                    finally:
                        watch.cancel()
            except BaseException:
                # What it had answered would be taken for answers to the next request.
                self.process.kill()
                self.process.wait()
                raise
        return replies

    def close(self) -> None:
        """Ends the program: by closing its input, and if it does not end then, by force."""
        with suppress(OSError):  # Where it is gone already.
            self._in.close()
        try:
            self.process.wait(1)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._out.close()
        self._complaints.close()

    def _give_up(self) -> None:
        self._late = True
        self.process.kill()

    def _next(self) -> str:
        line = self._out.readline()
        if not line:
            raise self._ended()
        return line.rstrip("\r\n")

    def _ended(self) -> ModelError:
        """Why there is no answer."""
        if self._late:
            problem = f"no answer within {self._patience:g} seconds; it was ended"
            return ModelError(problem, where=self.name)
        try:
            code = self.process.wait(5)
        except subprocess.TimeoutExpired:
            return ModelError("closed its output and runs on", where=self.name)
        self._complaints.seek(0)
        return ModelError(died(code, [*telling(self._complaints)]), where=self.name)


def _not_started(error: OSError, name: str, command: Sequence[str]) -> ModelError:
    return ModelError(f"cannot be started: {error.strerror}", where=name, given=command[0])


def telling(lines: Iterable[str]) -> Iterable[str]:
    """The lines that say something of a failure: neither blank, nor a place in a program, nor chatter.

    >>> list(telling(["NOTE: Picked up X", "Exception: no such file", "  at Main.main(Main.java:1)", ""]))
    ['Exception: no such file']
    """
    for line in lines:
        if line.strip() and not line.lstrip().startswith(_CHATTER) and not line.lstrip().startswith("at "):
            yield line.strip()


def died(code: int, complaints: Sequence[str]) -> str:
    """How a program ended, by its exit status and its last words.

    >>> died(1, ["Error: no space"]), died(-9, [])
    ('ended with status 1; it said last: Error: no space', 'was ended by signal 9; it said nothing')
    """
    how = f"was ended by signal {-code}" if code < 0 else f"ended with status {code}"
    return f"{how}; it said {f'last: {complaints[-1]}' if complaints else 'nothing'}"


def run(command: Sequence[str], *, name: str, patience: float) -> str:
    """Runs a program that reads and writes files, and gives back what it said; `ModelError` as `Child` does.

    >>> from sys import executable
    >>> run([executable, "-c", "import sys; sys.exit('no space')"], name="copy", patience=60)
    Traceback (most recent call last):
    counterfoil.errors.ModelError: copy: ended with status 1; it said last: no space
    """
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=patience,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ModelError(f"not done within {patience:g} seconds; it was ended", where=name) from None
    except OSError as error:
        raise _not_started(error, name, command) from None
    if done.returncode:
        raise ModelError(died(done.returncode, [*telling(done.stderr.splitlines())]), where=name)
    return done.stdout + done.stderr


def java(name: str) -> str:
    """Where `java` is; raises `ModelError` where PATH has none, for the metric `name`."""
    program = shutil.which("java")
    if program is None:
        raise ModelError("needs Java, and there is no program 'java' on PATH", where=name, hint=_INSTALL)
    return program


def folder(part: str) -> Path:
    """The folder of a part of pycocoevalcap ("meteor"), without importing it; else `MissingExtraError`."""
    spec = find_spec("pycocoevalcap")
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtraError("pycocoevalcap", "java")
    return Path(spec.submodule_search_locations[0]) / part


def file(path: Path, name: str, hint: str) -> Path:
    """`path` where there is such a file; else a `ModelError` for the metric `name` with what to do."""
    if not path.is_file():
        raise ModelError("a file is missing", where=name, given=path, hint=hint)
    return path


#: The programs that are kept, by process of ours and command.
_KEPT: dict[tuple[int, tuple[str, ...]], Child] = {}


def kept(command: Sequence[str], *, name: str, place: Path, patience: float) -> Child:
    """The child of a command, started where it does not run yet; it ends with this program."""
    # A fork inherits the pipes of its parent's children and must not write into them.
    key = (os.getpid(), tuple(command))
    child = _KEPT.get(key)
    if child is None or not child.alive:
        if child is not None:
            child.close()
        child = _KEPT[key] = Child(command, name=name, place=place, patience=patience)
    return child


def close_all() -> None:
    """Ends all programs that are kept."""
    for key in [key for key in _KEPT if key[0] == os.getpid()]:
        _KEPT.pop(key).close()


atexit.register(close_all)


#: Its name in messages.
METEOR = "metric:meteor"

#: The program's statistics of one candidate: lengths, function words, matches of each kind, chunks.
_STATISTICS = 23

#: As much memory as pycocoevalcap gives it, half of it at once; one collector suits a program of one thread.
_MEMORY = ("-Xms1G", "-Xmx2G", "-XX:+UseSerialGC")

#: Seconds without output after which the program is given up; it starts in a few.
_METEOR_PATIENCE = 300.0


class Meteor(NamedTuple):
    """METEOR of a load: (n,) per candidate, and of all candidates together; both in [0, 1]."""

    items: Float[ndarray, "n"]
    corpus: float


def meteor(candidates: Sequence[str], references: Sequence[Sequence[str]]) -> Meteor:
    """METEOR of each candidate against the best of its references, and of all candidates as one text.

    The value of the whole is not the mean: the counts of all candidates are added up first, as METEOR and
    pycocoevalcap report it. Options are those of pycocoevalcap: English, with METEOR's own normalisation of
    punctuation (`-l en -norm`). In the captions `|||`, which stands between captions on the way to the
    program, is left out, and white space is one blank. An empty candidate gets 0, and so does one whose
    references are all empty.

    The program keeps about a gigabyte of data in memory, loads it for some seconds once, and ends with this
    one.

    Raises `MissingExtraError` without pycocoevalcap, `ModelError` without Java or a file of METEOR's, or
    where the program fails.

    Source: PAC-S, section 2; Denkowski and Lavie (2014).
    """
    if not candidates:
        return Meteor(np.zeros(0), 0.0)
    questions = [
        " ||| ".join(("SCORE", *map(_plain, own), _plain(candidate)))
        for candidate, own in zip(candidates, references, strict=True)
    ]
    child = kept(meteor_command(), name=METEOR, place=folder("meteor"), patience=_METEOR_PATIENCE)
    statistics = child.ask(questions)
    for line in statistics:
        if len(line.split()) != _STATISTICS:
            raise ModelError("not the statistics of a candidate", where=METEOR, given=line or "(nothing)")
    # The whole is more than a sum of counts, so that one of them values them all.
    replies = child.ask([" ||| ".join(("EVAL", *statistics))], answers=len(statistics) + 1)
    try:
        *items, corpus = map(float, replies)
    except ValueError:
        raise ModelError("not a score", where=METEOR, given=" ".join(replies)[:80]) from None
    return Meteor(np.array(items), corpus)


def _plain(text: str) -> str:
    """A caption that is one caption to the program.

    >>> _plain("a cat ||| a\\ndog"), _plain("|||")
    ('a cat a dog', '')
    """
    return " ".join(text.replace("|||", "").split())


def meteor_command() -> tuple[str, ...]:
    """How METEOR is started; raises what `meteor` raises of things that are missing."""
    place = folder("meteor")
    program = java(METEOR)
    again = "install pycocoevalcap again: pip install --force-reinstall 'counterfoil[java]'"
    jar = file(place / "meteor-1.5.jar", METEOR, again)
    file(place / "data" / "paraphrase-en.gz", METEOR, again)
    return (program, *_MEMORY, "-jar", str(jar), "-", "-", "-stdio", "-l", "en", "-norm")


#: Its name in messages.
SPICE = "metric:spice"

#: The parser, which is a download of its own: pycocoevalcap fetches it when it is first used.
PARSER = ("stanford-corenlp-3.6.0.jar", "stanford-corenlp-3.6.0-models.jar")

_ARCHIVE = "http://nlp.stanford.edu/software/stanford-corenlp-full-2015-12-09.zip"

#: Seconds that a load may take; the parser does some tens of captions in one.
_SPICE_PATIENCE = 6 * 3600.0

#: Java's JavaScript went with Java 15, and SPICE writes its results with it.
_LAST_WITH_SCRIPT = 14


def spice(
    candidates: Sequence[str], references: Sequence[Sequence[str]], *, models: Path | None = None
) -> Float[ndarray, "n"]:
    """SPICE of each candidate: the F-score of its facts against those of all its references, in [0, 1].

    A candidate or references in which no fact is found give 0. `models` is the folder that holds the
    parser's two files; by default `spice/lib` of pycocoevalcap. What the program parses is not kept.

    Raises `MissingExtraError` without pycocoevalcap; `ModelError` without Java, the parser, or something to
    write results with, or where the program fails.

    Source: PAC-S, section 2; Anderson et al. (2016). Up to how the program is called, as in pycocoevalcap.
    """
    if not candidates:
        return np.zeros(0)
    command = spice_command(models)
    with TemporaryDirectory(prefix="spice-") as folder:
        captions_file, answered = Path(folder, "captions.json"), Path(folder, "scores.json")
        rows = enumerate(zip(candidates, references, strict=True))
        captions = [{"image_id": at, "test": test, "refs": list(refs)} for at, (test, refs) in rows]
        write_json(captions_file, captions)
        whole = [*command, str(captions_file), "-out", str(answered), "-silent"]
        run(whole, name=SPICE, patience=_SPICE_PATIENCE)
        try:
            results = json.loads(answered.read_text(encoding="utf-8"))
            values = {int(row["image_id"]): float(row["scores"]["All"]["f"]) for row in results}
            scores = np.array([values[at] for at in range(len(candidates))])
        except (OSError, ValueError, KeyError, TypeError) as error:
            given = f"{type(error).__name__}: {error}"
            raise ModelError("left no scores that can be read", where=SPICE, given=given) from None
    if not np.isfinite(scores).all():
        raise ModelError("left a score that is no number", where=SPICE, given=scores[~np.isfinite(scores)][0])
    return scores


def spice_command(models: Path | None = None) -> tuple[str, ...]:
    """How SPICE is started; raises what `spice` raises of things that are missing."""
    place = folder("spice")
    library = place / "lib"
    program = java(SPICE)
    jar = file(place / "spice-1.0.jar", SPICE, "install pycocoevalcap again: pip install 'counterfoil[java]'")
    where = models or library
    hint = (
        f"SPICE needs the parser Stanford CoreNLP 3.6.0, which no package carries: fetch {_ARCHIVE} and put "
        f"{' and '.join(PARSER)} of it into that folder, or name theirs with --set models=FOLDER"
    )
    parser = [file(where / name, SPICE, hint) for name in PARSER]
    version = re.search(r'version "(?:1\.)?(\d+)', run([program, "-version"], name=SPICE, patience=60))
    brought = any(any(folder.glob("nashorn-core*.jar")) for folder in (where, library))
    if version and int(version[1]) > _LAST_WITH_SCRIPT and not brought:
        problem = "SPICE writes its results with the JavaScript of Java, which this Java has no more"
        allowed = f"Java 8 to {_LAST_WITH_SCRIPT}"
        hint = f"or put nashorn-core and the asm jars that it needs into {where}"
        raise ModelError(problem, where=SPICE, given=f"Java {version[1]}", allowed=allowed, hint=hint)
    others = sorted({*library.glob("*.jar"), *where.glob("*.jar")} - set(parser))
    path = os.pathsep.join(str(file) for file in (jar, *parser, *others))
    return (program, "-Xmx8G", "-Dfile.encoding=UTF-8", "-cp", path, "edu.anu.spice.SpiceScorer")
