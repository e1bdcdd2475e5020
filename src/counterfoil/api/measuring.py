"""Loading benchmarks and scorers, evaluating, explaining, comparing and ranking them, from Python."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from counterfoil import catalog
from counterfoil.api.arguments import (
    AnyScorer,
    Cache,
    Data,
    TableData,
    cache_for,
    cache_of,
    feedback_of,
    in_memory,
    member_of,
    path_of,
    places_of,
    with_table,
)
from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.engine.deduplicate import Note, Progress
from counterfoil.engine.perturbations import Occlusion
from counterfoil.evaluation.evaluate import IntervalMethod
from counterfoil.evaluation.run import load_run as load_plain_run
from counterfoil.jobs import evaluate as evaluate_task
from counterfoil.jobs.evaluate import EvaluateOptions
from counterfoil.jobs.explain import ExplainOptions, Explanation
from counterfoil.jobs.explain import explain as explain_task
from counterfoil.jobs.feedback import Feedback
from counterfoil.jobs.heat_grades import HeatGrades
from counterfoil.jobs.heat_grades import grade_heatmaps as grade_task
from counterfoil.jobs.results import EvaluationRun
from counterfoil.metrics.ties import Ties
from counterfoil.models.base import Options


def list_benchmarks() -> list[str]:
    """The names of all benchmarks, as `counterfoil list benchmarks` has them with their facts.

    >>> {"bivlc", "winoground", "pairs"} <= set(list_benchmarks())
    True
    """
    return list(catalog.benchmarks())


def load_benchmark(
    name: str | Path, data: TableData = None, images: str | Path | None = None, *, counts: bool = True
) -> Benchmark:
    """The benchmark called `name`, read from `data`; without it from what was fetched, or the hub.

    `name` is one of `counterfoil list benchmarks`, or a folder in counterfoil's own format. Your own table is
    "pairs" (quads and choices), "gallery", "statements", "ratings" or "preferences", with `data` its file or
    the table itself: a pandas frame, an Arrow table, a list of dicts or a dict of columns, with images as
    paths, bytes or pictures. `images` is the folder of the images, where the data name files. With `counts`
    False the data may hold another number of questions than the release. Raises `UnknownNameError` for an
    unknown name and `DataError` for data that do not fit.

    >>> load_benchmark("world-quads")
    <Benchmark world-quads: 500 questions, 785 images, 1,000 captions>
    >>> load_benchmark("pairs", [{"image": "a.jpg", "caption": "a cat", "negative_caption": "a dog"}])
    <Benchmark pairs: 1 questions, 1 images, 2 captions>
    """
    return catalog.benchmark(str(name), data=data, images=images, counts=counts)


def load_scorer(
    spec: str,
    *,
    device: Any = "auto",
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

    `device` is "auto", "cpu", "cuda", "cuda:1", "mps" or a torch device, `precision` "fp32", "bf16" or
    "fp16", `prompt` a template with {} for the caption. A caption metric (`metric:clip-s`) looks with the
    model `backbone`, and takes `settings`, as other kinds do; `api_key` is that of a chat endpoint, sent to
    it and nowhere written. A given table (`given:scores.csv`) has its numbers in `column`; `unanswered` says
    what becomes of questions without an answer ("refuse", "wrong", "leave-out"); a given similarity may take
    the ids of rows and columns from the npz file `ids`. A local model that `cache` remembers is loaded once
    something is left to compute. Raises `UnknownNameError` for an unknown kind or name, `ModelError` for
    weights that do not fit.

    >>> load_scorer("blind:length").identity.name
    'blind:length'
    """
    options = Options(
        device=str(device),
        precision=precision,
        prompt=prompt,
        column=column,
        unanswered=unanswered,
        seed=seed,
        ids=path_of(ids),
        backbone=backbone,
        settings=settings or {},
        api_key=api_key,
    )
    loaded: AnyScorer = catalog.scorer(spec, options, memory=cache_of(cache))
    return loaded


def evaluate(
    scorer: str | AnyScorer,
    benchmark: str | Path | Benchmark,
    *,
    data: Data | TableData = None,
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
    "optimistic") says what a tie counts, `interval` ("auto", "wilson", "clusters", "crossed", "folds") how
    intervals are made. In a gallery `first_stage` is a dual encoder whose first `depth` items a scorer of
    pairs ranks again, and a run keeps the `top` first items of each query.

    A bar on standard error shows progress after two seconds; `progress` is called with (stage, done, total)
    in its place, `note` with each line about what was decided, and `quiet` shows neither. Raises
    `CounterfoilError` in one line.

    >>> run = evaluate("blind:length", "world-quads", limit=50, draws=100, cache=None, quiet=True)
    >>> run["group"].n, run["group"].chance
    (50, 0.16666666666666666)
    """
    if in_memory(data):
        benchmark, data, images = with_table(benchmark, data, images), None, None
    options = EvaluateOptions(
        data=places_of(data, "--data"),
        images=places_of(images, "--images"),
        limit=limit,
        available=available,
        counts=counts,
        out=path_of(out),
        overwrite=overwrite,
        name=name,
        measures=(measures,) if isinstance(measures, str) else measures,
        ties=member_of(Ties, "policy of ties", ties),
        interval=member_of(IntervalMethod, "interval", interval),
        draws=draws,
        seed=seed,
        scorer=Options(unanswered=unanswered, seed=seed),
        first_stage=first_stage,
        depth=depth,
        top=top,
        truncated_as_miss=truncated_as_miss,
        cache=cache_for(scorer, cache),
        batch_size=batch_size,
        workers=workers,
    )
    (run,) = evaluate_all(
        scorer, [benchmark], options, feedback=feedback_of(quiet=quiet, progress=progress, note=note)
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
    options = options or EvaluateOptions(cache=cache_for(scorer, "default"))
    named = [benchmark if isinstance(benchmark, Benchmark) else str(benchmark) for benchmark in benchmarks]
    evaluation = evaluate_task.prepare(scorer, named, options, feedback=feedback or feedback_of())
    runs = list(evaluation.runs())
    evaluation.check_complete()
    return runs


def load_run(folder: str | Path) -> EvaluationRun:
    """The run in `folder` (OUT/BENCHMARK); raises `DataError` where it is no run, or was changed."""
    return EvaluationRun.of(load_plain_run(folder))


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
        data=places_of(data, "--data"),
        images=places_of(images, "--images"),
        cache=cache_for(scorer, cache),
        batch_size=batch_size,
        workers=workers,
    )
    named = benchmark if isinstance(benchmark, Benchmark) else str(benchmark)
    return explain_task(
        scorer, named, options, feedback=feedback_of(quiet=quiet, progress=progress, note=note)
    )


def grade_heatmaps(
    scorer: str | AnyScorer,
    benchmark: str | Benchmark = "world-quads",
    *,
    limit: int = 40,
    methods: str | Sequence[str] = (),
    grid: int = 7,
    fill: str = "mean",
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
        cache=cache_for(scorer, cache),
        batch_size=batch_size,
        workers=workers,
    )
    feedback = feedback_of(quiet=quiet, progress=progress, note=note)
    return grade_task(scorer, benchmark, options, feedback=feedback)
