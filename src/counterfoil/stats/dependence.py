"""Images and captions that questions share, and the dependence that follows.

Where what is shared falls into many small sets of questions (SugarCrepe: an image and its captions), a set is
a unit, drawn, flipped and counted as a whole: `Dependence.components`. Where captions repeat over many images
("a photo of a cat"), such sets run together, although hardly any two questions have an item in common: images
and captions are then crossed factors, and variances are sums over the pairs that share an item.

An item in a large share of the questions says nothing of how answers would change with another one in its
place. Such items are taken as given: captions in more than a quarter of the questions, images in more than
half and beside other images; both among the questions that have anything else. The simulation behind these
limits is in docs/statistics.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Int
from numpy import ndarray

from counterfoil.stats import Reals, Truths, Wholes

#: Captions, and images, in more than this share of the questions are taken as given.
MOST_CAPTIONS, MOST_IMAGES = 1 / 4, 1 / 2

#: Fewer questions than these are no large share of any.
_FEW = 5

#: The fewest components of one size that are taken as units.
COMPONENTS = 50.0

#: Entries that the sets of shared items may take; beyond it pairs that share two items count twice.
_MOST = 1 << 25


@dataclass(frozen=True, eq=False)
class Dependence:
    """The images and the captions of every question.

    `images` and `captions` are (n, k) numbers, a row per question; equal numbers mean the same item, -1 none.

    >>> cats = Dependence(images=np.arange(4)[:, None], captions=np.array([[0, 1], [2, 3], [0, 1], [3, 4]]))
    >>> cats.components.tolist(), cats.independent
    ([0, 1, 0, 1], False)
    """

    images: Int[ndarray, "n k"]
    captions: Int[ndarray, "n l"]
    #: Whether images and captions are taken as crossed also where components could be units.
    always_crossed: bool = False

    def __len__(self) -> int:
        return len(self.images)

    def take(self, rows: Bool[ndarray, "n"] | Int[ndarray, "m"]) -> "Dependence":
        """The same of some questions."""
        return Dependence(self.images[rows], self.captions[rows], self.always_crossed)

    def part(self, rows: Bool[ndarray, "n"]) -> "Dependence":
        """The same of the rows of a mask, worked out once for each mask."""
        key = rows.tobytes()
        if key not in self._parts:
            self._parts[key] = self if rows.all() else self.take(rows)
        return self._parts[key]

    @cached_property
    def _parts(self) -> dict[bytes, "Dependence"]:
        return {}

    @classmethod
    def of_clusters(cls, clusters: Int[ndarray, "n"]) -> "Dependence":
        """Questions of one number share one thing, and nothing else is shared."""
        return cls(numbered(clusters)[:, None], np.zeros((len(clusters), 0), dtype=np.int64))

    @classmethod
    def joined(cls, parts: Sequence["Dependence"]) -> "Dependence":
        """What the same questions share by any of several accounts, of which some may know more."""
        return cls(
            images=_side_by_side([part.images for part in parts]),
            captions=_side_by_side([part.captions for part in parts]),
        )

    @cached_property
    def independent(self) -> bool:
        """Whether no two questions share anything that is not taken as given."""
        return not len(self.shared.signs)

    @cached_property
    def components(self) -> Wholes:
        """(n,) numbers; questions that share an item, directly or through others, have the same."""
        rows, items, size = _entries({"images": self.images, "captions": self.captions})
        n = len(self)
        if len(np.unique(items)) == len(items):  # No item of two questions.
            return np.arange(n)
        from scipy.sparse import coo_matrix
        from scipy.sparse.csgraph import connected_components

        links = coo_matrix((np.ones(len(rows), np.int8), (rows, n + items)), shape=(n + size, n + size))
        return numbered(connected_components(links, directed=False)[1][:n])

    @cached_property
    def clustered(self) -> str:
        """What ties the questions of components: "image", "caption", "image+caption"; "question" if nothing.

        >>> pairs = np.array([[0, 1], [1, 2]])
        >>> Dependence(pairs, pairs + 5).clustered, Dependence(pairs, np.array([[0], [1]])).clustered
        ('image', 'image')
        >>> Dependence(np.array([[0], [0], [1]]), np.array([[0], [1], [1]])).clustered
        'image+caption'
        """
        n, none = len(self), np.zeros((len(self), 0), dtype=np.int64)
        many = len(np.unique(self.components))
        if many == n:
            return "question"
        for name, alone in (("image", replace(self, captions=none)), ("caption", replace(self, images=none))):
            # Fewer links make finer components: with as many of them they are the same.
            if len(np.unique(alone.components)) == many:
                return name
        return "image+caption"

    @cached_property
    def crossed(self) -> bool:
        """Whether components are too few or too large for units, of questions that share nothing directly."""
        if self.always_crossed or self.given_images.any() or self.given_captions.any():
            return True
        together = float((np.bincount(self.components).astype(np.float64) ** 2).sum())
        return len(self) ** 2 < COMPONENTS * together and self.shared.pairs < together

    @cached_property
    def units(self) -> Wholes:
        """(n,) numbers of what is drawn or flipped as a whole: components; where crossed, the images."""
        if not self.crossed:
            return self.components
        images = self._random["images"]
        number = np.unique(np.sort(images, axis=1), axis=0, return_inverse=True)[1].reshape(-1)
        without = (images < 0).all(axis=1)
        return numbered(np.where(without, len(self) + np.arange(len(self)), number))

    @property
    def n_independent(self) -> float:
        """How many questions, of all, have nothing to do with one another."""
        return self.shared.n_independent if self.crossed else float(len(np.unique(self.components)))

    @cached_property
    def fullest(self) -> tuple[tuple[int, int, float], tuple[int, int, float]]:
        """The image, and the caption, in most questions: the row and column of one, and its share of all.

        Items taken as given are left out; the share is 0 where there is no other.
        """
        most = []
        for items in self._random.values():
            counts = np.bincount(_entries({"": items})[1], minlength=1)
            share = float(counts.max()) / max(len(self), 1)
            row, column = np.argwhere(items == counts.argmax())[0].tolist() if share else (0, 0)
            most.append((row, column, share))
        return most[0], most[1]

    @cached_property
    def counts(self) -> tuple[int, int]:
        """How many images, and how many captions, the questions are about."""
        images, captions = (len(np.unique(of[of >= 0])) for of in (self.images, self.captions))
        return images, captions

    @cached_property
    def given_images(self) -> Truths:
        """Which images are taken as given, by number."""
        return _given(self.images, MOST_IMAGES, beside_others=True)

    @cached_property
    def given_captions(self) -> Truths:
        """Which captions are taken as given, by number."""
        return _given(self.captions, MOST_CAPTIONS, beside_others=False)

    @cached_property
    def shared(self) -> "Shared":
        """The pairs of questions that share an image or a caption that is not taken as given."""
        return Shared.of(len(self), *_entries(self._random)[:2])

    @cached_property
    def factors(self) -> tuple["Shared", ...]:
        """The pairs of one component; where crossed, those of one image and those of one caption.

        A kind of item that no two questions share is no factor; where nothing is shared, questions are one.
        """
        n = len(self)
        if not self.crossed:
            return (Shared.of(n, np.arange(n), self.components),)
        pairs = (Shared.of(n, *_entries({kind: of})[:2]) for kind, of in self._random.items())
        return tuple(part for part in pairs if len(part.signs)) or (self.shared,)

    @cached_property
    def _random(self) -> dict[str, Wholes]:
        """The items of each kind, -1 in place of those that are taken as given."""
        random = {}
        for kind in ("images", "captions"):
            items, given = getattr(self, kind), getattr(self, f"given_{kind}")
            random[kind] = np.where((items >= 0) & given[items], -1, items) if len(given) else items
        return random


@dataclass(frozen=True, eq=False)
class Shared:
    """The pairs of questions that share an item, written so that sums over them need no list of pairs.

    For values e the sum of e_i e_j over all ordered pairs that share something is `sum(own * e**2) +
    sum(signs * sums**2)`, where `sums` are the sums of e over each of `sets`: sets share one item, or two, or
    three, with signs by inclusion and exclusion, so that a pair counts once.
    """

    diagonal: Reals
    signs: Reals
    #: For each set the rows of its questions, cut at `starts`.
    members: Wholes
    starts: Wholes

    @classmethod
    def of(cls, n: int, rows: Int[ndarray, "entries"], items: Int[ndarray, "entries"]) -> "Shared":
        """The pairs of n questions, of which row `rows[i]` has the item `items[i]`."""
        if len(rows):
            # Without items of a single question; of items with the same questions one is left. Those have the
            # same sum of random numbers, one for each question.
            items = np.unique(items, return_inverse=True)[1].reshape(-1)
            count, by_item = np.bincount(items), np.argsort(items, kind="stable")
            marks = np.random.default_rng(0).integers(0, 1 << 63, size=n, dtype=np.uint64)[rows[by_item]]
            first = np.concatenate([[0], np.cumsum(count)[:-1]])
            distinct = np.zeros(len(count), dtype=bool)
            distinct[np.unique(np.add.reduceat(marks, first), return_index=True)[1]] = True
            chosen = (distinct & (count > 1))[items]
            rows, items = rows[chosen], items[chosen]
        order = np.lexsort((items, rows))
        rows, items = rows[order], items[order]
        ends = np.searchsorted(rows, np.arange(n), side="right")
        factor, signs = np.ones(n), [np.zeros(0)]
        members, sizes = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        # Sets of questions with one item in common, then with two, ...: extended by items that follow.
        of_row, last, code, sign = rows, np.arange(len(rows)), items, 1.0
        while len(of_row):
            code = np.unique(code, return_inverse=True)[1].reshape(-1)
            count = np.bincount(code)
            repeated = count[code] > 1
            of_row, last, code = of_row[repeated], last[repeated], code[repeated]
            factor -= sign * np.bincount(of_row, minlength=n)
            by_code = np.argsort(code, kind="stable")
            members.append(of_row[by_code])
            sizes.append(np.unique(code, return_counts=True)[1])
            signs.append(np.full(len(sizes[-1]), sign))
            more = ends[of_row] - 1 - last
            if more.sum() > _MOST:
                break
            nth = np.arange(more.sum()) - np.repeat(np.cumsum(more) - more, more)
            following = np.repeat(last, more) + 1 + nth
            code = np.repeat(code, more) * (int(items.max(initial=0)) + 1) + items[following]
            of_row, last, sign = np.repeat(of_row, more), following, -sign
        starts = np.concatenate([[0], np.cumsum(np.concatenate(sizes))])
        return cls(factor, np.concatenate(signs), np.concatenate(members), starts)

    def __len__(self) -> int:
        return len(self.diagonal)

    @cached_property
    def _table(self) -> "object":
        from scipy.sparse import csr_matrix

        ones = np.ones(len(self.members))
        return csr_matrix((ones, self.members, self.starts), shape=(len(self.signs), len(self)))

    def sums(self, values: Reals) -> Reals:
        """(m,) the sum of e_i e_j over all pairs that share something, for each column e of (n, m) values."""
        totals = column_sums(self.diagonal[:, None] * values**2)
        # Some columns at a time: the sums of sets are as many numbers again as the values.
        step = max(1, (1 << 24) // max(len(self.signs), 1))
        for lo in range(0, values.shape[1] if len(self.signs) else 0, step):
            of_sets = self._table @ values[:, lo : lo + step]  # type: ignore[operator]
            totals[lo : lo + step] += column_sums(self.signs[:, None] * of_sets**2)
        return totals

    def around(self, values: Reals) -> Reals:
        """(n, m) the sum of each column over the questions that each shares something with, and itself."""
        totals: Reals = self.diagonal[:, None] * values
        if len(self.signs):
            of_sets = self.signs[:, None] * (self._table @ values)  # type: ignore[operator]
            totals += self._table.T @ of_sets  # type: ignore[attr-defined]
        return totals

    @cached_property
    def partners(self) -> Reals:
        """(n,) with how many questions each shares something, itself included."""
        return self.around(np.ones((len(self), 1)))[:, 0]

    @cached_property
    def pairs(self) -> float:
        """How many ordered pairs share something, each question with itself included."""
        return float(self.partners.sum())

    @cached_property
    def n_independent(self) -> float:
        """The least number of questions that share nothing with one another: the bound of Caro and Wei."""
        return float((1 / self.partners).sum())


def column_sums(values: Reals) -> Reals:
    """(m,) the sum of each column, with the same bits whatever other columns there are.

    >>> column_sums(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([4., 6.])
    """
    return np.asarray(np.ascontiguousarray(values.T).sum(axis=1))


def numbered(labels: ndarray) -> Wholes:
    """Equal labels as equal numbers 0, 1, 2, ... in order of first appearance.

    >>> numbered(np.array([7, 3, 7, 5]))
    array([0, 1, 0, 2])
    """
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse.reshape(-1)].astype(np.int64)


def _entries(items: Mapping[str, ndarray]) -> tuple[Wholes, Wholes, int]:
    """Distinct (row, item) pairs with numbers of their own for every kind of item, and how many numbers."""
    rows, numbers, size = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], 0
    for of in items.values():
        row, column = np.nonzero(of >= 0)
        rows.append(row)
        numbers.append(of[row, column] + size)
        size += int(of.max(initial=-1)) + 1
    both = np.unique(np.stack([np.concatenate(rows), np.concatenate(numbers)]), axis=1)
    return both[0], both[1], size


def _given(items: ndarray, most: float, *, beside_others: bool) -> Truths:
    """Which items are in more than a share of the questions, of those that have anything but such items.

    With `beside_others` only those whose questions all have another item of the kind.
    """
    rows, numbers, size = _entries({"": items})
    given = np.zeros(size, dtype=bool)
    counts = np.bincount(numbers, minlength=size)
    left = np.bincount(rows, minlength=len(items))
    # From the most frequent on; each that is given leaves fewer questions to be a share of.
    for item in np.argsort(-counts, kind="stable").tolist():
        if counts[item] < _FEW or counts[item] <= most * np.count_nonzero(left):
            break
        of_item = rows[numbers == item]
        if not beside_others or (left[of_item] > 1).all():
            given[item] = True
            left[of_item] -= 1
    return given


def _side_by_side(tables: Sequence[ndarray]) -> Wholes:
    """Items of several accounts, each with numbers of its own; accounts that say the same count once."""
    different: list[Wholes] = []
    for table in tables:
        renumbered = np.where(table >= 0, numbered(table.reshape(-1)).reshape(table.shape), -1)
        if not any(np.array_equal(renumbered, other) for other in different):
            different.append(renumbered)
    size = 0
    for i, table in enumerate(different):
        different[i] = np.where(table >= 0, table + size, -1)
        size += int(table.max(initial=-1)) + 1
    return np.concatenate(different, axis=1)
