"""The order in which people see items, blocks of items, and the options of a question; pure and seeded."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from jaxtyping import Int
from numpy import ndarray

from counterfoil.annotate.campaign import CampaignRecipe
from counterfoil.annotate.forms.base import FormField, WorkItem
from counterfoil.annotate.golden import add_golden, grouped
from counterfoil.errors import InputError
from counterfoil.stats.bootstrap import random_numbers

#: Exchanges per place of a plan: enough that which items meet in a block is left to chance.
_EXCHANGES = 4


def shown_order(seed: int, person: str, item: str, field: FormField) -> tuple[int, ...]:
    """The order of a field's options for a person; it follows from the arguments, so that a browser sends
    places alone.
    """
    n = len(field.options)
    if not field.shuffled:
        return tuple(range(n))
    free = n - field.last
    rng = random_numbers(seed, "options", person, item, field.name)
    return (*rng.permutation(free).tolist(), *range(free, n))


def work_order(items: Sequence[WorkItem], recipe: CampaignRecipe) -> Int[ndarray, "items"]:
    """The rank of each item in the queue, from 0: random, with kinds spread evenly over the queue."""
    rng = random_numbers(recipe.seed, "queue")
    positions = np.empty(len(items))
    for members in grouped(item.kind for item in items).values():
        # The n items of a kind are in n stretches of the queue, one in each.
        positions[rng.permutation(members)] = (np.arange(len(members)) + rng.random(len(members))) / len(
            members
        )
    ranks = np.empty(len(items), dtype=np.int64)
    ranks[np.argsort(positions, kind="stable")] = np.arange(len(items))
    return ranks


def plan_blocks(items: Sequence[WorkItem], recipe: CampaignRecipe) -> tuple[tuple[int, ...], ...]:
    """Blocks of places of items, each for one person; a block that several people do is there once for each.

    No block has an instance twice; kinds, and right answers of golden items, are as even as the numbers
    allow. Where the numbers do not divide some blocks have one work item fewer.
    """
    rng = random_numbers(recipe.seed, "blocks")
    work = [position for position, item in enumerate(items) if item.role == "work"]
    size = recipe.per_person - recipe.golden_per_block
    copies = recipe.overlap // recipe.people_per_block
    n_blocks = -(-len(work) * copies // size)
    groups = grouped(items[position].exclusion_group for position in work)
    name, largest = max(groups.items(), key=lambda group: len(group[1]))
    needed = len(largest) * copies
    if needed > n_blocks:
        raise InputError(
            f"instance '{name}' needs {needed:,} blocks, one per answer, but {len(work):,} items with an "
            f"overlap of {copies} fill only {n_blocks:,} blocks of {size}",
            hint="lower per_person, or give more items",
        )
    dealt = _dealt(items, work, list(groups.values()), copies, n_blocks, rng)
    plan = _Plan(items, dealt)
    plan.even_out(rng)
    plan.exchange(rng)
    add_golden(plan.blocks, items, recipe, rng)
    done = [rng.permutation(block).tolist() for block in plan.blocks for _ in range(recipe.people_per_block)]
    # Items of one direction ("i2t" of the kind "i2t-0") stand after those of the other, and golden items of
    # no kind among all of them.
    for block in done if recipe.by_direction else ():
        directions = {position: items[position].kind.partition("-")[0] for position in block}
        names = sorted(set(directions.values()) - {""})
        order = {name: place for place, name in enumerate(names)}
        parts = {
            position: order.get(way, int(rng.integers(max(1, len(names)))))
            for position, way in directions.items()
        }
        block.sort(key=parts.__getitem__)
    return tuple(map(tuple, done))


def _dealt(
    items: Sequence[WorkItem],
    work: Sequence[int],
    groups: Sequence[Sequence[int]],
    overlap: int,
    n_blocks: int,
    rng: np.random.Generator,
) -> list[list[int]]:
    """Deal answers to blocks in turn; no block gets an instance twice, and kinds go round."""
    from scipy.optimize import linear_sum_assignment

    kinds = {kind: i for i, kind in enumerate(sorted({items[position].kind for position in work}))}
    counts = np.zeros((n_blocks, len(kinds)))
    dealt: list[list[int]] = [[] for _ in range(n_blocks)]
    shuffled = [groups[position] for position in rng.permutation(len(groups))]
    next_block = 0
    for group in sorted(shuffled, key=lambda group: sorted(items[work[position]].kind for position in group)):
        copies = [work[position] for position in group] * overlap
        blocks = [(next_block + position) % n_blocks for position in range(len(copies))]
        next_block = (next_block + len(copies)) % n_blocks
        of_kind = [kinds[items[position].kind] for position in copies]
        if len(set(of_kind)) > 1:
            _, chosen = linear_sum_assignment(counts[np.ix_(blocks, of_kind)] ** 2)
            copies = [copies[position] for position in chosen]
        for block, position in zip(blocks, copies, strict=True):
            dealt[block].append(position)
            counts[block, kinds[items[position].kind]] += 1
    return dealt


class _Plan:
    """Blocks whose items change places, while no block has an instance twice and sizes stay."""

    def __init__(self, items: Sequence[WorkItem], blocks: list[list[int]]) -> None:
        self.items, self.blocks = items, blocks
        self.groups = [{items[i].exclusion_group for i in block} for block in blocks]

    def fits(self, first: int, i: int, second: int, j: int) -> bool:
        """Whether items i and j of two blocks can change places."""
        positions = self.blocks[first][i], self.blocks[second][j]
        one, two = (self.items[position].exclusion_group for position in positions)
        if one == two:
            return self.blocks[first][i] != self.blocks[second][j]
        return one not in self.groups[second] and two not in self.groups[first]

    def swap(self, first: int, i: int, second: int, j: int) -> None:
        one, two = self.blocks[first], self.blocks[second]
        one[i], two[j] = two[j], one[i]
        for block, came, left in ((first, one[i], two[j]), (second, two[j], one[i])):
            self.groups[block] -= {self.items[left].exclusion_group}
            self.groups[block] |= {self.items[came].exclusion_group}

    def even_out(self, rng: np.random.Generator) -> None:
        """Exchange items of different kinds as long as that makes the kinds of two blocks more even."""
        counts = [Counter(self.items[i].kind for i in block) for block in self.blocks]
        for kind in sorted({item.kind for item in self.items}):
            while self._even(kind, counts, rng):
                pass

    def _even(self, kind: str, counts: list[Counter[str]], rng: np.random.Generator) -> bool:
        """Move an item between blocks to even out a kind; return whether one moved."""
        order = sorted(range(len(counts)), key=lambda block: counts[block][kind])
        low, high = order[0], order[-1]
        if counts[high][kind] - counts[low][kind] < 2:
            return False
        for i in rng.permutation(len(self.blocks[high])).tolist():
            if self.items[self.blocks[high][i]].kind != kind:
                continue
            for j in rng.permutation(len(self.blocks[low])).tolist():
                other = self.items[self.blocks[low][j]].kind
                if counts[low][other] > counts[high][other] and self.fits(high, i, low, j):
                    self.swap(high, i, low, j)
                    counts[high].update({kind: -1, other: 1})
                    counts[low].update({kind: 1, other: -1})
                    return True
        return False

    def exchange(self, rng: np.random.Generator) -> None:
        """Exchange items of one kind at random, so that blocks dealt side by side do not stay alike."""
        if len(self.blocks) < 2:
            return
        n = _EXCHANGES * sum(map(len, self.blocks))
        pairs = rng.integers(len(self.blocks), size=(n, 2)).tolist()
        spots = rng.random((n, 2)).tolist()
        for (first, second), (u, v) in zip(pairs, spots, strict=True):
            i, j = int(u * len(self.blocks[first])), int(v * len(self.blocks[second]))
            one, two = self.items[self.blocks[first][i]], self.items[self.blocks[second][j]]
            if first != second and one.kind == two.kind and self.fits(first, i, second, j):
                self.swap(first, i, second, j)
