"""A row-by-row account of SugarCrepe's refinement of two scores, for tests and for the ratio in benchmarks/.

Written from the rule: bins of 1/50 in both gaps, mirrored cells of equal size, rows of one gap 0 balanced by
the other in bins of 1/10, rows without any gap kept. Its last bin is closed, where the released code fails.
"""

from collections.abc import Callable

Choose = Callable[[list[int], int], list[int]]


def refined(first, second, choose):
    """The rows kept, in no order that means anything; `choose` picks so many of a list."""
    kept = []
    grid = {}
    without_first = {}
    without_second = {}
    for row, (a, b) in enumerate(zip(first, second, strict=True)):
        if a == 0 and b == 0:
            kept.append(row)
        elif a == 0:
            without_first.setdefault(_bin(b, 10), []).append(row)
        elif b == 0:
            without_second.setdefault(_bin(a, 10), []).append(row)
        else:
            grid.setdefault((_bin(a, 50), _bin(b, 50)), []).append(row)
    for i in range(1, 51):
        for j in range(1, 51):
            kept += _balanced(grid.get((i, j), []), grid.get((-i, -j), []), choose)
            kept += _balanced(grid.get((i, -j), []), grid.get((-i, j), []), choose)
    for line in (without_first, without_second):
        for i in range(1, 11):
            kept += _balanced(line.get(i, []), line.get(-i, []), choose)
    return kept


def _bin(gap, bins):
    number = min(int(abs(gap) * bins) + 1, bins)
    return number if gap > 0 else -number


def _balanced(one, other, choose):
    if len(one) > len(other):
        return other + choose(one, len(other))
    return one + choose(other, len(one))
