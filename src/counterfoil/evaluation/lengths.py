"""Correlation of measures with the length of captions (Winoground, Table 6), with intervals."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from scipy.special import stdtr, stdtrit

from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.readers.specs import caption_words
from counterfoil.errors import DataError
from counterfoil.evaluation.evaluate import main_measures, of
from counterfoil.evaluation.result import Plain, Run
from counterfoil.metrics.measures import averaged
from counterfoil.stats.dependence import Dependence
from counterfoil.stats.two_way_clustering import linear_variance

#: Fewer questions than these have no correlation worth an interval.
_FEWEST = 4


@dataclass(frozen=True)
class LengthCorrelation(Plain):
    """Pearson's correlation of a measure with caption length, in [-1, 1]; all NaN where one does not vary."""

    model: str
    benchmark: str
    measure: str
    questions: int
    #: The mean number of words of a caption.
    words: float
    value: float
    low: float
    high: float
    p: float


def length_correlations(
    run: Run, *, words: Float[ndarray, "n"] | None = None
) -> tuple[LengthCorrelation, ...]:
    """The correlation of each main measure with caption length. Source: Winoground, Table 6 (right)."""
    benchmark = run.benchmark
    lengths = mean_words(benchmark) if words is None else words
    main = (averaged(name, benchmark.questions.form) for name in main_measures(benchmark))
    columns = {name: run.items[name] for name in main if name in run.items}
    if not of(benchmark).values_per_item:
        columns = {"score": run.answers.scores}
    rows = []
    for measure, values in columns.items():
        about = run.name, benchmark.name, measure, len(benchmark), float(lengths.mean())
        rows.append(LengthCorrelation(*about, *correlation(lengths, values, benchmark.dependence)))
    return tuple(rows)


def mean_words(benchmark: Benchmark, data: Path | None = None) -> Float[ndarray, "n"]:
    """The mean number of words of each question's captions; of Winoground perhaps from its tags."""
    words = np.array([np.nan if c.text is None else float(len(c.text.split())) for c in benchmark.captions])
    lengths = benchmark.questions.caption_means(words, where=benchmark.name)
    if not np.isnan(lengths).any():
        return lengths
    place = data or benchmark.path
    if benchmark.name == "winoground" and place is not None and place.exists():
        counted = caption_words(place).mean(axis=1)
        if len(counted) == len(lengths):
            return counted
    raise DataError(
        "captions are not at hand, so their length is not known",
        where=benchmark.source or benchmark.name,
        hint="name the benchmark's data with --data",
    )


def correlation(
    lengths: Float[ndarray, "n"], values: Float[ndarray, "n"], dependence: Dependence
) -> tuple[float, float, float, float]:
    """(r, low, high, p) of two columns of questions, from influences, on Fisher's scale.

    NaN where a column does not vary or there are fewer than four questions.
    """
    nothing = (float("nan"),) * 4
    n = len(values)
    if n < _FEWEST or np.ptp(lengths) == 0 or np.ptp(values) == 0:
        return nothing
    x, y = ((column - column.mean()) / column.std() for column in (lengths.astype(np.float64), values))
    r = float(np.mean(x * y))
    if 1 - abs(r) < 1e-12:
        return r, r, r, 0.0
    influence = x * y - r / 2 * (x**2 + y**2)
    variance, freedom = linear_variance(dependence, influence[:, None] / n)
    error = float(np.sqrt(variance[0])) / (1 - r**2)
    if error == 0:
        return nothing
    quantile, middle = float(stdtrit(freedom[0], (1 + 0.95) / 2)), float(np.arctanh(r))
    low, high = (float(np.tanh(middle + side * quantile * error)) for side in (-1, 1))
    return r, low, high, float(2 * stdtr(freedom[0], -abs(middle) / error))
