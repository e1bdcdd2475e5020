"""Votes collected until one answer has so many, and what that does to scores made of them.

Of the shares that Winoground released of its crowd (section 4.3: "at least ten annotators"), 1,506 of 1,600
are k/n where the more frequent of the two answers has exactly ten votes: answers seem to have been collected
until one of the two had ten, so that n is 10 where all agree and up to 19 where they do not.

Everything is exact for given chances p of a yes: with the rule, a pair stops at m yes and j no with chance
C(m - 1 + j, j) p^m (1 - p)^j; with a fixed number its yes are binomial. The four pairs of a question are
answered independently of each other, so a question's chances are products and sums of these.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray
from numpy.typing import NDArray
from scipy.special import betaln, gammaln, xlogy

from counterfoil.errors import InputError

#: Most votes that a share is taken for, and how near it must be to k/n.
_MOST, _NEAR = 40, 1e-9
Rule = Literal["first", "fixed"]


@dataclass(frozen=True, eq=False)
class ShareVotes:
    """The fewest votes that give each share with `least` or more for the more frequent answer."""

    yes: Int[ndarray, "n"]
    votes: Int[ndarray, "n"]

    @property
    def more_frequent(self) -> NDArray[np.int64]:
        """Votes for the more frequent answer."""
        return np.maximum(self.yes, self.votes - self.yes)


def share_votes(shares: Float[ndarray, "n"], *, least: int = 10) -> ShareVotes:
    """The votes behind shares of yes; raises `InputError` for a share that is none of up to 40 votes.

    >>> found = share_votes(np.array([1.0, 10 / 11, 2 / 7]))
    >>> found.yes.tolist(), found.votes.tolist()
    ([10, 10, 4], [10, 11, 14])
    """
    yes, votes = np.zeros(len(shares), dtype=np.int64), np.zeros(len(shares), dtype=np.int64)
    for n in range(_MOST, least - 1, -1):
        k = np.rint(shares * n).astype(np.int64)
        fits = (np.abs(k / n - shares) < _NEAR) & (np.maximum(k, n - k) >= least)
        yes[fits], votes[fits] = k[fits], n
    if not votes.all():
        odd = float(shares[votes == 0][0])
        raise InputError("no share of votes", given=f"{odd:g}", allowed=f"k / n, n up to {_MOST}")
    return ShareVotes(yes, votes)


def share_chances(
    p: Float[ndarray, "*of"], rule: Rule, m: int
) -> tuple[Float[ndarray, "shares"], Float[ndarray, "*of shares"]]:
    """The shares that can come out, ascending, and how likely each is for a chance p of yes.

    "first": until one answer has m votes; "fixed": of m votes.

    >>> shares, chances = share_chances(np.array([0.5]), "first", 2)
    >>> shares.round(2).tolist(), chances.tolist()
    ([0.0, 0.33, 0.67, 1.0], [[0.25, 0.25, 0.25, 0.25]])
    """
    p = np.asarray(p, dtype=np.float64)[..., None]
    if rule == "fixed":
        k = np.arange(m + 1)
        orders = gammaln(m + 1) - gammaln(k + 1) - gammaln(m - k + 1)
        return k / m, np.exp(orders + xlogy(k, p) + xlogy(m - k, 1 - p))
    j = np.arange(m)
    orders = gammaln(m + j) - gammaln(m) - gammaln(j + 1)
    yes, no = (np.exp(orders + xlogy(m, q) + xlogy(j, 1 - q)) for q in (p, 1 - p))
    shares = np.concatenate([j / (m + j), m / (m + j)])
    order = np.argsort(shares, kind="stable")
    return shares[order], np.concatenate([no, yes], axis=-1)[..., order]


@dataclass(frozen=True)
class ExpectedScores:
    """Expected scores of questions of two captions and two images, strict: a tie is not right. In [0, 1].

    `tied` is the chance that at least one of the four comparisons of a question is a tie, `bias` the mean
    error of shares away from one half (above 0: too extreme), `votes` the mean number of votes per pair.
    """

    text: float
    image: float
    group: float
    tied: float
    bias: float
    votes: float


def expected_scores(p: Float[ndarray, "n 2 2"], rule: Rule | None, m: int = 10) -> ExpectedScores:
    """Scores of shares collected by a rule where caption c and image i get a yes with chance p[q, c, i].

    Without a rule it is the scores of p itself, as of endlessly many votes. Pairs of one caption and image of
    equal number belong together.

    >>> p = np.array([[[0.9, 0.2], [0.1, 0.8]]])
    >>> expected_scores(p, None).group, bool(0.99 < expected_scores(p, "first").group < 1)
    (1.0, True)
    """
    if rule is None:
        text = (p[:, 0, 0] > p[:, 1, 0]) & (p[:, 1, 1] > p[:, 0, 1])
        image = (p[:, 0, 0] > p[:, 0, 1]) & (p[:, 1, 1] > p[:, 1, 0])
        ties = np.stack([p[:, r, r] == p[:, c, i] for r in (0, 1) for c, i in ((0, 1), (1, 0))])
        tied = ties.any(axis=0)
        return ExpectedScores(
            float(text.mean()),
            float(image.mean()),
            float((text & image).mean()),
            float(tied.mean()),
            0.0,
            float("inf"),
        )
    shares, chances = share_chances(p, rule, m)
    below = np.cumsum(chances, axis=-1)
    above = 1 - below
    a, b, c, d = (0, 0), (1, 0), (0, 1), (1, 1)

    def beats(x: tuple[int, int], y: tuple[int, int]) -> NDArray[np.float64]:
        return (chances[:, *y] * above[:, *x]).sum(axis=-1)

    best = below[:, *b] * below[:, *c]
    most = np.diff(best, axis=-1, prepend=0)
    group = (most * above[:, *a] * above[:, *d]).sum(axis=-1)
    # No tie: neither right pair has a share that a wrong one has.
    free = np.zeros(len(p))
    for at in range(len(shares)):
        # By the share of one wrong pair, and that of the other.
        equal = chances[:, *a][:, [at]] + np.where(np.arange(len(shares)) == at, 0, chances[:, *a])
        equal_d = chances[:, *d][:, [at]] + np.where(np.arange(len(shares)) == at, 0, chances[:, *d])
        free += chances[:, *b][:, at] * (chances[:, *c] * (1 - equal) * (1 - equal_d)).sum(axis=-1)
    mean = (chances * shares).sum(axis=-1)
    n = m if rule == "fixed" else float((chances * m / np.maximum(shares, 1 - shares)).sum(axis=-1).mean())
    return ExpectedScores(
        float((beats(a, b) * beats(d, c)).mean()),
        float((beats(a, c) * beats(d, b)).mean()),
        float(group.mean()),
        float(1 - free.mean()),
        float(((mean - p) * np.sign(p - 0.5)).mean()),
        float(n),
    )


def fitted_chances(found: ShareVotes, belongs: ndarray) -> Float[ndarray, "n"]:
    """The chance of a yes of each pair: the mean of its posterior under a beta distribution of its kind.

    The beta distribution of pairs that belong together and that of others are those of the largest
    likelihood, on a grid; where votes stop does not change it. These chances are less spread than the true
    ones, as those of a posterior's draws are more.
    """
    p = np.empty(len(found.yes))
    for kind in (True, False):
        here = np.flatnonzero(belongs == kind)
        k, rest = found.yes[here], found.votes[here] - found.yes[here]
        means, sizes = np.linspace(0.01, 0.99, 99), np.geomspace(0.2, 50, 60)
        a, b = (np.outer(sizes, each).ravel()[:, None] for each in (means, 1 - means))
        log = (betaln(a + k, b + rest) - betaln(a, b)).sum(axis=1)
        best = int(log.argmax())
        p[here] = (k + a[best]) / (k + rest + a[best] + b[best])
    return p
