"""How much faster agreement and label models are than krippendorff and crowd-kit, in one run.

    python benchmarks/agreement.py [--items 20000] [--draws 1000] [--slow-draws 20]

Five answers of 200 people about each item. krippendorff has no intervals: its side is a loop over drawn
items, of which some are timed; ours reweights items, people and single answers. Dawid and Skene's model goes
through as many rounds on both sides, and the posteriors are compared. Needs the extra `dev`.
"""

import argparse
import time
import warnings
from collections.abc import Callable

import numpy as np

from counterfoil.evaluation.agreement import people_agreement
from counterfoil.metrics.agreement import ReliabilityData, Scale, krippendorff_alpha
from counterfoil.stats.dawid_skene import dawid_skene
from counterfoil.stats.label_models import Labels

PEOPLE, LABELS, CLASSES, ROUNDS = 200, 5, 4, 10


def timed(work: Callable[[], object]) -> tuple[float, object]:
    """Seconds and result."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def answers(items: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Items, people and labels of people whose accuracies are beta(8, 2)."""
    who = np.concatenate([rng.choice(PEOPLE, LABELS, replace=False) for _ in range(items)])
    item = np.repeat(np.arange(items), LABELS)
    truth = rng.integers(0, CLASSES, items)[item]
    right = rng.random(len(item)) < rng.beta(8, 2, PEOPLE)[who]
    return item, who, np.where(right, truth, (truth + rng.integers(1, CLASSES, len(item))) % CLASSES)


def main() -> None:
    """Print a line per comparison."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=20_000)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--slow-draws", type=int, default=20)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    item, who, label = answers(options.items, rng)
    print(f"{options.items:,} items, {len(item):,} answers of {PEOPLE} people, {CLASSES} classes", flush=True)
    agreement(item, who, label, options.draws, options.slow_draws, rng)
    models(item, who, label)


def agreement(
    item: np.ndarray,
    who: np.ndarray,
    label: np.ndarray,
    draws: int,
    slow_draws: int,
    rng: np.random.Generator,
) -> None:
    """Alpha with its interval against a loop over resamples."""
    import krippendorff

    data = ReliabilityData.of(item, who, label)
    votes = data.votes
    for scale in Scale:

        def resampled(scale: Scale = scale) -> list[float]:
            drawn = rng.integers(0, len(votes), (slow_draws, len(votes)))
            return [
                krippendorff.alpha(value_counts=votes[rows], level_of_measurement=scale.value)
                for rows in drawn
            ]

        theirs, _ = timed(resampled)
        ours, found = timed(lambda scale=scale: people_agreement(item, who, label, scale=scale, draws=draws))
        one = krippendorff.alpha(value_counts=votes, level_of_measurement=scale.value)
        assert abs(krippendorff_alpha(data, scale) - one) < 1e-9
        # Ours makes three sets of draws.
        ratio = (theirs / slow_draws) / (ours / (3 * draws))
        print(
            f"alpha, {scale}: {found.alpha} in {ours:.1f} s for 3 x {draws:,} draws; "
            f"krippendorff {1e3 * theirs / slow_draws:.1f} ms a draw: {ratio:.1f} times as fast",
            flush=True,
        )


def models(item: np.ndarray, who: np.ndarray, label: np.ndarray) -> None:
    """Dawid and Skene's model against crowd-kit's."""
    import pandas
    from crowdkit.aggregation import DawidSkene

    frame = pandas.DataFrame({"task": item, "worker": who, "label": label})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs, posterior = timed(lambda: DawidSkene(n_iter=ROUNDS, tol=-1.0).fit_predict_proba(frame))
    given = Labels.of(item, who, label, n_classes=CLASSES)
    ours, found = timed(lambda: dawid_skene(given, smoothing=0.0, rounds=ROUNDS, tolerance=0.0))
    apart = np.abs(found.posterior - posterior.sort_index().sort_index(axis=1).to_numpy()).max()
    print(
        f"Dawid-Skene, {ROUNDS} rounds: {ours:.2f} s, crowd-kit {theirs:.2f} s: {theirs / ours:.0f} times as "
        f"fast; posteriors apart by {apart:.1e}",
        flush=True,
    )


if __name__ == "__main__":
    main()
