"""A build: the steps of a recipe run one after the other in a folder, each finished step kept.

A build that was stopped, at whatever moment, goes on where it was, and ends in the same bytes as one that was
not. A step is run again where its settings, the files that they name, its rows or the seed have changed, and
where an image that it made is gone. `docs/build.md` shows a recipe: `[steps.world]` holds settings where rows
are drawn, and a step with `only = "world"` is left out elsewhere unless a setting of it is given.
"""

import re
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import pyarrow as pa

from counterfoil.benchmarks.folder import BUILT
from counterfoil.benchmarks.training_rows import IMAGE_ROLES
from counterfoil.build.step import Output, Step, StepContext, check_columns
from counterfoil.build.step_folder import DROPPED, ROWS, StepFolder, StepRecord
from counterfoil.build.steps.registry import STEPS
from counterfoil.errors import DataError, InputError, StorageError, UnknownNameError
from counterfoil.inputs.fields import from_text
from counterfoil.inputs.files import digest_value, parse_toml, read_text
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
        return tuple(f"{number}-{step.name}" for number, step in enumerate(self.steps, start=1))

    def check_order(self, columns: Sequence[str]) -> None:
        """Raise `InputError` where a step reads what no earlier step makes and `columns` lack."""
        there = {"id", *columns}
        for label, step in zip(self.labels[1:], self.steps[1:], strict=True):
            for name in step.requires:
                if name not in there:
                    later = next((one.name for one in self.steps if name in one.produces), None)
                    hint = f"put '{later}' before it" if later else f"read rows that have '{name}'"
                    what = f"step {label} reads '{name}', which no step before it makes"
                    where, given = f"recipe {self.name}", ", ".join(sorted(there))
                    raise InputError(what, where=where, given=given, hint=hint)
            there.update(step.produces)


def shipped() -> list[str]:
    folder = files("counterfoil.build").joinpath("recipes")
    return sorted(file.name.removesuffix(".toml") for file in folder.iterdir() if file.name.endswith(".toml"))


def read_recipe(
    name: str | Path, *, settings: Mapping[str, str] | None = None, seed: int | None = None
) -> BuildRecipe:
    """The recipe of a TOML file, or a shipped one by its name; `settings` change values by "STEP.KEY"."""
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
    for key, value in values.items():
        if key not in _KEYS:
            raise DataError("unknown key", where=where, given=key, allowed=_KEYS)
        if key in ("title", "summary") and not isinstance(value, str):
            raise DataError("not a text", where=f"{where}, key '{key}'", given=value)
    steps = values.get("steps")
    if not isinstance(steps, list) or not steps or not all(isinstance(step, dict) for step in steps):
        raise DataError("no steps", where=where, allowed='[[steps]] with do = "STEP", one after the other')
    number = values.get("seed", 0) if seed is None else seed
    if not isinstance(number, int) or isinstance(number, bool):
        raise DataError("the seed is no whole number", where=where, given=number)
    check_amount("seed", number)
    in_order = _steps(steps, dict(settings or {}), where=where)
    return BuildRecipe(called, values.get("title") or called, values.get("summary", ""), number, in_order)


def _steps(listed: Sequence[dict[str, Any]], settings: dict[str, str], *, where: str) -> tuple[Step, ...]:
    names: list[str] = []
    for number, table in enumerate(listed, start=1):
        named = table.get("do")
        if not isinstance(named, str):
            raise DataError("a step without a name", where=f"{where}, step {number}", allowed='do = "STEP"')
        STEPS.find(named, where=f"{where}, step {number}")
        names.append(named)
    if names[0] != READ or READ in names[1:]:
        what = "the first step, and no other, reads rows"
        raise InputError(what, where=where, given=", ".join(names), allowed=READ)
    changed: dict[str, dict[str, str]] = {}
    for key, text in settings.items():
        step, dot, field = key.partition(".")
        if not dot or step not in names:
            allowed = [f"{name}.KEY=VALUE" for name in dict.fromkeys(names)]
            raise InputError("no step of this recipe", where="--set", given=key, allowed=allowed)
        changed.setdefault(step, {})[field] = text
    built: list[Step] = []
    drawn = False
    for number, (name, table) in enumerate(zip(names, listed, strict=True), start=1):
        entry = STEPS[name]
        place = f"{where}, step {number} ({name})"
        given = {key: value for key, value in table.items() if key not in ("do", ONLY, WORLD)}
        changes = {key: from_text(entry.kind, key, text) for key, text in changed.get(name, {}).items()}
        if number == 1:
            drawn = {**given, **changes}.get("source", WORLD) == WORLD
        world = table.get(WORLD, {})
        if not isinstance(world, dict):
            raise DataError(f"'{WORLD}' is no table", where=place, given=world, allowed=f"[steps.{WORLD}]")
        only, way = table.get(ONLY, WORLD), f'{ONLY} = "{WORLD}"'
        if only != WORLD:
            raise DataError(f"unknown value of '{ONLY}'", where=place, given=only, allowed=way)
        one = entry.step({**given, **(world if drawn else {}), **changes}, where=place)
        if drawn or ONLY not in table or changes:
            built.append(one)
    return tuple(built)


STEPS_FOLDER = "steps"
#: How images that steps make are called: a digest, with an ending. Files of other names are never removed.
_IMAGE_NAME = re.compile(r"[0-9a-f]{32}(\.\w+)?")
#: Rows from nowhere: what the first step takes.
_NOTHING = "nothing"


@dataclass(frozen=True)
class Build:
    """A folder in which a recipe was run to its end, and what its manifests say."""

    folder: Path
    records: tuple[StepRecord, ...]

    @property
    def folders(self) -> tuple[StepFolder, ...]:
        return tuple(StepFolder(self.folder / STEPS_FOLDER / record.label) for record in self.records)

    @property
    def benchmark(self) -> Path | None:
        """The folder of the benchmark, where the recipe assembles one."""
        folder = self.folder / BUILT
        return folder if folder.is_dir() else None


def run_recipe(
    recipe: BuildRecipe, context: StepContext, *, begun: Callable[[str, int], None] = lambda label, rows: None
) -> Build:
    """Run the steps that are not finished in the folder of `context`; finished steps stay where one fails."""
    photos = getattr(recipe.steps[0], "images", None)
    context = replace(context, seed=recipe.seed, photos=context.photos if photos is None else Path(photos))
    build = Build(context.folder, ())
    first = rows = pa.table({"id": pa.array([], pa.string())})
    source, checked = _NOTHING, False
    for number, (label, step) in enumerate(zip(recipe.labels, recipe.steps, strict=True)):
        place = StepFolder(context.folder / STEPS_FOLDER / label)
        record = place.finished(step, seed=recipe.seed, rows_from=source)
        produced = step.produces if number else None
        empty = record is not None and record.rows_out == 0 < record.rows_in
        if record is None or empty or not has_images(place.rows(), context, produced):
            if number:
                rows = build.folders[-1].rows()
                if not checked:
                    check_images(first, recipe.steps[number:], context)
                    checked = True
            begun(label, len(rows))

            def save(output: Output, step=step, rows=rows, place=place, source=source) -> str:  # type: ignore[no-untyped-def]
                place.save(step, rows, output, seed=recipe.seed, rows_from=source)
                return said_dropped(place.folder / DROPPED)

            work = replace(context, step=label)
            run_step(step, rows, work, save=save)
            shutil.rmtree(work.keep, ignore_errors=True)
            record = place.record()
        build = replace(build, records=(*build.records, record))
        # What rows name lies in the first step's folder of images, which may have got more of them.
        source = digest_value([record.tables[ROWS], dict(build.records[0].files)])
        if number == 0:
            first = place.rows()
            recipe.check_order(first.column_names)
    _tidy(build, recipe)
    return build


def check_images(rows: pa.Table, steps: Sequence[Step], context: StepContext) -> None:
    """Raise `DataError` before the first step where one of `steps` would miss an image of the first rows.

    A step that only takes names of images says `opens = False`; one that drops rows without an image,
    `drops_blank`.
    """
    produced: set[str] = set()
    blank_dropped: set[str] = set()
    for step in steps:
        columns = {*step.requires} & {*IMAGE_ROLES} & {*rows.column_names} - produced
        produced |= {*step.produces}
        blank_dropped |= columns if getattr(step, "drops_blank", False) else set()
        for column in sorted(columns):
            cells = [cell for cell in rows[column].to_pylist() if cell or column not in blank_dropped]
            empty = [i for i, cell in enumerate(cells) if not cell]
            if empty:
                what = f"rows without {column}, which step {step.name} reads"
                given = f"{len(empty):,} of {len(cells):,}, such as row '{rows['id'][empty[0]].as_py()}'"
                hint = "fill their cells in, or leave the rows out: --set read.available=yes"
                raise DataError(what, where=f"column '{column}'", given=given, hint=hint)
            if not getattr(step, "opens", True) and context.photos is None:
                continue
            missing = [c for c in dict.fromkeys(cells) if context.image(c, missing=True).source is None]
            if missing:
                what = f"images that step {step.name} opens are not at hand"
                given = f"{len(missing):,} of {len(set(cells)):,}, such as {missing[0]}"
                hint = "name their folder with --images, or leave rows out: --set read.available=yes"
                where = context.photos or f"column '{column}'"
                raise DataError(what, where=where, given=given, hint=hint)


def run_step(
    step: Step, rows: pa.Table, context: StepContext, *, save: Callable[[Output], str | None] = lambda _: None
) -> Output:
    """One step on rows of one's own, checked before and after; `save` keeps its output and gives a hint."""
    where = f"step {context.step or step.name}"
    check_columns(step, rows, where=where)
    output = step.run(rows, context)
    hint = save(output)
    if not len(output.kept) and len(rows):
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in output.reasons.items())
        raise DataError("no row is left", where=where, given=reasons or "no reasons", hint=hint)
    return output


def said_dropped(place: Path) -> str:
    return f"the rows, with all that was made of them, are in {place}"


def has_images(rows: pa.Table, context: StepContext, produced: Collection[str] | None = None) -> bool:
    """Whether images in the columns `produced` are there; of a step that reads rows, a build's own."""
    named = _images_of(rows, IMAGE_ROLES if produced is None else produced)
    named = {cell for cell in named if produced is not None or _IMAGE_NAME.fullmatch(cell)}
    return all(context.image(cell, missing=True).source is not None for cell in named)


def _images_of(rows: pa.Table, columns: Collection[str] = IMAGE_ROLES) -> set[str]:
    """The cells that name images, in these columns of the rows."""
    roles = {*IMAGE_ROLES} & {*rows.column_names} & {*columns}
    return {cell for column in roles for cell in rows[column].unique().to_pylist() if cell}


def _tidy(build: Build, recipe: BuildRecipe) -> None:
    """Remove what an earlier recipe left: folders of other steps, and images that no row names."""
    shutil.rmtree(build.folder / "unfinished", ignore_errors=True)
    for other in sorted((build.folder / STEPS_FOLDER).glob("*")):
        if other.name not in recipe.labels and StepFolder(other).is_own:
            shutil.rmtree(other, ignore_errors=True)
    images = sorted((build.folder / "images").glob("*"))
    images = [path for path in images if _IMAGE_NAME.fullmatch(path.name)]
    named: set[str] = set()
    for place in build.folders if images else ():
        named |= _images_of(place.rows()) | _images_of(place.dropped())
    for path in images:
        if path.name not in named:
            try:
                path.unlink()
            except OSError as error:
                raise StorageError("cannot be removed", where=path, given=str(error)) from error


def build_folder(folder: Path) -> Path | None:
    """The folder of the build in which a benchmark was assembled, or that it is; None where there is none."""
    folders = (folder, folder.parent) if folder.name == BUILT else (folder,)
    return next((place for place in folders if (place / STEPS_FOLDER).is_dir()), None)


def build_provenance(folder: Path) -> dict[str, Any]:
    """Steps with their counts, and who made what of every row (`publishing.facts.Provenance.of`)."""
    numbers = {path: path.name.partition("-")[0] for path in (folder / STEPS_FOLDER).iterdir()}
    numbered = {path: int(number) for path, number in numbers.items() if number.isdigit()}
    steps = [StepFolder(path) for path in sorted(numbered, key=numbered.__getitem__)]
    if not steps:
        return {}
    records = [step.record() for step in steps]
    rows = steps[-1].rows()
    columns = [name for name in rows.column_names if name == "id" or name.endswith(("_by", "_from", "_seed"))]
    listed: list[dict[str, Any]] = []
    for record in records:
        entry = STEPS.get(record.step)
        settings = () if entry is None else fields(entry.kind)
        # A manifest has tuples as lists. Of a step that is not known here all settings are listed.
        defaults = {f.name: list(f.default) if isinstance(f.default, tuple) else f.default for f in settings}
        chosen = {k: v for k, v in record.settings.items() if k not in defaults or v != defaults[k]}
        summary = "" if entry is None else entry.summary
        chosen = {name: _without_folder(value) for name, value in chosen.items()}
        counts = {"rows_in": record.rows_in, "rows_out": record.rows_out, "dropped": dict(record.dropped)}
        listed.append({"name": record.step, "summary": summary, "settings": chosen, **counts})
    return {
        "method": f"Built by counterfoil in {len(records)} steps with seed {records[0].seed}.",
        "steps": listed,
        **({"rows": rows.select(columns)} if len(columns) > 1 else {}),
    }


def _without_folder(value: Any) -> Any:
    """A path of this machine by its last part, which is all that says anything to others."""
    if isinstance(value, list):
        return [_without_folder(part) for part in value]
    return Path(value).name if isinstance(value, str) and Path(value).is_absolute() else value
