"""Bradley-Terry strengths, from votes between two at a time."""

import numpy as np
from jaxtyping import Bool, Float, Real
from numpy import ndarray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from counterfoil.errors import InputError


def bradley_terry(
    wins: Real[ndarray, "n n"], *, total: float = 100.0, tolerance: float = 1e-12, rounds: int = 100_000
) -> Float[ndarray, "n"]:
    """The maximum-likelihood strengths p where i is preferred to j with probability p_i / (p_i + p_j).

    `wins[i, j]` votes preferred i to j; the diagonal is left out. Votes may be fractions: no preference is
    half a vote each way. Strengths are above 0 and sum to `total`, by Hunter's rounds until none changes by
    more than `tolerance` of itself.

    They exist only where no group has won every vote against the rest (Ford, 1957): else raises `InputError`,
    as for negative or NaN votes, fewer than two things, and too few rounds.

    Source: R. Bradley, M. Terry, Rank analysis of incomplete block designs, 1952; D. Hunter, MM algorithms
    for generalized Bradley-Terry models, 2004; ECCV Caption appendix D.1 (its Table D.1 gives its values in
    the order C, D, A, B, E).

    >>> bradley_terry(np.array([[0, 30], [10, 0]])).round(6)
    array([75., 25.])
    """
    votes = wins.astype(np.float64)
    if not np.isfinite(votes).all() or (votes < 0).any():
        raise InputError("votes are counts", given="a negative or missing one", allowed="0 and above")
    if len(votes) < 2:
        raise InputError("preferences need two things to compare", given=len(votes), allowed="2 or more")
    np.fill_diagonal(votes, 0.0)
    if extreme := one_sided(votes):
        problem = "preferences have no finite strengths"
        given, allowed = (
            f"{extreme} won all votes or none against the rest",
            "every group wins and loses some",
        )
        raise InputError(problem, given=given, allowed=allowed, hint="leave those out, or collect more votes")
    met = votes + votes.T
    won = votes.sum(axis=1)
    strength = np.full(len(votes), 1 / len(votes))
    for _ in range(rounds):
        new = won / (met / (strength[:, None] + strength[None, :])).sum(axis=1)
        new /= new.sum()
        if (np.abs(new - strength) <= tolerance * new).all():
            return total * new
        strength = new
    raise InputError("preferences did not settle", given=f"{rounds} rounds", hint="allow more rounds")


def one_sided(wins: Real[ndarray, "n n"]) -> list[int]:
    """A group that has won every vote against the rest, or none, so that no strengths fit; else nothing.

    >>> one_sided(np.array([[0, 3, 1], [2, 0, 4], [0, 0, 0]])), one_sided(np.array([[0, 3], [1, 0]]))
    ([2], [])
    """
    votes = wins * ~np.eye(len(wins), dtype=bool)
    groups, group = connected_components(csr_array(votes), connection="strong")
    if groups == 1:
        return []
    members = [np.flatnonzero(group == g).tolist() for g in range(groups)]
    # What remains of the votes between groups has no circle: one of them wins nothing from the others.
    lost = [m for m in members if not np.delete(votes[m], m, axis=1).any()]
    return min(lost, key=len)


def connected(wins: Real[ndarray, "draws n n"]) -> Bool[ndarray, "draws"]:
    """Whether the votes of each draw have finite strengths: none won all or no votes against the rest.

    >>> connected(np.array([[[0, 3], [1, 0]], [[0, 4], [0, 0]]])).tolist()
    [True, False]
    """
    n = wins.shape[1]
    reached = ((wins > 0) | np.eye(n, dtype=bool)).astype(np.float32)
    for _ in range(max(1, int(np.ceil(np.log2(max(n, 2)))))):
        reached = (reached @ reached > 0).astype(np.float32)
    return np.all(reached.reshape(len(wins), -1) > 0, axis=1)


def bradley_terry_draws(
    wins: Real[ndarray, "draws n n"], *, total: float = 100.0, tolerance: float = 1e-9, rounds: int = 200
) -> Float[ndarray, "draws n"]:
    """`bradley_terry` of many sets of votes at once, for resampling: damped Newton steps on log strengths.

    A step of length d (the widest gap between two of its entries) shortened by log(1 + d) / d always
    converges where `connected` holds (T. Sun, Q. Tran-Dinh, Generalized self-concordant functions, 2019).
    Raises `InputError` where it does not.

    >>> bradley_terry_draws(np.array([[[0, 30], [10, 0]], [[0, 1], [1, 0]]])).round(6).tolist()
    [[75.0, 25.0], [50.0, 50.0]]
    """
    n = wins.shape[1]
    votes = wins * ~np.eye(n, dtype=bool)
    if not connected(votes).all():
        i = int(np.argmin(connected(votes)))
        raise InputError("preferences have no finite strengths", where=f"draw {i}")
    met = votes + votes.transpose(0, 2, 1)
    log = np.zeros(wins.shape[:2])
    for _ in range(rounds):
        chance = 1 / (1 + np.exp(log[:, None, :] - log[:, :, None]))
        slope = (votes - met * chance).sum(axis=2)
        curve = met * chance * (1 - chance)
        # Scaling all strengths changes nothing: a constant of similar size removes that direction.
        bend = np.eye(n) * curve.sum(axis=2)[:, :, None] - curve + curve.mean(axis=(1, 2))[:, None, None]
        step = np.linalg.solve(bend, slope[:, :, None])[:, :, 0]
        length = np.ptp(step, axis=1)
        if (length <= tolerance).all():
            strength = np.exp(log - log.max(axis=1, keepdims=True))
            return total * strength / strength.sum(axis=1, keepdims=True)
        damped = np.log1p(length) / np.maximum(length, 1e-300)
        log += np.where(length > 0, damped, 1.0)[:, None] * step
    raise InputError("preferences did not settle", given=f"{rounds} rounds", hint="allow more rounds")
