"""Careless people, found from their answers: speed, straight lines, golden items and disagreement.

    signs = inattention(people, items, answers, n_classes=4, seconds=seconds, order=order, gold=gold)
    signs.flagged(level=0.05), signs.p, signs.adjusted     # (people,), (people, signs): columns are SIGNS

Each sign tests "this person answers as the pool does". Careful people differ too, so the middle of the pool
and its spread are the median and the median deviation, which up to half of the pool cannot move far, and the
tail is Student's with the degrees of freedom that a median deviation is worth. P-values of all people and
signs are adjusted together by Holm's method: `level` is about the chance that any careful person is flagged.
In a simulation (tests/unit/stats/test_inattention.py) at a level of 5 %:

    able people (skill beta(12, 1.5))      10, two classes   30   50, two classes   200, skill beta(8, 2)
    campaigns with any of them flagged               0.5 %  4.8 %            0.0 %                 3.0 %

    flagged of, among 24 able people         hasty   one side   guessing   wrong on purpose   bots
    70 answers, 10 of them golden            38 %       96 %       78 %              100 %  100 %
    170 answers, 20 of them golden            57 %      100 %       89 %              100 %  100 %

* `fast`: the median log of seconds per answer against the pool, or over 5 % of answers below a floor;
* `straight`: one answer more often than in the pool, or runs longer than in random order;
* `golden`: fewer golden items right than the pool, and than chance gives one of the pool's accuracy;
* `disagree`: less agreement with what the others' answers make likely of each item.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray
from scipy.special import bdtr, bdtrc, gammaln, stdtr

from counterfoil.errors import InputError
from counterfoil.stats import Reals, Wholes
from counterfoil.stats.dawid_skene import one_coin
from counterfoil.stats.label_models import Labels
from counterfoil.stats.tests import holm

#: What is looked at, in the order of columns.
SIGNS = ("fast", "straight", "golden", "disagree")
#: The fewest people that make a pool to compare with.
FEWEST = 8
#: Seconds that no judgement of a picture takes, and the share of answers below that slips may make.
FLOOR, SLIPS = 0.4, 0.05
#: For normal values: what a median deviation is worth of a standard deviation, and how far it falls short.
_WORTH, _SCALE = 0.37, 1.4826
#: Skill and speed of careful people have longer tails than normal values, also where people are many.
_MOST = 15.0


@dataclass(frozen=True, eq=False)
class CarelessSigns:
    """P-values of each person and sign, NaN where a person cannot be tested, and the same adjusted.

    `value` is median seconds, the share of the commonest answer, the share of golden items right, and the
    mean chance that the others' answers give a person's.
    """

    p: Float[ndarray, "people signs"]
    adjusted: Float[ndarray, "people signs"]
    value: Float[ndarray, "people signs"]

    def flagged(self, level: float = 0.05) -> Bool[ndarray, "people"]:
        """Who shows a sign, with a chance of `level` that any careful person does."""
        return np.asarray((self.adjusted <= level).any(axis=1))

    def reasons(self, person: int, level: float = 0.05) -> tuple[str, ...]:
        """Names of the signs that a person shows."""
        return tuple(name for name, p in zip(SIGNS, self.adjusted[person], strict=True) if p <= level)


def inattention(
    people: Int[ndarray, "n"],
    items: Int[ndarray, "n"],
    answers: Int[ndarray, "n"],
    *,
    n_classes: int,
    seconds: Float[ndarray, "n"] | None = None,
    order: Float[ndarray, "n"] | Int[ndarray, "n"] | None = None,
    gold: Int[ndarray, "items"] | None = None,
    alike: int = 0,
    floor: float = FLOOR,
) -> CarelessSigns:
    """The signs of each person 0, 1, ..., from one row per answer.

    `seconds` an answer took (NaN where not known), `order` grows along a person's answers (by default rows
    are in order), `gold` is the right answer of golden items, -1 elsewhere, `alike` as in `Labels`. Without
    `seconds` or `gold`, and with fewer than `FEWEST` comparable people, a sign is NaN. Raises `InputError`
    as `Labels.of`, and for no answers.

    >>> rng = np.random.default_rng(0)
    >>> people, items = np.tile(np.arange(10), 60), np.repeat(np.arange(60), 10)
    >>> truth = rng.integers(0, 4, 60)[items]
    >>> answers = np.where(rng.random(600) < 0.9, truth, rng.integers(0, 4, 600))
    >>> answers[people == 7] = 2
    >>> found = inattention(people, items, answers, n_classes=4)
    >>> np.flatnonzero(found.flagged()), found.reasons(7)
    (array([7]), ('straight', 'disagree'))
    """
    n_items = None if gold is None else len(gold)
    given = Labels.of(items, people, answers, n_classes=n_classes, n_items=n_items, alike=alike)
    if not len(items):
        raise InputError("no answers to look at", given="0 answers", allowed="1 or more")
    nothing = np.full(given.n_people, np.nan)
    columns = [
        (nothing, nothing) if seconds is None else _fast(given, seconds, floor),
        _straight(given, np.arange(len(items)) if order is None else order),
        (nothing, nothing) if gold is None else _gold_errors(given, gold),
        _disagreement(given),
    ]
    p, value = (np.stack(column, axis=1) for column in zip(*columns, strict=True))
    adjusted, tested = np.full(p.shape, np.nan), ~np.isnan(p)
    adjusted[tested] = holm(p[tested])
    return CarelessSigns(p, adjusted, value)


def lower_tail(values: Float[ndarray, "people"], noise: Float[ndarray, "people"]) -> Float[ndarray, "people"]:
    """How likely so low a value is in the pool of all values; NaN where it is, and for too small a pool.

    `noise` is the variance of each value; the pool's spread is its median deviation beyond the median noise.

    >>> values = np.r_[np.linspace(-1, 1, 20), -9.0]
    >>> p = lower_tail(values, np.full(21, 0.01))
    >>> bool(p[20] < 0.0005 < 0.05 < p[:20].min())
    True
    """
    there = ~np.isnan(values)
    if there.sum() < FEWEST:
        return np.full(len(values), np.nan)
    middle = float(np.median(values[there]))
    scale = _SCALE * float(np.median(np.abs(values[there] - middle)))
    between = max(scale**2 - float(np.median(noise[there])), 0.0)
    # The median itself is known to pi / 2 of the variance of a mean.
    spread = (between + noise) + np.pi / 2 * (between + float(np.median(noise[there]))) / there.sum()
    freedom = min(max(_WORTH * (int(there.sum()) - 1), 1.0), _MOST)
    t = (values - middle) / np.sqrt(np.maximum(spread, 1e-300))
    return np.asarray(np.where(there, stdtr(freedom, np.where(there, t, 0.0)), np.nan))


def _fast(given: Labels, seconds: Reals, floor: float) -> tuple[Reals, ...]:
    n = given.n_people
    middle, noise, p_floor = np.full(n, np.nan), np.full(n, np.nan), np.full(n, np.nan)
    for person, rows in enumerate(_rows_by(given.people, n)):
        person_seconds = seconds[rows]
        person_seconds = person_seconds[~np.isnan(person_seconds)]
        if len(person_seconds):
            log = np.log(np.maximum(person_seconds, 1e-3))
            middle[person] = np.median(log)
            noise[person] = np.pi / 2 * max(float(log.var()), 1e-4) / len(person_seconds)
            below = int((person_seconds < floor).sum())
            p_floor[person] = bdtrc(below - 1, len(person_seconds), SLIPS) if below else 1.0
    p = np.fmin(lower_tail(middle, noise), p_floor)
    # The smaller of two p-values.
    return np.minimum(2 * p, 1.0), np.exp(middle)


def _straight(given: Labels, order: Reals | Wholes) -> tuple[Reals, ...]:
    n, k = given.n_people, given.n_classes
    counts = np.bincount(given.people * k + given.labels, minlength=n * k).reshape(n, k)
    n_answers = counts.sum(axis=1)
    p_share = np.full((n, k), np.nan)
    for label in range(k):
        p_share[:, label] = lower_tail(*_stable(n_answers - counts[:, label], n_answers))
    p_run = np.full(n, np.nan)
    for person, rows in enumerate(_rows_by(given.people, n)):
        if len(rows):
            p_run[person] = run_tail(given.labels[rows[np.argsort(order[rows], kind="stable")]], k)
    p = np.fmin(k * np.fmin.reduce(p_share, axis=1), p_run)
    share = np.where(n_answers > 0, counts.max(axis=1) / np.maximum(n_answers, 1), np.nan)
    return np.minimum(2 * p, 1.0), share


def run_tail(answers: Int[ndarray, "n"], n_classes: int) -> float:
    """At most how likely a run as long as the longest is, in random order of these answers.

    The expected number of runs at least as long. 1 where all answers are equal.

    >>> round(run_tail(np.array([0, 0, 0, 0, 1, 1, 1, 1]), 2), 4)  # 8 orders of 70
    0.1429
    """
    n = len(answers)
    ends = np.flatnonzero(np.r_[answers[1:] != answers[:-1], True])
    longest = int(np.diff(np.r_[-1, ends]).max())
    counts = np.bincount(answers, minlength=n_classes).astype(np.float64)

    def windows(length: int) -> float:
        many = counts[counts >= length]
        if length > n or not len(many):
            return 0.0
        # The chance that `length` places in a row hold one answer alone.
        log = gammaln(many + 1) - gammaln(many - length + 1) - gammaln(n + 1) + gammaln(n - length + 1)
        return float((n - length + 1) * np.exp(log).sum())

    return min(1.0, windows(longest) - windows(longest + 1))


def _gold_errors(given: Labels, gold: Wholes) -> tuple[Reals, ...]:
    is_gold = gold[given.items] >= 0
    hit = is_gold & (gold[given.items] == given.labels)
    n_golden = np.bincount(given.people[is_gold], minlength=given.n_people).astype(np.float64)
    right = np.bincount(given.people[hit], minlength=given.n_people).astype(np.float64)
    share = np.divide(right, n_golden, out=np.full(len(n_golden), np.nan), where=n_golden > 0)
    if not (n_golden > 0).any():
        return share, share
    # Nearly all right by nearly all is no reason to flag a slip: the middle is at most what one slip leaves.
    pool = min(float(np.nanmedian(share)), 1 - 1 / (n_golden.sum() + 1))
    by_chance = np.where(n_golden > 0, bdtr(right, np.maximum(n_golden, 1).astype(np.int64), pool), np.nan)
    return np.maximum(lower_tail(*_stable(right, n_golden)), by_chance), share


def _disagreement(given: Labels) -> tuple[Reals, ...]:
    given, _ = given.in_one_order()
    model = one_coin(given)
    k, accuracy = given.n_classes, np.diagonal(model.confusion, axis1=1, axis2=2)[:, 0]
    log_odds = np.log(accuracy * (k - 1) / (1 - accuracy))[given.people]
    log = np.log(np.maximum(model.posterior, 1e-300))[given.items]
    rows = np.arange(len(log))
    log[rows, given.labels] -= log_odds
    log -= log.max(axis=1, keepdims=True)
    others = np.exp(log)
    chance = others[rows, given.labels] / others.sum(axis=1)
    # An item that no other person judged says nothing.
    shared = given.votes.sum(axis=1)[given.items] >= 2
    n_shared = np.bincount(given.people[shared], minlength=given.n_people).astype(np.float64)
    agreed = np.bincount(given.people[shared], weights=chance[shared], minlength=given.n_people)
    share = np.divide(agreed, n_shared, out=np.full(len(n_shared), np.nan), where=n_shared > 0)
    return lower_tail(*_stable(agreed, n_shared)), share


def _stable(right: Reals | Wholes, trials: Reals | Wholes) -> tuple[Reals, Reals]:
    """Shares on Anscombe's scale, where their variance depends on numbers alone; NaN for none."""
    angle = np.arcsin(np.sqrt((right + 3 / 8) / (trials + 3 / 4)))
    return np.where(trials > 0, angle, np.nan), 1 / (4 * trials + 2)


def _rows_by(people: Wholes, n: int) -> list[Wholes]:
    """The rows of each person."""
    order = np.argsort(people, kind="stable")
    return np.split(order, np.searchsorted(people[order], np.arange(1, n)))
