"""How much one is preferred to another, from votes between two at a time."""

import numpy as np
from jaxtyping import Float, Real
from numpy import ndarray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from counterfoil.errors import InputError


def bradley_terry(
    wins: Real[ndarray, "n n"], *, total: float = 100.0, tolerance: float = 1e-12, rounds: int = 100_000
) -> Float[ndarray, "n"]:
    """The likeliest strengths p where i is preferred to j with chance p_i / (p_i + p_j).

    `wins[i, j]` votes preferred i to j; the diagonal (a thing against itself) says nothing and is left out.
    Strengths are above 0 and sum to `total`. Found by the minorise-maximise rounds of Hunter: p_i becomes the
    wins of i over the sum over j of n_ij / (p_i + p_j), until no strength changes by more than `tolerance` of
    itself.

    The most likely strengths exist only where no group has won every vote against the rest (Ford, 1957): else
    raises `InputError`, as for negative or unnumbered votes, for fewer than two things, and where the rounds
    do not suffice.

    Source: R. Bradley, M. Terry, Rank analysis of incomplete block designs, 1952; D. Hunter, MM algorithms
    for generalized Bradley-Terry models, 2004; P002 appendix D.1 (its Table D.1 gives its values, but to C,
    D, A, B, E in that order).

    >>> bradley_terry(np.array([[0, 30], [10, 0]])).round(6)
    array([75., 25.])
    """
    votes = wins.astype(np.float64)
    if not np.isfinite(votes).all() or (votes < 0).any():
        raise InputError("votes are counts", given="a negative or missing one", allowed="0 and above")
    if len(votes) < 2:
        raise InputError("preferences need two things to compare", given=len(votes), allowed="2 or more")
    np.fill_diagonal(votes, 0.0)
    groups, group = connected_components(csr_array(votes), connection="strong")
    if groups > 1:
        # Of all groups, one that wins nothing from the others, or loses nothing to them.
        members = [np.flatnonzero(group == g).tolist() for g in range(groups)]
        extreme = next(m for m in members if _one_sided(votes, m))
        raise InputError(
            "preferences have no finite strengths",
            given=f"{extreme} won all votes or none against the rest",
            allowed="every group wins and loses some",
            hint="leave those out, or collect more votes",
        )
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


def _one_sided(votes: Float[ndarray, "n n"], members: list[int]) -> bool:
    """Whether a group won no vote against the rest, or lost none."""
    inside = np.isin(np.arange(len(votes)), members)
    return not votes[inside][:, ~inside].any() or not votes[~inside][:, inside].any()
