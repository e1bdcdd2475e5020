"""Two hidden classes behind several people's yes and no: error rates without the truth, and their spread.

Every item is so or is not. Person a says yes with chance `hits[a]` where it is, and no with chance
`rejections[a]` where it is not, independently of all others given the truth, and with the same chances for
every item. Where some items are harder than others people err together, and the rates come out too good.
Items that were answered alike are one pattern with a count, so a million items cost no more than a few.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray

from counterfoil.errors import InputError
from counterfoil.stats.dawid_skene import dawid_skene
from counterfoil.stats.label_models import Labels

#: Fewer people than these do not pin their rates down: there are as many unknowns as patterns.
FEWEST = 3
#: Chains of draws side by side, and draws of each that are thrown away first.
_CHAINS, _BURN = 50, 100


@dataclass(frozen=True, eq=False)
class Patterns:
    """Items by how they were answered: `counts[p]` items to which person a said `yes[p, a]` or `no[p, a]`.

    Neither where the person was not asked. `of_item` has the pattern of every item.
    """

    yes: Bool[ndarray, "patterns people"]
    no: Bool[ndarray, "patterns people"]
    counts: Int[ndarray, "patterns"]
    of_item: Int[ndarray, "items"]


@dataclass(frozen=True, eq=False)
class TwoClasses:
    """Rates of the people, the share of items that are so, and the chance of every pattern to be so."""

    hits: Float[ndarray, "people"]
    rejections: Float[ndarray, "people"]
    share: float
    so: Float[ndarray, "patterns"]


def patterns(yes: Bool[ndarray, "people items"], no: Bool[ndarray, "people items"]) -> Patterns:
    """The different ways in which items were answered, and how many items each has.

    >>> yes = np.array([[True, True, False], [True, True, False]])
    >>> patterns(yes, ~yes).counts
    array([1, 2])
    """
    codes = (2 * yes + no).astype(np.int8).T
    kinds, of_item, counts = np.unique(codes, axis=0, return_inverse=True, return_counts=True)
    return Patterns(kinds == 2, kinds == 1, counts, of_item.reshape(-1))


def fit(
    yes: Bool[ndarray, "patterns people"],
    no: Bool[ndarray, "patterns people"],
    counts: Int[ndarray, "patterns"],
    *,
    rounds: int = 1000,
    tolerance: float = 1e-9,
) -> TwoClasses:
    """The likeliest rates and share: `dawid_skene` with two classes, patterns in place of items.

    Stops when no chance moves by more than `tolerance`. Half an answer both ways keeps every rate off 0 and
    1. Answers reversed throughout fit as well: the solution near the majority's is the one that is taken.
    Raises `InputError` for fewer than three people.

    Source: A. Dawid, A. Skene, Maximum likelihood estimation of observer error-rates using the EM
    algorithm, 1979 (two classes).

    >>> yes = np.array([[1, 1, 1], [0, 0, 0], [0, 1, 1]], dtype=bool)
    >>> found = fit(yes, ~yes, np.array([40, 50, 10]))
    >>> found.so.round(2), bool(found.hits[0] < found.hits[1])
    (array([1., 0., 1.]), True)
    """
    if yes.shape[1] < FEWEST:
        raise InputError(
            "too few annotators to tell rates without the truth",
            given=yes.shape[1],
            allowed=f"{FEWEST} or more who judged the same items",
        )
    pattern, person = np.nonzero(yes | no)
    given = Labels.of(
        pattern,
        person,
        yes[pattern, person].astype(np.int64),
        n_classes=2,
        n_items=len(yes),
        n_people=yes.shape[1],
        weights=counts.astype(np.float64),
    )
    model = dawid_skene(given, smoothing=0.5, rounds=rounds, tolerance=tolerance)
    return TwoClasses(
        model.confusion[:, 1, 1], model.confusion[:, 0, 0], float(model.prior[1]), model.posterior[:, 1]
    )


def drawn_so(
    answered: Patterns, rng: np.random.Generator, *, draws: int = 2000
) -> Int[ndarray, "draws patterns"]:
    """How many items of each pattern are so, drawn as often as the answers make it likely.

    Draws of Gibbs sampling, from the solution of `fit` on: rates and share given which items are so (with
    Jeffreys' prior, half an answer both ways), then which items are so given the rates. The spread holds both
    what is unknown of the rates and what is unknown of every single item, so that the share of draws in which
    a number lies between two ends is the chance that it does. A draw whose people are worse than guessing on
    the whole is mirrored. Raises `InputError` for fewer than three people.

    >>> yes = np.array([[1, 1, 1, 0]] * 3, dtype=bool)
    >>> drawn_so(patterns(yes, ~yes), np.random.default_rng(0), draws=100).shape
    (100, 2)
    """
    yes, against = answered.yes.astype(np.float64), answered.no.astype(np.float64)
    start = fit(answered.yes, answered.no, answered.counts)
    counts = np.broadcast_to(answered.counts, (_CHAINS, len(answered.counts)))
    so = rng.binomial(counts, start.so)
    samples = []
    for step in range(_BURN + -(-draws // _CHAINS)):
        wrong = counts - so
        hits, rejections, share = (
            np.clip(rng.beta(a + 0.5, b + 0.5), 1e-9, 1 - 1e-9)
            for a, b in (
                (so @ yes, so @ against),
                (wrong @ against, wrong @ yes),
                (so.sum(axis=1), wrong.sum(axis=1)),
            )
        )
        mirrored = (hits + rejections).mean(axis=1) < 1
        hits, rejections = (
            np.where(mirrored[:, None], 1 - hits, hits),
            np.where(mirrored[:, None], 1 - rejections, rejections),
        )
        share = np.where(mirrored, 1 - share, share)
        # The chance of every pattern to be so, of each chain.
        odds = np.log(share / (1 - share))[:, None] + np.log(hits / (1 - rejections)) @ yes.T
        odds = odds + np.log((1 - hits) / rejections) @ against.T
        so = rng.binomial(counts, 1 / (1 + np.exp(-np.clip(odds, -500, 500))))
        if step >= _BURN:
            samples.append(so)
    return np.concatenate(samples)[:draws]
