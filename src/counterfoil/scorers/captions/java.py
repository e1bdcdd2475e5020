"""Java programs that answer lines with lines: started once, kept, and ended with this one."""

import atexit
import os
import queue
import shutil
import subprocess
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from threading import Lock, Thread

from counterfoil.errors import InputError, MissingExtraError, ModelError

#: Java says these of itself on the way; they explain no failure.
_CHATTER = ("Picked up ", "NOTE: Picked up ", "... ")

#: Lines that are written at once.
_BLOCK = 4096

_INSTALL = "install a Java runtime, version 8 or later (such as the package default-jre-headless or openjdk)"


class Child:
    """A program with pipes to it: lines go in, lines come out.

    `command` is started at once, in the folder `place`; `name` stands in messages. `patience` is how many
    seconds may pass without a line while one is waited for. Raises `ModelError` in one line where the program
    ends, stays silent that long, or cannot be started; then it is over, and asking again says so too.

    >>> from sys import executable
    >>> echo = [executable, "-uc", "import sys; [print(line.upper(), end='') for line in sys.stdin]"]
    >>> with Child(echo, name="echo") as child:
    ...     child.ask(["one", "two"])
    ['ONE', 'TWO']
    """

    def __init__(
        self, command: Sequence[str], *, name: str, place: Path | None = None, patience: float = 300
    ) -> None:
        self.name = name
        self._patience = patience
        self._busy = Lock()
        self._answers: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._complaints: deque[str] = deque(maxlen=1)
        try:
            self._process = subprocess.Popen(
                command,
                cwd=place,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                encoding="utf-8",
                errors="replace",
            )
        except OSError as error:
            raise ModelError(f"cannot be started: {error.strerror}", where=name, given=command[0]) from None
        stdin, stdout, stderr = self._process.stdin, self._process.stdout, self._process.stderr
        assert stdin is not None
        assert stdout is not None
        assert stderr is not None
        self._in, self._out, self._err = stdin, stdout, stderr
        self._readers = [Thread(target=work, daemon=True) for work in (self._hear, self._overhear)]
        for reader in self._readers:
            reader.start()

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def ask(self, lines: Sequence[str], answers: int | None = None) -> list[str]:
        """The program's answers to `lines`, one to each unless `answers` says how many.

        Lines are written beside the reading of answers, so that there may be any number of both. No line may
        hold a line break; `InputError` says which one does.
        """
        for at, line in enumerate(lines):
            if "\n" in line or "\r" in line:
                raise InputError("a line break within a line", where=f"{self.name}, line {at + 1}")
        with self._busy:
            writer = Thread(target=self._tell, args=(lines,), daemon=True)
            try:
                writer.start()
                found = [self._next() for _ in range(len(lines) if answers is None else answers)]
                writer.join()
            except BaseException:
                # What it still has to say would be taken for answers to what it is asked next.
                self._process.kill()
                raise
        return found

    def close(self) -> None:
        """Ends the program: by the end of its input, and where it does not take the hint, by force."""
        with suppress(OSError):  # Where it is gone already.
            self._in.close()
        try:
            self._process.wait(1)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for reader in self._readers:
            reader.join()
        self._out.close()
        self._err.close()

    def __enter__(self) -> "Child":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _next(self) -> str:
        try:
            line = self._answers.get(timeout=self._patience)
        except queue.Empty:
            raise ModelError(
                f"no answer within {self._patience:g} seconds; it was ended", where=self.name
            ) from None
        if line is None:
            self._answers.put(None)  # For the next request.
            raise ModelError(self._death(), where=self.name)
        return line

    def _death(self) -> str:
        """How the program ended, and the last it said of it."""
        try:
            code = self._process.wait(5)
        except subprocess.TimeoutExpired:
            return "closed its output and runs on"
        self._readers[1].join(5)
        return died(code, self._complaints)

    def _tell(self, lines: Sequence[str]) -> None:
        try:
            for start in range(0, len(lines), _BLOCK):
                self._in.write("\n".join(lines[start : start + _BLOCK]) + "\n")
            self._in.flush()
        except (OSError, ValueError):
            pass  # It has ended: the reader of its answers reports that, with its last output.

    def _hear(self) -> None:
        for line in self._out:
            self._answers.put(line.rstrip("\r\n"))
        self._answers.put(None)

    def _overhear(self) -> None:
        self._complaints.extend(telling(self._err))


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
        raise ModelError(f"cannot be started: {error.strerror}", where=name, given=command[0]) from None
    if done.returncode:
        raise ModelError(died(done.returncode, [*telling(done.stderr.splitlines())]), where=name)
    return done.stdout + done.stderr


def java(name: str) -> str:
    """Where `java` is; raises `ModelError` where PATH has none, for the metric `name`."""
    found = shutil.which("java")
    if found is None:
        raise ModelError("needs Java, and there is no program 'java' on PATH", where=name, hint=_INSTALL)
    return found


def check_references(candidates: Sequence[str], references: Sequence[Sequence[str]], name: str) -> None:
    """Raises `InputError` where a candidate of the metric `name` has no references."""
    if len(candidates) != len(references):
        raise InputError(
            "not as many lists of references as candidates",
            where=name,
            given=len(references),
            allowed=str(len(candidates)),
        )
    for at, given in enumerate(references):
        if not given:
            raise InputError("no references", where=f"{name}, candidate {at + 1}", given=candidates[at])


def folder(part: str) -> Path:
    """The folder of a part of pycocoevalcap ("meteor"), without importing it; else `MissingExtraError`."""
    found = find_spec("pycocoevalcap")
    if found is None or not found.submodule_search_locations:
        raise MissingExtraError("pycocoevalcap", "java")
    return Path(found.submodule_search_locations[0]) / part


def file(path: Path, name: str, hint: str) -> Path:
    """`path` where there is such a file; else a `ModelError` for the metric `name` with what to do."""
    if not path.is_file():
        raise ModelError("a file is missing", where=name, given=path, hint=hint)
    return path


#: The programs that are kept, by process of ours, command, and which of several alike.
_KEPT: dict[tuple[int, tuple[str, ...], int], Child] = {}


def kept(command: Sequence[str], *, name: str, place: Path, patience: float, copies: int = 1) -> list[Child]:
    """`copies` children of one command, started where they do not run yet; they end with this program."""
    found = []
    for copy in range(copies):
        # A fork has the pipes of its parent's children, and must not speak into them.
        key = (os.getpid(), tuple(command), copy)
        child = _KEPT.get(key)
        if child is None or not child.alive:
            if child is not None:
                child.close()
            child = _KEPT[key] = Child(command, name=name, place=place, patience=patience)
        found.append(child)
    return found


def close_all() -> None:
    """Ends all programs that are kept."""
    for key in [key for key in _KEPT if key[0] == os.getpid()]:
        _KEPT.pop(key).close()


atexit.register(close_all)
