"""Networks that are named on the command line, open for training."""

from pathlib import Path
from typing import TYPE_CHECKING

from counterfoil.cli.train_options import MISSING
from counterfoil.data.training import TrainingSet
from counterfoil.errors import InputError
from counterfoil.train.recipes import Recipe

if TYPE_CHECKING:
    from counterfoil.scorers.networks import Backbone


def model(spec: str, data: TrainingSet, recipe: Recipe) -> "Backbone":
    """The network to start from: a checkpoint's folder, or what KIND:WHAT names, with the recipe's heads.

    Weights that are random are those of the recipe's seed.
    """
    from counterfoil.scorers.runtime import import_torch

    import_torch().manual_seed(recipe.seed)
    from counterfoil.train.objectives import with_heads

    return with_heads(_model(spec, data, recipe), recipe)


def _model(spec: str, data: TrainingSet, recipe: Recipe) -> "Backbone":
    if spec == "small" and not _is_folder(spec):
        from counterfoil.scorers import small

        captions = [caption.text or "" for caption in data.captions]
        return small.backbone(captions, seed=recipe.seed)
    return network(spec, allowed=MISSING["model"].removeprefix("name "))


def network(spec: str, *, allowed: str) -> "Backbone":
    """The network in a checkpoint's folder, or of a model library.

    Raises `InputError` naming what is `allowed` for what is neither, and what reading it raises.
    """
    if _is_folder(spec):
        from counterfoil.scorers import checkpoint

        return checkpoint.read(Path(spec.removeprefix("ckpt:")))
    if ":" not in spec:
        hint = None
        if spec and Path(spec).is_dir():
            known = (Path(spec) / "config.json").is_file()
            hint = f"did you mean hf:{spec}?" if known else "this folder holds no card.json of a checkpoint"
        raise InputError("no such model", given=spec or "(empty)", allowed=allowed, hint=hint)
    from counterfoil.scorers import trainable

    return trainable.backbone(spec)


def _is_folder(spec: str) -> bool:
    return spec.startswith("ckpt:") or (Path(spec) / "card.json").is_file()
