"""Do 95 % intervals of AUROC cover 95 %, for independent statements and for pictures of several?

    python benchmarks/statements.py [--repetitions 300]

Scores are normal, those of true statements higher by the signal; of their variance a share is the picture's,
whose statements are all true or all false. Prints the lines of docs/statistics.md.
"""

import argparse

import numpy as np
from scipy.special import ndtr

from counterfoil.benchmarks.answers import Scores
from counterfoil.benchmarks.benchmark import Benchmark, Card
from counterfoil.benchmarks.forms import Statement
from counterfoil.benchmarks.records import Caption, Image
from counterfoil.evaluation.evaluate import evaluate

#: Pictures, statements of each, how much higher true ones score, and the picture's share of the deviation.
LAYOUTS = ((100, 1, 1.0, 0.0), (50, 4, 1.0, 0.8), (50, 4, 3.0, 0.8))


def benchmark(pictures: int, each: int) -> Benchmark:
    """Statements of so many pictures, every second picture's true."""
    n = pictures * each
    return Benchmark(
        Card(name="statements", title="Statements", form="statement"),
        tuple(Image(f"i{i}") for i in range(pictures)),
        tuple(Caption(f"c{i}", f"statement {i}") for i in range(n)),
        Statement(
            tuple(f"q{i}" for i in range(n)),
            captions=np.arange(n),
            images=np.arange(n) // each,
            truth=np.arange(n) // each % 2 == 0,
        ),
    )


def main() -> None:
    """Print a line per layout."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=300)
    repetitions = parser.parse_args().repetitions
    for pictures, each, signal, share in LAYOUTS:
        made = benchmark(pictures, each)
        questions, truth, covered = made.statements, float(ndtr(signal / 2**0.5)), 0
        for seed in range(repetitions):
            rng = np.random.default_rng(seed)
            of_picture = rng.normal(size=pictures)[questions.images]
            noise = share * of_picture + (1 - share**2) ** 0.5 * rng.normal(size=len(made))
            scores = Scores(signal * questions.truth + noise)
            found = evaluate(made, scores, model="normal", measures="auroc")["auroc"]
            covered += found.low <= truth <= found.high
        print(
            f"{pictures} pictures, {each} statements each, AUROC {truth:.2f}: "
            f"{100 * covered / repetitions:.1f} % covered",
            flush=True,
        )


if __name__ == "__main__":
    main()
