"""The Python API: `import counterfoil as cf` offers these names, each resolved on first use.

Every function calls the task of the same name as the command line does, with the same defaults: finished work
is kept in the user's cache, notes and progress go to standard error. Errors are one line
(`counterfoil.errors.CounterfoilError`).
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import fields, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, TypeVar

from counterfoil import catalog
from counterfoil.data.benchmark import Benchmark
from counterfoil.data.data_paths import Places
from counterfoil.data.decoding import Sampling
from counterfoil.data.judgements import Votes
from counterfoil.engine.perturbations import Occlusion
from counterfoil.engine.plan import Note, Progress
from counterfoil.engine.retrieve import Given
from counterfoil.errors import CounterfoilError, UnknownNameError
from counterfoil.evaluation.evaluate import IntervalMethod
from counterfoil.evaluation.pooling import Tasks
from counterfoil.evaluation.result import Run
from counterfoil.evaluation.run import load_run as load_plain_run
from counterfoil.metrics.ties import Ties
from counterfoil.scorers.base import Classifier, Embedder, Options, Scorer, identity_of
from counterfoil.scorers.callables import FunctionScorer, scorer
from counterfoil.scorers.captions.base import CaptionMetric
from counterfoil.scorers.learned import LearnedScorer
from counterfoil.tasks import compare as compare_task
from counterfoil.tasks import evaluate as evaluate_task
from counterfoil.tasks.annotate_agreement import PeopleAgreements
from counterfoil.tasks.annotate_agreement import annotate_agreement as agreement_task
from counterfoil.tasks.annotate_create import CreatedCampaign, CreateOptions
from counterfoil.tasks.annotate_create import create_campaign as create_task
from counterfoil.tasks.annotate_export import CampaignExport
from counterfoil.tasks.annotate_export import annotate_export as export_task
from counterfoil.tasks.annotate_simulate import SimulatedCampaign
from counterfoil.tasks.annotate_simulate import annotate_simulate as simulate_task
from counterfoil.tasks.annotate_status import CampaignProgress, annotate_status
from counterfoil.tasks.audit import Audit, AuditOptions
from counterfoil.tasks.audit import audit as audit_task
from counterfoil.tasks.bias import AnnotatorStudy, gallery
from counterfoil.tasks.bias import bias as bias_task
from counterfoil.tasks.build import BuildOptions, BuildResult, StepResult
from counterfoil.tasks.build import apply_step as step_task
from counterfoil.tasks.build import build as build_task
from counterfoil.tasks.caption_inputs import MediaFolder, Policy
from counterfoil.tasks.caption_systems import SystemComparison
from counterfoil.tasks.caption_systems import compare_systems as systems_task
from counterfoil.tasks.captions import CaptionScores, MetricRequest
from counterfoil.tasks.captions import score_captions as captions_task
from counterfoil.tasks.compare import RunComparison
from counterfoil.tasks.evaluate import EvaluateOptions
from counterfoil.tasks.explain import ExplainOptions, Explanation
from counterfoil.tasks.explain import explain as explain_task
from counterfoil.tasks.feedback import Feedback, ignore
from counterfoil.tasks.heat_grades import HeatGrades
from counterfoil.tasks.heat_grades import grade_heatmaps as grade_task
from counterfoil.tasks.pool import CandidatePool
from counterfoil.tasks.pool import pool as pool_task
from counterfoil.tasks.preferences import VoteStrengths
from counterfoil.tasks.preferences import preferences as preferences_task
from counterfoil.tasks.publish import Published, PublishOptions
from counterfoil.tasks.publish import publish as publish_task
from counterfoil.tasks.rankings import ModelRankings
from counterfoil.tasks.rankings import rank as rank_task
from counterfoil.tasks.reproduce import Ledger
from counterfoil.tasks.reproduce import reproduce as reproduce_task
from counterfoil.tasks.results import EvaluationRun
from counterfoil.tasks.study import StudyReport
from counterfoil.tasks.study import study as study_task
from counterfoil.tasks.training import TrainedModel
from counterfoil.tasks.training import train as train_task
from counterfoil.train.recipes.base import Recipe

__all__ = [
    "AnnotatorStudy",
    "AnyScorer",
    "Audit",
    "Benchmark",
    "BuildResult",
    "CampaignExport",
    "CampaignProgress",
    "CandidatePool",
    "CaptionScores",
    "CounterfoilError",
    "CreateOptions",
    "CreatedCampaign",
    "EvaluateOptions",
    "EvaluationRun",
    "ExplainOptions",
    "Explanation",
    "HeatGrades",
    "Ledger",
    "ModelRankings",
    "PeopleAgreements",
    "Published",
    "Recipe",
    "RunComparison",
    "SimulatedCampaign",
    "StepResult",
    "StudyReport",
    "SystemComparison",
    "Tasks",
    "TrainedModel",
    "VoteStrengths",
    "Votes",
    "annotate_agreement",
    "annotate_export",
    "annotate_simulate",
    "annotate_status",
    "apply_step",
    "audit",
    "bias",
    "build_benchmark",
    "compare",
    "compare_systems",
    "create_campaign",
    "evaluate",
    "evaluate_all",
    "explain",
    "grade_heatmaps",
    "load_benchmark",
    "load_run",
    "load_scorer",
    "pool",
    "preferences",
    "publish",
    "rank",
    "reproduce",
    "score_captions",
    "scorer",
    "study",
    "train_model",
]

#: All that can be measured: scorers of pairs, dual encoders, detectors, caption metrics, given numbers, and
#: blind scorers that learn.
AnyScorer = Scorer | Embedder | Classifier | CaptionMetric | Given | LearnedScorer

_Name = TypeVar("_Name", bound=StrEnum)

#: A folder of finished work, "default" for the user's own, None to keep nothing.
Cache = str | Path | None
#: A path, or a path per benchmark.
Data = str | Path | Mapping[str, str | Path] | None


def load_benchmark(
    name: str | Path, data: str | Path | None = None, images: str | Path | None = None, *, counts: bool = True
) -> Benchmark:
    """The benchmark called `name`, read from `data`; without it from what was fetched, or the hub.

    `name` is one of `counterfoil list benchmarks`, or a folder in counterfoil's own format. Your own table is
    "pairs" (quads and choices), "gallery", "ratings" or "preferences", with the file as `data`. `images` is
    the folder of the images, where the data name files. With `counts` False the data may hold another number
    of questions than the release. Raises `UnknownNameError` for an unknown name and `DataError` for data that
    do not fit.

    >>> load_benchmark("world-quads")
    <Benchmark world-quads: 500 questions, 785 images, 1,000 captions>
    """
    return catalog.benchmark(str(name), data=data, images=images, counts=counts)


def load_scorer(
    spec: str,
    *,
    device: str = "auto",
    precision: str = "fp32",
    prompt: str = "{}",
    backbone: str = "",
    settings: Mapping[str, str] | None = None,
    column: str | None = None,
    ids: str | Path | None = None,
    unanswered: str = "refuse",
    seed: int = 0,
    api_key: str = "",
    cache: Cache = "default",
) -> AnyScorer:
    """The scorer that `spec` names as KIND:WHAT, such as `open-clip:ViT-B-32-quickgelu/openai`.

    `device` is "auto", "cpu", "cuda", "cuda:1" or "mps", `precision` "fp32", "bf16" or "fp16", `prompt` a
    template with {} for the caption. A caption metric (`metric:clip-s`) looks with the model `backbone`, and
    takes `settings`, as other kinds do; `api_key` is that of a chat endpoint, sent to it and nowhere written.
    A given table (`given:scores.csv`) has its numbers in `column`; `unanswered` says what becomes of
    questions without an answer ("refuse", "wrong", "leave-out"); a given similarity may take the
    ids of rows and columns from the npz file `ids`. A local model that `cache` remembers is loaded once
    something is left to compute. Raises `UnknownNameError` for an unknown kind or name, `ModelError` for
    weights that do not fit.

    >>> load_scorer("blind:length").identity.name
    'blind:length'
    """
    options = Options(
        device=device,
        precision=precision,
        prompt=prompt,
        column=column,
        unanswered=unanswered,
        seed=seed,
        ids=_path(ids),
        backbone=backbone,
        settings=settings or {},
        api_key=api_key,
    )
    loaded: AnyScorer = catalog.scorer(spec, options, memory=_cache(cache))
    return loaded


def evaluate(
    scorer: str | AnyScorer,
    benchmark: str | Path | Benchmark,
    *,
    data: Data = None,
    images: Data = None,
    limit: int | None = None,
    available: bool = False,
    counts: bool = True,
    out: str | Path | None = None,
    overwrite: bool = False,
    name: str | None = None,
    measures: str | Sequence[str] = (),
    ties: str = "strict",
    interval: str = "auto",
    draws: int = 10_000,
    seed: int = 0,
    unanswered: str = "refuse",
    first_stage: str | AnyScorer | None = None,
    depth: int = 32,
    top: int = 50,
    truncated_as_miss: bool = False,
    cache: Cache = "default",
    batch_size: int = 32,
    workers: int | None = None,
    quiet: bool = False,
    progress: Progress | None = None,
    note: Note | None = None,
) -> EvaluationRun:
    """Measure a scorer on a benchmark: every number with its interval, chance and ties.

    `scorer` is a name (see `load_scorer`) or a scorer, `benchmark` a name, a folder in counterfoil's own
    format, or a benchmark; a name is read from `data` and `images` as `load_benchmark` does. Finished work is
    kept in the folder `cache` ("default": the user's own; None keeps nothing), so an evaluation that was
    stopped goes on where it was. A scorer of your own whose weights are not known has no place in the default
    cache (see `counterfoil.scorer`).

    `limit` measures so many questions, evenly spread, `available` those whose items are at hand.
    `out` gets a run folder OUT/BENCHMARK, which `compare` and `load_run` read; one of another scorer is
    replaced with `overwrite` only. `measures` are those reported, by default all. `ties` ("strict", "half",
    "optimistic") says what a tie counts, `interval` ("auto", "wilson", "bootstrap", "crossed", "folds") how
    intervals are made. In a gallery `first_stage` is a dual encoder whose first `depth` items a scorer of
    pairs ranks again, and a run keeps the `top` first items of each query.

    A bar on standard error shows progress after two seconds; `progress` is called with (stage, done, total)
    in its place, `note` with each line about what was decided, and `quiet` shows neither. Raises
    `CounterfoilError` in one line.

    >>> run = evaluate("blind:length", "world-quads", limit=50, draws=100, cache=None, quiet=True)
    >>> run.result["group"].n, run.result["group"].chance
    (50, 0.16666666666666666)
    """
    options = EvaluateOptions(
        data=_places(data, "--data"),
        images=_places(images, "--images"),
        limit=limit,
        available=available,
        counts=counts,
        out=_path(out),
        overwrite=overwrite,
        name=name,
        measures=(measures,) if isinstance(measures, str) else measures,
        ties=_named(Ties, "policy of ties", ties),
        interval=_named(IntervalMethod, "interval", interval),
        draws=draws,
        seed=seed,
        scorer=Options(unanswered=unanswered, seed=seed),
        first_stage=first_stage,
        depth=depth,
        top=top,
        truncated_as_miss=truncated_as_miss,
        cache=_cache_for(scorer, cache),
        batch_size=batch_size,
        workers=workers,
    )
    (run,) = evaluate_all(
        scorer, [benchmark], options, feedback=_feedback(quiet=quiet, progress=progress, note=note)
    )
    return run


def evaluate_all(
    scorer: str | AnyScorer,
    benchmarks: Sequence[str | Path | Benchmark],
    options: EvaluateOptions | None = None,
    *,
    feedback: Feedback | None = None,
) -> list[EvaluationRun]:
    """Measure a scorer on several benchmarks; galleries of the same items are ranked in one pass.

    `options` are those of the command line (`EvaluateOptions(out=Path("runs/clip"))`). The runs come in the
    order of the benchmarks. Where one cannot be read or measured the others are measured first, and then an
    `InputError` names it; their work is in the cache and in `out`.
    """
    options = options or EvaluateOptions(cache=_cache_for(scorer, "default"))
    named = [each if isinstance(each, Benchmark) else str(each) for each in benchmarks]
    evaluation = evaluate_task.prepare(scorer, named, options, feedback=feedback or _feedback())
    runs = list(evaluation.runs())
    evaluation.check_complete()
    return runs


def explain(
    scorer: str | AnyScorer,
    benchmark: str | Path | Benchmark,
    *,
    questions: Sequence[str] = (),
    limit: int = 4,
    methods: str | Sequence[str] = (),
    grid: int = 7,
    fill: str = "mean",
    mask: str | None = None,
    data: Data = None,
    images: Data = None,
    cache: Cache = "default",
    batch_size: int = 32,
    workers: int | None = None,
    quiet: bool = False,
    progress: Progress | None = None,
    note: Note | None = None,
) -> Explanation:
    """Which words of a caption count for a scorer, and where in the picture it looks for them.

    Every image of the `questions` (ids; by default `limit` of them, evenly spread) with every caption: what
    the score loses without each word (deleted, or replaced by `mask`), and heatmaps by `methods`:
    "occlusion" works for any scorer by its scores alone (`grid` x `grid` cells, covered by `fill`: "mean" or
    "blur"), "patches" compares the patches of a dual encoder with each word, "rollout" and "transport" are
    of ViLT, "grad-cam" of BLIP. By default those that look inside of the model, else occlusion. All else is
    as in `evaluate`. Raises `CounterfoilError` in one line.

    >>> found = explain("pixels:colours", "world-quads", limit=1, grid=3, cache=None, workers=0, quiet=True)
    >>> found
    <Explanation of pixels:colours on World, quads: 1 question>
    >>> found.to_arrow(by="cell").column_names
    ['question', 'caption', 'image', 'method', 'word', 'row', 'column', 'heat']
    """
    options = ExplainOptions(
        questions=questions,
        limit=limit,
        methods=(methods,) if isinstance(methods, str) else methods,
        occlusion=Occlusion(grid, fill),
        mask=mask,
        data=_places(data, "--data"),
        images=_places(images, "--images"),
        cache=_cache_for(scorer, cache),
        batch_size=batch_size,
        workers=workers,
    )
    named = benchmark if isinstance(benchmark, Benchmark) else str(benchmark)
    return explain_task(scorer, named, options, feedback=_feedback(quiet=quiet, progress=progress, note=note))


def grade_heatmaps(
    scorer: str | AnyScorer,
    benchmark: str | Benchmark = "world-quads",
    *,
    limit: int = 40,
    methods: str | Sequence[str] = (),
    grid: int = 7,
    fill: str = "mean",
    draws: int = 2000,
    seed: int = 0,
    cache: Cache = "default",
    batch_size: int = 32,
    workers: int | None = None,
    quiet: bool = False,
    progress: Progress | None = None,
    note: Note | None = None,
) -> HeatGrades:
    """How often the heatmaps of `explain` point at the right thing, in the drawn world, where that is known.

    Every word that says the colour, shape, size or texture of a thing, in `limit` questions: does the hottest
    pixel lie on such a thing (pointing game), and how far do the hottest pixels overlap with those (IoU)?
    Each has its chance level and an interval. Raises `DataError` for a benchmark not drawn from scenes.

    >>> found = grade_heatmaps("blind:length", limit=2, grid=2, cache=None, workers=0, quiet=True)
    >>> round(found.grades[0].pointing.value - found.grades[0].pointing.chance, 9)
    0.0
    """
    options = ExplainOptions(
        limit=limit,
        methods=(methods,) if isinstance(methods, str) else methods,
        occlusion=Occlusion(grid, fill),
        cache=_cache_for(scorer, cache),
        batch_size=batch_size,
        workers=workers,
    )
    feedback = _feedback(quiet=quiet, progress=progress, note=note)
    return grade_task(scorer, benchmark, options, draws=draws, seed=seed, feedback=feedback)


def load_run(folder: str | Path) -> EvaluationRun:
    """The run in `folder` (OUT/BENCHMARK); raises `DataError` where it is no run, or was changed."""
    return EvaluationRun.of(load_plain_run(folder))


def compare(
    runs: Sequence[Run | str | Path],
    *,
    baseline: Run | str | None = None,
    interval: str | None = None,
    shared: bool = False,
    draws: int = 10_000,
    seed: int = 0,
    quiet: bool = False,
) -> RunComparison:
    """Compare runs question by question, with a test of every difference.

    `runs` are runs, run folders, and folders of them; `baseline` is a run or its name. With `shared` runs
    that answer other questions are compared over those that all answer. See
    `counterfoil.tasks.compare.compare` for the statistics. Images for `to_html` are looked for where the runs
    found them; `RunComparison.with_images` names another place.

    >>> runs = [evaluate(f"blind:{name}", "world-quads", limit=50, draws=100, cache=None, quiet=True)
    ...         for name in ("length", "random")]
    >>> found = compare(runs, baseline=runs[0], draws=100)
    >>> [(d.a, d.b, d.measure) for d in found.differences][-1]
    ('blind:random', 'blind:length', 'group')
    """
    return compare_task.compare(
        runs,
        baseline=baseline,
        interval=interval,
        shared=shared,
        draws=draws,
        seed=seed,
        feedback=_feedback(quiet=quiet),
    )


def rank(
    runs: Sequence[Run | str | Path],
    *,
    measures: str | Sequence[str] = (),
    k: int = 25,
    draws: int = 1000,
    seed: int = 0,
    quiet: bool = False,
) -> ModelRankings:
    """Whether measures and benchmarks put models in the same order, as `counterfoil rankings` has it.

    `runs` are runs, run folders, and folders of them, of three models or more. `measures` are names with
    their benchmark (`eccv:mean_map_at_r`) or without, or patterns; by default all. The first `k` items of
    each query are compared. Raises `InputError` for fewer than three models.

    >>> runs = [
    ...     evaluate("blind:length", "world-quads", name=name, limit=50, draws=100, cache=None, quiet=True)
    ...     for name in ("one", "two", "three")
    ... ]
    >>> rank(runs, draws=100, quiet=True).correlation.models
    ('one', 'two', 'three')
    """
    named = (measures,) if isinstance(measures, str) else measures
    return rank_task(runs, measures=named, k=k, draws=draws, seed=seed, feedback=_feedback(quiet=quiet))


def pool(
    scores: Sequence[Run | str | Path],
    *,
    k: int = 5,
    queries: str | Path | Sequence[str] | None = None,
    direction: Literal["t2i", "i2t", "both"] = "both",
    ids: str | Path | None = None,
    exclude_known: bool = False,
    tasks: Tasks | None = None,
    quiet: bool = False,
    progress: Progress | None = None,
) -> CandidatePool:
    """The pairs that models propose with their first `k` items per query, for people to verify.

    `scores` are runs, run folders, embeddings (.npz) and similarities (.npy) of the same items; `ids` is an
    npz file with `image_ids` and `caption_ids` for files without. `queries` are ids, or the file that has
    them; by default all that every model answers, in one `direction` or both. `exclude_known` leaves out
    pairs that are right in the runs' benchmark already, `tasks` says how pairs are handed out and what they
    cost. Raises `DataError` where the items differ, `InputError` for two models of one name.

    >>> runs = [evaluate(f"blind:{name}", "world-gallery", draws=100, cache=None, quiet=True)
    ...         for name in ("length", "random")]
    >>> found = pool(runs, k=1, direction="t2i", quiet=True)
    >>> found.summary.models, found.to_arrow().column_names[:3]
    (('blind:length', 'blind:random'), ['pair', 'direction', 'query'])
    """
    return pool_task(
        scores,
        k=k,
        queries=queries,
        direction=direction,
        ids=ids,
        exclude_known=exclude_known,
        tasks=tasks,
        feedback=_feedback(quiet=quiet, progress=progress),
    )


def audit(
    benchmarks: str | Path | Benchmark | Sequence[str | Path | Benchmark],
    *,
    data: Data = None,
    images: Data = None,
    scorers: str | AnyScorer | Sequence[str | AnyScorer] = (),
    against: str | Path | Sequence[str | Path] = (),
    limit: int | None = None,
    counts: bool = True,
    level: float = 0.05,
    pictures: bool = True,
    draws: int = 2000,
    seed: int = 0,
    cache: Cache = "default",
    batch_size: int = 32,
    quiet: bool = False,
    progress: Progress | None = None,
    note: Note | None = None,
) -> Audit:
    """Whether questions can be answered without their images, as `counterfoil audit` has it.

    `benchmarks` are read from `data` and `images` as `evaluate` does. Scorers that see no image are measured
    on each, `scorers` beside them (`lm:gpt2`, or answers of people); a tie counts its chance. What is learned
    about a question comes from questions that share no image or caption with it. Words that right captions
    have and wrong ones lack are tested together, so that the chance of naming any where there is no artefact
    is at most `level`. Captions, and images at hand (unless `pictures` is False), are searched for
    duplicates; of several benchmarks, and of those and tables of captions in `against`, what they share is
    counted. Raises `DataError` where captions are not at hand.

    >>> found = audit("world-quads", limit=60, draws=100, pictures=False, cache=None, quiet=True)
    >>> [result.scorer for result in found["world-quads"].blind][-1], found["world-quads"].named
    ('blind:learned', ())
    """
    several = [benchmarks] if isinstance(benchmarks, str | Path | Benchmark) else benchmarks
    named = [each if isinstance(each, Benchmark) else str(each) for each in several]
    extra = scorers if isinstance(scorers, list | tuple) else [scorers]
    options = AuditOptions(
        data=_places(data, "--data"),
        images=_places(images, "--images"),
        scorers=tuple(extra),
        options=Options(seed=seed),
        against=[against] if isinstance(against, str | Path) else against,
        limit=limit,
        counts=counts,
        level=level,
        pictures=pictures,
        draws=draws,
        seed=seed,
        cache=_cache(cache),
        batch_size=batch_size,
    )
    return audit_task(named, options, feedback=_feedback(quiet=quiet, progress=progress, note=note))


def build_benchmark(
    recipe: str | Path,
    out: str | Path,
    *,
    settings: Mapping[str, Any] | None = None,
    seed: int | None = None,
    report: bool = True,
    device: str = "auto",
    precision: str = "fp32",
    api_key: str = "",
    cache: Cache = "default",
    batch_size: int = 32,
    workers: int | None = None,
    overwrite: bool = False,
    quiet: bool = False,
    progress: Progress | None = None,
    note: Note | None = None,
) -> BuildResult:
    """Build a benchmark or a training set by a recipe, as `counterfoil build` does it.

    `recipe` is the name of a shipped one or a .toml file; `settings` are values by "STEP.KEY", such as
    `{"read.source": "captions.json", "imagine.k": 2}`. Every step's rows are kept in the folder `out`, and a
    build that was stopped goes on where it was; `evaluate`, `audit` and `publish` take that folder as a
    benchmark. `api_key` is sent to the endpoints that steps ask and nowhere written. Raises `InputError` or
    `DataError` for a recipe, settings or rows that cannot be used. (`counterfoil.build` is the package of
    steps.)

    >>> import tempfile
    >>> settings = {"read.n": 7, "read.size": 32, "imagine.size": 32}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     built = build_benchmark("trohn-img", folder, settings=settings, report=False, quiet=True)
    ...     built.to_arrow()["rows_out"].to_pylist(), built.benchmark.name
    ([7, 7, 7], 'benchmark')
    """
    options = BuildOptions(
        settings=_texts(settings),
        seed=seed,
        report=report,
        device=device,
        precision=precision,
        api_key=api_key,
        cache=_cache(cache),
        batch_size=batch_size,
        workers=workers,
    )
    feedback = _feedback(quiet=quiet, progress=progress, note=note)
    return build_task(recipe, out, options, overwrite=overwrite, feedback=feedback)


def create_campaign(
    form: str,
    source: str | Path,
    out: str | Path,
    options: CreateOptions | None = None,
    *,
    overwrite: bool = False,
    quiet: bool = False,
    note: Note | None = None,
) -> CreatedCampaign:
    """Make an annotation campaign at `out`, as `counterfoil annotate create` does it.

    `form` is a form of work, `source` a table, a benchmark's name or folder, or a campaign whose answers
    become items. `options.recipe` has fields of `campaign.toml`, `options.settings` those of the form.
    `counterfoil annotate serve` serves the folder. Raises `InputError` for a design that cannot be and
    `DataError` for items that the form cannot show.

    >>> import tempfile
    >>> options = CreateOptions(recipe={"overlap": 2}, sample=3)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     made = create_campaign("yes-no", "world-quads", Path(folder) / "pairs", options, quiet=True)
    ...     tried = annotate_simulate(Path(folder) / "pairs", people=8, accuracy=1.0, quiet=True)
    ...     made.to_arrow()["items"].to_pylist(), tried.simulation.counts.answers
    ([12], 24)
    """
    feedback = _feedback(quiet=quiet, progress=None, note=note)
    return create_task(form, source, out, options or CreateOptions(), overwrite=overwrite, feedback=feedback)


def annotate_simulate(
    campaign: str | Path,
    *,
    people: int = 50,
    mix: Mapping[str, float] | None = None,
    accuracy: float | None = None,
    seed: int = 0,
    keep: str | Path | None = None,
    overwrite: bool = False,
    quiet: bool = False,
    progress: Progress | None = None,
    note: Note | None = None,
) -> SimulatedCampaign:
    """Run a campaign by simulated people on a database of its own, as `counterfoil annotate simulate` does.

    `mix` are shares of kinds of people ("able", "hasty", "one-sided", "careless", "adversarial", "bot"),
    `accuracy` how often able ones are right; `keep` is a folder that becomes a copy of the campaign's with
    all that was answered. Raises `InputError` for unknown kinds.
    """
    feedback = _feedback(quiet=quiet, progress=progress, note=note)
    return simulate_task(
        campaign,
        people=people,
        mix=mix,
        accuracy=accuracy,
        seed=seed,
        keep=keep,
        overwrite=overwrite,
        feedback=feedback,
    )


def annotate_agreement(
    source: str | Path,
    *,
    campaign: str | Path | None = None,
    database: str | None = None,
    draws: int = 400,
    seed: int = 0,
    quiet: bool = False,
    note: Note | None = None,
) -> PeopleAgreements:
    """Agreement of the people of a campaign, or of a table of judgements, per question and kind of item.

    `campaign`, of a table, is the one whose questions it answers; `database` is the address of a database
    elsewhere. Raises `DataError` for what is neither.
    """
    feedback = _feedback(quiet=quiet, progress=None, note=note)
    return agreement_task(
        source, campaign=campaign, database=database, draws=draws, seed=seed, feedback=feedback
    )


def annotate_export(
    campaign: str | Path,
    out: str | Path | None = None,
    *,
    model: str = "one-coin",
    people: bool = True,
    database: str | None = None,
    overwrite: bool = False,
    quiet: bool = False,
    note: Note | None = None,
) -> CampaignExport:
    """Write a campaign's judgements, labels with their posterior, and the tables that other jobs read.

    `model` is how answers become labels: one-coin, majority, dawid-skene, mace or glad. Without `people` no
    table has a person's id. Raises `InputError` for a campaign without answers.
    """
    feedback = _feedback(quiet=quiet, progress=None, note=note)
    return export_task(
        campaign, out, model=model, people=people, database=database, overwrite=overwrite, feedback=feedback
    )


def apply_step(
    step: str,
    rows: str | Path | Any,
    *,
    settings: Mapping[str, Any] | None = None,
    folder: str | Path | None = None,
    images: str | Path | None = None,
    seed: int = 0,
    device: str = "auto",
    precision: str = "fp32",
    api_key: str = "",
    cache: Cache = "default",
    batch_size: int = 32,
    workers: int | None = None,
    quiet: bool = False,
    progress: Progress | None = None,
    note: Note | None = None,
) -> StepResult:
    """One step of a build on rows of one's own, as `counterfoil build STEP` applies it.

    `rows` are a table in a file or a `pyarrow.Table` with `id` and what the step reads; `settings` are the
    step's, `api_key` is sent to the endpoint that the step asks and nowhere written. The images that a step
    makes go to `images` in `folder`. Raises `UnknownNameError` for an unknown step, `DataError` for rows
    without the columns that it reads, and what the step raises.

    >>> import pyarrow as pa
    >>> rows = pa.table({"id": ["a", "b"], "caption": ["a  cat", "A cat."]})
    >>> apply_step("dedup", rows, settings={"fields": ["caption"]}, quiet=True).output.reasons
    {'exact duplicate': 1}
    """
    options = BuildOptions(
        settings=_texts(settings),
        seed=seed,
        images=_path(images),
        device=device,
        precision=precision,
        api_key=api_key,
        cache=_cache(cache),
        batch_size=batch_size,
        workers=workers,
    )
    feedback = _feedback(quiet=quiet, progress=progress, note=note)
    return step_task(step, rows, options, feedback=feedback, folder=_path(folder))


def bias(
    scores: Sequence[Run | str | Path],
    judgements: str | Path,
    *,
    k: int | None = None,
    measures: str | Sequence[str] = ("graded_recall_at_1", "graded_r_precision"),
    direction: Literal["i2t", "t2i"] | None = None,
    aggregate: Literal["majority", "mean"] = "majority",
    undefined: Literal["out", "zero"] = "out",
    positives: Sequence[str | Path | Benchmark] = (),
    data: str | Path | None = None,
    ids: str | Path | None = None,
    draws: int = 2000,
    seed: int = 0,
    quiet: bool = False,
    progress: Progress | None = None,
) -> AnnotatorStudy:
    """What the choice of machine annotators does to a benchmark, as `counterfoil bias` has it.

    `scores` are those of `pool`, `judgements` is its table with a column `answer` or `gain` filled in. Each
    model is measured on the benchmarks that each set of models would have made; bias is how far that is off
    the benchmark that all made together. The models propose their first `k` items, by default what the table
    says they proposed, else 5. `aggregate` says how several answers to one pair are made one, `undefined`
    whether queries for which a set found nothing are left out or count 0. Right answers of the galleries
    `positives` (read from `data`) are held against the judgements. Raises `DataError` for judged items and
    queries that a model does not rank.

    >>> runs = [evaluate(f"blind:{name}", "world-gallery", draws=100, cache=None, quiet=True)
    ...         for name in ("length", "random")]
    >>> pairs = pool(runs, k=2, direction="t2i", quiet=True).to_arrow().to_pylist()
    >>> rows = [f"t2i,{pair['image']},{pair['caption']},{pair['pair'] % 2}" for pair in pairs]
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     judged = Path(folder, "judged.csv")
    ...     _ = judged.write_text("\\n".join(["direction,image,caption,gain", *rows]))
    ...     print(bias(runs, judged, draws=100, quiet=True).models)
    ('blind:length', 'blind:random')
    """
    return bias_task(
        scores,
        judgements,
        k=k,
        measures=(measures,) if isinstance(measures, str) else measures,
        direction=direction,
        aggregate=aggregate,
        undefined=undefined,
        positives=[each if isinstance(each, Benchmark) else gallery(each, data) for each in positives],
        ids=ids,
        draws=draws,
        seed=seed,
        feedback=_feedback(quiet=quiet, progress=progress),
    )


def score_captions(
    candidates: str | Path,
    metrics: str | Sequence[str],
    *,
    references: str | Path | None = None,
    images: str | Path | None = None,
    videos: str | Path | None = None,
    frames: int | None = None,
    rate: float | None = None,
    references_contain: Policy | None = None,
    empty: Literal["refuse", "leave-out"] = "refuse",
    per_image: Literal["mean", "best"] = "mean",
    scorer: str = "",
    settings: Mapping[str, str] | None = None,
    device: str = "auto",
    precision: str = "fp32",
    batch_size: int = 32,
    workers: int | None = None,
    cache: Cache = "default",
    quiet: bool = False,
    progress: Progress | None = None,
    note: Note | None = None,
) -> CaptionScores:
    """The captions in a file scored by metrics, as `counterfoil captions score` does it.

    `candidates` and `references` are JSON, CSV or Parquet files, `metrics` names of `counterfoil list
    metrics`. Metrics that look need the model `scorer` and a folder of `images` or `videos` (of which
    `frames` of each, or `rate` per second, are seen). `settings` are KEY or METRIC.KEY and a value. A
    reference that says what the candidate says stays, goes, or its item goes (`references_contain`: "keep",
    "drop-reference", "drop-item"). An image of several candidates counts their mean or the best. Embeddings
    are kept in `cache`, so work that was stopped goes on where it was. Raises `DataError` for files that do
    not fit each other, `InputError` where a metric needs what is not given.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     candidates, references = Path(folder, "c.json"), Path(folder, "r.json")
    ...     _ = candidates.write_text('{"1": "a red cat"}')
    ...     _ = references.write_text('{"1": ["a red cat", "the cat"]}')
    ...     found = score_captions(candidates, "bleu-1", references=references, cache=None, quiet=True)
    >>> round(found.values["bleu-1"].value, 6)
    1.0
    """
    return captions_task(
        Path(candidates),
        _metrics(metrics, scorer, settings, device, precision, batch_size, workers, cache),
        references=_path(references),
        media=_media(images, videos, frames, rate),
        policy=references_contain,
        empty=empty,
        per_image=per_image,
        feedback=_feedback(quiet=quiet, progress=progress, note=note),
    )


def compare_systems(
    predictions: Sequence[str | Path],
    references: str | Path,
    *,
    metrics: str | Sequence[str] = "bleu-4,rouge-l,cider",
    humans: str | Path | None = None,
    over: Literal["images", "systems"] = "images",
    draws: int = 10_000,
    seed: int = 0,
    images: str | Path | None = None,
    videos: str | Path | None = None,
    frames: int | None = None,
    rate: float | None = None,
    references_contain: Policy | None = None,
    scorer: str = "",
    settings: Mapping[str, str] | None = None,
    device: str = "auto",
    precision: str = "fp32",
    batch_size: int = 32,
    workers: int | None = None,
    cache: Cache = "default",
    quiet: bool = False,
    progress: Progress | None = None,
    note: Note | None = None,
) -> SystemComparison:
    """Captioners compared by metrics, as `counterfoil captions systems` does it.

    `predictions` are JSON files, one per system and called after it, of captions of the same images; `humans`
    is a table of what people gave the systems, which says how far metrics order them as people do. `over`
    says what is drawn anew for intervals of those correlations. All else is as in `score_captions`.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     one, two, references = (Path(folder, f"{name}.json") for name in ("one", "two", "r"))
    ...     _ = one.write_text('{"1": "a red cat"}'), two.write_text('{"1": "dogs"}')
    ...     _ = references.write_text('{"1": ["a red cat"]}')
    ...     found = compare_systems([one, two], references, metrics="bleu-1", cache=None, quiet=True)
    >>> found.to_arrow()["system"].to_pylist()
    ['one', 'two']
    """
    return systems_task(
        [Path(each) for each in predictions],
        Path(references),
        _metrics(metrics, scorer, settings, device, precision, batch_size, workers, cache),
        humans=_path(humans),
        over=over,
        draws=draws,
        seed=seed,
        media=_media(images, videos, frames, rate),
        policy=references_contain,
        feedback=_feedback(quiet=quiet, progress=progress, note=note),
    )


def preferences(
    votes: str | Path | Votes,
    *,
    self_votes: Literal["leave-out", "error"] = "leave-out",
    draws: int = 10_000,
    seed: int = 0,
) -> VoteStrengths:
    """Bradley-Terry strengths from votes between two at a time, as `counterfoil preferences` has them.

    `votes` are a table with a row per vote (columns `winner`, `loser`; optionally `count`, `judge`), a square
    table of counts, or `Votes`. Intervals resample whole judges where a column says who voted, else the votes
    of each pair. Votes for something over itself are left out, or an error (`self_votes`).

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     votes = Path(folder, "votes.csv")
    ...     _ = votes.write_text("winner,loser,count\\nred,blue,3\\nblue,red,1\\n")
    ...     found = preferences(votes, draws=100)
    >>> found
    <VoteStrengths: red ≈ blue>
    """
    return preferences_task(votes, self_votes=self_votes, draws=draws, seed=seed)


def publish(
    benchmark: str | Path | Benchmark,
    to: str,
    *,
    data: str | Path | None = None,
    images: str | Path | None = None,
    licence: str = "",
    anyway: bool = False,
    split: float | None = None,
    seed: int = 0,
    execute: bool = False,
    provenance: Mapping[str, Any] | str | Path | None = None,
    quiet: bool = False,
    **facts: Any,
) -> Published:
    """Publish a benchmark to "folder:OUT" or "hub:OWNER/NAME", as `counterfoil publish` has it.

    The folder holds Parquet that `datasets.load_dataset` reads with its images, a dataset card, a Croissant
    file, checksums, and counterfoil's own format; `evaluate` measures it like the benchmark. The hub gets it
    only with `execute`. `licence` is an SPDX identifier, by default what the card states. `provenance` says
    how the questions came to be (`counterfoil.data.publishing.facts.Provenance.of`), or is a JSON file that
    does. `facts` are further fields of `counterfoil.tasks.publish.PublishOptions`: creators, date, release,
    language, url, private, available, counts, overwrite. Raises `InputError` where a licence forbids it,
    unless `anyway`.

    >>> found = publish("world-choices", "hub:ann/shapes", quiet=True)
    >>> found.licence.spdx, found.executed, "data/test-00000-of-00001.parquet" in found.folder.sizes
    ('Apache-2.0', False, True)
    """
    known = {field.name for field in fields(PublishOptions)}
    for name in facts:
        if name not in known:
            raise UnknownNameError("fact of a publication", name, known)
    made = provenance if provenance is None or isinstance(provenance, Mapping) else Path(provenance)
    options = PublishOptions(
        data=_path(data),
        images=_path(images),
        licence=licence,
        anyway=anyway,
        split=split,
        seed=seed,
        execute=execute,
        provenance=made,
        **facts,
    )
    named = benchmark if isinstance(benchmark, Benchmark) else str(benchmark)
    return publish_task(named, to, options, feedback=_feedback(quiet=quiet))


def reproduce(
    data: str | Path | None = None, papers: str | Sequence[str] | None = None, *, quiet: bool = False
) -> Ledger:
    """What the papers print beside what is recomputed, as `counterfoil reproduce` has it.

    `data` is the folder of released files, by default that of COUNTERFOIL_DATA; where one is not there, its
    numbers are "no data". `papers` are names such as "bivlc" and "winoground", by default all. Raises
    `DataError` where a file is there but cannot be used.

    >>> found = reproduce(papers="bivlc", quiet=True).only("same")
    >>> [(entry.table, entry.printed, entry.rounded) for entry in found.entries][-1]
    ('Table 7', '0.49', '0.49')
    """
    from counterfoil.cli.paths import data_folder

    folder = data_folder(_path(data))
    return reproduce_task(folder, papers, feedback=_feedback(quiet=quiet))


def study(
    out: str | Path,
    *,
    full: bool = False,
    seed: int = 0,
    quiet: bool = False,
    progress: Progress | None = None,
    note: Note | None = None,
) -> StudyReport:
    """The study of `counterfoil demo`: four models trained on a drawn world, measured, and what held.

    Minutes of work, which the first note estimates. Networks, runs and the report are kept in the folder
    `out`; a study that was stopped goes on where it was, one with another seed or plan begins anew. `full`
    takes three seeds per model and two more studies. Raises `MissingExtraError` without the extras `train`
    and `report`, `InputError` for a folder that holds something else.
    """
    feedback = _feedback(quiet=quiet, progress=progress, note=note)
    return study_task(out, full=full, seed=seed, feedback=feedback)


def train_model(
    recipe: str | Path | Recipe,
    model: str | None = None,
    data: str | Path | None = None,
    *,
    out: str | Path | None = None,
    images: str | Path | None = None,
    regions: str | Path | None = None,
    validation: str | Path | None = None,
    validation_share: float | None = None,
    changed: Mapping[str, Any] | None = None,
    guard: str | None = None,
    guard_images: str | Path | None = None,
    resume: bool = True,
    device: str | None = None,
    devices: int | None = None,
    chunk_size: int | None = None,
    checkpoint_activations: bool = False,
    workers: int | None = None,
    cache: Cache = "default",
    tensorboard: bool = False,
    overwrite: bool = False,
    quiet: bool = False,
    progress: Progress | None = None,
    note: Note | None = None,
) -> TrainedModel:
    """Train a dual encoder by a recipe of the papers, or fine-tune one, as `counterfoil train` does it.

    `recipe` is a name of `counterfoil list recipes`, a .toml file (whose table [run] says what is not given
    here), or a `Recipe`; `changed` are fields of it and their values, such as `{"steps": 500}`. `model` is
    open-clip:ARCH/WEIGHTS, open-clip:ARCH (from scratch), hf:NAME_OR_FOLDER, small, or the folder of a
    checkpoint. `data` are rows to train on, `regions` features of their images' regions in place of pictures,
    `validation` those that decide which weights are kept, by
    default a share of the rows. The checkpoint is written to the folder `out`, which `evaluate` takes as
    `ckpt:OUT`; a training that was stopped goes on where it was. The benchmark `guard` is measured along the
    way. Raises `DataError` for what cannot be read, `InputError` for rows and recipes that do not fit.
    (`counterfoil.train` is the package of loops, recipes and losses.)
    """
    options = {
        "model": model,
        "data": _path(data),
        "images": _path(images),
        "regions": _path(regions),
        "validation": _path(validation),
        "out": _path(out),
        "guard_images": _path(guard_images),
        "validation_share": validation_share,
        "guard": guard,
        "device": device,
        "devices": devices,
        "workers": workers,
        "cache": _cache(cache),
        "chunk_size": chunk_size,
        "checkpoint_activations": checkpoint_activations or None,
        "tensorboard": tensorboard or None,
    }
    return train_task(
        recipe,
        options,
        changed=changed,
        resume=resume,
        overwrite=overwrite,
        feedback=_feedback(quiet=quiet, progress=progress, note=note),
    )


def _metrics(
    names: str | Sequence[str],
    scorer: str,
    settings: Mapping[str, str] | None,
    device: str,
    precision: str,
    batch_size: int,
    workers: int | None,
    cache: Cache,
) -> MetricRequest:
    return MetricRequest.of(
        names,
        scorer=scorer,
        settings=settings,
        device=device,
        precision=precision,
        cache=_cache(cache),
        batch_size=batch_size,
        workers=workers,
    )


def _media(
    images: str | Path | None, videos: str | Path | None, frames: int | None, rate: float | None
) -> MediaFolder:
    return MediaFolder(_path(images), _path(videos), Sampling(frames, rate))


def _texts(settings: Mapping[str, Any] | None) -> dict[str, str]:
    """Settings of steps as they would be typed."""
    words = {True: "yes", False: "no", None: "none"}
    return {
        key: ",".join(map(str, value))
        if isinstance(value, list | tuple)
        else words[value]
        if value is None or isinstance(value, bool)
        else str(value)
        for key, value in (settings or {}).items()
    }


def _path(given: str | Path | None) -> Path | None:
    return None if given is None else Path(given)


def _feedback(
    *, quiet: bool = False, progress: Progress | None = None, note: Callable[[str], None] | None = None
) -> Feedback:
    """The feedback of the command line, parts of it replaced."""
    from counterfoil.cli import terminal

    found = terminal.feedback(quiet=quiet)
    if progress is not None:
        found = replace(found, progress=lambda: nullcontext(progress))
    if note is not None:
        found = replace(found, note=note, warn=note, remark=note)
    elif quiet:
        found = replace(found, warn=ignore)
    return found


def _cache(cache: Cache) -> Path | None:
    from counterfoil.cli.paths import cache_folder

    if cache is None:
        return None
    return cache_folder(None) if cache == "default" else Path(cache)


def _cache_for(scorer: object, cache: Cache) -> Path | None:
    """The cache; None where "default" was asked for and nothing tells one scorer from another of its name."""
    if cache == "default" and not isinstance(scorer, str):
        identity = identity_of(scorer)
        told = identity.revision or (identity.weights and not isinstance(scorer, FunctionScorer))
        return _cache("default") if told else None
    return _cache(cache)


def _places(paths: Data, option: Literal["--data", "--images"]) -> Places:
    if isinstance(paths, Mapping):
        return Places(None, {name: Path(path) for name, path in paths.items()}, option).check()
    return Places(_path(paths), {}, option).check()


def _named(names: type[_Name], kind: str, name: str) -> _Name:
    if name not in list(names):
        raise UnknownNameError(kind, name, [str(each) for each in names])
    return names(name)
