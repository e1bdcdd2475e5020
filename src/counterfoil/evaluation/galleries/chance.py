"""Chance in a gallery, in closed form: the values of a scorer to which all pairs are alike."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

from counterfoil.data.benchmark import Benchmark
from counterfoil.data.scores import DirectionRanks, Rankings
from counterfoil.evaluation.galleries.means import mean
from counterfoil.evaluation.galleries.retrieval import POLICIES, per_item
from counterfoil.metrics.class_rules import Plausible
from counterfoil.metrics.ties import Ties


def chance(benchmark: Benchmark, names: Sequence[str] | None = None) -> dict[str, float]:
    """The value of each measure under a random order of the gallery, in closed form.

    It is what a scorer that returns a constant gets under `half`, where the rankings are whole.
    """
    return {name: mean(benchmark, values) for name, values in chance_per_item(benchmark, names).items()}


def chance_per_item(
    benchmark: Benchmark, names: Sequence[str] | None = None
) -> dict[str, Float[ndarray, "n"]]:
    """What chance gives each query, as `per_item`."""
    return per_item(benchmark, constant(benchmark), ties=Ties.HALF, measures=names)


def constant(benchmark: Benchmark) -> Rankings:
    """The answers of a scorer to which all pairs are alike."""
    gallery = benchmark.gallery
    of_image, of_caption = gallery.sizes
    sides = []
    for search, sizes, parts, of_items in (
        (gallery.i2t, of_image, gallery.image_parts, gallery.caption_parts),
        (gallery.t2i, of_caption, gallery.caption_parts, gallery.image_parts),
    ):
        none = np.empty((len(search), 0))
        above, level, shares = np.empty(0, np.int64), np.empty(0, np.int64), None
        if isinstance(search.positives, Plausible):
            asked = None if parts is None else parts[search.queries]
            shares = _constant_shares(search.positives, sizes, asked, of_items)
        else:
            found = search.positives
            present = found.items >= 0
            above = np.where(present, 0, -1)
            level = np.where(present, sizes[found.queries], 0)
        sides.append(
            DirectionRanks(above, level, sizes, none.astype(np.int32), none.astype(np.float32), shares=shares)
        )
    return Rankings(sides[0], sides[1])


def _constant_shares(
    rule: Plausible,
    sizes: Int[ndarray, "queries"],
    parts: Int[ndarray, "queries"] | None,
    item_parts: Int[ndarray, "items"] | None,
) -> Float[ndarray, "thresholds 3 queries"]:
    """The R-Precision of a constant: strict, half and optimistic, from how many items match a query.

    Of n items of which p match, all level, the first r = min(p, cap) hold p r / n matches on average, at
    least r - (n - p), at most r. Items with the same code are counted once.
    """
    shares = np.full((len(rule.thresholds), len(POLICIES), len(sizes)), np.nan)
    for part in [None] if parts is None else np.unique(parts):
        asked = np.arange(len(sizes)) if parts is None else np.flatnonzero(parts == part)
        items = slice(None) if item_parts is None else item_parts == part
        codes, of = np.unique(rule.query_codes[asked], axis=0, return_inverse=True)
        known, many = np.unique(rule.item_codes[items], axis=0, return_counts=True)
        few = Plausible(codes, known, rule.thresholds, rule.cap)
        for lo in range(0, len(codes), 1024):
            distances = few.distances(slice(lo, lo + 1024))
            inside = (of.reshape(-1) >= lo) & (of.reshape(-1) < lo + 1024)
            rows = asked[inside]
            for t, threshold in enumerate(rule.thresholds):
                p = ((distances <= threshold) @ many)[of.reshape(-1)[inside] - lo]
                r = p if rule.cap is None else np.minimum(p, rule.cap)
                n = sizes[rows]
                values = np.stack([np.maximum(r - (n - p), 0), r * p / n, r])
                shares[t][:, rows] = np.divide(values, r, out=np.full(values.shape, np.nan), where=r > 0)
    return shares
