"""How long 10,000 draws of correlations take on as many rated captions as CrissCrossed Captions has.

    python benchmarks/ratings.py [--draws N] [--loop-draws N]

The load is made: 44,722 pairs of 5,000 images with a rating in hundredths and a score each. The yardstick
writes out the pairs of every draw and asks scipy for the four correlations; it is timed on a few draws and
scaled. Exits with 1 where the ways disagree.
"""

import argparse
import sys
from time import perf_counter, process_time

import numpy as np
from numpy import ndarray
from scipy.stats import kendalltau, pearsonr, spearmanr

from counterfoil.metrics.weighted_correlation import WeightedCorrelation
from counterfoil.stats.bootstrap import cluster_draws

PAIRS, IMAGES = 44_722, 5_000


def load(seed: int = 0) -> tuple[ndarray, ndarray, ndarray]:
    """Scores, ratings, and the image of each pair."""
    rng = np.random.default_rng(seed)
    ratings = np.round(np.clip(rng.normal(2.2, 1.5, PAIRS), 0, 5), 2)
    images = np.concatenate([np.arange(IMAGES), rng.integers(0, IMAGES, PAIRS - IMAGES)])
    return ratings + rng.normal(size=PAIRS), ratings, images


def written_out(scores: ndarray, ratings: ndarray, images: ndarray, weights: ndarray) -> list[float]:
    """One draw by scipy."""
    rows = np.repeat(np.arange(len(scores)), weights[images].astype(int))
    x, y = scores[rows], ratings[rows]
    taus = (kendalltau(x, y, variant=variant).statistic for variant in "bc")
    return [*taus, spearmanr(x, y).statistic, pearsonr(x, y).statistic]


def main() -> None:
    """Print seconds and ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=10_000)
    parser.add_argument("--loop-draws", type=int, default=20, help="draws of the slow ways")
    chosen = parser.parse_args()
    scores, ratings, images = load()
    weights = np.concatenate(list(cluster_draws(IMAGES, chosen.draws, seed=0)))
    few = weights[: chosen.loop_draws]
    times = chosen.draws / len(few)
    print(f"{PAIRS:,} pairs of {IMAGES:,} images, {chosen.draws:,} draws: seconds, of processor time")

    points, begin, spent = WeightedCorrelation.of(scores, ratings, images), perf_counter(), process_time()
    found = points.correlations(weights)
    ours = process_time() - spent
    print(f"  counterfoil           {perf_counter() - begin:9.1f} {ours:9.1f}")

    spent = process_time()
    slow = np.array([written_out(scores, ratings, images, draw) for draw in few])
    by_scipy = (process_time() - spent) * times
    print(f"  scipy, draw by draw             {by_scipy:9.1f}  (scaled from {len(few)} draws)")
    print(f"ratio: {by_scipy / ours:.0f} to scipy")
    if abs(found[: len(few)] - slow).max() > 1e-9:
        sys.exit("the ways disagree")


if __name__ == "__main__":
    main()
