"""Scores of captions by metrics of the field: a value for all of them, and one for each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from counterfoil import catalog
from counterfoil.data.answers import versions
from counterfoil.engine.caption_scoring import CaptionInputs, metric_for
from counterfoil.engine.plan import Note
from counterfoil.errors import InputError
from counterfoil.report.labels import amount
from counterfoil.report.tables import Cell, Column, Row, Table
from counterfoil.scorers.base import DEFAULT, Options
from counterfoil.scorers.captions.base import CaptionMetric
from counterfoil.scorers.captions.registry import SEVERAL, entry, several
from counterfoil.tasks.caption_inputs import MediaFolder, Policy, read_inputs
from counterfoil.tasks.caption_values import (
    PerImage,
    Value,
    check_kind,
    n_images,
    no_intervals,
    rows_table,
    titles,
    to_json,
    values,
    write_table,
)
from counterfoil.tasks.feedback import SILENT, Feedback
from counterfoil.tasks.outputs import guarded_file
from counterfoil.tasks.results import Tabular
from counterfoil.tasks.session_options import SessionOptions


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
