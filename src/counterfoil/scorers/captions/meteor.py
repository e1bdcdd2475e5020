"""METEOR 1.5, by the program and the data that pycocoevalcap carries."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from counterfoil.errors import ModelError
from counterfoil.scorers.captions import java

#: Its name in messages.
NAME = "metric:meteor"

#: What the program says of one candidate: lengths, words without content, matches of each kind, chunks.
_STATISTICS = 23

#: As much memory as pycocoevalcap gives it, half of it at once; one collector suits a program of one thread.
_MEMORY = ("-Xms1G", "-Xmx2G", "-XX:+UseSerialGC")

#: Seconds without a word from the program until it is given up; it starts in a few.
_PATIENCE = 300.0


class Meteor(NamedTuple):
    """METEOR of a load: (n,) per candidate, and of all candidates together; both in [0, 1]."""

    items: Float[ndarray, "n"]
    corpus: float


def meteor(candidates: Sequence[str], references: Sequence[Sequence[str]], *, processes: int = 1) -> Meteor:
    """METEOR of each candidate against the best of its references, and of all candidates as one text.

    The value of the whole is not the mean: the counts of all candidates are added up first, as METEOR and
    pycocoevalcap report it. Options are those of pycocoevalcap: English, with METEOR's own normalisation of
    punctuation (`-l en -norm`). In the captions `|||`, which stands between captions on the way to the
    program, is left out, and white space is one blank. An empty candidate gets 0, and so does one whose
    references are all empty.

    With several `processes` the load is cut into so many parts; the numbers are the same. Each keeps about a
    gigabyte of data in memory, loads it for some seconds once, and ends with this program.

    Raises `MissingExtraError` without pycocoevalcap, `ModelError` without Java or a file of METEOR's, or
    where the program fails; `InputError` for a candidate without references.

    Source: PAC-S, section 2; Denkowski and Lavie (2014).
    """
    java.check_references(candidates, references, NAME)
    if not candidates:
        return Meteor(np.zeros(0), 0.0)
    questions = [_question(*row) for row in zip(candidates, references, strict=True)]
    children = _children(max(1, min(processes, len(questions))))
    cuts = np.linspace(0, len(questions), len(children) + 1).astype(int).tolist()
    parts = [questions[start:end] for start, end in pairwise(cuts)]
    with ThreadPoolExecutor(len(children)) as pool:
        found = list(pool.map(_score, children, parts))
    # The whole is more than a sum of counts, so that one of them values them all.
    *items, corpus = _value(children[0], [line for part in found for line in part])
    return Meteor(np.array(items), corpus)


def ready() -> None:
    """Raises what `meteor` would raise of things that are missing; starts nothing."""
    _command()


def _question(candidate: str, references: Sequence[str]) -> str:
    return " ||| ".join(("SCORE", *(_plain(text) for text in references), _plain(candidate)))


def _plain(text: str) -> str:
    """A caption that is one caption to the program.

    >>> _plain("a cat ||| a\\ndog"), _plain("|||")
    ('a cat a dog', '')
    """
    return " ".join(text.replace("|||", "").split())


def _command() -> tuple[str, ...]:
    place = java.folder("meteor")
    program = java.java(NAME)
    again = "install pycocoevalcap again: pip install --force-reinstall '.[java]'"
    jar = java.file(place / "meteor-1.5.jar", NAME, again)
    java.file(place / "data" / "paraphrase-en.gz", NAME, again)
    return (program, *_MEMORY, "-jar", str(jar), "-", "-", "-stdio", "-l", "en", "-norm")


def _children(count: int) -> list[java.Child]:
    command = _command()
    return java.kept(command, name=NAME, place=java.folder("meteor"), patience=_PATIENCE, copies=count)


def _score(child: java.Child, questions: Sequence[str]) -> list[str]:
    """The statistics of one part of the load, as the program writes them."""
    said = child.ask(questions)
    for line in said:
        if len(line.split()) != _STATISTICS:
            raise ModelError("not the statistics of a candidate", where=NAME, given=line or "(nothing)")
    return said


def _value(child: java.Child, statistics: Sequence[str]) -> list[float]:
    """The scores of statistics, one for each, and one for all together."""
    said = child.ask([" ||| ".join(("EVAL", *statistics))], answers=len(statistics) + 1)
    try:
        return [float(line) for line in said]
    except ValueError:
        raise ModelError("not a score", where=NAME, given=" ".join(said)[:80]) from None
