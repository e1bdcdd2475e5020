"""Seconds and memory of the measures of COCO 1K, COCO 5K, CxC and ECCV Caption, both directions.

    python benchmarks/ranking.py [--data FOLDER] [--every N]

5,000 images and 25,000 captions with random embeddings of 512 numbers, captions leaning towards their image;
right answers from the released files (in FOLDER, else in the package `eccv_caption`, which is needed anyhow).
Timed is what it takes from the embeddings to the numbers:

* `counterfoil`, in a process of its own, so that its peak memory is its own: one pass over blocks of scores
  for all four benchmarks (`engine.gallery.rank`), then the measures; the median of five runs, and the first.
  Beside it the bare matrix product.
* The package `eccv_caption`, as its users do: the similarity, both directions sorted in full, dictionaries of
  lists of ids, `compute_all_metrics`. Everything takes about ten gigabytes; with `--every` only every n-th
  query is ranked and its seconds are multiplied by n, which leaves out COCO 1K and compares no numbers.

Both rank the same scores to the last bit, and the numbers must agree to 1e-12: exits with 1 where they do
not. The environment's number of BLAS threads is left alone; `--threads` sets how many blocks are worked on at
once.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from time import perf_counter
from typing import Any

import numpy as np
from numpy import ndarray

from counterfoil.benchmarks.answers import Rankings
from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.catalog import benchmark
from counterfoil.engine.gallery import rank
from counterfoil.engine.similarity import Products, unit
from counterfoil.evaluation.evaluate import per_item

NAMES = ("coco-5k", "coco-1k", "cxc", "eccv")
IMAGES, CAPTIONS, WIDTH = 5000, 25000, 512
KS = (1, 5, 10)
#: How often ours runs. The package, which takes a minute, runs once.
RUNS = 5
#: Images in a block: what `rank` takes by itself for so many captions in float32.
BLOCK = 50_000_000 // (CAPTIONS * 4)


def peak() -> float:
    """The most memory this process has held so far, in gigabytes."""
    return getrusage(RUSAGE_SELF).ru_maxrss / 2**20


def embeddings(width: int) -> Products:
    """Random images and captions; a caption leans towards its image, so that the numbers are not all 0."""
    rng = np.random.default_rng(0)
    images = rng.normal(size=(IMAGES, width)).astype(np.float32)
    captions = rng.normal(size=(CAPTIONS, width)).astype(np.float32)
    captions += np.float32(0.12) * images[np.arange(CAPTIONS) // 5]
    return Products(unit(images), unit(captions))


def numbers(benchmarks: list[Benchmark], rankings: list[Rankings]) -> dict[str, float]:
    """The measures by the names of `eccv_caption`, a mean over the queries that have right answers."""
    found: dict[str, float] = {}
    for each, placed in zip(benchmarks, rankings, strict=True):
        names = {f"r{k}": f"recall_at_{k}" for k in KS}
        if each.name == "eccv":
            names = {"r1": "recall_at_1", "map_at_r": "map_at_r", "rprecision": "r_precision"}
        measures = {f"{name} {side}": f"{side}_{names[name]}" for side in ("i2t", "t2i") for name in names}
        values = per_item(each, placed, measures=list(measures.values()))
        for name, measure in measures.items():
            rows = ~np.isnan(values[measure])
            value, parts = values[measure][rows], each.gallery.query_parts[rows]
            means = [value[parts == part].mean() for part in np.unique(parts)]
            found[f"{each.name.replace('-', '_')}_{name}"] = float(np.mean(means))
    return found


def ours(data: Path | None, top: int, threads: int | None, width: int, times: int) -> dict[str, Any]:
    """Seconds of each stage, memory before and at its highest, and all numbers."""
    benchmarks = [benchmark(name, data=data, images=None) for name in NAMES]
    start = perf_counter()
    blocks = embeddings(width)
    made = perf_counter() - start
    before = peak()

    def product() -> float:
        start = perf_counter()
        for lo in range(0, IMAGES, BLOCK):
            blocks.rows(slice(lo, min(lo + BLOCK, IMAGES)))
        return perf_counter() - start

    runs = []
    for _ in range(times):
        start = perf_counter()
        rankings = rank(benchmarks, blocks, top=top, threads=threads)
        ranked = perf_counter() - start
        found = numbers(benchmarks, rankings)
        runs.append((perf_counter() - start, ranked))
    seconds, ranked = sorted(runs)[times // 2]
    return {
        "product": sorted(product() for _ in range(times))[times // 2],
        "made": made,
        "first": runs[0][0],
        "rank": ranked,
        "measures": seconds - ranked,
        "seconds": seconds,
        "before": before,
        "peak": peak(),
        "numbers": found,
    }


def package(data: Path | None, every: int, width: int) -> tuple[dict[str, float], dict[str, float]]:
    """Seconds of each stage of `eccv_caption` and, where every query is ranked, its numbers."""
    from eccv_caption import Metrics

    test = benchmark("coco-5k", data=data, images=None)
    image_ids = np.array([int(image.id) for image in test.images])
    caption_ids = np.array([int(caption.id) for caption in test.captions])
    blocks, metric = embeddings(width), Metrics()
    start = perf_counter()
    parts = [slice(lo, min(lo + BLOCK, IMAGES)) for lo in range(0, IMAGES, BLOCK)]
    scores = np.empty((IMAGES, CAPTIONS), np.float32)
    for part in parts:
        scores[part] = blocks.rows(part)
    product = perf_counter() - start

    def lists(lines: ndarray, queries: ndarray, items: ndarray) -> dict[int, list[int]]:
        made: dict[int, list[int]] = {}
        for lo in range(0, len(queries), 500):
            order = np.argsort(-lines[lo : lo + 500], axis=1)
            names = queries[lo : lo + 500].tolist()
            made.update(zip(names, items[order].tolist(), strict=True))
        return made

    start = perf_counter()
    i2t = lists(scores[::every], image_ids[::every], caption_ids)
    t2i = lists(scores.T[::every], caption_ids[::every], image_ids)
    prepared = (perf_counter() - start) * every

    targets = ["coco_5k_recalls", "cxc_recalls", "eccv_map_at_r", "eccv_rprecision", "eccv_r1"]
    if every == 1:
        targets.append("coco_1k_recalls")
    else:
        # Only queries that were ranked.
        for name in ("coco_gts", "cxc_gts", "eccv_gts"):
            known = getattr(metric, name)
            some = {"i2t": i2t, "t2i": t2i}
            kept = {side: {q: v for q, v in known[side].items() if q in some[side]} for side in known}
            setattr(metric, name, kept)
    start = perf_counter()
    result = metric.compute_all_metrics(i2t, t2i, target_metrics=tuple(targets), Ks=KS, verbose=False)
    measured = (perf_counter() - start) * every
    found = {f"{name} {side}": float(v) for name, both in result.items() for side, v in both.items()}
    return {"product": product, "lists": prepared, "measures": measured}, found if every == 1 else {}


def main() -> int:
    """Print seconds, ratio and memory; 1 where the numbers differ."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder of the JSON files and coco_test_ids.npy")
    parser.add_argument("--threads", type=int, help="blocks at a time; by default one per core")
    parser.add_argument("--top", type=int, default=0, help="first items to keep of every query")
    parser.add_argument("--every", type=int, default=1, help="eccv_caption ranks every n-th query")
    parser.add_argument("--width", type=int, default=WIDTH, help="numbers of an embedding")
    parser.add_argument("--runs", type=int, default=RUNS, help="how often ours runs; the median counts")
    parser.add_argument("--ours", action="store_true", help="time counterfoil alone, and print JSON")
    asked = parser.parse_args()
    if asked.ours:
        print(json.dumps(ours(asked.data, asked.top, asked.threads, asked.width, asked.runs)))
        return 0
    apart = subprocess.run(
        [sys.executable, __file__, *sys.argv[1:], "--ours"], stdout=subprocess.PIPE, check=True
    )
    own = json.loads(apart.stdout)
    threads = os.environ.get("OMP_NUM_THREADS", "all")
    print(f"{IMAGES:,} images x {CAPTIONS:,} captions, {asked.width} wide, float32; {os.cpu_count()} cores, ")
    print(f"OMP_NUM_THREADS {threads}; first items kept: {asked.top}")
    print(f"  the bare matrix product  {own['product']:8.2f} s")
    print(
        f"  counterfoil              {own['seconds']:8.2f} s  = {own['rank']:.2f} ranks + "
        f"{own['measures']:.2f} measures (median of {asked.runs}; the first took {own['first']:.2f} s)"
    )
    print(f"      memory at most       {own['peak']:8.2f} GB, of which {own['before']:.2f} before it began")
    seconds, found = package(asked.data, asked.every, asked.width)
    total = sum(seconds.values())
    stages = " + ".join(f"{value:.1f} {name}" for name, value in seconds.items())
    print(f"  eccv_caption             {total:8.2f} s  = {stages}")
    print(
        f"      memory at most       {peak():8.2f} GB"
        + (f", ranking 1 of {asked.every} queries" * (asked.every > 1))
    )
    print(f"  times faster             {total / own['seconds']:8.1f}")
    if not found:
        return 0
    shared = sorted(found.keys() & own["numbers"].keys())
    apart_by = max(abs(found[name] - own["numbers"][name]) for name in shared)
    missing = sorted(found.keys() ^ own["numbers"].keys())
    print(
        f"  {len(shared)} numbers agree to {apart_by:.1e}"
        + (f"; not in both: {', '.join(missing)}" * bool(missing))
    )
    return 0 if apart_by <= 1e-12 and not missing else 1


if __name__ == "__main__":
    sys.exit(main())
