"""Released files of a folder, each read once, and the case of one printed number that a recipe is given."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from counterfoil.benchmarks.answers import Answers
from counterfoil.benchmarks.benchmark import Benchmark, card
from counterfoil.benchmarks.readers.specs import from_table
from counterfoil.engine.caption_scoring import score_benchmark
from counterfoil.engine.join_scores import join_scores
from counterfoil.engine.plan import Note, warn
from counterfoil.engine.session import Session
from counterfoil.errors import DataError, MissingExtraError, ModelError
from counterfoil.evaluation.evaluate import per_item
from counterfoil.evaluation.run import Run, load_run
from counterfoil.metrics.correlation import pearson
from counterfoil.models.base import DEFAULT, Options
from counterfoil.models.captions.registry import load as load_metric
from counterfoil.models.precomputed import PrecomputedTable, load
from counterfoil.report.reproduction.paper import Basis, Paper, PaperModel, Spec


class NoDataError(Exception):
    """A number cannot be recomputed here; the text says why. Never leaves the ledger."""


class ReleasedFiles:
    """The released files under `folder` (None: no data), each read once. `questions` maps a benchmark to
    places of which the first that exists counts; `released` maps a file to its published name, under which
    it may lie anywhere in the folder.
    """

    def __init__(
        self,
        folder: Path | None,
        questions: Mapping[str, Sequence[str]],
        *,
        released: Mapping[str, str] | None = None,
        note: Note = warn,
    ) -> None:
        self._folder = folder
        self._questions = questions
        self._released = released or {}
        self._note = note
        # The values of these are kept, by their arguments.
        cached = "find questions answered_questions table answers values run metric_scores"
        for name in cached.split():
            setattr(self, name, cache(getattr(self, name)))

    def path(self, name: str) -> Path:
        """Where the file or folder `name` lies; raises `NoDataError` where it does not."""
        if self._folder is None:
            raise NoDataError(f"no folder of data was given; this needs its {name}")
        path = self.find(name)
        if path is None:
            raise NoDataError(f"{name} is not in the folder of data")
        return path

    def find(self, name: str) -> Path | None:
        """Where something lies, under its own name or, anywhere, its published one; else None."""
        if self._folder is None:
            return None
        published = sorted(self._folder.rglob(self._released[name])) if name in self._released else []
        return next((path for path in (self._folder / name, *published) if path.exists()), None)

    def questions(self, benchmark: str) -> tuple[Benchmark, str]:
        """The benchmark as its own files have it, and the place they lie."""
        places, folder = self._questions[benchmark], self._folder
        place = next((name for name in places if folder and (folder / name).exists()), places[0])
        path, facts = self.path(place), card(benchmark)
        module, _, function = facts.reader.partition(":")
        try:
            return getattr(import_module(module), function)(facts, path, None), place
        except MissingExtraError as error:
            # What the folder lacks may come from a package; it is not there either.
            raise NoDataError(f"{place} is not complete: {error}") from None

    def source(self, benchmark: str) -> str:
        """The files that the questions were read from, relative to the folder where they lie in it."""
        return self.questions(benchmark)[0].source.replace(f"{self._folder}/", "")

    def answered_questions(self, benchmark: str, file: str) -> Benchmark:
        """The questions that `file` answers: those it carries with their groups, or the benchmark's own."""
        carried = from_table(card(benchmark), self.table(file).table)
        # A table of pairs names its questions and says nothing of their groups.
        if carried is not None and carried.questions.groupings:
            return carried
        return self.questions(benchmark)[0]

    def answers(self, benchmark: str, file: str) -> Answers:
        """The answers in `file`, question by question."""
        return join_scores(self.table(file), self.answered_questions(benchmark, file), note=self._note)

    def values(self, benchmark: str, file: str) -> Mapping[str, Float[ndarray, "n"]]:
        """Each measure's value per question, in [0, 1], for the answers in `file`; ties are wrong."""
        return per_item(self.answered_questions(benchmark, file), self.answers(benchmark, file))

    def run(self, folder: str) -> Run:
        """The run in `folder`."""
        return load_run(self.path(folder))

    def metric_scores(self, benchmark: str, metric: str) -> Float[ndarray, "n"]:
        """What a caption metric gives to each candidate that people rated."""
        questions, session = self.questions(benchmark)[0], Session(note=self._note)
        return score_benchmark(questions, self.metric(metric), session=session).values

    def metric(self, spec: str) -> Any:
        """The metric that "metric:NAME" names; what it lacks (Java, a parser, a package) is no data."""

        def no_model(options: Options) -> Any:
            raise NoDataError("the weights of the model behind the metric are not in the folder of data")

        try:
            return load_metric(spec.removeprefix("metric:"), DEFAULT, no_model)
        except (MissingExtraError, ModelError) as error:
            raise NoDataError(str(error)) from None

    def table(self, file: str) -> PrecomputedTable:
        """The answers in a file."""
        table = load(str(self.path(file)))
        if not isinstance(table, PrecomputedTable):
            raise DataError("not a table of scores or outcomes", where=self.path(file))
        return table


def mask(benchmark: Benchmark, groups: tuple[str, ...] | None) -> Float[ndarray, "n"]:
    """1 for the questions that are in any of `groups` (in all of the benchmark for None), else 0."""
    if groups is None:
        return np.ones(len(benchmark))
    masks = benchmark.questions.groups()
    if unknown := [name for name in groups if name not in masks]:
        where = benchmark.source or benchmark.name
        raise DataError("the benchmark has no such group", where=where, given=unknown[0], allowed=masks)
    return np.any([masks[name] for name in groups], axis=0).astype(np.float64)


class Recomputed(NamedTuple):
    """A recomputed number, in the unit of the paper, and what it was computed from."""

    value: float | int
    source: str
    basis: Basis = Basis.DATA


@dataclass(frozen=True)
class Case:
    """One cell: its spec, its row, and where its data may be."""

    paper: Paper
    row: str
    spec: Spec
    evidence: ReleasedFiles

    def need(self, field: str) -> str:
        """The spec's `field`, which the recipe cannot do without."""
        return str(getattr(self.spec, field))

    @property
    def model(self) -> PaperModel | None:
        """Whose answers the row is about; None where it is about no model."""
        return self.paper.models.get(self.spec.model or self.row)

    def file(self) -> str:
        """The file of the model's answers to the benchmark; raises `NoDataError` where there is none."""
        model, benchmark = self.paper.models[self.spec.model or self.row], self.need("benchmark")
        if model.missing or benchmark not in model.files:
            raise NoDataError(model.missing or f"no answers to {benchmark} are known")
        return model.files[benchmark]

    def values(self, measure: str) -> Float[ndarray, "n"]:
        """The measure's value per question of the cell's benchmark, in [0, 1]."""
        return self.evidence.values(self.need("benchmark"), self.file())[measure]

    def pearson(self, x: Float[ndarray, "n"], y: Float[ndarray, "n"]) -> float:
        """Pearson's r, or its p-value where the spec's statistic is "p"."""
        r, p = pearson(x, y)
        if np.isnan(r):
            raise NoDataError("no correlation is defined: a column has the same number everywhere")
        return p if self.need("statistic") == "p" else r

    def columns(self, references: tuple[str, ...] | None) -> list[dict[str, float]]:
        """Printed columns by row."""
        return [self.paper.printed(reference) for reference in references or ()]
