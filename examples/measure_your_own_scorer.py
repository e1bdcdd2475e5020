"""Measure a scorer of your own, and compare it with one that never looks.

    python examples/measure_your_own_scorer.py

A scorer is anything with an `identity` and a method `score(images, captions)`; higher means a better match.
The engine asks it for each distinct pair once, the evaluation puts an interval on every number.

Its identity decides what a cache takes for its scores. Of a scorer that holds torch modules or arrays, their
digest becomes part of it; code without weights says its version, to be raised whenever the code changes.
"""
# ruff: noqa: T201

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import ndimage

from counterfoil import catalog
from counterfoil.benchmarks.records import Caption, Image
from counterfoil.engine.run import run
from counterfoil.evaluation.evaluate import evaluate
from counterfoil.metrics.ties import Ties
from counterfoil.models import Identity
from counterfoil.world import quads


@dataclass(frozen=True)
class Counting:
    """Counts the coloured patches of a picture and the things a caption speaks of; the nearer the better."""

    identity: Identity

    def score(self, images: Sequence[Image], captions: Sequence[Caption]) -> np.ndarray:
        """Minus the difference of the two counts."""
        return np.asarray(
            [-abs(patches(i) - things(c)) for i, c in zip(images, captions, strict=True)], dtype=np.float64
        )


def patches(image: Image) -> int:
    """Connected areas of strong colour, specks aside."""
    pixels = np.asarray(image.decode(), dtype=np.int64)
    areas, _ = ndimage.label(pixels.max(axis=2) - pixels.min(axis=2) > 60)
    return int((np.bincount(areas.ravel())[1:] > 60).sum())


def things(caption: Caption) -> int:
    """How often the caption says "a" or "an", a picture of something aside."""
    words = (caption.text or "").lower().replace("a picture of", "").split()
    return words.count("a") + words.count("an")


def main() -> None:
    """Print the main measures of three scorers, with intervals and chance."""
    benchmark = quads(210, seed=0)
    print(f"{len(benchmark)} questions, {len(benchmark.images)} pictures")
    counting = Counting(Identity("counting", revision="1"))
    scorers = catalog.scorer("blind:length"), catalog.scorer("pixels:colours"), counting
    for scorer in scorers:
        answers = run(benchmark, scorer)
        # A scorer that often cannot decide is judged fairly where a tie counts as a coin toss.
        result = evaluate(benchmark, answers, scorer=scorer.identity.name, ties=Ties.HALF, draws=2000)
        print(f"\n{result.scorer}")
        for name in ("i2t", "t2i", "group"):
            e = result.measures[name]
            print(f"  {name:6} {e.value:6.1%}  [{e.low:.1%}, {e.high:.1%}]  chance {e.chance:.1%}")
        best = max(result.groups, key=lambda label: result.groups[label]["group"].value)
        print(f"  best at {best}: group {result.groups[best]['group'].value:.1%}")


if __name__ == "__main__":
    main()
