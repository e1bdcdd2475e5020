"""Runs of which only the values per query matter, made up, on galleries of two captions an image."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from counterfoil.benchmarks.answers import Answers, DirectionRanks, Outcomes, Rankings
from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.evaluation.evaluate import evaluate, per_item
from counterfoil.evaluation.result import Estimate, Result, Run
from counterfoil.metrics.ties import Ties


def run(
    benchmark: Benchmark, name: str, items: Mapping[str, NDArray[np.float64]], *, ties: str = "strict"
) -> Run:
    """A run of which only the values per query matter."""
    measures = {m: Estimate(float(np.nanmean(v)), 0.0, 1.0, len(v), None) for m, v in items.items()}
    nothing = np.empty(0, np.int64)
    placed = DirectionRanks(
        nothing, nothing, nothing, np.zeros((0, 0), np.int32), np.zeros((0, 0), np.float32)
    )
    answers = Rankings(placed, placed) if benchmark.card.form == "gallery" else Outcomes()
    return Run(
        name, benchmark, answers, items, Result(benchmark.name, name, measures, ties={"policy": ties}), {}
    )


def evaluated(name: str, benchmark: Benchmark, answers: Answers, **how: Any) -> Run:
    """The run of answers that were evaluated."""
    result = evaluate(benchmark, answers, model=name, **{"draws": 100, **how})
    ties = how.get("ties", Ties.STRICT)
    return Run(name, benchmark, answers, per_item(benchmark, answers, ties=Ties(ties)), result, {})


def gallery_items(
    benchmark: Benchmark, rng: np.random.Generator, skill: float
) -> dict[str, NDArray[np.float64]]:
    """R@1 (0 or 1) and mAP@R (anything in between) in every direction, a query or two undefined."""
    directions = benchmark.gallery.directions
    result = {}
    for base, values in (
        ("recall_at_1", (rng.random(len(benchmark)) < skill).astype(float)),
        ("map_at_r", rng.beta(1 + 3 * skill, 2, size=len(benchmark))),
    ):
        values[[1, -1]] = np.nan
        result[f"i2t_{base}"] = np.where(directions == 0, values, np.nan)
        result[f"t2i_{base}"] = np.where(directions == 1, values, np.nan)
        result[f"mean_{base}"] = values
    return result


def correlations(x: Any, y: Any) -> list[float]:
    """tau-b, Spearman's and Pearson's correlation as they are defined, in a tenth of the time of scipy."""
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    above, other = np.sign(x[:, None] - x), np.sign(y[:, None] - y)
    tau = float((above * other).sum() / np.sqrt((above**2).sum() * (other**2).sum()))
    return [tau, *(float(np.corrcoef(*both)[0, 1]) for both in ((rankdata(x), rankdata(y)), (x, y)))]
