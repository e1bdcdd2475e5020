"""Candidate pools, benchmarks, single steps, published folders and trainings, from Python."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal

from counterfoil.api.arguments import Cache, cache_of, feedback_of, path_of, typed
from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.engine.deduplicate import Note, Progress
from counterfoil.errors import UnknownNameError
from counterfoil.evaluation.pooling import Tasks
from counterfoil.evaluation.result import Run
from counterfoil.jobs.build import BuildOptions, BuildResult, StepResult
from counterfoil.jobs.build import apply_step as step_task
from counterfoil.jobs.build import build as build_task
from counterfoil.jobs.pool import CandidatePool
from counterfoil.jobs.pool import pool as pool_task
from counterfoil.jobs.publish import Published, PublishOptions
from counterfoil.jobs.publish import publish as publish_task


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
    cost. Raises `DataError` where the items differ and `InputError` for two models of one name.

    >>> from counterfoil import evaluate
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
        feedback=feedback_of(quiet=quiet, progress=progress),
    )


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
        settings=typed(settings),
        seed=seed,
        report=report,
        device=device,
        precision=precision,
        api_key=api_key,
        cache=cache_of(cache),
        batch_size=batch_size,
        workers=workers,
    )
    feedback = feedback_of(quiet=quiet, progress=progress, note=note)
    return build_task(recipe, out, options, overwrite=overwrite, feedback=feedback)


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
        settings=typed(settings),
        seed=seed,
        images=path_of(images),
        device=device,
        precision=precision,
        api_key=api_key,
        cache=cache_of(cache),
        batch_size=batch_size,
        workers=workers,
    )
    feedback = feedback_of(quiet=quiet, progress=progress, note=note)
    return step_task(step, rows, options, feedback=feedback, folder=path_of(folder))


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
    how the questions came to be (`counterfoil.benchmarks.publishing.facts.Provenance.of`), or is a JSON file
    that does. `facts` are further fields of `counterfoil.jobs.publish.PublishOptions`: creators, date,
    release, language, url, private, available, counts, overwrite. Raises `InputError` where a licence forbids
    it, unless `anyway`.

    >>> found = publish("world-choices", "hub:ann/shapes", quiet=True)
    >>> found.licence.spdx, found.executed, "data/test-00000-of-00001.parquet" in found.folder.sizes
    ('Apache-2.0', False, True)
    """
    known = {field.name for field in fields(PublishOptions)}
    for name in facts:
        if name not in known:
            raise UnknownNameError("fact of a publication", name, known)
    origin = provenance if provenance is None or isinstance(provenance, Mapping) else Path(provenance)
    options = PublishOptions(
        data=path_of(data),
        images=path_of(images),
        licence=licence,
        anyway=anyway,
        split=split,
        seed=seed,
        execute=execute,
        provenance=origin,
        **facts,
    )
    named = benchmark if isinstance(benchmark, Benchmark) else str(benchmark)
    return publish_task(named, to, options, feedback=feedback_of(quiet=quiet))
