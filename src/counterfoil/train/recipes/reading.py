"""A recipe from its name or a TOML file: every key known, every value of the right type, or one line."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from difflib import get_close_matches
from pathlib import Path
from types import NoneType
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

from counterfoil.errors import DataError, InputError, UnknownNameError
from counterfoil.inputs.files import read_toml
from counterfoil.registry import Registry
from counterfoil.train.recipes.base import Recipe, check_range
from counterfoil.train.recipes.published import (
    Coco,
    Detection,
    HardestTriplet,
    NegativePairs,
    NegativeTexts,
    NegClip,
    Polysemous,
    PositiveAugmented,
    Probabilistic,
    Triplet,
)

RECIPES: Registry[Recipe] = Registry(
    "recipe",
    Recipe,
    "counterfoil.recipes",
    (
        Coco(),
        NegClip(),
        NegativeTexts(),
        NegativePairs(),
        PositiveAugmented(),
        Triplet(),
        HardestTriplet(),
        Polysemous(),
        Probabilistic(),
        Detection(),
    ),
)


def read(name: str | Path, **overrides: Any) -> Recipe:
    """The recipe called `name`, or that of a TOML file, with some fields of another value.

    A field that is overridden has that value in all stages. Raises `UnknownNameError` for an unknown
    recipe, and `InputError` for a field it does not have or a value that is of the wrong type or range.

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

    Raises `UnknownNameError` for a name that no recipe has, and `DataError` or `InputError`, naming the key,
    for what is wrong in the file.
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
        raise DataError(
            "says no recipe" if base is None else "'recipe' is no name",
            where=path,
            given=base,
            allowed=f'recipe = "NAME", one of {", ".join(RECIPES)}',
        )
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
        kept = tuple({k: v for k, v in stage.items() if k not in checked} for stage in recipe.stages)
        checked["stages"] = kept
    return replace(recipe, **checked)


def value_of(kind: type[Recipe], key: str, value: Any, *, where: object) -> Any:
    """The value of a field as the recipe holds it, from TOML's or the caller's.

    Raises `InputError` for a key that the recipe does not have, and a value of the wrong type.
    """
    hints = _hints(kind)
    if key not in hints:
        near = get_close_matches(key, hints, n=1, cutoff=0.5)
        raise InputError(
            "unknown key",
            where=where,
            given=key,
            allowed=sorted(hints),
            hint=f"did you mean '{near[0]}'?" if near else None,
        )
    if key == "stages":
        return _stages(kind, value, where=where)
    place = f"{where}, key '{key}'"
    found = _typed(hints[key], value, place)
    check_range(key, found, where=place)
    return found


def parsed(kind: type[Recipe], key: str, text: str, *, where: object) -> Any:
    """The value of a field as typed: 0.1, none, adamp, 0.9,0.98."""
    hint = _hints(kind).get(key)
    value: Any = text
    if hint is not None and (get_origin(hint) is tuple):
        value = [] if text == "none" else [_number(part) for part in text.split(",")]
    elif hint is not None and hint is not str and get_origin(hint) is not Literal:
        value = _number(text)
    return value_of(kind, key, value, where=where)


def _hints(kind: type[Recipe]) -> dict[str, Any]:
    types = get_type_hints(kind)
    return {each.name: types[each.name] for each in fields(kind)}


def _number(text: str) -> Any:
    for to in (int, float):
        try:
            return to(text)
        except ValueError:
            continue
    return text


def _typed(hint: Any, value: Any, where: str) -> Any:
    words, convert = _kind(hint)
    found = convert(value)
    if found is _WRONG:
        given = f"'{value}'" if isinstance(value, str) else value
        raise InputError("wrong value", where=where, given=given, allowed=words)
    return found


#: What a conversion answers where there is none; None is a value.
_WRONG: Any = object()


def _kind(hint: Any) -> tuple[str, Callable[[Any], Any]]:
    """What a type allows, in words, and how a value becomes one."""
    arguments = get_args(hint)
    if get_origin(hint) is Literal:
        return ", ".join(arguments), lambda value: value if value in arguments else _WRONG
    if get_origin(hint) is tuple:
        return "two numbers, such as 0.9,0.98", _pair
    if NoneType in arguments:
        words, convert = _kind(next(each for each in arguments if each is not NoneType))
        return f"{words}, or none", lambda value: None if value in (None, "none") else convert(value)
    return {
        int: ("a whole number", _whole),
        float: ("a number", _real),
        str: ("a word", lambda value: value if isinstance(value, str) and value else _WRONG),
    }[hint]


def _whole(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else _WRONG


def _real(value: Any) -> Any:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else _WRONG


def _pair(value: Any) -> Any:
    if not isinstance(value, list | tuple) or len(value) != 2:
        return _WRONG
    pair = tuple(_real(each) for each in value)
    return _WRONG if _WRONG in pair else pair


def _stages(kind: type[Recipe], value: Any, *, where: object) -> tuple[dict[str, Any], ...]:
    if not isinstance(value, Sequence) or not all(isinstance(stage, Mapping) for stage in value):
        raise InputError(
            "stages are no list of tables", where=where, given=value, allowed="[[stages]] and keys below each"
        )
    stages = []
    for number, stage in enumerate(value, start=1):
        place = f"{where}, stage {number}"
        for key in ("stages", "name"):
            if key in stage:
                raise InputError(f"a stage has no {key} of its own", where=place, given=stage[key])
        stages.append({key: value_of(kind, key, its, where=place) for key, its in stage.items()})
    return tuple(stages)
