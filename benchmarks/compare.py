"""How long it takes to compare 20 models on a benchmark of BiVLC's size, every pair, every measure.

    python benchmarks/compare.py

The yardstick is what would be done by resampling: for each draw pick clusters, list their questions and take
the means of all columns; for each draw flip clusters and sum all columns. It is timed on a few draws and
scaled, since all of them would take many minutes; both work on the same answers.
"""

import argparse
from collections.abc import Callable
from itertools import combinations
from time import perf_counter

import numpy as np
from numpy import ndarray

from counterfoil.metrics import contrast
from counterfoil.stats.intervals import cluster_interval, differences
from counterfoil.stats.tests import holm, mcnemar

MODELS, QUESTIONS, CLUSTERS, DRAWS = 20, 2933, 2000, 10_000
#: Means over groups are made of the same values per question.
MEASURES = tuple(name for name, measure in contrast.QUAD.items() if not measure.macro_of)


def answers(seed: int = 0) -> tuple[ndarray, ndarray]:
    """(questions, models x measures) right and wrong, from random scores of models of rising ability."""
    rng = np.random.default_rng(seed)
    clusters = np.concatenate([np.arange(CLUSTERS), rng.integers(0, CLUSTERS, QUESTIONS - CLUSTERS)])
    shared = rng.normal(size=(QUESTIONS, 2, 2))
    columns = []
    for model in range(MODELS):
        scores = shared + rng.normal(size=(QUESTIONS, 2, 2)) + np.eye(2) * (0.5 + 0.05 * model)
        columns += [contrast.QUAD[name](scores) for name in MEASURES]
    return np.stack(columns, axis=1), clusters


def pairs_of(n_measures: int) -> ndarray:
    """Every pair of models, for each measure, as columns."""
    return np.array(
        [
            (a * n_measures + m, b * n_measures + m)
            for m in range(n_measures)
            for a, b in combinations(range(MODELS), 2)
        ]
    )


def ours(values: ndarray, clusters: ndarray, pairs: ndarray) -> dict[str, float]:
    """Seconds of each part."""
    seconds = {}

    def timed(name: str, work: Callable[[], object]) -> object:
        start = perf_counter()
        result = work()
        seconds[name] = perf_counter() - start
        return result

    timed("intervals", lambda: cluster_interval(values, clusters))
    found = timed("differences and tests", lambda: differences(values.T[:, :, None], clusters, pairs))
    assert isinstance(found, np.ndarray)
    p = found[3, :, 0]
    timed("McNemar and Holm", lambda: ([mcnemar(values[:, a], values[:, b]) for a, b in pairs], holm(p)))
    return seconds


def loop_bootstrap(values: ndarray, clusters: ndarray, pairs: ndarray, draws: int) -> float:
    """Seconds for `draws` draws of clusters: the means of all columns, the differences of all pairs."""
    rng = np.random.default_rng(0)
    members = [np.flatnonzero(clusters == c) for c in range(CLUSTERS)]
    start = perf_counter()
    means, differences = [], []
    for _ in range(draws):
        rows = np.concatenate([members[c] for c in rng.integers(0, CLUSTERS, CLUSTERS)])
        mean = values[rows].mean(axis=0)
        means.append(mean)
        differences.append(mean[pairs[:, 0]] - mean[pairs[:, 1]])
    np.quantile(means, [0.025, 0.975], axis=0)
    np.quantile(differences, [0.025, 0.975], axis=0)
    return perf_counter() - start


def loop_permutation(values: ndarray, clusters: ndarray, pairs: ndarray, draws: int) -> float:
    """Seconds for `draws` draws of a sign per cluster: sums of all columns, differences of all pairs."""
    rng = np.random.default_rng(0)
    start = perf_counter()
    sums = values.sum(axis=0)
    observed = np.abs(sums[pairs[:, 0]] - sums[pairs[:, 1]])
    reached = np.zeros(len(pairs))
    for _ in range(draws):
        signs = rng.choice([-1.0, 1.0], CLUSTERS)
        sums = (signs[clusters][:, None] * values).sum(axis=0)
        reached += np.abs(sums[pairs[:, 0]] - sums[pairs[:, 1]]) >= observed
    return perf_counter() - start


def main() -> None:
    """Print seconds and ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--loop-draws", type=int, default=200, help="draws of the loops")
    chosen = parser.parse_args()
    values, clusters = answers()
    pairs = pairs_of(len(MEASURES))
    print(
        f"{MODELS} models, {QUESTIONS} questions in {CLUSTERS} clusters, {len(MEASURES)} measures, "
        f"{len(pairs)} pairs; loops of {chosen.draws} draws"
    )
    # Once before, so that no import is timed.
    ours(values, clusters, pairs)
    seconds = ours(values, clusters, pairs)
    for name, taken in seconds.items():
        print(f"  {name:<26} {taken:8.2f} s")
    total = sum(seconds.values())
    print(f"  {'counterfoil in all':<26} {total:8.2f} s")

    times = chosen.draws / chosen.loop_draws
    bootstrap = loop_bootstrap(values, clusters, pairs, chosen.loop_draws) * times
    flips = loop_permutation(values, clusters, pairs, chosen.loop_draws) * times
    for name, taken in (("bootstrap loop", bootstrap), ("permutation loop", flips)):
        print(f"  {name:<26} {taken:8.2f} s  (scaled from {chosen.loop_draws} draws)")
    print(f"ratio: {(bootstrap + flips) / (seconds['intervals'] + seconds['differences and tests']):.0f}")


if __name__ == "__main__":
    main()
