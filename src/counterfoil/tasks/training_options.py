"""Options of a training: those that a caller gives, else those of the recipe file's table [run]."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from counterfoil.errors import DataError, InputError
from counterfoil.inputs.amounts import RANGES
from counterfoil.outputs.guard import existing
from counterfoil.train.recipes import Recipe
from counterfoil.train.recipes.reading import overridden, parsed


def recipe_with(recipe: Recipe, options: Mapping[str, Any], settings: Sequence[str] = ()) -> Recipe:
    """The recipe with fields changed: `options` that are not None, and settings as KEY=VALUE."""
    values = {key: value for key, value in options.items() if value is not None}
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals or not key:
            raise InputError(
                "no setting", where="--set", given=setting, allowed="KEY=VALUE, such as eps=1e-8"
            )
        values[key] = parsed(type(recipe), key, text, where="--set")
    return overridden(recipe, values) if values else recipe


@dataclass(frozen=True)
class TrainOptions:
    """What is trained on what, and where."""

    model: str | None = None
    data: Path | None = None
    images: Path | None = None
    validation: Path | None = None
    validation_share: float | None = None
    out: Path | None = None
    guard: str | None = None
    guard_images: Path | None = None
    device: str = "auto"
    devices: int = 1
    workers: int | None = None
    #: Where the captions of large tables are kept for the other processes of a training, and the next one.
    cache: Path | None = None
    tensorboard: bool = False

    @property
    def reads(self) -> list[Path]:
        """What is read, in whichever place it was named."""
        named = [self.data, self.images, self.validation, self.guard_images]
        paths = [path for path in named if path is not None]
        return paths + existing(text for text in (self.model, self.guard) if text is not None)

    def check(self, *, dry_run: bool) -> None:
        """Raise `InputError` for what is missing or not there, before anything is loaded."""
        needed = () if dry_run else ("model", "data", "out")
        for name in needed:
            if getattr(self, name) is None:
                raise InputError(f"--{name} is missing", hint=MISSING[name])
        for name, kind in (
            ("images", "folder"),
            ("validation", "file or folder"),
            ("data", "file or folder"),
        ):
            path: Path | None = getattr(self, name)
            # A pattern of shards, train-{000..015}.tar, names files that are.
            if path is None or path.is_dir() or (name != "images" and (path.exists() or "{" in path.name)):
                continue
            raise DataError(f"no such {kind}", where=path, hint=f"check --{name}")


#: What to do where one of these is not named.
MISSING = {
    "model": "name open-clip:ARCH/WEIGHTS, hf:NAME_OR_FOLDER, small, or the folder of a checkpoint",
    "data": "name what is trained on; 'counterfoil world build training' makes some",
    "out": "name the folder that the checkpoint goes to",
}


#: Keys of [run] that are numbers, from where to where, and in words; and those that are places.
_NUMBERS = {
    "validation_share": (0, 0.99, "a number from 0 to 0.99"),
    "devices": (*RANGES["devices"], "a whole number, 1 to {1:,}".format(*RANGES["devices"])),
    "workers": (*RANGES["workers"], "a whole number, 0 to {1:,}".format(*RANGES["workers"])),
}
_PATHS = ("data", "images", "validation", "out", "cache")


def train_options(options: Mapping[str, Any], run: Mapping[str, Any], *, where: object) -> TrainOptions:
    """The options that are not None, and for the others the table [run] of the recipe's file."""
    values: dict[str, Any] = {}
    for key, value in run.items():
        if key not in options:
            near = get_close_matches(key, options, n=1, cutoff=0.5)
            raise InputError(
                "unknown key",
                where=f"{where}, [run]",
                given=key,
                allowed=sorted(options),
                hint=f"did you mean '{near[0]}'?" if near else None,
            )
        low, high, words = _NUMBERS.get(key, (None, None, "a text in quotes"))
        fits = isinstance(value, str)
        if key == "tensorboard":
            fits, words = isinstance(value, bool), "true or false"
        if low is not None and high is not None:
            whole = isinstance(value, int) and not isinstance(value, bool)
            fits = (
                whole or (isinstance(value, float) and key == "validation_share")
            ) and low <= value <= high
        if not fits:
            raise InputError("wrong value", where=f"{where}, [run], key '{key}'", given=value, allowed=words)
        values[key] = Path(value) if key in _PATHS else value
    values |= {key: value for key, value in options.items() if value is not None}
    return TrainOptions(**values)
