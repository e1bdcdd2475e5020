"""A recipe: a title, a seed and steps in order, from a TOML file or by the name of one that is shipped.

    title = "Pairs of my own"
    seed = 0

    [[steps]]
    do = "read"                # which step
    source = "captions.json"   # its settings
    [[steps]]
    do = "imagine"
    by = "diffusers:./sdxl"
    [steps.world]              # settings where the rows are drawn (source = "world")
    by = "world"

A step with `only = "world"` is left out where rows are not drawn and no setting of it is given.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from counterfoil.build.step import Step
from counterfoil.build.steps.registry import STEPS
from counterfoil.errors import DataError, InputError, UnknownNameError
from counterfoil.inputs.fields import from_text
from counterfoil.inputs.files import parse_toml, read_text
from counterfoil.inputs.limits import check_amount

#: The step that every recipe begins with, and the source of rows that are drawn.
READ, WORLD = "read", "world"
#: The key of a step that is left out where rows are not drawn.
ONLY = "only"
_KEYS = ("title", "summary", "seed", "steps")


@dataclass(frozen=True)
class BuildRecipe:
    """Steps in order; `name` is that of the file, `labels` name the steps by place and name."""

    name: str
    title: str
    summary: str
    seed: int
    steps: tuple[Step, ...]

    @property
    def labels(self) -> tuple[str, ...]:
        """The folder of each step: "1-read", "2-format"."""
        return tuple(f"{number}-{step.name}" for number, step in enumerate(self.steps, start=1))

    def check_order(self, columns: Sequence[str]) -> None:
        """Raise `InputError` where a step reads a column that neither the rows have nor a step before makes.

        `columns` are those of the rows that the first step reads.
        """
        there = {"id", *columns}
        for label, step in zip(self.labels[1:], self.steps[1:], strict=True):
            lacking = [name for name in step.requires if name not in there]
            if lacking:
                later = next((one for one in self.steps if lacking[0] in one.produces), None)
                raise InputError(
                    f"step {label} reads '{lacking[0]}', which no step before it makes",
                    where=f"recipe {self.name}",
                    given=", ".join(sorted(there)),
                    hint=f"put '{later.name}' before it" if later else f"read rows that have '{lacking[0]}'",
                )
            there.update(step.produces)


def shipped() -> list[str]:
    """The names of the recipes that counterfoil has.

    >>> "bivlc" in shipped()
    True
    """
    folder = files("counterfoil.build").joinpath("recipes")
    return sorted(file.name.removesuffix(".toml") for file in folder.iterdir() if file.name.endswith(".toml"))


def read_recipe(
    name: str | Path, *, settings: Mapping[str, str] | None = None, seed: int | None = None
) -> BuildRecipe:
    """The recipe of a TOML file, or a shipped one by its name, with some settings of another value.

    `settings` are texts by "STEP.KEY": of the step called so, or of all of its kind. Raises
    `UnknownNameError` for an unknown recipe or step, and `DataError` or `InputError` naming file, step and
    key for what is wrong.
    """
    path = Path(name)
    if path.suffix == ".toml":
        text, called, where = read_text(path), path.stem, str(path)
    elif str(name) in shipped():
        text = files("counterfoil.build").joinpath("recipes", f"{name}.toml").read_text(encoding="utf-8")
        called, where = str(name), f"recipe {name}"
    else:
        hint = " (a recipe of your own is a file that ends in .toml)" if path.exists() else ""
        raise UnknownNameError(f"recipe{hint}", str(name), shipped())
    values = parse_toml(text, where=where)
    unknown = [key for key in values if key not in _KEYS]
    if unknown:
        raise DataError("unknown key", where=where, given=unknown[0], allowed=_KEYS)
    steps = values.get("steps")
    if not isinstance(steps, list) or not steps or not all(isinstance(step, dict) for step in steps):
        raise DataError("no steps", where=where, allowed='[[steps]] with do = "STEP", one after the other')
    number = values.get("seed", 0) if seed is None else seed
    if not isinstance(number, int) or isinstance(number, bool):
        raise DataError("the seed is no whole number", where=where, given=number)
    check_amount("seed", number)
    return BuildRecipe(
        called,
        str(values.get("title", called)),
        str(values.get("summary", "")),
        number,
        _steps(steps, dict(settings or {}), where=where),
    )


def _steps(listed: Sequence[dict[str, Any]], settings: dict[str, str], *, where: str) -> tuple[Step, ...]:
    names: list[str] = []
    for number, table in enumerate(listed, start=1):
        named = table.get("do")
        if not isinstance(named, str):
            raise DataError("a step without a name", where=f"{where}, step {number}", allowed='do = "STEP"')
        STEPS.find(named, where=f"{where}, step {number}")
        names.append(named)
    if names[0] != READ or READ in names[1:]:
        raise InputError(
            "the first step, and no other, reads rows", where=where, given=", ".join(names), allowed=READ
        )
    changed: dict[str, dict[str, str]] = {}
    for key, text in settings.items():
        step, dot, field = key.partition(".")
        if not dot or step not in names:
            raise InputError(
                "no step of this recipe",
                where="--set",
                given=key,
                allowed=[f"{name}.KEY=VALUE" for name in dict.fromkeys(names)],
            )
        changed.setdefault(step, {})[field] = text
    built: list[Step] = []
    drawn = False
    for number, (name, table) in enumerate(zip(names, listed, strict=True), start=1):
        entry = STEPS[name]
        place = f"{where}, step {number} ({name})"
        given = {key: value for key, value in table.items() if key not in ("do", ONLY, WORLD)}
        own = {key: from_text(entry.kind, key, text) for key, text in changed.get(name, {}).items()}
        if number == 1:
            drawn = {**given, **own}.get("source", WORLD) == WORLD
        world = table.get(WORLD, {})
        if not isinstance(world, dict):
            raise DataError(f"'{WORLD}' is no table", where=place, given=world, allowed=f"[steps.{WORLD}]")
        only = table.get(ONLY, WORLD)
        if only != WORLD:
            allowed = f'{ONLY} = "{WORLD}"'
            raise DataError(f"unknown value of '{ONLY}'", where=place, given=only, allowed=allowed)
        one = entry.step({**given, **(world if drawn else {}), **own}, where=place)
        if drawn or ONLY not in table or own:
            built.append(one)
    return tuple(built)
