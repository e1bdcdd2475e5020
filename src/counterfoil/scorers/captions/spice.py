"""SPICE 1.0, by the program that pycocoevalcap carries and the parser that it does not."""

import json
import os
import re
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from counterfoil.errors import ModelError
from counterfoil.scorers.captions import java
from counterfoil.store import write_json

#: Its name in messages.
NAME = "metric:spice"

#: The parser, which is a download of its own: pycocoevalcap fetches it when it is first used.
PARSER = ("stanford-corenlp-3.6.0.jar", "stanford-corenlp-3.6.0-models.jar")

_ARCHIVE = "http://nlp.stanford.edu/software/stanford-corenlp-full-2015-12-09.zip"

#: Seconds that a load may take; the parser does some tens of captions in one.
_PATIENCE = 6 * 3600.0

#: Java's JavaScript went with Java 15, and SPICE writes its results with it.
_LAST_WITH_SCRIPT = 14


def spice(
    candidates: Sequence[str], references: Sequence[Sequence[str]], *, models: Path | None = None
) -> Float[ndarray, "n"]:
    """SPICE of each candidate: the F-score of its facts against those of all its references, in [0, 1].

    A candidate or references in which no fact is found give 0. `models` is the folder that holds the
    parser's two files; by default `spice/lib` of pycocoevalcap. What the program parses is not kept.

    Raises `MissingExtraError` without pycocoevalcap; `ModelError` without Java, the parser, or something to
    write results with, or where the program fails; `InputError` for a candidate without references.

    Source: PAC-S, section 2; Anderson et al. (2016). Up to how the program is called, as in pycocoevalcap.
    """
    java.check_references(candidates, references, NAME)
    if not candidates:
        return np.zeros(0)
    command = _command(models)
    with TemporaryDirectory(prefix="spice-") as folder:
        asked, answered = Path(folder, "captions.json"), Path(folder, "scores.json")
        rows = zip(candidates, references, strict=True)
        write_json(
            asked,
            [{"image_id": at, "test": test, "refs": list(refs)} for at, (test, refs) in enumerate(rows)],
        )
        java.run([*command, str(asked), "-out", str(answered), "-silent"], name=NAME, patience=_PATIENCE)
        return _read(answered, len(candidates))


def ready(models: Path | None = None) -> None:
    """Raises what `spice` would raise of things that are missing; scores nothing."""
    _command(models)


def _command(models: Path | None) -> tuple[str, ...]:
    place = java.folder("spice")
    library = place / "lib"
    program = java.java(NAME)
    jar = java.file(place / "spice-1.0.jar", NAME, "install pycocoevalcap again: pip install '.[java]'")
    where = models or library
    hint = (
        f"SPICE needs the parser Stanford CoreNLP 3.6.0, which no package carries: fetch {_ARCHIVE} and put "
        f"{' and '.join(PARSER)} of it into that folder, or name theirs with --set models=FOLDER"
    )
    parser = [java.file(where / name, NAME, hint) for name in PARSER]
    _check_script(program, (where, library))
    others = sorted({*library.glob("*.jar"), *where.glob("*.jar")} - set(parser))
    path = os.pathsep.join(str(file) for file in (jar, *parser, *others))
    return (program, "-Xmx8G", "-Dfile.encoding=UTF-8", "-cp", path, "edu.anu.spice.SpiceScorer")


def _check_script(program: str, folders: Sequence[Path]) -> None:
    """Raises `ModelError` where this Java has no JavaScript, and no folder has it either."""
    said = java.run([program, "-version"], name=NAME, patience=60)
    found = re.search(r'version "(?:1\.)?(\d+)', said)
    brought = chain.from_iterable(folder.glob("nashorn-core*.jar") for folder in folders)
    if found and int(found[1]) > _LAST_WITH_SCRIPT and not any(brought):
        raise ModelError(
            "SPICE writes its results with the JavaScript of Java, which this Java has no more",
            where=NAME,
            given=f"Java {found[1]}",
            allowed=f"Java 8 to {_LAST_WITH_SCRIPT}",
            hint=f"or put nashorn-core and the asm jars that it needs into {folders[0]}",
        )


def _read(file: Path, count: int) -> Float[ndarray, "n"]:
    """The F-score of each candidate from the file that the program wrote."""
    try:
        rows = json.loads(file.read_text(encoding="utf-8"))
        found = {int(row["image_id"]): float(row["scores"]["All"]["f"]) for row in rows}
        scores = np.array([found[at] for at in range(count)])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(
            "left no scores that can be read", where=NAME, given=f"{type(error).__name__}: {error}"
        ) from None
    if not np.isfinite(scores).all():
        raise ModelError("left a score that is no number", where=NAME, given=scores[~np.isfinite(scores)][0])
    return scores
