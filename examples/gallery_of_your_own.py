"""A gallery of your own with graded right answers, measured from scores, with ties and without.

    python examples/gallery_of_your_own.py

A table of judged pairs is enough: image, caption, and how well they match (relevance; 1 if left out).
On the command line: counterfoil evaluate given:similarities.npy gallery --data judged.csv --ids ids.npz
"""

import csv
import sys
import tempfile
from pathlib import Path

import numpy as np

from counterfoil import catalog
from counterfoil.engine.session import run
from counterfoil.evaluation.evaluate import evaluate

ROWS = (
    ("beach.jpg", "a dog runs along a beach", 1),
    ("beach.jpg", "a dog outside", 0.5),
    ("park.jpg", "a dog outside", 1),
    ("park.jpg", "a dog fetches a stick", 1),
    ("sofa.jpg", "a cat sleeps on a sofa", 1),
)


def main(folder: Path) -> None:
    """Print mAP@R under three policies of ties, for a model that cannot tell dogs apart."""
    with open(folder / "judged.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["image", "caption", "relevance"])
        writer.writerows(ROWS)
    benchmark = catalog.benchmark("gallery", data=folder / "judged.csv")
    animals = ("dog", "cat")
    images = ["dog", "dog", "cat"]
    scores = np.array(
        [[animal in (caption.text or "") for caption in benchmark.captions] for animal in images]
    )
    np.save(folder / "similarities.npy", scores.astype(np.float32))
    answers = run(benchmark, catalog.model(f"given:{folder}/similarities.npy"))
    sizes = f"{len(benchmark.images)} images, {len(benchmark.captions)} captions"
    print(f"{sizes}; the model knows {' and '.join(animals)}")
    for ties in ("strict", "half", "optimistic"):
        e = evaluate(benchmark, answers, model="animals", ties=ties, draws=1000).measures["mean_map_at_r"]
        print(f"  mAP@R, ties {ties:10} {e.value:6.1%}   chance {e.chance:.1%}")
    print("A tie is worth what you say it is worth: say it.")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
