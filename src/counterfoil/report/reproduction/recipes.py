"""Recomputation of printed numbers, from released files or other printed numbers: one recipe per kind."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from itertools import permutations, product
from pathlib import Path
from string import ascii_lowercase
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from counterfoil.benchmarks.answers import Answers
from counterfoil.benchmarks.benchmark import Benchmark, card
from counterfoil.benchmarks.forms import RetrievalDirection
from counterfoil.benchmarks.readers.specs import caption_words, from_table
from counterfoil.benchmarks.tables import floats, read_table, summary_keys
from counterfoil.engine.caption_scoring import score_benchmark
from counterfoil.engine.join_scores import join_scores
from counterfoil.engine.plan import warn
from counterfoil.engine.session import Session
from counterfoil.errors import DataError, InputError, MissingExtraError, ModelError
from counterfoil.evaluation.evaluate import per_item
from counterfoil.evaluation.forms.rated import points
from counterfoil.evaluation.run import Run, load_run
from counterfoil.inputs.files import decoded, parse_json, read_bytes, read_json
from counterfoil.metrics import contrast, detection
from counterfoil.metrics.annotators import bias
from counterfoil.metrics.bradley_terry import bradley_terry
from counterfoil.metrics.correlation import MEASURES, kendall_tau_b, pearson
from counterfoil.metrics.ranking import map_at_r, recall_at_k
from counterfoil.metrics.ranks import Qrels, positive_ranks
from counterfoil.models.base import DEFAULT, Options
from counterfoil.models.captions.registry import load as load_metric
from counterfoil.models.precomputed import PrecomputedTable, load
from counterfoil.report.reproduction.paper import Basis, Paper, PaperModel, Spec, evaluate
from counterfoil.stats.intervals import t_over_folds

#: The shape of a question's scores by form, and the measures of them.
_SCORES = {"quad": ((2, 2), contrast.QUAD), "choice": ((2,), contrast.CHOICE)}


class NoDataError(Exception):
    """A number cannot be recomputed here; the text says why. Never leaves the ledger."""


class ReleasedFiles:
    """The released files under `folder`, each read once; `released` maps a file to its published name."""

    def __init__(
        self,
        folder: Path | None,
        questions: Mapping[str, Sequence[str]],
        *,
        released: Mapping[str, str] | None = None,
    ) -> None:
        self._folder, self._questions = folder, questions
        self._released = released or {}
        # The values of these are kept, by their arguments.
        cached = (self.find, self.questions, self.answered_questions, self.table, self.answers)
        for method in (*cached, self.values, self.run, self.metric_scores):
            setattr(self, method.__name__, cache(method))

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
        positions, folder = self._questions[benchmark], self._folder
        place = next((name for name in positions if folder and (folder / name).exists()), positions[0])
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
        return join_scores(self.table(file), self.answered_questions(benchmark, file), note=warn)

    def values(self, benchmark: str, file: str) -> Mapping[str, Float[ndarray, "n"]]:
        """Each measure's value per question, in [0, 1], for the answers in `file`; ties are wrong."""
        return per_item(self.answered_questions(benchmark, file), self.answers(benchmark, file))

    def run(self, folder: str) -> Run:
        """The run in `folder`."""
        return load_run(self.path(folder))

    def metric_scores(self, benchmark: str, metric: str) -> Float[ndarray, "n"]:
        """What a caption metric gives to each candidate that people rated."""
        questions, session = self.questions(benchmark)[0], Session(note=warn)
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
        if benchmark not in model.files:
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


def mean(case: Case) -> Recomputed:
    """A measure over a benchmark or over some of its groups, in per cent."""
    benchmark, measure = case.need("benchmark"), case.need("measure")
    if case.model is not None and case.model.chance:
        return chance(card(benchmark).form, measure)
    file = case.file()
    weight = mask(case.evidence.answered_questions(benchmark, file), case.spec.groups)
    return Recomputed(100 * float(case.values(measure) @ weight / weight.sum()), file)


def chance(form: str, measure: str) -> Recomputed:
    """Chance of random scores that are never equal, in per cent, over every order they can have."""
    shape, measures = _SCORES[form]
    size = int(np.prod(shape))
    orders = np.array(list(permutations(range(size))), dtype=np.float64)
    values = measures[measure](orders.reshape(-1, *shape))
    return Recomputed(100 * float(values.mean()), f"all {len(orders)} orders of {size} scores", Basis.DERIVED)


def count(case: Case) -> Recomputed:
    """How many questions a benchmark or some of its groups have, or how many labels a grouping has."""
    benchmark = case.need("benchmark")
    if case.model is not None and benchmark in case.model.files:
        source = case.file()
        questions = case.evidence.answered_questions(benchmark, source)
    else:
        questions, source = case.evidence.questions(benchmark)
    if case.spec.labels is not None:
        return Recomputed(len(set(questions.questions.groupings[case.spec.labels]) - {""}), source)
    return Recomputed(int(mask(questions, case.spec.groups).sum()) * (case.spec.examples or 1), source)


def length_correlation(case: Case) -> Recomputed:
    """Pearson's r of a measure with the mean caption length, or its p (Winoground, Table 6 right)."""
    benchmark, place = case.evidence.questions(case.need("benchmark"))
    words = caption_words(case.evidence.path(place)).mean(axis=1)
    if len(words) != (n := len(benchmark)):
        raise DataError("not a length for every question", where=place, given=len(words), allowed=str(n))
    return Recomputed(case.pearson(words, case.values(case.need("measure"))), f"{case.file()}, {place}")


def perplexity_correlation(case: Case) -> Recomputed:
    """Pearson's r of all pairs' scores with caption perplexity, or its p (Winoground, Table 6 left).

    The run is of `counterfoil evaluate lm:gpt2 winoground --set score=perplexity --out FOLDER`.
    """
    place = case.need("run")
    run = case.evidence.run(place)
    row = {name: i for i, name in enumerate(run.benchmark.questions.ids)}
    ids = case.evidence.questions(case.need("benchmark"))[0].questions.ids
    if set(row) != set(ids):
        where = case.evidence.path(place)
        raise DataError("not a run over these questions", where=where, given=f"{len(row)} ids")
    answers = case.evidence.answers(case.need("benchmark"), case.file())
    if not answers.has_scores:
        raise NoDataError(f"{case.file()} holds right and wrong alone, and no scores")
    # A perplexity is a score with a minus before it, and the same with both images.
    perplexity = -run.answers.scores[[row[name] for name in ids], :, :1]
    of_pairs = np.broadcast_to(perplexity, answers.scores.shape)
    value = case.pearson(of_pairs.reshape(-1), answers.scores.reshape(-1))
    return Recomputed(value, f"{case.file()}, {place}")


def fold_interval(case: Case) -> Recomputed:
    """One end of Student's t interval over four folds, in per cent (Winoground, appendix A)."""
    values = case.values(case.need("measure"))
    low, high = t_over_folds(values, folds=4, seed=0)
    return Recomputed(100 * (low if case.need("statistic") == "low" else high), case.file())


def both_orders(case: Case) -> Recomputed:
    """The share that a chat model answers right, in per cent, over orders of candidates (BiVLC, section 5.3).

    A file per part holds {ID: {"correct": true, false or NaN}}; NaN counts as wrong.
    """
    folders, shares = case.spec.answers or (), []
    for folder in folders:
        files = sorted(case.evidence.path(folder).glob("*.json"))
        if not files:
            raise NoDataError(f"{folder} holds no JSON files")
        right: list[bool] = []
        for file in files:
            answers = parse_json(decoded(read_bytes(file), where=file), where=file)
            answers = answers if isinstance(answers, dict) else {"": None}
            summaries = summary_keys(answers)
            for key, answer in ((key, answer) for key, answer in answers.items() if key not in summaries):
                correct = answer.get("correct") if isinstance(answer, dict) else answer
                if not isinstance(correct, bool) and not (isinstance(correct, float) and np.isnan(correct)):
                    where, allowed = f"{file}, '{key}'", "correct: true, false or NaN"
                    raise DataError("no answer", where=where, allowed=allowed)
                right.append(correct is True)
        shares.append(100 * sum(right) / len(right))
    return Recomputed(float(np.mean(shares)), " and ".join(folders))


def detector(case: Case) -> Recomputed:
    """What detectors of synthetic captions and images get, in per cent (BiVLC, Table 5, section 5.3)."""
    benchmark, measure = case.need("benchmark"), case.need("measure")
    if case.model is not None and case.model.chance:
        if measure not in ("text", "image"):
            return chance(card(benchmark).form, measure)
        # A detector that answers without looking is right so often, over all answers to a pair.
        answers = np.array(list(product((0.0, 1.0), repeat=2)))
        value = 100 * float(detection.accuracy(answers).mean())
        return Recomputed(value, f"all {len(answers)} answers to a pair", Basis.DERIVED)
    file = case.file()
    table = read_table(case.evidence.path(file))
    heads = ["img_pred"] if measure == "image" else ["text_pred"]
    heads += ["img_pred"] if measure not in ("text", "image", "accuracy") else []
    try:
        outputs = [detection.by_label(floats(table, head), floats(table, "label")) for head in heads]
    except InputError as error:
        raise DataError(str(error), where=table.source) from None
    if measure in ("text", "image"):
        values = detection.accuracy(*outputs)
    elif measure == "accuracy":
        values = detection.likelier(*outputs)
    else:
        values = contrast.from_directions(detection.two_steps(*outputs))[measure]
    return Recomputed(100 * float(values.mean()), file)


def judged(case: Case) -> Recomputed:
    """The correlation of a caption metric with people's ratings, times 100 (PAC-S, section 4.2)."""
    benchmark, metric, measure = case.need("benchmark"), case.need("metric"), case.need("measure")
    scores = case.evidence.metric_scores(benchmark, metric)
    parts = points(case.evidence.questions(benchmark)[0].rated, scores)
    value = float(np.mean([MEASURES[measure](part.scores, part.ratings) for part in parts]))
    return Recomputed(100 * value, f"{case.evidence.source(benchmark)}, {metric}")


def judgements(case: Case) -> Recomputed:
    """How many ratings, pairs or images there are, or the lowest or highest rating; `per` divides it."""
    questions = case.evidence.questions(case.need("benchmark"))[0].rated
    given = questions.ratings[~np.isnan(questions.ratings)]
    counts = {"points": len(given), "pairs": len(questions), "images": len(np.unique(questions.images))}
    value = {**counts, "lowest": float(given.min()), "highest": float(given.max())}[case.need("measure")]
    if case.spec.per is not None:
        value /= int(case.spec.per)
    return Recomputed(value, case.evidence.source(case.need("benchmark")))


def example(case: Case) -> Recomputed:
    """What a metric gives to all candidates of a file, with another's references (README of clipscore)."""
    files = case.need("candidates"), case.need("references")
    paths = [case.evidence.path(name) for name in files]
    captions, references = map(read_json, paths)
    if not isinstance(captions, dict) or not isinstance(references, dict) or not captions:
        raise DataError("not captions by their ids", where=paths[0])
    lost = [key for key in captions if not isinstance(references.get(key), list)]
    if lost:
        raise DataError("a candidate has no references", where=paths[1], given=lost[0])
    metric = case.evidence.metric(case.need("metric"))
    value = metric.of_corpus([*captions.values()], [references[key] for key in captions])
    return Recomputed(float(value), ", ".join(files))


def positives(case: Case) -> Recomputed:
    """How many right answers or queries a benchmark has in one direction (ECCV Caption, Table 3)."""
    counts, place = _counts(case, case.need("benchmark"))
    taken: dict[str, Callable[[Any], Any]]
    taken = {"pairs": np.sum, "queries": len, "fewest": np.min, "most": np.max}
    value = int(taken[case.need("measure")](counts))
    if case.spec.per is None:
        return Recomputed(value, place)
    whole = len(counts) if case.spec.per == "queries" else int(_counts(case, case.spec.per)[0].sum())
    return Recomputed(value / whole, place)


def left_out(case: Case) -> Recomputed:
    """How many of the ids that the paper lists are neither a query nor a right answer of the benchmark."""
    benchmark, _ = case.evidence.questions(case.need("benchmark"))
    gallery, place, used = benchmark.gallery, case.evidence.source(benchmark.name), set()
    images = [image.id for image in benchmark.images]
    captions = [caption.id for caption in benchmark.captions]
    for search, queries, others in ((gallery.i2t, images, captions), (gallery.t2i, captions, images)):
        assert isinstance(search.positives, Qrels)
        used |= {queries[i] for i in search.queries[search.defined].tolist()}
        used |= {others[i] for i in search.positives.items.tolist() if i >= 0}
    return Recomputed(len(set(case.spec.listed or ()) - used), place)


def shown(case: Case) -> Recomputed:
    """The value in per cent of a ranking whose first R items are known (ECCV Caption, section 4.1)."""
    marks = case.need("shown")
    # Items below R are right, those from R on are wrong; what is not shown comes behind.
    scores = np.zeros((1, 2 * len(marks)))
    scores[0, [i + len(marks) * (mark != "1") for i, mark in enumerate(marks)]] = range(len(marks), 0, -1)
    ranks = positive_ranks(scores, Qrels.of([list(range(len(marks)))]))
    name, _, k = case.need("measure").rpartition("_at_")
    value = map_at_r(ranks) if k == "r" else recall_at_k(ranks, int(k))
    return Recomputed(100 * float(value[0]), f"{name} of {marks}")


def _counts(case: Case, benchmark: str) -> tuple[np.ndarray, str]:
    way = "i2t" if case.need("direction") == "i2t" else "t2i"
    search: RetrievalDirection = getattr(case.evidence.questions(benchmark)[0].gallery, way)
    keep = search.defined
    if case.spec.over is not None:
        over = getattr(case.evidence.questions(case.spec.over)[0].gallery, way)
        keep = np.isin(search.queries, over.queries[over.defined])
    assert isinstance(search.positives, Qrels)
    return search.positives.counts[keep], case.evidence.source(benchmark)


def printed_mean(case: Case) -> Recomputed:
    """The mean of printed numbers."""
    (column,) = case.columns(case.spec.of)
    return _printed(case, float(np.mean(list(column.values()))))


def printed_correlation(case: Case) -> Recomputed:
    """Pearson's r between two printed columns, over the rows that both have, or its p-value."""
    x, y = case.columns(case.spec.of)
    rows = [row for row in x if row in y and row not in (case.spec.without or ())]
    value = case.pearson(np.array([x[row] for row in rows]), np.array([y[row] for row in rows]))
    return _printed(case, value, f" ({len(rows)} models)")


def printed_tau(case: Case) -> Recomputed:
    """Kendall's tau-b between two printed columns, or means of several (ECCV Caption, Table 5)."""
    means = []
    for columns in (case.columns(case.spec.of), case.columns(case.spec.against)):
        rows = [row for row in columns[0] if all(row in column for column in columns)]
        # Rounded, so that equal means are equal in floating point.
        means.append({row: round(float(np.mean([column[row] for column in columns])), 9) for row in rows})
    x, y = means
    rows = [row for row in x if row in y]
    value = kendall_tau_b(np.array([x[row] for row in rows]), np.array([y[row] for row in rows]))
    return _printed(case, value, f" ({len(rows)} models)")


def printed_best(case: Case) -> Recomputed:
    """The largest number of a printed column, and whose it is."""
    (column,) = case.columns(case.spec.of)
    best = max(column.values())
    whose = " and ".join(row for row, value in column.items() if value == best)
    return _printed(case, best, f": {whose}")


def formula(case: Case) -> Recomputed:
    """A formula of numbers, or of printed columns: of the row of this name, or else of each column's sum."""
    columns = case.columns(case.spec.of)
    numbers = [column.get(case.row, sum(column.values())) for column in columns]
    value = evaluate(case.need("formula"), dict(zip(ascii_lowercase, numbers, strict=False)))
    names = "; ".join(f"{a} {name}" for a, name in zip(ascii_lowercase, case.spec.of or (), strict=False))
    source = f"as printed: {case.need('formula')}{' with ' if names else ''}{names}"
    return Recomputed(value, source, Basis.DERIVED)


def gain(case: Case) -> Recomputed:
    """A printed number less another of its column."""
    (column,) = case.columns(case.spec.of)
    more, fewer, *_ = (column[row] for row in case.spec.less or () if row in column)
    terms = f"{more} - {fewer}"
    return Recomputed(evaluate(terms, {}), f"as printed: {terms}", Basis.DERIVED)


def preference(case: Case) -> Recomputed:
    """The Bradley-Terry strength of the row's thing, of 100 in all (ECCV Caption, appendix D.1)."""
    columns = case.columns(case.spec.of)
    rows = list(columns[0])
    wins = np.array([[column[row] for column in columns] for row in rows])
    return _printed(case, bradley_terry(wins)[rows.index(case.row)])


def annotator_bias(case: Case) -> Recomputed:
    """What verifying one model's proposals does to results (ECCV Caption, equation E.5)."""
    (verified,), (reference,) = case.columns(case.spec.of), case.columns(case.spec.against)
    models = list(verified)
    _, _, annotator = (case.spec.of or ("",))[0].partition(", ")
    biases = bias(
        np.array([list(verified.values())]),
        np.array([[model == annotator for model in models]]),
        np.array([reference[model] for model in models]),
    )
    return _printed(case, getattr(biases, case.need("statistic"))[0])


def _printed(case: Case, value: float, more: str = "") -> Recomputed:
    columns = "; ".join((*(case.spec.of or ()), *(case.spec.against or ())))
    return Recomputed(float(value), f"as printed: {columns}{more}", Basis.DERIVED)


#: Every recipe by the name that the papers' files use.
RECIPES: Mapping[str, Callable[[Case], Recomputed]] = {
    recipe.__name__: recipe
    for recipe in (
        *(mean, count, length_correlation, perplexity_correlation, fold_interval, both_orders, detector),
        *(judged, judgements, example, positives, left_out, shown, printed_mean, printed_correlation),
        *(printed_tau, printed_best, formula, gain, preference, annotator_bias),
    )
}
