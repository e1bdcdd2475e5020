"""Score captions with metrics of the field, and ask how well two of them agree with people.

    python examples/caption_metrics.py

A metric is named and run as a model is: it answers a benchmark, and runs of two can be compared with a test.
On the command line: counterfoil captions score, and counterfoil evaluate metric:cider world-rated
"""

import sys
import tempfile
from pathlib import Path

from counterfoil import catalog
from counterfoil.engine.session import run
from counterfoil.evaluation.compare import compare
from counterfoil.evaluation.evaluate import evaluate
from counterfoil.evaluation.run import save_run
from counterfoil.metrics.captions.cider import cider
from counterfoil.metrics.captions.ngrams import bleu, load, rouge_l
from counterfoil.metrics.captions.ptb import tokenize_all
from counterfoil.world import rated

CANDIDATES = ("A dog runs along the beach.", "A cat sleeps.")
REFERENCES = (
    ("A dog is running on the beach.", "A dog runs along a sandy beach."),
    ("A cat sleeps on a sofa.", "A sleeping cat."),
)
MODELS = ("metric:cider", "metric:length", "world:oracle")


def score() -> None:
    """Print what three metrics give to two captions: numbers per caption, from words alone."""
    # Published numbers are of words as the COCO tool kit cuts them: lower case, no punctuation.
    words = tokenize_all(CANDIDATES)
    # N-grams are counted once for all three.
    pairs = load(words, [tokenize_all(captions) for captions in REFERENCES])
    columns = {"BLEU-4": bleu(pairs).items[:, 3], "ROUGE-L": rouge_l(pairs), "CIDEr": cider(pairs)}
    for name, values in columns.items():
        print(f"{name:8} " + "  ".join(f"{value:6.3f}" for value in values))


def agree(folder: Path) -> None:
    """Print how metrics go with graded truth, and the difference of the two that read, with its test."""
    benchmark = rated(80, seed=1, lazy=True)  # metrics of texts never draw a picture
    print(f"\n{len(benchmark)} captions of {len(benchmark.images)} pictures, rated 1 to 4")
    runs = []
    for name in MODELS:
        answers = run(benchmark, catalog.model(name))
        result = evaluate(benchmark, answers, model=name, draws=1000)
        tau = result.measures["kendall_tau_c"]
        print(f"{name:14} tau-c {tau.value:6.3f}  [{tau.low:.3f}, {tau.high:.3f}]")
        runs.append(save_run(folder / name.replace(":", "-"), benchmark, answers, result, {}))
    (comparison,) = compare(runs[:2])
    found = next(each for each in comparison.differences if each.measure == "kendall_tau_c")
    interval = f"[{found.low:.3f}, {found.high:.3f}]"
    print(f"difference of {found.a} to {found.b}: {found.value:.3f}  {interval}  p {found.p:.3f}")


if __name__ == "__main__":
    score()
    if len(sys.argv) > 1:
        agree(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            agree(Path(temporary))
