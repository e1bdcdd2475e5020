"""Benchmarks, single steps and trainings, from Python."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from counterfoil.api.arguments import Cache, cache_of, feedback_of, path_of, typed
from counterfoil.engine.deduplicate import Note, Progress
from counterfoil.jobs.build import BuildOptions, BuildResult, StepResult
from counterfoil.jobs.build import apply_step as step_task
from counterfoil.jobs.build import build as build_task
from counterfoil.jobs.training import TrainedModel
from counterfoil.jobs.training import train as train_task
from counterfoil.train.recipes.base import Recipe


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
        "data": path_of(data),
        "images": path_of(images),
        "regions": path_of(regions),
        "validation": path_of(validation),
        "out": path_of(out),
        "guard_images": path_of(guard_images),
        "validation_share": validation_share,
        "guard": guard,
        "device": device,
        "devices": devices,
        "workers": workers,
        "cache": cache_of(cache),
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
        feedback=feedback_of(quiet=quiet, progress=progress, note=note),
    )
