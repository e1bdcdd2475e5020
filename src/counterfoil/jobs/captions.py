"""Scores of captions by metrics of the field: a value for all of them, and one for each."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from counterfoil import catalog
from counterfoil.benchmarks.answers import versions
from counterfoil.engine.caption_scoring import CaptionInputs, metric_for, texts
from counterfoil.engine.caption_scoring import score_captions as scores_of_rows
from counterfoil.engine.deduplicate import Note
from counterfoil.engine.session import Session
from counterfoil.errors import InputError
from counterfoil.evaluation.system_scores import NumberOf, ratio
from counterfoil.jobs.caption_inputs import MediaFolder, Policy, image_of, number_of, read_inputs
from counterfoil.jobs.feedback import SILENT, Feedback, SessionOptions
from counterfoil.jobs.outputs import guarded_file
from counterfoil.jobs.results import Tabular
from counterfoil.models.base import DEFAULT, Options
from counterfoil.models.captions.base import CaptionMetric, TextMetric
from counterfoil.models.captions.registry import SEVERAL, entry, several
from counterfoil.models.captions.text import TextMeasure
from counterfoil.report.labels import amount
from counterfoil.report.tables import Cell, Column, Row, Table
from counterfoil.stats.intervals import FEWEST, mean_intervals
from counterfoil.store import write_csv, write_json, write_parquet

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
    scores = {name: scores_of_rows(inputs, metric, session=session) for name, metric in metrics.items()}
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


@dataclass(frozen=True)
class MetricRequest(SessionOptions):
    """Caption metrics by name, the model and settings behind them, and how their work is done."""

    names: tuple[str, ...]
    #: `backbone` is the model that metrics look with, `settings` are KEY or METRIC.KEY and a value.
    options: Options = DEFAULT

    @classmethod
    def of(
        cls,
        metrics: str | Sequence[str],
        *,
        scorer: str = "",
        settings: Mapping[str, str] | None = None,
        device: str = "auto",
        precision: str = "fp32",
        **work: Any,
    ) -> "MetricRequest":
        """The request for some names; raises `InputError` for those that cannot be computed.

        `scorer` is the model that metrics look with, `settings` are KEY or METRIC.KEY and a value; `work` are
        the other fields.
        """
        names = several([metrics] if isinstance(metrics, str) else metrics)
        _check(names, scorer, settings or {})
        options = Options(device=device, precision=precision, backbone=scorer, settings=settings or {})
        return cls(names, options, **work)

    def read(
        self, candidates: Path, references: Path | None, media: MediaFolder, *, note: Note, **policies: Any
    ) -> CaptionInputs:
        """All that is asked about one file of candidates; `policies` are those of `read_inputs`."""
        return read_inputs(
            candidates,
            references,
            media,
            needs={need for name in self.names for need in entry(name).needs},
            embedded=self.options.backbone.startswith("embeddings:"),
            note=note,
            **policies,
        )

    def load(self, inputs: CaptionInputs, cache: Path | None, feedback: Feedback) -> dict[str, CaptionMetric]:
        """The metrics by name, as they are asked of these; those with a model share the one behind them."""
        with feedback.busy("loading metrics"):
            metrics = catalog.caption_metrics(
                self.names,
                replace(self.options, settings={}),
                memory=cache,
                settings=_settings_of(self.names, self.options.settings),
            )
        return {name: metric_for(metric, inputs.images) for name, metric in metrics.items()}


@dataclass(frozen=True, eq=False, repr=False)
class CaptionScores(Tabular):
    """Caption metrics of candidates: a value for all of them, and a score for each.

    Rows by "metric" are one per metric: `metric`, `value` (the number the field reports), `mean` over images
    with `low` and `high` (95 %, None where there is none, and `no_interval` says why), `n` images, `is_mean`.
    Rows by "caption" are one per candidate: `image`, `candidate` (which of the image's, from 0), `caption`,
    and a column per metric.
    """

    values: Mapping[str, Value]
    #: (candidates,) the scores of each metric.
    scores: Mapping[str, NDArray[np.float64]]
    metrics: Mapping[str, CaptionMetric]
    inputs: CaptionInputs
    per_image: PerImage

    rows_by = ("metric", "caption")

    def _rows(self, by: str) -> pa.Table:
        if by == "caption":
            return pa.table(rows_table(self.inputs, self.scores))
        rows = [{"metric": name, **row} for name, row in to_json(self.values).items()]
        return pa.Table.from_pylist(rows)

    @property
    def heading(self) -> str:
        """How many captions of how many images, and what images of several candidates count.

        As in 'c.json, 1,200 captions of 400 images, the best of each'.
        """
        captions, images = len(self.inputs), n_images(self.inputs)
        title = f"{self.inputs.name}, {amount(captions, 'caption')}"
        return (
            title
            if images == captions
            else f"{title} of {amount(images, 'image')}, the {self.per_image} of each"
        )

    @property
    def tables(self) -> tuple[Table]:
        """The value of each metric."""
        rows = tuple(
            Row(name, (Cell(value.value, value.low, value.high, value.n),))
            for name, value in self.values.items()
        )
        return (Table(self.heading, (Column("value", style="score"),), rows, "metric"),)

    @property
    def notes(self) -> list[str]:
        """Why some metrics have no interval, and what metrics are whose names would say too much."""
        named = (f"{name}: {title}" for name, title in titles(self.metrics).items())
        return [*no_intervals({"": self.values}), *named]

    def __repr__(self) -> str:
        numbers = ", ".join(f"{name} {value.value:.4f}" for name, value in self.values.items())
        return f"<CaptionScores of {self.heading}: {numbers}>"

    def to_json(self) -> dict[str, Any]:
        """All of it as plain values, as `captions score --json` writes it."""
        return {
            "candidates": self.inputs.name,
            "captions": len(self.inputs),
            "images": n_images(self.inputs),
            "per_image": self.per_image,
            "metrics": to_json(self.values),
            "scorers": {name: metric.identity.to_json() for name, metric in self.metrics.items()},
            "versions": versions(),
        }

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the score of every caption to `path`, as CSV, JSON or Parquet by its suffix."""
        check_kind(Path(path))
        with guarded_file(path, command="captions score", overwrite=overwrite):
            write_table(Path(path), rows_table(self.inputs, self.scores))


def score_captions(
    candidates: Path,
    request: MetricRequest,
    *,
    references: Path | None = None,
    media: MediaFolder | None = None,
    policy: Policy | None = None,
    empty: Literal["refuse", "leave-out"] = "refuse",
    per_image: PerImage = "mean",
    feedback: Feedback = SILENT,
) -> CaptionScores:
    """The captions in a file scored by metrics, with `references` and images or videos where those need them.

    References that say what the candidate says are dealt with as `policy` says; without one they are kept and
    counted in a note. An image of several candidates counts their mean or the best (`per_image`). Embeddings
    are kept in the request's cache. Raises `DataError` for files that do not fit each other, `InputError`
    where metrics need what is not given.
    """
    with feedback.busy("reading captions"):
        inputs = request.read(
            candidates,
            references,
            MediaFolder() if media is None else media,
            note=feedback.note,
            policy=policy,
            several=True,
            empty=empty,
        )
    metrics = request.load(inputs, request.cache, feedback)
    with feedback.progress() as report:
        session = request.session(feedback, report)
        by_metric, scores = values(inputs, metrics, per_image=per_image, session=session)
    return CaptionScores(by_metric, scores, metrics, inputs, per_image)


def _settings_of(names: Sequence[str], given: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """What is set of each metric: `KEY` of all that are named, `METRIC.KEY` of one (or of all of bleu).

    >>> _settings_of(["bleu-1", "clip-s"], {"bleu.length": "shortest", "clip-s.prefix": ""})
    {'bleu-1': {'length': 'shortest'}, 'clip-s': {'prefix': ''}}
    """
    settings: dict[str, dict[str, str]] = {name: {} for name in names}
    for key, value in given.items():
        metric, dot, own = key.partition(".")
        meant = SEVERAL.get(metric, (metric,)) if dot else names
        chosen = [name for name in names if name in meant]
        if not chosen:
            raise InputError(
                "a setting of a metric that is not asked for", given=f"--set {key}", allowed=names
            )
        for name in chosen:
            settings[name][own if dot else key] = value
    return settings


def _check(names: Sequence[str], scorer: str | None, given: Mapping[str, str]) -> None:
    """Raise `InputError` where a metric needs a model and none is named, or none needs the one that is.

    And where something is set of a metric that is not asked for.
    """
    looking = [name for name in names if entry(name).has_model]
    if looking and not scorer:
        raise InputError(
            "needs a model to look with",
            where=f"metric:{looking[0]}",
            hint="name one with --scorer, such as --scorer open-clip:ViT-B-32-quickgelu/openai",
        )
    if scorer and not looking:
        raise InputError(
            "none of these metrics has a model behind it",
            where=", ".join(names),
            given=f"--scorer {scorer}",
            hint="leave --scorer out",
        )
    _settings_of(names, given)
