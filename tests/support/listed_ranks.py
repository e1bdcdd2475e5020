"""Ranks of positives in lists of columns, best first, which may end before the gallery does."""

import numpy as np

from counterfoil.metrics.ranks import from_places, list_places


def list_ranks(lists, positives, *, gallery, truncated_as_miss=False):
    """The ranks; with `truncated_as_miss` a positive behind the end counts as never found."""
    above = list_places(lists, positives, gallery=gallery)
    depth = np.array([gallery if truncated_as_miss else len(ranking) for ranking in lists], dtype=np.int64)
    return from_places(positives, above, (above >= 0).astype(np.int64), depth=depth, gallery=gallery)
