"""Training from Python."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from counterfoil.api.arguments import Cache, cache_of, feedback_of, path_of
from counterfoil.engine.plan import Note, Progress
from counterfoil.tasks.training import TrainedModel
from counterfoil.tasks.training import train as train_task
from counterfoil.train.recipes.base import Recipe


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
