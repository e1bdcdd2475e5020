"""Occlusion and attention maps from Python, and maps held against the truth."""

from collections.abc import Sequence
from pathlib import Path

from counterfoil.api.arguments import AnyScorer, Cache, Data, cache_for, feedback_of, places_of
from counterfoil.data.benchmark import Benchmark
from counterfoil.engine.perturbations import Occlusion
from counterfoil.engine.plan import Note, Progress
from counterfoil.tasks.explain import ExplainOptions, Explanation
from counterfoil.tasks.explain import explain as explain_task
from counterfoil.tasks.heat_grades import HeatGrades
from counterfoil.tasks.heat_grades import grade_heatmaps as grade_task


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
