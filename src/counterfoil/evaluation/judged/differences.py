"""Two metrics on the same rated captions: by how much do their correlations differ, and is it luck?

The interval is of the differences in samples of whole images, the same samples for both. The test swaps both
metrics' scores of whole images, each turned into ranks (Pearson: standardised) so that they can be: what each
caption adds to the difference changes its sign with the swap (`metrics.swapped_correlation`).
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from numpy.typing import NDArray

from counterfoil.data.forms import Rated
from counterfoil.evaluation.judged import rated
from counterfoil.evaluation.result import Run
from counterfoil.metrics.swapped_correlation import contributions
from counterfoil.metrics.weighted_correlation import MEASURES
from counterfoil.stats.crossed import inflation
from counterfoil.stats.resampling import cluster_draws
from counterfoil.stats.sharing import Sharing
from counterfoil.stats.tests import paired_permutation


def differences(
    runs: Sequence[Run],
    sharing: Sharing,
    pairs: Sequence[tuple[int, int]],
    names: Sequence[str],
    *,
    draws: int,
    permutations: int,
    seed: int,
    level: float = 0.95,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """(value, low, high, p), each (pairs, names): the correlation of run a less that of run b for each pair.

    NaN throughout where one of the two is not defined, as for a scorer that says the same of everything. With
    one unit of `sharing` the interval is all of [-2, 2].
    """
    where = [MEASURES.index(name) for name in names]
    of_runs = [rated.points(*_asked(run)) for run in runs]
    defined = [not any(part.undefined for part in parts) for parts in of_runs]
    cluster = sharing.units
    n_clusters = int(cluster.max()) + 1
    every = np.ones((1, n_clusters), dtype=np.float32)
    values, drawn = [], []
    for parts, known in zip(of_runs, defined, strict=True):
        nothing = np.full((1, len(MEASURES)), np.nan)
        ready = rated.prepared(parts, cluster) if known else ()
        values.append((rated.correlations(ready, [every]) if known else nothing)[0])
        samples = cluster_draws(n_clusters, draws, seed=seed)
        drawn.append(rated.correlations(ready, samples) if known and n_clusters > 1 else nothing)
    shape = (len(pairs), len(names))
    value, low, high, p = (np.full(shape, np.nan) for _ in range(4))
    tested = [k for k, (a, b) in enumerate(pairs) if defined[a] and defined[b]]
    if not tested:
        return value, low, high, p
    moves = [rated.influence(parts, len(cluster)) for parts in of_runs]
    columns = [np.zeros((len(cluster), 1))]
    for k in tested:
        a, b = pairs[k]
        value[k] = (values[a] - values[b])[where]
        moved = moves[a] - moves[b]
        wide = inflation(sharing, moved[:, where], level=level)
        ends = (2 * end[where] for end in rated.percentiles((drawn[a] - drawn[b]) / 2, level))
        low[k], high[k] = (np.clip(value[k] + wide * (end - value[k]), -2.0, 2.0) for end in ends)
        low[k], high[k] = np.minimum(low[k], value[k]), np.maximum(high[k], value[k])
        columns.append(_terms(of_runs[a], of_runs[b], len(cluster))[:, where])
    # Every column against one of zeros: the terms are differences already.
    table = np.hstack(columns)
    against = np.array([(i, 0) for i in range(1, table.shape[1])], dtype=np.int64)
    found = paired_permutation(table, sharing, against, seed=seed, draws=permutations)
    p[tested] = found.reshape(len(tested), len(names))
    return value, low, high, p


def _asked(run: Run) -> tuple[Rated, Float[ndarray, "n"]]:
    return run.benchmark.rated, run.answers.scores


def _terms(first: Sequence[rated.Points], second: Sequence[rated.Points], n: int) -> Float[ndarray, "n 4"]:
    """What each question adds to the differences: the sum over its points, the mean over raters apart."""
    total = np.zeros((n, len(MEASURES)))
    for a, b in zip(first, second, strict=True):
        np.add.at(total, a.questions, contributions(a.scores, b.scores, a.ratings) / len(first))
    return total
