"""MACE: a person either knows an item's class or gives a label of their habit (Hovy et al. 2013).

With the chance of their *competence* a person knows the class and says it, else they give a label of their
habit (`spam`), whatever the item. A person who clicks the same label throughout has no competence, also where
that label is often right; `dawid_skene` needs a whole confusion matrix to see it.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from numpy.typing import NDArray
from scipy.special import digamma, gammaln

from counterfoil.errors import InputError
from counterfoil.stats.label_models import LabelModel, Labels, normalised, whatever_order


@dataclass(frozen=True, eq=False, kw_only=True)
class Competence(LabelModel):
    """`competence` is the chance to know the class, `spam[p, k]` that of label k where the person does not.

    Both are means of their posterior distributions. `accuracy` counts lucky guesses too: competence + (1 -
    competence) times the chance that the habit meets the class. All classes are taken to be equally frequent
    before answers are seen, as in the paper; `prior` is what comes out.
    """

    competence: Float[ndarray, "people"]
    spam: Float[ndarray, "people classes"]


@whatever_order
def mace(
    given: Labels,
    *,
    knowing: float = 0.5,
    guessing: float = 0.5,
    habit: float = 10.0,
    rounds: int = 500,
    tolerance: float = 1e-6,
) -> Competence:
    """Variational Bayes from equal chances of knowing and guessing and even habits.

    Competence has the prior beta(`knowing`, `guessing`), a habit a symmetric Dirichlet of `habit` per label;
    the defaults are the paper's. A habit takes exchangeable labels alike. The paper starts at random and
    keeps the best of many runs; the even start is always the same, and people are told apart from the first
    round on. Stops when no item's chance moves by more than `tolerance`. `trace` is the variational bound.
    Raises `InputError` for no answers and priors that are not above 0.

    Source: D. Hovy, T. Berg-Kirkpatrick, A. Vaswani, E. Hovy, Learning whom to trust with MACE, 2013,
    sections 2 and 3.

    >>> items, people = np.repeat(np.arange(6), 4), np.tile(np.arange(4), 6)
    >>> labels = np.array([0] * 4 + [1, 1, 1, 0] + [1, 1, 1, 0] + [0] * 4 + [1, 1, 1, 0] + [0, 1, 0, 0])
    >>> found = mace(Labels.of(items, people, labels, n_classes=2))
    >>> found.labels, bool(found.competence[3] < 0.3 < 0.8 < found.competence[0])
    (array([0, 1, 1, 0, 1, 0]), True)
    """
    if not len(given.items):
        raise InputError("no answers to aggregate", given="0 answers", allowed="1 or more")
    if not (knowing > 0 and guessing > 0 and habit > 0):
        raise InputError("priors", given=f"{knowing}, {guessing}, {habit}", allowed="above 0")
    people, n, k = given.people, given.n_people, given.n_classes
    # Exchangeable classes are one habit, which falls on each of an item's as often.
    most = int(given.alike.max(initial=0))
    habit_of = np.maximum(np.arange(k) - max(most - 1, 0), 0)
    own, width = habit_of[given.labels], int(habit_of[-1]) + 1
    among = np.where((own == 0) & (most > 0), given.alike[given.items], 1)
    before_state, before_habit = (
        np.array([knowing, guessing]),
        np.bincount(habit_of).astype(np.float64) * habit,
    )
    states, habits = np.tile(before_state, (n, 1)), np.tile(before_habit, (n, 1))
    know, guess = np.full(n, 0.5), np.tile(0.5 * np.bincount(habit_of) / k, (n, 1))
    log_shares = given.log_shares(np.full(k, 1 / k))
    weights, codes = given.weights[given.items], given.items * k + given.labels
    posterior, trace, converged = given.shares(), [], False
    for step in range(rounds):
        wrong = guess[people, own] / among
        right = know[people] + wrong
        # Every answer is a guess for all classes but the label's.
        log = np.bincount(codes, weights=np.log(right) - np.log(wrong), minlength=given.n_items * k)
        base = np.bincount(given.items, weights=np.log(wrong), minlength=given.n_items)
        new, likelihood = normalised(given, log.reshape(given.n_items, k) + base[:, None] + log_shares)
        if step:  # The start is no distribution of states and habits, and has no bound.
            apart = _divergence(states, before_state) + _divergence(habits, before_habit)
            trace.append(likelihood - apart)
        moved, posterior = np.abs(new - posterior).max(initial=0.0), new
        if converged := bool(moved <= tolerance):
            break
        knew = weights * posterior[given.items, given.labels] * know[people] / right
        guessed = np.bincount(people * width + own, weights=weights - knew, minlength=n * width)
        habits = guessed.reshape(n, width) + before_habit
        states = (
            np.stack(
                [np.bincount(people, weights=each, minlength=n) for each in (knew, weights - knew)], axis=1
            )
            + before_state
        )
        know, guess = _expected(states)[:, 0], _expected(states)[:, 1:] * _expected(habits)
    competence = states[:, 0] / states.sum(axis=1)
    spam = (habits / habits.sum(axis=1, keepdims=True))[:, habit_of] / np.bincount(habit_of)[habit_of]
    prior = given.tied(given.weights @ posterior) / max(given.weights.sum(), 1e-300)
    return Competence(
        posterior=posterior,
        prior=prior,
        accuracy=np.where(given.asked > 0, competence + (1 - competence) * (spam @ prior), np.nan),
        trace=np.array(trace),
        converged=converged,
        competence=competence,
        spam=spam,
    )


def _expected(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """exp E log of a Dirichlet's chances, row by row; they sum to less than 1."""
    found: NDArray[np.float64] = np.exp(digamma(counts) - digamma(counts.sum(axis=1, keepdims=True)))
    return found


def _divergence(counts: NDArray[np.float64], before: NDArray[np.float64]) -> float:
    """How far the Dirichlets of all people are from the prior (Kullback and Leibler)."""
    total = counts.sum(axis=1)
    apart = gammaln(total) - gammaln(before.sum()) - (gammaln(counts) - gammaln(before)).sum(axis=1)
    moved = (counts - before) * (digamma(counts) - digamma(total)[:, None])
    return float((apart + moved.sum(axis=1)).sum())
