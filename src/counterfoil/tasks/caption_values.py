"""Values of caption metrics: a number per candidate and over all, and the files of both."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from counterfoil.engine.caption_scoring import CaptionInputs, score_captions, texts
from counterfoil.engine.session import Session
from counterfoil.errors import InputError
from counterfoil.evaluation.system_scores import NumberOf, ratio
from counterfoil.scorers.captions.base import CaptionMetric, TextMetric
from counterfoil.scorers.captions.text import TextMeasure
from counterfoil.stats.intervals import FEWEST, mean_intervals
from counterfoil.store import write_csv, write_json, write_parquet
from counterfoil.tasks.caption_inputs import image_of, number_of

#: The score of an image with several candidates: the mean of theirs, or the best (oracle).
PerImage = Literal["mean", "best"]

#: What a table of captions may be written as.
_KINDS = (".csv", ".json", ".parquet")


@dataclass(frozen=True)
class Value:
    """A metric of all candidates: the number the field reports, and the mean over `n` images.

    An image of several candidates counts once, as the mean or the best of them. `low` and `high` are the
    interval of the mean, a bootstrap over images; None where there is none, and `no_interval` says why.
    """

    value: float
    mean: float
    low: float | None
    high: float | None
    n: int
    #: Whether the number reported is the mean over images.
    is_mean: bool
    no_interval: str | None = None


def titles(metrics: Mapping[str, CaptionMetric]) -> dict[str, str]:
    """Titles of metrics whose names would claim too much: PAC-S without a model of PAC-S behind it."""
    return {name: title for name, metric in metrics.items() if (title := getattr(metric, "title", ""))}


def values(
    inputs: CaptionInputs,
    metrics: Mapping[str, CaptionMetric],
    *,
    per_image: PerImage = "mean",
    session: Session = Session(),
) -> tuple[dict[str, Value], dict[str, NDArray[np.float64]]]:
    """The value of each metric, and its scores, one per row.

    Means are over images. Of metrics of all captions as one text every candidate is part of the text, with
    the references of its image; with `per_image` "best" the best candidate of each image by that metric.
    """
    scores = {name: score_captions(inputs, metric, session=session) for name, metric in metrics.items()}
    images = {name: _of_images(inputs, own, per_image) for name, own in scores.items()}
    wholes = {
        name: _whole(inputs if per_image == "mean" else inputs.take(_best(inputs, scores[name])), metric)
        for name, metric in metrics.items()
    }
    means = [name for name, whole in wholes.items() if whole is None]
    intervals: dict[str, tuple[float, float]] = {}
    if means and len(images[means[0]]) >= FEWEST:
        low, high = mean_intervals(np.stack([images[name] for name in means], axis=1))
        intervals = {name: (float(low[k]), float(high[k])) for k, name in enumerate(means)}
    what = "captions" if len(inputs) == n_images(inputs) else "images"
    return {name: _value(images[name], wholes[name], intervals.get(name), what) for name in metrics}, scores


def n_images(inputs: CaptionInputs) -> int:
    """How many images or videos the candidates are of."""
    return len(inputs) if inputs.owner is None else len(np.unique(inputs.owner))


def _of_images(
    inputs: CaptionInputs, scores: NDArray[np.float64], per_image: PerImage
) -> NDArray[np.float64]:
    """(images,) what each image counts, in the order of their numbers."""
    if inputs.owner is None:
        return scores
    if per_image == "best":
        return scores[_best(inputs, scores)]
    _, place, counts = np.unique(inputs.owner, return_inverse=True, return_counts=True)
    means: NDArray[np.float64] = np.bincount(place, weights=scores) / counts
    return means


def _best(inputs: CaptionInputs, scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """(images,) the row of the best candidate of each image, the first of equal ones."""
    if inputs.owner is None:
        return np.arange(len(inputs))
    order = np.lexsort((np.arange(len(inputs)), -scores, inputs.owner))
    rows: NDArray[np.int64] = order[np.unique(inputs.owner[order], return_index=True)[1]]
    return rows


def _whole(inputs: CaptionInputs, metric: CaptionMetric) -> float | None:
    """The value of all candidates as one text, None of a metric that is a mean over images."""
    # What is a mean over rows need not be read twice; `whole` is None of such metrics.
    if isinstance(metric, TextMetric) and getattr(metric, "whole", True) is not None:
        return float(metric.of_corpus(*texts(inputs.checked(metric))))
    return None


def summed(
    inputs: CaptionInputs, metric: CaptionMetric, value: Value, scores: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NumberOf] | None:
    """(rows, k) what adds up over rows to the value of all candidates, and the number that sums make.

    None of a metric of all captions as one text that does not add up.
    """
    if value.is_mean:
        return np.stack([scores, np.ones(len(scores))], axis=1), ratio
    if not isinstance(metric, TextMeasure) or metric.sums is None:
        return None
    counted = metric.counted(*texts(inputs.checked(metric)))
    return None if counted is None else (counted, metric.sums.value)


def _value(
    scores: NDArray[np.float64], whole: float | None, interval: tuple[float, float] | None, what: str
) -> Value:
    mean, n = float(scores.mean()), len(scores)
    if whole is not None:
        return Value(
            whole, mean, None, None, n, is_mean=False, no_interval="of all captions as one text, not a mean"
        )
    if interval is None:
        few = f"too few {what} for an interval: {n}, and it takes {FEWEST}"
        return Value(mean, mean, None, None, n, is_mean=True, no_interval=few)
    if bool((scores == scores[0]).all()):
        alike = f"all {what} have the same score"
        return Value(mean, mean, None, None, n, is_mean=True, no_interval=alike)
    return Value(mean, mean, *interval, n, is_mean=True)


def no_intervals(rows: Mapping[str, Mapping[str, Value]]) -> list[str]:
    """Why some metrics have no interval, each reason once; with the systems, where it is not of all."""
    by_reason: dict[str, dict[str, list[str]]] = {}
    for system, own in rows.items():
        for name, value in own.items():
            if value.no_interval is not None:
                by_reason.setdefault(value.no_interval, {}).setdefault(name, []).append(system)
    return [
        ", ".join(
            name if len(systems) == len(rows) else f"{name} of {', '.join(systems)}"
            for name, systems in metrics.items()
        )
        + f": {why}"
        for why, metrics in by_reason.items()
    ]


def to_json(values: Mapping[str, Value]) -> dict[str, Any]:
    """The values as plain ones."""
    return {name: asdict(value) for name, value in values.items()}


def check_kind(path: Path | None) -> None:
    """Raise `InputError` where a table cannot be written under this name."""
    if path is not None and path.suffix.lower() not in _KINDS:
        raise InputError(
            "unknown kind of table", where=path, given=path.suffix or "(no suffix)", allowed=_KINDS
        )


def write_table(path: Path, columns: Mapping[str, Sequence[Any]]) -> None:
    """Write a table in one piece, as CSV, JSON (a list of objects) or Parquet by its suffix."""
    import pyarrow as pa

    check_kind(path)
    if path.suffix.lower() == ".json":
        names = list(columns)
        write_json(path, [dict(zip(names, row, strict=True)) for row in zip(*columns.values(), strict=True)])
        return
    table = pa.table(dict(columns))
    if path.suffix.lower() == ".parquet":
        write_parquet(path, table)
        return
    write_csv(path, table)


def rows_table(inputs: CaptionInputs, scores: Mapping[str, NDArray[np.float64]]) -> dict[str, list[Any]]:
    """A row per candidate: its image, which of the image's it is, its text, its score of each metric."""
    rows = range(len(inputs))
    columns: dict[str, list[Any]] = {
        "image": [image_of(inputs, row) for row in rows],
        "candidate": [number_of(inputs, row) for row in rows],
        "caption": [inputs.captions[position].text for position in inputs.candidate],
    }
    return columns | {name: own.tolist() for name, own in scores.items()}
