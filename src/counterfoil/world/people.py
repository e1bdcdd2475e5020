"""Simulated people who judge pairs: known error rates, known speed, answers in the tables of real people."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from jaxtyping import Bool, Float
from numpy import ndarray

from counterfoil.benchmarks.judgements import ROLES
from counterfoil.errors import DataError, InputError

#: Answer times spread as a gamma of this shape: the standard deviation is half the mean.
_SHAPE = 4.0
#: Answers of a simulated person about a pair: the words of ECCV Caption's questionnaire.
_WORDS = ("100% NO", "100% YES")


@dataclass(frozen=True)
class Annotator:
    """One person: yes with chance `accuracy` + `bias` where it is right, no with `accuracy` - `bias`.

    >>> hasty = Annotator("hasty", accuracy=0.8, bias=0.15, seconds=2.5)
    >>> round(hasty.hits, 3), round(hasty.rejections, 3)
    (0.95, 0.65)
    """

    name: str
    accuracy: float = 1.0
    bias: float = 0.0
    seconds: float = 4.0

    def __post_init__(self) -> None:
        # Rates that were measured come back as their mean and half their difference, give or take rounding.
        chances = self.accuracy + self.bias, self.accuracy - self.bias
        if not all(-1e-9 <= chance <= 1 + 1e-9 for chance in chances):
            given = f"accuracy {self.accuracy}, bias {self.bias}"
            allowed = "accuracy + bias and accuracy - bias from 0 to 1"
            what = "an annotator's chances are out of range"
            raise InputError(what, where=self.name, given=given, allowed=allowed)
        if not self.seconds > 0:
            given = f"{self.seconds} seconds"
            raise InputError("an answer takes time", where=self.name, given=given, allowed="above 0")

    @property
    def hits(self) -> float:
        """The chance of a yes where yes is right."""
        return min(max(self.accuracy + self.bias, 0.0), 1.0)

    @property
    def rejections(self) -> float:
        """The chance of a no where no is right."""
        return min(max(self.accuracy - self.bias, 0.0), 1.0)


@dataclass(frozen=True, eq=False)
class Annotations:
    """What each annotator said of each item, and how long each answer took."""

    annotators: tuple[str, ...]
    votes: Bool[ndarray, "annotators items"]
    seconds: Float[ndarray, "annotators items"]


def annotate(
    truth: Bool[ndarray, "items"], annotators: Sequence[Annotator], rng: np.random.Generator
) -> Annotations:
    """Every annotator's answer to every item, errors independent of each other.

    >>> sure = annotate(np.array([True, False]), [Annotator("a")], np.random.default_rng(0))
    >>> sure.votes
    array([[ True, False]])
    """
    names = [annotator.name for annotator in annotators]
    double = next((f"'{name}' twice" for name in names if names.count(name) > 1), None)
    if double is not None or not names:
        why, allowed = "annotators are told apart by name", "one or more of different names"
        raise InputError(why, given=double or "none", allowed=allowed)
    shape = len(annotators), len(truth)
    yes = np.array([[a.hits, 1 - a.rejections] for a in annotators]).reshape(-1, 2)
    chance = np.where(truth, yes[:, :1], yes[:, 1:])
    answers = rng.random(shape) < chance
    mean = np.array([a.seconds for a in annotators])[:, None]
    return Annotations(tuple(names), answers, rng.gamma(_SHAPE, 1 / _SHAPE, size=shape) * mean)


def judge(
    pool: pa.Table,
    right: Mapping[tuple[str, str], bool],
    annotators: Sequence[Annotator],
    rng: np.random.Generator,
) -> pa.Table:
    """A pool with all answers: its rows once per annotator, with `annotator`, `answer`, `seconds`.

    `pool` has columns `image` and `caption` (`judgements.pool_table`); `right` knows of (image, caption)
    whether they belong together, and what it leaves out does not. A person judges a pair once: rows of one
    `pair` get one answer. `judgements.read_judgements` reads the result.

    Raises `DataError` where the pool lacks a column.
    """
    for name in ("image", "caption"):
        if name not in pool.column_names:
            given = ", ".join(pool.column_names)
            raise DataError(f"the pool has no column '{name}'", given=given, allowed=ROLES["i2t"])
    pairs = list(zip(pool.column("image").to_pylist(), pool.column("caption").to_pylist(), strict=True))
    number = {pair: i for i, pair in enumerate(dict.fromkeys(pairs))}
    answers = annotate(np.array([right.get(pair, False) for pair in number], dtype=bool), annotators, rng)
    positions = np.array([number[pair] for pair in pairs], dtype=np.int64)
    parts = [
        pool.append_column("annotator", pa.array([name] * len(pairs), pa.string()))
        .append_column("answer", pa.array([_WORDS[int(yes)] for yes in answers_yes[positions]], pa.string()))
        .append_column("seconds", pa.array(np.round(seconds[positions], 2)))
        for name, answers_yes, seconds in zip(answers.annotators, answers.votes, answers.seconds, strict=True)
    ]
    return pa.concat_tables(parts)
