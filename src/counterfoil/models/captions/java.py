"""METEOR 1.5 and SPICE 1.0: the Java programs of pycocoevalcap, and how they are run."""

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
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from counterfoil.errors import MissingExtraError, ModelError
from counterfoil.store import write_json

#: Lines that Java prints in any case; they explain no failure.
_CHATTER = ("Picked up ", "NOTE: Picked up ", "... ")
_INSTALL = "install a Java runtime, version 8 or later (such as the package default-jre-headless or openjdk)"


def telling(lines: Iterable[str]) -> Iterable[str]:
    for line in lines:
        if line.strip() and not line.lstrip().startswith(_CHATTER) and not line.lstrip().startswith("at "):
            yield line.strip()


def died(code: int, complaints: Sequence[str]) -> str:
    how = f"was ended by signal {-code}" if code < 0 else f"ended with status {code}"
    return f"{how}; it said {f'last: {complaints[-1]}' if complaints else 'nothing'}"


def run(command: Sequence[str], *, name: str, patience: float) -> str:
    try:
        how: dict[str, Any] = {"capture_output": True, "encoding": "utf-8", "errors": "replace"}
        done = subprocess.run(command, stdin=subprocess.DEVNULL, timeout=patience, **how)
    except subprocess.TimeoutExpired:
        raise ModelError(f"not done within {patience:g} seconds; it was ended", where=name) from None
    except OSError as error:
        problem = f"cannot be started: {error.strerror}"
        raise ModelError(problem, where=name, given=command[0]) from None
    if done.returncode:
        raise ModelError(died(done.returncode, [*telling(done.stderr.splitlines())]), where=name)
    return done.stdout + done.stderr


def java(name: str) -> str:
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
    if not path.is_file():
        raise ModelError("a file is missing", where=name, given=path, hint=hint)
    return path


METEOR, SPICE = "metric:meteor", "metric:spice"
_PATIENCE = 6 * 3600.0
#: The program that is kept, by process of ours: a fork must not write into the pipes of its parent's.
_PROGRAMS: dict[int, Any] = {}


class Meteor(NamedTuple):
    """METEOR of a load: (n,) per candidate, and of all candidates together; both in [0, 1]."""

    items: Float[ndarray, "n"]
    corpus: float


def meteor(candidates: Sequence[str], references: Sequence[Sequence[str]]) -> Meteor:
    """METEOR of each candidate against the best of its references, and of all candidates as one text.

    The value of the whole adds up the counts first. Options are those of pycocoevalcap (`-l en -norm`).
    `|||`, which stands between captions on the way to the program, is left out. An empty candidate gets 0,
    and so does one whose references are all empty. Source: PAC-S, section 2; Denkowski and Lavie (2014).
    """
    if not candidates:
        return Meteor(np.zeros(0), 0.0)
    check_meteor()
    from pycocoevalcap.meteor import meteor as official

    program = _PROGRAMS.get(os.getpid()) or _PROGRAMS.setdefault(os.getpid(), official.Meteor())
    try:
        corpus, items = program.compute_score(
            {i: list(map(_plain, texts)) for i, texts in enumerate(references)},
            {i: [_plain(text)] for i, text in enumerate(candidates)},
        )
    except BaseException as error:
        # What it had answered would be taken for answers to the next request.
        code, complaints = close_meteor()
        if not isinstance(error, OSError | ValueError):
            raise
        problem = "not a score" if code is None else died(code, complaints)
        raise ModelError(problem, where=METEOR) from None
    return Meteor(np.array(items), corpus)


def close_meteor() -> tuple[int | None, list[str]]:
    """End the program that is kept; how it had ended by itself, if it had, and its last words."""
    program = _PROGRAMS.pop(os.getpid(), None)
    if program is None:
        return None, []
    child, code = program.meteor_p, None
    # A request that failed holds the lock, which the class waits for when it goes.
    failed = not program.lock.acquire(blocking=False)
    with suppress(subprocess.TimeoutExpired):
        code = child.wait(2 if failed else 0)
    child.kill()
    _, words = child.communicate()
    program.lock.release()
    return code, [*telling(words.decode(errors="replace").splitlines())]


atexit.register(close_meteor)


def _plain(text: str) -> str:
    return " ".join(text.replace("|||", "").split())


def check_meteor() -> None:
    java(METEOR)
    again = "install pycocoevalcap again: pip install --force-reinstall 'counterfoil[java]'"
    for part in ("meteor-1.5.jar", "data/paraphrase-en.gz"):
        file(folder("meteor") / part, METEOR, again)


#: The parser, which is a download of its own: pycocoevalcap fetches it when it is first used.
PARSER = ("stanford-corenlp-3.6.0.jar", "stanford-corenlp-3.6.0-models.jar")
_ARCHIVE = "http://nlp.stanford.edu/software/stanford-corenlp-full-2015-12-09.zip"
#: Java's JavaScript went with Java 15, and SPICE writes its results with it.
_LAST_WITH_SCRIPT = 14


def spice(
    candidates: Sequence[str], references: Sequence[Sequence[str]], *, models: Path | None = None
) -> Float[ndarray, "n"]:
    """SPICE of each candidate: the F-score of its facts against those of all its references, in [0, 1].

    Without facts it is 0. `models` is the folder of the parser's two files. Source: Anderson et al. (2016).
    """
    if not candidates:
        return np.zeros(0)
    command = spice_command(models)
    with TemporaryDirectory(prefix="spice-") as folder:
        captions_file, answered = Path(folder, "captions.json"), Path(folder, "scores.json")
        rows = enumerate(zip(candidates, references, strict=True))
        captions = [{"image_id": number, "test": test, "refs": list(refs)} for number, (test, refs) in rows]
        write_json(captions_file, captions)
        whole = [*command, str(captions_file), "-out", str(answered), "-silent"]
        run(whole, name=SPICE, patience=_PATIENCE)
        try:
            results = json.loads(answered.read_text(encoding="utf-8"))
            values = {int(row["image_id"]): float(row["scores"]["All"]["f"]) for row in results}
            scores = np.array([values[number] for number in range(len(candidates))])
        except (OSError, ValueError, KeyError, TypeError) as error:
            given = f"{type(error).__name__}: {error}"
            raise ModelError("left no scores that can be read", where=SPICE, given=given) from None
    if not np.isfinite(scores).all():
        raise ModelError("left a score that is no number", where=SPICE, given=scores[~np.isfinite(scores)][0])
    return scores


def spice_command(models: Path | None = None) -> tuple[str, ...]:
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
