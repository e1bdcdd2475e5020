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

from counterfoil.benchmarks.benchmark import Benchmark, card
from counterfoil.benchmarks.readers.outcomes import caption_words, from_table
from counterfoil.benchmarks.tables import floats, read_table, summary_keys
from counterfoil.engine.caption_scoring import score_benchmark
from counterfoil.engine.deduplicate import Note, warn
from counterfoil.engine.join_scores import join_scores
from counterfoil.engine.session import Session
from counterfoil.errors import DataError, InputError, MissingExtraError, ModelError
from counterfoil.evaluation.evaluate import per_item
from counterfoil.evaluation.run import load_run
from counterfoil.inputs.files import decoded, parse_json, read_bytes, read_json
from counterfoil.metrics.correlation import pearson
from counterfoil.metrics.detection import by_label
from counterfoil.models.base import DEFAULT, Options
from counterfoil.models.captions.registry import load as load_metric
from counterfoil.models.precomputed import PrecomputedTable, load
from counterfoil.report.reproduction.paper import Basis, Paper, PaperModel, Spec


class NoDataError(Exception):
    """A number cannot be recomputed here; the text says why. Never leaves the ledger."""


class ReleasedFiles:
    """The released files under `folder`; None is no data at all.

    `questions` maps a benchmark to the places in the folder where its questions may lie; the first that is
    there counts. `released` maps a file to the name it was published under: where the file is not in its
    place, one of that name counts, wherever it lies in the folder. Everything asked for is kept, so that the
    hundred cells of a table read their file once. A broken file is an error that names it; one that is not
    there raises `NoDataError`.
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
        for name in (
            *("find", "questions", "answered_questions", "values", "lengths", "perplexities", "_table"),
            *("detector_outputs", "chat_answers", "metric_scores", "example"),
        ):
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
        """Where the file or folder `name` lies, under its own name or the published one; None if nowhere.

        Raises `DataError` where two different places hold something of the published name.
        """
        folder, published = self._folder, self._released.get(name)
        if folder is None:
            return None
        if (folder / name).exists():
            return folder / name
        if published is None:
            return None
        parts = Path(published).parts
        paths = [
            path
            for path in sorted(folder.rglob(parts[-1]))
            if path.relative_to(folder).parts[-len(parts) :] == parts
        ]
        if len(paths) > 1:
            raise DataError(
                f"two files are called {published}",
                where=folder,
                given=" and ".join(str(path.relative_to(folder)) for path in paths[:2]),
                hint=f"keep one of them, or name one {name}",
            )
        return paths[0] if paths else None

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
        """The files that the questions were read from, relative to the folder where they lie in it.

        What the folder lacks, a reader may find in an installed package.
        """
        return self.questions(benchmark)[0].source.replace(f"{self._folder}/", "")

    def answered_questions(self, benchmark: str, file: str) -> Benchmark:
        """The questions that `file` answers: those it carries with their groups, or the benchmark's own."""
        carried = from_table(card(benchmark), self._table(file).table)
        # A table of pairs names its questions and says nothing of their groups.
        if carried is not None and carried.questions.groupings:
            return carried
        return self.questions(benchmark)[0]

    def values(self, benchmark: str, file: str) -> Mapping[str, Float[ndarray, "n"]]:
        """Each measure's value per question, in [0, 1], for the answers in `file`; ties are wrong."""
        questions = self.answered_questions(benchmark, file)
        return per_item(questions, join_scores(self._table(file), questions, note=self._note))

    def lengths(self, place: str) -> Float[ndarray, "n"]:
        """Mean length in words of the two captions of each of Winoground's examples."""
        return np.asarray(caption_words(self.path(place)).mean(axis=1))

    def scores(self, benchmark: str, file: str) -> Float[ndarray, "n ..."]:
        """The scores of each question's pairs for the answers in `file`."""
        answers = join_scores(self._table(file), self.answered_questions(benchmark, file), note=self._note)
        if not answers.has_scores:
            raise NoDataError(f"{file} holds right and wrong alone, and no scores")
        return answers.scores

    def perplexities(self, benchmark: str, folder: str) -> Float[ndarray, "n 2"]:
        """The perplexity of both captions of each question, from the run of a language model in `folder`.

        Such a run is made by `counterfoil evaluate lm:gpt2 BENCHMARK --set score=perplexity --out FOLDER`.
        """
        run = load_run(self.path(folder))
        row = {name: at for at, name in enumerate(run.benchmark.questions.ids)}
        ids = self.questions(benchmark)[0].questions.ids
        if set(row) != set(ids):
            given = f"{len(row)} ids"
            raise DataError("not a run over these questions", where=self.path(folder), given=given)
        # A perplexity is a score with a minus before it, and the same with both images.
        return np.asarray(-run.answers.scores[[row[name] for name in ids], :, 0])

    def detector_outputs(self, file: str, column: str) -> Float[ndarray, "n 2"]:
        """How likely synthetic a detector finds the natural and the synthetic item of each question."""
        table = read_table(self.path(file))
        try:
            return by_label(floats(table, column), floats(table, "label"))
        except InputError as error:
            raise DataError(str(error), where=table.source) from None

    def chat_answers(self, folder: str) -> tuple[int, int, int]:
        """How many questions a chat model answered correctly, how many there are, and how many it left open.

        The folder holds one JSON file per part of the benchmark, {ID: {"correct": true, false or NaN}}.
        """
        files = sorted(self.path(folder).glob("*.json"))
        if not files:
            raise NoDataError(f"{folder} holds no JSON files")
        right = count = unanswered = 0
        for file in files:
            # A question left open is NaN in these files.
            answers = parse_json(decoded(read_bytes(file), where=file), where=file)
            answers = answers if isinstance(answers, dict) else {"": None}
            summaries = summary_keys(answers)
            for key, answer in answers.items():
                if key in summaries:
                    continue
                correct = answer.get("correct") if isinstance(answer, dict) else answer
                if not isinstance(correct, bool) and not (isinstance(correct, float) and np.isnan(correct)):
                    where, allowed = f"{file}, '{key}'", "correct: true, false or NaN"
                    raise DataError("no answer", where=where, allowed=allowed)
                right += correct is True
                count += 1
                unanswered += not isinstance(correct, bool)
        return right, count, unanswered

    def metric_scores(self, benchmark: str, metric: str) -> Float[ndarray, "n"]:
        """What a caption metric gives to each candidate that people rated."""
        questions, session = self.questions(benchmark)[0], Session(note=self._note)
        return score_benchmark(questions, self._metric(metric), session=session).values

    def example(self, candidates: str, references: str, metric: str) -> float:
        """What a metric gives to all of {ID: CAPTION} in one file with the {ID: [CAPTION]} of another."""
        captions, known = (read_json(self.path(name)) for name in (candidates, references))
        if not isinstance(captions, dict) or not isinstance(known, dict) or not captions:
            raise DataError("not captions by their ids", where=self.path(candidates))
        lost = [key for key in captions if not isinstance(known.get(key), list)]
        if lost:
            raise DataError("a candidate has no references", where=self.path(references), given=lost[0])
        return float(self._metric(metric).of_corpus([*captions.values()], [known[key] for key in captions]))

    def _metric(self, spec: str) -> Any:
        """The metric that "metric:NAME" names; what it lacks (Java, a parser, a package) is no data."""

        def no_model(options: Options) -> Any:
            raise NoDataError("the weights of the model behind the metric are not in the folder of data")

        try:
            return load_metric(spec.removeprefix("metric:"), DEFAULT, no_model)
        except (MissingExtraError, ModelError) as error:
            raise NoDataError(str(error)) from None

    def _table(self, file: str) -> PrecomputedTable:
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
