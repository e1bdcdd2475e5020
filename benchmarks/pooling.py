"""What it costs to find the best 25 of a gallery for every query, against the product of matrices and top-k.

    python benchmarks/pooling.py            20,000 queries x 100,000 items, as wide as CLIP's embeddings
    python benchmarks/pooling.py --quick    a fifth of the queries, half of the items

The yardstick is PyTorch's product and topk, chunk after chunk of queries, at the best of several sizes of
chunk, on as many threads. Both work on the same random unit vectors, in turn; each counts with its best run.
Memory is that of the process beyond the embeddings themselves, taken in processes of their own. The last
lines say what that makes for all of COCO, where the candidates for people to verify come from.
"""

import argparse
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import numpy as np
import torch
from numpy import ndarray

from counterfoil.engine.topk import top_k

QUERIES, ITEMS, WIDTH, K = 20_000, 100_000, 512, 25
#: All of COCO: train and val of 2014, with all their captions.
COCO = (123_287, 616_767)
CHUNKS = (64, 256, 1024)
TILE = (1024, 4096)
TURN = 4096


def unit_vectors(n: int, width: int, seed: int) -> ndarray:
    """(n, width) float32 random directions, made in place: memory is not touched beyond them."""
    rng = np.random.default_rng(seed)
    vectors = np.empty((n, width), np.float32)
    for lo in range(0, n, 1000):
        part = vectors[lo : lo + 1000]
        rng.standard_normal(part.shape, dtype=np.float32, out=part)
        part /= np.linalg.norm(part, axis=1, keepdims=True)
    return vectors


def bare(queries: torch.Tensor, items: torch.Tensor, k: int, chunk: int) -> tuple[ndarray, ndarray]:
    """Product and top-k, chunk by chunk: whole rows of scores, on whatever device the vectors are."""
    found = [torch.topk(part @ items.T, k) for part in queries.split(chunk)]
    return (
        torch.cat([each.indices for each in found]).cpu().numpy(),
        torch.cat([each.values for each in found]).cpu().numpy(),
    )


def products(queries: torch.Tensor, items: torch.Tensor) -> None:
    """The products alone, for the rate of the machine: tiles into one piece of memory, as is fastest."""
    memory = torch.empty(TILE, dtype=queries.dtype, device=queries.device)
    for left in queries.split(TILE[0]):
        for right in items.split(TILE[1]):
            torch.mm(left, right.T, out=memory[: len(left), : len(right)])


def timed(work: Callable[[], object]) -> float:
    """Seconds that some work takes."""
    since = perf_counter()
    work()
    return perf_counter() - since


def megabytes() -> float:
    """The most memory this process has held so far."""
    # Not `ru_maxrss`: a process inherits that of the one that started it.
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmHWM:"))) / 1024


def memory(queries: int, items: int, width: int, k: int) -> float:
    """Megabytes that `top_k` takes beyond the embeddings, in a process of its own."""
    command = [sys.executable, __file__, "--memory", *map(str, (queries, items, width, k))]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def measure_memory(queries: int, items: int, width: int, k: int) -> None:
    """What the process of `memory` does: print by how much the most memory held grows."""
    left, right = unit_vectors(queries, width, 0), unit_vectors(items, width, 1)
    # The libraries' own buffers are there from the first product on, whatever its size.
    top_k(left[:64], right[:256], k)
    before = megabytes()
    top_k(left, right, k)
    print(megabytes() - before)


def on_processor(queries: ndarray, items: ndarray, k: int, runs: int) -> float:
    """Compare on the processor; returns the pairs per second that ours looks at."""
    pairs = len(queries) * len(items)
    left, right = torch.from_numpy(queries), torch.from_numpy(items)
    few = left[: max(CHUNKS)]
    seconds = {
        chunk: min(timed(lambda c=chunk: bare(few, right, k, c)) for _ in range(2)) for chunk in CHUNKS
    }
    chunk = min(seconds, key=lambda c: seconds[c])
    best: dict[str, float] = dict.fromkeys(("product alone", "product and top-k", "counterfoil"), 0.0)
    same, apart = [], []
    # Some queries at a time, all three in turn and each with its best run: what else the machine does at a
    # moment then slows down one run of one of them.
    for part in (slice(lo, lo + TURN) for lo in range(0, len(queries), TURN)):
        times: dict[str, list[float]] = {name: [] for name in best}
        for _ in range(runs):
            since = perf_counter()
            theirs = bare(left[part], right, k, chunk)
            times["product and top-k"].append(perf_counter() - since)
            since = perf_counter()
            ours = top_k(queries[part], items, k)
            times["counterfoil"].append(perf_counter() - since)
            since = perf_counter()
            products(left[part], right)
            times["product alone"].append(perf_counter() - since)
        for name, each in times.items():
            best[name] += min(each)
        same.append(float((ours[0] == theirs[0]).mean()))
        apart.append(float(np.abs(ours[1] - theirs[1]).max()))
    table(best, pairs, queries.shape[1])
    print(f"  the yardstick's chunks are of {chunk} queries, the best of {CHUNKS}")
    print(f"  same item at {100 * np.mean(same):.4f} % of places, scores differ by {max(apart):.1e} at most")
    assert max(apart) < 1e-5, "the scores of the best items differ"
    return pairs / best["counterfoil"]


def table(best: dict[str, float], pairs: int, width: int) -> None:
    """Print seconds, rates and ratios."""
    for name, taken in best.items():
        rate = 2 * pairs * width / taken / 1e9
        print(f"  {name:<18} {taken:8.2f} s  {pairs / taken / 1e6:8.0f} million pairs/s  {rate:6.0f} GFLOP/s")
    bare_ratio, product_ratio = (
        best["counterfoil"] / best[name] for name in ("product and top-k", "product alone")
    )
    print(
        f"ratio: counterfoil / (product and top-k) {bare_ratio:.2f} (wanted: at most 1.3), "
        f"counterfoil / product alone {product_ratio:.2f}"
    )


def project(rate: float, beyond: float, width: int, k: int) -> None:
    """What all of COCO takes at a rate: every image with every caption, in both directions."""
    pairs = COCO[0] * COCO[1]
    embeddings, answers = sum(COCO) * width * 4 / 2**20, sum(COCO) * k * 12 / 2**20
    print(
        f"all of COCO, {COCO[0]:,} images x {COCO[1]:,} captions, {pairs / 1e9:.1f} billion pairs: "
        f"{pairs / rate / 60:.0f} minutes a direction, {2 * pairs / rate / 3600:.2f} hours for both; "
        f"{embeddings:.0f} MB of embeddings, {answers:.0f} MB of answers, {beyond:.0f} MB to work with"
    )


def main() -> None:
    """Print seconds, ratios, memory and the projection."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--queries", type=int)
    parser.add_argument("--items", type=int)
    parser.add_argument("--width", type=int, default=WIDTH)
    parser.add_argument("--k", type=int, default=K)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--memory", type=int, nargs=4, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.memory:
        measure_memory(*chosen.memory)
        return
    n_queries = chosen.queries or (QUERIES // 5 if chosen.quick else QUERIES)
    n_items = chosen.items or (ITEMS // 2 if chosen.quick else ITEMS)
    print(
        f"best {chosen.k} of {n_items:,} items for {n_queries:,} queries, {chosen.width} wide, float32, "
        f"{torch.get_num_threads()} threads"
    )
    queries, items = unit_vectors(n_queries, chosen.width, 0), unit_vectors(n_items, chosen.width, 1)
    rate = on_processor(queries, items, chosen.k, chosen.runs)
    beyond = {}
    for size in (n_items // 5, n_items):
        few = n_queries // 5
        beyond[size] = memory(few, size, chosen.width, chosen.k)
        print(f"memory beyond the embeddings, {few:,} queries x {size:,} items: {beyond[size]:.0f} MB")
    project(rate, max(beyond.values()), chosen.width, chosen.k)


if __name__ == "__main__":
    main()
