"""Pairwise accuracy of a scorer over rated captions, with intervals.

The measure is a mean over pairs; what an item adds to its error is twice the deviation of the share of pairs
that it is in and that agree. Variances are sums of these over what questions share, and intervals Wilson's
for the effective number of questions. A fitted threshold of ties is taken as given.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from counterfoil.data.benchmark import Benchmark
from counterfoil.evaluation.result import Estimate
from counterfoil.metrics.pairwise_accuracy import MEASURES, agreement, fitted_tie, tied_ratings
from counterfoil.stats.crossed import linear_variance
from counterfoil.stats.intervals import Spread


def estimates(
    benchmark: Benchmark, scores: Float[ndarray, "n"], chosen: Bool[ndarray, "n"], names: Sequence[str]
) -> tuple[dict[str, Estimate], float]:
    """The named measures of `MEASURES` over the chosen questions, and the threshold that was fitted.

    Several ratings of a question count as their mean. The threshold is NaN where the measure that has it is
    not among the names.
    """
    shared, scores = benchmark.sharing.part(chosen), scores[chosen]
    ratings = np.nanmean(benchmark.rated.ratings[chosen], axis=1)
    found: dict[str, Estimate] = {}
    tie = float("nan")
    for name in (name for name in MEASURES if name in names):
        fitted = name == "pairwise_accuracy_fitted"
        tie = fitted_tie(scores, ratings) if fitted else tie
        share = agreement(scores, ratings, tie=tie if fitted else 0.0)
        value = share.mean()
        variance, freedom = linear_variance(shared, 2 * (share - value)[:, None] / len(share))
        units = np.array([float(len(np.unique(shared.units)))])
        made = Spread(np.array([value]), variance, freedom, units)
        (low,), (high,) = made.wilson(0.95)
        chance = None if fitted else (1 - tied_ratings(ratings)) / 2
        effective = float(made.effective()[0])
        found[name] = Estimate(float(value), float(low), float(high), len(share), chance, effective)
    return found, tie
