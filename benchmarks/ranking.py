"""Seconds and memory of the measures of COCO 1K, COCO 5K, CxC and ECCV Caption, both directions.

    python benchmarks/ranking.py [--data FOLDER_WITH_THE_JSON_FILES] [--every N]

5,000 images and 25,000 captions with random embeddings; positives from the released files (or, without
them, as many at random). The similarity is computed once, in blocks of some images x all captions, and each
block forgotten: captions are ranked within it, images for each caption by counts that add up over the
blocks. For these the scores of the positives must be known beforehand; they come from small products, and
where one is not what the block says to the last bit, that caption is ranked again on its own.

The yardsticks are what people write first, full rankings in dictionaries of lists, once with the measures
written out here and, with `--data`, once with the package `eccv_caption` where it can be imported. They
rank every n-th query and their seconds are multiplied by n: all of them take about ten gigabytes, and only
with all of them can the package compute COCO 1K. A product has one thread, unless OMP_NUM_THREADS says
otherwise; `--threads` works on so many blocks at a time.
"""

import argparse
import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from time import perf_counter

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", os.environ["OMP_NUM_THREADS"])

import numpy as np
from numpy import ndarray

from counterfoil.metrics import ranking
from counterfoil.metrics.ranks import (
    Positives,
    Ranks,
    distinct_pairs,
    from_counts,
    join,
    positive_ranks,
    shared_ranks,
)
from counterfoil.metrics.tally import tally

IMAGES, CAPTIONS, WIDTH, FOLDS = 5000, 25000, 512, 5
KS = (1, 5, 10)
SETS = ("original", "cxc", "eccv")
Table = dict[int, list[int]]


def peak() -> float:
    """The most memory this process has held so far, in gigabytes."""
    return getrusage(RUSAGE_SELF).ru_maxrss / 2**20


def tables(folder: Path | None) -> tuple[ndarray, ndarray, dict[str, dict[str, Table]]]:
    """Image ids, caption ids, and per direction and set the right ids of each query."""
    if folder is not None:
        captions = np.load(folder / "coco_test_ids.npy")
        names = {"i2t": "image_to_caption", "t2i": "caption_to_image"}
        read = {
            side: {
                s: {int(k): v for k, v in json.loads((folder / f"{s}_{name}.json").read_text()).items()}
                for s in SETS
            }
            for side, name in names.items()
        }
        images = np.array([read["t2i"]["original"][int(c)][0] for c in captions[::5]])
        return images, captions, read
    rng = np.random.default_rng(1)
    images, captions = np.arange(IMAGES), np.arange(CAPTIONS)
    made: dict[str, dict[str, Table]] = {"i2t": {}, "t2i": {}}
    pairs = {(int(c) // 5, int(c)) for c in captions}
    for name, size in (("original", 0), ("cxc", 10585), ("eccv", 0)):
        pairs |= {
            (int(i), int(c))
            for i, c in np.stack([rng.integers(0, IMAGES, size), rng.integers(0, CAPTIONS, size)], axis=1)
        }
        made["i2t"][name], made["t2i"][name] = {}, {}
        for image, caption in sorted(pairs):
            made["i2t"][name].setdefault(image, []).append(caption)
            made["t2i"][name].setdefault(caption, []).append(image)
    made["i2t"]["eccv"] = {
        int(i): rng.choice(CAPTIONS, 18, replace=False).tolist()
        for i in rng.choice(IMAGES, 1261, replace=False)
    }
    made["t2i"]["eccv"] = {
        int(c): rng.choice(IMAGES, 8, replace=False).tolist()
        for c in rng.choice(CAPTIONS, 1332, replace=False)
    }
    return images, captions, made


def positives(ids: tuple[ndarray, ndarray], sets: dict[str, Table]) -> list[Positives]:
    """COCO's, CxC's and ECCV Caption's, by column of the gallery."""
    column = {int(g): j for j, g in enumerate(ids[1])}
    queries = ids[0].tolist()
    return [Positives.of([[column.get(c, -1) for c in sets[s].get(q, [])] for q in queries]) for s in SETS]


def ours(
    images: ndarray,
    captions: ndarray,
    ids: tuple[ndarray, ndarray],
    sets: dict[str, dict[str, Table]],
    size: int,
    threads: int,
) -> tuple[dict[str, dict[str, float]], dict[str, float]]:
    """All measures of both directions, and the seconds of each part (of all threads together)."""
    seconds = dict.fromkeys(("positives", "products", "image to text", "text to image", "measures"), 0.0)
    since = perf_counter()

    def spent(part: str) -> None:
        nonlocal since
        seconds[part] += perf_counter() - since
        since = perf_counter()

    n, m = len(images), len(captions)
    i2t, t2i = positives(ids, sets["i2t"]), positives(ids[::-1], sets["t2i"])
    query, item, places = distinct_pairs(t2i, n)
    in_1k = item * FOLDS // n == query * FOLDS // m
    spent("positives")
    early = np.empty(len(query), captions.dtype)
    for lo in range(0, n, size):
        at = np.flatnonzero((item >= lo) & (item < lo + size))
        columns, where = np.unique(query[at], return_inverse=True)
        early[at] = (images[lo : lo + size] @ captions[columns].T)[item[at] - lo, where]
    spent("products")

    def block(lo: int) -> tuple[tuple[Ranks, ...], Ranks, list[tuple[ndarray, ...]], tuple[ndarray, ndarray]]:
        """Ranks of captions, in all and in the fold; counts of images for each caption; which are exact."""
        marks = [perf_counter()]
        rows, fold = slice(lo, lo + size), lo * FOLDS // n
        scores = images[rows] @ captions.T
        marks.append(perf_counter())
        first, last = fold * m // FOLDS, (fold + 1) * m // FOLDS
        part = [p.take(rows) for p in i2t]
        whole = shared_ranks(scores, part)
        small = positive_ranks(scores[:, first:last], part[0].within(np.arange(first, last)))
        marks.append(perf_counter())
        inside = np.flatnonzero(in_1k & (query >= first) & (query < last))
        everything = np.arange(len(query))
        counts = [
            (at, *tally(scores[:, start:end], query[at] - start, early[at]))
            for start, end, at in ((0, m, everything), (first, last, inside))
        ]
        at = np.flatnonzero((item >= lo) & (item < lo + size))
        same = early[at] == scores[item[at] - lo, query[at]]
        marks.append(perf_counter())
        for name, taken in zip(("products", "image to text", "text to image"), np.diff(marks), strict=True):
            seconds[name] += float(taken)
        return whole, small, counts, (at, same)

    above, level = np.zeros((2, len(query)), np.int64), np.zeros((2, len(query)), np.int64)
    exact = np.ones(len(query), dtype=bool)
    blocks: list[tuple[Ranks, ...]] = []
    folds: list[list[Ranks]] = [[] for _ in range(FOLDS)]
    with ThreadPoolExecutor(threads) as pool:
        for lo, done in zip(range(0, n, size), pool.map(block, range(0, n, size)), strict=True):
            whole, small_ranks, counts, (checked, same) = done
            blocks.append(whole)
            folds[lo * FOLDS // n].append(small_ranks)
            for kind, (at, higher, equal) in enumerate(counts):
                above[kind, at] += higher
                level[kind, at] += equal
            exact[checked] = same
    since = perf_counter()

    again = np.unique(query[~exact])
    if len(again):
        # Rounded otherwise in the small product: all scores of such a caption from one product of its own.
        for caption in again:
            at, scores = np.flatnonzero(query == caption), images @ captions[caption]
            fold = caption * FOLDS // m
            own = np.arange(fold * n // FOLDS, (fold + 1) * n // FOLDS)
            for kind, rows in enumerate((np.arange(n), own)):
                counts = tally(scores[rows, None], np.zeros(len(at), np.int64), scores[item[at]])
                above[kind, at], level[kind, at] = counts
        spent("text to image")

    ranks = {"i2t": [join(parts) for parts in zip(*blocks, strict=True)]}
    ranks["t2i"] = [
        from_counts(p, above[0, at], level[0, at], gallery=n) for p, at in zip(t2i, places, strict=True)
    ]
    small = {"i2t": [join(parts) for parts in folds], "t2i": []}
    for fold in range(FOLDS):
        rows = np.arange(fold * m // FOLDS, (fold + 1) * m // FOLDS)
        own = places[0][(query[places[0]] >= rows[0]) & (query[places[0]] <= rows[-1]) & in_1k[places[0]]]
        inside = t2i[0].take(rows).within(np.arange(fold * n // FOLDS, (fold + 1) * n // FOLDS))
        small["t2i"].append(from_counts(inside, above[1, own], level[1, own], gallery=n // FOLDS))
    found = {side: numbers(*ranks[side], small[side]) for side in ranks}
    spent("measures")
    seconds["captions ranked again"] = float(len(again))
    return found, seconds


def numbers(coco: Ranks, cxc: Ranks, eccv: Ranks, folds: list[Ranks]) -> dict[str, float]:
    """The means over the queries that have right answers."""
    found = {f"coco_5k_r{k}": float(ranking.recall_at_k(coco, k).mean()) for k in KS}
    found |= {f"cxc_r{k}": float(np.nanmean(ranking.recall_at_k(cxc, k))) for k in KS}
    found["eccv_map_at_r"] = float(np.nanmean(ranking.map_at_r(eccv)))
    found["eccv_rprecision"] = float(np.nanmean(ranking.r_precision(eccv)))
    found["eccv_r1"] = float(np.nanmean(ranking.recall_at_k(eccv, 1)))
    for k in KS:
        found[f"coco_1k_r{k}"] = float(np.mean([ranking.recall_at_k(r, k).mean() for r in folds]))
    return found


def some(
    queries: ndarray, gallery: ndarray, ids: tuple[ndarray, ndarray], sets: dict[str, Table]
) -> dict[str, float]:
    """The same for some queries of one direction, from one block."""
    n, m = len(queries), len(gallery)
    scores, chosen = queries @ gallery.T, positives(ids, sets)
    folds = []
    for fold in range(FOLDS):
        rows = np.arange(fold * n // FOLDS, (fold + 1) * n // FOLDS)
        columns = np.arange(fold * m // FOLDS, (fold + 1) * m // FOLDS)
        folds.append(positive_ranks(scores[np.ix_(rows, columns)], chosen[0].take(rows).within(columns)))
    return numbers(*shared_ranks(scores, chosen), folds)


def dictionary(
    queries: ndarray, gallery: ndarray, ids: tuple[ndarray, ndarray], chosen: ndarray, size: int
) -> dict[int, list[int]]:
    """{query id: all gallery ids, best first} of the chosen queries, from blocks."""
    made: dict[int, list[int]] = {}
    for lo in range(0, len(chosen), size):
        rows = chosen[lo : lo + size]
        order = np.argsort(-(queries[rows] @ gallery.T), axis=1)
        made |= {int(ids[0][q]): ids[1][row].tolist() for q, row in zip(rows, order, strict=True)}
    return made


def loops(
    rankings: dict[int, list[int]], sets: dict[str, Table], folds: list[tuple[set[int], set[int]]]
) -> dict[str, float]:
    """The same measures from a dictionary of rankings, query by query."""
    found: dict[str, list[float]] = {}
    for name, prefix in (("original", "coco_5k"), ("cxc", "cxc")):
        for query, ranked in rankings.items():
            if query in sets[name]:
                right = set(sets[name][query])
                for k in KS:
                    found.setdefault(f"{prefix}_r{k}", []).append(float(bool(right & set(ranked[:k]))))
    for query, ranked in rankings.items():
        if query in sets["eccv"]:
            right = set(sets["eccv"][query])
            hits, precision = 0, 0.0
            for place, item in enumerate(ranked[: len(right)], 1):
                if item in right:
                    hits += 1
                    precision += hits / place
            found.setdefault("eccv_map_at_r", []).append(precision / len(right))
            found.setdefault("eccv_rprecision", []).append(hits / len(right))
            found.setdefault("eccv_r1", []).append(float(ranked[0] in right))
    for members, items in folds:
        for query in members & rankings.keys():
            kept = [item for item in rankings[query] if item in items]
            right = set(sets["original"][query])
            for k in KS:
                found.setdefault(f"coco_1k_r{k}", []).append(float(bool(right & set(kept[:k]))))
    return {name: float(np.mean(values)) for name, values in found.items()}


def package(sides: dict[str, dict[int, list[int]]]) -> tuple[float, dict[str, dict[str, float]]] | None:
    """Seconds and numbers of `eccv_caption` on these rankings, or None where it cannot be imported."""
    try:
        from eccv_caption import Metrics  # not a dependency: compared with only where it is there
    except ImportError:
        return None
    metric = Metrics()
    everything = {side: len(metric.coco_gts[side]) for side in sides}
    for name in ("coco_gts", "cxc_gts", "eccv_gts"):
        # Only queries that were ranked; those of CxC and ECCV are a part of them.
        known = getattr(metric, name)
        setattr(
            metric,
            name,
            {side: {q: v for q, v in known[side].items() if q in sides[side]} for side in sides},
        )
    targets = ["coco_5k_recalls", "cxc_recalls", "eccv_map_at_r", "eccv_rprecision", "eccv_r1"]
    if all(len(sides[side]) == everything[side] for side in sides):
        targets.append("coco_1k_recalls")
    start = perf_counter()
    numbers = metric.compute_all_metrics(
        sides["i2t"], sides["t2i"], target_metrics=tuple(targets), Ks=KS, verbose=False
    )
    return perf_counter() - start, numbers


def main() -> None:
    """Print seconds, ratios and memory."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder of the six JSON files and coco_test_ids.npy")
    parser.add_argument("--block", type=int, default=250, help="images in a block, a divisor of 1,000")
    parser.add_argument("--threads", type=int, default=1, help="blocks at a time")
    parser.add_argument("--every", type=int, default=20, help="the yardsticks rank every n-th query")
    chosen = parser.parse_args()
    images, captions, sets = tables(chosen.data)
    rng = np.random.default_rng(0)
    image_side = rng.normal(size=(IMAGES, WIDTH)).astype(np.float32)
    caption_side = rng.normal(size=(CAPTIONS, WIDTH)).astype(np.float32)
    # Captions lean towards their image, so that the numbers are not all 0.
    caption_side += 0.12 * image_side[np.arange(CAPTIONS) // 5]
    at_start = peak()

    start = perf_counter()
    for lo in range(0, IMAGES, chosen.block):
        _ = image_side[lo : lo + chosen.block] @ caption_side.T
    product = perf_counter() - start

    start = perf_counter()
    found, parts = ours(image_side, caption_side, (images, captions), sets, chosen.block, chosen.threads)
    seconds = perf_counter() - start
    again = int(parts.pop("captions ranked again"))
    print(f"  one matrix product alone      {product:8.2f} s")
    print(
        f"  counterfoil                   {seconds:8.2f} s  in blocks of {chosen.block} x {CAPTIONS}, "
        f"{chosen.threads} at a time"
    )
    print("    " + ", ".join(f"{name} {taken:.2f}" for name, taken in parts.items()))
    print(f"    {again} captions ranked again; peak memory {peak():.2f} GB, {at_start:.2f} before")

    scale = chosen.every
    folds = {
        "i2t": [
            (
                set(images[f * 1000 : f * 1000 + 1000].tolist()),
                set(captions[f * 5000 : f * 5000 + 5000].tolist()),
            )
            for f in range(FOLDS)
        ]
    }
    folds["t2i"] = [(items, members) for members, items in folds["i2t"]]
    start = perf_counter()
    sides = {
        "i2t": dictionary(image_side, caption_side, (images, captions), np.arange(0, IMAGES, scale), 250),
        "t2i": dictionary(caption_side, image_side, (captions, images), np.arange(0, CAPTIONS, scale), 1250),
    }
    prepared = (perf_counter() - start) * scale
    start = perf_counter()
    by_loops = {side: loops(sides[side], sets[side], folds[side]) for side in sides}
    looped = (perf_counter() - start) * scale
    print(f"  dictionaries of full rankings {prepared:8.2f} s  (every {scale}th query, scaled)")
    print(f"  loops over them               {looped:8.2f} s  (scaled)")
    print(f"  ratio to dictionaries and loops {(prepared + looped) / seconds:6.1f}")
    official = package(sides) if chosen.data else None
    if official is not None:
        what = "eccv_caption" if scale == 1 else "eccv_caption but for COCO 1K"
        print(f"  {what:<29} {official[0] * scale:8.2f} s  (scaled)")
        ratio = (prepared + official[0] * scale) / seconds
        print(f"  ratio to dictionaries and {what}: {ratio:.1f}")

    # The same numbers? On the queries that all have looked at.
    for side, queries, gallery, ids in (
        ("i2t", image_side, caption_side, (images, captions)),
        ("t2i", caption_side, image_side, (captions, images)),
    ):
        rows = np.arange(0, len(queries), scale)
        again = some(queries[rows], gallery, (ids[0][rows], ids[1]), sets[side])
        worst = max(abs(again[name] - by_loops[side][name]) for name in again)
        print(f"  {side}: largest difference to the loops on those queries {worst:.1e}")
        if official is not None:
            worst = max(abs(again[name] - v[side]) for name, v in official[1].items())
            print(f"  {side}: largest difference to eccv_caption on those queries {worst:.1e}")
    print(
        "  " + ", ".join(f"{name} {found['i2t'][name]:.4f}/{found['t2i'][name]:.4f}" for name in found["i2t"])
    )


if __name__ == "__main__":
    main()
