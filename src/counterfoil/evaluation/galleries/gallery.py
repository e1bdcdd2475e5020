"""One scorer on one gallery: every measure a mean over the queries that have a value, with its interval.

Both directions count the same in a mean of both, and in a direction all parts of the gallery do.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterfoil.data.benchmark import Benchmark
from counterfoil.data.scores import Rankings
from counterfoil.errors import InputError
from counterfoil.evaluation.galleries.chance import chance_per_item
from counterfoil.evaluation.galleries.means import columns, mean
from counterfoil.evaluation.galleries.retrieval import measured, per_item, tied
from counterfoil.evaluation.question_means import IntervalMethod, dependence, facts
from counterfoil.evaluation.result import Estimate, Result
from counterfoil.metrics.measure import DIRECTIONS, split_direction
from counterfoil.metrics.ranks import Positives
from counterfoil.metrics.ties import Ties
from counterfoil.stats.estimates import wilson
from counterfoil.stats.sharing import Sharing
from counterfoil.stats.table_estimates import table_spread


def no_folds(benchmark: Benchmark) -> InputError:
    """The error of asking for an interval that galleries do not have."""
    return InputError(
        "a gallery has no folds: a query needs all of its items",
        where=benchmark.name,
        given=f"interval '{IntervalMethod.FOLDS}'",
        allowed=tuple(one for one in IntervalMethod if one is not IntervalMethod.FOLDS),
    )


def evaluate_gallery(
    benchmark: Benchmark,
    rankings: Rankings,
    *,
    scorer: str,
    ties: Ties,
    interval: IntervalMethod,
    draws: int,
    seed: int,
    measures: Sequence[str] | None,
    provenance: Mapping[str, Any],
) -> Result:
    """All measures of one scorer on one gallery, with 95 % intervals: what `evaluate` gives for galleries.

    Intervals are from the bootstrap over images with their captions, whose draws all measures share; where
    captions repeat over images from the crossed variance; with `wilson` as if queries had nothing in common.
    Errors as `retrieval.measured`.
    """
    # All queries look through the same items, so `auto` never takes them as independent.
    shared = dependence(benchmark.sharing, interval)
    found = measured(benchmark, rankings, ties=ties, measures=measures)
    names = tuple(found.values)
    by_chance = chance_per_item(benchmark, names)

    def estimates(rows: NDArray[np.bool_]) -> dict[str, Estimate]:
        values = {name: np.where(rows, column, np.nan) for name, column in found.values.items()}
        chances = {name: mean(benchmark, np.where(rows, by_chance[name], np.nan)) for name in names}
        return _estimates(
            benchmark, values, chances, interval=interval, shared=shared, draws=draws, seed=seed
        )

    return Result(
        benchmark=benchmark.name,
        scorer=scorer,
        measures=estimates(np.ones(len(benchmark), dtype=bool)),
        groups={label: estimates(mask) for label, mask in benchmark.questions.groups().items()},
        ties=_ties(benchmark, rankings, ties, found.values),
        provenance={
            **provenance,
            "interval": {
                **facts(benchmark, interval, draws=draws, seed=seed),
                **(
                    {"method": "bootstrap"}
                    if interval is IntervalMethod.AUTO and not benchmark.sharing.crossed
                    else {}
                ),
            },
            "gallery": _facts(benchmark, rankings, found.unsupported),
        },
    )


def _estimates(
    benchmark: Benchmark,
    values: Mapping[str, NDArray[np.float64]],
    chances: Mapping[str, float],
    *,
    interval: IntervalMethod,
    shared: NDArray[np.int64] | Sharing,
    draws: int,
    seed: int,
) -> dict[str, Estimate]:
    """Measures that no row of `values` says anything about are left out, and means of one direction only."""
    gallery = benchmark.gallery
    counts = {
        name: [int((~np.isnan(column[gallery.directions == side])).sum()) for side in (0, 1)]
        for name, column in values.items()
    }
    names = [
        name
        for name, (i2t, t2i) in counts.items()
        if (i2t and t2i) or (i2t + t2i and split_direction(name)[0] != "mean")
    ]
    if not names:
        return {}
    # Values within rounding of 1 are 1: a mean of shares may end in 1 + 2e-16.
    value = {name: min(1.0, mean(benchmark, values[name])) for name in names}
    effective = [float(sum(counts[name])) for name in names]
    if interval is IntervalMethod.WILSON:
        bounds = [wilson(value[name] * sum(counts[name]), sum(counts[name])) for name in names]
    else:
        table, averages = columns(benchmark, values, names)
        groups = np.where(np.isnan(table), -1, gallery.query_parts[:, None])
        found = table_spread(
            np.clip(table, 0.0, 1.0), groups, shared, averages=averages, draws=draws, seed=seed
        )
        low, high = found.wilson(0.95)
        bounds = list(zip(low.tolist(), high.tolist(), strict=True))
        effective = list(found.effective().tolist())
    return {
        name: Estimate(value[name], float(low), float(high), sum(counts[name]), chances[name], many)
        for name, (low, high), many in zip(names, bounds, effective, strict=True)
    }


def _ties(
    benchmark: Benchmark, rankings: Rankings, policy: Ties, chosen: Mapping[str, NDArray[np.float64]]
) -> dict[str, Any]:
    level = tied(benchmark, rankings)
    by_policy = {
        other: chosen
        if other is policy
        else per_item(benchmark, rankings, ties=other, measures=tuple(chosen))
        for other in Ties
    }
    return {
        "policy": str(policy),
        "questions": int(level.sum()),
        "rate": float(level.mean()),
        "measures": {
            str(other): {name: mean(benchmark, column) for name, column in values.items()}
            for other, values in by_policy.items()
        },
    }


def _facts(benchmark: Benchmark, rankings: Rankings, unsupported: Mapping[str, str]) -> dict[str, Any]:
    """What a result says of the gallery: its size, what was left out, and what was cut."""
    gallery = benchmark.gallery
    cut: dict[str, int | None] = {}
    said: dict[str, Any] = {
        "images": gallery.n_images,
        "captions": gallery.n_captions,
        "parts": 1 if gallery.image_parts is None else len(np.unique(gallery.image_parts)),
    }
    for name, search, placed, sizes in zip(
        DIRECTIONS,
        (gallery.i2t, gallery.t2i),
        (rankings.i2t, rankings.t2i),
        gallery.sizes,
        strict=False,
    ):
        listed = search.positives if isinstance(search.positives, Positives) else None
        said[name] = {
            "queries": len(search),
            "undefined": int((~search.defined).sum()),
            "positives": None if listed is None else len(listed.items),
            "outside_gallery": 0 if listed is None else int((listed.items < 0).sum()),
        }
        cut[name] = int(placed.depth.min()) if bool((placed.depth < sizes).any()) else None
    said["cut"] = cut if any(depth is not None for depth in cut.values()) else None
    said["unsupported"] = dict(unsupported)
    return said
