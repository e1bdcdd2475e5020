"""Simulated people who judge pairs, choose between two and vote: known error rates, known speed.

What they hand in are the tables that real people's answers come in, so whatever reads answers can be tried
on people of whom it is known how often they err, and in which direction.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pyarrow as pa
from jaxtyping import Bool, Float
from numpy import ndarray

from counterfoil.data.judgements import ROLES
from counterfoil.errors import DataError, InputError
from counterfoil.stats.latent_classes import fit, patterns

#: Answer times spread as a gamma of this shape: the standard deviation is half the mean.
_SHAPE = 4.0
#: Answers of a simulated person about a pair: the words of ECCV Caption's questionnaire.
_WORDS = ("100% NO", "100% YES")


@dataclass(frozen=True)
class Annotator:
    """One person. Where yes is right, they say yes with chance `accuracy` + `bias`, elsewhere no with
    `accuracy` - `bias`; an answer takes `seconds` on average.

    So accuracy is the mean of both chances (0.5 is guessing), and bias how much readier to say yes than no
    an annotator is. Raises `InputError` where a chance would leave [0, 1] and for times that are not above 0.

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
            raise InputError(
                "an annotator's chances are out of range",
                where=self.name,
                given=f"accuracy {self.accuracy}, bias {self.bias}",
                allowed="accuracy + bias and accuracy - bias from 0 to 1",
            )
        if not self.seconds > 0:
            raise InputError(
                "an answer takes time", where=self.name, given=f"{self.seconds} seconds", allowed="above 0"
            )

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
    yes: Bool[ndarray, "annotators items"]
    seconds: Float[ndarray, "annotators items"]


def annotate(
    truth: Bool[ndarray, "items"], annotators: Sequence[Annotator], rng: np.random.Generator
) -> Annotations:
    """Every annotator's answer to every item, errors independent of each other.

    Two people share no more than the truth: what a third says tells nothing beyond it.

    >>> sure = annotate(np.array([True, False]), [Annotator("a")], np.random.default_rng(0))
    >>> sure.yes
    array([[ True, False]])
    """
    _check_names(annotators)
    shape = len(annotators), len(truth)
    yes = np.array([[a.hits, 1 - a.rejections] for a in annotators]).reshape(-1, 2)
    chance = np.where(truth, yes[:, :1], yes[:, 1:])
    answers = rng.random(shape) < chance
    mean = np.array([a.seconds for a in annotators])[:, None]
    return Annotations(
        tuple(a.name for a in annotators), answers, rng.gamma(_SHAPE, 1 / _SHAPE, size=shape) * mean
    )


def kappa(first: Annotator, second: Annotator, share: float) -> float:
    """Cohen's kappa that two annotators tend to, where `share` of the items are so.

    With h the chances of a yes where it is right and r of a no where that is,

        p_o = share (h1 h2 + (1 - h1)(1 - h2)) + (1 - share) (r1 r2 + (1 - r1)(1 - r2)),

    p_e follows from how often each says yes. NaN where both always say one and the same.

    >>> kappa(Annotator("a"), Annotator("b"), 0.3), kappa(Annotator("a"), Annotator("c", accuracy=0.5), 0.5)
    (1.0, 0.0)
    """
    h, r = ([getattr(a, name) for a in (first, second)] for name in ("hits", "rejections"))
    same = share * (h[0] * h[1] + (1 - h[0]) * (1 - h[1]))
    same += (1 - share) * (r[0] * r[1] + (1 - r[0]) * (1 - r[1]))
    yes = [share * h[i] + (1 - share) * (1 - r[i]) for i in (0, 1)]
    by_chance = yes[0] * yes[1] + (1 - yes[0]) * (1 - yes[1])
    return float("nan") if by_chance == 1 else (same - by_chance) / (1 - by_chance)


def rates(truth: Bool[ndarray, "items"], answers: Annotations) -> tuple[Annotator, ...]:
    """The annotators as their answers show them, where the truth is known: the reverse of `annotate`.

    Raises `InputError` where all items are so, or none: then no bias can be seen.
    """
    if truth.all() or not truth.any():
        raise InputError(
            "bias shows only where some items are so and some are not", given=f"{int(truth.sum())} so"
        )
    annotators = []
    for name, yes, seconds in zip(answers.annotators, answers.yes, answers.seconds, strict=True):
        hits, rejections = float(yes[truth].mean()), float(1 - yes[~truth].mean())
        annotators.append(
            Annotator(name, (hits + rejections) / 2, (hits - rejections) / 2, float(seconds.mean()))
        )
    return tuple(annotators)


@dataclass(frozen=True, eq=False)
class Guess:
    """Estimates of annotators, items and the share of yes from answers alone."""

    annotators: tuple[Annotator, ...]
    #: The chance that each item is so.
    so: Float[ndarray, "items"]
    share: float


def rates_unseen(answers: Annotations, *, rounds: int = 1000, tolerance: float = 1e-9) -> Guess:
    """The annotators as their answers to the same items show them, where the truth is not known.

    Alternates between how likely each item is so, given the annotators' rates, and the rates, given these
    (expectation maximisation), from the share of yes per item, until no chance moves by more than
    `tolerance`. Three annotators who err independently are the least that pins the rates down, and they must
    do better than guessing: answers reversed throughout fit as well, and that solution is not taken.
    Raises `InputError` for fewer than three.

    Source: A. Dawid, A. Skene, Maximum likelihood estimation of observer error-rates using the EM
    algorithm, 1979 (two classes).
    """
    counted = patterns(answers.yes, ~answers.yes)
    guess = fit(counted.yes, counted.no, counted.counts, rounds=rounds, tolerance=tolerance)
    people = tuple(
        Annotator(name, float(h + r) / 2, float(h - r) / 2, float(seconds.mean()))
        for name, h, r, seconds in zip(
            answers.annotators, guess.hits, guess.rejections, answers.seconds, strict=True
        )
    )
    return Guess(people, guess.so[counted.of_item], guess.share)


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
    lacking = [name for name in ("image", "caption") if name not in pool.column_names]
    if lacking:
        raise DataError(
            f"the pool has no column '{lacking[0]}'", given=", ".join(pool.column_names), allowed=ROLES["i2t"]
        )
    pairs = list(zip(pool.column("image").to_pylist(), pool.column("caption").to_pylist(), strict=True))
    number = {pair: i for i, pair in enumerate(dict.fromkeys(pairs))}
    answers = annotate(np.array([right.get(pair, False) for pair in number], dtype=bool), annotators, rng)
    at = np.array([number[pair] for pair in pairs], dtype=np.int64)
    parts = [
        pool.append_column("annotator", pa.array([name] * len(pairs), pa.string()))
        .append_column("answer", pa.array([_WORDS[int(yes)] for yes in answers_yes[at]], pa.string()))
        .append_column("seconds", pa.array(np.round(seconds[at], 2)))
        for name, answers_yes, seconds in zip(answers.annotators, answers.yes, answers.seconds, strict=True)
    ]
    return pa.concat_tables(parts)


def vote(
    strengths: Mapping[str, float],
    annotators: Sequence[Annotator],
    rng: np.random.Generator,
    *,
    rounds: int = 10,
) -> pa.Table:
    """All annotators' votes between every two things, `rounds` times: winner, loser, judge, seconds.

    Of i and j, i is the better one with chance p_i / (p_i + p_j) (Bradley and Terry), every time anew. The
    two stand left and right by a coin; "the left one is better" is what the annotator says rightly or wrongly
    by their rates, so a bias is one for the left side. `data.judgements.read_votes` reads the result.

    Raises `InputError` for fewer than two things and for strengths that are not above 0.
    """
    _check_names(annotators)
    odd = next((name for name, strength in strengths.items() if not strength > 0), None)
    if odd is not None or len(strengths) < 2:
        raise InputError(
            "votes need two things of some strength",
            given=f"{odd}: {strengths[odd]}" if odd is not None else ", ".join(strengths) or "none",
            allowed="two or more, each above 0",
        )
    # One row per two things and round, its sides by a coin.
    two = np.array(list(combinations(range(len(strengths)), 2)) * rounds, dtype=np.int64)
    two = np.where(rng.random(len(two))[:, None] < 0.5, two, two[:, ::-1])
    p = np.array(list(strengths.values()), dtype=np.float64)[two]
    names = np.array(list(strengths), dtype=object)
    parts = []
    for annotator in annotators:
        left_better = rng.random(len(two)) < p[:, 0] / p.sum(axis=1)
        answers = annotate(left_better, [annotator], rng)
        side = np.where(answers.yes[0], 0, 1)
        rows = np.arange(len(two))
        parts.append(
            pa.table(
                {
                    "winner": pa.array(names[two[rows, side]].tolist(), pa.string()),
                    "loser": pa.array(names[two[rows, 1 - side]].tolist(), pa.string()),
                    "judge": pa.array([annotator.name] * len(two), pa.string()),
                    "seconds": pa.array(np.round(answers.seconds[0], 2)),
                }
            )
        )
    return pa.concat_tables(parts)


def _check_names(annotators: Sequence[Annotator]) -> None:
    names = [annotator.name for annotator in annotators]
    double = next((name for name in names if names.count(name) > 1), None)
    if double is not None or not names:
        raise InputError(
            "annotators are told apart by name",
            given=f"'{double}' twice" if double is not None else "none",
            allowed="one or more of different names",
        )
