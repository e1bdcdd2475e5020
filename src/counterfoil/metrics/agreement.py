"""Agreement between people who judge the same items: shares of pairs, kappas and Krippendorff's alpha.

    data = ReliabilityData.of(items, people, values)      # one row per answer; a missing answer has no row
    krippendorff_alpha(data, Scale.ORDINAL), fleiss_kappa(data.votes)

All look at pairs of answers of two people to one item; items with one answer count for nothing. Options that
differ from item to item, such as the captions to choose from, are *exchangeable*: two people who guess among
k of them agree in 1 / k of cases. Intervals: `counterfoil.evaluation.agreement`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from jaxtyping import Float, Int, Real
from numpy import ndarray
from numpy.typing import NDArray

from counterfoil.errors import InputError


class Scale(StrEnum):
    """How far two answers are apart: equal or not, by rank, or by the square of their difference."""

    NOMINAL = "nominal"
    ORDINAL = "ordinal"
    INTERVAL = "interval"


@dataclass(frozen=True, eq=False)
class ReliabilityData:
    """Answers of people about items, sorted by item and category; items, people and categories are numbered.

    `categories` are the distinct values, ascending. `row` is where each answer stood in what it was made
    from. `alike` is of each answer how many exchangeable options its item has, 0 where the answer is none of
    these; their categories are the first ones, numbered item by item, by the first person who chose them.
    """

    item: Int[ndarray, "answers"]
    person: Int[ndarray, "answers"]
    category: Int[ndarray, "answers"]
    row: Int[ndarray, "answers"]
    categories: ndarray
    n_items: int
    n_people: int
    alike: Int[ndarray, "answers"]

    @classmethod
    def of(
        cls,
        items: Sequence[object] | ndarray,
        people: Sequence[object] | ndarray,
        values: ndarray,
        alike: Int[ndarray, "_"] | None = None,
    ) -> "ReliabilityData":
        """From one row per answer: the item, the person and what was answered; numbers or strings.

        Raises `InputError` for no answers, columns of different lengths, NaN, and two answers of one person
        about one item.

        >>> data = ReliabilityData.of(["a", "a", "b"], ["x", "y", "x"], np.array([1, 2, 2]))
        >>> data.n_items, data.n_people, data.votes.tolist()
        (2, 2, [[1, 1], [0, 1]])
        """
        columns = [np.asarray(column) for column in (items, people, values)]
        if any(column.shape != (len(columns[0]),) for column in columns) or not len(columns[0]):
            given = " and ".join(str(column.shape) for column in columns)
            raise InputError("agreement needs a row per answer", given=given, allowed="columns of one length")
        if columns[2].dtype.kind == "f" and np.isnan(columns[2]).any():
            row = int(np.argmax(np.isnan(columns[2])))
            hint = "leave out the rows of missing answers"
            raise InputError("an answer is not a number", where=f"row {row}", given="NaN", hint=hint)
        (item_names, item), (names, person), (categories, category) = (
            np.unique(column, return_inverse=True) for column in columns
        )
        alike = np.zeros(len(item), dtype=np.int64) if alike is None else alike
        if alike.any():
            # Exchangeable ones by the first person of the item who chose them, then all others in order.
            loose = alike > 0
            cells, cell = np.unique(np.stack([item, category]), axis=1, return_inverse=True)
            cell = cell.reshape(-1)
            first = np.full(cells.shape[1], person.max() + 1)
            np.minimum.at(first, cell[loose], person[loose])
            order = np.lexsort((first, cells[0]))
            of_item = cells[0][order]
            place = np.empty(len(order), dtype=np.int64)
            place[order] = np.arange(len(order)) - np.searchsorted(of_item, of_item)
            others = np.unique(category[~loose], return_inverse=True)[1].reshape(-1)
            category = place[cell]
            category[~loose] = others + int(category[loose].max()) + 1
            categories = np.arange(category.max() + 1)
        order = np.lexsort((category, item))
        pair = np.sort(item.astype(np.int64) * len(names) + person)
        if len(twice := pair[1:][pair[1:] == pair[:-1]]):
            given = f"{names[twice[0] % len(names)]}, {item_names[twice[0] // len(names)]}"
            raise InputError("a person answered twice about one item", given=given)
        item, person, category, alike = (array[order] for array in (item, person, category, alike))
        return cls(item, person, category, order, categories, len(item_names), len(names), alike)

    @property
    def votes(self) -> Int[ndarray, "items categories"]:
        """How many people chose each category for each item."""
        width = len(self.categories)
        counts = np.bincount(self.item * width + self.category, minlength=self.n_items * width)
        return counts.reshape(self.n_items, width)


@dataclass(frozen=True, eq=False)
class WeightedAgreement:
    """Agreement in each reweighting: raw, Fleiss' kappa, Krippendorff's alpha; NaN where undefined.

    `unequal` is the chance, as kappa reckons it, that two answers differ; `distance` the mean distance that
    alpha expects, where 1 is the largest distance of two categories. So 1 - (1 - kappa) * unequal is a share.
    """

    raw: Float[ndarray, "draws"]
    kappa: Float[ndarray, "draws"]
    alpha: Float[ndarray, "draws"]
    unequal: Float[ndarray, "draws"]
    distance: Float[ndarray, "draws"]


def krippendorff_alpha(data: ReliabilityData, scale: Scale = Scale.NOMINAL) -> float:
    """Krippendorff's alpha: 1 less the disagreement of an item's answers over that of all answers.

        alpha = 1 - D_o / D_e

    D_o is the mean distance of an answer to the others about its item, D_e that of two answers of any items.
    The distance of two categories is 1 (nominal), the square of the answers in between, half of those in
    either among them (ordinal), or the square of their difference (interval). Items with one answer are left
    out. At most 1; 0 is chance. NaN where no item has two answers, or all are equal. Raises `InputError` for
    values that are no numbers on an interval scale. Source: K. Krippendorff, Computing Krippendorff's
    alpha-reliability, 2011.

    >>> data = ReliabilityData.of([1, 1, 2, 2, 3, 3], list("ababab"), np.array([1, 1, 2, 3, 3, 3]))
    >>> [round(krippendorff_alpha(data, scale), 4) for scale in Scale]
    [0.5455, 0.7778, 0.8276]
    """
    return float(weighted_agreement(data, scale).alpha[0])


def pair_kappas(
    data: ReliabilityData,
) -> tuple[Float[ndarray, "people people"], Int[ndarray, "people people"]]:
    """Cohen's kappa of every two people over the items that both judged, and how many those are.

    NaN on the diagonal, where two people share no item, and where both put everything into the same category.
    Source: J. Cohen, A coefficient of agreement for nominal scales, 1960; BiVLC, table 7.

    >>> items, values = [1, 1, 2, 2, 3, 3, 4, 4], np.array([1, 1, 1, 0, 0, 0, 0, 0])
    >>> data = ReliabilityData.of(items, ["a", "b"] * 4, values)
    >>> kappas, shared = pair_kappas(data)
    >>> kappas[0, 1].item(), shared[0, 1].item()
    (0.5, 4)
    """
    shape = (data.n_people, data.n_items)
    judged = _sparse(data.person, data.item, shape)
    shared = (judged @ judged.T).toarray()
    agreed, by_chance = np.zeros(shared.shape), np.zeros(shared.shape)
    for category in range(len(data.categories)):
        rows = data.category == category
        gave = _sparse(data.person[rows], data.item[rows], shape)
        agreed += (gave @ gave.T).toarray()
        # How often the row's person gave this answer to what the column's person judged as well.
        habit = (gave @ judged.T).toarray()
        if not data.alike[rows].any():
            by_chance += habit * habit.T
    rows = data.alike > 0
    if rows.any():
        # Two exchangeable options are one in as many as the item has.
        where = data.person[rows], data.item[rows], shape
        joint, one_in = (
            (_sparse(*where, values) @ judged.T).toarray() for values in (None, 1 / data.alike[rows])
        )
        by_chance += joint * joint.T * (one_in + one_in.T) / np.maximum(joint + joint.T, 1)
    np.fill_diagonal(shared, 0)
    room = shared**2 - by_chance
    kappas = np.divide(
        shared * agreed - by_chance, room, out=np.full(shared.shape, np.nan), where=(shared > 0) & (room > 0)
    )
    return kappas, shared.astype(np.int64)


def weighted_agreement(
    data: ReliabilityData,
    scale: Scale,
    *,
    answers: Float[ndarray, "answers #draws"] | None = None,
    items: Float[ndarray, "items #draws"] | None = None,
) -> WeightedAgreement:
    """Raw agreement, Fleiss' kappa and alpha where answers and items weigh as given; 1 by default.

    A pair of an item's answers weighs the product of their weights and the item's; an answer is never
    compared with itself. Each column is one reweighting, of weights above 0 (those of items may be 0), for
    answers in the order of `data`.

    >>> data = ReliabilityData.of([1, 1, 2, 2], list("abab"), np.array([0, 0, 0, 1]))
    >>> weighted_agreement(data, Scale.NOMINAL, items=np.array([[1.0, 3.0], [1.0, 1.0]])).raw
    array([0.5 , 0.75])
    """
    paired = np.bincount(data.item, minlength=data.n_items)[data.item] >= 2
    weight = np.ones((len(data.item), 1)) if answers is None else answers
    weights = np.ones((data.n_items, 1)) if items is None else items
    draws = max(weight.shape[1], weights.shape[1])
    if not paired.any():
        return WeightedAgreement(*(np.full(draws, np.nan) for _ in range(5)))
    item, weight, alike = data.item[paired], weight[paired], data.alike[paired]
    present, category = np.unique(data.category[paired], return_inverse=True)
    # A cell is an item's answers of one category; answers are sorted by item and category.
    new_item = np.r_[True, item[1:] != item[:-1]]
    new_cell = new_item | np.r_[True, category[1:] != category[:-1]]
    of_cell, item_of = category[new_cell], np.cumsum(new_item[new_cell]) - 1
    into_cells, into_items, into_categories = (
        _sums_by(where) for where in (np.cumsum(new_cell) - 1, item_of, of_cell)
    )
    weights = weights[item[new_item]]

    cell = into_cells @ weight
    total = into_items @ cell
    squares = into_items @ (into_cells @ (weight * weight))
    # Pairs of an item's answers, and those that are equal; each item's pairs together weigh its own weight.
    pairs, equal = total * total - squares, into_items @ (cell * cell) - squares
    many = np.bincount(item)[item[new_item]][:, None]
    pair_weight = weights / (many * (many - 1))
    raw = (pair_weight * equal).sum(axis=0) / (pair_weight * pairs).sum(axis=0)

    marginal = into_categories @ (weights[item_of] * cell)
    n = marginal.sum(axis=0)
    # Categories that are the same thing throughout; two others are equal one time in their number.
    fixed = np.ones(len(marginal), dtype=bool)
    fixed[category[alike > 0]] = False
    joint = marginal[~fixed].sum(axis=0)
    rows = alike > 0
    loose = weights[(np.cumsum(new_item) - 1)[rows]] * weight[rows]
    one_in = (loose / alike[rows, None]).sum(axis=0) / np.maximum(joint, 1e-300)
    by_chance = ((marginal[fixed] / n) ** 2).sum(axis=0) + one_in * (joint / n) ** 2
    kappa = _over(raw - by_chance, 1 - by_chance)

    # Two different answers: all pairs but each answer with itself.
    different = n**2 - (weights * weights * squares).sum(axis=0)
    if scale == Scale.NOMINAL:
        distance, expected = pairs - equal, n**2 - (marginal[fixed] ** 2).sum(axis=0)
        expected = expected - joint**2 * one_in - (1 - one_in) * (loose * loose).sum(axis=0)
    else:
        x = _positions(scale, data.categories[present], marginal)
        placed = cell * x[of_cell]
        first, second = into_items @ placed, into_items @ (placed * x[of_cell])
        distance = 2 * (total * second - first * first)
        expected = 2 * (n * (marginal * x**2).sum(axis=0) - (marginal * x).sum(axis=0) ** 2)
    observed = (pair_weight * many * distance).sum(axis=0) / (pair_weight * many * pairs).sum(axis=0)
    expected = expected / different
    alpha = 1 - _over(observed, expected)
    full = (np.broadcast_to(array, draws) for array in (raw, kappa, alpha, 1 - by_chance, expected))
    return WeightedAgreement(*full)


def _positions(scale: Scale, values: ndarray, marginal: NDArray[np.float64]) -> NDArray[np.float64]:
    """Where each category stands, the widest gap being 1: by its middle rank among answers, or its value."""
    if scale == Scale.ORDINAL:
        x = np.cumsum(marginal, axis=0) - marginal / 2
    elif values.dtype.kind in "biuf":
        x = values.astype(np.float64)[:, None]
    else:
        problem = "an interval scale needs numbers"
        raise InputError(problem, given=values[0], allowed="numbers, or another scale")
    x = x - x[0]
    # Around the middle, so that little cancels.
    return np.asarray(x / np.maximum(x[-1], 1e-300) - 0.5)


def _sparse(
    rows: ndarray, columns: ndarray, shape: tuple[int, int] | None, values: ndarray | None = None
) -> Any:
    """A sparse matrix, of ones by default. SciPy is loaded only where agreement is measured."""
    from scipy.sparse import csr_array

    values = np.ones(len(rows)) if values is None else values
    return csr_array((values, (rows, columns)), shape=shape)


def _sums_by(group: Int[ndarray, "n"]) -> Any:
    """The matrix that adds up the rows of each group 0, 1, ..."""
    return _sparse(group, np.arange(len(group)), None)


def _over(part: NDArray[np.float64], whole: NDArray[np.float64]) -> NDArray[np.float64]:
    """part / whole, NaN where there is nothing: rounding aside, nothing is left of 1 - 1."""
    whole = np.broadcast_to(whole, part.shape)
    return np.asarray(np.divide(part, whole, out=np.full(part.shape, np.nan), where=np.abs(whole) > 1e-12))


def cohen_kappa_draws(
    first: Int[ndarray, "n"],
    second: Int[ndarray, "n"],
    weights: Float[ndarray, "n draws"],
    alike: Int[ndarray, "2 n"] | None = None,
) -> tuple[Float[ndarray, "draws"], Float[ndarray, "draws"]]:
    """Cohen's kappa and 1 - p_e in each reweighting of the items, from codes of categories from 0 on.

    `alike` is as in `ReliabilityData`, of both people's answers.

    >>> first, second = np.array([1, 1, 0, 0]), np.array([1, 0, 0, 0])
    >>> kappa, unequal = cohen_kappa_draws(first, second, np.array([[1.0, 1], [1, 0], [1, 1], [1, 1]]))
    >>> kappa, unequal.round(4)
    (array([0.5, 1. ]), array([0.5   , 0.4444]))
    """
    width, n = 1 + max(int(first.max()), int(second.max())), weights.sum(axis=0)
    joint = (_sums_by(np.r_[first * width + second, width**2 - 1])[:, :-1] @ weights).reshape(
        width, width, -1
    ) / n
    agreed = np.trace(joint)
    habits = joint.sum(axis=0), joint.sum(axis=1)
    fixed = np.ones(width, dtype=bool)
    loose = np.zeros((2, len(first)), dtype=bool) if alike is None else alike > 0
    fixed[np.stack([first, second])[loose]] = False
    by_chance = (habits[0][fixed] * habits[1][fixed]).sum(axis=0)
    if alike is not None and loose.any():
        one_in = np.where(loose, 1 / np.maximum(alike, 1), 0.0).sum(axis=0) @ weights
        one_in = one_in / np.maximum(loose.sum(axis=0) @ weights, 1e-300)
        by_chance += habits[0][~fixed].sum(axis=0) * habits[1][~fixed].sum(axis=0) * one_in
    return _over(agreed - by_chance, 1 - by_chance), 1 - by_chance


def fleiss_kappa(votes: Real[ndarray, "n categories"]) -> float:
    """Fleiss' kappa of items that several raters each put into one category, not the same raters for all.

        kappa = (p_o - p_e) / (1 - p_e)

    `votes` counts the raters of each category. p_o is the mean share of pairs of an item's raters that agree,
    p_e the sum of the squared shares of categories. Items of fewer than two votes are left out; numbers of
    votes may differ. At most 1; 0 is chance. NaN where no item has two votes, or all votes are for one
    category. Source: J. L. Fleiss, Measuring nominal scale agreement among many raters, 1971.

    >>> round(fleiss_kappa(np.array([[3, 0], [0, 3], [1, 2]])), 4)
    0.55
    """
    many = votes.sum(axis=1)
    votes, many = votes[many >= 2], many[many >= 2]
    shares = votes.sum(axis=0) / max(many.sum(), 1)
    by_chance = float((shares**2).sum())
    if not len(votes) or by_chance == 1:
        return float("nan")
    agreed = ((votes * (votes - 1)).sum(axis=1) / (many * (many - 1))).mean()
    return float((agreed - by_chance) / (1 - by_chance))
