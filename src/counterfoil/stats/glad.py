"""GLAD: people of different ability, items of different ease (Whitehill et al. 2009).

A person of ability a gives the right label of an item of ease e^b with chance 1 / (1 + exp(-a e^b)), and
every other label equally often. Unlike Dawid and Skene's model it knows that some items are hard for all. An
ability below 0 is that of a person who errs on purpose.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, log_expit

from counterfoil.errors import InputError
from counterfoil.stats.label_models import LabelModel, Labels, normalised, whatever_order


@dataclass(frozen=True, eq=False, kw_only=True)
class Abilities(LabelModel):
    """`ability[p]` of each person, `ease[i]` of each item, above 0; their product 0 is even odds to be right.

    `accuracy` is a person's mean chance to be right about the items that they judged.
    """

    ability: Float[ndarray, "people"]
    ease: Float[ndarray, "items"]


@whatever_order
def glad(
    given: Labels,
    *,
    prior: Float[ndarray, "classes"] | None = None,
    rounds: int = 200,
    tolerance: float = 1e-8,
) -> Abilities:
    """The most likely abilities and eases under normal priors of mean 1 and variance 1 (of log ease).

    The posterior density of abilities and eases, classes summed out, is climbed by L-BFGS from 1 for all:
    its slope is that of the expectation that the paper's M-step climbs. Stops where the gain of a step is a
    share below `tolerance`. An item that stands for several has one ease. `prior` are the class shares, by
    default equal. Raises `InputError` for no answers and shares that are not above 0.

    Source: J. Whitehill, P. Ruvolo, T. Wu, J. Bergsma, J. Movellan, Whose vote should count more, 2009,
    sections 2 and 3; several classes as in its supplement, errors spread evenly.

    >>> items, people = np.repeat(np.arange(6), 4), np.tile(np.arange(4), 6)
    >>> labels = np.array([0, 0, 0, 1] + [1, 1, 1, 0] + [1, 1, 1, 1] + [0, 0, 0, 1] + [1, 1, 0, 0] + [0] * 4)
    >>> found = glad(Labels.of(items, people, labels, n_classes=2))
    >>> found.labels, bool(found.ability[0] > found.ability[3]), bool(found.ease[2] > found.ease[4])
    (array([0, 1, 1, 0, 1, 0]), True, True)
    """
    if not len(given.items):
        raise InputError("no answers to aggregate", given="0 answers", allowed="1 or more")
    k, n = given.n_classes, given.n_people
    shares = np.full(k, 1 / k) if prior is None else np.asarray(prior, dtype=np.float64)
    if shares.shape != (k,) or not (shares > 0).all():
        raise InputError("class shares", given=shares.tolist(), allowed=f"{k} numbers above 0")
    shares = given.tied(shares / shares.sum())
    log_shares, spread = given.log_shares(shares), np.log(np.maximum(given.options - 1, 1))[given.items]
    items, people, codes = given.items, given.people, given.items * k + given.labels
    weights = given.weights[items]

    def chances(x: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
        """Products of ability and ease, the posterior, and the log-likelihood."""
        product = x[people] * np.exp(x[n:])[items]
        # log sigma(-x) = log sigma(x) - x
        wrong = log_expit(-product) - spread
        log = np.bincount(codes, weights=log_expit(product) - wrong, minlength=given.n_items * k)
        base = np.bincount(items, weights=wrong, minlength=given.n_items)
        joint = log.reshape(given.n_items, k) + base[:, None] + log_shares
        return product, *normalised(given, joint)

    def loss(x: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        product, posterior, likelihood = chances(x)
        away = x - 1
        # By Fisher's identity: the slope where the posterior is held.
        slope = weights * (posterior[items, given.labels] - expit(product))
        ease = np.exp(x[n:])[items]
        gradient = np.concatenate(
            [
                np.bincount(people, weights=slope * ease, minlength=n),
                np.bincount(items, weights=slope * product, minlength=given.n_items),
            ]
        )
        return 0.5 * float(away @ away) - likelihood, away - gradient

    start = np.ones(n + given.n_items)
    trace = [-loss(start)[0]]
    found = minimize(
        loss,
        start,
        jac=True,
        method="L-BFGS-B",
        callback=lambda intermediate_result: trace.append(-float(intermediate_result.fun)),
        options={"maxiter": rounds, "maxfun": 4 * rounds, "ftol": tolerance, "gtol": 1e-7},
    )
    product, posterior, _ = chances(found.x)
    return Abilities(
        posterior=posterior,
        prior=shares,
        accuracy=given.per_person(expit(product)),
        trace=np.array(trace),
        converged=bool(found.success),
        ability=found.x[:n],
        ease=np.exp(found.x[n:]),
    )
