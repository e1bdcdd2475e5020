"""Labels from several people's answers: what all label models share, majority, and pooled accuracies.

    given = Labels.of(items, people, labels, n_classes=4)       # whole numbers from 0 on, one row per answer
    majority_vote(given) -> LabelModel                          # shares of votes
    pooled_one_coin(given) -> SampledLabels                     # one accuracy per person, of one population
    dawid_skene(given), one_coin(given) -> Confusions           # stats.dawid_skene

Equal answers give equal labels. Options that differ from item to item, such as the captions to choose from,
are *exchangeable* (`Labels.alike`): shares, confusions and habits are held equal among them, and a model
finds the same, to the last digit, in whatever order an item has them.

The likeliest accuracies (`one_coin`) fit few answers too well: with two answers per item, "all items are of
one class, and each person errs as often as it takes" is likelier than the truth. In `pooled_one_coin` chances
are means over accuracies, their population and class shares: what few answers cannot tell stays uncertain.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray

from counterfoil.errors import InputError
from counterfoil.stats import Reals

#: Chances of two classes that are nearer to each other than this are a tie.
TIE = 1e-9
#: No chance is taken to be smaller, so that one surprising answer does not rule a class out.
LEAST = 1e-10

P = ParamSpec("P")
M = TypeVar("M", bound="LabelModel")


@dataclass(frozen=True, eq=False)
class Labels:
    """Answers, one per row: person `people[a]` gave item `items[a]` the label `labels[a]`, all from 0 on.

    `gold` has an item's true label (golden items), else -1. `weights` is how many items, answered alike,
    each stands for. The first `alike[i]` classes of item i are exchangeable, 0 of all where every class is
    the same thing throughout; an item with fewer than the most cannot be of those between.
    """

    items: Int[ndarray, "answers"]
    people: Int[ndarray, "answers"]
    labels: Int[ndarray, "answers"]
    n_items: int
    n_people: int
    n_classes: int
    gold: Int[ndarray, "items"]
    weights: Float[ndarray, "items"]
    alike: Int[ndarray, "items"]

    @classmethod
    def of(
        cls,
        items: Int[ndarray, "_"],
        people: Int[ndarray, "_"],
        labels: Int[ndarray, "_"],
        *,
        n_classes: int,
        n_items: int | None = None,
        n_people: int | None = None,
        gold: Int[ndarray, "_"] | None = None,
        weights: Float[ndarray, "_"] | None = None,
        alike: Int[ndarray, "_"] | int = 0,
    ) -> "Labels":
        """Checked answers; numbers of items and people are by default one more than the largest.

        Raises `InputError` for numbers outside their range, columns of different lengths, fewer than two
        classes, and labels that an item does not have.

        >>> given = Labels.of(np.array([0, 0, 1]), np.array([0, 1, 1]), np.array([2, 2, 0]), n_classes=3)
        >>> given.n_items, given.n_people, given.gold.tolist()
        (2, 2, [-1, -1])
        """
        if not len(items) == len(people) == len(labels):
            given = f"{len(items)} items, {len(people)} people, {len(labels)} labels"
            raise InputError("labels need a row per answer", given=given, allowed="columns of one length")
        if n_classes < 2:
            raise InputError("classes to tell apart", given=n_classes, allowed="2 or more")
        n_items = 1 + int(items.max(initial=-1)) if n_items is None else n_items
        n_people = 1 + int(people.max(initial=-1)) if n_people is None else n_people
        gold = np.full(n_items, -1) if gold is None else gold
        for name, column, least, most in (
            ("item", items, 0, n_items),
            ("person", people, 0, n_people),
            ("label", labels, 0, n_classes),
            ("known label", gold, -1, n_classes),
        ):
            if len(odd := column[(column < least) | (column >= most)]):
                raise InputError(f"{name} out of range", given=odd[0], allowed=f"{least} to {most - 1}")
        weights = np.ones(n_items) if weights is None else weights
        if len(gold) != n_items or len(weights) != n_items:
            given, allowed = f"{len(gold)} and {len(weights)}", f"{n_items} of each"
            raise InputError("known labels and weights are of all items", given=given, allowed=allowed)
        alike = np.full(n_items, alike) if isinstance(alike, int) else alike
        most = int(alike.max(initial=0))
        if len(alike) != n_items or most > n_classes or (most and alike.min(initial=1) < 1):
            given = f"{alike.min(initial=0)} to {most} of {len(alike)} items"
            allowed = f"1 to {n_classes} of each of {n_items}, or 0 of all"
            raise InputError("exchangeable classes of an item", given=given, allowed=allowed)
        checked = cls(items, people, labels, n_items, n_people, n_classes, gold, weights, alike)
        if not checked.possible[items, labels].all():
            raise InputError("an answer that its item does not have", allowed="its own exchangeable classes")
        return checked

    @cached_property
    def possible(self) -> Bool[ndarray, "items classes"]:
        """Which classes an item can be of: all but exchangeable ones that other items alone have."""
        positions = np.arange(self.n_classes)
        return (positions < self.alike[:, None]) | (positions >= self.alike.max(initial=0))

    @cached_property
    def options(self) -> Int[ndarray, "items"]:
        """How many classes each item can be of."""
        return np.asarray(self.possible.sum(axis=1))

    def tied(self, shares: Float[ndarray, "classes"]) -> Float[ndarray, "classes"]:
        """Something of each class with the mean in place of each exchangeable one's own."""
        most = int(self.alike.max(initial=0))
        if most == self.n_classes:
            return np.full(most, shares.sum() / most)
        return np.r_[np.full(most, shares[:most].sum() / max(most, 1)), shares[most:]]

    def log_shares(self, shares: Float[ndarray, "classes"]) -> Float[ndarray, "items classes"]:
        """The logarithm of tied shares for each item: those of exchangeable classes are shared by its own."""
        most = int(self.alike.max(initial=0))
        scale = np.where(np.arange(self.n_classes) < most, most / np.maximum(self.alike, 1)[:, None], 1.0)
        with np.errstate(divide="ignore"):
            return np.log(np.where(self.possible, scale * shares, 0.0))

    def in_one_order(self) -> "tuple[Labels, Int[ndarray, 'items classes']]":
        """Exchangeable classes in an order that answers alone give, and the place of each there.

        First the known label, then by the first person who chose a class.
        """
        rank = np.full((self.n_items, self.n_classes), self.n_people)
        np.minimum.at(rank, (self.items, self.labels), self.people)
        rows = np.flatnonzero(self.gold >= 0)
        rank[rows, self.gold[rows]] = -1
        # What an item does not have comes after what it has, and what is not exchangeable stays.
        positions, most = np.arange(self.n_classes), int(self.alike.max(initial=0))
        rank = np.where(self.possible, rank, self.n_people + 1)
        rank = np.where(positions < most, rank, self.n_people + 2 + positions)
        place = np.argsort(np.argsort(rank, axis=1, kind="stable"), axis=1)
        truth = np.where(self.gold >= 0, place[np.arange(self.n_items), self.gold], -1)
        return replace(self, labels=place[self.items, self.labels], gold=truth), place

    @cached_property
    def table(self) -> Any:
        """(items, people * classes) 1 where a person gave a label, in column person * classes + label."""
        from scipy.sparse import csr_array

        columns = self.people * self.n_classes + self.labels
        shape = (self.n_items, self.n_people * self.n_classes)
        return csr_array((np.ones(len(columns)), (self.items, columns)), shape=shape)

    @cached_property
    def votes(self) -> Float[ndarray, "items classes"]:
        """How many people gave each item each label."""
        codes = self.items * self.n_classes + self.labels
        counts = np.bincount(codes, minlength=self.n_items * self.n_classes)
        return counts.reshape(self.n_items, self.n_classes).astype(np.float64)

    @cached_property
    def n_answers(self) -> Float[ndarray, "people"]:
        """How many answers each person gave, with the items' weights."""
        return np.bincount(self.people, weights=self.weights[self.items], minlength=self.n_people)

    def pinned(self, posterior: Float[ndarray, "items classes"]) -> Float[ndarray, "items classes"]:
        """`posterior` with certainty where the label is known."""
        rows = np.flatnonzero(self.gold >= 0)
        if len(rows):
            posterior = posterior.copy()
            posterior[rows] = 0.0
            posterior[rows, self.gold[rows]] = 1.0
        return posterior

    def shares(self) -> Float[ndarray, "items classes"]:
        """Shares of an item's votes, equal ones without any vote: where every model starts."""
        many = self.votes.sum(axis=1, keepdims=True)
        return self.pinned(
            np.divide(self.votes, many, out=self.possible / self.options[:, None], where=many > 0)
        )

    def per_person(self, values: Float[ndarray, "answers"]) -> Float[ndarray, "people"]:
        """The mean of a value of each answer over a person's answers; NaN for a person without any."""
        sums = np.bincount(self.people, weights=values * self.weights[self.items], minlength=self.n_people)
        return np.divide(sums, self.n_answers, out=np.full(self.n_people, np.nan), where=self.n_answers > 0)


@dataclass(frozen=True, eq=False, kw_only=True)
class LabelModel:
    """What a model makes of the answers.

    `posterior[i, k]` is the chance that item i is of class k, `prior` the share of each class, `accuracy` the
    chance that a person's answer is right; NaN for a person without an answer.
    """

    posterior: Float[ndarray, "items classes"]
    prior: Float[ndarray, "classes"]
    accuracy: Float[ndarray, "people"]

    @property
    def tied(self) -> Bool[ndarray, "items"]:
        """Where two classes are the likeliest."""
        top = np.sort(self.posterior, axis=1)[:, -2:]
        return np.asarray(top[:, 1] - top[:, 0] <= TIE)

    @property
    def labels(self) -> Int[ndarray, "items"]:
        """The likeliest class of each item; -1 for a tie."""
        return np.where(self.tied, -1, self.posterior.argmax(axis=1))


def whatever_order(model: Callable[Concatenate[Labels, P], M]) -> Callable[Concatenate[Labels, P], M]:
    """The model run on `Labels.in_one_order`, and its chances in the order given."""

    @wraps(model)
    def run(given: Labels, *args: P.args, **settings: P.kwargs) -> M:
        if not given.alike.any():
            return model(given, *args, **settings)
        ordered, place = given.in_one_order()
        fitted = model(ordered, *args, **settings)
        chances: dict[str, Any] = {
            name: np.take_along_axis(getattr(fitted, name), place, axis=1)
            for name in ("posterior", "error")
            if hasattr(fitted, name)
        }
        return replace(fitted, **chances)

    # `wraps` names the first argument, which models may be called without.
    return cast(Callable[Concatenate[Labels, P], M], run)


@whatever_order
def majority_vote(given: Labels) -> LabelModel:
    """The share of votes that each class has; a known label has all.

    Ties, and items without a vote, have the label -1. The accuracy is how often a person agrees with the
    posterior, their own vote included, so it is too high.

    >>> given = Labels.of(np.array([0, 0, 0, 1, 1]), np.array([0, 1, 2, 0, 1]), np.array([1, 1, 0, 0, 1]),
    ...                   n_classes=2)
    >>> majority_vote(given).labels, majority_vote(given).accuracy.round(2)
    (array([ 1, -1]), array([0.58, 0.58, 0.33]))
    """
    posterior = given.shares()
    return LabelModel(
        posterior=posterior,
        prior=class_shares(given, posterior, 0.0),
        accuracy=given.per_person(posterior[given.items, given.labels]),
    )


def class_shares(
    given: Labels, posterior: Float[ndarray, "items classes"], smoothing: float
) -> Float[ndarray, "classes"]:
    """How often each class comes, with `smoothing` items more of each; exchangeable ones equally often."""
    counts = given.tied(given.weights @ posterior + smoothing)
    return counts / max(counts.sum(), 1e-300)


def mean_accuracy(given: Labels) -> float:
    """The mean accuracy of people that makes pairs of answers to an item agree as often as they do.

    Two people of accuracy a agree with chance a² + (1 - a)² / (k - 1). Not below 1 / k; 0.8 without a pair.

    >>> given = Labels.of(np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), np.array([1, 1, 0, 0]), n_classes=2)
    >>> mean_accuracy(given)
    1.0
    """
    votes, k = given.votes, given.n_classes
    many = votes.sum(axis=1)
    pairs = float(given.weights @ (many * (many - 1)))
    if not pairs:
        return 0.8
    agree = float(given.weights @ (votes * (votes - 1)).sum(axis=1)) / pairs
    return float(1 / k + np.sqrt(max(0.0, agree - 1 / k) * (k - 1) / k))


def normalised(given: Labels, log_joint: Float[ndarray, "items classes"]) -> Reals:
    """The posterior from log P(class, answers); a known label leaves no other class possible."""
    chance = np.exp(log_joint - log_joint.max(axis=1, keepdims=True))
    return given.pinned(np.asarray(chance / chance.sum(axis=1, keepdims=True)))


#: How many answers the population's mean is worth for each person: people who differ much to people alike.
_WEIGHTS = np.array([2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0])
#: Means of the population that are looked at.
_MEANS = 40
#: What one person counts for beside the mean of the population where sampling begins.
_FIRST_WEIGHT, _FIRST_ROUNDS = 10.0, 20
#: Stretches of draws whose means tell how far the mean of all may be off.
_STRETCHES = 10


@dataclass(frozen=True, eq=False, kw_only=True)
class SampledLabels(LabelModel):
    """Chances that are means over draws, each with its standard error (`error`, items by classes).

    Two that differ by less than twice the error of their difference are a tie.
    """

    error: Float[ndarray, "items classes"]

    @property
    def tied(self) -> Bool[ndarray, "items"]:
        """Where two classes are the likeliest, within what draws can tell."""
        rows = np.arange(len(self.posterior))
        second, first = np.argsort(self.posterior, axis=1)[:, -2:].T
        lead = self.posterior[rows, first] - self.posterior[rows, second]
        # What one class has more the others have less, so that errors add up.
        doubt = self.error[rows, first] + self.error[rows, second]
        return np.asarray(lead <= np.maximum(2 * doubt, TIE))


@whatever_order
def pooled_one_coin(given: Labels, *, seed: int = 0, draws: int = 300, burn: int = 100) -> SampledLabels:
    """Each item's chances by Gibbs sampling of the one-coin model with a population of people.

    A person is right with one chance and errs evenly over the other classes. That chance is a draw of a beta
    distribution whose mean is above guessing and whose weight is from 2 to 128 answers; class shares are
    uniform beforehand. `posterior` is the mean of `draws` draws (10 or more) after `burn`, equal for equal
    `seed`; `accuracy` is each person's posterior mean. Weights must be whole numbers. Raises `InputError` for
    no answers.

    Source: B. Carpenter, Multilevel Bayesian models of categorical data annotation, 2008 (its beta-binomial
    by item and annotator, here with one accuracy per person).

    >>> items, people = np.repeat(np.arange(4), 3), np.tile(np.arange(3), 4)
    >>> labels = np.array([0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1, 1])
    >>> found = pooled_one_coin(Labels.of(items, people, labels, n_classes=2))
    >>> found.labels, bool(found.accuracy[2] < found.accuracy[0])
    (array([0, 1, 0, 1]), True)
    """
    if not len(given.items):
        raise InputError("no answers to aggregate", given="0 answers", allowed="1 or more")
    rng = np.random.default_rng(seed)
    k, many = given.n_classes, given.weights.astype(np.int64)
    population = _Population(given)
    # From the shares of votes on, with every person near the mean accuracy.
    posterior, typical = given.shares(), min(mean_accuracy(given), 0.99)
    for _ in range(_FIRST_ROUNDS):
        hits = _hits(given, given.weights[:, None] * posterior)
        accuracy = (hits + typical * _FIRST_WEIGHT) / (given.n_answers + _FIRST_WEIGHT)
        share = given.tied((given.weights @ posterior + 1.0) / (given.weights.sum() + k))
        posterior = _posterior(given, np.clip(accuracy, LEAST, 1 - LEAST), share)
    stretches = np.zeros((_STRETCHES, *posterior.shape))
    accuracies, shares = np.zeros(given.n_people), np.zeros(k)
    for step in range(burn + draws):
        whole = posterior / np.maximum(posterior.sum(axis=1, keepdims=True), 1.0)
        classes = rng.multinomial(many, whole).astype(np.float64)
        classes, hits, log = _exchanged(given, population, classes, rng)
        mean, weight = population.draw(log, rng)
        right, wrong = mean * weight + hits, (1 - mean) * weight + given.n_answers - hits
        accuracy = np.clip(rng.beta(right, wrong), LEAST, 1 - LEAST)
        share = given.tied(np.maximum(rng.dirichlet(classes.sum(axis=0) + 1.0), LEAST))
        posterior = _posterior(given, accuracy, share)
        if step >= burn:
            stretches[(step - burn) * _STRETCHES // draws] += posterior
            accuracies += right / (right + wrong)
            shares += share
    chances, means = stretches.sum(axis=0) / draws, stretches * (_STRETCHES / draws)
    error = means.std(axis=0, ddof=1) / np.sqrt(_STRETCHES)
    accuracy = np.where(given.n_answers > 0, accuracies / draws, np.nan)
    return SampledLabels(posterior=chances, error=error, prior=shares / draws, accuracy=accuracy)


class _Population:
    """The beta distribution that people's accuracies are draws of, on a grid of means and weights."""

    def __init__(self, given: Labels) -> None:
        low = 1 / given.n_classes
        means = low + (1 - low) * (np.arange(_MEANS) + 0.5) / _MEANS
        self.means = np.repeat(means, len(_WEIGHTS))
        self.weights = np.tile(_WEIGHTS, _MEANS)
        self.prior = np.log(self.means - low)
        self.n_answers = given.n_answers
        self.of_answers = self._rises(self.weights, given.n_answers)

    def density(self, hits: Reals) -> Reals:
        """The log density of each mean and weight, from the number of right answers of each person."""
        right = self._rises(self.means * self.weights, hits)
        wrong = self._rises((1 - self.means) * self.weights, self.n_answers - hits)
        return self.prior + right + wrong - self.of_answers

    @staticmethod
    def _rises(start: Reals, counts: Reals) -> Reals:
        """The log of rising factorials, over people: it depends on how many have each number of answers."""
        from scipy.special import gammaln

        values, n = np.unique(counts, return_counts=True)
        return (gammaln(start[:, None] + values) - gammaln(start)[:, None]) @ n

    def draw(self, log: Reals, rng: np.random.Generator) -> tuple[float, float]:
        """A mean and a weight, as likely as their density makes them."""
        chance = np.exp(log - log.max())
        i = int(rng.choice(len(chance), p=chance / chance.sum()))
        return float(self.means[i]), float(self.weights[i])


def _exchanged(
    given: Labels, population: _Population, classes: Reals, rng: np.random.Generator
) -> tuple[Reals, Reals, Reals]:
    """The classes with two of them exchanged in all items where that is as likely; right answers, density.

    Few answers may be explained by either of two, and item by item no draw would get from one to the other.
    Known labels say which class is which, so nothing is exchanged beside them.
    """
    # Of classes some of which are exchangeable only these are: shares mind the exchange of others.
    k = int(given.alike.min(initial=classes.shape[1]) or classes.shape[1])
    ways = [classes]
    if k > 1 and not (given.gold >= 0).any():
        order = np.arange(classes.shape[1])
        one, two = rng.choice(k, 2, replace=False)
        order[[one, two]] = two, one
        ways.append(classes[:, order])
    explanations = []
    for exchanged in ways:
        # Of an item that stands for several, each answer is right as often as the class is the label's.
        hits = _hits(given, exchanged)
        log = population.density(hits)
        right = exchanged[given.items, given.labels]
        spread = (given.weights[given.items] - right) @ np.log(np.maximum(given.options - 1, 1))[given.items]
        explanations.append((np.logaddexp.reduce(log) - spread, exchanged, hits, log))
    as_likely = np.log(rng.random()) < explanations[-1][0] - explanations[0][0]
    return explanations[-1 if as_likely else 0][1:]


def _hits(given: Labels, classes: Reals) -> Float[ndarray, "people"]:
    """How many of each person's answers are right, if the items are so often of each class."""
    return np.bincount(given.people, weights=classes[given.items, given.labels], minlength=given.n_people)


def _posterior(given: Labels, accuracy: Reals, share: Reals) -> Reals:
    """The chance of each class, where errors fall evenly on an item's others."""
    k = given.n_classes
    right, others = accuracy[given.people], np.maximum(given.options - 1, 1)[given.items]
    codes, weight = given.items * k + given.labels, np.log(right / ((1 - right) / others))
    log = np.bincount(codes, weights=weight, minlength=given.n_items * k).reshape(given.n_items, k)
    return normalised(given, log + given.log_shares(share))
