"""Labels by one accuracy per person, where the accuracies of all people are draws of one population.

    pooled_one_coin(given) -> SampledLabels    # chances that hold with two answers per item, too

The likeliest accuracies (`one_coin`) fit few answers too well: with two answers per item, "all items are of
one class, and each person errs as often as it takes" is likelier than the truth. Here chances are means over
accuracies, their population and class shares, so that what few answers cannot tell stays uncertain.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray
from numpy.typing import NDArray

from counterfoil.errors import InputError
from counterfoil.stats.label_models import (
    TIE,
    LabelModel,
    Labels,
    mean_accuracy,
    normalised,
    one_coin_evidence,
    whatever_order,
)

#: No chance is taken to be smaller, so that one surprising answer does not rule a class out.
_LEAST = 1e-10
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
        apart = self.posterior[rows, first] - self.posterior[rows, second]
        # What one class has more the others have less, so that errors add up.
        doubt = self.error[rows, first] + self.error[rows, second]
        return np.asarray(apart <= np.maximum(2 * doubt, TIE))


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
    population = _Population(k)
    # From the shares of votes on, with every person near the mean accuracy.
    posterior, typical = given.shares(), min(mean_accuracy(given), 0.99)
    for _ in range(_FIRST_ROUNDS):
        hits = _hits(given, given.weights[:, None] * posterior)
        accuracy = (hits + typical * _FIRST_WEIGHT) / (given.asked + _FIRST_WEIGHT)
        share = given.tied((given.weights @ posterior + 1.0) / (given.weights.sum() + k))
        posterior = _posterior(given, np.clip(accuracy, _LEAST, 1 - _LEAST), share)
    stretches = np.zeros((_STRETCHES, *posterior.shape))
    accuracies, shares = np.zeros(given.n_people), np.zeros(k)
    for step in range(burn + draws):
        whole = posterior / np.maximum(posterior.sum(axis=1, keepdims=True), 1.0)
        classes = rng.multinomial(many, whole).astype(np.float64)
        classes, hits, log = _exchanged(given, population, classes, rng)
        mean, weight = population.draw(log, rng)
        right, wrong = mean * weight + hits, (1 - mean) * weight + given.asked - hits
        accuracy = np.clip(rng.beta(right, wrong), _LEAST, 1 - _LEAST)
        share = given.tied(np.maximum(rng.dirichlet(classes.sum(axis=0) + 1.0), _LEAST))
        posterior = _posterior(given, accuracy, share)
        if step >= burn:
            stretches[(step - burn) * _STRETCHES // draws] += posterior
            accuracies += right / (right + wrong)
            shares += share
    chances, means = stretches.sum(axis=0) / draws, stretches * (_STRETCHES / draws)
    return SampledLabels(
        posterior=chances,
        error=means.std(axis=0, ddof=1) / np.sqrt(_STRETCHES),
        prior=shares / draws,
        accuracy=np.where(given.asked > 0, accuracies / draws, np.nan),
    )


class _Population:
    """The beta distribution that people's accuracies are draws of, on a grid of means and weights."""

    def __init__(self, n_classes: int) -> None:
        low = 1 / n_classes
        means = low + (1 - low) * (np.arange(_MEANS) + 0.5) / _MEANS
        self.means = np.repeat(means, len(_WEIGHTS))
        self.weights = np.tile(_WEIGHTS, _MEANS)
        self.prior = np.log(self.means - low)

    def density(self, hits: NDArray[np.float64], misses: NDArray[np.float64]) -> NDArray[np.float64]:
        """The log density of each mean and weight, with right and wrong answers of all people."""
        from scipy.special import gammaln

        a, b = self.means * self.weights, (1 - self.means) * self.weights
        log = self.prior.copy()
        # The density depends on how many people have so many right, wrong and all answers.
        for counts, at in ((hits, a), (misses, b), (hits + misses, self.weights)):
            values, n = np.unique(counts, return_counts=True)
            rises = gammaln(at[:, None] + values) - gammaln(at)[:, None]
            log += (rises @ n) * (-1.0 if at is self.weights else 1.0)
        return log

    def draw(self, log: NDArray[np.float64], rng: np.random.Generator) -> tuple[float, float]:
        """A mean and a weight, as likely as their density makes them."""
        chance = np.exp(log - log.max())
        at = int(rng.choice(len(chance), p=chance / chance.sum()))
        return float(self.means[at]), float(self.weights[at])


def _exchanged(
    given: Labels, population: _Population, classes: NDArray[np.float64], rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """The classes with two of them exchanged in all items where that is as likely; right answers, density.

    Few answers may be explained by either of two, and item by item no draw would get from one to the other.
    Known labels say which class is which, so nothing is exchanged beside them.
    """
    # Of classes some of which are exchangeable only these are: shares mind the exchange of others.
    k = int(given.alike.min(initial=classes.shape[1]) or classes.shape[1])
    ways = [classes]
    if k > 1 and not (given.known >= 0).any():
        order = np.arange(classes.shape[1])
        one, two = rng.choice(k, 2, replace=False)
        order[[one, two]] = two, one
        ways.append(classes[:, order])
    explanations = []
    for exchanged in ways:
        # Of an item that stands for several, each answer is right as often as the class is the label's.
        hits = _hits(given, exchanged)
        log = population.density(hits, given.asked - hits)
        right = exchanged[given.items, given.labels]
        spread = (given.weights[given.items] - right) @ np.log(np.maximum(given.options - 1, 1))[given.items]
        explanations.append((np.logaddexp.reduce(log) - spread, exchanged, hits, log))
    as_likely = np.log(rng.random()) < explanations[-1][0] - explanations[0][0]
    return explanations[-1 if as_likely else 0][1:]


def _hits(given: Labels, classes: NDArray[np.float64]) -> Float[ndarray, "people"]:
    """How many of each person's answers are right, if the items are so often of each class."""
    return np.bincount(given.people, weights=classes[given.items, given.labels], minlength=given.n_people)


def _posterior(
    given: Labels, accuracy: NDArray[np.float64], share: NDArray[np.float64]
) -> NDArray[np.float64]:
    return normalised(given, one_coin_evidence(given, accuracy) + given.log_shares(share))
