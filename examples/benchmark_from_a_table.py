"""Make a benchmark of a table of your own, and ask what it gives away to somebody who never looks.

    python examples/benchmark_from_a_table.py

The table has the columns image, caption, negative_caption and, if you like, negative_image, type, subtype.
Here it is drawn from the world; yours would be a CSV file next to a folder of photographs. On the command
line the same is: counterfoil evaluate blind:length pairs --data table.csv
"""
# ruff: noqa: T201

import csv
import sys
import tempfile
from pathlib import Path

from counterfoil import catalog
from counterfoil.engine.run import run
from counterfoil.evaluation.evaluate import evaluate
from counterfoil.world import contrasts, draw, text


def write_table(folder: Path, n: int = 140) -> Path:
    """`n` rows and one picture each: SugarCrepe's form, in which every question is put to the first image."""
    (folder / "images").mkdir(parents=True, exist_ok=True)
    rows = []
    for i, contrast in enumerate(contrasts(n, seed=2)):
        name = f"images/{i:03d}.png"
        draw(contrast.scenes[0], 128).save(folder / name)
        kind, part = contrast.subset.split("_")
        rows.append([name, *(text(caption) for caption in contrast.captions), kind, part])
    with open(folder / "table.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["image", "caption", "negative_caption", "type", "subtype"])
        writer.writerows(rows)
    return folder / "table.csv"


def main(folder: Path) -> None:
    """Print the accuracy of the length of the caption, over everything and by type."""
    benchmark = catalog.benchmark("pairs", data=write_table(folder))
    print(f"{benchmark.source}: {len(benchmark)} questions of the form '{benchmark.questions.form}'")
    result = evaluate(
        benchmark, run(benchmark, catalog.scorer("blind:length")), scorer="blind:length", draws=2000
    )
    for group in ("replace", "swap", "add"):
        e = result.groups[group]["accuracy"]
        print(f"  longer caption wins, {group:8} {e.value:6.1%}  [{e.low:.1%}, {e.high:.1%}] of {e.n}")
    print("In ADD the right caption is the longer one half of the time: length alone is at chance there.")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
