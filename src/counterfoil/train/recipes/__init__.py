"""Recipes: how a model is trained, as values, by name or from a TOML file. Nothing here loads torch.

From a file every key is known and every value of the right type, or one line says which is not.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from counterfoil.errors import DataError, InputError, UnknownNameError
from counterfoil.inputs.fields import field_value
from counterfoil.inputs.files import read_toml
from counterfoil.registry import Registry
from counterfoil.train.recipes.base import Recipe as Recipe
from counterfoil.train.recipes.published import (
    SHIPPED,
    Coco as Coco,
    Detection as Detection,
    NegativePairs as NegativePairs,
    NegativeTexts as NegativeTexts,
    NegClip as NegClip,
    Polysemous as Polysemous,
    PositiveAugmented as PositiveAugmented,
    Probabilistic as Probabilistic,
    Triplet as Triplet,
)

RECIPES: Registry[Recipe] = Registry("recipe", Recipe, "counterfoil.recipes", SHIPPED)


def read(name: str | Path, **overrides: Any) -> Recipe:
    """The recipe called `name`, or that of a TOML file, with some fields of another value in all stages.

    >>> read("trohn-img", steps=100).steps
    100
    >>> read("trohn-img", step=100)
    Traceback (most recent call last):
    counterfoil.errors.InputError: recipe trohn-img: unknown key; given: step; ...; did you mean 'steps'?
    """
    return overridden(read_file(name).recipe, overrides)


class Read(NamedTuple):
    """A recipe, the paper's that it is made of, and what its file says of a run: what is trained on what."""

    recipe: Recipe
    base: Recipe
    run: Mapping[str, Any]


def read_file(name: str | Path) -> Read:
    """The recipe called `name`, or that of a TOML file and its table `[run]`.

    A file is

        recipe = "trohn-img"        # where the values are from that the file does not give
        batch_size = 64
        max_logit_scale = "none"    # TOML has no other word for it
        [[stages]]                  # where there are several: what differs in each
        trains = "projections"
        [run]
        data = "trohn/"
    """
    path = Path(name)
    if path.suffix != ".toml":
        if str(name) not in RECIPES:
            hint = " (a recipe of your own is a file that ends in .toml)" if path.exists() else ""
            raise UnknownNameError(f"recipe{hint}", str(name), RECIPES)
        return Read(RECIPES[str(name)], RECIPES[str(name)], {})
    values = read_toml(path, hint=f"or a recipe's name: {', '.join(RECIPES)}")
    base = values.pop("recipe", None)
    if not isinstance(base, str):
        problem = "says no recipe" if base is None else "'recipe' is no name"
        allowed = f'recipe = "NAME", one of {", ".join(RECIPES)}'
        raise DataError(problem, where=path, given=base, allowed=allowed)
    if base not in RECIPES:
        raise UnknownNameError("recipe", base, RECIPES, where=f"{path}, key 'recipe'")
    run = values.pop("run", {})
    if not isinstance(run, dict):
        raise DataError("'run' is no table", where=path, given=run, allowed="[run] and keys below it")
    recipe = overridden(RECIPES[base], {"name": path.stem} | values, where=path)
    return Read(recipe, RECIPES[base], run)


def overridden(recipe: Recipe, values: Mapping[str, Any], *, where: object = None) -> Recipe:
    """The recipe with other values, checked; they hold in all stages unless `values` has stages itself."""
    place = where if where is not None else f"recipe {recipe.name}"
    checked = {key: value_of(type(recipe), key, value, where=place) for key, value in values.items()}
    if "stages" not in checked and recipe.stages:
        stages = tuple({k: v for k, v in stage.items() if k not in checked} for stage in recipe.stages)
        checked["stages"] = stages
    return replace(recipe, **checked)


def value_of(kind: type[Recipe], key: str, value: Any, *, where: object) -> Any:
    """The value of a field as the recipe holds it, from TOML's or the caller's."""
    if key != "stages":
        return field_value(kind, key, value, where=where)
    if not isinstance(value, Sequence) or not all(isinstance(stage, Mapping) for stage in value):
        problem = "stages are no list of tables"
        raise InputError(problem, where=where, given=value, allowed="[[stages]] and keys below each")
    stages = []
    for number, stage in enumerate(value, start=1):
        place = f"{where}, stage {number}"
        for key in ("stages", "name"):
            if key in stage:
                raise InputError(f"a stage has no {key} of its own", where=place, given=stage[key])
        stages.append({key: value_of(kind, key, its, where=place) for key, its in stage.items()})
    return tuple(stages)
