"""Agreement of two people beyond chance."""

import numpy as np
from numpy import ndarray

from counterfoil.errors import InputError


def cohen_kappa(first: ndarray, second: ndarray) -> float:
    """Cohen's kappa of two raters who each put the same items into categories.

        kappa = (p_o - p_e) / (1 - p_e)

    with p_o the share of items they agree on and p_e what two raters with their habits would agree on by
    chance. `first` and `second` are (n,) labels of any kind (numbers or strings), compared by equality. The
    result is at most 1; 0 is chance, negative below it. Where both put everything into one and the same
    category chance explains all and the value is NaN. Raises `InputError` for no items and for unequal
    lengths.

    Source: J. Cohen, A coefficient of agreement for nominal scales, 1960; BiVLC, table 7.

    >>> cohen_kappa(np.array(["yes", "yes", "no", "no"]), np.array(["yes", "no", "no", "no"]))
    0.5
    """
    if first.shape != second.shape or first.ndim != 1 or not len(first):
        raise InputError(
            "two raters must rate the same items",
            given=f"{first.shape} and {second.shape} ratings",
            allowed="two columns of one length, at least 1",
        )
    categories, codes = np.unique(np.concatenate([first, second]), return_inverse=True)
    codes = codes.reshape(2, -1)
    # Whole numbers to the end, so that equal agreement gives equal values.
    n, agreed = len(first), int((codes[0] == codes[1]).sum())
    habits = [np.bincount(row, minlength=len(categories)).astype(object) for row in codes]
    by_chance = int((habits[0] * habits[1]).sum())
    if by_chance == n * n:
        return float("nan")
    return (n * agreed - by_chance) / (n * n - by_chance)
