"""How fast rows are refined, and what a million captions cost from format to refine.

    python benchmarks/building.py [--rows 1000000] [--near 0.9] [--data DIR]

First the ratio: refinement of two scores at so many rows, beside a row-by-row account of SugarCrepe's code
(tests/support/official_refinement.py, which chooses by `numpy.random.Generator.choice`), in one run. On the
same choices both keep the same rows, which is checked. Exits with 1 where they do not.

Then the steps format, dedup (near-duplicates too), select and refine, one after the other in one process:
rows in and out, seconds by the clock, seconds of processor time and the most memory the process had so far.
Captions are halves of SugarCrepe's recombined, where they are at hand, else made of a list of words; a tenth
of the rows are copies, and scores are drawn.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from time import perf_counter, process_time

import numpy as np
import pyarrow as pa

from counterfoil.build.pipeline import run_step
from counterfoil.build.step import Step, StepContext
from counterfoil.build.steps.refine import refine
from counterfoil.build.steps.registry import STEPS
from counterfoil.engine.session import Session
from counterfoil.models.base import Options
from counterfoil.models.baselines import load_blind

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "unit"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from official_refinement import refined

CATEGORIES = ("add_att", "add_obj", "replace_att", "replace_obj", "replace_rel", "swap_att", "swap_obj")
WORDS = "red blue old small wooden cat dog bus table street man woman kite pizza sits runs near under by"


def ratio(rows: int) -> bool:
    """Print the seconds of both, the ratio, and whether they keep the same rows."""
    rng = np.random.default_rng(0)
    gaps = 2 * rng.random((rows, 2)) - 1
    gaps[rng.random((rows, 2)) < 0.01] = 0
    first, second = gaps.T
    begun = perf_counter()
    refined(first, second, lambda some, k: list(rng.choice(some, k, replace=False)))
    plain = perf_counter() - begun
    best = min(_timed(gaps, rng) for _ in range(5))
    order = rng.permutation(rows)
    place = np.argsort(order).tolist()
    chosen = refined(first, second, lambda some, k: sorted(some, key=place.__getitem__)[:k])
    same = sorted(chosen) == np.flatnonzero(refine(gaps, order)).tolist()
    print(
        f"refine {rows:,} rows by two scores: row by row {plain:.2f} s, here {best:.3f} s, "
        f"{plain / best:.0f} times as fast; {'the same rows' if same else 'OTHER ROWS'} on the same choices"
    )
    return same


def _timed(gaps: np.ndarray, rng: np.random.Generator) -> float:
    begun = perf_counter()
    refine(gaps, rng.permutation(len(gaps)))
    return perf_counter() - begun


def captions(data: Path) -> list[str]:
    """Captions to recombine."""
    files = [data / "sugarcrepe" / f"{name}.json" for name in CATEGORIES]
    if all(path.exists() for path in files):
        held = [row for path in files for row in json.loads(path.read_text("utf-8")).values()]
        return [row[role] for row in held for role in ("caption", "negative_caption")]
    rng, words = np.random.default_rng(0), WORDS.split()
    return ["A " + " ".join(rng.choice(words, 10)) + "." for _ in range(5_000)]


def table(rows: int, texts: list[str]) -> pa.Table:
    """So many rows of seven categories, with two scores of each caption."""
    rng = np.random.default_rng(0)
    halves = [(" ".join(t[: len(t) // 2]), " ".join(t[len(t) // 2 :])) for t in map(str.split, texts)]
    a, b, c = rng.integers(0, len(halves), (3, rows)).tolist()
    right = [f"{halves[i][0]} {halves[j][1]}" for i, j in zip(a, b, strict=True)]
    wrong = [f"{halves[i][0]} {halves[j][1]}" for i, j in zip(c, b, strict=True)]
    copied = rng.random(rows) < 0.1
    from_ = rng.integers(0, rows, rows).tolist()
    wrong = [wrong[at] if copy else own for copy, at, own in zip(copied, from_, wrong, strict=True)]
    scores = {name: np.round(rng.random(rows) ** 0.8, 4) for name in ("vera", "cola")}
    scores |= {f"negative_{name}": np.round(rng.random(rows), 4) for name in ("vera", "cola")}
    return pa.table(
        {
            "id": pa.array(np.arange(rows)).cast(pa.string()),
            "image": pa.array(np.arange(rows) // 5).cast(pa.string()),
            "caption": right,
            "negative_caption": wrong,
            "subset": [CATEGORIES[at] for at in rng.integers(0, 7, rows).tolist()],
            **scores,
        }
    )


def steps(near: float | None) -> list[Step]:
    """The steps as a recipe has them."""
    listed = [
        ("format", {}),
        ("dedup", {"near": near}),
        ("select", {"by": ["negative_vera", "negative_cola"], "share": 0.35}),
        ("refine", {"scores": ["vera", "cola"]}),
    ]
    return [STEPS[name].step(settings, where="benchmark") for name, settings in listed]


def main() -> None:
    """Print a line per measurement."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--near", type=float, default=0.9)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    given = parser.parse_args()
    same = ratio(given.rows)
    rows = table(given.rows, captions(given.data))
    print(f"{'step':8}{'in':>12}{'out':>12}{'seconds':>10}{'cpu':>9}{'peak GB':>10}")
    print(f"{'(start)':8}{'':12}{len(rows):12,}{'':19}{_peak():10.2f}", flush=True)
    clock, spent = perf_counter(), process_time()
    with tempfile.TemporaryDirectory() as folder:
        work = StepContext(
            Path(folder),
            session=Session(note=lambda text: None),
            model=lambda name, settings: load_blind(name.removeprefix("blind:"), Options()),
        )
        for step in steps(given.near):
            before, cpu, n = perf_counter(), process_time(), len(rows)
            rows = run_step(step, rows, work).kept
            seconds, cpu = perf_counter() - before, process_time() - cpu
            print(f"{step.name:8}{n:12,}{len(rows):12,}{seconds:10.1f}{cpu:9.1f}{_peak():10.2f}", flush=True)
    seconds, cpu = perf_counter() - clock, process_time() - spent
    print(f"{'all':8}{given.rows:12,}{len(rows):12,}{seconds:10.1f}{cpu:9.1f}{_peak():10.2f}")
    sys.exit(0 if same else 1)


def _peak() -> float:
    return getrusage(RUSAGE_SELF).ru_maxrss / 1e6


if __name__ == "__main__":
    main()
