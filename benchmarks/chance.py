"""How often are models called beyond chance where none is? At most 5 % are meant.

    python benchmarks/chance.py [--repetitions 200] [--data ../shared/data/sugarcrepe]

Audits of questions whose right caption a coin chose: of drawn worlds and, where its files are at hand, of
SugarCrepe's captions. Notes "below chance" of one, two and six models of random scores. Prints the lines of
docs/audit.md and docs/statistics.md; "intervals alone" is how often the 95 % interval of any lay beyond.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from counterfoil.benchmarks import Benchmark, Caption, Card, Choice, Image, Scores
from counterfoil.evaluation.compare import Comparison
from counterfoil.evaluation.evaluate import evaluate, measured_run
from counterfoil.jobs.audit import audit
from counterfoil.report.results import below_chance
from counterfoil.world.sample import quads

Pairs = list[tuple[str, str, str]]


def by_coin(pairs: Pairs, rng: np.random.Generator) -> Benchmark:
    """Questions about (image, caption, caption), the right one drawn."""
    images = list(dict.fromkeys(image for image, _, _ in pairs))
    texts = [text for _, *both in pairs for text in (both if rng.random() < 0.5 else both[::-1])]
    n = np.arange(len(pairs))
    return Benchmark(
        Card(name="drawn", title="Drawn", form="choice"),
        tuple(map(Image, images)),
        tuple(Caption(str(at), text) for at, text in enumerate(texts)),
        Choice(
            tuple(map(str, n)),
            query=np.array([images.index(image) for image, _, _ in pairs]),
            candidates=np.stack([2 * n, 2 * n + 1], axis=1),
        ),
    )


def worlds(size: int, seed: int) -> Pairs:
    """An image of each quad of a drawn world with both captions."""
    world = quads(size, seed=seed)
    captions = [caption.text or "" for caption in world.captions]
    form = world.paired
    return [
        (world.images[image].id, captions[first], captions[second])
        for image, (first, second) in zip(form.images[:, 0], form.captions, strict=True)
    ]


def sugarcrepe(data: Path, size: int, rng: np.random.Generator) -> Pairs:
    """So many of SugarCrepe's pairs of captions."""
    rows = [row for file in sorted(data.glob("*.json")) for row in json.loads(file.read_text()).values()]
    return [
        (rows[at]["filename"], rows[at]["caption"], rows[at]["negative_caption"])
        for at in rng.choice(len(rows), size, replace=False)
    ]


def audits(data: Path, repetitions: int) -> Iterator[str]:
    """A line per kind of captions."""
    kinds = {"80 questions of drawn worlds": 80} | ({"300 of SugarCrepe": 300} if data.is_dir() else {})
    for name, size in kinds.items():
        alone = announced = 0
        for seed in range(repetitions):
            rng = np.random.default_rng(seed)
            pairs = sugarcrepe(data, size, rng) if size == 300 else worlds(size, seed)
            (found,) = audit(by_coin(pairs, rng), pictures=False, draws=400, cache=None).audits
            alone += any(each["accuracy"].low > 0.5 for each in found.blind)
            announced += bool(found.above_chance)
        yield (
            f"audits of {name}, right captions by a coin: {100 * announced / repetitions:.1f} % announce a "
            f"blind model ({100 * alone / repetitions:.1f} % by intervals alone)"
        )


def notes(repetitions: int) -> Iterator[str]:
    """A line per number of models."""
    benchmark = quads(200, seed=0)
    for models in (1, 2, 6):
        noted = alone = 0
        for seed in range(repetitions):
            rng = np.random.default_rng([models, seed])
            runs = []
            for at in range(models):
                scores = Scores(rng.normal(size=(len(benchmark), 2, 2)))
                result = evaluate(benchmark, scores, model=f"m{at}", draws=400)
                runs.append(measured_run(benchmark, scores, result))
            main = [run.result[name] for run in runs for name in ("i2t", "t2i", "group")]
            alone += any(each.high < (each.chance or 0) for each in main)
            noted += bool(below_chance(Comparison(benchmark.name, tuple(runs), None, ())))
        yield (
            f"{models} random models on 200 quads: {100 * noted / repetitions:.1f} % noted below chance "
            f"({100 * alone / repetitions:.1f} % by intervals alone)"
        )


def main() -> None:
    """Print a line per simulation."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--data", type=Path, default=Path("../shared/data/sugarcrepe"))
    chosen = parser.parse_args()
    for line in notes(chosen.repetitions):
        print(line, flush=True)
    for line in audits(chosen.data, chosen.repetitions):
        print(line, flush=True)


if __name__ == "__main__":
    main()
