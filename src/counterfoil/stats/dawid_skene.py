"""Dawid and Skene's model: each person confuses the classes in a way of their own, or errs in one way.

    dawid_skene(given, smoothing=0.5) -> Confusions      # confusion (people, true, given)
    one_coin(given) -> Confusions                        # the same with one accuracy per person

People err independently of each other given the class. Where some items are harder than others people err
together, and accuracies come out too good.

`drawn_so` draws what is unknown of two hidden classes without the truth: person a says yes with chance
`hits[a]` where an item is so, and no with chance `rejections[a]` where it is not.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray

from counterfoil.errors import InputError
from counterfoil.stats import Reals, label_models
from counterfoil.stats.label_models import LEAST

#: Answers of the mean accuracy that are added to each person's about exchangeable classes: few overfit.
_POOLED = 10.0


@dataclass(frozen=True, eq=False, kw_only=True)
class Confusions(label_models.LabelModel):
    """`confusion[p, k, l]` is the chance that person p gives an item of class k the label l.

    `accuracy` is the chance to be right about an item drawn by `prior`.
    """

    confusion: Float[ndarray, "people classes classes"]


@label_models.whatever_order
def dawid_skene(
    given: label_models.Labels, *, smoothing: float = 0.5, rounds: int = 1000, tolerance: float = 1e-6
) -> Confusions:
    """The likeliest confusions and class shares, by expectation maximisation from the shares of votes.

    `smoothing` answers are added to every cell of every confusion matrix, and as many items to every class.
    Stops when no item's chance moves by more than `tolerance`. Items without an answer get the class shares.
    Exchangeable classes are confused with each other in one way, and people's confusions of them are drawn
    together by ten answers of the mean accuracy. Raises `InputError` for no answers and a negative
    `smoothing`.

    Source: A. Dawid, A. Skene, Maximum likelihood estimation of observer error-rates using the EM algorithm,
    1979.

    >>> items, people = np.repeat(np.arange(4), 3), np.tile(np.arange(3), 4)
    >>> labels = np.array([0, 0, 1, 1, 1, 0, 0, 0, 1, 2, 2, 2])
    >>> found = dawid_skene(label_models.Labels.of(items, people, labels, n_classes=3))
    >>> found.labels, bool(found.accuracy[0] > found.accuracy[2])
    (array([0, 1, 0, 2]), True)
    """

    most, k = int(given.alike.max(initial=0)), given.n_classes
    before = np.full((k, k), smoothing)
    if most:
        # One answer more to any other of the exchangeable classes, not to each.
        before[:most, :most] = np.where(np.eye(most, dtype=bool), smoothing, smoothing / max(most - 1, 1))
        before[most:, :most] /= most
        right, wrong = _pool(given)
        before += np.where(np.eye(k, dtype=bool), right, wrong / (k - 1))

    def confusion(counts: Reals) -> Reals:
        if most:
            return _alike_confusion(counts, before, most)
        counts = np.maximum(counts + before, LEAST)
        return counts / counts.sum(axis=2, keepdims=True)

    weights = np.maximum(given.alike, 1)[:, None]
    alike = given.votes[:, :most].sum(axis=1, keepdims=True)
    # Of an item with fewer exchangeable classes errors fall on fewer.
    inside = (alike - given.votes[:, :most]) * np.log(max(most - 1, 1) / np.maximum(weights - 1, 1))
    outside = np.repeat(alike * np.log(max(most, 1) / weights), k - most, axis=1)
    fewer = np.hstack([inside, outside])
    return _expectation_maximisation(given, confusion, fewer, smoothing, rounds, tolerance)


@label_models.whatever_order
def one_coin(
    given: label_models.Labels, *, smoothing: float = 0.5, rounds: int = 1000, tolerance: float = 1e-6
) -> Confusions:
    """`dawid_skene` where a person has one accuracy, and errors are spread evenly over the other classes.

    `smoothing` right answers and as many wrong ones are added to every person's, and of exchangeable classes
    ten of the mean accuracy. Source: Y. Zhang, X. Chen, D. Zhou, M. Jordan, Spectral methods meet EM, 2014,
    section 2.

    >>> items, people = np.repeat(np.arange(4), 3), np.tile(np.arange(3), 4)
    >>> labels = np.array([0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1, 1])
    >>> found = one_coin(label_models.Labels.of(items, people, labels, n_classes=2))
    >>> found.labels, found.confusion[2].round(2).tolist()
    (array([0, 1, 0, 1]), [[0.3, 0.7], [0.7, 0.3]])
    """

    before = np.full(2, smoothing) + (_pool(given) if given.alike.any() else 0.0)

    def confusion(counts: Reals) -> Reals:
        right = np.trace(counts, axis1=1, axis2=2) + before[0]
        accuracy = np.clip(
            right / np.maximum(counts.sum(axis=(1, 2)) + before.sum(), LEAST), LEAST, 1 - LEAST
        )
        same = np.eye(given.n_classes, dtype=bool)
        wrong = (1 - accuracy) / (given.n_classes - 1)
        return np.where(same, accuracy[:, None, None], wrong[:, None, None])

    others = given.votes.sum(axis=1, keepdims=True) - given.votes
    fewer = others * np.log((given.n_classes - 1) / np.maximum(given.options - 1, 1))[:, None]
    return _expectation_maximisation(given, confusion, fewer, smoothing, rounds, tolerance)


def _pool(given: label_models.Labels) -> Reals:
    """How many of the answers that join people about exchangeable classes are right, and wrong."""
    mean = min(label_models.mean_accuracy(given), 0.99)
    return _POOLED * np.array([mean, 1 - mean])


def _alike_confusion(counts: Reals, before: Reals, most: int) -> Reals:
    """Confusions where the first `most` classes are exchangeable: the same, another of them, or any other."""
    n, k, _ = counts.shape
    inside = counts[:, :most, :most]
    same = np.trace(inside, axis1=1, axis2=2)
    # The row of the first class stands for all of them.
    rows = np.concatenate([np.empty((n, 1, k)), counts[:, most:]], axis=1)
    rows[:, 0, :most] = ((inside.sum(axis=(1, 2)) - same) / max(most - 1, 1))[:, None]
    rows[:, 0, 0] = same
    rows[:, 0, most:] = counts[:, :most, most:].sum(axis=1)
    rows[:, 1:, :most] = rows[:, 1:, :most].mean(axis=2, keepdims=True)
    rows = np.maximum(rows + before[[0, *range(most, k)]], LEAST)
    rows /= rows.sum(axis=2, keepdims=True)
    confusion = rows[:, np.maximum(np.arange(k) - most + 1, 0)]
    if most > 1:
        eye = np.eye(most, dtype=bool)
        confusion[:, :most, :most] = np.where(eye, rows[:, :1, :1], rows[:, :1, 1:2])
    return confusion


def _expectation_maximisation(
    given: label_models.Labels,
    confusion_of: Callable[[Reals], Reals],
    fewer: Reals,
    smoothing: float,
    rounds: int,
    tolerance: float,
) -> Confusions:
    if not len(given.items):
        raise InputError("no answers to aggregate", given="0 answers", allowed="1 or more")
    if not smoothing >= 0:
        raise InputError("smoothing", given=smoothing, allowed="0 and above")
    posterior, k = given.shares(), given.n_classes
    prior = confusion = np.empty(0)
    for _ in range(rounds):
        # (people, classes, labels) how often each person gave each label to items of each class.
        counts = np.asarray(given.table.T @ (given.weights[:, None] * posterior))
        confusion = confusion_of(counts.reshape(given.n_people, k, k).transpose(0, 2, 1))
        prior = np.maximum(label_models.class_shares(given, posterior, smoothing), LEAST)
        table = np.ascontiguousarray(np.log(confusion).transpose(0, 2, 1).reshape(-1, k))
        # `fewer` is what answers speak for classes beyond that, of items with fewer classes than others.
        new = label_models.normalised(given, given.log_shares(prior) + given.table @ table + fewer)
        moved, posterior = np.abs(new - posterior).max(initial=0.0), new
        if moved <= tolerance:
            break
    right = np.diagonal(confusion, axis1=1, axis2=2) @ prior
    accuracy = np.where(given.n_answers > 0, right / prior.sum(), np.nan)
    return Confusions(posterior=posterior, prior=prior, accuracy=accuracy, confusion=confusion)


#: Fewer people than these do not pin their rates down: there are as many unknowns as patterns.
FEWEST = 3
#: Chains of draws side by side, and draws of each that are thrown away first.
_CHAINS, _BURN = 50, 100


@dataclass(frozen=True, eq=False)
class Patterns:
    """Items by how they were answered: `counts[p]` items to which a said `yes[p, a]`, `no[p, a]`, or none."""

    yes: Bool[ndarray, "patterns people"]
    no: Bool[ndarray, "patterns people"]
    counts: Int[ndarray, "patterns"]


def patterns(yes: Bool[ndarray, "people items"], no: Bool[ndarray, "people items"]) -> Patterns:
    """The different ways in which items were answered, and how many items each has.

    >>> yes = np.array([[True, True, False], [True, True, False]])
    >>> patterns(yes, ~yes).counts
    array([1, 2])
    """
    kinds, counts = np.unique((2 * yes + no).astype(np.int8).T, axis=0, return_counts=True)
    return Patterns(kinds == 2, kinds == 1, counts)


def drawn_so(
    answered: Patterns, rng: np.random.Generator, *, draws: int = 2000
) -> Int[ndarray, "draws patterns"]:
    """How many items of each pattern are so, drawn as often as the answers make it likely.

    Gibbs sampling from the solution of `dawid_skene` on: rates and share given which items are so (Jeffreys'
    prior), then which items are so. The share of draws in which a number lies between two ends is the chance
    that it does. A draw whose people are worse than guessing on the whole is mirrored. Raises `InputError`
    for fewer than three people.

    >>> yes = np.array([[1, 1, 1, 0]] * 3, dtype=bool)
    >>> drawn_so(patterns(yes, ~yes), np.random.default_rng(0), draws=100).shape
    (100, 2)
    """
    yes, no, counts = answered.yes, answered.no, answered.counts
    if yes.shape[1] < FEWEST:
        what, allowed = "too few annotators to tell rates without the truth", f"{FEWEST} or more"
        raise InputError(what, given=yes.shape[1], allowed=allowed)
    pattern, person = np.nonzero(yes | no)
    sizes = {"n_classes": 2, "n_items": len(yes), "n_people": yes.shape[1]}
    answers = yes[pattern, person].astype(np.int64)
    given = label_models.Labels.of(pattern, person, answers, **sizes, weights=counts.astype(np.float64))
    start = dawid_skene(given, tolerance=1e-9).posterior[:, 1]
    said_so, against = yes.astype(np.float64), no.astype(np.float64)
    counts = np.broadcast_to(counts, (_CHAINS, len(counts)))
    so = rng.binomial(counts, start)
    samples = []
    for step in range(_BURN + -(-draws // _CHAINS)):
        wrong = counts - so
        hits, rejections, share = (
            np.clip(rng.beta(a + 0.5, b + 0.5), 1e-9, 1 - 1e-9)
            for a, b in (
                (so @ said_so, so @ against),
                (wrong @ against, wrong @ said_so),
                (so.sum(axis=1), wrong.sum(axis=1)),
            )
        )
        mirrored = (hits + rejections).mean(axis=1) < 1
        hits, rejections = (np.where(mirrored[:, None], 1 - rate, rate) for rate in (hits, rejections))
        share = np.where(mirrored, 1 - share, share)
        # The chance of every pattern to be so, of each chain.
        odds = np.log(share / (1 - share))[:, None] + np.log(hits / (1 - rejections)) @ said_so.T
        odds = odds + np.log((1 - hits) / rejections) @ against.T
        so = rng.binomial(counts, 1 / (1 + np.exp(-np.clip(odds, -500, 500))))
        if step >= _BURN:
            samples.append(so)
    return np.concatenate(samples)[:draws]
