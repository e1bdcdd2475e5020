"""Evaluations: all that can be wrong with names, files and settings is found before a model is loaded."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, Unpack, cast

import pyarrow as pa

from counterfoil import catalog
from counterfoil.benchmarks.answers import Answers, Outcomes, Scores, about
from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.engine.plan import Progress
from counterfoil.engine.session import run as answer_benchmark
from counterfoil.errors import InputError
from counterfoil.evaluation.compare import Comparison
from counterfoil.evaluation.evaluate import evaluate as measure, measured_run, of
from counterfoil.evaluation.intervals import IntervalMethod
from counterfoil.evaluation.result import Run
from counterfoil.evaluation.run import FILES, is_run_of, load_run as load_plain_run, save_run
from counterfoil.inputs.limits import most
from counterfoil.inputs.options import checked
from counterfoil.jobs import evaluation_inputs as reading, shared_options as shared
from counterfoil.jobs.evaluation_inputs import api_key, measures
from counterfoil.jobs.job import Feedback, documented, feedback_of, job, option, path_of
from counterfoil.jobs.results import Pictures, Tabular, measure_rows, write_page
from counterfoil.metrics.ties import Ties
from counterfoil.models.base import abilities
from counterfoil.outputs import Folder, Outputs, existing_paths, guarded, guarding, overwriting
from counterfoil.report import comparison_tables
from counterfoil.report.results import rests_on, ties_line
from counterfoil.report.tables import Column, Table, duration
from counterfoil.store import check_writable


class EvaluationRun(Tabular, Run):
    """One model measured on one benchmark: `run.result["group"].value`, tables, and a figure.

    Rows by "measure" are one per measure over all questions (`group` is empty) and per group: `benchmark`,
    `model`, `group`, `measure`, `value`, `low` and `high` (95 %), `n` questions, `chance`, `effective`
    questions. Ratios are in [0, 1], correlations in [-1, 1]. Rows by "question" are one per question, in a
    gallery per query: `id`, a column per grouping, and one per measure that has values per question.
    """

    rows_by = ("measure", "question")

    @classmethod
    @checked
    def of(cls, run: Run) -> "EvaluationRun":
        """The same run with these ways to show it."""
        return cls(**{column.name: getattr(run, column.name) for column in fields(Run)})

    def to_json(self) -> dict[str, Any]:
        return self.result.to_json()

    def _rows(self, by: str) -> pa.Table | list[dict[str, Any]]:
        if by == "measure":
            return measure_rows(self)
        questions = self.benchmark.questions
        items = {name: values for name, values in self.items.items() if len(values) == len(questions)}
        labels = {name: list(values) for name, values in questions.groupings.items()}
        return pa.table({"id": list(questions.ids), **labels, **items})

    def plot(self, measures: Sequence[str] | None = None) -> Any:
        """A matplotlib figure of the measures with intervals and chance, by default of the main ones."""
        from counterfoil.report import figures

        for name in measures or ():
            self[name]
        return figures.measures(self._alone, measures)

    def to_html(
        self,
        path: str | Path,
        *,
        title: str = "counterfoil report",
        pictures: Pictures = "auto",
        private: bool = False,
        overwrite: bool = False,
    ) -> None:
        """Write the page of this run alone, as `RunComparison.to_html` writes that of several."""
        write_page((self._alone,), path, title=title, pictures=pictures, private=private, overwrite=overwrite)

    @property
    def _alone(self) -> Comparison:
        return Comparison(self.benchmark.name, (self,), None, ())

    @property
    def tables(self) -> tuple[Table]:
        """The measures, each with its interval and chance."""
        title = self.benchmark.title
        heading = f"{self.name} on {title}, {len(self.benchmark):,} questions"
        rows = [(name, of, of.chance) for name, of in self.result.measures.items()]
        return (Table.of(heading, "measure", (Column("%"), Column("chance")), rows),)

    @property
    def notes(self) -> list[str]:
        """What the intervals rest on, and how ties count."""
        return [*rests_on(self.benchmark, [self.result]), ties_line(self.result, self.benchmark)]

    def __repr__(self) -> str:
        first = [name for name in (comparison_tables.leading(self._alone),) if name in self.result]
        numbers = ", ".join(f"{name} {self.result[name]}" for name in first)
        return f"<EvaluationRun {self.name} on {self.benchmark.name}: {numbers or 'no main measure'}>"


@documented
class EvaluateRows(shared.Sources, shared.Device, shared.Work, total=False):
    """Options of an evaluation.

    Data:
        limit: Evaluate N evenly spaced questions; results are marked as partial, and a note says what all of
            them would take.

    Results:
        out: Write a run folder per benchmark here, for 'compare'.
        name: Name of the model in results.

    Statistics:
        measures: Measure to report; may be repeated. In galleries recall_at_20 stands for all of its kind;
            each benchmark takes those it has.
        ties: Count a tie as wrong, as its chance in a random order, or as right.
        interval: Method of intervals; auto accounts for shared images and captions.

    Model:
        column: Column of a given table; default: guessed, and named in a note.
        unanswered: What becomes of questions that a model left unanswered, and of empty cells in a table of
            right and wrong: an error, wrong, or left out.

    Caption metrics:
        backbone: Image-text model of a caption metric.

    Generative models:
        api_key_env: Environment variable with the key of a chat endpoint; default: COUNTERFOIL_API_KEY.

    Galleries:
        ids: npz file with image_ids and caption_ids of a similarity matrix's rows and columns.
        first_stage: Dual encoder whose first items a pair model re-ranks.
        depth: Number of first-stage items to re-rank.
        top: How many first items of each query a run keeps.
        truncated_as_miss: Count a right answer beyond the end of a truncated ranking as a miss, as published
            numbers from truncated lists do.
    """

    limit: Annotated[int | None, option(None, low=1)]
    counts: Annotated[bool, shared.COUNTS]
    available: Annotated[bool, shared.AVAILABLE]
    out: Annotated[str | Path | None, option(None)]
    overwrite: Annotated[bool, shared.OVERWRITE]
    name: Annotated[str | None, option(None)]
    measures: Annotated[Sequence[str], option((), flag="--measure", complete="measures")]
    ties: Annotated[Literal["strict", "half", "optimistic"], option("strict")]
    interval: Annotated[Literal["auto", "wilson", "clusters", "crossed"], option("auto")]
    draws: Annotated[int, shared.DRAWS]
    seed: Annotated[int, shared.SEED]
    prompt: Annotated[str, shared.PROMPT]
    column: Annotated[str | None, option(None)]
    unanswered: Annotated[Literal["refuse", "wrong", "leave-out"], option("refuse")]
    backbone: Annotated[str, option("", metavar="MODEL")]
    settings: Annotated[shared.Settings, shared.SETTINGS]
    api_key_env: Annotated[str | None, option(None, metavar="VARIABLE")]
    ids: Annotated[Path | None, option(None)]
    first_stage: Annotated[str | shared.AnyModel | None, option(None, metavar="MODEL")]
    depth: Annotated[int, option(32, low=1, high=most("k"))]
    top: Annotated[int, option(50, low=0, high=most("k"))]
    truncated_as_miss: Annotated[bool, option(False)]


@dataclass(frozen=True, eq=False)
class _Part:
    """A benchmark that is read, its given answers (None for other models), and how many are missing."""

    key: str
    benchmark: Benchmark
    given: Any
    unanswered: int
    #: All of it, where a limit left only some questions.
    whole: Benchmark | None = None
    measures: Sequence[str] | None = None


@dataclass(eq=False)
class _Evaluation:
    """A model and benchmarks whose names, files and settings were checked; `parts` are those read."""

    inputs: reading.JobInputs
    #: As it is named, or loaded before.
    named: Any
    first_stage: Any
    #: The name of the model in results, as far as it is known before anything is loaded.
    run_name: str
    outputs: Outputs
    #: The model, once it is loaded.
    model: Any = None
    parts: list[_Part] = field(default_factory=list)
    _ranked: dict[str, Answers] = field(default_factory=dict)

    @property
    def called(self) -> str:
        """Name of the model in results."""
        title = getattr(self.model, "title", "") if self.inputs.rows["name"] is None else ""
        return title or self.run_name

    @property
    def out(self) -> Path | None:
        """The folder of the run folders."""
        return path_of(self.inputs.rows["out"])

    def load(self) -> None:
        self.model = self.named
        if isinstance(self.named, str):
            path = reading.beside_data(self.named, self.inputs.sources.data.get(""))
            self.model = self.inputs.load(path, name=self.named)
            if (described := getattr(self.model, "described", None)) is not None:
                self.inputs.feedback.note(f"{self.named}: {described}")

    def narrowed(self, key: str, benchmark: Benchmark) -> _Part:
        """A benchmark that was read, narrowed to the questions that are asked for."""
        rows, options, feedback = self.inputs.rows, self.inputs.options, self.inputs.feedback
        if rows["available"]:
            benchmark = reading.at_hand(benchmark, feedback)
        if any(words in (benchmark.source or "") for words in ("left out", "taken out")):
            # Which rows the protocol left out, and which were not sound, changes what the numbers are of.
            feedback.note(f"{benchmark.name}: {benchmark.source}")
        limit: int | None = rows["limit"]
        given, questions, empty = reading.narrowed(
            self.model, benchmark, limit, options.unanswered, feedback=feedback
        )
        if isinstance(self.named, str):
            reading.check_at_hand(self.named, options.backbone, questions)
        partial = limit is not None and len(questions) < len(benchmark)
        return _Part(key, questions, given, empty, benchmark if partial else None)

    def check(self) -> None:
        """Load what is left to load; raise where model, benchmarks and outputs do not fit."""
        rows, inputs = self.inputs.rows, self.inputs
        self.outputs.read(*(part.benchmark.path for part in self.parts if part.benchmark.path is not None))
        if self.model is None:
            self.load()
        if isinstance(self.first_stage, str):
            bare = replace(inputs.options, ids=None, column=None, whole_rows=False, backbone="", settings={})
            path = reading.beside_data(self.first_stage, inputs.sources.data.get(""))
            self.first_stage = inputs.load(path, bare, self.first_stage)
        for part in self.parts:
            # Raises where a caption metric lacks something, before any benchmark is measured.
            model = self.model
            if "reads_references" in abilities(model):
                from counterfoil.engine.caption_scoring import checked_metric

                model = checked_metric(part.benchmark, model)
            identity = model.identity
            if self.out is not None and rows["name"] is not None:
                folder = _run_folder(self.out, part.key)
                other = (folder / "manifest.json").exists() and not overwriting()
                model_key = identity.name, identity.key
                same_run = partial(is_run_of, model=self.run_name, identity=model_key)
                if other and not same_run(folder, benchmark=part.benchmark):
                    raise InputError(
                        "the folder holds a run of another model of this name, or on other data",
                        where=folder,
                        hint="name another folder, or replace it with --overwrite",
                    )
        reported = measures([part.benchmark for part in self.parts], rows["measures"])
        self.parts = [replace(part, measures=names) for part, names in zip(self.parts, reported, strict=True)]

    def answers(self, part: _Part) -> tuple[Answers, str | None]:
        """The answers to a benchmark; of some of its questions also what all of them would take."""
        rows = self.inputs.rows
        with self.inputs.feedback.progress() as progress:
            model = self.model if part.given is None else part.given
            if part.whole is not None:
                watch = Stopwatch(progress, model)
                session = replace(self.inputs.session, progress=watch)
                answers = answer_benchmark(part.benchmark, model, session=session)
                return answers, watch.note(part.benchmark, part.whole)
            session = replace(self.inputs.session, progress=progress)
            if not part.benchmark.questions.directed:
                return answer_benchmark(part.benchmark, model, session=session), None
            if not self._ranked:
                galleries = [gallery for gallery in self.parts if gallery.benchmark.questions.directed]
                from counterfoil.engine.rank import rank_galleries

                rankings = rank_galleries(
                    [gallery.benchmark for gallery in galleries],
                    self.model,
                    first_stage=self.first_stage,
                    **{name: rows[name] for name in ("depth", "top", "truncated_as_miss")},
                    session=session,
                )
                self._ranked = dict(zip((gallery.key for gallery in galleries), rankings, strict=True))
            return self._ranked[part.key], None

    def counted(self, part: _Part, answers: Answers) -> tuple[_Part, Answers]:
        """The questions that count, where a model left some without an answer."""
        missing = getattr(answers, "unanswered", None)
        if missing is None or not missing.any() or answers.has_rankings:
            return part, answers
        empty, benchmark = int(missing.sum()), part.benchmark
        # A model that was loaded before says itself what becomes of them.
        policy = getattr(self.model, "unanswered", self.inputs.options.unanswered)
        scores = cast(Scores | Outcomes, answers)
        reading.say_unanswered(benchmark, empty, policy, self.inputs.feedback)
        part = replace(part, unanswered=empty)
        if policy == "leave-out":
            from counterfoil.engine.join_scores import answered

            scores, benchmark = answered(scores, benchmark, where=self.called)
            return replace(part, benchmark=benchmark), scores
        return part, of(benchmark).binarize(benchmark, scores)

    def measured(self, part: _Part, answers: Answers) -> EvaluationRun:
        rows = self.inputs.rows
        facts: dict[str, Any] = about(part.benchmark, images=self.inputs.sources.images_of(part.key))
        if rows["limit"] is not None:
            facts["limit"] = rows["limit"]
        if part.unanswered:
            policy = getattr(self.model, "unanswered", None)
            facts["unanswered"] = {
                "questions": part.unanswered,
                "policy": policy if isinstance(policy, str) else rows["unanswered"],
            }
        result = measure(
            part.benchmark,
            answers,
            model=self.called,
            ties=Ties(rows["ties"]),
            interval=IntervalMethod(rows["interval"]),
            draws=rows["draws"],
            seed=rows["seed"],
            measures=part.measures,
            provenance={"benchmark": facts},
        )
        # A loaded model has a name of its own; a run of a named one is called after its folder.
        named = rows["name"] is not None or not isinstance(self.named, str)
        manifest = {"named": named, "asked": self.run_name}
        if self.out is None:
            return EvaluationRun.of(measured_run(part.benchmark, answers, result, manifest))
        folder = _run_folder(self.out, part.key)
        with guarding(self.outputs):
            run = save_run(folder, part.benchmark, answers, result, manifest)
        self.inputs.feedback.note(f"run written to {folder}")
        return EvaluationRun.of(run)


@job(
    outputs="json",
    examples="""Examples:
  counterfoil evaluate open-clip:ViT-B-32-quickgelu/openai bivlc winoground sugarcrepe --out runs/clip
  counterfoil evaluate given:scores/clip.jsonl winoground --data winoground/
  counterfoil evaluate hf:./my-siglip pairs --data my.csv --images photos/ --json result.json
  counterfoil evaluate embeddings:clip.npz coco-5k coco-1k cxc eccv --out runs/clip
  counterfoil evaluate given:similarities.npy eccv --ids ids.npz --measure map_at_r
  counterfoil evaluate chat:http://localhost:8000/v1#MODEL winoground --set protocol=choose
  counterfoil evaluate metric:cider flickr8k-expert --data flickr8k/
  counterfoil evaluate metric:pac-s flickr8k-cf pascal-50s --data sets/ --backbone open-clip:ViT-B-32""",
)
def evaluate_all(
    model: Annotated[str | shared.AnyModel, shared.MODEL],
    benchmarks: Annotated[Sequence[shared.AnyBenchmark], shared.BENCHMARKS],
    **options: Unpack[EvaluateRows],
) -> list[EvaluationRun]:
    """Measure a model on benchmarks, with intervals, chance and ties.

    Finished work is cached, so an interrupted run continues. Galleries of the same items (coco-5k, coco-1k,
    cxc, eccv) are ranked in one pass.

    The runs come in the order of the benchmarks. Everything that can be wrong with names, files and settings
    is found before a model is loaded. All else is as in `evaluate`.
    """
    with guarded("evaluate", overwrite=options["overwrite"]) as outputs:
        evaluation = _named(model, benchmarks, options, outputs)
        sources, feedback = evaluation.inputs.sources, evaluation.inputs.feedback
        # A model is loaded once the data are known to be there. Given answers may carry the questions along.
        if not isinstance(evaluation.named, str) or not catalog.has_model(evaluation.named):
            evaluation.load()
        for key, benchmark in zip(sources.names, sources.benchmarks, strict=True):
            whole = sources.read(benchmark, feedback, evaluation.model, counts=options["counts"])
            evaluation.parts.append(evaluation.narrowed(key, whole))
        evaluation.check()
    runs = []
    for part in evaluation.parts:
        answers, whole_time = evaluation.answers(part)
        if (spent := getattr(evaluation.model, "spent", None)) is not None:
            feedback.note(f"{evaluation.called}: {spent()}")
        run = evaluation.measured(*evaluation.counted(part, answers))
        feedback.result(run)
        runs.append(run)
        if whole_time is not None:
            feedback.note(whole_time)
    return runs


@job()
def evaluate(
    model: Annotated[str | shared.AnyModel, shared.MODEL],
    benchmark: Annotated[shared.AnyBenchmark, shared.BENCHMARK],
    **options: Unpack[EvaluateRows],
) -> EvaluationRun:
    """Measure a model on a benchmark: every number with its interval, chance and ties.

    `model` is a name (see `load_model`) or a model, `benchmark` a name, a folder in counterfoil's own
    format, or a benchmark; a name is read from `data` and `images` as `load_benchmark` does. Finished work is
    kept in the folder `cache` ("default": the user's own; None keeps nothing), so an evaluation that was
    stopped goes on where it was. A model of your own whose weights are not known has no place in the default
    cache (see `counterfoil.model`). `out` gets a run folder OUT/BENCHMARK, which `compare` and `load_run`
    read; one of another model, or on other data, is replaced with `overwrite` only.

    A bar on standard error shows progress after two seconds; `progress` is called with (stage, done, total)
    in its place, `note` with each line about what was decided, and `quiet` shows neither. Raises
    `CounterfoilError` in one line.

    >>> run = evaluate("blind:length", "world-quads", limit=50, draws=100, cache=None, quiet=True)
    >>> run["group"].n, run["group"].chance
    (50, 0.16666666666666666)
    """
    (run,) = evaluate_all(model, [benchmark], **options)
    return run


@job()
def load_run(folder: Annotated[str | Path, option()]) -> EvaluationRun:
    """The run in `folder` (OUT/BENCHMARK); raises `DataError` where it is no run, or was changed."""
    return EvaluationRun.of(load_plain_run(folder))


def _named(
    model: Any, benchmarks: Sequence[shared.AnyBenchmark], rows: EvaluateRows, outputs: Outputs
) -> _Evaluation:
    """The evaluation of `model` on `benchmarks`: names and outputs checked, nothing read or loaded."""
    feedback = feedback_of(rows)
    model, backbone, first_stage = (
        _with_kind(spec, feedback) for spec in (model, rows["backbone"], rows["first_stage"])
    )
    if rows["name"] is not None and not rows["name"].strip():
        raise InputError("an empty name", where="--name", hint="give a text, or leave --name out")
    chat = isinstance(model, str) and model.startswith("chat:")
    if rows["api_key_env"] is not None and not chat:
        raise InputError("--api-key-env is for chat endpoints", given=model, allowed="chat:URL#MODEL")
    inputs = reading.JobInputs.of(
        rows,
        [one if isinstance(one, Benchmark) else catalog.benchmark_name(str(one)) for one in benchmarks],
        model,
        backbone=backbone,
        api_key=api_key(rows["api_key_env"]) if chat else "",
    )
    sources, keys, out = inputs.sources, inputs.sources.names, path_of(rows["out"])
    run_name = rows["name"]
    if run_name is None and first_stage is not None:
        from counterfoil.engine.rank import name as reranked

        run_name = reranked(reading.title_of(model), reading.title_of(first_stage), rows["depth"])
    elif run_name is None:
        run_name = f"{reading.title_of(model)} {backbone if isinstance(model, str) else ''}".strip()
    for folder in _run_folders(out, keys, run_name):
        check_writable(folder.path, folder=True)
        outputs.folder(folder)
    sources.check_names()
    for spec in (model, backbone, first_stage):
        if isinstance(spec, str) and spec:
            catalog.model_name(spec)
    options, plain = inputs.options, sources.data.get("")
    if isinstance(model, str):
        catalog.check_metric(model, backbone)
        options = replace(
            options,
            whole_rows=reading.whole_rows(model, keys),
            ids=reading.in_data_folder(options.ids, plain),
            backbone=reading.beside_data(options.backbone, plain),
        )
        inputs = replace(inputs, options=options)
    specs = [spec for spec in (model, first_stage) if isinstance(spec, str)]
    files = [] if options.ids is None else [options.ids]
    outputs.read(*existing_paths([*specs, *sources.paths, *files]))
    return _Evaluation(inputs, model, first_stage, run_name, outputs)


def _with_kind(model: Any, feedback: Feedback) -> Any:
    """A model that was named without its kind, with it, which is said; any other as it is."""
    if not isinstance(model, str) or not model:
        return model
    full = catalog.full_name(model)
    if full.startswith("ckpt:"):
        return model
    if full != model:
        kind = full.partition(":")[0]
        feedback.note(f"{model} is {full}: {catalog.MODELS[kind].summary}")
    return full


def _run_folder(out: Path, benchmark: str) -> Path:
    """Where the run on a benchmark goes: a folder in `out` of its name, or of that of its own folder."""
    described = benchmark.endswith(".toml") and Path(benchmark).is_file()
    name = catalog.benchmark_card(benchmark).name if described else Path(benchmark).name
    if name in ("", ".", ".."):
        name = Path(benchmark).resolve().name
    if not name:
        raise InputError("the benchmark has no name for its run folder", given=benchmark)
    return out / name


def _run_folders(out: Path | None, benchmarks: Sequence[str], model: str) -> list[Folder]:
    """The folders of runs of `model`, to be declared; raises `InputError` where two would be one."""
    if out is None:
        return []
    folders: dict[str, str] = {}
    for benchmark in benchmarks:
        folder = _run_folder(out, benchmark)
        if (other := folders.get(folder.name.casefold())) is not None:
            problem, hint = "two benchmarks would be written to one run folder", "evaluate them in two calls"
            given = f"{other} and {benchmark}"
            raise InputError(problem, where=folder, given=given, hint=f"{hint} with two --out")
        folders[folder.name.casefold()] = benchmark
    resumes = partial(is_run_of, model=model)
    return [Folder(_run_folder(out, benchmark), FILES, resumes, alone=True) for benchmark in benchmarks]


class Stopwatch:
    """The time of an evaluation of some questions, and from it what all of them would take.

    Progress is passed on; the start, the first batch and the end of each stage are kept.
    """

    def __init__(self, progress: Progress, model: Any) -> None:
        self._progress, self._model = progress, model
        self._stages: dict[str, list[tuple[float, int, int]]] = {}
        self._requests = getattr(model, "requests", 0)

    def __call__(self, stage: str, done: int, total: int) -> None:
        self._stages.setdefault(stage, [])[2:] = [(time.monotonic(), done, total)]
        self._progress(stage, done, total)

    def note(self, part: Benchmark, whole: Benchmark) -> str | None:
        """What `whole` would take by the time of `part`; None where nothing was waited for."""
        if not self._stages:
            return None
        growth = len(whole) / len(part)
        # How many different images, and texts, some question asks about.
        used = ((of, *of.questions.used()) for of in (whole, part))
        of_whole, of_part = (
            (len(pictures), len({of.captions[i].text for i in texts})) for of, texts, pictures in used
        )
        images, captions = (n / max(1, m) for n, m in zip(of_whole, of_part, strict=True))
        sizes = {"images": images, "captions": captions}
        seconds = 0.0
        for stage, points in self._stages.items():
            took = _seconds(points, sizes.get(stage.rpartition(" ")[2], growth))
            if took is None:
                return f"{whole.name}: part of this came from the cache; --no-cache shows what all would take"
            seconds += took
        costs = [f"{duration(seconds)} at this speed"]
        if requests := getattr(self._model, "requests", 0) - self._requests:
            # Answers that were kept say nothing of the endpoint's speed.
            spent = self._model.endpoint.spent
            costs = costs if spent.requests > spent.cached else []
            costs.append(f"{round(requests * growth):,} requests")
        return f"{whole.name}: all {len(whole):,} questions would take about {' and '.join(costs)}"


def _seconds(points: list[tuple[float, int, int]], growth: float) -> float | None:
    """Seconds of a stage with `growth` times as many items; None where the cache knew them all.

    The first batch loads the model, so that where there are more the speed is that of the others.

    >>> _seconds([(0.0, 0, 40), (9.0, 20, 40), (10.0, 40, 40)], growth=10)
    28.0
    >>> _seconds([(0.0, 0, 40), (4.0, 40, 40)], growth=10)
    40.0
    """
    (began, done_before, total), (ended, done, _) = points[0], points[-1]
    if done == done_before:
        return None if total else 0.0
    first, loaded = points[1][:2]
    if done == loaded:
        return (ended - began) / (done - done_before) * total * growth
    left = total * growth - (loaded - done_before)
    return first - began + (ended - first) / (done - loaded) * left
